"""The forms of a list: Tables, metadata only, indented, other media types, compressed."""

from __future__ import annotations

from typing import Any, Final

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, NAMESPACES, PODS, SECRETS
from tests.contract.session import Session

META: Final = "v=v1;g=meta.k8s.io"
TABLE: Final = f"application/json;as=Table;{META}"
PARTIAL: Final = f"application/json;as=PartialObjectMetadataList;{META}"
KUBECTL: Final = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"


@each(
    "list",
    "what Accept says",
    {
        "anything": {"accept": "*/*"},
        "any_application": {"accept": "application/*"},
        "nothing": {"accept": ""},
        "yaml": {"accept": "application/yaml"},
        "html": {"accept": "text/html"},
        "text": {"accept": "text/plain"},
        "html_or_anything": {"accept": "text/html,*/*"},
        "quality": {"accept": "application/yaml;q=0.1,application/json;q=0.9"},
        "charset": {"accept": "application/json;charset=utf-8"},
        "garbage": {"accept": "json"},
        "table": {"accept": TABLE},
        "table_as_kubectl": {"accept": KUBECTL},
        "table_beta": {"accept": "application/json;as=Table;v=v1beta1;g=meta.k8s.io"},
        "table_alpha": {"accept": "application/json;as=Table;v=v1alpha1;g=meta.k8s.io"},
        "table_no_group": {"accept": "application/json;as=Table;v=v1"},
        "table_or_json": {"accept": f"{TABLE},application/json"},
        "partial_list": {"accept": PARTIAL},
        "partial_object": {"accept": f"application/json;as=PartialObjectMetadata;{META}"},
        "unknown_form": {"accept": f"application/json;as=Picture;{META}"},
        "unknown_form_or_json": {"accept": f"application/json;as=Picture;{META},application/json"},
        "yaml_table": {"accept": f"application/yaml;as=Table;{META}"},
        "pretty_json": {"accept": "application/json;pretty=1"},
    },
)
async def accept(s: Session, *, accept: str) -> None:
    await s.make(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    await s.get(CONFIGMAPS, headers={"Accept": accept})


@each(
    "list",
    "an indented list",
    {
        name: {"value": value}
        for name, value in {
            "true": "true",
            "one": "1",
            "false": "false",
            "zero": "0",
            "empty": "",
            "garbage": "x",
        }.items()
    },
)
async def pretty(s: Session, *, value: str) -> None:
    await s.configmap("a")
    await s.get(CONFIGMAPS, pretty=value)


@each(
    "list",
    "who gets it indented without asking",
    {
        "curl": {"agent": "curl/8.0"},
        "browser": {"agent": "Mozilla/5.0"},
        "go": {"agent": "Go-http-client/1.1"},
        "wget": {"agent": "Wget/1.2"},
        "kubectl": {"agent": "kubectl/v1.36.0"},
    },
)
async def agent(s: Session, *, agent: str) -> None:
    await s.get(CONFIGMAPS, headers={"User-Agent": agent})


@case("list", "an error is a Status in any form that was asked for")
async def error_forms(s: Session) -> None:
    for accept in (TABLE, PARTIAL, "application/yaml"):
        await s.get(CONFIGMAPS, resourceVersionMatch="Exact", headers={"Accept": accept})


@each(
    "list",
    "how much of the objects a Table includes",
    {
        "nothing": {"include": "None"},
        "metadata": {"include": "Metadata"},
        "object": {"include": "Object"},
        "garbage": {"include": "All"},
        "empty": {"include": ""},
    },
)
async def table_include(s: Session, *, include: str) -> None:
    await s.make(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}})
    await s.get(CONFIGMAPS, includeObject=include, headers={"Accept": TABLE})


@case("list", "an empty Table")
async def table_empty(s: Session) -> None:
    await s.get(CONFIGMAPS, headers={"Accept": TABLE})
    await s.get(CONFIGMAPS, headers={"Accept": PARTIAL})


@each(
    "list",
    "the Table of a kind",
    {
        "secrets": {"path": SECRETS, "body": {"type": "Opaque", "stringData": {"k": "v"}}},
        "pods": {
            "path": PODS,
            "body": {"spec": {"containers": [{"name": "c", "image": "example.com/c"}]}},
        },
        "leases": {
            "path": "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            "body": {"spec": {"holderIdentity": "me"}},
        },
        "roles": {
            "path": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            "body": {"rules": []},
        },
    },
)
async def table_of(s: Session, *, path: str, body: dict[str, Any]) -> None:
    await s.make(path, {"metadata": {"name": "a"}, **body})
    await s.get(path, headers={"Accept": KUBECTL})


@case("list", "a Table and the metadata of custom resources")
async def custom_forms(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    body = {"apiVersion": f"{group}/v1", "kind": "Widget", "spec": {"size": 1}}
    await s.make(path, {**body, "metadata": {"name": "a", "labels": {"x": "y"}}})
    for accept in (KUBECTL, PARTIAL):
        await s.get(path, headers={"Accept": accept})


@case("list", "a Table of what is cluster-scoped")
async def table_of_namespaces(s: Session) -> None:
    await s.namespace("a", case=s.ident)
    await s.get(NAMESPACES, labelSelector=f"case={s.ident}", headers={"Accept": KUBECTL})


def count(body: dict[str, Any]) -> object:
    """Reduce a large list to the number of its items."""
    return {"kind": body["kind"], "items": len(body["items"])}


@each(
    "list",
    "a large list is compressed for who takes gzip",
    {
        "gzip": {"encoding": "gzip", "size": 200_000},
        "gzip_among_others": {"encoding": "deflate, gzip;q=1.0, *;q=0.5", "size": 200_000},
        "deflate": {"encoding": "deflate", "size": 200_000},
        "identity": {"encoding": "identity", "size": 200_000},
        "small": {"encoding": "gzip", "size": 10_000},
    },
)
async def compressed(s: Session, *, encoding: str, size: int) -> None:
    await s.make(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * size}})
    headers = {"Accept-Encoding": encoding}
    await s.get(CONFIGMAPS, headers=headers, view=count)
    await s.get(f"{CONFIGMAPS}/a", headers=headers, view=lambda body: body["kind"])

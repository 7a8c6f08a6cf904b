"""Bad input: bodies that cannot be read, that are of something else, or go elsewhere."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS
from tests.contract.cases.kinds_bodies import DEPLOYMENTS, named, only, pod
from tests.contract.session import Session

YAML = "application/yaml"


@each(
    "errors",
    "a body that cannot be read",
    {
        "empty": {"body": ""},
        "broken": {"body": '{"metadata":'},
        "text": {"body": "hello"},
        "list": {"body": "[]"},
        "null": {"body": "null"},
        "number": {"body": "5"},
        "string": {"body": '"x"'},
        "trailing": {"body": '{"metadata":{"name":"a"}} x'},
        "two": {"body": '{"metadata":{"name":"a"}}{"metadata":{"name":"b"}}'},
        "single_quotes": {"body": "{'metadata':{'name':'a'}}"},
        "comma": {"body": '{"metadata":{"name":"a",}}'},
        "not_utf8": {"body": b'{"metadata":{"name":"a"},"data":{"k":"\xff"}}'},
        "yaml_as_json": {"body": "metadata:\n  name: a\n"},
        "blank": {"body": "  \n"},
        "escape": {"body": '{"metadata":{"name":"\\q"}}'},
    },
)
async def unreadable(s: Session, *, body: object) -> None:
    await s.post(CONFIGMAPS, body)


@each(
    "errors",
    "a YAML body that cannot be read",
    {
        "tab": {"body": "metadata:\n\tname: a\n"},
        "broken": {"body": "a: [b"},
        "list": {"body": "- a\n"},
        "text": {"body": "hello"},
        "empty": {"body": ""},
        "number_for_text": {"body": "metadata: {name: a}\ndata: {k: 5}\n"},
        "boolean_for_text": {"body": "metadata: {name: a}\ndata: {k: yes}\n"},
        "two_documents": {"body": "metadata: {name: a}\n---\nmetadata: {name: b}\n"},
        "anchors": {"body": "metadata: &m {name: a}\ndata: {k: v}\n"},
        "json": {"body": '{"metadata":{"name":"a"}}'},
    },
)
async def yaml(s: Session, *, body: str) -> None:
    await s.post(CONFIGMAPS, body, headers={"Content-Type": YAML})


@each(
    "errors",
    "a content type",
    {
        "none": {"media": ""},
        "text": {"media": "text/plain"},
        "xml": {"media": "application/xml"},
        "form": {"media": "application/x-www-form-urlencoded"},
        "garbage": {"media": "json"},
        "charset": {"media": "application/json; charset=utf-8"},
        "upper_case": {"media": "Application/JSON"},
        "merge_patch": {"media": "application/merge-patch+json"},
    },
)
async def content_type(s: Session, *, media: str) -> None:
    await s.post(CONFIGMAPS, named("a"), headers={"Content-Type": media}, view=only("kind"))


@each(
    "errors",
    "a body of something else",
    {
        "other_kind": {"body": {"apiVersion": "v1", "kind": "Secret", **named("a")}},
        "other_group": {"body": {"apiVersion": "apps/v1", "kind": "ConfigMap", **named("a")}},
        "other_version": {"body": {"apiVersion": "v2", "kind": "ConfigMap", **named("a")}},
        "unknown_kind": {"body": {"apiVersion": "v1", "kind": "Gizmo", **named("a")}},
        "list_kind": {"body": {"apiVersion": "v1", "kind": "ConfigMapList", "items": []}},
        "only_kind": {"body": {"kind": "ConfigMap", **named("a")}},
        "only_version": {"body": {"apiVersion": "v1", **named("a")}},
        "only_other_kind": {"body": {"kind": "Pod", **named("a")}},
        "only_other_version": {"body": {"apiVersion": "apps/v1", **named("a")}},
        "bad_version": {"body": {"apiVersion": "a/b/c", "kind": "ConfigMap", **named("a")}},
        "kind_number": {"body": {"apiVersion": "v1", "kind": 5, **named("a")}},
        "old_version": {
            "path": DEPLOYMENTS,
            "body": {"apiVersion": "extensions/v1beta1", "kind": "Deployment", **named("a")},
        },
        "namespace": {"body": named("a", metadata={"namespace": "default"})},
        "pod_namespace": {
            "path": PODS,
            "body": {**pod(), "metadata": {"name": "a", "namespace": "default"}},
        },
    },
)
async def other(s: Session, *, body: object, path: str = CONFIGMAPS) -> None:
    await s.post(path, body)


@case("errors", "an update with a body of something else")
async def other_update(s: Session) -> None:
    await s.configmap("a")
    await s.put(f"{CONFIGMAPS}/a", {"apiVersion": "v1", "kind": "Secret", **named("a")})
    await s.put(f"{CONFIGMAPS}/a", "{")
    await s.put(f"{CONFIGMAPS}/a", "")
    await s.put(f"{CONFIGMAPS}/a", named("a"), headers={"Content-Type": "text/plain"})


@case("errors", "a body over three mebibytes is refused")
async def large(s: Session) -> None:
    body = named("a", data={"k": "x" * (3 * 1024 * 1024)})
    await s.post(CONFIGMAPS, body)
    s.exchanges[-1].body = "<large>"


@case("errors", "a patch over three mebibytes is refused")
async def large_patch(s: Session) -> None:
    await s.configmap("a")
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "x" * (3 * 1024 * 1024)}})
    s.exchanges[-1].body = "<large>"


@case("errors", "a ConfigMap over one mebibyte is refused")
async def large_data(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a", data={"k": "x" * (1024 * 1024 + 1)}))
    s.exchanges[-1].body = "<large>"


@case("errors", "a namespace that is not there")
async def namespace(s: Session) -> None:
    missing = f"/api/v1/namespaces/{s.unique('none')}/configmaps"
    await s.post(missing, named("a"))
    await s.get(missing)
    await s.get(f"{missing}/a")
    await s.put(f"{missing}/a", named("a"))
    await s.delete(f"{missing}/a")
    body = {"apiVersion": "v1", "kind": "ConfigMap", **named("a")}
    await s.patch(f"{missing}/a", body, kind="apply", fieldManager="m")
    await s.delete(missing)


@case("errors", "a namespaced object cannot be created without a namespace")
async def no_namespace(s: Session) -> None:
    await s.post("/api/v1/configmaps", named("a"))
    await s.post("/api/v1/configmaps", named("a", metadata={"namespace": s.ns}))
    await s.get("/api/v1/configmaps/a")


@case("errors", "an answer that cannot be given in the form that was asked for")
async def accept(s: Session) -> None:
    await s.configmap("a")
    for accept in (
        "text/html",
        "application/xml",
        "application/json;as=Picture;v=v1;g=meta.k8s.io",
    ):
        await s.get(f"{CONFIGMAPS}/a", headers={"Accept": accept})
    await s.post(CONFIGMAPS, named("b"), headers={"Accept": "text/html"})


@case("errors", "what is not found says what it was")
async def not_found(s: Session) -> None:
    await s.get(f"{CONFIGMAPS}/none")
    await s.get(f"{DEPLOYMENTS}/none")
    await s.get(f"/api/v1/nodes/{s.unique('none')}")
    await s.get("/api/v1/namespaces/{ns}/gizmos")
    await s.get("/apis/example.invalid/v1/gizmos")
    await s.get("/api/v1/namespaces/{ns}/gizmos/a")
    await s.post("/apis/apps/v1/namespaces/{ns}/gizmos", named("a"))


@case("errors", "nested too deeply")
async def deep(s: Session) -> None:
    body = '{"metadata":{"name":"a"},"data":' + '{"a":' * 12_000 + "1" + "}" * 12_001
    await s.post(CONFIGMAPS, body, view=only("kind"))
    s.exchanges[-1].body = "<deep>"

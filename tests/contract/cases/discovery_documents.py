"""Discovery, health, and paths that are nothing."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, NAMESPACES
from tests.contract.cases.kinds_bodies import only, seen
from tests.contract.session import Session

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def without_addresses(body: Any) -> object:
    """Show the versions of the core, without where the server is."""
    addresses = [sorted(each) for each in body["serverAddressByClientCIDRs"]]
    return {**body, "serverAddressByClientCIDRs": addresses}


def built_in(body: Any) -> object:
    """Show the groups that no definition made, in their order."""
    return [each for each in body["groups"] if not each["name"].endswith(".example.com")]


def some_of(*names: str) -> Any:
    """Return a view of these groups of an aggregated document."""

    def view(body: Any) -> object:
        items = [each for each in body["items"] if each["metadata"].get("name", "") in names]
        return {**body, "items": items}

    return seen(view)


@each(
    "discovery",
    "the versions and the groups",
    {
        "core": {"path": "/api", "view": seen(without_addresses)},
        "groups": {"path": "/apis", "view": seen(built_in)},
        "group": {"path": "/apis/apps", "view": None},
        "group_versions": {"path": "/apis/autoscaling", "view": None},
        "slash": {"path": "/apis/", "view": seen(lambda body: body["kind"])},
        "unknown_group": {"path": "/apis/example.invalid", "view": None},
        "unknown_version": {"path": "/apis/apps/v9", "view": None},
        "unknown_core_version": {"path": "/api/v9", "view": None},
    },
)
async def groups(s: Session, *, path: str, view: Any) -> None:
    await s.get(path, view=view)


@each(
    "discovery",
    "the resources of a group and a version",
    {
        each.replace("/", "_").strip("_").replace(".", "_"): {"path": each}
        for each in (
            "/api/v1",
            "/apis/apps/v1",
            "/apis/batch/v1",
            "/apis/autoscaling/v2",
            "/apis/coordination.k8s.io/v1",
            "/apis/apiextensions.k8s.io/v1",
            "/apis/authorization.k8s.io/v1",
            "/apis/policy/v1",
        )
    },
)
async def resources(s: Session, *, path: str) -> None:
    await s.get(path)


@case("discovery", "the resources of a definition")
async def custom(s: Session) -> None:
    names = {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version["subresources"] = {"status": {}, "scale": scale}
    group = await s.crd(names=names, versions=[version])
    await s.get(f"/apis/{group}")
    resources = seen(
        lambda body: [
            {key: value for key, value in each.items() if key != "storageVersionHash"}
            for each in body["resources"]
        ]
    )
    await s.get(f"/apis/{group}/v1", view=resources)


@case("discovery", "the aggregated document of the core")
async def aggregated_core(s: Session) -> None:
    await s.get("/api", headers={"Accept": AGGREGATED}, view=some_of(""))


@case("discovery", "some groups of the aggregated document")
async def aggregated_groups(s: Session) -> None:
    view = some_of("apps", "coordination.k8s.io", "autoscaling")
    await s.get("/apis", headers={"Accept": AGGREGATED}, view=view)


@case("discovery", "the aggregated document is versioned by content, and JSON is an alternative")
async def aggregated_forms(s: Session) -> None:
    kind = seen(lambda body: [body["kind"], body["apiVersion"]])
    beta = AGGREGATED.replace("v=v2", "v=v2beta1")
    for accept in (f"{AGGREGATED},application/json", beta, f"{beta},{AGGREGATED}"):
        await s.get("/apis", headers={"Accept": accept}, view=kind)


@case("discovery", "the version of the server")
async def version(s: Session) -> None:
    view = seen(lambda body: [sorted(body), body["major"], body["minor"]])
    await s.get("/version", view=view)
    await s.get("/version/", view=view)


@each(
    "discovery",
    "health",
    {
        "healthz": {"path": "/healthz"},
        "readyz": {"path": "/readyz"},
        "livez": {"path": "/livez"},
        "ping": {"path": "/healthz/ping"},
        "unknown": {"path": "/healthz/no-such-check"},
    },
)
async def health(s: Session, *, path: str) -> None:
    await s.get(path)


@each(
    "discovery",
    "a path that is nothing",
    {
        "word": {"path": "/nothing"},
        "api_word": {"path": "/apiz"},
        "deep": {"path": "/nothing/at/all"},
        "group_resource": {"path": "/apis/apps/v1/gizmos"},
        "namespaced_as_cluster": {"path": "/api/v1/namespaces/{ns}/nodes"},
        "too_deep": {"path": "/api/v1/namespaces/{ns}/configmaps/a/b/c/d"},
        "double_slash": {"path": "/api//v1"},
    },
)
async def nothing(s: Session, *, path: str) -> None:
    await s.get(path)


@each(
    "discovery",
    "a method that is not allowed",
    {
        "put_collection": {"method": "PUT", "path": CONFIGMAPS},
        "patch_collection": {"method": "PATCH", "path": CONFIGMAPS},
        "post_object": {"method": "POST", "path": f"{CONFIGMAPS}/a"},
        "delete_version": {"method": "DELETE", "path": "/api/v1"},
        "post_version": {"method": "POST", "path": "/apis/apps/v1"},
        "post_groups": {"method": "POST", "path": "/apis"},
        "post_health": {"method": "POST", "path": "/healthz"},
        "post_server_version": {"method": "POST", "path": "/version"},
        "trace": {"method": "TRACE", "path": CONFIGMAPS},
        "delete_namespaces": {"method": "DELETE", "path": NAMESPACES},
        "get_binding": {"method": "GET", "path": "/api/v1/namespaces/{ns}/bindings"},
        "put_review": {
            "method": "PUT",
            "path": "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        },
    },
)
async def method(s: Session, *, method: str, path: str) -> None:
    await s.request(method, path, view=seen(built_in) if path == "/apis" else None)


@case("discovery", "HEAD and OPTIONS")
async def head(s: Session) -> None:
    await s.configmap("a")
    await s.request("HEAD", f"{CONFIGMAPS}/a")
    await s.request("HEAD", f"{CONFIGMAPS}/none")
    await s.request("OPTIONS", f"{CONFIGMAPS}/a")
    await s.request("OPTIONS", CONFIGMAPS)
    await s.request("OPTIONS", "/apis", view=seen(built_in))


@case("discovery", "OpenAPI lists its documents by group and version")
async def openapi(s: Session) -> None:
    view = seen(
        lambda body: sorted(each for each in json.loads(body)["paths"] if "example.com" not in each)
    )
    await s.get("/openapi/v3", view=view)
    await s.get("/openapi/v3/apis/apps/v1", view=seen(lambda body: [sorted(body), body["openapi"]]))
    await s.get("/openapi/v3/apis/none/v1", view=only("kind"))

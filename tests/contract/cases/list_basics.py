"""Lists: their shape, their order, and where there is nothing."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, EVERYWHERE, NAMESPACES, PODS, SECRETS, SERVICES
from tests.contract.session import Session


@case("list", "an empty list has an empty array of items")
async def empty(s: Session) -> None:
    await s.get(CONFIGMAPS)


@case("list", "items of a built-in kind have neither kind nor apiVersion, and come by name")
async def by_name(s: Session) -> None:
    for name in ("b", "a-b", "a", "a.b", "a0", "0"):
        await s.configmap(name)
    await s.get(CONFIGMAPS)


@case("list", "across namespaces the order is that of the keys: a-b before a")
async def by_key(s: Session) -> None:
    for name in ("a", "a-b", "a0", "b"):
        other = await s.namespace(name)
        for object_name in ("y", "x"):
            await s.configmap(object_name, ns=other, case=s.ident)
    await s.get(EVERYWHERE, labelSelector=f"case={s.ident}")


@case("list", "cluster-scoped objects come by name")
async def cluster_scoped(s: Session) -> None:
    for name in ("b", "a-b", "a"):
        await s.namespace(name, case=s.ident)
    await s.get(NAMESPACES, labelSelector=f"case={s.ident}")


@case("list", "an unknown namespace is an empty one")
async def unknown_namespace(s: Session) -> None:
    await s.get(f"/api/v1/namespaces/{s.unique('none')}/configmaps")


@each(
    "list",
    "unknown places",
    {
        "resource": {"path": "/api/v1/namespaces/{ns}/gadgets"},
        "resource_of_the_cluster": {"path": "/api/v1/gadgets"},
        "group": {"path": "/apis/none.example.com/v1/gadgets"},
        "version": {"path": "/apis/apps/v9/deployments"},
        "resource_of_a_group": {"path": "/apis/apps/v1/namespaces/{ns}/gadgets"},
        "cluster_scoped_in_a_namespace": {"path": "/api/v1/namespaces/{ns}/nodes"},
        "namespaces_in_a_namespace": {"path": "/api/v1/namespaces/{ns}/namespaces"},
        "capital_letters": {"path": "/api/v1/namespaces/{ns}/ConfigMaps"},
        "singular": {"path": "/api/v1/namespaces/{ns}/configmap"},
        "trailing_slash": {"path": "/api/v1/namespaces/{ns}/configmaps/"},
        "core_as_a_group": {"path": "/apis/v1/namespaces/{ns}/configmaps"},
        "nowhere": {"path": "/nowhere"},
        "old_version": {"path": "/api/v2/configmaps"},
        "unknown_subresource": {"path": "/api/v1/namespaces/{ns}/configmaps/a/status"},
    },
)
async def unknown(s: Session, *, path: str) -> None:
    await s.get(path)


@each(
    "list",
    "the empty list of a kind",
    {
        "pods": {"path": PODS},
        "secrets": {"path": SECRETS},
        "services": {"path": SERVICES},
        "deployments": {"path": "/apis/apps/v1/namespaces/{ns}/deployments"},
        "jobs": {"path": "/apis/batch/v1/namespaces/{ns}/jobs"},
        "leases": {"path": "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"},
        "events": {"path": "/apis/events.k8s.io/v1/namespaces/{ns}/events"},
        "core_events": {"path": "/api/v1/namespaces/{ns}/events"},
        "roles": {"path": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"},
        "slices": {"path": "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"},
        "endpoints": {"path": "/api/v1/namespaces/{ns}/endpoints"},
    },
)
async def empty_kind(s: Session, *, path: str) -> None:
    await s.get(path)


@case("list", "items of a custom kind have kind and apiVersion")
async def custom(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.get(path)
    for name in ("b", "a"):
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}}
        await s.make(path, body)
    await s.get(path)
    await s.get(f"/apis/{group}/v1/widgets")


@case("list", "unknown parameters are ignored")
async def unknown_parameters(s: Session) -> None:
    await s.configmap("a")
    await s.get(CONFIGMAPS, colour="red", fieldValidation="Strict", dryRun="All")


@case("list", "a parameter given twice: the first counts")
async def repeated_parameters(s: Session) -> None:
    await s.configmap("a", x="1")
    await s.configmap("b", x="2")
    await s.get(f"{CONFIGMAPS}?labelSelector=x%3D1&labelSelector=x%3D2")
    await s.get(f"{CONFIGMAPS}?limit=1&limit=2")


@case("list", "timeoutSeconds and allowWatchBookmarks mean nothing to a list, but are checked")
async def watch_parameters(s: Session) -> None:
    await s.get(CONFIGMAPS, timeoutSeconds=5, allowWatchBookmarks="true")
    await s.get(CONFIGMAPS, timeoutSeconds="soon")
    await s.get(CONFIGMAPS, allowWatchBookmarks="perhaps")


@each(
    "list",
    "methods that a collection does not know",
    {"put": {"method": "PUT"}, "patch": {"method": "PATCH"}, "trace": {"method": "PROPFIND"}},
)
async def wrong_method(s: Session, *, method: str) -> None:
    await s.request(method, CONFIGMAPS, body={})


@case("list", "HEAD is refused or answered as the server does")
async def head(s: Session) -> None:
    await s.configmap("a")
    await s.request("HEAD", CONFIGMAPS)
    await s.request("HEAD", f"{CONFIGMAPS}/a")


@case("list", "OPTIONS of a collection and of an object")
async def options(s: Session) -> None:
    await s.request("OPTIONS", CONFIGMAPS)
    await s.request("OPTIONS", f"{CONFIGMAPS}/a")


@case("list", "a body with a GET is ignored")
async def get_with_body(s: Session) -> None:
    await s.request("GET", CONFIGMAPS, body={"limit": 1})


@case("list", "an object that is being deleted stays in the list until its finalizers are gone")
async def deleting(s: Session) -> None:
    await s.make(CONFIGMAPS, {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})
    await s.remove(f"{CONFIGMAPS}/a")
    await s.get(CONFIGMAPS)
    await s.change(f"{CONFIGMAPS}/a", {"metadata": {"finalizers": None}})
    await s.get(CONFIGMAPS)


@case("list", "escaped and doubled slashes in a path")
async def odd_paths(s: Session) -> None:
    await s.get("/api/v1//namespaces/{ns}/configmaps")
    await s.get("/api/v1/namespaces/{ns}/config%6Daps")
    await s.get("/api/v1/namespaces/{ns}/configmaps/a%2Fb")

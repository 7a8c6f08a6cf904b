"""The server's own endpoints (health, version), and the first objects of every cluster."""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from kinform.apiserver import _recorded
from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions import custom_objects
from kinform.apiserver.authz.rbac import GROUP
from kinform.apiserver.endpoints.list_options import WriteQuery
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.registry.objects import ObjectRegistry
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.encoding import decode as decode_stored
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list
from kinform.apiserver.storage.versioned_store import Change

__all__ = [
    "account_uid",
    "create_first_objects",
    "create_first_roles",
    "follow_definitions",
    "health",
    "load_definitions",
    "paths",
    "preload",
    "version",
]

_CHECKS: Final = ("ping", "log", "etcd")
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
_SERVER: Final = WriteQuery(manager="kube-apiserver")
_PRIORITIES: Final = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        (
            "Used for system critical pods that must run in the cluster, but can be moved to "
            "another node if necessary."
        ),
    ),
}


def health(path: str, request: ServerRequest) -> ServerResponse | None:
    """Answer the health checks; None if the path is none of them."""
    found = next((it for it in _HEALTH if path == it or path.startswith(f"{it}/")), None)
    if found is None:
        return None
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-cache, private"}
    check = path[len(found) :].strip("/")
    if check:
        return ServerResponse(headers=headers, body=b"ok") if check in _CHECKS else None
    if "verbose" in request.query:
        checks = "".join(f"[+]{name} ok\n" for name in _CHECKS)
        body = f"{checks}{found.removeprefix('/')} check passed\n".encode()
    else:
        body = b"ok"
    return ServerResponse(headers=headers | {"X-Content-Type-Options": "nosniff"}, body=body)


def version() -> Json:
    """Return the answer of ``/version``: that of the server whose behaviour this one has."""
    return _recorded.api().version


def paths(cluster: Cluster) -> Json:
    """Return the answer of ``/``: where there is something to find."""
    found = {"/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", *_HEALTH}
    for kind in cluster.kinds.all():
        found.add(kind.group_version.path)
        if kind.group:
            found.add(f"/apis/{kind.group}")
    return {"paths": sorted(found)}


def create_first_objects(objects: ObjectRegistry, cluster: Cluster) -> None:
    """Create what every cluster has: namespaces, priorities, and the server's own service."""
    namespaces = cluster.kinds.find("", "v1", "namespaces")
    services = cluster.kinds.find("", "v1", "services")
    assert namespaces is not None
    assert services is not None
    for name in _NAMESPACES:
        if cluster.storage.table("namespaces").get(name) is None:
            _create(objects, namespaces, {"metadata": {"name": name}}, namespace="")
    priorities = cluster.kinds.versions("priorityclasses.scheduling.k8s.io")[0]
    for name, (value, description) in _PRIORITIES.items():
        if cluster.storage.table(priorities.storage).get(name) is None:
            said = {"metadata": {"name": name}, "value": value, "description": description}
            _create(objects, priorities, said, namespace="")
    if cluster.storage.table("services").get("default/kubernetes") is None:
        labels = {"component": "apiserver", "provider": "kubernetes"}
        ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]
        service: Json = {"metadata": {"name": "kubernetes", "labels": labels}}
        service["spec"] = {"ports": ports, "clusterIP": "10.0.0.1", "type": "ClusterIP"}
        _create(objects, services, service, namespace="default")


def _create(objects: ObjectRegistry, kind: Kind, body: Json, *, namespace: str) -> None:
    obj = {"kind": kind.kind, "apiVersion": kind.api_version, **body}
    objects.create(kind, obj, _SERVER, namespace=namespace)


def follow_definitions(cluster: Cluster) -> None:
    """Serve the kinds of CustomResourceDefinitions as these come, change and go."""

    def note(resource: str, change: Change) -> None:
        del resource
        _serve(cluster, change.key, None if change.is_delete else change.new.raw)

    cluster.storage.observe(note, resources={custom_objects.DEFINITIONS})


def load_definitions(cluster: Cluster) -> None:
    """Serve the kinds of the definitions that are stored, and no others."""
    table = cluster.storage.table(custom_objects.DEFINITIONS)
    for kind in cluster.kinds.all():
        if kind.custom is not None and table.get(kind.custom.definition) is None:
            cluster.kinds.remove(kind.custom.definition)
    for stored in table.now():
        _serve(cluster, stored.key, stored.raw)


def _serve(cluster: Cluster, name: str, raw: bytes | None) -> None:
    definitions = cluster.kinds.versions(custom_objects.DEFINITIONS)
    obj = {} if raw is None else decode_stored(definitions[0], raw)
    kinds = custom_objects.kinds_of(obj) if obj else []
    if kinds:
        cluster.kinds.put(kinds, stored=_stored_version(obj))
    else:
        cluster.kinds.remove(name)


def _stored_version(definition: Json) -> str:
    versions = as_list(as_dict(definition.get("spec")).get("versions"))
    return next((it["name"] for it in versions if it.get("storage")), "")


# --- the first roles, and service accounts


@functools.cache
def preload() -> dict[str, list[Json]]:
    """Return the first roles and bindings by the plural of their kind. Blocks, the first time."""
    raw = _recorded.FOLDER.joinpath("roles.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[Json]])


def create_first_roles(objects: ObjectRegistry, cluster: Cluster) -> None:
    """Create those of a real server's first roles and bindings that are not there."""
    for plural, items in preload().items():
        kind = cluster.kinds.find(GROUP, "v1", plural)
        assert kind is not None
        for item in items:
            if cluster.storage.table(kind.storage).get(item["metadata"]["name"]) is None:
                fresh = msgspec.json.decode(msgspec.json.encode(item), type=dict[str, object])
                obj: Json = {"kind": kind.kind, "apiVersion": kind.api_version, **fresh}
                objects.create(kind, obj, _SERVER, namespace="")


def account_uid(objects: ObjectRegistry, cluster: Cluster, *, namespace: str, name: str) -> str:
    """Return the uid of a service account, which is created unless it is there.

    Raises:
        StatusError: it cannot be created.
    """
    stored = cluster.storage.table("serviceaccounts").get(f"{namespace}/{name}")
    if stored is not None:
        return stored.uid
    kind = cluster.kinds.find("", "v1", "serviceaccounts")
    assert kind is not None
    obj: Json = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": name}}
    created = objects.create(kind, obj, _SERVER, namespace=namespace)
    return str(created["metadata"]["uid"])

"""Objects that access control needs: the first roles of a cluster, and service accounts."""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from kinform.apiserver import data
from kinform.apiserver.cluster import Cluster
from kinform.apiserver.json import Json
from kinform.apiserver.objects import Objects
from kinform.apiserver.rbac import GROUP
from kinform.apiserver.write_options import Intent

__all__ = ["account_uid", "create_first_roles", "preload"]

_SERVER: Final = Intent(manager="kube-apiserver")


@functools.cache
def preload() -> dict[str, list[Json]]:
    """Return the first roles and bindings by the plural of their kind. Blocks, the first time."""
    raw = data.FOLDER.joinpath("roles.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[Json]])


def create_first_roles(objects: Objects, cluster: Cluster) -> None:
    """Create those of a real server's first roles and bindings that are not there."""
    for plural, items in preload().items():
        kind = cluster.kinds.find(GROUP, "v1", plural)
        assert kind is not None
        for item in items:
            if cluster.storage.table(kind.storage).get(item["metadata"]["name"]) is None:
                fresh = msgspec.json.decode(msgspec.json.encode(item), type=dict[str, object])
                obj: Json = {"kind": kind.kind, "apiVersion": kind.api_version, **fresh}
                objects.create(kind, obj, _SERVER, namespace="")


def account_uid(objects: Objects, cluster: Cluster, *, namespace: str, name: str) -> str:
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

"""Objects, rows and changes for tests of pure code."""

from __future__ import annotations

from kinform.cli.cluster.informer_feed import RowChange
from kinform.cli.cluster.targets import Target
from kinform.cli.output.rows import Column, Row
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.rest.restmapper import APIResource

COLUMNS = (Column("Name"), Column("Status"), Column("Age"), Column("Node", priority=1))
WALL = 1_800_000_000.0
CREATED = "2027-01-15T07:59:00Z"
"""A minute before ``WALL``."""


def target(plural: str = "pods", kind: str = "Pod", group: str = "", name: str = "") -> Target:
    gvr = GroupVersionResource(group, "v1", plural)
    return Target(APIResource(gvr=gvr, kind=kind, namespaced=True), name)


PODS = target()


def pod(name: str, **members: object) -> Object:
    metadata = {
        "name": name,
        "namespace": "shop",
        "creationTimestamp": CREATED,
        "managedFields": [{"manager": "test"}],
    }
    return Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **members})


def row(name: str, status: str = "Running") -> Row:
    return Row(pod(name), (name, status, "60s", "node-1"), COLUMNS)


def added(name: str, status: str = "Running", *, initial: bool = False) -> RowChange:
    return RowChange("ADDED", PODS, row(name, status), initial=initial)


def modified(name: str, status: str) -> RowChange:
    return RowChange("MODIFIED", PODS, row(name, status), row(name))


def deleted(name: str) -> RowChange:
    return RowChange("DELETED", PODS, row(name), row(name))

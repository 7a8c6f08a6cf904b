"""Responses to the requests before the pods: versions, groups, resources, empty lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["answer", "is_watchable"]

_GROUP: Final = "apiextensions.k8s.io"
_DEFINITIONS: Final = f"/apis/{_GROUP}/v1/customresourcedefinitions"
_NAMESPACES: Final = "/api/v1/namespaces"
_VERBS: Final = ("get", "list", "watch")


def _resource(name: str, kind: str, *, namespaced: bool) -> dict[str, object]:
    names = {"name": name, "singularName": kind.lower(), "kind": kind}
    return {**names, "namespaced": namespaced, "verbs": _VERBS}


def _resources(group_version: str, *resources: dict[str, object]) -> dict[str, object]:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }


def _group() -> dict[str, object]:
    version = {"groupVersion": f"{_GROUP}/v1", "version": "v1"}
    return {"name": _GROUP, "versions": [version], "preferredVersion": version}


_FIXED: Final[dict[str, dict[str, object]]] = {
    "/version": {
        "major": "1",
        "minor": "34",
        "gitVersion": "v1.34.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    },
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]},
    "/api/v1": _resources(
        "v1",
        _resource("namespaces", "Namespace", namespaced=False),
        _resource("pods", "Pod", namespaced=True),
    ),
    f"/apis/{_GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_group()},
    f"/apis/{_GROUP}/v1": _resources(
        f"{_GROUP}/v1",
        _resource("customresourcedefinitions", "CustomResourceDefinition", namespaced=False),
    ),
}


def is_watchable(path: str) -> bool:
    """Return whether there is a watch, on which nothing ever happens."""
    return path in {_DEFINITIONS, _NAMESPACES}


def answer(path: str, *, namespaces: Sequence[str], version: int) -> object | None:
    """Return what is at a path other than that of pods; None if nothing is."""
    path = path.rstrip("/")
    if path in _FIXED:
        return _FIXED[path]
    metadata = {"resourceVersion": str(version)}
    if path == _DEFINITIONS:
        kind, group_version = "CustomResourceDefinitionList", f"{_GROUP}/v1"
        return {"kind": kind, "apiVersion": group_version, "metadata": metadata, "items": []}
    if path == _NAMESPACES:
        items = [
            {
                "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }
            for name in namespaces
        ]
        return {"kind": "NamespaceList", "apiVersion": "v1", "metadata": metadata, "items": items}
    return None

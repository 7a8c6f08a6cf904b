"""Routes: the resource, namespace, object and subresource that a URL path names."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme.kind_registry import Kind, Kinds, Subresource

__all__ = ["NoSuchPath", "Route", "UnreadablePath", "route"]


class UnreadablePath(Exception):
    """The path cannot be understood; the server calls that its own fault."""


class NoSuchPath(Exception):
    """Nothing of this API group and version is served; the answer is plain text."""


class Route(NamedTuple):
    """The target of a request."""

    kind: Kind
    namespace: str
    """Empty for a resource of the cluster, and for a list over all namespaces."""
    name: str
    """Empty for the whole collection."""
    subresource: Subresource | None
    is_watch: bool
    """It is one of the deprecated paths below ``/watch/``."""
    key: str
    """The key of the object in the storage."""

    @property
    def prefix(self) -> str:
        """The beginning of the keys of the collection."""
        return f"{self.namespace}/" if self.namespace else ""


def route(kinds: Kinds, path: str) -> Route:
    """Return what ``path`` names below ``/api`` or ``/apis``.

    Raises:
        NoSuchPath: the group or version does not exist.
        Unreadable: the path is that of all watches.
        StatusError: there is, but no such resource in it.
    """
    parts = unquote(path).strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise NoSuchPath(path)
    if rest == ["watch"]:
        raise UnreadablePath(path)
    is_watch = rest[0] == "watch"
    namespace, plural, names = _split(rest[1:] if is_watch else rest)
    kind = kinds.find(group, version, plural)
    if kind is None:
        if not any(one.group == group for one in kinds.all()):
            raise NoSuchPath(path)
        raise status.path_not_found()
    name = names[0] if names else ""
    if kind.namespaced != bool(namespace) and not (kind.namespaced and not name):
        if kind.custom is not None:
            raise NoSuchPath(path)
        raise status.path_not_found()
    if is_watch and len(names) > 1:
        raise status.path_not_found()
    subresource = _subresource(kind, names) if len(names) > 1 else None
    key = f"{namespace}/{name}" if kind.namespaced else name
    return Route(kind, namespace, name, subresource, is_watch, key)


def _split(parts: list[str]) -> tuple[str, str, list[str]]:
    """Return namespace, resource and what follows it."""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in {"status", "finalize"}:
        return parts[1], parts[2], parts[3:]
    return "", parts[0], parts[1:]


def _subresource(kind: Kind, names: list[str]) -> Subresource:
    rest = names[1:]
    found = kind.subresources.get(rest[0])
    if found is None and kind.custom is not None and rest[0] in {"status", "scale"}:
        raise status.not_found(kind, names[0])
    if found is None or (len(rest) > 1 and rest[0] != "proxy"):
        raise status.path_not_found()
    return found

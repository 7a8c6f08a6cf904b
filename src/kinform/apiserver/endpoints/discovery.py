"""Discovery: the groups, versions and resources of the server, in both forms of the API.

The older form is one document per group and per version; the aggregated form, which kubectl and
client-go prefer, is one for ``/api`` and one for ``/apis``. Both are made from the kinds alone.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver import _recorded
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.scheme.kind_registry import Kind, Kinds, Subresource, version_priority
from kinform.apiserver.serializer.decoding import BODIES
from kinform.apiserver.serializer.json_values import Json
from kinform.meta import GroupVersion

__all__ = ["AGGREGATED", "DiscoveryDocuments", "aggregated", "document", "wants_aggregated"]

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The content type of the aggregated form."""

_LAST_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
_PARAMETERS: Final = frozenset({"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"})


def wants_aggregated(accept: str) -> bool:
    """Return whether an ``Accept`` header names the aggregated form.

    >>> wants_aggregated("application/json, " + AGGREGATED), wants_aggregated("*/*")
    (True, False)
    """
    return any(_names_aggregated(entry) for entry in accept.split(","))


def _names_aggregated(entry: str) -> bool:
    media_type, *parameters = (part.strip() for part in entry.split(";"))
    return media_type == "application/json" and set(parameters) >= _PARAMETERS


def _wants_unknown(accept: str) -> bool:
    """Return whether an ``Accept`` header names nothing but forms that there are not."""
    entries = [entry for entry in accept.split(",") if entry.strip()]
    return bool(entries) and all(";" in entry and "as=" in entry for entry in entries)


# The older form.


def document(kinds: Kinds, path: str, *, address: str) -> Json | None:
    """Return the older document at ``path``, None if there is none.

    Args:
        kinds: what is served.
        path: ``/api``, ``/apis``, ``/api/v1``, ``/apis/apps`` or ``/apis/apps/v1``; a slash at
            the end does not matter.
        address: this server's own ``host:port``, which ``/api`` shows to clients.
    """
    parts = path.strip("/").split("/")
    match parts:
        case ["api"]:
            return _core_versions(kinds, address)
        case ["apis"]:
            return _group_list(kinds)
        case ["apis", group]:
            return _group_document(kinds, group)
        case ["api", version]:
            return _resource_list(kinds, GroupVersion("", version))
        case ["apis", group, version] if group:
            return _resource_list(kinds, GroupVersion(group, version))
        case _:
            return None


def _core_versions(kinds: Kinds, address: str) -> Json:
    here = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
    versions = list(_groups(kinds.all()).get("", {}))
    return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [here]}


def _group_list(kinds: Kinds) -> Json:
    groups = [_group(group, versions) for group, versions in _groups(kinds.all()).items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group_document(kinds: Kinds, group: str) -> Json | None:
    versions = _groups(kinds.all()).get(group) if group else None
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, versions)


def _group(group: str, versions: Iterable[str]) -> Json:
    names = [
        {"groupVersion": str(GroupVersion(group, version)), "version": version}
        for version in versions
    ]
    return {"name": group, "versions": names, "preferredVersion": names[0]}


def _resource_list(kinds: Kinds, version: GroupVersion) -> Json | None:
    found = _groups(kinds.all()).get(version.group, {}).get(version.version)
    if found is None:
        return None
    resources: list[Json] = []
    for kind in found:
        resources.append(_resource(kinds, kind))
        resources += [_subresource(kind, it) for it in _subresources(kind)]
    # The core group's document does not say which version of the API it is written in.
    head: Json = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if version.group else {})
    return head | {"groupVersion": str(version), "resources": resources}


def _resource(kinds: Kinds, kind: Kind) -> Json:
    found: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if storage_hash := _storage_hash(kinds, kind):
        found["storageVersionHash"] = storage_hash
    return found


def _subresource(kind: Kind, subresource: Subresource) -> Json:
    found: Json = {
        "name": f"{kind.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
    }
    if not _is_own(kind, subresource):
        found |= {"group": subresource.group, "version": subresource.version}
    return found | {"kind": subresource.kind, "verbs": list(subresource.verbs)}


def _storage_hash(kinds: Kinds, kind: Kind) -> str:
    """Return the mark of the version objects are stored in, by which clients notice a migration."""
    if kind.custom is None:
        key = f"{kind.group}/{kind.version}/{kind.plural}"
        return _recorded.api().storage_hashes.get(key, "")
    stored = f"{kind.group}/{kinds.stored_version(kind)}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


# The aggregated form.


def aggregated(kinds: Kinds, path: str) -> Json | None:
    """Return the aggregated document at ``/api`` or ``/apis``, None for other paths."""
    root = path.strip("/")
    if root not in {"api", "apis"}:
        return None
    items: list[Json] = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_aggregated_version(*entry) for entry in versions.items()],
        }
        for group, versions in _groups(kinds.all()).items()
        if bool(group) == (root == "apis")
    ]
    head: Json = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return head | {"metadata": {}, "items": items}


def _aggregated_version(version: str, kinds: Sequence[Kind]) -> Json:
    resources = [_aggregated_resource(kind) for kind in kinds]
    return {"version": version, "resources": resources, "freshness": "Current"}


def _aggregated_resource(kind: Kind) -> Json:
    own = (kind.group, kind.version) if kind.custom else ("", "")
    found: Json = {
        "resource": kind.plural,
        "responseKind": {"group": own[0], "version": own[1], "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.subresources:
        found["subresources"] = [_aggregated_subresource(kind, it) for it in _subresources(kind)]
    return found


def _aggregated_subresource(kind: Kind, subresource: Subresource) -> Json:
    group, version = subresource.group, subresource.version
    if _is_own(kind, subresource):
        group, version = (kind.group, kind.version) if kind.custom else ("", "")
    return {
        "subresource": subresource.name,
        "responseKind": {"group": group, "version": version, "kind": subresource.kind},
        "verbs": list(subresource.verbs),
    }


# What both have in common.


def _verbs(kind: Kind) -> list[str]:
    """Return what can be done; of a kind that is about to go only what does not add to it."""
    if kind.custom is not None and kind.custom.is_terminating:
        return list(_LAST_VERBS)
    return list(kind.verbs)


def _groups(kinds: Sequence[Kind]) -> Mapping[str, Mapping[str, list[Kind]]]:
    """Return the kinds by group and version, in the order of discovery.

    Groups it brings along come first, in its own order; then custom ones, by name.
    """
    own = [kind.group for kind in kinds if kind.custom is None]
    names = [*own, *sorted({kind.group for kind in kinds if kind.custom is not None})]
    found: dict[str, dict[str, list[Kind]]] = {name: {} for name in names}
    for kind in sorted(kinds, key=lambda kind: version_priority(kind.version)):
        found[kind.group].setdefault(kind.version, []).append(kind)
    for versions in found.values():
        for served in versions.values():
            served.sort(key=lambda kind: kind.plural)
    return found


def _subresources(kind: Kind) -> Iterable[Subresource]:
    # For custom kinds the server lists ``status`` before ``scale``, all others by name.
    return sorted(kind.subresources.values(), key=lambda it: it.name, reverse=bool(kind.custom))


def _is_own(kind: Kind, subresource: Subresource) -> bool:
    """Return whether a subresource's bodies are of the kind's own group and version."""
    is_unsaid = not subresource.version
    return is_unsaid or (subresource.group, subresource.version) == (kind.group, kind.version)


class _Body(NamedTuple):
    etag: str
    content: bytes


@final
class DiscoveryDocuments:
    """Answers of the aggregated form, encoded once for each state of the kinds."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds: Final = kinds
        self._generation = -1
        self._bodies: dict[str, _Body] = {}

    def answer(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for the aggregated form; None if it asks for another form.

        A client that already has the answer, by its ETag, gets a 304.

        Raises:
            StatusError: the client accepts other forms only.
        """
        accept = request.headers.get("accept", "")
        if not wants_aggregated(accept) and not _wants_unknown(accept):
            return None
        body = self._body(request.path.strip("/"))
        if body is None:
            return None
        if not wants_aggregated(accept):
            raise status.not_acceptable(BODIES)
        headers = {"Cache-Control": "public", "ETag": body.etag, "Vary": "Accept"}
        if request.headers.get("if-none-match") == body.etag:
            return ServerResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return ServerResponse(headers=headers | {"Content-Type": AGGREGATED}, body=body.content)

    def _body(self, root: str) -> _Body | None:
        if self._generation != self._kinds.generation:
            self._bodies = {}
            self._generation = self._kinds.generation
        if root not in self._bodies:
            found = aggregated(self._kinds, root)
            if found is None:
                return None
            content = msgspec.json.encode(found)
            etag = hashlib.sha512(content).hexdigest().upper()
            self._bodies[root] = _Body(f'"{etag}"', content)
        return self._bodies[root]

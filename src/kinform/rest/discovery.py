"""API discovery: the resources of a server, aggregated in two requests or version by version."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar, final

import msgspec
from msgspec import field

from kinform.errors import (
    ApiError,
    DecodeError,
    NotFoundError,
    TransportError,
    UnknownResourceError,
)
from kinform.meta import GroupVersion, GroupVersionResource
from kinform.rest.client import RESTClient
from kinform.rest.connection import Connection
from kinform.rest.request import Request
from kinform.rest.restmapper import APIResource, ResourceMap
from kinform.tasks import SharedCalls, gather

__all__ = ["Discovery", "parse_group_discovery", "parse_resource_list"]

log: Final = logging.getLogger(__name__)
T = TypeVar("T")

_ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)
_ROOTS: Final = frozenset({"APIVersions", "APIGroupList", "APIGroupDiscoveryList"})
# client-go: discovery_client.go ``defaultTimeout``, as long.
_TIMEOUT: Final = 32.0
# A bound, because a server with many API groups would otherwise get a request for each at once.
_AT_ONCE: Final = 8
DOUBT_EVERY: Final = 10.0
"""Seconds between two lookups of a resource whose path is not found."""

MAX_SIZE: Final = 8 * 1024 * 1024
"""The largest discovery document, in bytes: that of about 10,000 CRDs."""
MAX_RESOURCES: Final = 20_000
"""The most resources of one document, each version counted."""
MAX_VERSIONS: Final = 2_000
"""The most API versions that are asked for one by one."""


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str = ""


class _DiscoveredResource(msgspec.Struct):
    resource: str
    scope: str = ""
    response_kind: _ResponseKind | None = field(name="responseKind", default=None)
    singular: str = field(name="singularResource", default="")
    verbs: list[str] | None = None
    short_names: list[str] | None = field(name="shortNames", default=None)
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None


class _DiscoveredVersion(msgspec.Struct):
    version: str
    resources: list[_DiscoveredResource] | None = None
    freshness: str = ""


class _Named(msgspec.Struct):
    name: str = ""


class _DiscoveredGroup(msgspec.Struct):
    metadata: _Named = field(default_factory=_Named)
    versions: list[_DiscoveredVersion] | None = None


class _GroupVersionName(msgspec.Struct):
    group_version: str = field(name="groupVersion", default="")


class _LegacyGroup(msgspec.Struct):
    versions: list[_GroupVersionName] | None = None
    preferred: _GroupVersionName | None = field(name="preferredVersion", default=None)


class _Root(msgspec.Struct):
    """``/api`` or ``/apis`` in any of its three shapes."""

    kind: str = ""
    items: list[_DiscoveredGroup] | None = None  # APIGroupDiscoveryList
    versions: list[str] | None = None  # APIVersions (/api)
    groups: list[_LegacyGroup] | None = None  # APIGroupList (/apis)


class _ListedResource(msgspec.Struct):
    name: str
    kind: str = ""
    namespaced: bool = False
    singular: str = field(name="singularName", default="")
    verbs: list[str] | None = None
    short_names: list[str] | None = field(name="shortNames", default=None)
    categories: list[str] | None = None


class _ResourceList(msgspec.Struct):
    kind: str = ""
    resources: list[_ListedResource] | None = None


class _GroupResources(NamedTuple):
    """The resources in all versions of one API group."""

    resources: Sequence[APIResource]
    is_complete: bool
    """True if every version has answered, none from a stale cache."""


@final
class Discovery:
    """The resources of one server, fetched at first use and again when a name is missing.

    Any task may use it; concurrent calls share one fetch.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rest = RESTClient(connection)
        # A thousand informers that start together share one fetch of each document.
        self._fetches = SharedCalls[GroupVersion | None, ResourceMap]()
        self._group_fetches = SharedCalls[str, _GroupResources]()
        self._map: ResourceMap | None = None
        self._versions: dict[GroupVersion, ResourceMap] = {}
        self._found: dict[str, GroupVersionResource] = {}
        self._doubted: dict[str, float] = {}  # when `find_again` last asked the server
        self._lookups: SharedCalls[str, APIResource] = SharedCalls()

    async def find(self, name: str, *, fresh: bool = False) -> APIResource:
        """Return the resource that ``name`` means (see `ResourceMap.find`).

        A full name (``apps/v1/deployments``) fetches that one API version only. On a miss,
        discovery runs once more, because a CRD may just have been created; with ``fresh`` it runs
        in any case.

        Raises:
            UnknownResourceError: the server has no resource of that name.
            AmbiguousResourceError: several groups have it.
            NotFoundError: the discovery paths themselves are answered with 404.
        """
        version = _version_of(name)
        unknown: UnknownResourceError | None = None
        for again in (fresh, True):
            try:
                resources = (
                    await self._one_version(version, fresh=again)
                    if version
                    else await self.resources(fresh=again)
                )
                found = resources.find(name)
            except UnknownResourceError as exc:
                unknown = exc
                # A fresh map decides; a remembered one may be older than the CRD.
                if again:
                    break
            else:
                self._found[name] = found.gvr
                return found
        if version is None and name in self._found:
            # It existed before. Only the document of its own version proves that the server has
            # removed it; the map of all versions may be incomplete.
            return await self.find(str(self._found[name]), fresh=True)
        assert unknown is not None
        raise unknown if version is None else await self._explain(unknown, version)

    async def _explain(
        self, unknown: UnknownResourceError, version: GroupVersion
    ) -> UnknownResourceError:
        """Return ``unknown`` with the other versions of its group that serve the resource."""
        try:
            group = await self._group_fetches.call(
                version.group, lambda: self._fetch_group(version.group)
            )
        # Without an answer about the group nothing is proven, so ``is_gone`` stays false.
        except (ApiError, TransportError, DecodeError) as exc:
            log.info("API group cannot be discovered: %s: %s", version.group or "core", exc)
            return unknown
        resource = unknown.name.rpartition("/")[2]
        names = {one.gvr.resource for one in group.resources if _is_named(one, resource)}
        served = [str(one.gvr) for one in group.resources if one.gvr.resource in names]
        return UnknownResourceError(
            unknown.name,
            nearest=unknown.nearest,
            served_in=served,
            is_gone=group.is_complete and not served,
        )

    async def _fetch_group(self, group: str) -> _GroupResources:
        """Fetch the resources of all versions of one API group."""
        root = "/apis" if group else "/api"
        request = self._rest.get().abs_path(root).header("Accept", _ACCEPT).timeout(_TIMEOUT)
        answer = await _read(request, _Root)
        if answer.items is not None:
            found = [one for one in answer.items if one.metadata.name == group]
            # "Stale": an aggregated API does not answer, and these are its cached resources.
            fresh = all(v.freshness in {"", "Current"} for g in found for v in g.versions or ())
            is_complete = fresh and answer.kind in _ROOTS
            return _GroupResources(tuple(parse_group_discovery(found)), is_complete=is_complete)
        resources, is_complete = list[APIResource](), answer.kind in _ROOTS
        for version in _legacy_versions(answer):
            if version.group == group:
                try:
                    resources += await self._list_version(version)
                except (ApiError, DecodeError):
                    is_complete = False
        return _GroupResources(tuple(resources), is_complete=is_complete)

    async def find_again(self, name: str) -> APIResource:
        """Return the resource after a request for its path was answered with 404.

        A CRD may have been replaced by another of the same name. Discovery runs at most every
        `DOUBT_EVERY` seconds for one name, and the last result is returned in between. Requests
        that fail together share one lookup.

        Raises:
            UnknownResourceError: the server has no resource of that name.
            AmbiguousResourceError: several API groups have it.
        """
        return await self._lookups.call(name, lambda: self._find_again(name))

    async def _find_again(self, name: str) -> APIResource:
        now = asyncio.get_running_loop().time()
        is_due = now - self._doubted.get(name, float("-inf")) >= DOUBT_EVERY
        if is_due:
            # Before the lookup, so that a lookup that fails also counts.
            self._doubted[name] = now
        return await self.find(name, fresh=is_due)

    async def resources(self, *, fresh: bool = False) -> ResourceMap:
        """Return all resources of the server; with ``fresh``, fetched again."""
        if self._map is None or fresh:
            self._map = await self._fetches.call(None, self._fetch_all)
        return self._map

    async def _one_version(self, version: GroupVersion, *, fresh: bool) -> ResourceMap:
        if fresh or version not in self._versions:
            self._versions[version] = await self._fetches.call(
                version, lambda: self._fetch_version(version)
            )
        return self._versions[version]

    async def _fetch_all(self) -> ResourceMap:
        answers = await gather(self._fetch("/api"), self._fetch("/apis"))
        found = [answer for answer in answers if not isinstance(answer, NotFoundError)]
        if not found:  # some servers have only one of the two paths, but none has neither
            raise next(answer for answer in answers if isinstance(answer, NotFoundError))
        return ResourceMap([resource for answer in found for resource in answer])

    async def _fetch_version(self, version: GroupVersion) -> ResourceMap:
        try:
            return ResourceMap(await self._list_version(version))
        except NotFoundError:
            # A proxy may have sent the 404. An informer would delete all its objects because of
            # it, so only the server's own list of versions counts as proof.
            if not await self._is_unlisted(version):
                raise
            return ResourceMap(())

    async def _is_unlisted(self, version: GroupVersion) -> bool:
        root = "/apis" if version.group else "/api"
        try:
            answer = await _read(self._rest.get().abs_path(root).timeout(_TIMEOUT), _Root)
        # Without an answer nothing is proven: see `_fetch_version`.
        except ApiError:
            return False
        return answer.kind in _ROOTS and version not in _versions(answer)

    async def _fetch(self, root: str) -> Sequence[APIResource] | NotFoundError:
        request = self._rest.get().abs_path(root).header("Accept", _ACCEPT).timeout(_TIMEOUT)
        try:
            answer = await _read(request, _Root)
        except NotFoundError as exc:
            return exc
        if answer.items is not None:
            return list(parse_group_discovery(answer.items))
        return await self._fetch_versions(_legacy_versions(answer))

    async def _fetch_versions(self, versions: Iterable[GroupVersion]) -> Sequence[APIResource]:
        """Fetch each version; one that fails (a dead aggregated API) is left out and logged."""
        # Not all of them: a hostile document could list millions, each a request.
        versions = list(itertools.islice(versions, MAX_VERSIONS + 1))
        if len(versions) > MAX_VERSIONS:
            raise DecodeError(f"the server has more than {MAX_VERSIONS} API versions")
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(version: GroupVersion) -> Sequence[APIResource]:
            async with places:
                try:
                    return await self._list_version(version)
                # As client-go (ErrGroupDiscoveryFailed): one dead aggregated API must not hide all
                # others.
                except (ApiError, DecodeError) as exc:
                    log.warning("API version left out of discovery: %s: %s", version, exc)
                    return []

        lists = await gather(*(one(version) for version in versions))
        return [resource for found in lists for resource in found]

    async def _list_version(self, version: GroupVersion) -> Sequence[APIResource]:
        request = self._rest.get().abs_path(version.path).timeout(_TIMEOUT)
        answer = await _read(request, _ResourceList)
        # A 200 from a proxy with any other JSON would decode as an empty list, as if the version
        # had no resources.
        if answer.resources is None and answer.kind != "APIResourceList":
            raise DecodeError(f"expected an APIResourceList of {version}, got {answer.kind!r}")
        return list(parse_resource_list(answer, version))


async def _read(request: Request, model: type[T]) -> T:
    """Send ``request``, and decode the answer on the loop, unless it is too large for that."""
    answer = await request.do()
    if len(answer.body) > MAX_SIZE:
        message = f"the discovery document is larger than {MAX_SIZE} bytes"
        raise DecodeError(message, method=answer.method, url=answer.url)
    return answer.into(model)


def _bounded(resources: Iterable[T]) -> Iterable[T]:
    """Yield ``resources``; raise `DecodeError` at one too many."""
    for count, resource in enumerate(resources):
        if count >= MAX_RESOURCES:
            raise DecodeError(f"the discovery document has more than {MAX_RESOURCES} resources")
        yield resource


def parse_group_discovery(groups: Iterable[_DiscoveredGroup]) -> Iterable[APIResource]:
    """Yield the resources of an aggregated discovery document, in the server's order.

    Raises:
        DecodeError: there are more than `MAX_RESOURCES`.
    """
    return _bounded(_group_discovery(groups))


def _group_discovery(groups: Iterable[_DiscoveredGroup]) -> Iterable[APIResource]:
    for group in groups:
        for version in group.versions or ():
            for found in version.resources or ():
                if found.response_kind is None:
                    continue  # only its subresources exist
                yield APIResource(
                    gvr=GroupVersionResource(group.metadata.name, version.version, found.resource),
                    kind=found.response_kind.kind,
                    namespaced=found.scope == "Namespaced",
                    singular=found.singular,
                    short_names=tuple(found.short_names or ()),
                    categories=tuple(found.categories or ()),
                    verbs=frozenset(found.verbs or ()),
                    subresources=frozenset(sub.subresource for sub in found.subresources or ()),
                )


def parse_resource_list(answer: _ResourceList, version: GroupVersion) -> Iterable[APIResource]:
    """Yield the resources in the list of one API version.

    Raises:
        DecodeError: there are more than `MAX_RESOURCES`.
    """
    return _bounded(_resource_list(answer, version))


def _resource_list(answer: _ResourceList, version: GroupVersion) -> Iterable[APIResource]:
    listed = answer.resources or ()
    subresources: dict[str, set[str]] = {}
    for one in listed:
        parent, slash, sub = one.name.partition("/")
        if slash:
            subresources.setdefault(parent, set()).add(sub)
    for one in listed:
        if "/" not in one.name:
            yield APIResource(
                gvr=GroupVersionResource(*version, one.name),
                kind=one.kind,
                namespaced=one.namespaced,
                singular=one.singular,
                short_names=tuple(one.short_names or ()),
                categories=tuple(one.categories or ()),
                verbs=frozenset(one.verbs or ()),
                subresources=frozenset(subresources.get(one.name, ())),
            )


def _versions(root: _Root) -> set[GroupVersion]:
    """Return all versions that a root lists, in any of its shapes."""
    groups = root.items or ()
    named = {GroupVersion(g.metadata.name, v.version) for g in groups for v in g.versions or ()}
    return {*named, *_legacy_versions(root)}


def _legacy_versions(root: _Root) -> Iterable[GroupVersion]:
    """Yield the versions of a legacy root, each group's preferred one first."""
    for version in root.versions or ():
        yield GroupVersion("", version)
    for group in root.groups or ():
        names = [one.group_version for one in group.versions or ()]
        first = group.preferred.group_version if group.preferred else ""
        # Preferred first, because `ResourceMap` takes the first version for a short name. The sort
        # is stable: the others keep the server's order.
        for name in sorted(names, key=lambda name: name != first):
            with contextlib.suppress(ValueError):  # a group that calls itself nothing is left out
                yield GroupVersion.parse(name)


def _is_named(resource: APIResource, name: str) -> bool:
    """Return whether ``name`` is the resource's plural, singular, kind or a short name."""
    names = {resource.gvr.resource, resource.singular, resource.kind, resource.kind.lower()}
    return name in names or name.lower() in {*names, *resource.short_names}


def _version_of(name: str) -> GroupVersion | None:
    head, slash, _ = name.rpartition("/")
    if not slash:
        return None
    try:
        return GroupVersion.parse(head)
    except ValueError:
        raise UnknownResourceError(name) from None

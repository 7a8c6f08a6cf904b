"""`ResourceBase`: which objects are meant, and the requests for them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Coroutine
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from kinform.errors import ApiError
from kinform.finder import Finder
from kinform.meta import GroupVersion, ObjectName
from kinform.rest import responses
from kinform.rest.client import RESTClient
from kinform.rest.connection import Connection
from kinform.rest.options import ListOptions, ResourceVersionMatch
from kinform.rest.patch import PatchType
from kinform.rest.request import Answer, Request
from kinform.rest.results import ListResult
from kinform.selectors import FieldSelectorLike, LabelSelectorLike, field_selector, label_selector
from kinform.writes import WriteOptions

__all__ = ["ALL_NAMESPACES", "Name", "Place", "ResourceBase", "again_if_moved", "selecting"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
S = TypeVar("S", bound="ResourceBase[Any]")

ALL_NAMESPACES: Final = ""
"""Say this as ``namespace`` to list and watch across all of them."""

Name: TypeAlias = str | ObjectName
"""An object's name within the client's namespace, or its full name."""


_SHOW_WHOLE: Final = frozenset({"approval", "ephemeralcontainers", "resize", "status"})
"""Subresources that are the object with another set of fields to write."""


class Place(TypedDict):
    """Where objects are, and which part of them is meant: the keywords of `ResourceBase`."""

    namespace: str
    subresource: str | None
    partial: str | None
    label: str


def again_if_moved(
    verb: Callable[Concatenate[S, P], Coroutine[object, object, R]],
) -> Callable[Concatenate[S, P], Coroutine[object, object, R]]:
    """Have a verb done once more if its path is not found because the resource has another now.

    A CRD can be deleted and created again with another scope. A 404 that names no object, or a
    405, comes from such a path, so nothing was done yet.
    """

    @functools.wraps(verb)
    async def done(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        find = self._find  # pyright: ignore[reportPrivateUsage] - a method, written outside
        used = find.found
        try:
            return await verb(self, *args, **kwargs)
        except ApiError as exc:
            if exc.code not in {404, 405} or not await find.has_moved(exc, used):
                raise
        return await verb(self, *args, **kwargs)

    return done


class ResourceBase(Generic[T]):
    """One kind of object in one namespace (or all), and nothing that can be done with it.

    The verbs add that. They are written once, here and beside, for clients of any ``T``.
    """

    def __init__(
        self,
        connection: Connection,
        find: Finder,
        model: type[T],
        *,
        namespace: str,
        subresource: str | None = None,
        partial: str | None = None,
        label: str = "",
    ) -> None:
        self._connection = connection
        self._find = find
        self._model = model
        self._namespace = namespace
        self._subresource = subresource
        self._partial = partial
        self._label = label or model.__name__

    def __repr__(self) -> str:
        place = f"in {self._namespace!r}" if self._namespace else "in all namespaces"
        return f"<{type(self).__name__} of {self._label} {place}>"

    def _elsewhere(
        self,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        partial: str | None = None,
    ) -> Place:
        """Return the keywords of a client that differs in these from this one."""
        return {
            "namespace": self._namespace if namespace is None else namespace,
            "subresource": subresource or self._subresource,
            "partial": partial or self._partial,
            "label": f"{self._label}/{subresource}" if subresource else self._label,
        }

    @property
    def _shows_whole(self) -> bool:
        """Whether the server answers with objects of the kind itself."""
        return self._subresource is None or self._subresource in _SHOW_WHOLE

    @again_if_moved
    async def _read(self, name: Name) -> Answer:
        answer = await (await self._request("GET", name)).do()
        responses.check_json(answer.headers, method=answer.method, url=answer.url)
        return answer

    @again_if_moved
    async def _fetch(self, options: ListOptions) -> ListResult[T]:
        if options.resource_version and not options.resource_version_match:
            # Without a match the server would read limit + version as "exactly".
            options = dataclasses.replace(options, resource_version_match="NotOlderThan")
        request = (await self._request("GET", listing=True)).params(options)
        if options.timeout is not None:
            request.timeout(options.timeout)
        return await request.list(self._model)

    async def _request(
        self,
        method: str,
        name: Name | None = None,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        listing: bool = False,
        patch_type: PatchType | None = None,
    ) -> Request:
        resource = await self._find()
        rest = RESTClient(self._connection, GroupVersion(*resource.gvr[:2]))
        request = rest.patch(patch_type) if patch_type else rest.verb(method)
        if namespace is None:
            namespace = self._namespace if name is None else self._place(name)
        request.namespace_if_scoped(namespace, scoped=resource.namespaced)
        request.resource(resource.gvr.resource)
        if name is not None:
            request.name(name.name if isinstance(name, ObjectName) else name)
        if part := subresource or self._subresource:
            request.subresource(part)
        if self._partial is not None:
            kind = self._partial + ("List" if listing else "")
            request.header("Accept", f"application/json;as={kind};g=meta.k8s.io;v=v1")
        return request

    def _place(self, name: Name) -> str:
        return name.namespace if isinstance(name, ObjectName) else self._namespace

    @again_if_moved
    async def _patch(
        self, name: Name, patch: object, *, patch_type: PatchType, options: WriteOptions
    ) -> T:
        request = await self._request("PATCH", name, patch_type=patch_type)
        return await request.params(options).body(patch).into(self._model)


def selecting(
    labels: LabelSelectorLike, fields: FieldSelectorLike, **others: Unpack[_Others]
) -> ListOptions:
    """Return the options with these selectors, checked and in their canonical form."""
    return ListOptions(
        label_selector=label_selector(labels), field_selector=field_selector(fields), **others
    )


class _Others(TypedDict, total=False):
    resource_version: str
    resource_version_match: ResourceVersionMatch | None
    timeout: float | None
    watch: bool
    allow_watch_bookmarks: bool
    send_initial_events: bool | None

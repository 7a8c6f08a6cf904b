"""`ResourceBase`: a resource in one namespace or all, and the requests for its objects."""

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
from kinform.meta import ObjectName
from kinform.rest import _responses
from kinform.rest.connection import Connection
from kinform.rest.options import ListOptions, PatchType, ResourceVersionMatch
from kinform.rest.request import Answer, Request
from kinform.rest.results import ListResult
from kinform.selectors import FieldSelectorLike, LabelSelectorLike, field_selector, label_selector
from kinform.verbs._finder import Finder

__all__ = ["ALL_NAMESPACES", "Name", "Place", "ResourceBase", "again_if_moved", "selecting"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
S = TypeVar("S", bound="ResourceBase[Any]")

ALL_NAMESPACES: Final = ""
"""The ``namespace`` of clients that list and watch all namespaces."""

Name: TypeAlias = str | ObjectName
"""An object's name within the client's namespace, or its full name."""


_SHOW_WHOLE: Final = frozenset({"approval", "ephemeralcontainers", "resize", "status"})
"""Subresources whose body is the object itself, with another set of writable fields."""


class Place(TypedDict):
    """The keywords of `ResourceBase`: the namespace, and the part of the objects."""

    namespace: str
    subresource: str | None
    partial: str | None
    label: str


def again_if_moved(
    verb: Callable[Concatenate[S, P], Coroutine[object, object, R]],
) -> Callable[Concatenate[S, P], Coroutine[object, object, R]]:
    """Repeat a verb once if its path is not found because the path of the resource has changed.

    A CRD can be deleted and created again with another scope. A 404 that names no object, or a
    405, comes from such a path, so the server has done nothing yet.
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
    """One resource in one namespace (or all), without verbs.

    The verbs are mixins, written once in this package for clients of any ``T``.
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
        """Return the keywords of a client like this one, with these changes."""
        return {
            "namespace": self._namespace if namespace is None else namespace,
            "subresource": subresource or self._subresource,
            "partial": partial or self._partial,
            "label": f"{self._label}/{subresource}" if subresource else self._label,
        }

    @property
    def _shows_whole(self) -> bool:
        """True if responses hold objects of the resource's own kind."""
        return self._subresource is None or self._subresource in _SHOW_WHOLE

    @again_if_moved
    async def _read(self, name: Name) -> Answer:
        answer = await (await self._request("GET", name)).do()
        _responses.check_json(answer.headers, method=answer.method, url=answer.url)
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
        found = self._find.found or await self._find()
        request = Request(
            self._connection,
            method,
            prefix=found.prefix,
            resource=found.gvr.resource.lower(),
            content_type="application/json" if patch_type is None else patch_type.content_type,
        )
        if isinstance(name, ObjectName):
            namespace, name = name.namespace if namespace is None else namespace, name.name
        if found.namespaced:
            request.namespace(self._namespace if namespace is None else namespace)
        if name is not None:
            request.name(name)
        if part := subresource or self._subresource:
            request.subresource(part)
        if self._partial is not None:
            kind = self._partial + ("List" if listing else "")
            request.header("Accept", f"application/json;as={kind};g=meta.k8s.io;v=v1")
        return request

    def _place(self, name: Name) -> str:
        return name.namespace if isinstance(name, ObjectName) else self._namespace


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

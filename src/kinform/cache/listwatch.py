"""ListWatch: the source that a reflector lists and watches.

A list is one page here; the reflector requests the next ones.

client-go: tools/cache/listwatch.go.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, final, overload

from kinform.objects.object import Object
from kinform.resource import model_or_object
from kinform.rest.client import RESTClient
from kinform.rest.options import ListOptions
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.request import Getter, Request
from kinform.rest.results import ListResult, Received
from kinform.selectors import FieldSelectorLike, LabelSelectorLike, field_selector, label_selector

__all__ = [
    "ListFunc",
    "ListWatch",
    "ListerWatcher",
    "OptionsModifier",
    "SourceOptions",
    "WatchFunc",
    "source_options",
]

T = TypeVar("T")
M = TypeVar("M")
T_co = TypeVar("T_co", covariant=True)

Events: TypeAlias = AbstractAsyncContextManager[AsyncIterable[Received[T]]]
"""A watch: open it with ``async with``, then iterate over its events and bookmarks."""
ListFunc: TypeAlias = Callable[[ListOptions], Awaitable[ListResult[T]]]
WatchFunc: TypeAlias = Callable[[ListOptions], Events[T]]
OptionsModifier: TypeAlias = Callable[[ListOptions], ListOptions]
"""Takes the options of a list or watch and returns the ones to use."""


def _unknown() -> None:
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The properties of a `ListerWatcher` that a reflector needs, with defaults."""

    disable_chunking: bool = False
    """Lists must not be split into pages."""
    supports_watch_list: bool = True
    """``watch`` may be asked to stream the list (``send_initial_events``). A source that cannot
    and does not declare it is detected at the first list."""
    reconnects: RateLimiter | None = None
    """The limiter a reflector waits for before it lists or watches again after a failure, so that
    all clients of one server do not reconnect at once."""
    max_list_size: int | None = None
    """The maximum of bytes (`ListResult.size`) of all pages of a list together."""
    probed_resource: Callable[[], Hashable | None] = _unknown
    """Returns the resource whose version a list shows. Reflectors with the same ``reconnects``
    and the same resource share their probes of that version. ``None``: they do not."""
    namespaced: Callable[[], bool | None] = _unknown
    """Returns whether the objects have namespaces; ``None``: that is unknown (yet)."""


class ListerWatcher(Protocol[T]):
    """A source that can list, and then watch from the version it listed.

    It may have an attribute ``source_options`` of type `SourceOptions`.
    """

    async def list(self, options: ListOptions) -> ListResult[T]:
        """List once; the result's ``resource_version`` is where a watch can start."""
        ...

    def watch(self, options: ListOptions) -> Events[T]:
        """Return a watch that starts at ``options.resource_version``; entering it connects."""
        ...


_DEFAULTS: Final = SourceOptions()


def source_options(lw: object) -> SourceOptions:
    """Return the ``source_options`` of a `ListerWatcher`, or the defaults if it has none."""
    # An optional attribute: the two methods of client-go's interface are all that a source must
    # have.
    options: SourceOptions = getattr(lw, "source_options", _DEFAULTS)
    return options


@final
class ListWatch(Generic[T]):
    """A `ListerWatcher` made of two functions.

    Args:
        list: lists one page.
        watch: opens a watch.

    The others are the fields of `SourceOptions`.
    """

    def __init__(
        self,
        *,
        list: ListFunc[T],  # noqa: A002 - the verb's own name
        watch: WatchFunc[T],
        disable_chunking: bool = False,
        supports_watch_list: bool = True,
        reconnects: RateLimiter | None = None,
        max_list_size: int | None = None,
        probed_resource: Callable[[], Hashable | None] = _unknown,
        namespaced: Callable[[], bool | None] = _unknown,
    ) -> None:
        self._list = list
        self._watch = watch
        self.source_options: Final = SourceOptions(
            disable_chunking=disable_chunking,
            supports_watch_list=supports_watch_list,
            reconnects=reconnects,
            max_list_size=max_list_size,
            probed_resource=probed_resource,
            namespaced=namespaced,
        )

    async def list(self, options: ListOptions | None = None) -> ListResult[T]:
        """List one page, with exactly these options."""
        return await self._list(options or ListOptions())

    def watch(self, options: ListOptions | None = None) -> Events[T]:
        """Return the watch for ``options``; nothing is sent before it is entered."""
        return self._watch(options or ListOptions())

    @overload
    @staticmethod
    def from_client(
        getter: Getter,
        resource: str,
        *,
        namespace: str = "",
        field_selector: FieldSelectorLike = None,
        label_selector: LabelSelectorLike = None,
        options_modifier: OptionsModifier | None = None,
        disable_chunking: bool = False,
    ) -> ListWatch[Object]: ...
    @overload
    @staticmethod
    def from_client(
        getter: Getter,
        resource: str,
        *,
        model: type[M],
        namespace: str = "",
        field_selector: FieldSelectorLike = None,
        label_selector: LabelSelectorLike = None,
        options_modifier: OptionsModifier | None = None,
        disable_chunking: bool = False,
    ) -> ListWatch[M]: ...
    @staticmethod
    def from_client(
        getter: Getter,
        resource: str,
        *,
        model: type[M] | None = None,
        namespace: str = "",
        field_selector: FieldSelectorLike = None,
        label_selector: LabelSelectorLike = None,
        options_modifier: OptionsModifier | None = None,
        disable_chunking: bool = False,
    ) -> ListWatch[M]:
        """Return the ListWatch of one resource through a RESTClient, or anything with ``get()``.

        The selectors are set first, then ``options_modifier`` may change all options; on a watch
        it sees ``watch=True`` already. An empty ``namespace`` means all of them. Objects that
        cannot be decoded do not fail a list: they are in `ListResult.unreadable`.

        Raises:
            SelectorError: a selector cannot be read.
        """
        chosen = model_or_object(model)
        modify = _with_selectors(field_selector, label_selector, options_modifier)

        def request(options: ListOptions) -> Request:
            query = modify(options)
            request = getter.get().namespace(namespace).resource(resource).params(query)
            return request.max_retries(0)  # a reflector has its own backoff

        @contextlib.asynccontextmanager
        async def watch(options: ListOptions) -> AsyncGenerator[AsyncIterable[Received[M]]]:
            query = dataclasses.replace(options, watch=True)
            async with request(query).watch(chosen) as events:
                yield events.with_bookmarks()

        connection = getter.connection if isinstance(getter, RESTClient) else None
        # Without selectors: the version of a list is that of the resource, whichever objects it
        # selects.
        name = (getter.api_version, resource) if isinstance(getter, RESTClient) else None
        return ListWatch(
            list=lambda options: request(options).list(chosen, isolate=True),
            watch=watch,
            disable_chunking=disable_chunking,
            reconnects=connection.reconnects if connection else None,
            max_list_size=connection.max_list_size if connection else None,
            probed_resource=lambda: name,
            # A list of all namespaces says nothing about the scope; only discovery would know.
            namespaced=lambda: True if namespace else None,
        )


def _with_selectors(
    fields: FieldSelectorLike, labels: LabelSelectorLike, modifier: OptionsModifier | None
) -> OptionsModifier:
    changes: dict[str, str] = {}
    if text := field_selector(fields):
        changes["field_selector"] = text
    if text := label_selector(labels):
        changes["label_selector"] = text

    def modify(options: ListOptions) -> ListOptions:
        options = dataclasses.replace(options, **changes)  # type: ignore[arg-type] # two str fields
        return modifier(options) if modifier else options

    return modify

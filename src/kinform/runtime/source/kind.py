"""KindSource: a kind of object that a controller watches, and how its events map to names.

controller-runtime: ``source.Kind`` with its handler and predicates. It is a description; the
controller connects it to a shared informer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast, final, overload

from kinform.cache._informer.argument_checks import check_values
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Registration
from kinform.cache.selection import Kind, Selection, check_namespaces, select
from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.cache.store.indexes import IndexFunc
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectName
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.runtime.controller.caches import Caches
from kinform.runtime.map_functions import MapFunc, names_of
from kinform.runtime.predicate import Predicate
from kinform.sansio.workqueue.key_queue import Priority
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.workqueue.causes import Cause, CauseKind
from kinform.workqueue.queue import WorkQueue

__all__ = ["AnyKind", "AnyKindSource", "KindSource", "LookupFunc", "kind_source"]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

_LOW: Final = Priority.LOW
_NORMAL: Final = Priority.NORMAL
_PER_TURN: Final = 512
"""Names of one event that are added in one turn of the loop: a few milliseconds."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The queue, caches and informers that a controller's sources are connected to."""

    controller: str
    queue: WorkQueue[ObjectName]
    caches: Caches
    factory: SharedInformerFactory

    def informers(
        self,
        source: object,
        selections: Mapping[str, Selection[T]],
        indexers: Mapping[str, IndexFunc[T]] | None,
    ) -> Sequence[SharedInformer[T]]:
        """Return the shared informers of a source's selections, one for each namespace."""
        options = InformerOptions[T](indexers=indexers) if indexers else InformerOptions[T]()
        informers = {
            place: self.factory.informer_of(selection, **options)
            for place, selection in selections.items()
        }
        self.caches.add(source, next(iter(selections.values())), informers)
        return tuple(informers.values())


@final
class Feed(Generic[T]):
    """Maps the events of one source to names, and adds them to a queue.

    Objects of the initial list and of resyncs have a low priority: changes come first.

    Args:
        source: its name in causes.
        map: maps an object to names; ``None``: to its own.
        when: a predicate for events; ``None``: all pass.
    """

    __slots__ = ("_map", "_queue", "_source", "_when")

    def __init__(
        self,
        queue: WorkQueue[ObjectName],
        *,
        source: str,
        map: MapFunc[T] | None,  # noqa: A002 - as KindSource has it
        when: Predicate[T] | None = None,
    ) -> None:
        self._queue = queue
        self._source = source
        self._map = map
        self._when = when

    def handler(self, *, name: str, resync_period: float | None) -> EventHandler[T]:
        """Return the event handler for an informer."""
        return handler(
            on_add=self._on_add,
            on_update=self._on_update,
            on_delete=self._on_delete,
            resync_period=resync_period,
            name=name,
        )

    def _on_add(self, event: Added[T]) -> Awaitable[None] | None:
        cause = Cause(
            CauseKind.ADDED, self._source, object=event.key, new_version=_version(event.obj)
        )
        return self._enqueue(event, cause, _LOW if event.initial else _NORMAL)

    def _on_update(self, event: Updated[T]) -> Awaitable[None] | None:
        old, new = event.old, event.new
        is_resync = old is new
        cause = Cause(
            CauseKind.RESYNC if is_resync else CauseKind.UPDATED,
            self._source,
            object=event.key,
            # Not by _version: most events are updates, and most objects are an Object.
            old_version=old.resource_version if isinstance(old, Object) else "",
            new_version=new.resource_version if isinstance(new, Object) else "",
        )
        return self._enqueue(event, cause, _LOW if is_resync else _NORMAL)

    def _on_delete(self, event: Deleted[T]) -> Awaitable[None] | None:
        cause = Cause(
            CauseKind.DELETED, self._source, object=event.key, old_version=_version(event.obj)
        )
        return self._enqueue(event, cause, _NORMAL)

    def _enqueue(self, event: Event[T], cause: Cause, priority: Priority) -> Awaitable[None] | None:
        """Add the names of an event to the queue; return an awaitable if there are many names."""
        if self._when is not None and not self._passes(self._when, event):
            return None
        if self._map is None:
            self._queue.add(event.key, priority=priority, cause=cause)
            return None
        names = names_of(event, self._map)
        if len(names) > _PER_TURN:
            return self._add_in_turns(names, cause, priority)
        for name in names:
            self._queue.add(name, priority=priority, cause=cause)
        return None

    async def _add_in_turns(
        self, names: Collection[ObjectName], cause: Cause, priority: Priority
    ) -> None:
        for number, name in enumerate(names, 1):
            self._queue.add(name, priority=priority, cause=cause)
            if number % _PER_TURN == 0:
                await asyncio.sleep(0)

    def _passes(self, when: Predicate[T], event: Event[T]) -> bool:
        try:
            return when(event)
        except Exception:
            # An extra reconcile does no harm; a missing one does.
            log.exception(
                "%s: predicate failed, the event of %s passes",
                self._source,
                event.key.shown,
                extra={"source": self._source, "object": event.key.shown},
            )
            return True


def _version(obj: object) -> str:
    return obj.resource_version if isinstance(obj, Object) else ""


class AnyKindSource(Protocol):
    """A `KindSource` for any model of its objects."""

    @property
    def kind_name(self) -> str:
        """The name of the kind."""
        ...

    @property
    def has_map(self) -> bool:
        """Whether the source has a mapping function of its own."""
        ...

    def follow(self, wiring: Wiring) -> None:
        """Create the informers, or share existing ones."""
        ...

    def listen(
        self, wiring: Wiring, default: MapFunc[object] | None = None
    ) -> Sequence[Registration[object]]:
        """Add names to the queue: those of ``map``, else of ``default``, else the object's own."""
        ...


LookupFunc: TypeAlias = Callable[[T, Caches], Iterable[ObjectName] | ObjectName | None]
"""Maps an object to names, with the help of the controller's caches."""

AnyKind: TypeAlias = str | GroupVersionResource | type[object] | AnyKindSource
"""A kind by its name or its model, or a `KindSource`."""


@final
class KindSource(Generic[T]):
    """A kind of object to watch, and the mapping of its events to names.

    .. code-block:: python

        KindSource("v1/secrets", map=to_label("example.com/widget"), label_selector="app=widgets")

    Args:
        resource: ``"v1/pods"``, a model class, a `Resource`.
        map: maps an object to names. Not needed for the kind that a controller is for (its own
            name) nor for one that it owns (its owner's). For an update it is called with the old
            and the new state. If it raises, the error is logged and the event is dropped.
        lookup: the same with a second argument, the controller's caches.
        when: a predicate for events; see `kinform.runtime.predicate`.
        indexers: index functions by name, for ``ctx.lister(...).by_index``; see `Indexer`.
        model: read objects as this class instead of `Object`.
        namespace: the only one to look at, ``""`` for all; else the manager's.
        namespaces: the same for several namespaces.
        label_selector: the labels objects must have.
        field_selector: the fields objects must have.
        metadata_only: have the server send metadata alone.
        resync_period: how often, in seconds, every object is delivered again although nothing
            changed.

    Raises:
        SelectorError: a selector cannot be read.
        UsageError: no kind can be called that, something cannot be called, or an index has the
            name of a built-in one.
    """

    @overload
    def __init__(
        self: KindSource[Object],
        resource: str | GroupVersionResource,
        *,
        map: MapFunc[Object] | None = None,
        lookup: LookupFunc[Object] | None = None,
        when: Predicate[Object] | None = None,
        indexers: Mapping[str, IndexFunc[Object]] | None = None,
        namespace: str | None = None,
        namespaces: str | Sequence[str] | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        metadata_only: bool = False,
        resync_period: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        resource: str | GroupVersionResource,
        *,
        model: type[T],
        map: MapFunc[T] | None = None,
        lookup: LookupFunc[T] | None = None,
        when: Predicate[T] | None = None,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        namespace: str | None = None,
        namespaces: str | Sequence[str] | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        resync_period: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        resource: type[T] | Resource[T],
        *,
        map: MapFunc[T] | None = None,
        lookup: LookupFunc[T] | None = None,
        when: Predicate[T] | None = None,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        namespace: str | None = None,
        namespaces: str | Sequence[str] | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        resync_period: float | None = None,
    ) -> None: ...
    def __init__(
        self,
        resource: Kind[T],
        *,
        model: type[T] | None = None,
        map: MapFunc[T] | MapFunc[Object] | None = None,  # noqa: A002 - what all call it
        lookup: LookupFunc[T] | LookupFunc[Object] | None = None,
        when: Predicate[T] | Predicate[Object] | None = None,
        indexers: Mapping[str, IndexFunc[T]] | Mapping[str, IndexFunc[Object]] | None = None,
        namespace: str | None = None,
        namespaces: str | Sequence[str] | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        metadata_only: bool = False,
        resync_period: float | None = None,
    ) -> None:
        _check(map=map, lookup=lookup, when=when)
        check_values({"indexers": indexers, "resync_period": resync_period})

        def selection(place: str) -> Selection[T]:
            return select(
                resource,
                model=model,
                namespace=place,
                labels=label_selector,
                fields=field_selector,
                metadata_only=metadata_only,
            )

        self._selection = selection
        self._map = cast("MapFunc[T] | None", map)  # without a model, T is Object
        self._lookup = cast("LookupFunc[T] | None", lookup)
        self._when = cast("Predicate[T] | None", when)
        self._indexers = cast("Mapping[str, IndexFunc[T]] | None", indexers)
        is_placed = namespace is not None or namespaces is not None
        self._namespaces = check_namespaces(namespace, namespaces) if is_placed else None
        self._resync_period = resync_period
        self.kind_name: Final = selection("").name
        """The name of the kind."""

    def __repr__(self) -> str:
        return f"<KindSource of {self.kind_name}>"

    @property
    def has_map(self) -> bool:
        """Whether the source has a mapping function of its own."""
        return self._map is not None or self._lookup is not None

    def follow(self, wiring: Wiring) -> None:
        """Create the informers, or share existing ones."""
        self._informers(wiring)

    def listen(
        self, wiring: Wiring, default: MapFunc[object] | None = None
    ) -> Sequence[Registration[object]]:
        """Add names to the queue: those of ``map``, else of ``default``, else the object's own."""
        meaning = self._meaning(wiring) or default
        feed = Feed(wiring.queue, source=self.kind_name, map=meaning, when=self._when)
        name = f"{wiring.controller}: {self.kind_name}"
        registered = feed.handler(name=name, resync_period=self._resync_period)
        return [
            cast("Registration[object]", informer.add_event_handler(registered))
            for informer in self._informers(wiring)
        ]

    def _meaning(self, wiring: Wiring) -> MapFunc[T] | None:
        lookup = self._lookup
        return self._map if lookup is None else lambda obj: lookup(obj, wiring.caches)

    def _informers(self, wiring: Wiring) -> Sequence[SharedInformer[T]]:
        namespaces = wiring.factory.namespaces if self._namespaces is None else self._namespaces
        selections = {place: self._selection(place) for place in namespaces}
        return wiring.informers(self, selections, self._indexers)


def _check(**functions: object) -> None:
    for role, function in functions.items():
        if function is not None and not callable(function):
            raise UsageError(f"{role} is {function!r}; expected a function")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(f"{role} is an async function; expected one that cannot wait")
        if role == "when" and inspect.isgeneratorfunction(function):
            raise UsageError("when is a generator function; expected one that returns a bool")
    if functions["map"] is not None and functions["lookup"] is not None:
        raise UsageError("give map or lookup, not both")


def kind_source(source: object) -> AnyKindSource:
    """Return ``source`` if it is a `KindSource`, or one of the kind that it names.

    Raises:
        UsageError: it names none.
    """
    match source:
        case KindSource():
            return cast("KindSource[object]", source)
        case str() | GroupVersionResource():
            return KindSource(source)
        case type() | Resource():
            return KindSource(cast("type[object]", source))
        case _:
            raise UsageError(f"{source!r} names no kind; give 'v1/pods', a model or a KindSource")

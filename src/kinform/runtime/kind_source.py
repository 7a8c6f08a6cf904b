"""KindSource: a kind of object that a controller follows, and what its events mean to it.

controller-runtime: ``source.Kind`` with its handler and predicates. It is a description; the
controller connects it to a shared informer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast, final, overload

from kinform.cache.indexes import IndexFunc
from kinform.cache.informer import SharedInformer
from kinform.cache.keywords import check_values
from kinform.cache.processor import Registration
from kinform.cache.selection import Kind, Selection, check_namespaces, select
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectName
from kinform.objects import Object
from kinform.resource import Resource
from kinform.runtime.caches import Caches
from kinform.runtime.feeding import Feed, Wiring
from kinform.runtime.mapping import MapFunc
from kinform.runtime.predicates import Predicate
from kinform.selectors import FieldSelectorLike, LabelSelectorLike

__all__ = ["AnyKind", "AnyKindSource", "KindSource", "LookupFunc", "kind_source"]

T = TypeVar("T")


class AnyKindSource(Protocol):
    """A `KindSource`, whatever its objects are read as."""

    @property
    def kind_name(self) -> str:
        """What the kind is called."""
        ...

    @property
    def has_map(self) -> bool:
        """Whether it says itself what its objects mean."""
        ...

    def follow(self, wiring: Wiring) -> None:
        """Have an informer made."""
        ...

    def listen(
        self, wiring: Wiring, default: MapFunc[object] | None = None
    ) -> Sequence[Registration[object]]:
        """Have names put into the queue: those of ``map``, else of ``default``, else its own."""
        ...


LookupFunc: TypeAlias = Callable[[T, Caches], Iterable[ObjectName] | ObjectName | None]
"""Which names an object means, by what is in the controller's caches."""

AnyKind: TypeAlias = str | GroupVersionResource | type[object] | AnyKindSource
"""A kind by its name or its model, or a `KindSource`."""


@final
class KindSource(Generic[T]):
    """A kind of object to follow, and what its events mean for a controller.

    .. code-block:: python

        KindSource("v1/secrets", map=to_label("example.com/widget"), label_selector="app=widgets")

    Args:
        resource: ``"v1/pods"``, a model class, a `Resource`.
        map: which names an object means. Not needed for the kind that a controller is for (its
            own) nor for one that it owns (its owner). An update is asked of the old and of the
            new state. What it raises is logged, and the event then means nothing.
        lookup: the same, for what only the caches know: it is given them as well.
        when: which events count; see `kinform.runtime.predicates`.
        indexers: index functions by name, for ``ctx.lister(...).by_index``; see `Indexer`.
        model: read objects as this class instead of `Object`.
        namespace: the only one to look at, ``""`` for all; else the manager's.
        namespaces: the same for several namespaces.
        label_selector: the labels objects must have.
        field_selector: the fields objects must have.
        metadata_only: have the server send metadata alone.
        resync_period: how often, in seconds, every object is looked at again though nothing
            happened.

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
        """What the kind is called."""

    def __repr__(self) -> str:
        return f"<KindSource of {self.kind_name}>"

    @property
    def has_map(self) -> bool:
        """Whether it says itself what its objects mean."""
        return self._map is not None or self._lookup is not None

    def follow(self, wiring: Wiring) -> None:
        """Have an informer made, or shared."""
        self._informers(wiring)

    def listen(
        self, wiring: Wiring, default: MapFunc[object] | None = None
    ) -> Sequence[Registration[object]]:
        """Have names put into the queue: those of ``map``, else of ``default``, else its own."""
        meaning = self._meaning(wiring) or default
        feed = Feed(wiring.queue, source=self.kind_name, map=meaning, when=self._when)
        name = f"{wiring.controller}: {self.kind_name}"
        told = feed.handler(name=name, resync_period=self._resync_period)
        return [
            cast("Registration[object]", informer.add_event_handler(told))
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

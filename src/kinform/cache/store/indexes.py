"""Indexes: entries by the values that an index function returns for them.

The store (`kinform.cache.store.thread_safe_store`) owns the indexes and guards them with its lock.

Rule 1: a user's function runs once per change, before anything is changed. Its result is kept, so
that removing an entry never runs the function again.
Rule 2: the built-in indexes read metadata. They cannot fail, so they keep nothing and read again.
Rule 3: an index holds no value without entries.

client-go: tools/cache/index.go.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, final

import msgspec

from kinform.errors import KinformError, UsageError
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.sansio.queue.deltas import Transition

__all__ = [
    "NAMESPACE_INDEX",
    "OWNER_INDEX",
    "FieldIndex",
    "Index",
    "IndexErrors",
    "IndexFunc",
    "IndexFunctionError",
    "UnknownIndexError",
    "Values",
    "check_indexers",
    "each",
    "function_index",
    "index_by",
    "namespace_of",
    "owners_of",
]

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

NAMESPACE_INDEX: Final = "namespace"
"""The built-in index by namespace; objects of kinds without namespaces are under ``""``."""
OWNER_INDEX: Final = "owner"
"""The built-in index by the uid of each of an object's ``ownerReferences``."""

IndexFunc: TypeAlias = Callable[[T], Iterable[str] | str | None]
"""Takes an object, returns the values it is found under: several, one, or ``None``.

It must depend on the object alone, and must not write to the store it indexes."""

Unchanged: TypeAlias = Callable[[Entry[T], Entry[T]], bool]
"""Takes an old and a new entry, returns whether they certainly have the same values. Must be
fast."""

Values: TypeAlias = str | tuple[str, ...]
"""The values of one entry: a single value as it is, any other number as a tuple without duplicates.

Most objects have one value, and a tuple around it would cost 48 bytes for each of them."""


@final
class UnknownIndexError(UsageError, KeyError):
    """A cache was asked for an index that it does not have. ``known`` lists those it has.

    >>> str(UnknownIndexError("nodes", known=["namespace", "node"]))
    "no index named 'nodes'; this cache has namespace, node"
    """

    def __init__(self, index: str, *, known: Sequence[str] = ()) -> None:
        super().__init__(index, known)
        self.index = index
        self.known: tuple[str, ...] = tuple(known)

    def __str__(self) -> str:
        return f"no index named {self.index!r}; this cache has {', '.join(self.known) or 'none'}"


@final
class IndexFunctionError(KinformError):
    """An index function failed on an object. ``__cause__`` is what it raised.

    The message names the index and the key, and says nothing of the object's content.

    >>> str(IndexFunctionError("node", ObjectName("default", "web-0"), problem="KeyError"))
    "index 'node' failed on default/web-0: KeyError"
    """

    def __init__(self, index: str, key: ObjectName, *, problem: str) -> None:
        super().__init__(index, key, problem)
        self.index = index
        self.key = key
        self.problem = problem

    def __str__(self) -> str:
        return f"index {self.index!r} failed on {self.key.shown}: {self.problem}"


@final
class IndexErrors:
    """Counts the failures of index functions, and logs the first one of each index."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.counts: Final[dict[str, int]] = {}
        """The number of failures by the name of the index."""

    def __call__(self, error: IndexFunctionError) -> None:
        """Count a failure."""
        count = self.counts.get(error.index, 0)
        self.counts[error.index] = count + 1
        # The first one only: a function that fails on every object would log once per object and
        # relist.
        if not count:
            log.error(
                "%s: %s; the object is cached, but not found by that index. "
                "Further failures of this index are counted, not logged",
                self._name,
                error,
                exc_info=error.__cause__,
                extra={"informer": self._name, "index": error.index, "key": error.key.shown},
            )


@final
class Index(Generic[T]):
    """One index: a named function, and the entries under each value it returned.

    Entries, not only their keys: looking each of them up would cost readers far more time than
    writers lose by keeping them up to date.

    Not thread-safe by itself: the store holds its lock around every call but `values_of`.

    Args:
        is_built_in: the function cannot fail, and returns the same values for an old entry again.
        is_unchanged: see `Unchanged`; where it is not sure it returns false.
    """

    __slots__ = ("_kept", "_postings", "is_built_in", "is_unchanged", "name", "values_of")

    def __init__(
        self,
        name: str,
        values_of: Callable[[Entry[T]], Values],
        *,
        is_built_in: bool = False,
        is_unchanged: Unchanged[T] | None = None,
    ) -> None:
        self.name: Final = name
        self.values_of: Final = values_of
        self.is_built_in: Final = is_built_in
        self.is_unchanged: Final = is_unchanged
        # Invariant: key in _postings[v].entries  <=>  v is one of the values of key's entry.
        self._postings: dict[str, _Posting[T]] = {}
        self._kept: dict[ObjectName, Values] | None = None if is_built_in else {}

    def emptied(self) -> Index[T]:
        """Return an empty index of the same name and function."""
        return Index(
            self.name,
            self.values_of,
            is_built_in=self.is_built_in,
            is_unchanged=self.is_unchanged,
        )

    def kept_values(self, key: ObjectName, entry: Entry[T]) -> Values:
        """Return the values under which ``entry`` is in the index."""
        return self.values_of(entry) if self._kept is None else self._kept.get(key, ())

    def enter(self, key: ObjectName, entry: Entry[T], values: Values) -> None:
        """Add ``entry`` under ``values``. The key must not be in the index."""
        if isinstance(values, str):
            posting = self._postings.get(values) or self._opened(values)
            posting.entries[key] = entry
            values = posting.value  # each object decodes its own copy: keep one for all
        elif values:
            postings = [self._postings.get(value) or self._opened(value) for value in values]
            for posting in postings:
                posting.entries[key] = entry
            values = tuple([posting.value for posting in postings])
        else:
            return
        if self._kept is not None:
            self._kept[key] = values

    def leave(self, key: ObjectName, old: Entry[T]) -> None:
        """Remove ``old``, and every value that had no other entry."""
        for value in each(self.kept_values(key, old)):
            posting = self._postings[value]
            # No default: a missing key would mean that the index and the store have drifted apart.
            del posting.entries[key]
            if not posting.entries:
                del self._postings[value]
        if self._kept is not None:
            self._kept.pop(key, None)

    def write(self, changes: Sequence[Transition[T]], values: Sequence[Values] | None) -> None:
        """Apply ``changes`` to the index.

        ``values`` holds the index values of the new entry of each change. It is ``None`` for a
        built-in index, which computes them here.
        """
        postings, kept, values_of = self._postings, self._kept, self.values_of
        for place, change in enumerate(changes):
            key, old, new = change.key, change.old, change.new
            if new is None:
                if old is not None:
                    self.leave(key, old)
                continue
            now = values_of(new) if values is None else values[place]
            if old is not None:
                was = values_of(old) if kept is None else kept.get(key, ())
                if was == now:  # most changes change no index
                    for value in (was,) if isinstance(was, str) else was:
                        postings[value].entries[key] = new
                    continue
                self.leave(key, old)
            self.enter(key, new, now)

    def find(self, value: str) -> dict[ObjectName, Entry[T]]:
        """Return the index's own entries under ``value``: copy them before releasing the lock."""
        posting = self._postings.get(value)
        return posting.entries if posting else {}

    def all_values(self) -> list[str]:
        """Return every value that has entries, each once, in no particular order."""
        return list(self._postings)

    def _opened(self, value: str) -> _Posting[T]:
        posting = self._postings[value] = _Posting(value, {})
        return posting


class _Posting(msgspec.Struct, Generic[T], gc=False, eq=False):
    """The entries of one value. In a dict, whose order is the same in every run; a set's is not."""

    value: str
    entries: dict[ObjectName, Entry[T]]


@final
class FieldIndex:
    """An index function: returns the string, or the list of strings, at one path in an object.

    Made by `index_by`.
    """

    __slots__ = ("path",)

    def __init__(self, path: tuple[str | int, ...]) -> None:
        self.path: Final = path

    def __call__(self, obj: Object) -> Iterable[str] | str | None:
        """Return the value at the path."""
        return cast("Iterable[str] | str | None", obj.at(*self.path))

    def __repr__(self) -> str:
        return f"index_by({', '.join(map(repr, self.path))})"

    def is_unchanged(self, old: Entry[object], new: Entry[object]) -> bool:
        """Return whether both certainly have the same value."""
        was, now = old.object, new.object
        if not isinstance(was, Object) or not isinstance(now, Object):
            return False  # the function itself raises an error that explains this
        # Compared as bytes of the whole member: cheaper than to decode the path in both.
        return now.shares_member(was, self.path[0])


def index_by(*path: str | int) -> FieldIndex:
    """Return an index function that reads one path, as ``obj.at(*path)`` does.

    .. code-block:: python

        client.informer("v1/pods", indexers={"node": kinform.index_by("spec", "nodeName")})

    Faster than a function of your own that does the same: where an update leaves ``spec``
    unchanged, a path in it is not read again. For whole objects only, not for models.

    Raises:
        UsageError: the path is empty or does not start with a member's name.
    """
    if not path or not isinstance(path[0], str):
        raise UsageError("index_by needs a path, for example index_by('spec', 'nodeName')")
    return FieldIndex(path)


def function_index(name: str, function: IndexFunc[T]) -> Index[T]:
    """Return an empty index by ``function``, whose ``values_of`` raises `IndexFunctionError`.

    Raises:
        UsageError: ``function`` is not callable, or is async.
    """
    if not callable(function):
        raise UsageError(
            f"the index {name!r} is of type {type(function).__name__}; expected a function"
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"the index {name!r} is an async function; expected a plain one, it cannot wait"
        )

    def values_of(entry: Entry[T]) -> Values:
        try:
            found = function(entry.object)
            if isinstance(found, str):
                return found
            if found is None:
                return ()
            is_wrong = not isinstance(found, Iterable)  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            values = (found,) if is_wrong else tuple(found)  # may run their code too
        except Exception as exc:
            problem = f"it raised {type(exc).__name__}"
            raise IndexFunctionError(name, entry.metadata.key, problem=problem) from exc
        return _texts(values, name, entry.metadata)

    if isinstance(function, FieldIndex):
        unchanged = cast("Unchanged[T]", function.is_unchanged)
        return Index(name, values_of, is_unchanged=unchanged)
    return Index(name, values_of)


def check_indexers(indexers: object) -> None:
    """Refuse index functions that an `Indexer` would refuse later.

    Raises:
        UsageError: ``indexers`` is not a mapping of functions, or a name is that of a built-in
            index.
    """
    if indexers is None:
        return
    if not isinstance(indexers, Mapping):
        raise UsageError(
            f"indexers is of type {type(indexers).__name__}; expected functions by name"
        )
    for name, function in cast("Mapping[str, IndexFunc[object]]", indexers).items():
        if name in {NAMESPACE_INDEX, OWNER_INDEX}:
            raise UsageError(
                f"there is an index named {name!r} already, a built-in one; choose another"
            )
        # The result is dropped: only its checks are needed here, before the informer is made.
        function_index(name, function)


namespace_of: Final[Callable[[Entry[Any]], Values]] = attrgetter("metadata.namespace")
"""Returns the value of `NAMESPACE_INDEX`."""


def owners_of(entry: Entry[T]) -> Values:
    """Return the values of `OWNER_INDEX`."""
    owners = entry.metadata.raw_owner_references
    if not owners:
        return ()
    if len(owners) == 1:
        return owners[0].uid
    # An object may name one owner twice; a value that occurs twice would be removed twice.
    return _compact(tuple(dict.fromkeys([owner.uid for owner in owners])))


def _texts(values: tuple[object, ...], name: str, metadata: ObjectMeta) -> Values:
    texts = tuple([value for value in values if isinstance(value, str)])
    if len(texts) < len(values):
        kinds = sorted({type(value).__name__ for value in values if not isinstance(value, str)})
        problem = f"it returned {' and '.join(kinds)} where text was expected"
        raise IndexFunctionError(name, metadata.key, problem=problem)
    return _compact(tuple(dict.fromkeys(texts)))


def _compact(values: tuple[str, ...]) -> Values:
    return values[0] if len(values) == 1 else values


def each(values: Values) -> tuple[str, ...]:
    """Return the values as a tuple."""
    return (values,) if isinstance(values, str) else values

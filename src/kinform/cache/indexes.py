"""Indexes: which entries have a value, by functions of the user's and by metadata.

The store (`kinform.cache.thread_safe_store`) owns them and guards them with its lock. Rule 1: a
function runs once per change, before anything is changed; what it returned is kept, so leaving
an index never runs it again. Rule 2: what cannot fail needs no keeping: the built-in indexes
read metadata, and read it again. Rule 3: an index holds no value without entries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, cast, final

import msgspec

from kinform.cache.transitions import Transition
from kinform.errors import KinformError, UsageError
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.objects import Object

__all__ = [
    "NAMESPACE_INDEX",
    "OWNER_INDEX",
    "FieldIndex",
    "Index",
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

NAMESPACE_INDEX: Final = "namespace"
"""The built-in index by namespace; objects of kinds without namespaces are under ``""``."""
OWNER_INDEX: Final = "owner"
"""The built-in index by the uid of each of an object's ``ownerReferences``."""

IndexFunc: TypeAlias = Callable[[T], Iterable[str] | str | None]
"""Takes an object, returns the values it is found under: many, one, or none.

It must depend on the object alone, and must not write to the store it indexes."""

Unchanged: TypeAlias = Callable[[Entry[T], Entry[T]], bool]
"""Tells, quickly, whether an old and a new entry certainly have the same values."""

Values: TypeAlias = str | tuple[str, ...]
"""What an index keeps per key: the one value as it is, anything else as a tuple of distinct ones.

Most objects have one, and a tuple around it would cost 48 bytes a time."""


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
class Index(Generic[T]):
    """One index: a named function, and the entries under each value it gave.

    Entries, not only their keys: to look each of them up would take a reader several times as
    long as a change takes longer to write.

    Not safe from several threads by itself: its store's lock is held around every call but
    `values_of`.

    Args:
        keeps_values: false for functions that can be asked about an old entry again, for the same
            answer, without failing.
        is_unchanged: tells of two entries of one key, quickly, that they have the same values;
            where it cannot tell it says no.
    """

    __slots__ = ("_kept", "_postings", "is_unchanged", "name", "values_of")

    def __init__(
        self,
        name: str,
        values_of: Callable[[Entry[T]], Values],
        *,
        keeps_values: bool = True,
        is_unchanged: Unchanged[T] | None = None,
    ) -> None:
        self.name: Final = name
        self.values_of: Final = values_of
        self.is_unchanged: Final = is_unchanged
        # Invariant: key in _postings[v].entries  <=>  v is one of the values of key's entry.
        self._postings: dict[str, _Posting[T]] = {}
        self._kept: dict[ObjectName, Values] | None = {} if keeps_values else None

    def emptied(self) -> Index[T]:
        """Return an index of the same name and function with nothing in it."""
        keeps, unchanged = self._kept is not None, self.is_unchanged
        return Index(self.name, self.values_of, keeps_values=keeps, is_unchanged=unchanged)

    def kept_values(self, key: ObjectName, entry: Entry[T]) -> Values:
        """Return what ``entry``, which is in the index, was entered under."""
        return self.values_of(entry) if self._kept is None else self._kept.get(key, ())

    def enter(self, key: ObjectName, entry: Entry[T], values: Values) -> None:
        """File ``entry`` under ``values``. The key must not be in the index."""
        if isinstance(values, str):
            posting = self._postings.get(values) or self._opened(values)
            posting.entries[key] = entry
            values = posting.value  # every object decodes its own copy: one is enough to keep
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
        """Forget ``old``, and every value that had no other entry."""
        for value in each(self.kept_values(key, old)):
            posting = self._postings[value]
            del posting.entries[key]
            if not posting.entries:
                del self._postings[value]
        if self._kept is not None:
            self._kept.pop(key, None)

    def write(self, changes: Iterable[Transition[T]], values: Iterable[Values]) -> None:
        """Perform ``changes``, given the values of each one's new entry."""
        postings, kept, values_of = self._postings, self._kept, self.values_of
        for change, now in zip(changes, values, strict=True):
            key, old, new = change.key, change.old, change.new
            if old is not None:
                was = values_of(old) if kept is None else kept.get(key, ())
                if new is not None and was == now:  # most changes change no index
                    for value in each(was):
                        postings[value].entries[key] = new
                    continue
                self.leave(key, old)
            if new is not None:
                self.enter(key, new, now)

    def find(self, value: str) -> dict[ObjectName, Entry[T]]:
        """Return the index's own entries under ``value``: copy them before the lock is left."""
        posting = self._postings.get(value)
        return posting.entries if posting else {}

    def all_values(self) -> list[str]:
        """Return every value that has entries, each once, in no particular order."""
        return list(self._postings)

    def _opened(self, value: str) -> _Posting[T]:
        posting = self._postings[value] = _Posting(value, {})
        return posting


class _Posting(msgspec.Struct, Generic[T], gc=False, eq=False):
    """The entries of one value. A dict: its order does not vary from run to run, a set's does."""

    value: str
    entries: dict[ObjectName, Entry[T]]


@final
class FieldIndex:
    """An index function: the text, or the list of texts, at one place in an object.

    Made by `index_by`.
    """

    __slots__ = ("path",)

    def __init__(self, path: tuple[str | int, ...]) -> None:
        self.path: Final = path

    def __call__(self, obj: Object) -> Iterable[str] | str | None:
        """Return what is at the path."""
        return cast("Iterable[str] | str | None", obj.at(*self.path))

    def __repr__(self) -> str:
        return f"index_by({', '.join(map(repr, self.path))})"

    def is_unchanged(self, old: Entry[object], new: Entry[object]) -> bool:
        """Tell whether both certainly have the same value."""
        was, now = old.object, new.object
        if not isinstance(was, Object) or not isinstance(now, Object):
            return False  # users err, and the function itself will say what is wrong
        return now.shares_member(was, self.path[0])


def index_by(*path: str | int) -> FieldIndex:
    """Return an index function that reads one place, as ``obj.at(*path)`` does.

    .. code-block:: python

        client.informer("v1/pods", indexers={"node": kinform.index_by("spec", "nodeName")})

    Quicker than a function of your own that does the same: where an update leaves ``spec`` as it
    was, a place in it is not read again. For whole objects only, not for models.

    Raises:
        UsageError: the path is empty or does not start with a member's name.
    """
    if not path or not isinstance(path[0], str):
        raise UsageError("index_by needs a path, for example index_by('spec', 'nodeName')")
    return FieldIndex(path)


def function_index(name: str, function: IndexFunc[T]) -> Index[T]:
    """Return an empty index by ``function``, whose ``values_of`` raises `IndexFunctionError`.

    Raises:
        UsageError: it is no function, or an async one.
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
    """Refuse index functions that no `Indexer` could take, where they are given.

    Raises:
        UsageError: they are not functions by name, or a name is that of a built-in index.
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
        function_index(name, function)


def namespace_of(entry: Entry[T]) -> Values:
    """Return the value of `NAMESPACE_INDEX`."""
    return entry.metadata.namespace


def owners_of(entry: Entry[T]) -> Values:
    """Return the values of `OWNER_INDEX`."""
    owners = entry.metadata.raw_owner_references
    if not owners:
        return ()
    if len(owners) == 1:
        return owners[0].uid
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
    """Return the values, whichever way they are kept."""
    return (values,) if isinstance(values, str) else values

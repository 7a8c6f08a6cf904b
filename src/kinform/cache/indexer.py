"""Indexer: a Store that can be asked for objects by what they have in common.

client-go: tools/cache/index.go. What an index is stands in `kinform.cache.indexes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, final

from kinform.cache.indexes import (
    NAMESPACE_INDEX,
    OWNER_INDEX,
    Index,
    IndexFunc,
    function_index,
    namespace_of,
    owners_of,
)
from kinform.cache.store import Store
from kinform.cache.thread_safe_store import OnIndexError, ThreadSafeStore
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName

__all__ = ["Indexer"]

T = TypeVar("T")


@final
class Indexer(Store[T]):
    """A `Store` with indexes: two of its own, by namespace and by owner, and any of yours.

    >>> from kinform.meta import ObjectMeta
    >>> words: Indexer[str] = Indexer(indexers={"initial": lambda word: word[:1]})
    >>> for name in ("apple", "avocado", "beet"):
    ...     words.add(Entry(ObjectMeta(name=name, namespace="garden"), name))
    >>> words.by_index("initial", "a"), words.by_index(NAMESPACE_INDEX, "garden")
    (['apple', 'avocado'], ['apple', 'avocado', 'beet'])

    An index function takes the object and returns the values it is found under: one, several or
    ``None``. It runs once for each change, before the change is visible; what it returned then is
    what the index keeps. It must depend on the object alone.

    Args:
        indexers: index functions by name.
        on_index_error: what to do where a function fails: see `ThreadSafeStore`. Without it
            the write fails, with nothing changed.

    Raises:
        UsageError: a name is that of a built-in index, or a function is none, or async.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        indexers: Mapping[str, IndexFunc[T]] | None = None,
        on_index_error: OnIndexError | None = None,
    ) -> None:
        built_in: list[Index[T]] = [
            Index(NAMESPACE_INDEX, namespace_of, keeps_values=False),
            Index(OWNER_INDEX, owners_of, keeps_values=False),
        ]
        self._guard = None
        self._entries = ThreadSafeStore(indexes=built_in, on_index_error=on_index_error)
        self.add_indexers(indexers or {})

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Index what is held, and from now on what comes, by more functions.

        The indexes are built aside and appear at once, all of them or none. A write: from the
        writer's thread, which it keeps busy for as long as the functions take.

        Raises:
            UsageError: there is an index of such a name already, or a function is none, or async.
            IndexFunctionError: a function failed; no index was added.
        """
        if not isinstance(indexers, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            raise UsageError(
                f"indexers is of type {type(indexers).__name__}; expected functions by name"
            )
        self._entries.add_indexes(
            [function_index(name, function) for name, function in indexers.items()]
        )

    def index_names(self) -> list[str]:
        """Return the names of all indexes, the built-in ones first."""
        return self._entries.index_names()

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects under ``value``, in no particular order; none if nobody has it.

        Raises:
            UnknownIndexError: there is no such index.
        """
        return [entry.object for entry in self._entries.by_index(index, value)]

    def index(self, index: str, entry: Entry[T]) -> list[T]:
        """Return, each once, the objects that share a value of the index with ``entry``.

        ``entry`` need not be held. The function runs for it, here and now.

        Raises:
            UnknownIndexError: there is no such index.
            IndexFunctionError: the function failed on ``entry``.
        """
        return [found.object for found in self._entries.index(index, entry)]

    def index_keys(self, index: str, value: str) -> list[ObjectName]:
        """Return the keys of the objects under ``value``, sorted.

        Raises:
            UnknownIndexError: there is no such index.
        """
        return self._entries.index_keys(index, value)

    def list_index_values(self, index: str) -> list[str]:
        """Return every value that has objects, each once, in no particular order.

        Raises:
            UnknownIndexError: there is no such index.
        """
        return self._entries.list_index_values(index)

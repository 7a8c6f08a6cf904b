"""Lister: a read-only view of an Indexer, with label selectors. Never any I/O.

Labels are read from the metadata that is kept beside each object, without decoding the object.

client-go: tools/cache/listers.go, and the listers it generates.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar, final

from kinform.cache.store.indexes import NAMESPACE_INDEX
from kinform.cache.store.store import Indexer, Key
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectName
from kinform.selectors import LabelSelector, LabelSelectorLike

__all__ = ["Lister", "NamespaceLister"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_NOTHING: Final = LabelSelector.nothing()


@final
class Lister(Generic[T_co]):
    """A read-only view of a cache, for any thread.

    >>> from kinform.meta import ObjectMeta
    >>> pods: Indexer[str] = Indexer()
    >>> pods.add(Entry(ObjectMeta(name="a", namespace="x", raw_labels={"app": "web"}), "pod a"))
    >>> pods.add(Entry(ObjectMeta(name="b", namespace="x"), "pod b"))
    >>> lister = Lister(pods)
    >>> lister.list(label_selector="app=web"), lister.namespace("x").get("b")
    (['pod a'], 'pod b')

    Each call reads the current state of the cache.
    """

    __slots__ = ("_indexer",)

    def __init__(self, indexer: Indexer[T_co]) -> None:
        self._indexer = indexer

    def get(self, key: Key) -> T_co | None:
        """Return the object of ``key``; ``None`` if the cache does not hold it.

        Raises:
            ValueError: text that is not ``namespace/name`` or ``name``.
            UsageError: the informer's cache cannot be read yet, or no object can have that key:
                see `SharedInformer.indexer`.
        """
        return self._indexer.get_by_key(key)

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T_co]:
        """Return the objects that match the selector, in no particular order.

        Raises:
            SelectorError: the selector cannot be parsed.
        """
        return self.namespace("").list(label_selector)

    def namespace(self, namespace: str) -> NamespaceLister[T_co]:
        """Return the view of one namespace; ``""``: of all of them, or of a cluster-scoped kind."""
        return NamespaceLister(self._indexer, namespace)


@final
class NamespaceLister(Generic[T_co]):
    """A read-only view of one namespace of a cache, for any thread. See `Lister`."""

    __slots__ = ("_indexer", "_namespace")

    def __init__(self, indexer: Indexer[T_co], namespace: str) -> None:
        self._indexer = indexer
        self._namespace = namespace

    def get(self, name: str) -> T_co | None:
        """Return the object of that name in the namespace; ``None`` if there is none.

        Raises:
            UsageError: as `Lister.get`.
        """
        try:
            return self._indexer.get_by_key(ObjectName(self._namespace, name))
        except TypeError:  # not hashable
            raise UsageError(f"a name is text, not {type(name).__name__}") from None

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T_co]:
        """Return the namespace's objects that match the selector, in no particular order.

        Raises:
            SelectorError: the selector cannot be parsed.
        """
        selector = LabelSelector.of(label_selector)
        # A shortcut: the entries of a large cache need not be copied to match none of them.
        if selector == _NOTHING:
            return []
        entries = self._entries()
        if not selector.requirements:
            return [entry.object for entry in entries]
        return [
            entry.object
            for entry in entries
            if selector.matches(entry.metadata.raw_labels or _NO_LABELS)
        ]

    def _entries(self) -> Iterable[Entry[T_co]]:
        if not self._namespace:
            # Not through the index: for all namespaces one copy of the entries is the cheapest
            # read.
            return self._indexer.entries.list()
        return self._indexer.entries.by_index(NAMESPACE_INDEX, self._namespace)

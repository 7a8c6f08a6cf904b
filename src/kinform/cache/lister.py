"""Lister: a read-only view of an Indexer, with label selectors. Never any I/O.

client-go: tools/cache/listers.go, and the listers it generates. Labels are read from the metadata
that is kept beside each object: nothing is decoded that nobody reads.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar, final

from kinform.cache.indexes import NAMESPACE_INDEX
from kinform.cache.store import Indexer, Key
from kinform.meta import Entry, ObjectName
from kinform.selectors import LabelSelector, LabelSelectorLike

__all__ = ["Lister", "NamespaceLister"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_NOTHING: Final = LabelSelector.nothing()


@final
class Lister(Generic[T_co]):
    """What a cache holds, to be read from any thread.

    >>> from kinform.meta import ObjectMeta
    >>> pods: Indexer[str] = Indexer()
    >>> pods.add(Entry(ObjectMeta(name="a", namespace="x", raw_labels={"app": "web"}), "pod a"))
    >>> pods.add(Entry(ObjectMeta(name="b", namespace="x"), "pod b"))
    >>> lister = Lister(pods)
    >>> lister.list(label_selector="app=web"), lister.namespace("x").get("b")
    (['pod a'], 'pod b')

    It shows the cache as it is at each call, not as it was when the lister was made.
    """

    __slots__ = ("_indexer",)

    def __init__(self, indexer: Indexer[T_co]) -> None:
        self._indexer = indexer

    def get(self, key: Key) -> T_co | None:
        """Return the object of ``key``, if the cache holds it.

        Raises:
            ValueError: text that is not ``namespace/name`` or ``name``.
            UsageError: the informer's cache cannot be read yet, or no object can have that key:
                see `SharedInformer.indexer`.
        """
        return self._indexer.get_by_key(key)

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T_co]:
        """Return the objects whose labels meet the selector, in no particular order.

        Raises:
            SelectorError: the selector cannot be understood.
        """
        return self.namespace("").list(label_selector)

    def namespace(self, namespace: str) -> NamespaceLister[T_co]:
        """Return the view of one namespace; ``""`` is all of them, or a kind that has none."""
        return NamespaceLister(self._indexer, namespace)


@final
class NamespaceLister(Generic[T_co]):
    """What a cache holds of one namespace, to be read from any thread. See `Lister`."""

    __slots__ = ("_indexer", "_namespace")

    def __init__(self, indexer: Indexer[T_co], namespace: str) -> None:
        self._indexer = indexer
        self._namespace = namespace

    def get(self, name: str) -> T_co | None:
        """Return the object of that name in the namespace, if the cache holds it.

        Raises:
            UsageError: as `Lister.get`.
        """
        return self._indexer.get_by_key(ObjectName(self._namespace, name))

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T_co]:
        """Return the namespace's objects whose labels meet the selector, in no particular order.

        Raises:
            SelectorError: the selector cannot be understood.
        """
        selector = LabelSelector.of(label_selector)
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
            return self._indexer.entries.list()
        return self._indexer.entries.by_index(NAMESPACE_INDEX, self._namespace)

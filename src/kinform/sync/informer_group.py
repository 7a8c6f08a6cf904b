"""InformerGroup for blocking code: informers of one kind in several namespaces, used as one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar, final

from kinform.cache import informer_group as aio
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.store.store import Key
from kinform.errors import UsageError
from kinform.selectors import LabelSelectorLike
from kinform.sync._blocking import blocking
from kinform.sync._loop_thread import LoopThread
from kinform.sync.handlers import Registration
from kinform.sync.shared_informer import SharedInformer

__all__ = ["InformerGroup"]

T = TypeVar("T")


@final
class InformerGroup(Generic[T]):
    """The informers of one kind in several namespaces: see `kinform.cache.InformerGroup`."""

    def __init__(self, loop: LoopThread, informers: Mapping[str, SharedInformer[T]]) -> None:
        self._loop = loop
        self.informers: Final[Mapping[str, SharedInformer[T]]] = MappingProxyType(dict(informers))
        """The informer of each namespace."""
        self._inner = aio.InformerGroup(
            {namespace: informer.asynchronous for namespace, informer in informers.items()}
        )

    @property
    def asynchronous(self) -> aio.InformerGroup[T]:
        """The group itself, for functions that `kinform.sync.run` runs."""
        return self._inner

    @property
    def name(self) -> str:
        """The name in messages."""
        return self._inner.name

    @property
    def has_synced(self) -> bool:
        """True if all of them have synced."""
        return self._inner.has_synced

    def get(self, key: Key) -> T | None:
        """Return the object of ``key``, if its namespace is one of these and has it."""
        self._loop.refuse_children()
        return self._inner.get(key)

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T]:
        """Return the objects of all these namespaces whose labels meet the selector."""
        self._loop.refuse_children()
        return self._inner.list(label_selector)

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """Return the objects of all these namespaces under ``value`` of an index."""
        self._loop.refuse_children()
        return self._inner.by_index(index, value)

    wait_synced: Final = blocking(aio.InformerGroup[T].wait_synced)

    def add_event_handler(
        self,
        *,
        on_add: Callable[[Added[T]], object] | None = None,
        on_update: Callable[[Updated[T]], object] | None = None,
        on_delete: Callable[[Deleted[T]], object] | None = None,
        filter: Callable[[T], bool] | None = None,  # noqa: A002 - the word every informer uses
        resync_period: float | None = None,
        name: str | None = None,
    ) -> Mapping[str, Registration[T]]:
        """Add a handler to each of them; return its registration in each namespace.

        In each namespace it has a thread of its own: a callback may be called by two at once.

        Raises:
            UsageError: as `SharedInformer.add_event_handler`; it was then added to none.
        """
        added: dict[str, Registration[T]] = {}
        try:
            for namespace, informer in self.informers.items():
                added[namespace] = informer.add_event_handler(
                    on_add=on_add,
                    on_update=on_update,
                    on_delete=on_delete,
                    filter=filter,
                    resync_period=resync_period,
                    name=name,
                )
        except UsageError:
            for registration in added.values():
                registration.remove()
            raise
        return added

"""InformerGroup: the informers of one kind in several namespaces, used as one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar, cast, final

from kinform.cache._informer.state_waiters import wait_for_all
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.processor.handlers import handler
from kinform.cache.processor.processor import Registration
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.store import Key
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.selectors import LabelSelectorLike

__all__ = ["InformerGroup"]

T = TypeVar("T")


@final
class InformerGroup(Generic[T]):
    """The informers of one kind in several namespaces. Each has its own watch and its own cache.

    For service accounts that can read only some namespaces. Handlers receive the events of all
    informers, without an order between namespaces. The factory starts and stops the group. An
    informer of all namespaces has the key ``""`` and is the only one of its group.
    """

    def __init__(self, informers: Mapping[str, SharedInformer[T]]) -> None:
        self.informers: Final[Mapping[str, SharedInformer[T]]] = MappingProxyType(dict(informers))
        """The informer of each namespace."""

    @property
    def name(self) -> str:
        """The name in messages."""
        return ", ".join(informer.name for informer in self.informers.values())

    @property
    def has_synced(self) -> bool:
        """True if all of them have synced."""
        return all(informer.has_synced for informer in self.informers.values())

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until all of them have synced.

        Raises:
            TimeoutError: not all have in time.
            UsageError: one was not started, or stops meanwhile.
        """
        await wait_for_all(self.informers.values(), timeout)

    def get(self, key: Key) -> T | None:
        """Return the object of ``key``; ``None`` if it is in none of these namespaces.

        Raises:
            ValueError: text that is not ``namespace/name`` or ``name``.
            UsageError: as `SharedInformer.indexer`: the cache cannot be read yet, or no object can
                have that key.
        """
        key = ObjectName.parse(key) if isinstance(key, str) else key
        given = cast("object", key)  # untyped callers
        namespace = given.namespace if isinstance(given, ObjectName) else ""
        informer = self.informers.get(namespace) or self.informers.get("")
        if informer is None and not namespace:
            # Each informer has all cluster-scoped objects; one of a namespaced kind refuses this.
            informer = next(iter(self.informers.values()))
        return None if informer is None else informer.lister.get(key)

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T]:
        """Return the objects of all these namespaces that match the selector."""
        return [
            found
            for informer in self.informers.values()
            for found in informer.lister.list(label_selector)
        ]

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """Return the objects of all these namespaces under ``value`` of an index.

        Raises:
            UnknownIndexError: the index does not exist.
        """
        return [
            found
            for informer in self.informers.values()
            for found in informer.indexer.by_index(index, value)
        ]

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

        An ``async`` callback may run concurrently for several namespaces.

        Raises:
            UsageError: as `SharedInformer.add_event_handler`; it was then added to none.
        """
        shared = handler(
            on_add=on_add,
            on_update=on_update,
            on_delete=on_delete,
            filter=filter,
            resync_period=resync_period,
            name=name,
        )
        # All or none: a handler of a part of the namespaces would look like one of all.
        added: dict[str, Registration[T]] = {}
        try:
            for namespace, informer in self.informers.items():
                added[namespace] = informer.add_event_handler(shared)
        except UsageError:
            for registration in added.values():
                registration.remove()
            raise
        return added

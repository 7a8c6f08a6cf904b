"""client-go's ``tools/cache``: list and watch sources, caches and informers.

Names are loaded when they are first used, as those of `kinform` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.cache.conditions import (
        UnmetConditionError,
        WaitTimeoutError,
        WatchClosedError,
        until,
        until_with_sync,
        until_without_retry,
    )
    from kinform.cache.controller import Controller
    from kinform.cache.event_stream import EventStream
    from kinform.cache.events import Added, Deleted, Event, Updated
    from kinform.cache.factory import SharedInformerFactory
    from kinform.cache.group import InformerGroup
    from kinform.cache.handlers import EventHandler, handler
    from kinform.cache.indexer import Indexer
    from kinform.cache.indexer_informer import IndexerInformer
    from kinform.cache.indexes import (
        NAMESPACE_INDEX,
        OWNER_INDEX,
        FieldIndex,
        IndexFunctionError,
        UnknownIndexError,
        index_by,
    )
    from kinform.cache.informer import SharedInformer
    from kinform.cache.listener import HandlerStatistics
    from kinform.cache.lister import Lister, NamespaceLister
    from kinform.cache.listwatch import ListerWatcher, ListWatch
    from kinform.cache.options import ReflectorOptions
    from kinform.cache.processor import Processor, Registration
    from kinform.cache.reflector import Reflector
    from kinform.cache.reports import ReflectorStatistics
    from kinform.cache.retry_watcher import RetryWatcher
    from kinform.cache.statistics import InformerStatistics
    from kinform.cache.store import Store
    from kinform.cache.sync import wait_for_cache_sync
    from kinform.cache.thread_safe_store import ThreadSafeStore
    from kinform.cache.transitions import Replacement, Transition
    from kinform.cache.verification import Verification
    from kinform.sansio.delta_fifo import DeltaFIFO
    from kinform.sansio.real_fifo import RealFIFO

__all__ = [
    "NAMESPACE_INDEX",
    "OWNER_INDEX",
    "Added",
    "Controller",
    "Deleted",
    "DeltaFIFO",
    "Event",
    "EventHandler",
    "EventStream",
    "FieldIndex",
    "HandlerStatistics",
    "IndexFunctionError",
    "Indexer",
    "IndexerInformer",
    "InformerGroup",
    "InformerStatistics",
    "ListWatch",
    "Lister",
    "ListerWatcher",
    "NamespaceLister",
    "Processor",
    "RealFIFO",
    "Reflector",
    "ReflectorOptions",
    "ReflectorStatistics",
    "Registration",
    "Replacement",
    "RetryWatcher",
    "SharedInformer",
    "SharedInformerFactory",
    "Store",
    "ThreadSafeStore",
    "Transition",
    "UnknownIndexError",
    "UnmetConditionError",
    "Updated",
    "Verification",
    "WaitTimeoutError",
    "WatchClosedError",
    "handler",
    "index_by",
    "until",
    "until_with_sync",
    "until_without_retry",
    "wait_for_cache_sync",
]

_HOMES: Final[dict[str, str]] = {
    "FieldIndex": "kinform.cache.indexes",
    "NAMESPACE_INDEX": "kinform.cache.indexes",
    "OWNER_INDEX": "kinform.cache.indexes",
    "Added": "kinform.cache.events",
    "Controller": "kinform.cache.controller",
    "Deleted": "kinform.cache.events",
    "DeltaFIFO": "kinform.sansio.delta_fifo",
    "Event": "kinform.cache.events",
    "EventHandler": "kinform.cache.handlers",
    "EventStream": "kinform.cache.event_stream",
    "HandlerStatistics": "kinform.cache.listener",
    "IndexFunctionError": "kinform.cache.indexes",
    "Indexer": "kinform.cache.indexer",
    "IndexerInformer": "kinform.cache.indexer_informer",
    "InformerGroup": "kinform.cache.group",
    "InformerStatistics": "kinform.cache.statistics",
    "ListWatch": "kinform.cache.listwatch",
    "Lister": "kinform.cache.lister",
    "ListerWatcher": "kinform.cache.listwatch",
    "NamespaceLister": "kinform.cache.lister",
    "Processor": "kinform.cache.processor",
    "RealFIFO": "kinform.sansio.real_fifo",
    "Reflector": "kinform.cache.reflector",
    "ReflectorOptions": "kinform.cache.options",
    "ReflectorStatistics": "kinform.cache.reports",
    "Registration": "kinform.cache.processor",
    "Replacement": "kinform.cache.transitions",
    "RetryWatcher": "kinform.cache.retry_watcher",
    "SharedInformer": "kinform.cache.informer",
    "SharedInformerFactory": "kinform.cache.factory",
    "Store": "kinform.cache.store",
    "ThreadSafeStore": "kinform.cache.thread_safe_store",
    "Transition": "kinform.cache.transitions",
    "UnknownIndexError": "kinform.cache.indexes",
    "Updated": "kinform.cache.events",
    "Verification": "kinform.cache.verification",
    "WatchClosedError": "kinform.cache.conditions",
    "WaitTimeoutError": "kinform.cache.conditions",
    "UnmetConditionError": "kinform.cache.conditions",
    "handler": "kinform.cache.handlers",
    "index_by": "kinform.cache.indexes",
    "until": "kinform.cache.conditions",
    "until_with_sync": "kinform.cache.conditions",
    "until_without_retry": "kinform.cache.conditions",
    "wait_for_cache_sync": "kinform.cache.sync",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)

"""Caches and informers: client-go's ``tools/cache``.

Names are imported when they are first used, like those of `kinform` itself.
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
    from kinform.cache.listwatch import ListerWatcher, ListWatch, SourceOptions
    from kinform.cache.options import ReflectorOptions
    from kinform.cache.processor import Processor, Registration
    from kinform.cache.reflector import Reflector
    from kinform.cache.reports import ReflectorStatistics
    from kinform.cache.retry_watcher import RetryWatcher
    from kinform.cache.statistics import InformerStatistics
    from kinform.cache.store import Indexer, Store
    from kinform.cache.thread_safe_store import Replacement, ThreadSafeStore
    from kinform.cache.verification import Verification
    from kinform.cache.waiting import wait_for_cache_sync
    from kinform.sansio.delta_fifo import DeltaFIFO
    from kinform.sansio.deltas import Transition
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
    "SourceOptions",
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
    "Indexer": "kinform.cache.store",
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
    "Replacement": "kinform.cache.thread_safe_store",
    "RetryWatcher": "kinform.cache.retry_watcher",
    "SharedInformer": "kinform.cache.informer",
    "SharedInformerFactory": "kinform.cache.factory",
    "SourceOptions": "kinform.cache.listwatch",
    "Store": "kinform.cache.store",
    "ThreadSafeStore": "kinform.cache.thread_safe_store",
    "Transition": "kinform.sansio.deltas",
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
    "wait_for_cache_sync": "kinform.cache.waiting",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)

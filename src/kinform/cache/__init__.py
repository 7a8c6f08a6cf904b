"""Caches and informers: client-go's ``tools/cache``.

Names are imported when they are first used, like those of `kinform` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.cache._informer.state_waiters import wait_for_cache_sync
    from kinform.cache.controller import Controller
    from kinform.cache.factory import SharedInformerFactory
    from kinform.cache.indexer_informer import IndexerInformer
    from kinform.cache.informer_group import InformerGroup
    from kinform.cache.informer_statistics import InformerStatistics
    from kinform.cache.lister import Lister, NamespaceLister
    from kinform.cache.listwatch import ListerWatcher, ListWatch, SourceOptions
    from kinform.cache.processor._listener import HandlerStatistics
    from kinform.cache.processor.event_stream import EventStream
    from kinform.cache.processor.events import Added, Deleted, Event, Updated
    from kinform.cache.processor.handlers import EventHandler, handler
    from kinform.cache.processor.processor import Processor, Registration
    from kinform.cache.reflector import Reflector
    from kinform.cache.reflector_options import ReflectorOptions
    from kinform.cache.reflector_reports import ReflectorStatistics
    from kinform.cache.shared_informer import SharedInformer
    from kinform.cache.store.indexes import (
        NAMESPACE_INDEX,
        OWNER_INDEX,
        FieldIndex,
        IndexFunctionError,
        UnknownIndexError,
        index_by,
    )
    from kinform.cache.store.store import Indexer, Store
    from kinform.cache.store.thread_safe_store import Replacement, ThreadSafeStore
    from kinform.cache.verification import Verification
    from kinform.cache.watchtools.retry_watcher import RetryWatcher
    from kinform.cache.watchtools.until import (
        UnmetConditionError,
        WaitTimeoutError,
        WatchClosedError,
        until,
        until_with_sync,
        until_without_retry,
    )
    from kinform.sansio.queue.delta_fifo import DeltaFIFO
    from kinform.sansio.queue.deltas import Transition
    from kinform.sansio.queue.real_fifo import RealFIFO

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
    "FieldIndex": "kinform.cache.store.indexes",
    "NAMESPACE_INDEX": "kinform.cache.store.indexes",
    "OWNER_INDEX": "kinform.cache.store.indexes",
    "Added": "kinform.cache.processor.events",
    "Controller": "kinform.cache.controller",
    "Deleted": "kinform.cache.processor.events",
    "DeltaFIFO": "kinform.sansio.queue.delta_fifo",
    "Event": "kinform.cache.processor.events",
    "EventHandler": "kinform.cache.processor.handlers",
    "EventStream": "kinform.cache.processor.event_stream",
    "HandlerStatistics": "kinform.cache.processor._listener",
    "IndexFunctionError": "kinform.cache.store.indexes",
    "Indexer": "kinform.cache.store.store",
    "IndexerInformer": "kinform.cache.indexer_informer",
    "InformerGroup": "kinform.cache.informer_group",
    "InformerStatistics": "kinform.cache.informer_statistics",
    "ListWatch": "kinform.cache.listwatch",
    "Lister": "kinform.cache.lister",
    "ListerWatcher": "kinform.cache.listwatch",
    "NamespaceLister": "kinform.cache.lister",
    "Processor": "kinform.cache.processor.processor",
    "RealFIFO": "kinform.sansio.queue.real_fifo",
    "Reflector": "kinform.cache.reflector",
    "ReflectorOptions": "kinform.cache.reflector_options",
    "ReflectorStatistics": "kinform.cache.reflector_reports",
    "Registration": "kinform.cache.processor.processor",
    "Replacement": "kinform.cache.store.thread_safe_store",
    "RetryWatcher": "kinform.cache.watchtools.retry_watcher",
    "SharedInformer": "kinform.cache.shared_informer",
    "SharedInformerFactory": "kinform.cache.factory",
    "SourceOptions": "kinform.cache.listwatch",
    "Store": "kinform.cache.store.store",
    "ThreadSafeStore": "kinform.cache.store.thread_safe_store",
    "Transition": "kinform.sansio.queue.deltas",
    "UnknownIndexError": "kinform.cache.store.indexes",
    "Updated": "kinform.cache.processor.events",
    "Verification": "kinform.cache.verification",
    "WatchClosedError": "kinform.cache.watchtools.until",
    "WaitTimeoutError": "kinform.cache.watchtools.until",
    "UnmetConditionError": "kinform.cache.watchtools.until",
    "handler": "kinform.cache.processor.handlers",
    "index_by": "kinform.cache.store.indexes",
    "until": "kinform.cache.watchtools.until",
    "until_with_sync": "kinform.cache.watchtools.until",
    "until_without_retry": "kinform.cache.watchtools.until",
    "wait_for_cache_sync": "kinform.cache._informer.state_waiters",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)

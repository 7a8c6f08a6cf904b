"""Statistics of an informer at one moment, for operators and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from kinform.cache.processor._listener import HandlerStatistics
from kinform.cache.reflector_reports import ReflectorStatistics
from kinform.cache.store.compaction import CompactionStatistics
from kinform.sansio.queue.interface import FifoStatistics

__all__ = ["InformerStatistics"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InformerStatistics:
    """The current state of an informer, and its counters."""

    name: str
    """Its name in logs: with the namespace and the selectors."""
    label: str
    """Its name in health checks and metrics: without namespaces and object names."""
    objects: int
    """Objects in the cache."""
    resource_version: str
    """The version the cache shows."""
    has_synced: bool
    unreadable: int
    """Objects that exist and cannot be read."""
    replayed: int
    """Events that were known already: a server may repeat events after a reconnect."""
    index_errors: Mapping[str, int]
    """Failures of each index function."""
    reflector: ReflectorStatistics
    queue: FifoStatistics
    storage: CompactionStatistics
    handlers: tuple[HandlerStatistics, ...]
    unexpected_ends: int = 0
    """Unexpected ends of its reflector, its pump, its side tasks or a handler's task."""

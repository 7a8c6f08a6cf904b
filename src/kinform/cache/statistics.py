"""Figures of an informer at one moment, for people and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from kinform.cache.compaction import CompactionStatistics
from kinform.cache.listener import HandlerStatistics
from kinform.cache.reports import ReflectorStatistics
from kinform.sansio.queue import QueueStatistics

__all__ = ["InformerStatistics"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InformerStatistics:
    """How an informer stands, and what it has done so far."""

    name: str
    """What it is called in logs: with the namespace and the selectors."""
    label: str
    """What it is called in health checks and metrics: it names no namespace and no object."""
    objects: int
    """Objects in the cache."""
    resource_version: str
    """The version the cache shows."""
    has_synced: bool
    unreadable: int
    """Objects that exist and cannot be read."""
    replayed: int
    """Events that told nothing new: a server may repeat itself after a reconnect."""
    index_errors: Mapping[str, int]
    """How often each index function failed."""
    reflector: ReflectorStatistics
    queue: QueueStatistics
    storage: CompactionStatistics
    handlers: tuple[HandlerStatistics, ...]
    unexpected_ends: int = 0
    """How often its reflector, its pump or a handler's task ended though nothing stopped it."""

"""Clients for the kinds of events.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import events_v1
from kinform.clientset.typed import GroupClient, InNamespaces, Objects

__all__ = ["EventClient", "EventsV1"]


@final
class EventClient(InNamespaces[events_v1.Event], Objects[events_v1.Event]):
    """Every Event, or those of one namespace."""


@final
class EventsV1(GroupClient):
    """The kinds of events.k8s.io/v1."""

    api_version: ClassVar[str] = "events.k8s.io/v1"

    def events(self, namespace: str | None = None) -> EventClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(EventClient, events_v1.Event, namespace)

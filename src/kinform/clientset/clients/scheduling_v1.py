"""Clients for the kinds of scheduling.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import scheduling_v1
from kinform.clientset.typed import GroupClient, Objects

__all__ = ["PriorityClassClient", "SchedulingV1"]


@final
class PriorityClassClient(Objects[scheduling_v1.PriorityClass]):
    """Every PriorityClass."""


@final
class SchedulingV1(GroupClient):
    """The kinds of scheduling.k8s.io/v1."""

    api_version: ClassVar[str] = "scheduling.k8s.io/v1"

    def priority_classes(self) -> PriorityClassClient:
        """Of the whole cluster."""
        return self._of(PriorityClassClient, scheduling_v1.PriorityClass)

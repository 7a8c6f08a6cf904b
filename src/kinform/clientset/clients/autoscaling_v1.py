"""Clients for the kinds of autoscaling/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import autoscaling_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = ["AutoscalingV1", "HorizontalPodAutoscalerClient"]


@final
class HorizontalPodAutoscalerClient(
    InNamespaces[autoscaling_v1.HorizontalPodAutoscaler],
    Objects[autoscaling_v1.HorizontalPodAutoscaler],
    HasParts[autoscaling_v1.HorizontalPodAutoscaler],
):
    """Every HorizontalPodAutoscaler, or those of one namespace."""

    @property
    def status(self) -> Part[autoscaling_v1.HorizontalPodAutoscaler]:
        """The ``status`` of an object, by itself."""
        return self._part("status", autoscaling_v1.HorizontalPodAutoscaler)


@final
class AutoscalingV1(GroupClient):
    """The kinds of autoscaling/v1."""

    api_version: ClassVar[str] = "autoscaling/v1"

    def horizontal_pod_autoscalers(
        self, namespace: str | None = None
    ) -> HorizontalPodAutoscalerClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(
            HorizontalPodAutoscalerClient, autoscaling_v1.HorizontalPodAutoscaler, namespace
        )

"""Clients for the kinds of autoscaling/v2. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import autoscaling_v2
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = ["AutoscalingV2", "HorizontalPodAutoscalerClient"]


@final
class HorizontalPodAutoscalerClient(
    InNamespaces[autoscaling_v2.HorizontalPodAutoscaler],
    Objects[autoscaling_v2.HorizontalPodAutoscaler],
    HasParts[autoscaling_v2.HorizontalPodAutoscaler],
):
    """Every HorizontalPodAutoscaler, or those of one namespace."""

    @property
    def status(self) -> Part[autoscaling_v2.HorizontalPodAutoscaler]:
        """The ``status`` of an object, by itself."""
        return self._part("status", autoscaling_v2.HorizontalPodAutoscaler)


@final
class AutoscalingV2(GroupClient):
    """The kinds of autoscaling/v2."""

    api_version: ClassVar[str] = "autoscaling/v2"

    def horizontal_pod_autoscalers(
        self, namespace: str | None = None
    ) -> HorizontalPodAutoscalerClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(
            HorizontalPodAutoscalerClient, autoscaling_v2.HorizontalPodAutoscaler, namespace
        )

"""Clients for the kinds of apps/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import apps_v1, autoscaling_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = [
    "AppsV1",
    "ControllerRevisionClient",
    "DaemonSetClient",
    "DeploymentClient",
    "ReplicaSetClient",
    "StatefulSetClient",
]


@final
class ControllerRevisionClient(
    InNamespaces[apps_v1.ControllerRevision], Objects[apps_v1.ControllerRevision]
):
    """Every ControllerRevision, or those of one namespace."""


@final
class DaemonSetClient(
    InNamespaces[apps_v1.DaemonSet], Objects[apps_v1.DaemonSet], HasParts[apps_v1.DaemonSet]
):
    """Every DaemonSet, or those of one namespace."""

    @property
    def status(self) -> Part[apps_v1.DaemonSet]:
        """The ``status`` of an object, by itself."""
        return self._part("status", apps_v1.DaemonSet)


@final
class DeploymentClient(
    InNamespaces[apps_v1.Deployment], Objects[apps_v1.Deployment], HasParts[apps_v1.Deployment]
):
    """Every Deployment, or those of one namespace."""

    @property
    def scale(self) -> Part[autoscaling_v1.Scale]:
        """The ``scale`` of an object, by itself."""
        return self._part("scale", autoscaling_v1.Scale)

    @property
    def status(self) -> Part[apps_v1.Deployment]:
        """The ``status`` of an object, by itself."""
        return self._part("status", apps_v1.Deployment)


@final
class ReplicaSetClient(
    InNamespaces[apps_v1.ReplicaSet], Objects[apps_v1.ReplicaSet], HasParts[apps_v1.ReplicaSet]
):
    """Every ReplicaSet, or those of one namespace."""

    @property
    def scale(self) -> Part[autoscaling_v1.Scale]:
        """The ``scale`` of an object, by itself."""
        return self._part("scale", autoscaling_v1.Scale)

    @property
    def status(self) -> Part[apps_v1.ReplicaSet]:
        """The ``status`` of an object, by itself."""
        return self._part("status", apps_v1.ReplicaSet)


@final
class StatefulSetClient(
    InNamespaces[apps_v1.StatefulSet], Objects[apps_v1.StatefulSet], HasParts[apps_v1.StatefulSet]
):
    """Every StatefulSet, or those of one namespace."""

    @property
    def scale(self) -> Part[autoscaling_v1.Scale]:
        """The ``scale`` of an object, by itself."""
        return self._part("scale", autoscaling_v1.Scale)

    @property
    def status(self) -> Part[apps_v1.StatefulSet]:
        """The ``status`` of an object, by itself."""
        return self._part("status", apps_v1.StatefulSet)


@final
class AppsV1(GroupClient):
    """The kinds of apps/v1."""

    api_version: ClassVar[str] = "apps/v1"

    def controller_revisions(self, namespace: str | None = None) -> ControllerRevisionClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ControllerRevisionClient, apps_v1.ControllerRevision, namespace)

    def daemon_sets(self, namespace: str | None = None) -> DaemonSetClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(DaemonSetClient, apps_v1.DaemonSet, namespace)

    def deployments(self, namespace: str | None = None) -> DeploymentClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(DeploymentClient, apps_v1.Deployment, namespace)

    def replica_sets(self, namespace: str | None = None) -> ReplicaSetClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ReplicaSetClient, apps_v1.ReplicaSet, namespace)

    def stateful_sets(self, namespace: str | None = None) -> StatefulSetClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(StatefulSetClient, apps_v1.StatefulSet, namespace)

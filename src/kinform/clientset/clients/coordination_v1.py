"""Clients for the kinds of coordination.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import coordination_v1
from kinform.clientset.typed import GroupClient, InNamespaces, Objects

__all__ = ["CoordinationV1", "LeaseClient"]


@final
class LeaseClient(InNamespaces[coordination_v1.Lease], Objects[coordination_v1.Lease]):
    """Every Lease, or those of one namespace."""


@final
class CoordinationV1(GroupClient):
    """The kinds of coordination.k8s.io/v1."""

    api_version: ClassVar[str] = "coordination.k8s.io/v1"

    def leases(self, namespace: str | None = None) -> LeaseClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(LeaseClient, coordination_v1.Lease, namespace)

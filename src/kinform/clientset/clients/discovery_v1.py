"""Clients for the kinds of discovery.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import discovery_v1
from kinform.clientset.typed import GroupClient, InNamespaces, Objects

__all__ = ["DiscoveryV1", "EndpointSliceClient"]


@final
class EndpointSliceClient(
    InNamespaces[discovery_v1.EndpointSlice], Objects[discovery_v1.EndpointSlice]
):
    """Every EndpointSlice, or those of one namespace."""


@final
class DiscoveryV1(GroupClient):
    """The kinds of discovery.k8s.io/v1."""

    api_version: ClassVar[str] = "discovery.k8s.io/v1"

    def endpoint_slices(self, namespace: str | None = None) -> EndpointSliceClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(EndpointSliceClient, discovery_v1.EndpointSlice, namespace)

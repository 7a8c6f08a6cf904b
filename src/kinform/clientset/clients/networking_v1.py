"""Clients for the kinds of networking.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import networking_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = [
    "IPAddressClient",
    "IngressClassClient",
    "IngressClient",
    "NetworkPolicyClient",
    "NetworkingV1",
    "ServiceCIDRClient",
]


@final
class IPAddressClient(Objects[networking_v1.IPAddress]):
    """Every IPAddress."""


@final
class IngressClassClient(Objects[networking_v1.IngressClass]):
    """Every IngressClass."""


@final
class IngressClient(
    InNamespaces[networking_v1.Ingress],
    Objects[networking_v1.Ingress],
    HasParts[networking_v1.Ingress],
):
    """Every Ingress, or those of one namespace."""

    @property
    def status(self) -> Part[networking_v1.Ingress]:
        """The ``status`` of an object, by itself."""
        return self._part("status", networking_v1.Ingress)


@final
class NetworkPolicyClient(
    InNamespaces[networking_v1.NetworkPolicy], Objects[networking_v1.NetworkPolicy]
):
    """Every NetworkPolicy, or those of one namespace."""


@final
class ServiceCIDRClient(Objects[networking_v1.ServiceCIDR], HasParts[networking_v1.ServiceCIDR]):
    """Every ServiceCIDR."""

    @property
    def status(self) -> Part[networking_v1.ServiceCIDR]:
        """The ``status`` of an object, by itself."""
        return self._part("status", networking_v1.ServiceCIDR)


@final
class NetworkingV1(GroupClient):
    """The kinds of networking.k8s.io/v1."""

    api_version: ClassVar[str] = "networking.k8s.io/v1"

    def ip_addresses(self) -> IPAddressClient:
        """Of the whole cluster."""
        return self._of(IPAddressClient, networking_v1.IPAddress)

    def ingress_classes(self) -> IngressClassClient:
        """Of the whole cluster."""
        return self._of(IngressClassClient, networking_v1.IngressClass)

    def ingresses(self, namespace: str | None = None) -> IngressClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(IngressClient, networking_v1.Ingress, namespace)

    def network_policies(self, namespace: str | None = None) -> NetworkPolicyClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(NetworkPolicyClient, networking_v1.NetworkPolicy, namespace)

    def service_cidrs(self) -> ServiceCIDRClient:
        """Of the whole cluster."""
        return self._of(ServiceCIDRClient, networking_v1.ServiceCIDR)

"""Clients for the kinds of resource.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import resource_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = [
    "DeviceClassClient",
    "ResourceClaimClient",
    "ResourceClaimTemplateClient",
    "ResourceSliceClient",
    "ResourceV1",
]


@final
class DeviceClassClient(Objects[resource_v1.DeviceClass]):
    """Every DeviceClass."""


@final
class ResourceClaimClient(
    InNamespaces[resource_v1.ResourceClaim],
    Objects[resource_v1.ResourceClaim],
    HasParts[resource_v1.ResourceClaim],
):
    """Every ResourceClaim, or those of one namespace."""

    @property
    def status(self) -> Part[resource_v1.ResourceClaim]:
        """The ``status`` of an object, by itself."""
        return self._part("status", resource_v1.ResourceClaim)


@final
class ResourceClaimTemplateClient(
    InNamespaces[resource_v1.ResourceClaimTemplate], Objects[resource_v1.ResourceClaimTemplate]
):
    """Every ResourceClaimTemplate, or those of one namespace."""


@final
class ResourceSliceClient(Objects[resource_v1.ResourceSlice]):
    """Every ResourceSlice."""


@final
class ResourceV1(GroupClient):
    """The kinds of resource.k8s.io/v1."""

    api_version: ClassVar[str] = "resource.k8s.io/v1"

    def device_classes(self) -> DeviceClassClient:
        """Of the whole cluster."""
        return self._of(DeviceClassClient, resource_v1.DeviceClass)

    def resource_claims(self, namespace: str | None = None) -> ResourceClaimClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ResourceClaimClient, resource_v1.ResourceClaim, namespace)

    def resource_claim_templates(self, namespace: str | None = None) -> ResourceClaimTemplateClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(ResourceClaimTemplateClient, resource_v1.ResourceClaimTemplate, namespace)

    def resource_slices(self) -> ResourceSliceClient:
        """Of the whole cluster."""
        return self._of(ResourceSliceClient, resource_v1.ResourceSlice)

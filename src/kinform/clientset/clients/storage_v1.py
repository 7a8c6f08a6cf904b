"""Clients for the kinds of storage.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import storage_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = [
    "CSIDriverClient",
    "CSINodeClient",
    "CSIStorageCapacityClient",
    "StorageClassClient",
    "StorageV1",
    "VolumeAttachmentClient",
    "VolumeAttributesClassClient",
]


@final
class CSIDriverClient(Objects[storage_v1.CSIDriver]):
    """Every CSIDriver."""


@final
class CSINodeClient(Objects[storage_v1.CSINode]):
    """Every CSINode."""


@final
class CSIStorageCapacityClient(
    InNamespaces[storage_v1.CSIStorageCapacity], Objects[storage_v1.CSIStorageCapacity]
):
    """Every CSIStorageCapacity, or those of one namespace."""


@final
class StorageClassClient(Objects[storage_v1.StorageClass]):
    """Every StorageClass."""


@final
class VolumeAttachmentClient(
    Objects[storage_v1.VolumeAttachment], HasParts[storage_v1.VolumeAttachment]
):
    """Every VolumeAttachment."""

    @property
    def status(self) -> Part[storage_v1.VolumeAttachment]:
        """The ``status`` of an object, by itself."""
        return self._part("status", storage_v1.VolumeAttachment)


@final
class VolumeAttributesClassClient(Objects[storage_v1.VolumeAttributesClass]):
    """Every VolumeAttributesClass."""


@final
class StorageV1(GroupClient):
    """The kinds of storage.k8s.io/v1."""

    api_version: ClassVar[str] = "storage.k8s.io/v1"

    def csi_drivers(self) -> CSIDriverClient:
        """Of the whole cluster."""
        return self._of(CSIDriverClient, storage_v1.CSIDriver)

    def csi_nodes(self) -> CSINodeClient:
        """Of the whole cluster."""
        return self._of(CSINodeClient, storage_v1.CSINode)

    def csi_storage_capacities(self, namespace: str | None = None) -> CSIStorageCapacityClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(CSIStorageCapacityClient, storage_v1.CSIStorageCapacity, namespace)

    def storage_classes(self) -> StorageClassClient:
        """Of the whole cluster."""
        return self._of(StorageClassClient, storage_v1.StorageClass)

    def volume_attachments(self) -> VolumeAttachmentClient:
        """Of the whole cluster."""
        return self._of(VolumeAttachmentClient, storage_v1.VolumeAttachment)

    def volume_attributes_classes(self) -> VolumeAttributesClassClient:
        """Of the whole cluster."""
        return self._of(VolumeAttributesClassClient, storage_v1.VolumeAttributesClass)

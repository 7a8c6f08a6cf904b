"""Clients for the kinds of apiextensions.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import apiextensions_v1
from kinform.clientset.typed import GroupClient, HasParts, Objects, Part

__all__ = ["ApiextensionsV1", "CustomResourceDefinitionClient"]


@final
class CustomResourceDefinitionClient(
    Objects[apiextensions_v1.CustomResourceDefinition],
    HasParts[apiextensions_v1.CustomResourceDefinition],
):
    """Every CustomResourceDefinition."""

    @property
    def status(self) -> Part[apiextensions_v1.CustomResourceDefinition]:
        """The ``status`` of an object, by itself."""
        return self._part("status", apiextensions_v1.CustomResourceDefinition)


@final
class ApiextensionsV1(GroupClient):
    """The kinds of apiextensions.k8s.io/v1."""

    api_version: ClassVar[str] = "apiextensions.k8s.io/v1"

    def custom_resource_definitions(self) -> CustomResourceDefinitionClient:
        """Of the whole cluster."""
        return self._of(CustomResourceDefinitionClient, apiextensions_v1.CustomResourceDefinition)

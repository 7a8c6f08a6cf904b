"""Clients for the kinds of apiregistration.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import apiregistration_v1
from kinform.clientset.typed import GroupClient, HasParts, Objects, Part

__all__ = ["APIServiceClient", "ApiregistrationV1"]


@final
class APIServiceClient(
    Objects[apiregistration_v1.APIService], HasParts[apiregistration_v1.APIService]
):
    """Every APIService."""

    @property
    def status(self) -> Part[apiregistration_v1.APIService]:
        """The ``status`` of an object, by itself."""
        return self._part("status", apiregistration_v1.APIService)


@final
class ApiregistrationV1(GroupClient):
    """The kinds of apiregistration.k8s.io/v1."""

    api_version: ClassVar[str] = "apiregistration.k8s.io/v1"

    def api_services(self) -> APIServiceClient:
        """Of the whole cluster."""
        return self._of(APIServiceClient, apiregistration_v1.APIService)

"""The cases, in modules by area; and the paths that most of them use."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["CONFIGMAPS", "EVERYWHERE", "NAMESPACES", "PODS", "SECRETS", "SERVICES", "rv"]

CONFIGMAPS: Final = "/api/v1/namespaces/{ns}/configmaps"
SECRETS: Final = "/api/v1/namespaces/{ns}/secrets"
SERVICES: Final = "/api/v1/namespaces/{ns}/services"
PODS: Final = "/api/v1/namespaces/{ns}/pods"
NAMESPACES: Final = "/api/v1/namespaces"
EVERYWHERE: Final = "/api/v1/configmaps"


def rv(made: dict[str, Any]) -> str:
    """Return the resourceVersion of an object or a list."""
    version: str = made["metadata"]["resourceVersion"]
    return version

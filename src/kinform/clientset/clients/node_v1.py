"""Clients for the kinds of node.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import node_v1
from kinform.clientset.typed import GroupClient, Objects

__all__ = ["NodeV1", "RuntimeClassClient"]


@final
class RuntimeClassClient(Objects[node_v1.RuntimeClass]):
    """Every RuntimeClass."""


@final
class NodeV1(GroupClient):
    """The kinds of node.k8s.io/v1."""

    api_version: ClassVar[str] = "node.k8s.io/v1"

    def runtime_classes(self) -> RuntimeClassClient:
        """Of the whole cluster."""
        return self._of(RuntimeClassClient, node_v1.RuntimeClass)

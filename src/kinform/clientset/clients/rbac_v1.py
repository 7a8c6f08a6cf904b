"""Clients for the kinds of rbac.authorization.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import rbac_v1
from kinform.clientset.typed import GroupClient, InNamespaces, Objects

__all__ = [
    "ClusterRoleBindingClient",
    "ClusterRoleClient",
    "RbacV1",
    "RoleBindingClient",
    "RoleClient",
]


@final
class ClusterRoleBindingClient(Objects[rbac_v1.ClusterRoleBinding]):
    """Every ClusterRoleBinding."""


@final
class ClusterRoleClient(Objects[rbac_v1.ClusterRole]):
    """Every ClusterRole."""


@final
class RoleBindingClient(InNamespaces[rbac_v1.RoleBinding], Objects[rbac_v1.RoleBinding]):
    """Every RoleBinding, or those of one namespace."""


@final
class RoleClient(InNamespaces[rbac_v1.Role], Objects[rbac_v1.Role]):
    """Every Role, or those of one namespace."""


@final
class RbacV1(GroupClient):
    """The kinds of rbac.authorization.k8s.io/v1."""

    api_version: ClassVar[str] = "rbac.authorization.k8s.io/v1"

    def cluster_role_bindings(self) -> ClusterRoleBindingClient:
        """Of the whole cluster."""
        return self._of(ClusterRoleBindingClient, rbac_v1.ClusterRoleBinding)

    def cluster_roles(self) -> ClusterRoleClient:
        """Of the whole cluster."""
        return self._of(ClusterRoleClient, rbac_v1.ClusterRole)

    def role_bindings(self, namespace: str | None = None) -> RoleBindingClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(RoleBindingClient, rbac_v1.RoleBinding, namespace)

    def roles(self, namespace: str | None = None) -> RoleClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(RoleClient, rbac_v1.Role, namespace)

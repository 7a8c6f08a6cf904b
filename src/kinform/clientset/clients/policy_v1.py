"""Clients for the kinds of policy/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import policy_v1
from kinform.clientset.typed import GroupClient, HasParts, InNamespaces, Objects, Part

__all__ = ["PodDisruptionBudgetClient", "PolicyV1"]


@final
class PodDisruptionBudgetClient(
    InNamespaces[policy_v1.PodDisruptionBudget],
    Objects[policy_v1.PodDisruptionBudget],
    HasParts[policy_v1.PodDisruptionBudget],
):
    """Every PodDisruptionBudget, or those of one namespace."""

    @property
    def status(self) -> Part[policy_v1.PodDisruptionBudget]:
        """The ``status`` of an object, by itself."""
        return self._part("status", policy_v1.PodDisruptionBudget)


@final
class PolicyV1(GroupClient):
    """The kinds of policy/v1."""

    api_version: ClassVar[str] = "policy/v1"

    def pod_disruption_budgets(self, namespace: str | None = None) -> PodDisruptionBudgetClient:
        """In ``namespace``; by default in the client's own, with ``""`` in all."""
        return self._of(PodDisruptionBudgetClient, policy_v1.PodDisruptionBudget, namespace)

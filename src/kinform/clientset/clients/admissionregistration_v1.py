"""Clients for the kinds of admissionregistration.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import admissionregistration_v1
from kinform.clientset.typed import GroupClient, HasParts, Objects, Part

__all__ = [
    "AdmissionregistrationV1",
    "MutatingAdmissionPolicyBindingClient",
    "MutatingAdmissionPolicyClient",
    "MutatingWebhookConfigurationClient",
    "ValidatingAdmissionPolicyBindingClient",
    "ValidatingAdmissionPolicyClient",
    "ValidatingWebhookConfigurationClient",
]


@final
class MutatingAdmissionPolicyBindingClient(
    Objects[admissionregistration_v1.MutatingAdmissionPolicyBinding]
):
    """Every MutatingAdmissionPolicyBinding."""


@final
class MutatingAdmissionPolicyClient(Objects[admissionregistration_v1.MutatingAdmissionPolicy]):
    """Every MutatingAdmissionPolicy."""


@final
class MutatingWebhookConfigurationClient(
    Objects[admissionregistration_v1.MutatingWebhookConfiguration]
):
    """Every MutatingWebhookConfiguration."""


@final
class ValidatingAdmissionPolicyBindingClient(
    Objects[admissionregistration_v1.ValidatingAdmissionPolicyBinding]
):
    """Every ValidatingAdmissionPolicyBinding."""


@final
class ValidatingAdmissionPolicyClient(
    Objects[admissionregistration_v1.ValidatingAdmissionPolicy],
    HasParts[admissionregistration_v1.ValidatingAdmissionPolicy],
):
    """Every ValidatingAdmissionPolicy."""

    @property
    def status(self) -> Part[admissionregistration_v1.ValidatingAdmissionPolicy]:
        """The ``status`` of an object, by itself."""
        return self._part("status", admissionregistration_v1.ValidatingAdmissionPolicy)


@final
class ValidatingWebhookConfigurationClient(
    Objects[admissionregistration_v1.ValidatingWebhookConfiguration]
):
    """Every ValidatingWebhookConfiguration."""


@final
class AdmissionregistrationV1(GroupClient):
    """The kinds of admissionregistration.k8s.io/v1."""

    api_version: ClassVar[str] = "admissionregistration.k8s.io/v1"

    def mutating_admission_policy_bindings(self) -> MutatingAdmissionPolicyBindingClient:
        """Of the whole cluster."""
        return self._of(
            MutatingAdmissionPolicyBindingClient,
            admissionregistration_v1.MutatingAdmissionPolicyBinding,
        )

    def mutating_admission_policies(self) -> MutatingAdmissionPolicyClient:
        """Of the whole cluster."""
        return self._of(
            MutatingAdmissionPolicyClient, admissionregistration_v1.MutatingAdmissionPolicy
        )

    def mutating_webhook_configurations(self) -> MutatingWebhookConfigurationClient:
        """Of the whole cluster."""
        return self._of(
            MutatingWebhookConfigurationClient,
            admissionregistration_v1.MutatingWebhookConfiguration,
        )

    def validating_admission_policy_bindings(self) -> ValidatingAdmissionPolicyBindingClient:
        """Of the whole cluster."""
        return self._of(
            ValidatingAdmissionPolicyBindingClient,
            admissionregistration_v1.ValidatingAdmissionPolicyBinding,
        )

    def validating_admission_policies(self) -> ValidatingAdmissionPolicyClient:
        """Of the whole cluster."""
        return self._of(
            ValidatingAdmissionPolicyClient, admissionregistration_v1.ValidatingAdmissionPolicy
        )

    def validating_webhook_configurations(self) -> ValidatingWebhookConfigurationClient:
        """Of the whole cluster."""
        return self._of(
            ValidatingWebhookConfigurationClient,
            admissionregistration_v1.ValidatingWebhookConfiguration,
        )

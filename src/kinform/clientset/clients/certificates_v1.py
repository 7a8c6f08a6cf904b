"""Clients for the kinds of certificates.k8s.io/v1. Written by ``make clientset``."""

from __future__ import annotations

from typing import ClassVar, final

from kinform.clientset import certificates_v1
from kinform.clientset.typed import GroupClient, HasParts, Objects, Part

__all__ = ["CertificateSigningRequestClient", "CertificatesV1"]


@final
class CertificateSigningRequestClient(
    Objects[certificates_v1.CertificateSigningRequest],
    HasParts[certificates_v1.CertificateSigningRequest],
):
    """Every CertificateSigningRequest."""

    @property
    def approval(self) -> Part[certificates_v1.CertificateSigningRequest]:
        """The ``approval`` of an object, by itself."""
        return self._part("approval", certificates_v1.CertificateSigningRequest)

    @property
    def status(self) -> Part[certificates_v1.CertificateSigningRequest]:
        """The ``status`` of an object, by itself."""
        return self._part("status", certificates_v1.CertificateSigningRequest)


@final
class CertificatesV1(GroupClient):
    """The kinds of certificates.k8s.io/v1."""

    api_version: ClassVar[str] = "certificates.k8s.io/v1"

    def certificate_signing_requests(self) -> CertificateSigningRequestClient:
        """Of the whole cluster."""
        return self._of(CertificateSigningRequestClient, certificates_v1.CertificateSigningRequest)

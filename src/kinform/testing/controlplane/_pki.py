"""A certificate authority for one control plane: made at its start, forgotten at its end.

Needs the package ``cryptography``, which comes with the extra ``kinform[testing]``. Nothing is
written to disk here.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from kinform import clock
from kinform.testing.errors import ControlPlaneUnavailable

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as _error:  # pragma: no cover (depends on the installation)
    raise ControlPlaneUnavailable(
        "the control plane needs the package cryptography: pip install 'kinform[testing]'"
    ) from _error

__all__ = ["CertificateAuthority", "KeyPair", "private_key", "public_key_pem"]

_LIFETIME: Final = datetime.timedelta(days=30)
_BACKDATE: Final = datetime.timedelta(hours=1)
"""Clocks of two machines may differ; a certificate of the future is refused."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both as PEM. The repr holds no key."""

    cert_pem: bytes
    key_pem: bytes = field(repr=False)


def private_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key (P-256: made in a millisecond, taken by every server)."""
    return ec.generate_private_key(ec.SECP256R1())


def private_key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return ``key`` as PEM, in the form Go reads for every purpose (SEC 1)."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the public half of ``key`` as PEM."""
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


@final
class CertificateAuthority:
    """Issues the certificates of servers and users; its own key never leaves it."""

    def __init__(self, name: str = "kinform-testing") -> None:
        self._key = private_key()
        self._subject = _subject(name, ())
        builder = _builder(self._subject, self._key, issuer=self._subject)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._certificate = builder.add_extension(
            _key_usage(signs_certificates=True), critical=True
        ).sign(self._key, hashes.SHA256())

    @property
    def cert_pem(self) -> bytes:
        """Its own certificate, which is what clients trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, name: str) -> KeyPair:
        """Return a certificate for a server on loopback: ``127.0.0.1`` and ``localhost``."""
        return self._issue(_subject(name, ()), ExtendedKeyUsageOID.SERVER_AUTH, names=_loopback())

    def peer(self, name: str) -> KeyPair:
        """Return a certificate for a server on loopback that is a client as well.

        etcd is: its HTTP gateway and its peers connect to etcd with the certificate it shows.
        """
        purposes = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
        return self._issue(_subject(name, ()), *purposes, names=_loopback())

    def client(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """Return a certificate that Kubernetes reads as user ``name`` in ``groups``."""
        return self._issue(_subject(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH, names=None)

    def _issue(
        self,
        subject: x509.Name,
        *purposes: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = private_key()
        builder = _builder(subject, key, issuer=self._subject)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_key_pem(key))


def _loopback() -> x509.SubjectAlternativeName:
    address = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
    return x509.SubjectAlternativeName([x509.DNSName("localhost"), address])


def _subject(name: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.datetime.fromtimestamp(clock.SYSTEM.wall(), datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )

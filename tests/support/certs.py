"""Certificates for tests: an authority that signs what you ask for, good or bad.

.. code-block:: python

    authority = Authority()
    server = WireServer(handler, tls=authority.issue("localhost").server_context())
    context = authority.client_context()
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "Pair"]

_DAY = datetime.timedelta(days=1)

# Python 3.13 and later want what RFC 5280 wants, this among it.
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    def server_context(self, *, client_ca: bytes | None = None) -> ssl.SSLContext:
        """Return a server's context; with ``client_ca`` it demands a client certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.load_into(context)
        if client_ca is not None:
            context.load_verify_locations(cadata=client_ca.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make ``context`` show this certificate."""
        with tempfile.TemporaryDirectory() as folder:
            cert, key = self.write(Path(folder))
            context.load_cert_chain(cert, key)

    def write(self, folder: Path, name: str = "tls") -> tuple[Path, Path]:
        """Write ``{name}.crt`` and ``{name}.key`` into ``folder`` and return their paths."""
        cert, key = folder / f"{name}.crt", folder / f"{name}.key"
        cert.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return cert, key


class Authority:
    """A certificate authority that only this test trusts."""

    def __init__(self, name: str = "kinform test CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key.public_key(), expired=False)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, as PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def client_context(self, pair: Pair | None = None) -> ssl.SSLContext:
        """Return a client's context that trusts this authority alone and shows ``pair``."""
        context = ssl.create_default_context(cadata=self.certificate.decode())
        if pair is not None:
            pair.load_into(context)
        return context

    def issue(
        self,
        *hosts: str,
        common_name: str | None = None,
        organizations: tuple[str, ...] = (),
        expired: bool = False,
        password: bytes | None = None,
    ) -> Pair:
        """Sign a certificate for ``hosts`` (names and addresses), usable by servers and clients.

        ``organizations`` are a Kubernetes user's groups. With ``password`` the key is encrypted.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, common_name or (*hosts, "nobody")[0]),
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, text) for text in organizations),
            ]
        )
        builder = _builder(subject, self._name, key.public_key(), expired=expired)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(password)
                if password
                else serialization.NoEncryption(),
            ),
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, expired: bool
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 - certificates know no other clock
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * _DAY)
        .not_valid_after(now - _DAY if expired else now + 30 * _DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

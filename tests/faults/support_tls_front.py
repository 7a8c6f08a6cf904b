"""A server's TLS side on loopback, whose certificate can be changed, before a server without."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ssl
from typing import Self, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.certs import Authority, Pair

__all__ = ["Brief", "TlsFront"]

_DAY = datetime.timedelta(days=1)


class Brief(Authority):
    """An authority whose certificates may live for seconds only."""

    def issue_for(self, seconds: float) -> Pair:
        """Sign a certificate for localhost that is valid for ``seconds`` from now on."""
        now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 - certificates know no other clock
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "brief")])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + datetime.timedelta(seconds=seconds))
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(issuer, critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


@final
class TlsFront:
    """Takes TLS connections and passes what is in them on to a port without TLS.

    ``tls`` is asked at each handshake: what is loaded into it counts from the next one on.
    """

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        self._target = port
        self._tls = tls
        self._links: dict[asyncio.Task[object], asyncio.StreamWriter] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def cut(self) -> None:
        """Break every connection."""
        for near in self._links.values():
            near.transport.abort()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        while self._links:
            self.cut()
            await asyncio.wait(tuple(self._links))
        await self._server.wait_closed()

    async def _pass_on(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links[task] = near
        there, far = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, far))
                group.create_task(_copy(there, near))
        except* (OSError, ssl.SSLError):
            pass
        finally:
            far.close()
            near.transport.abort()
            del self._links[task]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until either side ends, which ends both."""
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof() if writer.can_write_eof() else None
    raise ConnectionAbortedError

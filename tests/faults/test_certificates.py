"""F-R32: certificates that expire and rotate under an informer, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import final
from urllib.parse import urlsplit

import pytest

import kinform
from kinform import Client, KinformError, Object, SharedInformer, TransportError, TransportFailure
from kinform.apiserver import APIServer
from kinform.cache._informer.state_waiters import StateWaiters
from kinform.rest.config import Config, TlsConfig
from tests.faults.support_tls_front import Brief, TlsFront
from tests.support.certs import Pair
from tests.support.eventually import eventually

pytestmark = pytest.mark.slow

LIFE = 6.0
"""Seconds that the certificates live which are to expire; they know whole seconds only."""
MOST_ATTEMPTS = 8


@final
class Scene:
    """An informer behind TLS, and a writer that goes round it."""

    def __init__(self, writer: Client, client: Client, front: TlsFront) -> None:
        self.writer = writer
        self.front = front
        self.informer: SharedInformer[Object] = client.informer(
            "v1/configmaps", namespace="default", watch_error_handler=self._failed
        )
        self.errors: list[KinformError] = []
        self._told = StateWaiters()

    def _failed(self, error: KinformError) -> None:
        self.errors.append(error)
        self._told.check()

    async def wait_refused(self) -> None:
        """Wait until a handshake has failed."""

        def refused() -> bool:
            return any(
                isinstance(error, TransportError) and error.failure is TransportFailure.TLS
                for error in self.errors
            )

        try:
            async with asyncio.timeout(30):
                await self._told.wait(refused)
        except TimeoutError as exc:
            exc.add_note(repr(self.errors))
            raise

    async def write(self, name: str) -> None:
        """Create an object; the cache need not know of it."""
        maps = self.writer.resource("v1/configmaps", namespace="default")
        await maps.create({"metadata": {"name": name}})

    async def converges(self, *names: str) -> None:
        """Wait until the cache holds exactly these."""

        def shown() -> bool:
            return {one.name for one in self.informer.lister.list()} == set(names)

        await self.informer.wait_for(lambda _: shown(), 60)
        figures = self.informer.statistics().reflector
        assert figures.watches <= MOST_ATTEMPTS
        assert figures.lists == 1, "what was missed, a watch tells"


@contextlib.asynccontextmanager
async def scene(context: ssl.SSLContext, trust: TlsConfig) -> AsyncGenerator[Scene]:
    async with (
        APIServer() as server,
        server.connect() as writer,
        TlsFront(urlsplit(server.url).port or 0, context) as front,
        kinform.connect(Config(server=front.url, token=server.token, tls=trust)) as client,
    ):
        made = Scene(writer, client, front)
        await made.write("a")
        async with made.informer:
            await made.informer.wait_synced(30)
            await made.converges("a")
            yield made


class StillGood(Exception):
    """A handshake succeeds that should not."""


async def until_refused(front: TlsFront, context: ssl.SSLContext) -> None:
    """Wait until a new connection is refused by either side."""

    async def attempt() -> None:
        try:
            reader, writer = await asyncio.open_connection("localhost", front.port, ssl=context)
        except (ssl.SSLError, ConnectionError):
            return
        try:
            writer.write(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if await reader.read(1):  # with TLS 1.3 a client learns only now that it is refused
                raise StillGood
        except (ssl.SSLError, ConnectionError):
            return
        finally:
            writer.transport.abort()

    await eventually(attempt, StillGood, timeout=30)


async def test_a_servers_certificate_that_expires_during_a_watch_and_is_replaced() -> None:
    """The open watch goes on; who connects anew waits for another one, and loses nothing."""
    authority = Brief()
    context = authority.issue_for(LIFE).server_context()
    async with scene(context, TlsConfig(ca_data=authority.certificate)) as here:
        await until_refused(here.front, authority.client_context())
        await here.write("b")
        await here.converges("a", "b")
        assert here.errors == []
        here.front.cut()
        await here.write("c")
        await here.wait_refused()
        assert {one.name for one in here.informer.lister.list()} == {"a", "b"}
        authority.issue("localhost").load_into(context)
        await here.converges("a", "b", "c")


async def test_a_client_certificate_that_expires_during_a_watch_and_is_replaced(
    tmp_path: Path,
) -> None:
    """Its files are read again as soon as a handshake fails.

    With TLS 1.3 a client learns only after the handshake that it was refused, and cannot tell that
    from a reset: then the files are read within a minute. (kube-apiserver answers 401 instead.)
    """
    authority = Brief()
    brief = authority.issue_for(LIFE)
    cert, key = brief.write(tmp_path)
    context = authority.issue("localhost").server_context(client_ca=authority.certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    trust = TlsConfig(ca_data=authority.certificate, cert_file=str(cert), key_file=str(key))
    async with scene(context, trust) as here:
        await until_refused(here.front, authority.client_context(brief))
        await here.write("b")
        await here.converges("a", "b")
        here.front.cut()
        await here.write("c")
        await here.wait_refused()
        authority.issue("localhost", common_name="anew").write(tmp_path)
        await here.converges("a", "b", "c")


async def test_an_authority_that_is_replaced_while_a_watch_is_open(tmp_path: Path) -> None:
    """First the server has a certificate of the new one, and a moment later clients trust it."""
    old, new = Brief("old"), Brief("new")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(old.certificate)
    first: Pair = old.issue("localhost")
    context = first.server_context()
    async with scene(context, TlsConfig(ca_file=str(trusted))) as here:
        new.issue("localhost").load_into(context)
        await here.write("b")
        await here.converges("a", "b")
        here.front.cut()
        await here.write("c")
        await here.wait_refused()
        trusted.write_bytes(new.certificate)
        await here.converges("a", "b", "c")

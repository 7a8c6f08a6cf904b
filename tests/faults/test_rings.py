"""The memory of a connection is freed with it, without the help of the garbage collector.

A TLS connection has a buffer of 256 KB. In a ring with the error that ended it, it stays until the
next full collection, which may be hundreds of failures away: a process in trouble would grow.
"""

from __future__ import annotations

import collections
import gc
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import kinform
from kinform import Config, ReflectorOptions
from kinform.apiserver import APIServer
from kinform.rest.config import TlsConfig
from kinform.sansio.backoff import Backoff
from kinform.testing import Relay
from tests.faults.support_tls_front import Brief, TlsFront

pytestmark = pytest.mark.slow

AT_ONCE = ReflectorOptions(backoff=Backoff(first=0.001, cap=0.001))
ROUNDS = 5


@pytest.fixture
def garbage() -> Iterator[list[object]]:
    """Have the collector show what it finds instead of freeing it."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.enable()
    gc.garbage.clear()


@pytest.mark.parametrize("ending", ["reset", "end"])
async def test_a_watch_that_breaks_leaves_no_ring_behind(
    ending: str, garbage: list[object]
) -> None:
    authority = Brief()
    tls = authority.issue_for(3600).server_context()
    trust = TlsConfig(ca_data=authority.certificate)
    async with (
        APIServer() as server,
        server.connect() as direct,
        TlsFront(urlsplit(server.url).port or 0, tls) as front,
        Relay("127.0.0.1", front.port) as relay,
        kinform.connect(
            Config(server=f"https://localhost:{relay.port}", token=server.token, tls=trust)
        ) as client,
        client.informer("v1/configmaps", namespace="default", options=AT_ONCE) as informer,
    ):
        await informer.wait_synced(30)
        maps = direct.resource("v1/configmaps", namespace="default")
        for number in range(ROUNDS):
            relay.cut() if ending == "reset" else relay.drop()
            made = await maps.create({"metadata": {"name": f"n{number}"}})
            await informer.wait_until(made.resource_version, 30)
        assert informer.statistics().reflector.failures >= ROUNDS
        gc.collect()
        left = collections.Counter(_shown(each) for each in garbage if _is_ours(each))
    assert not left


def _is_ours(each: object) -> bool:
    """Leave out what is asyncio's own, and the server's side of the connection."""
    if isinstance(each, ssl.SSLObject):
        return not each.server_side
    return type(each).__module__.partition(".")[0] == "aiohttp" or type(each).__name__ in {
        "_Stream",
        "_Exchange",
        "Response",
        "BodyParser",
    }


def _shown(each: object) -> str:
    return f"{type(each).__module__}.{type(each).__qualname__}"

"""Redirects are errors: no verb follows one, and no other server receives the credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import kinform
from kinform.errors import TransportError, TransportFailure
from kinform.rest.config import Config
from tests.security.support_canaries import TOKEN, secret, witness
from tests.support.certs import Authority
from tests.support.wire import WireConnection, WireRequest, WireServer


async def _watch(secrets: Any) -> None:
    async with secrets.watch(resource_version="1") as events:
        async for _ in events:
            pass


SECRETS = kinform.Resource.of("v1/secrets", kind="Secret", namespaced=True)
VERBS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "get": lambda secrets: secrets.get("a"),
    "list": lambda secrets: secrets.list(),
    "watch": _watch,
    "create": lambda secrets: secrets.create(secret()),
    "replace": lambda secrets: secrets.replace(secret(resourceVersion="1")),
    "patch": lambda secrets: secrets.patch("a", {"data": {}}),
    "delete": lambda secrets: secrets.delete("a"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("status", [301, 302, 303, 305, 306, 307, 308])
async def test_no_verb_follows_a_redirect_to_any_place(status: int, verb: str) -> None:
    """To another port, scheme or host, or to another path: the second listener hears nothing."""
    locations: list[str] = []

    async def redirect(request: WireRequest, conn: WireConnection) -> None:
        await conn.send(status, {"Location": locations[0]}, b"moved")

    tls = Authority().issue("localhost").server_context()
    async with WireServer() as plain, WireServer(tls=tls) as secure, WireServer(redirect) as first:
        port = plain.port
        places = [
            f"{plain.url}/api/v1/namespaces/default/secrets",
            f"{secure.url}/",
            f"//localhost:{port}/",
            f"http://127.0.0.2:{port}/",
            f"http://127.0.0.1:{first.port}@127.0.0.1:{port}/",
            "/api/v1/namespaces/kube-system/secrets",
        ]
        with witness() as seeing:
            config = Config(server=first.url, token=TOKEN)
            async with kinform.connect(config) as client:
                for place in places:
                    locations[:] = [place]
                    with pytest.raises(TransportError, match="redirects") as caught:
                        await VERBS[verb](client.resource(SECRETS))
                    assert caught.value.failure is TransportFailure.REDIRECT
                    seeing.show(caught.value)
        assert not plain.connections
        assert not secure.connections
        assert len(first.requests) == len(places)

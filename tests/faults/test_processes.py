"""Faults of a whole process: it is stopped, has no descriptors, or a handler that hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from kinform import Client
from kinform.apiserver import APIServer
from kinform.testing import Relay
from tests.faults.support_child import Child, child
from tests.support.eventually import eventually
from tests.support.wire import WireConnection, WireRequest, WireServer, reply

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and /proc"),
]

MOST_ATTEMPTS = 8
"""Watches, and lists, that an informer may begin in the first minute of a failure."""


class NotYet(Exception):
    """The awaited condition does not hold yet."""


async def until(attempt: Callable[[], Awaitable[bool]], *, within: float = 60.0) -> None:
    async def check() -> None:
        if not await attempt():
            raise NotYet

    await eventually(check, NotYet, timeout=within)


@contextlib.asynccontextmanager
async def served() -> AsyncGenerator[tuple[APIServer, Client]]:
    """Run a server with config maps, and give a client of it."""
    async with APIServer() as server, server.connect() as client:
        for number in range(20):
            await maps(client).create({"metadata": {"name": f"n{number}"}})
        yield server, client


def maps(client: Client) -> Any:
    return client.resource("v1/configmaps", namespace="default")


async def churn(client: Client) -> None:
    """Change, delete, create anew and create."""
    for number in range(5):
        await maps(client).patch(f"n{number}", {"data": {"n": "1"}})
    for number in range(5, 10):
        await maps(client).delete(f"n{number}")
    for number in (5, 6, 30, 31):
        await maps(client).create({"metadata": {"name": f"n{number}"}})


async def versions(client: Client) -> dict[str, str]:
    return {one.name: one.resource_version for one in (await maps(client).list())}


async def converges(process: Child, client: Client) -> dict[str, Any]:
    """Wait until cache and handler are right; return how it stands then."""
    expected = await versions(client)
    found: dict[str, Any] = {}

    async def is_equal() -> bool:
        found.update(await process.ask("state"))
        return bool(found["cache"] == found["believed"] == expected)

    await until(is_equal)
    assert found["complaints"] == []
    return found


@pytest.mark.parametrize("is_compacted", [False, True], ids=["", "and the past is forgotten"])
async def test_stopped_for_longer_than_its_watch_lives_it_finds_all_that_happened(
    is_compacted: bool,
) -> None:
    """F-R02, F-R36: SIGSTOP, until the server has given the watch up; then SIGCONT."""
    async with (
        served() as (server, client),
        child(server.url, server.token, json.dumps(["watch_timeout", 1])) as process,
    ):
        before = await converges(process, client)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await until(lambda: _no_watch(server))
            await churn(client)
            if is_compacted:
                server.compact()
        finally:
            os.kill(process.pid, signal.SIGCONT)
        after = await converges(process, client)
        assert after["watches"] - before["watches"] <= MOST_ATTEMPTS
        assert after["lists"] - before["lists"] == is_compacted
        assert after["tasks"] <= before["tasks"] + 1


async def _no_watch(server: APIServer) -> bool:
    return not server.cluster.storage.table("configmaps")._listeners


async def test_without_descriptors_it_waits_and_recovers_when_there_are_some() -> None:
    """Nothing can be opened, for as long as it takes to fail three times; the cache stays."""
    async with (
        served() as (server, client),
        Relay("127.0.0.1", urlsplit(server.url).port or 0) as relay,
        child(f"http://127.0.0.1:{relay.port}", server.token) as process,
    ):
        before = await converges(process, client)
        await process.ask("starve")
        relay.cut()

        async def has_failed() -> bool:
            return bool((await process.ask("figures"))["failures"] >= before["failures"] + 3)

        await churn(client)
        await until(has_failed)
        starved = await process.ask("state")
        assert "too many open files" in starved["error"]
        assert starved["cache"] == before["cache"]
        await process.ask("feed")
        after = await converges(process, client)
        assert after["watches"] - before["watches"] <= MOST_ATTEMPTS
        assert after["lists"] == before["lists"], "what it missed, the next watch tells"
        assert after["tasks"] <= before["tasks"] + 1


# --- a handler that hangs

KEYS, ROUNDS = 1000, 100


def config_map(number: int, version: int) -> dict[str, object]:
    metadata = {
        "name": f"n{number}",
        "namespace": "default",
        "uid": f"u{number}",
        "resourceVersion": str(version),
        "labels": {"app": f"app-{number % 7}"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": "x" * 100}}


def changes(round_: int) -> bytes:
    first = 10_000 + round_ * KEYS
    events = (
        {"type": "MODIFIED", "object": config_map(number, first + number)} for number in range(KEYS)
    )
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


DISCOVERED = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {
            "name": "configmaps",
            "singularName": "configmap",
            "namespaced": True,
            "kind": "ConfigMap",
            "verbs": ["list", "watch"],
        }
    ],
}


class Flood:
    """A server that answers a watch with a hundred changes of each object, once it may."""

    def __init__(self) -> None:
        self.may_begin = asyncio.Event()

    async def __call__(self, request: WireRequest, conn: WireConnection) -> None:
        if request.path == "/api/v1":
            await conn.reply(reply(200, json=DISCOVERED))
        elif "watch" in request.query:
            await conn.chunked(headers={"Content-Type": "application/json"})
            await self.may_begin.wait()
            for round_ in range(ROUNDS):
                await conn.chunk(changes(round_))
            await conn.stall()
        else:
            listed = {
                "kind": "ConfigMapList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "9999"},
                "items": [config_map(number, number + 1) for number in range(KEYS)],
            }
            await conn.reply(reply(200, json=listed))


async def test_a_handler_that_hangs_costs_no_more_than_there_are_objects() -> None:
    """F-R34, F-P10: 10^5 changes of 10^3 objects, on a socket; then it receives the merged rest."""
    options = (json.dumps(["stream_lists", False]), json.dumps(["watch_timeout", 3600]))
    flood = Flood()
    async with WireServer(flood) as server, child(server.url, "none", *options) as process:
        last = str(10_000 + ROUNDS * KEYS - 1)

        async def has_all() -> bool:
            return bool((await process.ask("figures"))["version"] == last)

        async def is_told() -> bool:
            return not (await process.ask("figures"))["pending"]

        await until(is_told)  # of the list; what it says is not merged with what follows
        await process.ask("block")
        before = await process.ask("figures")
        flood.may_begin.set()
        await until(has_all)
        after = await process.ask("figures")
        assert after["pending"] <= KEYS + 1
        assert after["peak"] <= 2 * KEYS
        assert after["rss"] - before["rss"] < 20e6
        await process.ask("release")
        await until(is_told)
        state = await process.ask("state")
        assert state["believed"] == state["cache"]
        assert len(state["cache"]) == KEYS
        assert state["complaints"] == []

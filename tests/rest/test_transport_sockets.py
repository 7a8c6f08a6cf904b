"""Looking up names, counting sockets, and the headers of an answer."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kinform.rest.transport import Headers
from kinform.rest.transport._sockets import Lookups, Sockets


async def test_lookups_of_one_name_at_a_time_share_one_answer() -> None:
    lookups = Lookups()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(lookups.addresses("localhost", 80))
        second = group.create_task(lookups.addresses("localhost", 80))
    assert first.result() is second.result()
    assert (socket.AF_INET, "127.0.0.1") in first.result()
    assert await lookups.addresses("localhost", 80) is not first.result()


async def test_cancelling_one_lookup_does_not_cancel_the_others() -> None:
    lookups = Lookups()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(lookups.addresses("localhost", 80))
        second = group.create_task(lookups.addresses("localhost", 80))
        await asyncio.sleep(0)
        first.cancel()
    assert first.cancelled()
    assert second.result()


async def test_failed_lookup_that_nobody_waits_for_is_no_complaint() -> None:
    lookups = Lookups()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(lookups.addresses("no-such-host.invalid", 80))
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(socket.gaierror):
        await lookups.addresses("no-such-host.invalid", 80)


async def test_sockets_are_counted_until_closed_or_detached() -> None:
    sockets = Sockets()
    address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))
    closed, detached = sockets.new(address), sockets.new(address)
    assert len(sockets) == 2
    assert not closed.getblocking()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(sockets.wait_closed())
        await asyncio.sleep(0)
        closed.close()
        await asyncio.sleep(0)
        assert not waiting.done()
        socket.close(detached.detach())
    assert len(sockets) == 0


def test_headers_are_found_in_any_spelling_and_shown_without_values() -> None:
    headers = Headers([("Content-Type", "a"), ("X-A", "1"), ("x-a", "2")])
    assert headers["content-type"] == "a"
    assert headers["X-a"] == "1, 2"
    assert "x-A" in headers
    assert 1 not in headers
    assert len(headers) == 2
    assert repr(headers) == "<Headers Content-Type X-A>"

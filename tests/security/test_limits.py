"""A hostile server costs an error and little memory: bombs, bodies and headers without end."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import kinform
from kinform.errors import DecodeError, KinformError, TransportError, TransportFailure
from kinform.rest.config import MAX_OBJECT_SIZE, Config
from tests.support.wire import WireConnection, WireRequest, WireServer

PODS = kinform.Resource.of("v1/pods", kind="Pod", namespaced=True)
LIMIT = 1024 * 1024
MIB = 1024 * 1024


async def _watch(pods: Any) -> None:
    async with pods.watch(resource_version="1") as events:
        async for _ in events:
            pass


VERBS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "get": lambda pods: pods.get("a"),
    "list": lambda pods: pods.list(),
    "watch": _watch,
    "create": lambda pods: pods.create({"metadata": {"name": "a"}}),
}
OPENINGS = {
    "get": b'{"kind":"Pod","metadata":{"name":"',
    "list": b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"',
    "watch": b'{"type":"ADDED","object":{"metadata":{"name":"',
    "create": b'{"kind":"Pod","metadata":{"name":"',
}


@pytest.mark.parametrize("verb", VERBS)
async def test_an_object_without_end_is_an_error_at_its_limit(verb: str) -> None:
    sent = 0

    async def endless(request: WireRequest, conn: WireConnection) -> None:
        nonlocal sent
        await conn.chunked(headers={"Content-Type": "application/json"})
        await conn.chunk(OPENINGS[verb])
        while not conn.is_closing and sent < 256 * MIB:
            await conn.chunk(b"x" * 65536)
            sent += 65536

    async with WireServer(endless) as server:
        config = Config(server=server.url, max_object_size=LIMIT)
        async with kinform.connect(config) as client:
            with pytest.raises(KinformError):
                await VERBS[verb](client.resource(PODS, namespace="here"))
    assert sent < 64 * MIB, "what the sockets hold, and no more"


# --- MAX_OBJECT_SIZE, with no setting changed


async def _listed(pods: Any) -> kinform.Object:
    [one] = await pods.list()
    return one


async def _watched(pods: Any) -> kinform.Object:
    async with pods.watch(resource_version="1") as events:
        return (await anext(aiter(events))).object


READERS: dict[str, Callable[[Any], Awaitable[kinform.Object]]] = {
    "get": lambda pods: pods.get("a"),
    "list": _listed,
    "watch": _watched,
}
AROUND = {
    "get": (b"", b""),
    "list": (b'{"kind":"PodList","metadata":{"resourceVersion":"2"},"items":[', b"]}"),
    "watch": (b'{"type":"ADDED","object":', b"}"),
}
OBJECT = b'{"kind":"Pod","metadata":{"name":"a","namespace":"here"},"spec":{"note":"', b'"}}'
BLOCK = b"x" * MIB


def largest(verb: str) -> int:
    """Return how large an object may be; of a watch, the whole event counts."""
    return MAX_OBJECT_SIZE - (len(b"".join(AROUND[verb])) if verb == "watch" else 0)


async def read_one(verb: str, size: int) -> kinform.Object:
    """Read an object of that size; the server holds no more than one block of it."""
    (before, after), (start, end) = AROUND[verb], OBJECT

    async def large(request: WireRequest, conn: WireConnection) -> None:
        await conn.chunked(headers={"Content-Type": "application/json"})
        await conn.chunk(before + start)
        for left in range(size - len(start + end), 0, -MIB):
            await conn.chunk(BLOCK[:left])
        await conn.chunk(end + after)
        await conn.end_chunks()

    async with WireServer(large) as server, kinform.connect(server.url) as client:
        return await READERS[verb](client.resource(PODS, namespace="here"))


@pytest.mark.slow
@pytest.mark.parametrize("verb", READERS)
async def test_an_object_of_64_mib_is_taken(verb: str) -> None:
    assert MAX_OBJECT_SIZE == 64 * MIB
    found = await read_one(verb, largest(verb))
    assert (found.name, len(found.raw)) == ("a", largest(verb))


@pytest.mark.slow
@pytest.mark.parametrize("verb", READERS)
async def test_an_object_of_64_mib_and_a_byte_is_refused(verb: str) -> None:
    with pytest.raises(KinformError, match=f"er than {64 * MIB} bytes"):
        await read_one(verb, largest(verb) + 1)


# --- compression and headers


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
async def test_a_bomb_is_an_error_in_little_memory(verb: str) -> None:
    """A gigabyte in a megabyte."""
    bomb = gzip.compress(OPENINGS[verb] + b"x" * MIB) + gzip.compress(b"x" * MIB) * 1023

    async def explode(request: WireRequest, conn: WireConnection) -> None:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        await conn.send(200, headers, bomb)

    async with WireServer(explode) as server:
        config = Config(server=server.url, max_object_size=4 * MIB)
        async with kinform.connect(config) as client:
            tracemalloc.start()
            try:
                with pytest.raises((DecodeError, TransportError)):
                    await VERBS[verb](client.resource(PODS, namespace="here"))
                assert tracemalloc.get_traced_memory()[1] < 24 * MIB
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"X-%d: y\r\n", id="many"),
        pytest.param(b"X-%d: " + b"y" * 4096 + b"\r\n", id="many and long"),
        pytest.param(b"X-Long-%d: " + b"y" * 200_000, id="one without end"),
        pytest.param(b" folded %d\r\n", id="folded"),
    ],
)
@pytest.mark.parametrize("verb", ["get", "watch"])
async def test_headers_without_end_are_an_error(line: bytes, verb: str) -> None:
    sent = 0

    async def endless(request: WireRequest, conn: WireConnection) -> None:
        nonlocal sent
        await conn.write(b"HTTP/1.1 200 OK\r\nX-First: y\r\n")
        for number in range(2_000):
            block = b"".join(line % (number * 100 + each) for each in range(100))
            await conn.write(block)
            sent += len(block)
            if conn.is_closing or sent > 64 * MIB:
                return

    async with WireServer(endless) as server, kinform.connect(server.url) as client:
        with pytest.raises(TransportError) as caught:
            await VERBS[verb](client.resource(PODS, namespace="here"))
    assert caught.value.failure in {TransportFailure.PROTOCOL, TransportFailure.RESET}
    assert sent < 32 * MIB


async def test_trailers_without_end_are_an_error() -> None:
    sent = 0

    async def endless(request: WireRequest, conn: WireConnection) -> None:
        nonlocal sent
        await conn.chunked(headers={"Content-Type": "application/json"})
        await conn.chunk(b'{"kind":"Pod","metadata":{"name":"a"}}')
        await conn.write(b"0\r\n")
        while not conn.is_closing and sent < 64 * MIB:
            block = b"X-Trailer: y\r\n" * 1000
            await conn.write(block)
            sent += len(block)

    async with WireServer(endless) as server, kinform.connect(server.url) as client:
        try:  # the object is whole: to take it and drop the connection is as good as to refuse it
            await client.resource(PODS, namespace="here").get("a")
        except TransportError as exc:
            assert exc.failure is not TransportFailure.TIMEOUT  # noqa: PT017 - either is fine
    assert sent < 32 * MIB


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 1e3\r\n",
        b"Bad Header: x\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\n folded: x\r\n",
    ],
    ids=[
        "two lengths",
        "length and chunks",
        "twice chunked",
        "negative",
        "float",
        "name",
        "folded",
    ],
)
async def test_an_answer_whose_length_is_a_matter_of_opinion_is_refused(head: bytes) -> None:
    """Two parsers that disagree about the end of a response allow response smuggling."""
    body = b'{"kind":"Pod","metadata":{"name":"a"}}'

    async def ambiguous(request: WireRequest, conn: WireConnection) -> None:
        await conn.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head + b"\r\n")
        await conn.write(body)
        await conn.fin()

    async with WireServer(ambiguous) as server, kinform.connect(server.url) as client:
        with pytest.raises(KinformError):  # of a write, which is not tried again
            await client.resource(PODS, namespace="here").create({"metadata": {"name": "a"}})

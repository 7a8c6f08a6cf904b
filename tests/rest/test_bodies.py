"""Chunked bodies that kinform parses itself: the same bytes as aiohttp would give, and no more."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kinform.errors import TransportError, TransportFailure
from kinform.rest.transport import HttpResponse
from kinform.rest.transport._aiohttp_hooks import BodyParser
from tests.support.transports import NewTransport, body_of, get, transports
from tests.support.wire import WireConnection, WireRequest, WireServer

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_CHUNKS = b"4\r\nabcd\r\n1;x=y\r\ne\r\n0\r\nTrailer: 1\r\n\r\n"
_PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"
_INFORMED = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.fixture
async def new() -> AsyncIterator[NewTransport]:
    async with transports() as factory:
        yield factory


def _server(*pieces: bytes, closes: bool = False) -> WireServer:
    async def handler(request: WireRequest, conn: WireConnection) -> None:
        for piece in pieces:
            await conn.write(piece)
            await asyncio.sleep(0)
        if closes:
            await conn.fin()

    return WireServer(handler)


def _parser_of(response: HttpResponse) -> BodyParser:
    """Return what parses an answer that is not at its end."""
    exchange: Any = response
    parser = exchange._source._response.connection.protocol._parser
    assert isinstance(parser, BodyParser)
    return parser


async def test_this_aiohttp_lets_us_parse_chunked_bodies(new: NewTransport) -> None:
    async with (
        _server(_HEAD + _CHUNKS[:9]) as server,
        new().send(get(server, long_lived=True)) as response,
    ):
        assert await response.read_some() == b"abcd"
        assert _parser_of(response)._decoder is not None


@pytest.mark.parametrize("cut", range(1, len(_HEAD + _CHUNKS)))
async def test_an_answer_may_be_cut_anywhere(new: NewTransport, cut: int) -> None:
    wire = _HEAD + _CHUNKS
    async with _server(wire[:cut], wire[cut:]) as server:
        transport = new()
        assert await body_of(transport, get(server)) == b"abcde"
        assert await body_of(transport, get(server)) == b"abcde"
        assert len(server.connections) == 1  # it was kept, and used again


@pytest.mark.parametrize(
    ("wire", "kept_back"), [(_PLAIN, 2), (_INFORMED + _PLAIN, 2), (_INFORMED + _HEAD + _CHUNKS, 12)]
)
async def test_all_other_answers_are_left_to_aiohttp(
    new: NewTransport, wire: bytes, kept_back: int
) -> None:
    more = asyncio.Event()

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        await conn.write(wire[:-kept_back])
        await more.wait()
        await conn.write(wire[-kept_back:])

    async with WireServer(handler) as server, new().send(get(server)) as response:
        assert _parser_of(response)._decoder is None
        more.set()
        assert await response.read() == b"abcde"


async def test_a_head_without_returns_is_left_to_aiohttp_with_all_that_follows(
    new: NewTransport,
) -> None:
    """The empty line in the body is not taken for the end of the head."""
    head = b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n"
    async with _server(head + b"6\r\na\r\n\r\nb\r\n0\r\n\r\n") as server:
        assert await body_of(new(), get(server)) == b"a\r\n\r\nb"


@pytest.mark.parametrize("end", [0, 1, 4, 8, 11, 20, len(_CHUNKS) - 1])
async def test_a_body_that_breaks_off_is_truncated(new: NewTransport, end: int) -> None:
    async with _server(_HEAD + _CHUNKS[:end], closes=True) as server:
        with pytest.raises(TransportError) as caught:
            await body_of(new(), get(server))
    assert caught.value.failure is TransportFailure.TRUNCATED


@pytest.mark.parametrize("wire", [b"zz\r\n", b"4\r\nabcdef\r\n", b"\r\n"])
async def test_what_is_no_chunk_ends_the_body_at_once(new: NewTransport, wire: bytes) -> None:
    async with _server(_HEAD + b"2\r\nok\r\n" + wire) as server:  # which stays open
        with pytest.raises(TransportError):
            async with asyncio.timeout(5):
                await body_of(new(), get(server))


async def test_a_connection_with_bytes_behind_the_answer_is_not_used_again(
    new: NewTransport,
) -> None:
    async with _server(_HEAD + _CHUNKS + b"HTTP/1.1 200 OK\r\n\r\n") as server:
        transport = new()
        assert await body_of(transport, get(server)) == b"abcde"
        assert await body_of(transport, get(server)) == b"abcde"
        assert len(server.connections) == 2


async def test_a_reader_that_does_not_read_stops_the_server(new: NewTransport) -> None:
    """Memory stays bounded: without a reader the socket is not read either."""
    sent = 0

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        nonlocal sent
        await conn.write(_HEAD)
        while sent < 64 * 1024 * 1024:
            await conn.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
            sent += 0x10000
        await conn.write(b"0\r\n\r\n")

    async with WireServer(handler) as server:
        async with new().send(dataclasses.replace(get(server), long_lived=True)) as response:
            first = await response.read_some()
            before = -1
            while sent != before:  # until it has come to a stop
                before = sent
                for _ in range(200):
                    await asyncio.sleep(0)
            assert sent < 32 * 1024 * 1024
            rest = 0
            while piece := await response.read_some():
                rest += len(piece)
    assert len(first) + rest == 64 * 1024 * 1024


async def test_bytes_may_gather_before_they_are_read(new: NewTransport) -> None:
    """One wake-up for many pieces; cancelled meanwhile, nothing is lost and reading goes on."""
    async with _server(_HEAD + b"2\r\nab\r\n", b"2\r\ncd\r\n", b"0\r\n\r\n") as server:
        async with new().send(get(server)) as response:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await response.read_some(gather=3600)
            body = b""
            while piece := await response.read_some(gather=0.001):
                body += piece
    assert body == b"abcd"

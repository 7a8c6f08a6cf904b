"""A watch as a client sees it: events, chunks, and how it ended."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import aiohttp

from tests.contract.exchange import Answer, Json, lines, marked

__all__ = ["Watch"]

PATIENCE: Final = 8.0
"""Seconds to wait for what must come; in vain is a difference, not an endless wait."""


class Watch:
    """An open watch. If the server refused it, `answer` says how and there are no events.

    Bookmarks that come by the server's clock are left out, unless ``has_bookmarks``: then those
    in a row count as one. The one that closes the initial events is an event like any other.

    Attributes:
        events: What was taken so far.
        ended: ``"by the client"``, ``"by the server"``, or that nothing came in time.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, answer: Answer, *, has_bookmarks: bool = False
    ) -> None:
        self._response: Final = response
        self._has_bookmarks: Final = has_bookmarks
        self._last_was_bookmark = False
        self._rest = b""
        self._in_chunk: int | None = None
        self._waiting: list[Json] = []
        self._has_ended = False
        self.answer = answer
        self.events: Final[list[Json]] = []
        self.chunks: Final[list[int]] = []
        self.ended = "by the client"

    async def read_answer(self) -> None:
        """Read the body of a refusal."""
        content = await self._response.read()
        self.answer = Answer(self.answer.status, self.answer.headers, content)
        self._has_ended = True

    async def take(self, count: int) -> list[Json]:
        """Wait for ``count`` more events and return them; fewer if they do not come."""
        before = len(self.events)
        try:
            async with asyncio.timeout(PATIENCE):
                while len(self.events) - before < count and await self._next():
                    pass
        except TimeoutError:
            self.ended = "nothing more came in time"
        return self.events[before:]

    async def until_end(self, timeout: float = PATIENCE) -> list[Json]:
        """Wait until the server ends the watch; return what came."""
        before = len(self.events)
        try:
            async with asyncio.timeout(timeout):
                while await self._next():
                    pass
        except TimeoutError:
            self.ended = "it did not end in time"
        return self.events[before:]

    async def until(self, kind: str) -> Json:
        """Take events up to the first of this type and return that."""
        while taken := await self.take(1):
            if taken[0]["type"] == kind:
                return taken[0]
        return {}

    async def _next(self) -> bool:
        """Take one event; return whether there was one."""
        while not self._waiting:
            if self._has_ended or not await self._read():
                return False
        self.events.append(self._waiting.pop(0))
        return True

    async def _read(self) -> bool:
        """Read one HTTP chunk (or a part of it); return whether the stream goes on."""
        try:
            data, is_chunk_end = await self._response.content.readchunk()
        except aiohttp.ClientPayloadError:
            self.ended, self._has_ended = "by breaking off", True
            return False
        if not data and self._response.content.at_eof():
            self.ended, self._has_ended = "by the server", True
            return False
        found, self._rest = lines(self._rest + data)
        if found and "type" not in found[0]:
            return self._is_answer(found[0])
        kept = [event for event in found if self._keeps(event)]
        if kept or not found:
            self._in_chunk = (self._in_chunk or 0) + len(kept)
        if is_chunk_end and self._in_chunk is not None:
            self.chunks.append(self._in_chunk)
            self._in_chunk = None
        self._waiting += kept
        return True

    def _is_answer(self, document: Json) -> bool:
        """Record that this is not a watch, for example because the server answered with a list."""
        content = json.dumps(document).encode()
        self.answer = Answer(self.answer.status, self.answer.headers, content)
        self._has_ended = True
        return False

    def _keeps(self, event: Json) -> bool:
        """Mark the version of a bookmark; return whether the event belongs to the record."""
        if event.get("type") != "BOOKMARK":
            self._last_was_bookmark = False
            return True
        marked(event["object"], is_list=True)
        if "initial-events-end" in json.dumps(event):  # in a Table it is in the row
            return True
        repeated, self._last_was_bookmark = self._last_was_bookmark, True
        return self._has_bookmarks and not repeated

"""Requests and responses of the application: HTTP without sockets.

An adapter (`kinform.apiserver.http`) or a transport in memory (`kinform.apiserver.memory`) makes
a `ServerRequest` of what a client sends and sends the `ServerResponse` back.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final
from urllib.parse import parse_qs, urlencode

__all__ = [
    "BODY_LIMIT",
    "Broken",
    "Burst",
    "Chunks",
    "Ending",
    "ServerRequest",
    "ServerResponse",
    "apart",
]

_CONTROL: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"'})
_ALL_WARNINGS: Final = 4096
_LONG_WARNING: Final = 256
"""The length to which a warning is cut, if all of them together would be too long."""
_MOST_WARNINGS: Final = 100
"""As many as kube-apiserver's decoder reports. Clients bound the headers of an answer: aiohttp
accepts 128."""

BODY_LIMIT: Final = 3 * 1024 * 1024
"""The most bytes that a request may bring."""

Chunks: TypeAlias = AsyncGenerator[bytes]
"""A body that goes on: each item is one HTTP chunk, a `Burst` several. Closing it ends what
makes it."""


@final
class Burst(bytes):
    """Chunks that are there at the same time, so that they can be sent at once."""

    parts: Sequence[bytes]

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> bytes:
        """Return them as one item: a single one as it is."""
        if len(parts) == 1:
            return parts[0]
        burst = cls(b"".join(parts))
        burst.parts = parts
        return burst


async def apart(chunks: Chunks) -> Chunks:
    """Yield every chunk by itself."""
    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            if isinstance(chunk, Burst):
                for part in chunk.parts:
                    yield part
            else:
                yield chunk


class Ending(enum.StrEnum):
    """The way in which a connection ends before its answer does."""

    REFUSED = "refused"
    """The server does not listen."""
    RESET = "reset"
    """At once, and what was on its way is lost."""
    CLOSED = "closed"
    """In order, but too early: the client sees a truncated answer."""
    SILENT = "silent"
    """Not at all, and nothing comes any more."""


@final
class Broken(Exception):
    """The connection is to end like this: raised instead of an answer, or in the midst of one."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(str(ending))
        self.ending = ending


@final
@dataclass(slots=True, kw_only=True)
class ServerRequest:
    """One request, with its body read."""

    method: str
    """In capitals."""
    path: str
    """As sent, still escaped, without the query."""
    query: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in lower case. They hold credentials: never log them."""
    body: bytes = field(default=b"", repr=False)

    @classmethod
    def of(
        cls,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> ServerRequest:
        """Make a request of a ``target`` such as ``/api/v1/pods?limit=5``."""
        path, _, query = (target if target.isascii() else _readable(target)).partition("?")
        joined: dict[str, str] = {}
        for name, value in (headers or {}).items():
            key, text = name.lower(), value if value.isascii() else _readable(value)
            # Values of a header that was sent several times are one list.
            joined[key] = f"{joined[key]}, {text}" if key in joined else text
        return cls(
            method=method,
            path=path,
            query=parse_qs(query, keep_blank_values=True),
            headers=joined,
            body=body,
        )

    @property
    def target(self) -> str:
        """The path and the query, as they were sent."""
        query = urlencode(self.query, doseq=True)
        return f"{self.path}?{query}" if query else self.path

    def option(self, name: str) -> str:
        """Return the first value of a query parameter, ``""`` if there is none."""
        values = self.query.get(name)
        return values[0] if values else ""


def _readable(text: str) -> str:
    """Return a text that can be sent back: bytes that are not UTF-8 become U+FFFD."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


@final
@dataclass(slots=True, kw_only=True)
class ServerResponse:
    """An answer: a whole body, or one that goes on until it ends or is closed."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])
    """Texts for the person behind the client, each to be sent as a ``Warning`` header."""
    body: bytes | Chunks = b""

    def warning_headers(self) -> list[str]:
        """Return the values of the ``Warning`` headers.

        Texts that would break a header are left out. At most 100 headers are returned, with about
        4,096 characters in all.
        """
        texts = [text for text in dict.fromkeys(self.warnings) if not _CONTROL.search(text)]
        texts = texts[:_MOST_WARNINGS]
        if sum(map(len, texts)) > _ALL_WARNINGS:
            texts = [text[:_LONG_WARNING] for text in texts]
            lengths = itertools.accumulate(map(len, texts), initial=0)
            pairs = zip(texts, lengths, strict=False)  # the last length is of all together
            texts = [text for text, before in pairs if before < _ALL_WARNINGS]
        return [f'299 - "{text.translate(_ESCAPES)}"' for text in texts]

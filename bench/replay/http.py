"""HTTP/1.1 as far as clients of pods need it: requests without a body, answers in chunks."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final, final
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["BadRequestError", "Connection", "GoneError", "Request", "head", "parse", "preferred"]

_LONGEST_HEAD: Final = 65_536
_SEND_TIMEOUT: Final = 60
"""Seconds after which a client that takes nothing counts as gone."""
_PHRASES: Final = {200: "OK", 422: "Unprocessable Entity"}


class GoneError(OSError):
    """The client closed the connection, or takes nothing any more."""


class BadRequestError(ValueError):
    """That was no request."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its body."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By their names in lower case."""

    @property
    def body_size(self) -> int:
        """The length of the body."""
        return int(self.headers.get("content-length", "0"))

    @property
    def is_last(self) -> bool:
        """True if the client requests that the connection is closed after the response."""
        return self.headers.get("connection", "").lower() == "close"


def parse(data: bytes) -> Request:
    """Return the request that begins with ``data``, all up to the empty line.

    Raises:
        BadRequestError: it is none.
    """
    first, *lines = data.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] != "HTTP/1.1":
        raise BadRequestError(f"not a request of HTTP/1.1: {first!r}")
    target = urlsplit(words[1])
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if not headers.get("content-length", "0").isdecimal() or "transfer-encoding" in headers:
        raise BadRequestError("only bodies with a Content-Length are read")
    query = dict(parse_qsl(target.query, keep_blank_values=True))
    return Request(words[0], unquote(target.path), query, headers)


def preferred(accept: str, offered: Sequence[str]) -> str:
    """Return the media type that an Accept header likes best, the first one if it likes none.

    Types with ``as=``, tables and the like, are not offered.

    >>> preferred("application/yaml;q=0.5, application/json", ["text/plain", "application/json"])
    'application/json'
    """
    best, quality = offered[0], 0.0
    for entry in accept.split(","):
        media_type, *parameters = (part.strip() for part in entry.split(";"))
        values: dict[str, str] = {}
        for parameter in parameters:
            name, _, values[name] = parameter.partition("=")
        liked = float(values.get("q", "1"))
        if media_type in {"*/*", "application/*"}:
            media_type = offered[0]
        if media_type in offered and "as" not in values and liked > quality:
            best, quality = media_type, liked
    return best


def head(code: int, content_type: str, *, size: int | None = None) -> bytes:
    """Return the head of an answer; its body comes in chunks if it has no size."""
    length = "Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}"
    lines = (
        f"HTTP/1.1 {code} {_PHRASES.get(code, 'Refused')}",
        "Cache-Control: no-cache, private",
        f"Content-Type: {content_type}",
        f"Date: {formatdate(usegmt=True)}",
        length,
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@final
class Connection:
    """A client's connection. One thread reads; any thread may send, one at a time."""

    def __init__(self, sock: socket.socket, *, count: Callable[[int], None]) -> None:
        """``count`` is called with the number of bytes sent."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Not settimeout: a watch may be silent for as long as it likes.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT, 0))
        self._socket = sock
        self._count = count
        self._read = b""
        self._sending = threading.Lock()
        self._is_closed = False

    def request(self) -> Request | None:
        """Read the next request; None if the client goes.

        Raises:
            BadRequestError: the client sends something else.
        """
        while (end := self._read.find(b"\r\n\r\n")) < 0:
            if len(self._read) > _LONGEST_HEAD:
                raise BadRequestError("the head of the request is too long")
            if not self.wait():
                return None
        request = parse(self._read[:end])
        self._read = self._read[end + 4 :]
        while len(self._read) < request.body_size:
            if not self.wait():
                return None
        self._read = self._read[request.body_size :]
        return request

    def wait(self) -> bool:
        """Wait until the client sends more, and keep it; tell whether it did, or goes."""
        try:
            data = self._socket.recv(65_536)
        except OSError:
            return False
        self._read += data
        return bool(data)

    def send(self, data: bytes | bytearray) -> None:
        """Send all of it.

        Raises:
            GoneError: the client does not take it.
        """
        with self._sending:
            if self._is_closed:
                raise GoneError("the client closed the connection")
            try:
                self._socket.sendall(data)
            except BlockingIOError as exc:
                raise GoneError(f"the client took nothing for {_SEND_TIMEOUT} s") from exc
            except OSError as exc:
                raise GoneError(f"the client went away: {exc.strerror}") from exc
        self._count(len(data))

    def interrupt(self) -> None:
        """End what other threads do with the connection."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it is over already

    def close(self) -> None:
        """Close the connection, after a pending send has noticed."""
        self.interrupt()
        with self._sending:
            self._is_closed = True
            self._socket.close()

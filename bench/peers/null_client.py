"""A client that keeps nothing: it counts what arrives, as fast as a socket gives it.

It shows what the server and the kernel can do at most, so what no other client can be blamed for.
It speaks the peers' protocol as far as there is something to count, for JSON alone: an event ends
with ``}`` and a newline, a pod of a list has one annotation with the time it was sent.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import re
import selectors
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final, final
from urllib.parse import quote, urlsplit

__all__ = ["main"]

_EVENT_END: Final = b"}\n"
_BODY_END: Final = b"\r\n0\r\n\r\n"
_SENT: Final = b'"bench.example.com/sent":"'
_CONTINUE: Final = re.compile(rb'"continue":"([^"]*)"')
_STREAM: Final = (
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)
_READ_SIZE: Final = 1 << 20
_LIMIT: Final = 500
_TIMEOUT: Final = 120.0


@final
class _Stream:
    """One connection: its lists, and then its watch."""

    def __init__(self, url: str, path: str, *, lists: str) -> None:
        parts = urlsplit(url)
        self._host = f"{parts.hostname}:{parts.port}"
        self._path = path
        self._lists = lists
        self._buffer = bytearray(_READ_SIZE)
        self._objects = 0
        self._last = b""
        self._rest = b""
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=_TIMEOUT)

    def read(self) -> bytes:
        """Return what has arrived, at least one byte."""
        size = self.socket.recv_into(self._buffer)
        if not size:
            raise ConnectionError(f"{self._path}: the server closed the connection")
        return bytes(memoryview(self._buffer)[:size])

    def events(self) -> int:
        """Return how many events have just arrived to their end."""
        data = self.read()
        torn = self._last + data[:1] == _EVENT_END
        self._last = data[-1:]
        return data.count(_EVENT_END) + torn

    def ages(self) -> list[int]:
        """Return how old the events are that have just arrived to their end."""
        data = self._rest + self.read()
        now = time.time_ns()
        complete, _, self._rest = data.rpartition(_EVENT_END)
        return [now - int(piece[:19]) for piece in complete.split(_SENT)[1:]]

    def restart(self) -> int:
        """Wait until the server ended the watch, and start again."""
        data = b""
        while not data.endswith(_BODY_END):
            data = data[-len(_BODY_END) :] + self.read()
        return self.start(self._objects)

    def _ask(self, query: str) -> bytes:
        """Send a request; return the part of the body that has arrived."""
        request = f"GET {self._path}?{query} HTTP/1.1\r\nHost: {self._host}\r\n\r\n"
        self.socket.sendall(request.encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.read()
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(f"{self._path}?{query}: {head.splitlines()[0]!r} {body!r}")
        return body

    def start(self, objects: int) -> int:
        """List all and open a watch; return how many pods there were."""
        self._objects, self._last, self._rest = objects, b"", b""
        if self._lists == "stream":
            data = self._ask(_STREAM)
            self._last, counted = data[-1:], data.count(_EVENT_END)
            while counted < objects + 1:  # there is a bookmark
                counted += self.events()
            return objects
        counted, token, limit = 0, "", f"limit={_LIMIT}" if self._lists == "pages" else ""
        while True:
            pods, token = self._page(f"{limit}&continue={quote(token)}" if token else limit)
            counted += pods
            if not token:
                break
        self._ask("watch=true&resourceVersion=1&allowWatchBookmarks=true")
        return counted

    def _page(self, query: str) -> tuple[int, str]:
        """Return how many pods a page has, and the token of the next one."""
        data = self._ask(query)
        while len(data) < 300 and not data.endswith(_BODY_END):
            data += self.read()
        found = _CONTINUE.search(data, 0, 300)
        counted, last = data.count(_SENT), data
        while not last.endswith(_BODY_END):
            tail = last[-len(_SENT) :]
            data = self.read()
            # Invariant: the tail is shorter than what it is searched for with what follows.
            counted += (tail[1:] + data[: len(_SENT) - 1]).count(_SENT) + data.count(_SENT)
            last = tail + data
        return counted, found[1].decode() if found else ""


@final
class _Client:
    """All connections, one for each namespace or one for all pods."""

    def __init__(self, url: str, *, lists: str, namespaces: int) -> None:
        self._url = url
        self._lists = lists
        names = [f"/api/v1/namespaces/bench-{number}/pods" for number in range(namespaces)]
        self._paths = names or ["/api/v1/pods"]
        self._streams: list[_Stream] = []
        self._selector = selectors.DefaultSelector()

    def start(self, objects: int) -> int:
        """Open all; return how many pods there were."""
        counted = 0
        for path in self._paths:
            stream = _Stream(self._url, path, lists=self._lists)
            self._streams.append(stream)
            self._selector.register(stream.socket, selectors.EVENT_READ, stream)
            counted += stream.start(objects // len(self._paths))
        return counted

    def ready(self) -> Iterator[_Stream]:
        """Yield the connections on which something arrived, without end."""
        while len(self._streams) == 1:
            yield self._streams[0]
        while True:
            ready = self._selector.select(_TIMEOUT)
            if not ready:
                raise TimeoutError(f"nothing arrived for {_TIMEOUT:g} s")
            yield from (key.data for key, _ in ready)

    def expect(self, count: int) -> None:
        """Read so many events."""
        ready, counted = self.ready(), 0
        while counted < count:
            counted += next(ready).events()

    def latency(self, count: int) -> list[int]:
        """Read so many events; return how old each was, in nanoseconds, sorted."""
        ready, ages = self.ready(), list[int]()
        while len(ages) < count:
            ages.extend(next(ready).ages())
        return sorted(ages)

    def relisted(self) -> int:
        """Wait until the server ended all watches, list again and return how many there were."""
        return sum(stream.restart() for stream in self._streams)


def _say(**answer: object) -> None:
    print(json.dumps(answer), flush=True)


def _percentiles(ages: Sequence[int]) -> dict[str, int]:
    names = {"p50": 500, "p99": 990, "p999": 999, "max": 1000}
    return {name: ages[-(-len(ages) * rank // 1000) - 1] for name, rank in names.items()}


def _obey(client: _Client, command: dict[str, int | str]) -> None:
    number = int(command.get("events", command.get("objects", 0)))
    match command["do"]:
        case "start":
            counted = client.start(number)
            _say(synced=counted == number, objects=counted, delivered=counted)
        case "expect":
            _say(expecting=number)
            client.expect(number)
            _say(delivered=number)
        case "latency":
            _say(expecting=number)
            _say(delivered=number, **_percentiles(client.latency(number)))
        case "relisted":
            _say(expecting="relist")
            _say(relisted=True, objects=client.relisted())
        case "release":
            gc.collect()
            _say(released=True)
        case _:
            _say(unsupported=True)


def main(arguments: Sequence[str] = ()) -> None:
    """Execute commands until the last one, or until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.null_client")
    parser.add_argument("--url", required=True)
    parser.add_argument("--form", choices=("json",), default="json")
    parser.add_argument("--lists", choices=("whole", "pages", "stream"), default="whole")
    parser.add_argument("--fields", action="store_true", help="accepted and ignored")
    parser.add_argument("--namespaces", type=int, default=0)
    options = parser.parse_args(arguments)
    client = _Client(options.url, lists=options.lists, namespaces=options.namespaces)
    _say(ready=True, versions={"python": platform.python_version()})
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "quit":
            return
        try:
            _obey(client, command)
        except OSError as exc:
            _say(error=str(exc))


if __name__ == "__main__":
    main(sys.argv[1:])

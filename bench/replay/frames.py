"""Bodies of lists and watches: pods in frames of an encoding, in chunks of HTTP.

A chunk has one pod or one event, as a kube-apiserver sends them. Many chunks are sent at once.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Final

from bench.replay.pods import Cluster, Pods
from bench.replay.wire import Buffer

__all__ = ["ADDED", "LAST_CHUNK", "MODIFIED", "blocks", "chunk", "list_body", "page", "pod_event"]

ADDED: Final = b"ADDED"
MODIFIED: Final = b"MODIFIED"
LAST_CHUNK: Final = b"0\r\n\r\n"
_BLOCK: Final = 64
"""The number of chunks sent at once."""

Parts = tuple[Buffer, ...]


def chunk(data: bytes) -> bytes:
    """Return a chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def pod_event(pods: Pods, kind: bytes, pod: Buffer) -> Parts:
    """Return a chunk with an event, in parts."""
    wire = pods.wire
    head = wire.event_head(kind, len(pod))
    size = len(head) + len(pod) - wire.skipped + len(wire.event_tail)
    body = memoryview(pod)[wire.skipped :] if wire.skipped else pod
    return b"%x\r\n%b" % (size, head), body, wire.event_tail + b"\r\n"


def blocks(chunks: Iterable[Parts]) -> Iterator[bytes]:
    """Yield the chunks, joined to what is sent at once."""
    parts: list[Buffer] = []
    count = 0
    for one in chunks:
        parts += one
        count += 1
        if count == _BLOCK:
            yield b"".join(parts)
            parts.clear()
            count = 0
    if parts:
        yield b"".join(parts)


def page(numbers: range, *, limit: int, token: str, version: int) -> tuple[range, int]:
    """Return which pods a page has, and the version of the list it is of.

    Raises:
        ValueError: the token is none of ours.
    """
    first = numbers.start
    if token:
        try:
            listed, start = base64.urlsafe_b64decode(token).decode().split(".")
            version, first = int(listed), int(start)
        except (binascii.Error, UnicodeDecodeError, ValueError) as exc:
            raise ValueError(f"continue {token!r} is not a token of this server") from exc
        if first not in numbers:
            raise ValueError(f"continue {token!r} is of another list")
    last = min(first + limit, numbers.stop) if limit else numbers.stop
    return range(first, last), version


def list_body(
    cluster: Cluster, pods: Pods, numbers: range, *, namespace: str, version: int, last: int
) -> Iterator[bytes]:
    """Yield the chunks of a list of some pods; it is continued if they end before ``last``."""
    wire = pods.wire
    token = ""
    if numbers.stop < last:
        token = base64.urlsafe_b64encode(f"{version}.{numbers.stop}".encode()).decode()
    made: Iterable[Buffer] = (cluster.pod(pods, n, namespace=namespace) for n in numbers)
    if namespace:
        made = list(made)
        size = sum(len(pod) + len(wire.item_head(len(pod), is_first=False)) for pod in made)
    else:
        size = pods.items_size(numbers.start, numbers.stop)
    remaining = last - numbers.stop
    head = wire.list_head(version=version, token=token, remaining=remaining, size=size)
    yield chunk(head)
    yield from blocks(
        _item(wire.item_head(len(pod), is_first=not index), pod) for index, pod in enumerate(made)
    )
    yield chunk(wire.list_tail) + LAST_CHUNK


def _item(head: bytes, pod: Buffer) -> Parts:
    return b"%x\r\n%b" % (len(head) + len(pod), head), pod, b"\r\n"

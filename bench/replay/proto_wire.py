"""Lists and events in protobuf, as a kube-apiserver writes them.

An object is an envelope: four bytes that say so, and a message ``Unknown`` with the object's kind
and its bytes. A watch is frames, each behind four bytes with its length (big-endian); a frame is
a message ``WatchEvent`` with the event's type and an object in its envelope.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Final, NamedTuple, final

from bench import corpus
from bench.replay.wire import INITIAL_EVENTS_END, Buffer, Failure, Places

__all__ = ["Field", "ProtoWire", "fields", "varint"]

_MAGIC: Final = b"k8s\0"
_UNKNOWN_TAIL: Final = b"\x1a\0\x22\0"  # contentEncoding and contentType, which Go writes empty
_NODE_END: Final = b".eu-central-1.compute.internal"
_BYTES: Final = 2


# --- the format -------------------------------------------------------------------------------


class Field(NamedTuple):
    """A field of a message: its number, and where its value is."""

    number: int
    start: int
    end: int


def varint(value: int) -> bytes:
    """Return a number that is not negative as protobuf writes it."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _read_varint(data: mmap.mmap | bytes, position: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = shift = 0
    while (byte := data[position]) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
    return value | byte << shift, position + 1


def fields(data: mmap.mmap | bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message that is at ``data[start:end]``.

    Raises:
        ValueError: there is a field that is neither a varint nor bytes.
    """
    while start < end:
        tag, start = _read_varint(data, start)
        if tag & 7 == _BYTES:
            size, start = _read_varint(data, start)
            yield Field(tag >> 3, start, start + size)
            start += size
        elif tag & 7 == 0:
            _, stop = _read_varint(data, start)
            yield Field(tag >> 3, start, stop)
            start = stop
        else:
            raise ValueError(f"wire type {tag & 7} at byte {start}, which no pod has")


def _first(data: mmap.mmap | bytes, message: Field, number: int) -> Field:
    for field in fields(data, message.start, message.end):
        if field.number == number:
            return field
    raise ValueError(f"the message at byte {message.start} has no field {number}")


def _message(number: int, *parts: bytes) -> bytes:
    """Return a field whose value is a message, or a text."""
    value = b"".join(parts)
    return _head(number, len(value)) + value


def _head(number: int, size: int) -> bytes:
    return varint(number << 3 | _BYTES) + varint(size)


# --- Kubernetes' messages ---------------------------------------------------------------------


def _type_meta(kind: bytes) -> bytes:
    return _message(1, _message(1, b"v1"), _message(2, kind))


_POD: Final = _type_meta(b"Pod")
_POD_LIST: Final = _type_meta(b"PodList")


def _envelope_head(type_meta: bytes, size: int) -> bytes:
    return _MAGIC + type_meta + _head(2, size)


def _envelope(kind: bytes, *parts: bytes) -> bytes:
    raw = b"".join(parts)
    return _envelope_head(_type_meta(kind), len(raw)) + raw + _UNKNOWN_TAIL


def _event_head(kind: bytes, size: int) -> bytes:
    """Begin a frame with an envelope of ``size`` bytes."""
    head = _message(1, kind) + _head(2, len(_head(1, size)) + size) + _head(1, size)
    return (len(head) + size).to_bytes(4, "big") + head


def _status(failure: Failure) -> bytes:
    return _envelope(
        b"Status",
        _message(1),
        _message(2, b"Failure"),
        _message(3, failure.message.encode()),
        _message(4, failure.reason.encode()),
        b"\x30" + varint(failure.code),
    )


@final
class ProtoWire:
    """The encoding `bench.replay.wire.Wire` for protobuf."""

    list_type = "application/vnd.kubernetes.protobuf"
    watch_type = "application/vnd.kubernetes.protobuf;stream=watch"
    list_tail = _UNKNOWN_TAIL
    event_tail = _UNKNOWN_TAIL
    skipped = 0
    zero = 0
    sent_mark = corpus.SENT.encode() + b"\x12\x13"  # the map's value, 19 bytes

    def places(self, data: mmap.mmap | bytes, start: int, end: int) -> Places:
        """Find the fields of the pod that is at ``data[start:end]``."""
        metadata, _, status = (
            field for field in fields(data, start, end) if field.number in {1, 2, 3}
        )
        found: dict[int, Field] = {}
        for field in fields(data, metadata.start, metadata.end):
            found.setdefault(field.number, field)
            if field.number == 6:
                break
        sent = data.find(self.sent_mark, metadata.start, metadata.end) + len(self.sent_mark)
        node = data.find(_NODE_END, metadata.end, status.start) - len("000-000-000")
        restarts = _first(data, _first(data, status, 8), 5).start
        if min(sent, node) < metadata.start:
            raise ValueError(f"the pod at byte {start} is none of bench.corpus")
        places = (found[1].end - 5, found[3].start, found[5].end - 12, found[6].start)
        return Places(*(place - start for place in (*places, sent, node, restarts)))

    def moved(self, pod: Buffer, places: Places, *, namespace: bytes) -> bytes:
        """Return the pod in another namespace; the messages around that become longer."""
        data = bytes(pod)
        metadata = next(fields(data, 0, len(data)))
        parts = [
            _message(3, namespace) if field.start == places.namespace else data[begin : field.end]
            for begin, field in _with_heads(data, metadata)
        ]
        return _message(1, *parts) + data[metadata.end :]

    def list_head(self, *, version: int, token: str, remaining: int, size: int) -> bytes:
        """Begin a list whose items have ``size`` bytes, with their heads."""
        more = b"\x20" + varint(remaining) if token else b""
        texts = (_message(1), _message(2, b"%d" % version), _message(3, token.encode()))
        metadata = _message(1, *texts, more)
        return _envelope_head(_POD_LIST, len(metadata) + size) + metadata

    def item_head(self, size: int, *, is_first: bool) -> bytes:
        """Begin an item, a pod of ``size`` bytes."""
        del is_first
        return _head(2, size)

    def event_head(self, kind: bytes, size: int) -> bytes:
        """Begin an event with a pod of ``size`` bytes."""
        envelope = _envelope_head(_POD, size)
        return _event_head(kind, len(envelope) + size + len(_UNKNOWN_TAIL)) + envelope

    def bookmark(self, version: int, *, ends_list: bool = False) -> bytes:
        """Return a whole BOOKMARK event."""
        entry = (_message(1, INITIAL_EVENTS_END.encode()), _message(2, b"true"))
        annotations = _message(12, *entry) if ends_list else b""
        metadata = _message(1, _message(6, b"%d" % version), annotations)
        pod = _envelope(b"Pod", metadata, _message(2), _message(3))
        return _event_head(b"BOOKMARK", len(pod)) + pod

    def status(self, failure: Failure) -> bytes:
        """Return the body of a refusal."""
        return _status(failure)

    def error(self, failure: Failure) -> bytes:
        """Return a whole ERROR event."""
        status = _status(failure)
        return _event_head(b"ERROR", len(status)) + status


def _with_heads(data: bytes, message: Field) -> Iterator[tuple[int, Field]]:
    """Yield the fields of a message, each with the place where its tag begins."""
    begin = message.start
    for field in fields(data, message.start, message.end):
        yield begin, field
        begin = field.end

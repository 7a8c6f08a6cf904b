"""`WatchDecoder`: cuts a watch response body into frames. Uses no sockets and no clock.

First stage of the flow: bytes from the transport in, `Frame` values for the reflector out. An
event is one JSON object, ``{"type": ..., "object": {...}}``; kube-apiserver writes each on a line
of its own. client-go's decoder needs no newline and accepts one between any two tokens, and so does
this one.

Rule 1: the frames are a function of the bytes, not of how they were split into feeds.
Rule 2: an event ends with its last brace. Most lines (separated by 0x0A only) are one event, so a
line is decoded as one first. An event that continues behind a line must be the start of a JSON
value: that is checked line by line, so that a malformed event does not swallow those behind it.
Rule 3: there are three ways to decode an event, quickest first; each later one accepts all that
the earlier accepts, with the same frame. Only the last one may declare an event malformed.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple, final

import msgspec

from kinform.errors import DecodeError
from kinform.meta import Status
from kinform.sansio.wire import heads, scan

__all__ = ["MAX_FRAME", "EventType", "Frame", "WatchDecoder"]

MAX_FRAME: Final = 64 * 1024 * 1024
"""The default limit of one event's size, in bytes. etcd's own limit is 1.5 MB by default."""


class EventType(enum.StrEnum):
    """The type of a watch event. Any other type is a failure of the stream."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """No change: only ``metadata.resourceVersion`` counts."""
    ERROR = "ERROR"
    """The object is a ``Status``; the server ends the watch after it."""


class Frame(msgspec.Struct, frozen=True):
    """One watch event: its type, the object's own JSON bytes and its decoded head.

    Exactly one of ``head`` and ``error`` is set. A frame with an ``error`` is a *poison object*:
    the event is complete and the object was cut out of it, but its head cannot be decoded (too
    deep, not UTF-8, metadata of the wrong types). The stream continues behind it, and
    `kinform.sansio.wire.heads.salvage` may still find the object's uid and version.
    """

    type: EventType
    raw: bytes
    """A copy that keeps no network buffer alive."""
    head: heads.Head | None
    error: DecodeError | None = None
    """The error of decoding the head; its ``key`` is set if the object's name was found."""

    def status(self) -> Status:
        """Return the server's ``Status`` of an ERROR frame.

        Raises:
            DecodeError: if the object is not a readable ``Status``.
        """
        # All fields of a Status are optional, so any object would decode as one: check the kind.
        if self.head is None or self.head.kind != "Status":
            raise DecodeError("the event holds no Status", path="$.object.kind")
        try:
            return _decode_status(self.raw)
        except msgspec.DecodeError as exc:
            raise heads.decode_error(exc) from None

    def __repr__(self) -> str:
        # Never the payload: a Secret's data must not reach a log by way of a repr.
        key = self.head.metadata.key if self.head else self.error
        return f"<Frame {self.type} {key} {len(self.raw)} bytes>"


class _Envelope(msgspec.Struct):
    # An event in any layout. Raw skips the object without reading it: that is the first pass
    # over its bytes, the head the second.
    type: str
    object: msgspec.Raw


class _Shape(NamedTuple):
    """The first bytes of kube-apiserver's events of one type, and the offset of the object."""

    type: EventType
    prefix: bytes
    offset: int


def _shape(event_type: EventType) -> _Shape:
    prefix = b'{"type":"%b","object":{' % event_type.encode()
    return _Shape(event_type, prefix, len(prefix) - 1)


_decode_status: Final = msgspec.json.Decoder(Status).decode
_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
# Each prefix holds the object's brace, so that nothing but an object can follow it.
_SHAPES: Final = {event_type: _shape(event_type) for event_type in EventType}
_TYPES: Final = {str(event_type): event_type for event_type in EventType}
_QUOTED_TYPES: Final = {b'"%b"' % name.encode(): kind for name, kind in _TYPES.items()}
_BRACE: Final = ord("{")


@final
class WatchDecoder:
    """Cuts one watch stream into frames, independent of how it is split into reads.

    `feed` returns every frame that the new bytes complete. A complete event is returned
    at once, with or without a newline after it. When bytes on the stream cannot be an
    event, `failure` is set and the frames before it are still returned; from then on `feed`
    and `finish` raise it, because the start of the next event is unknown.

    For one task at a time; no method waits.
    """

    __slots__ = ("_is_unseparated", "_max_frame", "_shape", "_tail", "failure", "truncated")

    failure: DecodeError | None
    """The error that ends the stream behind the frames returned so far."""
    truncated: int
    """The number of bytes of an unfinished event that `finish` dropped."""

    def __init__(self, *, max_frame: int = MAX_FRAME) -> None:
        self.failure = None
        self.truncated = 0
        self._max_frame = max_frame
        # Invariant: between calls the tail is empty or starts with the first byte of a value that
        # is not known to be complete; nothing in it is consumed. It holds a newline only if the
        # value goes over several lines, and then is checked up to the last one.
        self._tail = scan.Cursor()
        # True after one value was seen right behind another: this server sends no newlines. It
        # only decides how eagerly tails are scanned, never which frames come out of them.
        self._is_unseparated = False
        # The type of the last quick frame: streams repeat themselves.
        self._shape = _SHAPES[EventType.MODIFIED]

    def feed(self, data: bytes) -> list[Frame]:
        """Return every frame that ``data`` completes; keep the rest for later.

        Raises:
            DecodeError: the `failure` of an *earlier* call. This call's own failure is only set,
                so that no frame before it is lost: look at it after each call.
        """
        if self.failure is not None:
            raise self.failure
        # A list, not a generator: nothing is lost if the caller stops early.
        frames: list[Frame] = []
        # Only new bytes are searched for the newline: those of the tail have been. So each byte
        # is searched once, appended once and decoded once: linear for any length of a line.
        start = self._end_tail(data, 0, frames) if self._tail.data else 0
        end = data.find(b"\n", start) if start >= 0 else -1
        # The hot loop: lines that lie whole in ``data``, cut out of it with a single copy.
        while end >= 0:
            frame = self._read_quick(data, start, end=end)
            if frame is not None:
                frames.append(frame)
                start = end + 1
            else:
                self._take_line(data[start:end], frames)
                start = self._end_tail(data, end + 1, frames)
                if start < 0:
                    break
            end = data.find(b"\n", start)
        if 0 <= start < len(data):
            self._keep(data[start:], frames)
        return frames

    def finish(self) -> list[Frame]:
        """Take the end of the stream; return the frames that end with it.

        A complete event without its newline is a frame. One that is cut off is dropped
        and counted in `truncated`: the caller resumes from the last version it has seen.

        Raises:
            DecodeError: the `failure` of an earlier call.
        """
        if self.failure is not None:
            raise self.failure
        frames: list[Frame] = []
        # The stream ends without a newline: an unfinished event is cut off, not malformed.
        self._drain(frames, closed=False)
        self.truncated = self._tail.left
        return frames

    def _keep(self, rest: bytes, frames: list[Frame]) -> None:
        """Add bytes without newline to the tail, and see whether they complete a value."""
        tail = self._tail
        if not tail.left:
            # Keeps the invariant that a tail starts with its value, and costs nothing for
            # the newline of an event that was returned before it came.
            rest = rest.lstrip(scan.WHITESPACE)
            if not rest:
                return
        tail.data += rest
        # The scanner is slow, and most tails are the first part of a line whose end comes with
        # the next feed. So it runs only if there is a reason: the tail may end with a value,
        # this server sends no newlines, the tail is not the start of a value, or it is over the
        # limit (unless it contains complete values). `finish` scans the rest.
        if (
            rest.rstrip(scan.WHITESPACE).endswith(b"}")
            or self._is_unseparated
            or tail.data[0] != _BRACE
            or tail.left > self._max_frame
        ):
            self._drain(frames, closed=False)

    def _end_tail(self, data: bytes, start: int, frames: list[Frame]) -> int:
        """Take lines from ``start`` on while they belong to the tail; return where they end.

        Returns -1 if the stream is broken.
        """
        tail = self._tail
        while tail.left and (end := data.find(b"\n", start)) >= 0:
            if tail.is_checked:
                tail.data += data[start : end + 1]
                self._drain(frames, closed=True)
            else:
                # The scanner's work on the tail so far is discarded: a whole line is decoded
                # faster without it.
                tail.data += data[start:end]
                line = tail.take(len(tail.data))
                tail.compact()
                self._take_line(line, frames)
            start = end + 1
        return start if self.failure is None else -1

    def _take_line(self, line: bytes, frames: list[Frame]) -> None:
        """Decode one line of any server. An event that it does not end is left in the tail.

        Sets `failure` if the stream is broken there.
        """
        value = line.strip(scan.WHITESPACE)
        if not value:  # a blank line only keeps the connection alive
            return
        # Success proves that the line is one value, so the scanner would cut the same.
        if len(value) <= self._max_frame and (frame := self._read(value)):
            frames.append(frame)
            return
        # Several values, a part of one, a poison object or garbage: the scanner decides. The
        # line is passed unstripped, because spaces in it count towards the limit as they do in
        # the tail. The tail is empty here: its value has just been taken out, if it had one.
        self._tail.data += line
        self._tail.data += b"\n"
        self._drain(frames, closed=True)

    def _drain(self, frames: list[Frame], *, closed: bool) -> None:
        """Cut every complete value from the tail. This defines the frames of a stream.

        ``closed`` says that the tail ends with a newline. Sets `failure` if the stream is broken.
        """
        tail = self._tail
        try:
            while (byte := tail.peek()) >= 0:
                if byte != _BRACE:
                    raise DecodeError("the watch sent something that is not a JSON object")
                end = tail.value_end()
                # For an unfinished value, the bytes that have arrived: a value without end must
                # exceed the limit too.
                size = (end if end >= 0 else len(tail.data)) - tail.pos
                if size > self._max_frame:
                    raise DecodeError(f"a watch event is larger than {self._max_frame} bytes")
                if end < 0:
                    break
                frames.append(self._frame(tail.take(end)))
                self._is_unseparated = self._is_unseparated or tail.peek() >= 0
            if closed and tail.left:
                _check(tail)
        except DecodeError as exc:
            self.failure = heads.detached(exc)
            tail.move(len(tail.data))
        tail.compact()

    def _read_quick(self, text: bytes, start: int, *, end: int) -> Frame | None:
        """Return the frame if ``text[start:end]`` is written exactly as kube-apiserver does.

        One structural pass: the decoder's success on the bytes between the known prefix and the
        last brace proves that they are one object, and so that the line is one event.
        """
        # A newline in text[start:] cannot be within the prefix, so it need not stop at ``end``.
        event_type, prefix, offset = self._shape
        if not text.startswith(prefix, start):
            for shape in _SHAPES.values():
                if text.startswith(shape.prefix, start):
                    event_type, _, offset = self._shape = shape
                    break
            else:
                return None
        # The object's own bytes must end with its brace, without space, as in the slower ways.
        if end - start > self._max_frame or not text.endswith(b"}}", start, end):
            return None
        raw = text[start + offset : end - 1]
        try:
            head = heads.decode_head(raw)
            if not raw.isascii():
                raw.decode()
        except heads.UNREADABLE as exc:
            # A poison object, two values in one line, or a key behind the object: decided later.
            is_typed_wrong = isinstance(exc, msgspec.ValidationError)
            found = heads.head_without_nulls(raw) if is_typed_wrong else None
            return Frame(event_type, raw, found) if found and heads.is_utf8(raw) else None
        return Frame(event_type, raw, head)

    def _read(self, value: bytes) -> Frame | None:
        """Return the frame of one event in any layout; ``None`` if it is not valid.

        Accepts keys in any order, spaces and extra keys, in two passes.
        """
        if frame := self._read_quick(value, 0, end=len(value)):
            return frame
        try:
            envelope = _decode_envelope(value)
        except heads.UNREADABLE:
            return None
        # A copy: a Raw is a window that would keep the whole line alive.
        raw = bytes(envelope.object)
        event_type = _TYPES.get(envelope.type)
        head = heads.try_head(raw)
        if event_type is None or isinstance(head, DecodeError):
            return None
        return Frame(event_type, raw, head)

    def _frame(self, value: bytes) -> Frame:
        """Return the frame of one complete value, also of a poison object."""
        return self._read(value) or _read_by_structure(value)


def _check(tail: scan.Cursor) -> None:
    """Check that the unfinished event in ``tail``, which ends with a newline, may go on.

    Raises:
        DecodeError: it never becomes JSON. Waiting for its end would lose the events behind it.
    """
    try:
        tail.check()
    except ValueError:
        raise DecodeError("the watch sent a malformed event") from None


def _read_by_structure(value: bytes) -> Frame:
    """Parse an event by its brackets alone: its object may be anything within them.

    Raises:
        DecodeError: if the envelope itself cannot be read.
    """
    # All messages are made here, so that they are the same for every split of the stream.
    # They quote nothing of the event: even a type may be a secret.
    try:
        spans = scan.members(value)
    except ValueError:
        spans = {}
    if not spans:
        raise DecodeError("the watch sent a malformed event")
    start, end = spans.get(b"type", (0, 0))
    event_type = _QUOTED_TYPES.get(value[start:end])
    if event_type is None:
        raise DecodeError("the watch sent an event of an unknown type", path="$.type")
    start, end = spans.get(b"object", (0, 0))
    raw = value[start:end]
    if not raw.startswith(b"{"):
        raise DecodeError("the watch sent an event without an object", path="$.object")
    # Usually an error, because the quicker ways have failed; but the member that they could not
    # decode may have been another one of the envelope.
    head = heads.try_head(raw)
    if isinstance(head, DecodeError):
        return Frame(event_type, raw, None, head)
    return Frame(event_type, raw, head)

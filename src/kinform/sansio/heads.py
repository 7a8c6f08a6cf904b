"""The one structural pass over an object: kind and metadata out, the rest skipped.

Everything that enters kinform as bytes passes here once, from `kinform.sansio.watch` and
`kinform.sansio.list`. What cannot be read is an answer too: `try_head` returns the error, so
that one poison object costs its kind nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kinform.errors import DecodeError
from kinform.meta import ObjectMeta
from kinform.sansio import scan

__all__ = [
    "UNREADABLE",
    "Body",
    "Head",
    "Outline",
    "decode_error",
    "decode_head",
    "decode_outline",
    "detached",
    "is_utf8",
    "read_head",
    "salvage",
    "try_head",
]


# gc=False is safe: a head is frozen and holds text and metadata only, so no cycle can pass
# through it. It saves the collector one object per Kubernetes object: a hundred thousand of them
# are kept alive for as long as the program runs, and every full collection would visit each.
class Outline(msgspec.Struct, frozen=True, gc=False):
    """What kinform reads of every object. Everything else stays bytes."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class Head(Outline, frozen=True, gc=False, eq=False):  # noqa: PLW1641 - dicts within: no hash
    """An `Outline`, and where in its bytes stand the two members that are asked for most.

    They are windows: they keep the bytes alive that the head was read from, all of them. So a
    head must not outlive its bytes: `without_windows`.
    """

    spec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, wherever it was read."""
        if not isinstance(other, Head):
            return NotImplemented
        mine = (self.metadata, self.kind, self.api_version)
        return mine == (other.metadata, other.kind, other.api_version)

    def without_windows(self) -> Head:
        """Return the same, to be kept with other bytes."""
        return Head(self.api_version, self.kind, self.metadata)


class Body(msgspec.Struct, frozen=True, gc=False):
    """One object as it arrived: its own copy of the JSON bytes, and its head."""

    raw: bytes
    head: Head


# The bound method itself: a function around it would cost each object another call.
decode_head: Final[Callable[[bytes], Head]] = msgspec.json.Decoder(Head).decode
"""The bare pass, for hot loops: raises one of `UNREADABLE`, and leaves UTF-8 unchecked where it
skips. A success proves that the bytes are exactly one JSON object."""

decode_outline: Final[Callable[[memoryview], Outline]] = msgspec.json.Decoder(Outline).decode
"""As `decode_head`, for bytes of which only a view is had: no window may stay open there."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What `decode_head` raises. Only of ``msgspec.ValidationError`` and ``RecursionError`` is it
certain that another cut of the bytes would not help; even they do not prove the cut right."""


def read_head(raw: bytes) -> Head:
    """Read kind and metadata of one JSON object, checking all of its structure.

    Raises:
        DecodeError: if ``raw`` is not exactly one JSON object, nests too deep, is not UTF-8,
            or its metadata has fields of the wrong type. The message holds no payload;
            ``key`` is set if name and namespace could still be made out.
    """
    head = try_head(raw)
    if isinstance(head, DecodeError):
        raise head
    return head


def try_head(raw: bytes) -> Head | DecodeError:
    """Do as `read_head`, but return the error.

    The error was never raised: it carries no traceback and so keeps no buffer alive.
    """
    # msgspec's skipping pass does not look inside strings it skips: check UTF-8 apart, and
    # first, so that the same bytes give the same message wherever the bad ones are. isascii()
    # runs at memory speed and is true of nearly all objects; decode() builds a throw-away str.
    try:
        if not raw.isascii():
            raw.decode()
        return decode_head(raw)
    except UNREADABLE as exc:
        # Depth limits differ by Python version and by how deep the caller already is: what is
        # poison here may be readable there. Nothing may depend on where the line is.
        error = decode_error(exc)
    # Outside of the handler, or the error would carry the decoder's exception as its context.
    saved = salvage(raw)
    error.key = str(saved.key) if saved.name else ""
    return error


def decode_error(exc: msgspec.DecodeError | UnicodeDecodeError | RecursionError) -> DecodeError:
    """Turn a decoder's complaint into ours, with the JSON path apart from the text."""
    if isinstance(exc, RecursionError):
        return DecodeError("the object nests deeper than this Python can read")
    if isinstance(exc, UnicodeDecodeError):
        error = DecodeError(f"invalid UTF-8 at byte {exc.start}")
    else:
        # msgspec names types and positions; map keys appear as ``[...]``. The value that fits no
        # enum and no tag of a union is quoted, and may itself look like a path.
        message, _, path = str(exc).rpartition(" - at `")
        if not message:
            message, path = path, ""
        error = DecodeError(_without_value(message), path=path.rstrip("`"))
    error.is_damaged = not isinstance(exc, msgspec.ValidationError)
    return error


def _without_value(message: str) -> str:
    for quoting in ("Invalid value", "Invalid enum value"):
        if message.startswith(quoting):
            return quoting
    return message


def detached(error: DecodeError) -> DecodeError:
    """Return ``error`` cut off from where it was raised, to be kept.

    A traceback holds frames, frames hold their callers, and all of them their buffers.
    """
    error.__traceback__ = error.__context__ = None
    return error


def is_utf8(raw: bytes) -> bool:
    """Tell whether these bytes are text."""
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError:
            return False
    return True


def _has_no_namespace(metadata: bytes, spans: Mapping[bytes, tuple[int, int]]) -> bool:
    """Tell whether there is really none, rather than one that was damaged, or its member's name."""
    start, end = spans.get(b"namespace", (0, 0))
    is_known = b"namespace" in spans or is_utf8(b"".join(spans))
    return is_known and metadata[start:end] in {b"", b"null", b'""'}


def salvage(raw: bytes) -> ObjectMeta:
    """Read what identifies an object that `read_head` refuses, each field by itself.

    Returns metadata with name, namespace, uid and resourceVersion as far as they are there and
    are text; ``""`` stands for the rest. Never fails: no key, no name. There is none either if it
    cannot be told in which namespace it is: the name alone would be that of another object.
    """
    # By structure, never by decoding the whole: depth and bad bytes elsewhere do not matter.
    try:
        start, end = scan.members(raw)[b"metadata"]
        metadata = raw[start:end]
        spans = scan.members(metadata)
    except (ValueError, KeyError):
        return ObjectMeta()

    # One by one, because metadata may be what is wrong: a number for a label must not cost the
    # name. An absent field is the empty span, which is no JSON either.
    def text(name: bytes) -> str:
        start, end = spans.get(name, (0, 0))
        try:
            return msgspec.json.decode(metadata[start:end], type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""

    namespace = text(b"namespace")
    return ObjectMeta(
        name=text(b"name") if namespace or _has_no_namespace(metadata, spans) else "",
        namespace=namespace,
        uid=text(b"uid"),
        resource_version=text(b"resourceVersion"),
    )

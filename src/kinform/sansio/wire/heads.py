"""`Head`: kind and metadata of an object, decoded in one pass that skips the rest.

Every object from `kinform.sansio.wire.watch` and `kinform.sansio.wire.list` passes here once.
`try_head` returns the error of an object that cannot be decoded, so that one poison object does not
fail the whole list or watch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from kinform.errors import DecodeError
from kinform.meta import ObjectMeta
from kinform.sansio.wire import scan

__all__ = [
    "UNREADABLE",
    "Body",
    "Head",
    "Outline",
    "decode_error",
    "decode_head",
    "decode_outline",
    "detached",
    "head_without_nulls",
    "is_utf8",
    "read_head",
    "salvage",
    "try_head",
    "try_strict",
    "without_nulls",
]


# gc=False is safe: a head is frozen and holds text and metadata only, so no cycle can pass
# through it. It saves the collector one object per Kubernetes object: a hundred thousand of them
# are kept alive for as long as the program runs, and every full collection would visit each.
class Outline(msgspec.Struct, frozen=True, gc=False):
    """The decoded part of every object. Everything else stays bytes."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class Head(Outline, frozen=True, gc=False, eq=False):  # noqa: PLW1641 - dicts within: no hash
    """An `Outline`, and views of the two members that are accessed most.

    The views keep all the bytes alive that the head was decoded from. To keep a head longer than
    its bytes, use `without_windows`.
    """

    spec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same content."""
        if not isinstance(other, Head):
            return NotImplemented
        mine = (self.metadata, self.kind, self.api_version)
        return mine == (other.metadata, other.kind, other.api_version)

    def without_windows(self) -> Head:
        """Return a copy without views, to be kept with other bytes."""
        return Head(self.api_version, self.kind, self.metadata)


class Body(msgspec.Struct, frozen=True, gc=False):
    """One object as it arrived: its own copy of the JSON bytes, and its head."""

    raw: bytes
    head: Head


# The bound method itself: a function around it would cost each object another call.
decode_head: Final[Callable[[bytes], Head]] = msgspec.json.Decoder(Head).decode
"""The bare decoder, for hot loops: raises one of `UNREADABLE`, and does not check UTF-8 in the
parts it skips. A success proves that the bytes are exactly one JSON object."""

decode_outline: Final[Callable[[memoryview], Outline]] = msgspec.json.Decoder(Outline).decode
"""As `decode_head`, for a memoryview, of which the head must keep no views."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of `decode_head`. After ``msgspec.ValidationError`` and ``RecursionError`` another cut
of the bytes would not help; but even these do not prove that the cut is right."""


def read_head(raw: bytes) -> Head:
    """Decode kind and metadata of one JSON object, checking all of its structure.

    Raises:
        DecodeError: if ``raw`` is not exactly one JSON object, nests too deep, is not UTF-8,
            or its metadata has fields of the wrong type. The message holds no payload;
            ``key`` is set if name and namespace could still be found.
    """
    head = try_strict(raw)
    if isinstance(head, DecodeError):
        head = try_head(raw)
        if isinstance(head, DecodeError):
            raise head
    return head


def try_head(raw: bytes) -> Head | DecodeError:
    """Do as `read_head`, but return the error.

    The error was never raised: it carries no traceback and so keeps no buffer alive.
    """
    found = try_strict(raw)
    # A type error may be a null, which means "not set". The slower pass is only for these.
    if isinstance(found, DecodeError) and found.path:
        clean = without_nulls(raw)
        if clean is None:  # the decoder stops at a type error, and may not have seen the damage
            found.is_damaged = not _is_json(raw)
        elif not isinstance(found := try_strict(clean), DecodeError):
            return _own(found)
    if not isinstance(found, DecodeError):
        return found
    # The key says which object to quarantine. Without it the whole watch must end.
    saved = salvage(raw)
    found.key = str(saved.key) if saved.name else ""
    return found


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def try_strict(raw: bytes) -> Head | DecodeError:
    """Do as `try_head`, but refuse nulls, and leave the error's ``key`` empty."""
    # msgspec does not check strings that it skips: check UTF-8 separately, and first, so that
    # the message does not depend on the position of the bad bytes. isascii() runs at memory
    # speed and is true for nearly all objects; decode() builds a throw-away str.
    try:
        if not raw.isascii():
            raw.decode()
        return decode_head(raw)
    except UNREADABLE as exc:
        # Depth limits differ by Python version and by the caller's own stack depth: a poison
        # object here may be readable there. Nothing may depend on the exact limit.
        return decode_error(exc)


def head_without_nulls(raw: bytes) -> Head | None:
    """Return the head of an object that `decode_head` refused, if only nulls were the reason.

    A head proves that ``raw`` is exactly one JSON object; UTF-8 is unchecked, as there.
    """
    clean = without_nulls(raw)
    if clean is None:
        return None
    try:
        return _own(decode_head(clean))
    except UNREADABLE:
        return None


def _own(head: Head) -> Head:
    """Return ``head`` without views of the bytes it was decoded from, which are not kept."""
    metadata = head.metadata
    if isinstance(metadata.raw_annotations, msgspec.Raw):
        force_setattr(metadata, "raw_annotations", metadata.raw_annotations.copy())
    return head.without_windows()


def without_nulls(raw: bytes) -> bytes | None:
    """Return the object without the nulls in its kind, apiVersion and metadata.

    A null is a field that is not set: Go decodes it as the zero value. So a null member is left
    out, and a null that is the value of a label or an element of an array becomes the zero value
    of its type. The rest of the object stays byte for byte. ``None``: no null was found there, or
    ``raw`` is not one JSON object.
    """
    # Slow, and only for bytes that the strict decoder has refused.
    try:
        members = _read_members(raw)
        metadata = _read_fields(members.get("metadata", _NULL)) or {}
        fields = {name: _CLEANERS.get(name, _as_is)(value) for name, value in metadata.items()}
    except UNREADABLE:
        return None
    fields = {name: value for name, value in fields.items() if value != _NULL}
    kept = {
        name: value for name, value in members.items() if value != _NULL or name not in _HEADING
    }
    # Nothing changed, so another decode would fail in the same way.
    if fields == metadata and kept == members:
        return None
    if "metadata" in kept:
        kept["metadata"] = _raw(fields)
    return msgspec.json.encode(kept)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _as_is(value: msgspec.Raw) -> msgspec.Raw:
    return value


def _zero_texts(value: msgspec.Raw) -> msgspec.Raw:
    """Replace the nulls in labels or annotations by the empty text."""
    found = _read_fields(value) or {}
    if _NULL not in found.values():
        return value
    return _raw({name: _ZERO_TEXT if one == _NULL else one for name, one in found.items()})


def _zero_names(value: msgspec.Raw) -> msgspec.Raw:
    """Replace the nulls in finalizers by the empty text."""
    found = _read_names(value) or []
    if _NULL not in found:
        return value
    return _raw([_ZERO_TEXT if one == _NULL else one for one in found])


def _zero_members(value: msgspec.Raw) -> msgspec.Raw:
    """Remove the null members of owners or managed fields."""
    found = _read_elements(value) or []
    kept = [
        {name: one for name, one in (element or {}).items() if one != _NULL} for element in found
    ]
    return value if kept == found else _raw(kept)


_Fields: TypeAlias = dict[str, msgspec.Raw]
_read_members: Final[Callable[[bytes], _Fields]] = msgspec.json.Decoder(_Fields).decode
_read_fields: Final[Callable[[msgspec.Raw], _Fields | None]] = msgspec.json.Decoder(
    _Fields | None
).decode
_read_names: Final[Callable[[msgspec.Raw], list[msgspec.Raw] | None]] = msgspec.json.Decoder(
    list[msgspec.Raw] | None
).decode
_read_elements: Final[Callable[[msgspec.Raw], list[_Fields | None] | None]] = msgspec.json.Decoder(
    list[_Fields | None] | None
).decode
_HEADING: Final = frozenset({"apiVersion", "kind", "metadata"})
_NULL: Final = msgspec.Raw(b"null")
_ZERO_TEXT: Final = msgspec.Raw(b'""')
_CLEANERS: Final[Mapping[str, Callable[[msgspec.Raw], msgspec.Raw]]] = {
    "labels": _zero_texts,
    "annotations": _zero_texts,
    "finalizers": _zero_names,
    "ownerReferences": _zero_members,
    "managedFields": _zero_members,
}


def decode_error(exc: msgspec.DecodeError | UnicodeDecodeError | RecursionError) -> DecodeError:
    """Return a decoder's error as a `DecodeError`, with the JSON path separate from the text."""
    if isinstance(exc, RecursionError):
        return DecodeError("the object nests deeper than this Python can read")
    if isinstance(exc, UnicodeDecodeError):
        error = DecodeError(f"invalid UTF-8 at byte {exc.start}")
    else:
        # msgspec names types and positions; map keys appear as ``[...]``. A value outside an enum
        # or a tagged union is quoted, and may itself look like a path.
        message, _, path = str(exc).rpartition(" - at `")
        if not message:
            message, path = path, ""
        error = DecodeError(_without_value(message), path=path.rstrip("`"))
    # Valid JSON with a wrong type is what the server has stored. Only invalid JSON or UTF-8 may
    # have been corrupted on the way, and is worth another request.
    error.is_damaged = not isinstance(exc, msgspec.ValidationError)
    return error


def _without_value(message: str) -> str:
    for quoting in ("Invalid value", "Invalid enum value"):
        if message.startswith(quoting):
            # The rest of the message quotes a value of the object, which may be a secret.
            return quoting
    return message


def detached(error: DecodeError) -> DecodeError:
    """Return ``error`` without its traceback and context, to be kept.

    A traceback keeps frames alive, their callers, and all their buffers.
    """
    error.__traceback__ = error.__context__ = None
    return error


def is_utf8(raw: bytes) -> bool:
    """Return whether these bytes are valid UTF-8."""
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError:
            return False
    return True


def _has_no_namespace(metadata: bytes, spans: Mapping[bytes, tuple[int, int]]) -> bool:
    """Return whether the namespace is really absent, and not corrupted (value or key)."""
    start, end = spans.get(b"namespace", (0, 0))
    is_known = b"namespace" in spans or is_utf8(b"".join(spans))
    return is_known and metadata[start:end] in {b"", b"null", b'""'}


def salvage(raw: bytes) -> ObjectMeta:
    """Decode the identity of an object that `read_head` refuses, each field by itself.

    Returns metadata with name, namespace, uid and resourceVersion where they are present and
    text, else ``""``. Never fails. The name is left out if the namespace is corrupted: the name
    alone would be that of another object.
    """
    # By structure, never by decoding the whole: depth and bad bytes elsewhere do not matter.
    try:
        start, end = scan.members(raw)[b"metadata"]
        metadata = raw[start:end]
        spans = scan.members(metadata)
    except (ValueError, KeyError):
        return ObjectMeta()

    # One by one, because the metadata itself may be wrong: a number for a label must not hide the
    # name. An absent field is the empty span, which is not JSON either.
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

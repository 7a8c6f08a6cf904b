"""Protobuf bodies, as Go clients send them for built-in kinds.

Such a body is an envelope: four bytes that say so, then a message with the object's kind and its
bytes. `unwrap` opens it, `read` makes of it the object that the client would have sent as JSON.
The tables of the kinds' fields are package data (see ``tools/record_protobuf.py``).
"""

from __future__ import annotations

import functools
import lzma
from collections.abc import Sequence
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver._recorded import FOLDER
from kinform.apiserver.serializer import protobuf_wire as wire
from kinform.apiserver.serializer.json_values import Json, text
from kinform.apiserver.serializer.protobuf_wire import Line, WireError

__all__ = ["MEDIA_TYPE", "Envelope", "WireError", "preload", "read", "unwrap"]

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\0"
_UNKNOWN: Final = "runtime.Unknown"
_TYPE_META: Final = "runtime.TypeMeta"
_ENVELOPE: Final[dict[str, list[Line]]] = {
    _UNKNOWN: [
        (1, "TypeMeta", "type", _TYPE_META, ""),
        (2, "Raw", "raw", "octets", ""),
        (3, "ContentEncoding", "encoding", "string", ""),
        (4, "ContentType", "media_type", "string", ""),
    ],
    _TYPE_META: [
        (1, "APIVersion", "apiVersion", "string", "o"),
        (2, "Kind", "kind", "string", "o"),
    ],
}


class Envelope(NamedTuple):
    """The contents of a body: an object's bytes, and the kind that it declares."""

    api_version: str
    kind: str
    raw: bytes


@final
class _Data(msgspec.Struct, frozen=True):
    kinds: dict[str, str]
    """The name of a kind's message, by ``apiVersion/kind``."""
    messages: dict[str, list[Line]]


def preload() -> None:
    """Read the package's data. Blocks; later calls do nothing."""
    _data()


def unwrap(body: bytes) -> Envelope:
    """Open the envelope of a body.

    Raises:
        WireError: it is none, in the server's words.
    """
    if not body:
        raise WireError("empty data")
    if not body.startswith(_MAGIC):
        shown = " ".join(map(str, _MAGIC))
        text_ = "provided data does not appear to be a protobuf message"
        raise WireError(f"{text_}, expected prefix [{shown}]")
    if len(body) == len(_MAGIC):
        raise WireError("empty body")
    found = wire.read(wire.message(_UNKNOWN, _envelope_lines), body[len(_MAGIC) :], {})
    api_version = text(found, "type", "apiVersion")
    raw: bytes = found.get("raw", b"")
    if api_version.count("/") > 1:
        # Go cannot make a version of it, and then goes by the path alone.
        return Envelope("", "", raw)
    return Envelope(api_version, text(found, "type", "kind"), raw)


def read(envelope: Envelope, *, kind: str, api_version: str = "") -> Json:
    """Return the object in an envelope; one that does not say so is of ``kind``.

    An object of an unknown kind has no fields, and `decoding.check` refuses it.

    Raises:
        WireError: its bytes are no such object, in Go's words.
    """
    obj: Json = {}
    if envelope.api_version:
        obj["apiVersion"] = envelope.api_version
    if envelope.kind:
        obj["kind"] = envelope.kind
    what = _message(envelope.api_version or api_version, envelope.kind or kind)
    if what is None:
        return obj
    try:
        return wire.read(what, envelope.raw, obj)
    except RecursionError as exc:
        raise WireError("exceeded max depth") from exc


def _message(api_version: str, kind: str) -> wire.Message | None:
    """Return a kind's message; without a version, that of any version which has the kind."""
    name = _data().kinds.get(f"{api_version}/{kind}") if api_version else _any_version().get(kind)
    return wire.message(name, _data_lines) if name else None


def _envelope_lines(name: str) -> Sequence[Line]:
    return _ENVELOPE[name]


def _data_lines(name: str) -> Sequence[Line]:
    return _data().messages[name]


@functools.cache
def _any_version() -> dict[str, str]:
    found = sorted(_data().kinds.items(), reverse=True)
    return {full_name.rpartition("/")[2]: message for full_name, message in found}


@functools.cache
def _data() -> _Data:
    packed = FOLDER.joinpath("protobuf.json.xz").read_bytes()
    return msgspec.json.decode(lzma.decompress(packed), type=_Data)

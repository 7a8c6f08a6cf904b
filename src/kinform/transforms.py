"""Transforms: functions that an informer applies to each object before it is stored.

A transform takes an object and returns the one to keep. It runs once per object, between decoding
and storing, so it must be fast: those here cut bytes and build no dict.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from kinform.objects.object import Object
from kinform.sansio.wire import heads

__all__ = ["strip_managed_fields"]


class _Outline(msgspec.Struct, gc=False):
    metadata: Raw


_NAME: Final = "managedFields"
_KEY: Final = b'"managedFields"'
_MEMBER: Final = b',"managedFields":['
_BRACE: Final = ord("}")

_outline: Final = msgspec.json.Decoder(_Outline).decode
_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def strip_managed_fields(obj: Object) -> Object:
    """Return ``obj`` without ``metadata.managedFields``, which few programs read.

    In pods that is about a fifth of the bytes. Nothing is decoded: the bytes are cut out, and all
    others stay the same. An object without managedFields is returned itself.

    >>> pod = Object.from_bytes(b'{"metadata":{"name":"a","managedFields":[{}]},"spec":{}}')
    >>> strip_managed_fields(pod).raw
    b'{"metadata":{"name":"a"},"spec":{}}'

    Two things that no server sends are not handled: the name spelled with escapes, and
    ``metadata`` written twice.
    """
    raw = obj.raw
    first = raw.find(_KEY)
    if first < 0:
        return obj
    cut = _cut_at(raw, first) or _cut_anywhere(raw)
    return obj if cut is None else Object(cut, obj.head.without_windows())


def _cut_at(raw: bytes, key: int) -> bytes | None:
    """Cut out the first ``managedFields`` member, if it is proven to be that of the metadata.

    That is so for everything that kube-apiserver writes. Otherwise ``None``.
    """
    if not raw.startswith(_MEMBER, key - 1):
        return None
    # A guess: no managed field is a list, so the next bracket closes the list of them.
    end = raw.find(b"]", key) + 1
    text = raw[:end] + b"}}"
    try:
        metadata = bytes(_outline(text).metadata)
    except heads.UNREADABLE:
        return None
    # With two braces the text is one JSON object: so the bracket closed the list, and the list is a
    # member of an object in the object. That is the metadata if both end alike; an equal object
    # elsewhere would contain such a key before the first one.
    if not text.endswith(metadata, 0, len(text) - 1):
        return None
    # If the key is repeated, all must be removed. The metadata of typed kinds ends here; in custom
    # resources, whose keys are sorted, more members follow.
    if raw[end] != _BRACE and raw.find(_KEY, end) >= 0:
        return None
    return raw[: key - 1] + raw[end:]


def _cut_anywhere(raw: bytes) -> bytes | None:
    """Encode the object anew without ``managedFields``; ``None`` if it has none. For any layout.

    Values are copied as they are. Of repeated keys the last one counts, as in any JSON decoder.
    """
    try:
        outer = _members(raw)
        inner = _members(outer["metadata"])
        del inner[_NAME]
    except (KeyError, *heads.UNREADABLE):
        return None
    outer["metadata"] = Raw(msgspec.json.encode(inner))
    return msgspec.json.encode(outer)

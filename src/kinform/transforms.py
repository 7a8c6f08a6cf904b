"""Transforms: what an informer may do to each object before it is stored.

A transform takes an object and returns the one to keep. It runs once per object, on the way from
the network to the store, so it has to be quick: those here cut bytes and build no dict.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from kinform.objects import Object
from kinform.sansio import heads

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
    """Return ``obj`` without ``metadata.managedFields``, which few read and everybody receives.

    In pods that is about a fifth of the bytes. Nothing is decoded: they are cut out, the
    others stay as they came, and so do kind and metadata, which leave managedFields out anyway.
    An object that has none is returned itself.

    >>> pod = Object.from_bytes(b'{"metadata":{"name":"a","managedFields":[{}]},"spec":{}}')
    >>> strip_managed_fields(pod).raw
    b'{"metadata":{"name":"a"},"spec":{}}'

    What no server does may be overlooked: to spell the name with escapes, or to write
    ``metadata`` twice.
    """
    raw = obj.raw
    first = raw.find(_KEY)
    if first < 0:
        return obj
    cut = _cut_at(raw, first) or _cut_anywhere(raw)
    return obj if cut is None else Object(cut, obj.head.without_windows())


def _cut_at(raw: bytes, key: int) -> bytes | None:
    """Cut out the member whose key is the first of its name, if that is proven to be the one.

    It is for all that kube-apiserver writes. Else ``None``: it is not, or it is hard to tell.
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
    # Two braces made it one JSON object: so the bracket closed the list, and the list is a
    # member of an object in the object. That is the metadata if they end alike; an equal one
    # elsewhere would hold a key like this before the first.
    if not text.endswith(metadata, 0, len(text) - 1):
        return None
    # If the name is repeated, all have to go. Typed kinds end their metadata here; in custom
    # resources, whose names are sorted, more follows.
    if raw[end] != _BRACE and raw.find(_KEY, end) >= 0:
        return None
    return raw[: key - 1] + raw[end:]


def _cut_anywhere(raw: bytes) -> bytes | None:
    """Put the object together again without it, whatever the layout; ``None`` if it has none.

    Values are copied as they are. Of names that are repeated the last counts, as everywhere.
    """
    try:
        outer = _members(raw)
        inner = _members(outer["metadata"])
        del inner[_NAME]
    except (KeyError, *heads.UNREADABLE):
        return None
    outer["metadata"] = Raw(msgspec.json.encode(inner))
    return msgspec.json.encode(outer)

"""Recorded answers of a real kube-apiserver 1.36 for objects of many kinds.

``tables`` has objects with the rows that it made of them, ``creates`` what was sent and what came
back (the object, or the text of its refusal), ``updates`` the same with the object before.
"""

from __future__ import annotations

import copy
import functools
import json
import lzma
from pathlib import Path
from typing import Any

from kinform.apiserver import validation
from kinform.apiserver.defaults import core, others, rbac
from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind

Json = dict[str, Any]

PREPARE_CREATE = {**core.PREPARE_CREATE, **rbac.PREPARE_CREATE, **others.PREPARE_CREATE}
PREPARE_UPDATE = {**core.PREPARE_UPDATE, **rbac.PREPARE_UPDATE, **others.PREPARE_UPDATE}
DEFAULTS = {**core.DEFAULTS, **rbac.DEFAULTS, **others.DEFAULTS}


@functools.cache
def recorded() -> Json:
    packed = Path(__file__).with_name("data_objects.json.xz").read_bytes()
    return json.loads(lzma.decompress(packed))


@functools.cache
def _builtin() -> kind_registry.Kinds:
    return kind_registry.builtin()


def kind_at(path: str) -> tuple[Kind, str]:
    """Return the kind at a path of the API, and the subresource."""
    parts = path.strip("/").split("/")
    group, parts = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
    version, rest = parts[0], parts[1:]
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        rest = rest[2:]
    found = _builtin().find(group, version, rest[0])
    assert found is not None, path
    return found, rest[2] if len(rest) > 2 else ""


def kind_of(key: str, columns: list[Json] | None = None) -> Kind:
    """Return the kind of ``group/version/plural``; one with columns is custom."""
    group, version, plural = key.split("/")
    found = _builtin().find(group, version, plural)
    if found is not None:
        return found
    custom = CustomVersion(definition=f"{plural}.{group}", schema={}, columns=tuple(columns or ()))
    return Kind(
        group=group,
        version=version,
        kind=plural.title(),
        plural=plural,
        singular=plural,
        namespaced=True,
        verbs=(),
        storage=f"{plural}.{group}",
        custom=custom,
    )


def without_nulls(value: Any) -> Any:
    """Return what the decoder makes of a body: fields that are null are not there."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def created(path: str, body: Json) -> tuple[Json, list[FieldError]]:
    """Do what the server does with a new object; return it, and what is wrong with it."""
    kind, _ = kind_at(path)
    obj = without_nulls(copy.deepcopy(body))
    if kind.namespaced:
        obj["metadata"]["namespace"] = "objects"
    obj["kind"] = kind.kind
    if kind.storage in PREPARE_CREATE:
        PREPARE_CREATE[kind.storage](obj)
    if kind.storage in DEFAULTS:
        DEFAULTS[kind.storage](obj)
    return obj, validation.validate(kind, obj)


def updated(path: str, old: Json, new: Json) -> tuple[Json, list[FieldError]]:
    """Do what the server does with a change; return the object, and what is wrong with it."""
    kind, subresource = kind_at(path)
    before, after = copy.deepcopy(old), without_nulls(copy.deepcopy(new))
    if not subresource and kind.storage in PREPARE_UPDATE:
        PREPARE_UPDATE[kind.storage](after, before)
    if kind.storage in DEFAULTS:
        DEFAULTS[kind.storage](after)
    return after, validation.validate_update(kind, after, before)

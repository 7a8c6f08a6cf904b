"""Server-side apply: sets of fields, and who owns what after a sequence of applies."""

# ruff: noqa: PT017 - a refusal is one of two valid results, and is checked where it is caught

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.fieldmanager import apply, field_sets, managed_fields
from kinform.apiserver.fieldmanager.field_sets import FieldSet
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.json_values import Json
from tests.apiserver import recorded_apply

_NOW = "2026-01-01T00:00:00Z"
_KINDS = ("widgets", "looses", "apps/v1/deployments", "v1/services", "v1/configmaps", "v1/pods")
_MOST = 6


def _documents(data: bytes) -> list[Any]:
    """Return the JSON objects among the lines."""
    found: list[Any] = []
    for line in data.split(b"\n")[:_MOST]:
        try:
            document = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        if isinstance(document, dict):
            found.append(document)
    return found


def fuzz_field_sets(data: bytes) -> None:
    """Field sets obey the laws of sets, for any input of a client. Input: two lines."""
    match [document for document in _documents(data) if field_sets.is_valid(document)]:
        case [one, other, *_]:
            pass
        case _:
            return
    before = json.dumps([one, other])
    union = field_sets.union(one, other)
    both = field_sets.intersection(one, other)
    only = field_sets.difference(one, other)
    mine, theirs = _paths(one), _paths(other)
    assert _paths(union) == mine | theirs
    assert _paths(both) == mine & theirs
    assert _paths(only) == mine - theirs
    left = {path for path in mine if not any(path[: len(gone)] == gone for gone in theirs)}
    assert _paths(field_sets.without(one, other)) == left
    assert _paths(field_sets.ordered(one)) == mine
    assert len([*field_sets.paths(one)]) == len(mine)
    assert all(field_sets.is_valid(result) for result in (union, both, only))
    assert json.dumps([one, other]) == before


def _paths(one: FieldSet, start: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for name, below in one.items():
        if name != ".":
            if not below or "." in below:
                found.add((*start, name))
            found |= _paths(below, (*start, name))
    return found


def fuzz_server_side_apply(data: bytes) -> None:
    """Applies in turn by two managers: only refusals, no change of arguments, same again is same.

    Input: a kind in the first line, then configurations.
    """
    first, _, rest = data.partition(b"\n")
    name = first.decode("latin-1")
    kind, schema = recorded_apply.kind_of(name if name in _KINDS else "widgets")
    live: Any = None
    for number, config in enumerate(_documents(rest)):
        # Fields that the server has checked before: kind and name.
        config |= {"apiVersion": kind.api_version, "kind": kind.kind}
        if isinstance(metadata := config.setdefault("metadata", {}), dict):
            metadata["name"] = "w"
        before = json.dumps([live, config])
        manager, force = "ab"[number % 2], number % 3 != 1
        merged = _applied(kind, schema, config, live=live, manager=manager, force=force)
        assert json.dumps([live, config]) == before
        if merged is None:
            continue
        _check_owners(merged)
        # To own an object that has become empty, one more apply may be needed; no more than that.
        again = _applied(kind, schema, config, live=merged, manager=manager, force=True)
        assert again is not None
        last = _applied(kind, schema, config, live=again, manager=manager, force=True)
        assert last is not None
        assert managed_fields.restore_times(last, again)
        live = merged


def _applied(kind: Kind, schema: Schema, config: Json, **options: Any) -> Json | None:
    """Return the object that is stored after an apply; None if it is refused."""
    try:
        merged = apply.apply(kind, schema, config, now=_NOW, **options)
        stored = copy.deepcopy(merged)
        decoding.convert(kind, schema, stored)
    except StatusError as exc:
        assert exc.code in {400, 409, 500}
        assert exc.message
        return None
    return stored


def _check_owners(merged: dict[str, Any]) -> None:
    entries = merged["metadata"].get("managedFields") or []
    owners = managed_fields.decode(copy.deepcopy(entries))
    assert owners is not None
    assert len(owners) == len(entries)
    assert all(field_sets.is_valid(entry["fieldsV1"]) for entry in entries)

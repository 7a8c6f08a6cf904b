"""Patches: the server's against their definitions, and the client's against the server's."""

# ruff: noqa: PT017 - a refusal is one of two valid results, and is checked where it is caught

from __future__ import annotations

import copy
import functools
import json
from typing import Any

import msgspec

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.patch import json_patch, merge_patch, strategic_merge
from kinform.apiserver.scheme import schemas
from kinform.apiserver.scheme.schemas import ANYTHING
from kinform.errors import UsageError
from kinform.sansio import json_diff as diffs

_TARGETS: dict[str, tuple[str, dict[str, Any]]] = {
    "Pod": (
        "io.k8s.api.core.v1.Pod",
        {
            "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x/a", "x/b"]},
            "spec": {
                "containers": [
                    {
                        "name": "a",
                        "image": "1",
                        "command": ["x", "y"],
                        "env": [{"name": "A", "value": "1"}, {"name": "B"}],
                        "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
                    },
                    {"name": "b", "image": "2"},
                ],
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "t1"}],
                "volumes": [{"name": "v1", "emptyDir": {}}, {"name": "v2"}],
            },
        },
    ),
    "Deployment": (
        "io.k8s.api.apps.v1.Deployment",
        {
            "metadata": {"name": "d"},
            "spec": {
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
                "template": {"spec": {"containers": [{"name": "a"}]}},
            },
        },
    ),
    "Service": (
        "io.k8s.api.core.v1.Service",
        {"spec": {"ports": [{"port": 80, "name": "h"}, {"port": 81}], "externalIPs": ["1.2.3.4"]}},
    ),
}


def _lines(data: bytes) -> list[Any] | None:
    """Return the JSON of every line; None if one has none."""
    try:
        return [msgspec.json.decode(line) for line in data.split(b"\n") if line]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _same(one: object, other: object) -> bool:
    """Tell whether two values are written in the same way: true is not 1, nor is 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# --- JSON patch --------------------------------------------------------------------------------


def fuzz_json_patch(data: bytes) -> None:
    """A JSON patch does what the reference does, or fails where it fails; nothing else changes.

    Input: the object in one line, the patch in the next.
    """
    match _lines(data):
        case [dict(target), list(patch)] if all(isinstance(op, dict) for op in patch):
            pass
        case _:
            return
    before = copy.deepcopy((target, patch))
    try:
        result: Any = json_patch.apply(target, patch)
    except StatusError as exc:
        assert exc.code == 422
        result = None
    assert _same([target, patch], [*before])
    assert _same(result, _patched(*before))


class _ImpossibleError(Exception):
    pass


def _patched(document: Any, patch: list[dict[str, Any]]) -> Any:
    """Return what a patch makes of a document; None if it cannot be done. In place, on copies."""
    root = {"": copy.deepcopy(document)}
    try:
        for operation in patch:
            _do(root, copy.deepcopy(operation))
    except _ImpossibleError:
        return None
    return root[""] if isinstance(root[""], dict) else None


def _do(root: dict[str, Any], operation: dict[str, Any]) -> None:
    op, path = str(operation.get("op")), _pointer(operation.get("path"))
    value = operation.get("value")
    if op == "replace" and path == [""] and operation["path"] == "":
        root[""] = value
    elif op in {"add", "replace"}:
        _set(root, path, value, op)
    elif op == "remove":
        _take(root, path)
    elif op == "move":
        _set(root, path, _take(root, _pointer(operation.get("from"))), "add")
    elif op == "copy":
        found = _get(root, _pointer(operation.get("from")))
        _set(root, path, copy.deepcopy(found), "add")
    elif op == "test":
        found = root[""] if operation["path"] == "" else _get(root, path)
        if not _same(found, value):
            raise _ImpossibleError
    else:
        raise _ImpossibleError


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str):
        raise _ImpossibleError
    steps = text.split("/")[1:]
    return ["", *(step.replace("~1", "/").replace("~0", "~") for step in steps)]


def _parent(root: Any, path: list[str]) -> Any:
    if len(path) < 2:
        raise _ImpossibleError
    for step in path[:-1]:
        root = root[_place(root, step, 0)]
    return root


def _place(holder: Any, step: str, more: int) -> Any:
    """Return the key or index that a step means; ``more``: one behind the end is allowed."""
    if isinstance(holder, dict):
        if not more and step not in holder:
            raise _ImpossibleError
        return step
    if not isinstance(holder, list):
        raise _ImpossibleError
    digits = step[1:] if step[:1] in {"-", "+"} else step
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise _ImpossibleError
    index = int(step) + (len(holder) + more if step.startswith("-") and int(step) else 0)
    if not 0 <= index < len(holder) + more:
        raise _ImpossibleError
    return index


def _set(root: Any, path: list[str], value: Any, op: str) -> None:
    holder = _parent(root, path)
    if isinstance(holder, list) and op == "add":
        at = len(holder) if path[-1] == "-" else _place(holder, path[-1], 1)
        holder.insert(at, value)
    else:
        holder[_place(holder, path[-1], isinstance(holder, dict))] = value


def _take(root: Any, path: list[str]) -> Any:
    holder = _parent(root, path)
    place = _place(holder, path[-1], 0)
    return holder.pop(place)


def _get(root: Any, path: list[str]) -> Any:
    holder = _parent(root, path)
    place = _place(holder, path[-1], isinstance(holder, dict))
    return holder.get(place) if isinstance(holder, dict) else holder[place]


# --- merge patch -------------------------------------------------------------------------------


def fuzz_merge_patch(data: bytes) -> None:
    """A merge patch does what RFC 7386 says, and its arguments stay as they are.

    Input: the object in one line, the patch in the next.
    """
    match _lines(data):
        case [dict(target), dict(patch)]:
            pass
        case _:
            return
    before = copy.deepcopy((target, patch))
    result = merge_patch.apply(target, patch)
    assert _same([target, patch], [*before])
    assert _same(result, _merged(*before))
    # A strategic merge patch without a schema, lists and directives is one, too.
    if "$" not in json.dumps(patch) and "[" not in json.dumps(patch):
        assert _same(strategic_merge.apply(target, patch, ANYTHING), result)


def _merged(target: Any, patch: Any) -> Any:
    # The pseudocode of RFC 7386, section 2.
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _merged(target.get(name), value)
    return target


# --- differences -------------------------------------------------------------------------------


def fuzz_diff(data: bytes) -> None:
    """The patch from one object to another leads there; a part's change moves to the whole.

    Input: before, after and (or not) the whole, a line each.
    """
    match _lines(data):
        case [dict(before), dict(after), *rest]:
            pass
        case _:
            return
    before, after = _plain(before), _plain(after)
    patch = diffs.diff(before, after)
    assert _same(json_patch.apply(before, [dict(op) for op in patch]), after)
    assert (not patch) is _same(before, after)
    assert _same(diffs.rebase(before, before, after), after)
    for whole in rest[:1]:
        try:
            carried = diffs.rebase(whole, before, after)
        except UsageError:
            continue
        assert _same(carried, whole) or patch
        assert isinstance(whole, dict) or _same(carried, after) or not patch


def _plain(value: Any) -> Any:
    """Return a value with each number in one form: to a difference, 1 is 1.0."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


# --- strategic merge patch ---------------------------------------------------------------------


@functools.cache
def _schema(definition: str) -> schemas.Schema:
    return schemas.builtin(definition)


def fuzz_strategic_merge(data: bytes) -> None:
    """Any patch gives an object or a StatusError, and changes neither the object nor itself.

    Input: a kind in one line, the patch in the next.
    """
    kind, _, text = data.partition(b"\n")
    definition, target = _TARGETS.get(kind.decode("latin-1"), _TARGETS["Pod"])
    match _lines(text):
        case [dict(patch)]:
            pass
        case _:
            return
    before = json.dumps([target, patch])
    try:
        result = strategic_merge.apply(target, patch, _schema(definition))
    except StatusError as exc:
        assert exc.code in {400, 500}
        assert exc.message
        result = {}
    assert isinstance(result, dict)
    assert json.dumps([target, patch]) == before
    if "$" not in before:
        for name, value in patch.items():
            if not isinstance(value, dict | list | None) and result:
                assert result[name] == value
            if value is None:
                assert name not in result

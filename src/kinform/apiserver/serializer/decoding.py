"""Decoding of request bodies: from bytes to validated objects.

`decode` reads a body, `check` holds the object against its kind, `complain` decides what becomes
of unknown and duplicate fields. For a create or an update that is::

    obj, duplicates = decode(body, content_type, kind=kind.kind, is_custom=kind.custom is not None)
    checked = check(kind, schema, obj, duplicates=duplicates)
    warnings = complain(level, checked.complaints, kind)

A patch is read with `decode_patch` and applied; then the result is checked, with a `Patched` that
says what to show in a refusal, and the patch's complaints come first.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Final, TypedDict, cast, final

import msgspec

from kinform.apiserver.endpoints import status
from kinform.apiserver.patch import duplicate_fields
from kinform.apiserver.scheme import type_errors
from kinform.apiserver.scheme.go_types import written
from kinform.apiserver.scheme.object_checks import (
    Checked,
    Duplicate,
    Patched,
    check,
    complain,
    convert,
)
from kinform.apiserver.serializer import protobuf, yaml_decoder
from kinform.apiserver.serializer.json_values import (
    Json,
    JsonValue,
    as_dict,
    as_list,
    syntax_error,
    too_deep,
)
from kinform.apiserver.serializer.json_values import text as json_text

__all__ = [
    "BODIES",
    "MAX_VALUES",
    "Checked",
    "Duplicate",
    "Patched",
    "check",
    "check_size",
    "complain",
    "convert",
    "decode",
    "decode_apply",
    "decode_patch",
    "duplicate",
]

BODIES: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
"""The media types that the server reads, as its refusals list them."""

MAX_VALUES: Final = 40_000
"""The most values that an object or a patch may have; texts of any length count as one.

kube-apiserver accepts some objects with more. The limit keeps a write below a second here.
"""
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_CUSTOM_FORMS: Final = frozenset({_JSON, _YAML})
_FORMS: Final = _CUSTOM_FORMS | {protobuf.MEDIA_TYPE}
_JSON_PATCH: Final = "application/json-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_SHOWN: Final = 30
_MAX_OPERATIONS: Final = 10_000
_OPERATION: Final = ("op", "path", "from", "value")
_LONE_BYTES: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>u[dD][89a-fA-F]..)|.)", re.DOTALL
)
"""An escape; half of a pair that has no other half is ``lone``."""
_LOOSE: Final = re.compile(rb'"[ \t\r\n]+:|\\u')
"""Texts in which fields cannot be counted by the characters that end their names."""
_LONGEST: Final = 400


class _Unreadable(Exception):
    """A body has no object in it, in the server's words."""


def decode(
    body: bytes,
    content_type: str,
    *,
    kind: str = "",
    api_version: str = "",
    is_custom: bool = False,
) -> tuple[Json, list[str]]:
    """Return the object in a body, and complaints about repeated fields.

    ``kind`` is the expected kind, for the refusal; without it the refusal has the short text that
    DeleteOptions get. A custom object must name its kind, and cannot be protobuf. A protobuf body
    without a kind gets ``kind`` and ``api_version``. Without a content type a body is JSON. The
    complaints go to `check`, which drops those about fields that are not read.

    Raises:
        StatusError: 415 for a form that cannot be read, 400 for a body that has no object in it.
    """
    media = content_type.partition(";")[0].strip().lower()
    if content_type and media not in (_CUSTOM_FORMS if is_custom else _FORMS):
        raise status.unsupported_media_type(BODIES)
    try:
        if media == protobuf.MEDIA_TYPE:
            return _from_protobuf(body, kind, api_version), []
        if media == _YAML:
            value, complaints = _from_yaml(body)
        else:
            value, complaints = _from_json(body, merges=not is_custom)
        obj = _object(value)
        if is_custom and not obj.get("kind"):
            text = body.decode(errors="replace").strip()
            raise _Unreadable(f"Object 'Kind' is missing in '{text}'")
    except _Unreadable as exc:
        text = str(exc)
        if kind:
            shown = f"{text} ({_summary(body)})"
            text = f"the object provided is unrecognized (must be of type {kind}): {shown}"
        raise status.bad_request(text) from exc
    return obj, complaints


def check_size(value: JsonValue) -> bytes:
    """Return an object, or a patch, as JSON, unless it has too many values.

    Each value costs time at every step. The managedFields of an object do not count.

    Raises:
        StatusError: 413, there are more than `MAX_VALUES`.
    """
    raw = msgspec.json.encode(value)
    # A comma stands between any two values. Few objects have as many, so few are counted exactly.
    if raw.count(b",") >= MAX_VALUES and _commas(cast("object", value)) >= MAX_VALUES:
        raise status.too_large(f"limit is {MAX_VALUES} values")
    return raw


def _commas(value: object) -> int:
    """Count the commas between the values, without those in texts and in managedFields."""
    obj = as_dict(value)
    meta = as_dict(obj.get("metadata"))
    if "managedFields" in meta:
        kept = {name: it for name, it in meta.items() if name != "managedFields"}
        value = {**obj, "metadata": kept}
    return _TEXT.sub(b"", msgspec.json.encode(value)).count(b",")


def decode_patch(body: bytes, content_type: str) -> tuple[JsonValue, list[str]]:
    """Return a JSON patch, a merge patch or a strategic merge patch, and complaints about it.

    Which of the three it is says the media type; whether the resource takes it is for the caller.

    Raises:
        StatusError: 400 for a body that is not such a patch, 413 for too many operations.
    """
    media = content_type.partition(";")[0].strip().lower()
    prefix = "" if media == _STRATEGIC else "error decoding patch: "
    try:
        value, duplicates = _json(body, merges=False, keeps=media == _JSON_PATCH)
    except _Unreadable as exc:
        raise status.bad_request(f"{prefix}{exc}") from exc
    if media == _JSON_PATCH:
        return _operations(value), _judged(value, duplicates)
    if value is None and media != _STRATEGIC:
        raise status.bad_request("Invalid JSON Patch")
    if value is not None and not isinstance(value, dict):
        given = type_errors.json_kind(value)
        text = f"json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"
        raise status.bad_request(prefix + text)
    return cast("Json", value or {}), list[str](duplicates)


def duplicate(path: tuple[str | int, ...]) -> Duplicate:
    """Return the complaint about a field that is there twice."""
    return Duplicate(f'duplicate field "{_escaped(written(path))}"', path)


def decode_apply(body: bytes) -> tuple[Json, list[str]]:
    """Return the configuration that is to be applied, and complaints about it.

    Raises:
        StatusError: 400 for what is none.
    """
    before = "error decoding YAML: error "
    try:
        value, complaints = yaml_decoder.load(body)
    except yaml_decoder.YamlError as exc:
        raise status.bad_request(f"{before}converting YAML to JSON: {exc}") from exc
    if value is not None and not isinstance(value, dict):
        given = type_errors.json_kind(value)
        text = f"json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"{before}unmarshaling JSON: while decoding JSON: {text}")
    return as_dict(cast("object", value)), complaints


def _operations(value: JsonValue) -> list[Json]:
    """Return the operations of a JSON patch, not yet validated."""
    wrong = "error decoding patch: json: cannot unmarshal "
    if value is None:
        return []
    operations = as_list(value)
    if not isinstance(value, list):
        given = type_errors.json_kind(value)
        message = f"{wrong}{given} into Go value of type []handlers.jsonPatchOp"
        raise status.bad_request(message)
    if len(operations) > _MAX_OPERATIONS:
        many = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}"
        raise status.too_large(f"{many}, got {len(operations)}")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            given = type_errors.json_kind(operation)
            raise status.bad_request(f"{wrong}{given} into Go value of type handlers.jsonPatchOp")
        _check_texts(cast("Json", operation), wrong)
    return [cast("Json", operation or {}) for operation in operations]


def _check_texts(operation: Json, wrong: str) -> None:
    for name in ("op", "path", "from"):
        given = operation.get(name)
        if given is not None and not isinstance(given, str):
            kind = type_errors.json_kind(given)
            text = f"{wrong}{kind} into Go struct field jsonPatchOp.{name} of type string"
            raise status.bad_request(text)


def _judged(value: JsonValue, duplicates: Sequence[Duplicate]) -> list[str]:
    """Return the complaints about a JSON patch, operation by operation."""
    complaints: list[str] = []
    operations = cast("list[JsonValue]", value or [])
    for index, operation in enumerate(operations):
        complaints += [f"json patch {one}" for one in duplicates if one.path[:1] == (index,)]
        complaints += [
            f'json patch unknown field "[{index}].{name}"'
            for name in cast("Json", operation or {})
            if name not in _OPERATION
        ]
    return complaints


def _from_yaml(body: bytes) -> tuple[JsonValue, list[str]]:
    try:
        return yaml_decoder.load(body)
    except yaml_decoder.YamlError as exc:
        raise _Unreadable(str(exc)) from exc


def _from_json(body: bytes, *, merges: bool) -> tuple[JsonValue, list[str]]:
    try:
        value, duplicates = _json(body, merges=merges)
    except _Unreadable as exc:
        raise _Unreadable(f"couldn't get version/kind; json parse error: {exc}") from exc
    return value, list[str](duplicates)


def _from_protobuf(body: bytes, kind: str, api_version: str) -> Json:
    try:
        envelope = protobuf.unwrap(body)
    except protobuf.WireError as exc:
        raise _Unreadable(str(exc)) from exc
    try:
        return protobuf.read(envelope, kind=kind or "DeleteOptions", api_version=api_version)
    except protobuf.WireError as exc:
        if not kind:
            raise _Unreadable(str(exc)) from exc
        given = f'{envelope.kind or kind} in version "{envelope.api_version or api_version}"'
        raise status.bad_request(f"{given} cannot be handled as a {kind}: {exc}") from exc


def _object(value: JsonValue) -> Json:
    """Return the object that a body has to be; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Unreadable(type_errors.no_object(value))
    before = "couldn't get version/kind; json parse error: json: cannot unmarshal "
    obj = cast("Json", value)
    for name in ("kind", "apiVersion"):
        value = obj.get(name)
        if value is not None and not isinstance(value, str):
            given = type_errors.json_kind(value)
            raise _Unreadable(f"{before}{given} into Go struct field .{name} of type string")
    version = json_text(obj, "apiVersion")
    if version.count("/") > 1:
        raise _Unreadable(f"unexpected GroupVersion string: {version}")
    return obj


def _summary(body: bytes) -> str:
    """Return the beginning of a body: as text if it looks like JSON, else in hexadecimal."""
    if not body:
        return "<empty>"
    start = body[:_SHOWN]
    text = start.decode(errors="replace") if body.startswith(b"{") else start.hex()
    return f"{text} ..." if len(body) > _SHOWN else text


def _json(body: bytes, *, merges: bool, keeps: bool = False) -> tuple[JsonValue, list[Duplicate]]:
    """Decode JSON as Go does: bytes that are no UTF-8 become U+FFFD, duplicates are noticed.

    ``keeps`` keeps how objects with duplicates are written, too.
    """
    try:
        value = msgspec.json.decode(body)
        again = msgspec.json.encode(value)
        if again == body or (not _LOOSE.search(body) and again.count(b'":') == body.count(b'":')):
            # Written again it has as many fields: nothing was lost, so nothing was there twice.
            return value, []
        text = body.decode()
    except RecursionError as exc:
        raise _Unreadable(too_deep(body)) from exc
    except ValueError as exc:
        if problem := syntax_error(body):
            raise _Unreadable(problem) from exc
        text = _LONE_BYTES.sub("\ufffd", body.decode(errors="surrogateescape"))
        text = _ESCAPE.sub(lambda it: r"\ufffd" if it["lone"] else it[0], text)
    reader = _Reader(merges=merges, keeps=keeps)
    return reader.read(text), reader.duplicates


@final
class _Reader:
    """Reads JSON with an eye on keys that are there twice."""

    def __init__(self, *, merges: bool, keeps: bool) -> None:
        self.duplicates: list[Duplicate] = []
        self._merges = merges
        self._keeps = keeps
        self._has_duplicates = False
        self._noted: set[tuple[str | int, ...]] = set()

    def read(self, text: str) -> JsonValue:
        value = json.loads(text, object_pairs_hook=self._noticed, **_NUMBERS)
        if self._has_duplicates:
            value = self._plain(json.loads(text, object_pairs_hook=_Pairs, **_NUMBERS), ())
        return value

    def _noticed(self, pairs: list[tuple[str, JsonValue]]) -> Json:
        obj = dict(pairs)
        if len(obj) != len(pairs):
            self._has_duplicates = True
        return obj

    def _plain(self, value: JsonValue, path: tuple[str | int, ...]) -> JsonValue:
        """Make plain objects, and note each duplicate where it is met."""
        if isinstance(value, _Pairs):
            obj: Json = {}
            for name, entry in value:
                self._set(obj, (*path, name), entry)
            if not self._keeps or len(obj) == len(value):
                return obj
            # What is in it twice has been noted: only how it is written is still to be kept.
            again = _Reader(merges=self._merges, keeps=True)
            return duplicate_fields.Repeated(
                obj, [(name, again._plain(one, ())) for name, one in value]
            )
        if isinstance(value, list):
            items = as_list(cast("object", value))
            return [self._plain(item, (*path, index)) for index, item in enumerate(items)]
        return value

    def _set(self, obj: Json, here: tuple[str | int, ...], entry: JsonValue) -> None:
        name = cast("str", here[-1])
        if name not in obj:
            obj[name] = self._plain(entry, here)
            return
        if here not in self._noted:
            self._noted.add(here)
            self.duplicates.append(duplicate(here))
        earlier = obj.pop(name)
        later = self._plain(entry, here)
        if self._merges and isinstance(earlier, dict) and isinstance(later, dict):
            # Go decodes the second one into the struct, or the map, that has the first.
            later = {**cast("Json", earlier), **cast("Json", later)}
        obj[name] = later


@final
class _Pairs(list[tuple[str, JsonValue]]):
    """An object's fields as they are written."""


def _integer(text: str) -> int | float:
    """Return a number without a point; a very long one is a float."""
    return int(text) if len(text) <= _LONGEST else float(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        message = f"json: cannot unmarshal number {text} into Go value of type float64"
        raise _Unreadable(message)
    return number


class _Numbers(TypedDict):
    parse_int: Callable[[str], int | float]
    parse_float: Callable[[str], float]


_NUMBERS: Final[_Numbers] = {"parse_int": _integer, "parse_float": _float}


def _escaped(path: str) -> str:
    return msgspec.json.encode(path).decode()[1:-1]

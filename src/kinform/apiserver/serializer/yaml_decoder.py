"""YAML bodies: YAML 1.1 as kube-apiserver reads it; dates stay text.

What comes out is what JSON can say, for the server turns YAML into JSON before anything else.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable
from typing import Final, cast

import msgspec
import yaml
from yaml.scanner import ScannerError

from kinform._yaml import Refused, SafeLoader, TooDeep, refuse_bombs
from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.serializer.json_values import Json, JsonValue

__all__ = ["YamlError", "load"]

_TRUE: Final = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE: Final = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_WORDS: Final[dict[str, JsonValue]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL),
}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NOT_A_NUMBER: Final = {".nan", ".NaN", ".NAN"}
_INTEGERS: Final = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[bB][01]+"), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), 10),
)
_LARGEST: Final = 2**64
_LONGEST: Final = 400
"""No number that has more digits is one: Go takes it for text."""
_PLAIN_INTEGERS: Final = 1e21
"""From here on Go writes a float with an exponent, and it stays one."""
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "!plain"
_MARKS: Final = re.compile(rb"[\[{,:?\n-]")
"""Characters that separate or nest values: there are at most twice as many values."""
_DEEPEST: Final = 1000
"""The C parser has no limit of its own but the end of its stack."""
_MOST_VALUES: Final = 50_000
"""The most values of a document that is not JSON: reading them takes half a second."""
_FEW: Final = 1000
_ALIASED: Final = 0.99
"""Of more than a few values, no larger part may be there by aliases."""
_ALIASED_SIZE: Final = 3 * 1024 * 1024
"""The most text that aliases may add: larger objects are refused anyway."""
_ANCHOR: Final = re.compile(r"&([-\w]*)")
_NOT_FAST: Final = re.compile(
    "[^\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\\\\(?:/|u[dD][89a-fA-F])"
)
"""Characters that JSON and YAML read differently: control characters, lone surrogates."""
_KEY_LIMIT: Final = 1000
"""YAML takes no longer text for a key, unless it is marked as one."""


class _Loader(SafeLoader):
    """Gives every scalar without quotes and tag the same tag, instead of PyYAML's guess."""


_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


class YamlError(ValueError):
    """The text is not YAML, or holds values that JSON does not have."""


def load(text: bytes) -> tuple[JsonValue, list[str]]:
    """Return the first document, and a complaint for each key that is there twice.

    Clients send JSON as YAML more often than not; it is read by a JSON decoder, which is much
    faster. Other documents have at most 50,000 values, those of aliases included.

    Raises:
        YamlError: it cannot be read.
        StatusError: it has more values than that.
    """
    if text[:1] == b"{" and (found := _from_json(text)) is not None:
        return found, []
    try:
        _check_size(text)
        loader = _Loader(text)
        # Not `get_single_node`: the server reads the first document and ignores the rest.
        node = loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as exc:
        raise YamlError(_marked(exc, text)) from exc
    except yaml.YAMLError as exc:
        raise YamlError("yaml: invalid leading UTF-8 octet") from exc
    except RecursionError as exc:
        raise YamlError("yaml: exceeded max depth of 10000") from exc
    reader = _Reader(text)
    return reader.value(node), reader.complaints


def _from_json(body: bytes) -> Json | None:
    """Return the value of a document that is JSON too, None where YAML might differ."""
    try:
        text = body.decode()
        if _NOT_FAST.search(text):
            return None
        value = msgspec.json.decode(body)
        # A key that is there twice makes the document longer than its value.
        if msgspec.json.encode(value).count(b'":') != body.count(b'":'):
            return None
        return cast("Json", value) if _is_same_in_yaml(value) else None
    except (ValueError, RecursionError):
        return None


def _is_same_in_yaml(value: JsonValue) -> bool:
    """Return whether YAML reads a value, written as JSON, as JSON does; make it so for floats."""
    waiting: list[JsonValue] = [value]
    while waiting:
        here = waiting.pop()
        entries: Iterable[tuple[str | int, JsonValue]]
        if isinstance(here, dict):
            entries = cast("Json", here).items()
            if any(len(key) > _KEY_LIMIT for key in cast("Json", here)):
                return False
        else:
            entries = enumerate(cast("list[JsonValue]", here))
        for key, entry in entries:
            kind = entry.__class__
            if kind is dict or kind is list:
                waiting.append(entry)
            elif kind is float:
                here[key] = _plain_number(entry)
            elif kind is int and not -_LARGEST // 2 <= entry < _LARGEST:
                return False
    return True


def _plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < _PLAIN_INTEGERS else number


def _check_size(text: bytes) -> None:
    """Refuse a document of too many values, or too deep for a recursive reader."""
    if len(_MARKS.findall(text)) <= _DEEPEST:  # as good as always
        return
    try:
        refuse_bombs(
            text,
            max_values=_MOST_VALUES,
            max_aliases=None,  # limited where they are expanded, see `_Reader`
            max_depth=_DEEPEST,
            merges=True,
            only_first=True,
        )
    except TooDeep as exc:
        raise YamlError("yaml: exceeded max depth of 10000") from exc
    except Refused as exc:
        raise status.too_large(f"limit is {_MOST_VALUES} values in YAML; send JSON") from exc


def _marked(error: yaml.MarkedYAMLError, text: bytes) -> str:
    problem, mark = error.problem or "", error.problem_mark
    if mark is not None and problem.startswith("found undefined alias"):
        anchor = re.match(r"\*?([-\w]*)", _written(text, mark))
        return f"yaml: unknown anchor '{anchor[1] if anchor else ''}' referenced"
    line = mark.line if mark is not None else 0
    if line and isinstance(error, ScannerError):
        line += 1
    if not line and error.context_mark is not None:
        line = error.context_mark.line
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


def _written(text: bytes, mark: yaml.Mark) -> str:
    """Return what stands at a mark, to the end of its line."""
    lines = text.decode(errors="replace").splitlines()
    return lines[mark.line][mark.column :] if mark.line < len(lines) else ""


class _Reader:
    """Turns nodes into values.

    A node that is met again is there by an alias. Each value is a new one all the same, so what
    aliases make of a short text is limited.
    """

    def __init__(self, text: bytes) -> None:
        self.complaints: list[str] = []
        self._text = text
        self._met: set[int] = set()
        self._open: set[int] = set()
        self._aliases = 0  # of the values around this one
        self._values = 0
        self._aliased = 0
        self._aliased_size = 0

    def value(self, node: yaml.Node | None) -> JsonValue:
        if node is None:
            return None
        is_alias = id(node) in self._met
        self._met.add(id(node))
        self._aliases += is_alias
        self._count(node)
        found = _scalar(node) if isinstance(node, yaml.ScalarNode) else self._collection(node)
        self._aliases -= is_alias
        return found

    def _collection(self, node: yaml.Node) -> JsonValue:
        if id(node) in self._open:
            anchor = _ANCHOR.match(_written(self._text, node.start_mark))
            raise YamlError(f"yaml: anchor '{anchor[1] if anchor else ''}' value contains itself")
        self._open.add(id(node))
        if isinstance(node, yaml.MappingNode):
            found: JsonValue = self._mapping(node)
        else:
            found = [self.value(item) for item in cast("list[yaml.Node]", node.value)]
        self._open.remove(id(node))
        return found

    def _count(self, node: yaml.Node) -> None:
        self._values += 1
        if not self._aliases:
            return
        self._aliased += 1
        self._aliased_size += len(node.value) if isinstance(node, yaml.ScalarNode) else 1
        is_much = self._values > _FEW and self._aliased > self._values * _ALIASED
        if is_much or self._aliased > _MOST_VALUES or self._aliased_size > _ALIASED_SIZE:
            raise YamlError("yaml: document contains excessive aliasing")

    def _mapping(self, node: yaml.MappingNode) -> Json:
        read: Json = {}
        merged: Json = {}
        for key_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if key_node.tag == _PLAIN and key_node.value == "<<":
                self._merge(value_node, merged)
                continue
            key = self._key(key_node, value_node)
            if key in read:
                line = key_node.start_mark.line + 1
                self.complaints.append(
                    f"line {line}: key {field_errors.quoted(key)} already set in map"
                )
            read[key] = self.value(value_node)
        return {**merged, **read}

    def _merge(self, node: yaml.Node, into: Json) -> None:
        parts = (
            cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else [node]
        )
        for part in reversed(parts):
            if not isinstance(part, yaml.MappingNode):
                message = "yaml: map merge requires map or sequence of maps as the value"
                raise YamlError(message)
            into.update(cast("Json", self.value(part)))

    def _key(self, node: yaml.Node, value: yaml.Node) -> str:
        key = self.value(node)
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, int | float):
            return str(key)
        if key is None:
            shown = self.value(value)
            quoted = f'"{shown}"' if isinstance(shown, str) else str(shown)
            message = f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {quoted}"
            raise YamlError(message)
        message = "yaml: invalid map key: " + (
            "map[interface {}]interface {}" if isinstance(key, dict) else "[]interface {}"
        )
        raise YamlError(message)


def _scalar(node: yaml.ScalarNode) -> JsonValue:
    text = cast("str", node.value)
    tag = node.tag.removeprefix(_TAG)
    if tag == _PLAIN:
        return _resolved(text)
    if tag in {"int", "float", "bool", "null"}:
        value = _resolved(text)
        if tag == "null" and value is not None:
            raise YamlError(f"yaml: cannot decode !!str `{text}` as a !!null")
        return value
    if tag == "binary":
        try:
            return base64.b64decode(text).decode(errors="replace")
        except binascii.Error as exc:
            message = "yaml: !!binary value contains invalid base64 data"
            raise YamlError(message) from exc
    return text


def _resolved(text: str) -> JsonValue:
    """Return what a plain scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    for form, base in _INTEGERS if len(digits) <= _LONGEST else ():
        if form.fullmatch(digits):
            whole = int(digits.replace("o", "").replace("O", "") if base == 8 else digits, base)
            if -_LARGEST // 2 <= whole < _LARGEST:
                return whole
            break
    if _FLOAT.fullmatch(digits) and not math.isinf(number := float(digits)):
        return _plain_number(number)
    if match := _INFINITE.fullmatch(text):
        raise YamlError(f"json: unsupported value: {match[1] or '+'}Inf")
    if text in _NOT_A_NUMBER:
        message = "json: unsupported value: NaN"
        raise YamlError(message)
    return text

"""YAML as the server reads it: YAML 1.1 with its many truths, but dates stay text.

What comes out is what JSON can say, for the server turns YAML into JSON before anything else.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final, cast

import yaml
from yaml.scanner import ScannerError

from kinform.apiserver.json import Json, JsonValue

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
_PLAIN_INTEGERS: Final = 1e21
"""From here on Go writes a float with an exponent, and it stays one."""
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "!plain"
_SAFE: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE):  # type: ignore[misc,valid-type] # C's loader where there is one
    """Gives every scalar that nobody quoted or tagged one tag, instead of PyYAML's guess."""


_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}


class YamlError(ValueError):
    """The text is no YAML, or nothing that JSON can say."""


def load(text: bytes) -> tuple[JsonValue, list[str]]:
    """Return the first document, and a complaint for each key that is there twice.

    Raises:
        YamlError: it cannot be read.
    """
    try:
        loader = _Loader(text)
        # Not `get_single_node`: the server reads the first document and ignores the rest.
        node = loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as exc:
        raise YamlError(_marked(exc, text)) from exc
    except yaml.YAMLError as exc:
        raise YamlError("yaml: invalid leading UTF-8 octet") from exc
    except RecursionError as exc:
        raise YamlError("yaml: exceeded max depth of 10000") from exc
    reader = _Reader()
    return reader.value(node), reader.complaints


def _marked(error: yaml.MarkedYAMLError, text: bytes) -> str:
    problem, mark = error.problem or "", error.problem_mark
    if mark is not None and problem.startswith("found undefined alias"):
        shown = text.decode().splitlines()[mark.line]
        anchor = re.match(r"\*?([-\w]*)", shown[mark.column :])
        return f"yaml: unknown anchor '{anchor[1] if anchor else ''}' referenced"
    line = mark.line if mark is not None else 0
    if line and isinstance(error, ScannerError):
        line += 1
    if not line and error.context_mark is not None:
        line = error.context_mark.line
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Reader:
    """Turns nodes into values."""

    def __init__(self) -> None:
        self.complaints: list[str] = []

    def value(self, node: yaml.Node | None) -> JsonValue:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            items = cast("list[yaml.Node]", node.value)
            return [self.value(item) for item in items]
        return None if node is None else _scalar(cast("yaml.ScalarNode", node))

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
                self.complaints.append(f'line {line}: key "{key}" already set in map')
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
            into.update(self._mapping(part))

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
    for form, base in _INTEGERS:
        if form.fullmatch(digits):
            number = int(digits.replace("o", "").replace("O", "") if base == 8 else digits, base)
            return number if -_LARGEST // 2 <= number < _LARGEST else float(number)
    if _FLOAT.fullmatch(digits):
        return _float(float(digits))
    if match := _INFINITE.fullmatch(text):
        raise YamlError(f"json: unsupported value: {match[1] or '+'}Inf")
    if text in _NOT_A_NUMBER:
        message = "json: unsupported value: NaN"
        raise YamlError(message)
    return text


def _float(number: float) -> JsonValue:
    """Return a number as it is after Go wrote it as JSON, where 1.0 is 1."""
    if math.isinf(number):
        message = "json: unsupported value: +Inf"
        raise YamlError(message)
    return int(number) if number.is_integer() and abs(number) < _PLAIN_INTEGERS else number

"""Untrusted YAML and JSON documents (kubeconfigs), parsed into plain values.

`kinform._yaml` checks a document before anything is built from it. No message quotes the document,
because a kubeconfig holds secrets; for the same reason the errors of the YAML library, which carry
parts of the text, never become the ``__cause__`` of ours.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec
import yaml

from kinform._yaml import MAX_DEPTH, Refused, SafeLoader, refuse_bombs, too_deep, too_many
from kinform.errors import ConfigError

__all__ = ["Scalar", "Value", "native", "parse", "plain"]

MAX_ALIASES: Final = 32
"""More than any real kubeconfig has; an alias inside an anchored part is refused."""

MAX_VALUES: Final = 100_000
"""The most values of a document: parts that aliases repeat count each time."""

_MAX_NUMBER: Final = 64
"""A longer unquoted word is read as text: converting it to a number could take long."""


class Scalar(NamedTuple):
    """An unquoted word that YAML reads as a number or a boolean, and its original text.

    ``no`` may be a namespace, ``0123`` a password: the reader of the value decides if it is text.
    """

    text: str
    value: bool | int | float | str


Value: TypeAlias = "bool | int | float | str | Scalar | list[Value] | dict[str, Value] | None"
"""The result of `parse`."""


def parse(data: bytes, *, source: str) -> Value:
    """Return the one document in ``data``: JSON if it is JSON, otherwise YAML; ``None`` if empty.

    Raises:
        ConfigError: if it is neither, or more deeply nested or aliased than is allowed.
    """
    complaint = ""
    try:
        if data.lstrip()[:1] == b"{" and (document := _json(data)) is not None:
            return document
        refuse_bombs(data, max_values=MAX_VALUES, max_aliases=MAX_ALIASES)
        return _construct(data)
    except Refused as exc:
        complaint = str(exc)
    except yaml.YAMLError as exc:
        complaint = _position(exc)
    except RecursionError:
        complaint = str(too_deep(MAX_DEPTH))
    except (ValueError, LookupError):  # LookupError: PyYAML, of an empty !!int or a !!bool x
        complaint = "is not valid YAML: a value does not fit its tag"
    # Raised out here so that the library's error, which quotes the document, is not its context.
    raise ConfigError(complaint, source=source)


def plain(document: object, *, source: str) -> Value:
    """Return a copy of values that the caller parsed from YAML or JSON.

    Raises:
        ConfigError: they are nested too deeply, are more than any kubeconfig has, or are of a type
            that neither YAML nor JSON has.
    """
    try:
        return _plain(document, [MAX_VALUES], depth=0)
    except Refused as exc:
        raise ConfigError(str(exc), source=source) from None


def _plain(value: object, left: list[int], *, depth: int) -> Value:
    left[0] -= 1
    if left[0] < 0:
        raise too_many(MAX_VALUES)
    if depth > MAX_DEPTH:
        raise too_deep(MAX_DEPTH)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value).items()
        return {str(key): _plain(item, left, depth=depth + 1) for key, item in members}
    kind = type(value).__name__
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        items = cast("Sequence[object]", value)
        return [_plain(item, left, depth=depth + 1) for item in items]
    raise Refused(f"holds a {kind}, which no kubeconfig has; give it as text")


def native(value: Value) -> object:
    """Return ``value`` with every `Scalar` as its YAML value, ready for JSON."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, dict):
        return {name: native(item) for name, item in value.items()}
    if isinstance(value, list):
        return [native(item) for item in value]
    return value


def _json(data: bytes) -> Value:
    """Return a JSON document; ``None`` if it is not JSON (PyYAML rejects tabs in JSON)."""
    if sum(map(data.count, (b",", b"{", b"["))) > MAX_VALUES:  # commas in texts count as well
        raise too_many(MAX_VALUES)
    try:
        document = cast("Value", msgspec.json.decode(data))
    except msgspec.DecodeError:
        return None
    layer: list[Value] = [document]
    for _ in range(MAX_DEPTH):
        layer = [child for value in layer for child in _children(value)]
    if layer:
        raise too_deep(MAX_DEPTH)
    return document


def _children(value: Value) -> Iterable[Value]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _construct(data: bytes) -> Value:
    loader = _Loader(data)
    try:
        return cast("Value", loader.get_single_data())
    finally:
        loader.dispose()


def _position(error: yaml.YAMLError) -> str:
    """Return the problem and its position, without the parts quoted from the document."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "is not valid YAML: it holds characters that no text file has"
    problem = re.sub(r"(['\"]).*\1", "...", str(error.problem), flags=re.DOTALL)
    mark = error.problem_mark
    return f"is not valid YAML: {problem} (line {mark.line + 1}, column {mark.column + 1})"


class _Loader(SafeLoader):
    """The safe loader, except that it keeps the original text of numbers and booleans.

    Keys are always text, so that a key like ``on`` stays ``on``.
    """

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 (the signature is PyYAML's)
    ) -> dict[Hashable, Any]:
        """Construct a mapping; called by the loader."""
        mapping = super().construct_mapping(node, deep)
        return {k.text if isinstance(k, Scalar) else str(k): v for k, v in mapping.items()}


def _scalar(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Scalar:
    """Construct a bool, int, float or timestamp as a `Scalar`."""
    text = str(loader.construct_scalar(node))  # refuses a list with such a tag
    value: bool | int | float | str = text
    if len(text) > _MAX_NUMBER:
        return Scalar(text, text)
    match str(node.tag).rpartition(":")[2]:
        case "bool":
            value = bool(loader.construct_yaml_bool(node))
        case "int" if ":" not in text:  # 12:30 is a number to the base 60 in YAML 1.1 alone
            value = int(loader.construct_yaml_int(node))
        case "float" if ":" not in text:
            value = float(loader.construct_yaml_float(node))
        case _:
            pass
    return Scalar(text, value)


for _kind in ("bool", "int", "float", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _scalar)

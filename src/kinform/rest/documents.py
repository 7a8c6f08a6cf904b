"""YAML and JSON documents of doubtful origin, read into plain values.

What the YAML library does not guard against is refused before anything is built: deep nesting
(its C code recurses), aliases that multiply ("billion laughs"), merge keys (which copy what they
repeat), and more values than any kubeconfig has. No message quotes the document, because a
kubeconfig holds secrets; for the same reason the library's own errors, which carry pieces of the
text, never become the ``__cause__`` of ours.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast, final

import msgspec
import yaml

from kinform.errors import ConfigError

__all__ = ["Refused", "Scalar", "Value", "native", "parse", "plain", "refuse_bombs"]

MAX_DEPTH: Final = 100
MAX_ALIASES: Final = 32
"""More than any honest kubeconfig has; none may stand within what another one repeats."""

MAX_VALUES: Final = 100_000
"""The most values of a document: parts that aliases repeat count each time."""

_MAX_NUMBER: Final = 64
"""An unquoted word that is longer is no number: converting it could take long."""
_MERGE: Final = "tag:yaml.org,2002:merge"

_TOO_DEEP: Final = f"is nested more than {MAX_DEPTH} levels deep"

if TYPE_CHECKING:
    _SafeLoader = yaml.SafeLoader
else:  # libyaml's loader is ten times as fast; PyYAML may be built without it
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Scalar(NamedTuple):
    """An unquoted word that YAML reads as a number or a truth value, and how it was written.

    ``no`` may be a namespace, ``0123`` a password: who reads the value knows whether it is text.
    """

    text: str
    value: bool | int | float | str


Value: TypeAlias = "bool | int | float | str | Scalar | list[Value] | dict[str, Value] | None"
"""What `parse` returns."""


class Refused(Exception):
    """Why a document is not read; the text quotes nothing of it."""


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
        complaint = _TOO_DEEP
    except (ValueError, LookupError):  # LookupError: PyYAML, of an empty !!int or a !!bool x
        complaint = "is not valid YAML: a value does not fit its tag"
    # Raised out here so that the library's error, with its piece of the text, is forgotten.
    raise ConfigError(complaint, source=source)


def plain(document: object, *, source: str) -> Value:
    """Return a copy of what somebody else has read from YAML or JSON.

    Raises:
        ConfigError: it is nested too deeply, larger than any kubeconfig, or holds what neither
            YAML nor JSON has.
    """
    try:
        return _plain(document, [MAX_VALUES], depth=0)
    except Refused as exc:
        raise ConfigError(str(exc), source=source) from None


def _plain(value: object, left: list[int], *, depth: int) -> Value:
    left[0] -= 1
    if left[0] < 0:
        raise Refused(f"holds more than {MAX_VALUES} values; is it a kubeconfig?")
    if depth > MAX_DEPTH:
        raise Refused(_TOO_DEEP)
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
    """Return ``value`` with every `Scalar` as what YAML takes it for, ready to be JSON again."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, dict):
        return {name: native(item) for name, item in value.items()}
    if isinstance(value, list):
        return [native(item) for item in value]
    return value


def _json(data: bytes) -> Value:
    """Return a JSON document; ``None`` if it is none (PyYAML alone takes no tabs in JSON)."""
    if sum(map(data.count, (b",", b"{", b"["))) > MAX_VALUES:  # commas in texts count as well
        raise Refused(f"holds more than {MAX_VALUES} values; is it a kubeconfig?")
    try:
        document = cast("Value", msgspec.json.decode(data))
    except msgspec.DecodeError:
        return None
    layer: list[Value] = [document]
    for _ in range(MAX_DEPTH):
        layer = [child for value in layer for child in _children(value)]
    if layer:
        raise Refused(_TOO_DEEP)
    return document


def _children(value: Value) -> Iterable[Value]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def refuse_bombs(
    data: bytes | str, *, max_values: int, max_aliases: int, merges: bool = False
) -> None:
    """Refuse YAML that would be expensive to build, by reading its events alone.

    Every event counts, and an alias counts as much as what it repeats, so the document has at most
    ``max_values`` scalars and collections however it is written. An alias inside an anchored part
    could double its size at every level; it is refused.

    Args:
        data: one document or several.
        max_values: the most events.
        max_aliases: the most aliases.
        merges: whether merge keys (``<<``) are allowed.

    Raises:
        Refused: the document exceeds a bound.
        yaml.YAMLError: it is no YAML.
    """
    loader, bounds = _Loader(data), _Bounds(max_values, max_aliases, merges=merges)
    try:
        while loader.check_event():
            # types-PyYAML leaves this one without types
            bounds.count(cast("yaml.Event", loader.get_event()))  # type: ignore[no-untyped-call]
    finally:
        loader.dispose()


@final
class _Bounds:
    """The counters of `refuse_bombs`."""

    def __init__(self, max_values: int, max_aliases: int, *, merges: bool) -> None:
        self._max_values = max_values
        self._max_aliases = max_aliases
        self._merges = merges
        self._total = self._aliases = 0
        self._open: list[tuple[str | None, int]] = []  # the anchor and the first event of each
        self._anchored = 0  # how many open collections have an anchor
        self._sizes: dict[str, int] = {}

    def count(self, event: yaml.Event) -> None:
        """Count one event, or raise `Refused`."""
        self._total += 1
        match event:
            case yaml.AliasEvent():
                self._repeat(str(event.anchor))
            case yaml.CollectionStartEvent():
                self._enter(event.anchor)
            case yaml.CollectionEndEvent():
                self._leave()
            case yaml.ScalarEvent():
                self._scalar(event)
            case _:
                pass
        if self._total > self._max_values:
            raise Refused(f"holds more than {self._max_values} values")

    def _enter(self, anchor: str | None) -> None:
        self._open.append((anchor, self._total))
        self._anchored += anchor is not None
        if len(self._open) > MAX_DEPTH:
            raise Refused(_TOO_DEEP)

    def _leave(self) -> None:
        anchor, first = self._open.pop()
        if anchor is not None:
            self._anchored -= 1
            self._sizes[anchor] = self._total - first

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if event.anchor is not None:
            self._sizes[str(event.anchor)] = 0
        is_plain = event.tag is None and not event.style  # ``"<<"`` in quotes is a text
        if not self._merges and (event.tag == _MERGE or (is_plain and event.value == "<<")):
            raise Refused("has a merge key (<<); write the values out")

    def _repeat(self, anchor: str) -> None:
        self._aliases += 1
        self._total += self._sizes.get(anchor, 0)  # an unknown anchor is an error of the parser
        if self._aliases > self._max_aliases or self._anchored:
            raise Refused(
                f"has nested aliases, or more than {self._max_aliases}; write the values out"
            )


def _construct(data: bytes) -> Value:
    loader = _Loader(data)
    try:
        return cast("Value", loader.get_single_data())
    finally:
        loader.dispose()


def _position(error: yaml.YAMLError) -> str:
    """Return what is wrong and where. Quoted parts of the problem come from the document."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "is not valid YAML: it holds characters that no text file has"
    problem = re.sub(r"(['\"]).*\1", "...", str(error.problem), flags=re.DOTALL)
    mark = error.problem_mark
    return f"is not valid YAML: {problem} (line {mark.line + 1}, column {mark.column + 1})"


class _Loader(_SafeLoader):
    """The safe loader, except that it remembers how numbers and truth values were written.

    Keys are always text, so that a key like ``on`` is what it looks like.
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

r"""Kubernetes' JSONPath (``k8s.io/client-go/util/jsonpath``): the grammar, and finding values.

A template is text with expressions in braces: ``{.metadata.name}``, ``{range .items[*]}``,
``{end}``, ``{"\t"}``. `parse` makes a tree of it, `Evaluator` follows the tree's paths through
decoded JSON. kubectl prints templates (`kinform.cli.output.json_path`), kube-apiserver reads
printer columns and selectable fields (`kinform.apiserver.printers.column_paths`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never, cast, final

from kinform.errors import UsageError

__all__ = [
    "Compare",
    "Descend",
    "Each",
    "Evaluator",
    "Field",
    "JsonPathError",
    "Literal",
    "Node",
    "Path",
    "Range",
    "Slice",
    "Step",
    "Union",
    "parse",
]

_NAME: Final = re.compile(r"(?:\\.|[^\s.\[\](){}'\",=!<>|&?*@$\\])+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_SLICE: Final = re.compile(r"\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?(?::\s*(-?\d+)?\s*)?")
_OPERATOR: Final = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_STRING: Final = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)
_WORD: Final = re.compile(r"\s*(range|end)\b\s*")
_CHARACTER: Final = re.compile(r"\\.|[^\\]", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


@final
class JsonPathError(UsageError):
    """A JSONPath template that cannot be read, or does not fit an object; says where."""

    def __init__(self, message: str, *, text: str = "", position: int | None = None) -> None:
        super().__init__(message, text, position)
        self.message = message
        self.text = text
        self.position = position

    def __str__(self) -> str:
        where = "" if self.position is None else f" at position {self.position + 1}"
        return f"jsonpath {self.text!r}: {self.message}{where}"


@final
@dataclass(frozen=True, slots=True)
class Field:
    """One member of an object, ``.name`` or ``['name']``."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Each:
    """Every item or member, ``[*]`` or ``.*``."""


@final
@dataclass(frozen=True, slots=True)
class Descend:
    """The value and all within it, ``..``."""


@final
@dataclass(frozen=True, slots=True)
class Slice:
    """Items of a list. ``[2]`` is one: then there is no ``is_range``."""

    start: int | None
    stop: int | None = None
    step: int = 1
    is_range: bool = False


@final
@dataclass(frozen=True, slots=True)
class Union:
    """Several ways to go on, one after the other: ``[0,2]``, ``['a','b']``."""

    choices: tuple[tuple[Step, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class Compare:
    """Those items for which a comparison holds; without an operator: those that have ``left``."""

    left: Path | Literal
    operator: str = ""
    right: Path | Literal | None = None


Step: TypeAlias = Field | Each | Descend | Slice | Union | Compare


@final
@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the value at hand: ``$`` and ``@`` both mean that one, as with kubectl."""

    steps: tuple[Step, ...]


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a text of the template, or the operand of a filter."""

    value: str | int | float | bool | None


@final
@dataclass(frozen=True, slots=True)
class Range:
    """The template between ``{range PATH}`` and ``{end}``."""

    over: Path
    body: tuple[Node, ...]


Node: TypeAlias = Literal | Path | Range


def parse(text: str) -> tuple[Node, ...]:
    """Return the nodes of a template. A bare path without any brace is read as one in braces.

    >>> parse("{.metadata.name}!")
    (Path(steps=(Field(name='metadata'), Field(name='name'))), Literal(value='!'))

    Raises:
        JsonPathError: it cannot be read.
    """
    # kubectl accepts this shorter form for columns and sorting (RelaxedJSONPathExpression).
    if "{" not in text and text.startswith((".", "$", "[")):
        text = f"{{{text}}}"
    return _Parser(text).template()


@final
class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at: int = 0

    def template(self) -> tuple[Node, ...]:
        """Read to the end. A range that nobody ends, ends there; as with kubectl."""
        open_ranges: list[tuple[Path, list[Node]]] = []
        top: list[Node] = []
        nodes = top
        while self._at < len(self._text):
            brace = self._text.find("{", self._at)
            if brace != self._at:
                stop = len(self._text) if brace < 0 else brace
                nodes.append(Literal(self._text[self._at : stop]))
                self._at = stop
                continue
            self._at += 1
            word = _WORD.match(self._text, self._at)
            if word and word[1] == "range":
                self._at = word.end()
                open_ranges.append((self._path(), nodes))
                nodes = []
            elif word:
                if not open_ranges:
                    raise self._error("there is no range to end")
                self._at = word.end()
                nodes = self._close(open_ranges, nodes)
            else:
                nodes.extend(self._expressions())
            self._expect("}")
        while open_ranges:
            nodes = self._close(open_ranges, nodes)
        return tuple(top)

    def _close(self, open_ranges: list[tuple[Path, list[Node]]], body: list[Node]) -> list[Node]:
        over, outer = open_ranges.pop()
        outer.append(Range(over, tuple(body)))
        return outer

    def _expressions(self) -> list[Node]:
        """Read what stands in one pair of braces: paths and quoted texts; nothing is the root."""
        found: list[Node] = []
        while True:
            self._skip_spaces()
            if self._peek() in {"'", '"'}:
                found.append(Literal(self._quoted()))
            elif self._peek() in {"}", ""}:
                return found or [Path(())]
            else:
                found.append(self._path())

    def _path(self) -> Path:
        """Read ``.a['b'][0]``, also after ``$`` or ``@``."""
        self._skip_spaces()
        if self._peek() in {"$", "@"}:
            self._at += 1
        elif self._peek() not in {".", "["}:
            raise self._error("expected a path that begins with '.', '[', '$' or '@'")
        steps: list[Step] = []
        while self._peek() in {".", "["}:
            steps.extend(self._dotted() if self._peek() == "." else self._bracketed())
        return Path(tuple(steps))

    def _dotted(self) -> tuple[Step, ...]:
        self._at += 1
        before: tuple[Step, ...] = ()
        if self._peek() == ".":
            self._at += 1
            before = (Descend(),)
        if self._peek() == "*":
            self._at += 1
            return (*before, Each())
        name = _NAME.match(self._text, self._at)
        if name is None:
            # ``..[0]`` and ``.[0]`` are valid: the bracket follows as the next step.
            if before or self._peek() == "[":
                return before
            raise self._error("expected a field name after '.'")
        self._at = name.end()
        return (*before, Field(_ESCAPED.sub(r"\1", name[0])))

    def _bracketed(self) -> tuple[Step, ...]:
        self._at += 1
        self._skip_spaces()
        if self._peek() == "?":
            self._at += 1
            self._expect("(")
            steps: tuple[Step, ...] = (self._filter(),)
            self._expect(")")
        else:
            choices = [self._choice()]
            while self._peek() == ",":
                self._at += 1
                choices.append(self._choice())
            steps = choices[0] if len(choices) == 1 else (Union(tuple(choices)),)
        self._expect("]")
        return steps

    def _choice(self) -> tuple[Step, ...]:
        self._skip_spaces()
        if self._peek() == "*":
            self._at += 1
            return (Each(),)
        if self._peek() in {"'", '"'}:
            names = self._quoted_names()
            self._skip_spaces()
            return tuple(map(Field, names))
        match = _SLICE.match(self._text, self._at)
        if match is None or not match[0].strip():
            raise self._error("expected an index, a slice, '*', a quoted name or '?('")
        self._at = match.end()
        start, stop, step = (int(part) if part else None for part in match.groups())
        # Go's jsonpath refuses these too; Python's slices would go backwards.
        if step is not None and step <= 0:
            raise self._error("the step of a slice must be positive")
        return (Slice(start, stop, step or 1, is_range=":" in match[0]),)

    def _filter(self) -> Compare:
        left = self._operand()
        operator = _OPERATOR.match(self._text, self._at)
        if operator is None:
            self._skip_spaces()
            return Compare(left)
        self._at = operator.end()
        right = self._operand()
        self._skip_spaces()
        return Compare(left, operator[1], right)

    def _operand(self) -> Path | Literal:
        self._skip_spaces()
        if self._peek() in {"'", '"'}:
            return Literal(self._quoted())
        if number := _NUMBER.match(self._text, self._at):
            self._at = number.end()
            return Literal(float(number[0]) if "." in number[0] else int(number[0]))
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return Literal(value)
        return self._path()

    def _quoted(self) -> str:
        return "".join(map(_unescaped, self._quoted_parts()))

    def _quoted_names(self) -> list[str]:
        r"""Read a name in quotes: ``'a.b'`` is two, ``'a\.b'`` is one; as with kubectl."""
        names = [""]
        for part in self._quoted_parts():
            if part == ".":
                names.append("")
            else:
                names[-1] += _unescaped(part)
        return names

    def _quoted_parts(self) -> list[str]:
        """Read a text in quotes as its characters, those that are escaped with their backslash."""
        match = _STRING.match(self._text, self._at)
        if match is None:
            raise self._error("a quoted text is not closed")
        self._at = match.end()
        return _CHARACTER.findall(match[1] if match[1] is not None else match[2])

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_spaces(self) -> None:
        while self._peek().isspace():
            self._at += 1

    def _expect(self, char: str) -> None:
        self._skip_spaces()
        if self._peek() != char:
            found = repr(self._peek()) if self._peek() else "the end"
            raise self._error(f"expected {char!r}, found {found}")
        self._at += 1

    def _error(self, message: str) -> JsonPathError:
        return JsonPathError(message, text=self._text, position=self._at)


def _unescaped(character: str) -> str:
    r"""Return what a character of a quoted text means: ``\n`` is a line's end, ``\x`` an x."""
    if len(character) == 1:
        return character
    return _ESCAPES.get(character[1], character[1])


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _nothing(_: int) -> None:
    pass


@final
class Evaluator:
    """Follows the paths of one template through decoded JSON.

    Args:
        text: The template, for messages.
        is_strict: As kube-apiserver: a filter is for lists only and compares values of one type
            only, else it is an error; the members of an object come in the order of their names.
        spend: Called with the number of values that are visited. May raise to stop.
    """

    __slots__ = ("_is_strict", "_spend", "_text")

    def __init__(
        self, text: str, *, is_strict: bool = False, spend: Callable[[int], None] = _nothing
    ) -> None:
        self._text = text
        self._is_strict = is_strict
        self._spend = spend

    def follow(self, steps: Sequence[Step], values: list[object]) -> list[object]:
        """Return the values that the steps lead to, from each of ``values``, in order.

        Members that do not exist lead to nothing.

        Raises:
            JsonPathError: an index is out of bounds, or is applied to something else than a list.
        """
        for step in steps:
            if isinstance(step, Union):
                # One choice for all values and then the next one, as kubectl orders them; not all
                # choices per value.
                ways = [self.follow(choice, values) for choice in step.choices]
                values = [found for way in ways for found in way]
            else:
                values = [found for value in values for found in self._take(step, value)]
            # Also where nothing was found: many steps without a result cost time as well.
            self._spend(1 + len(values))
        return values

    def _take(
        self, step: Field | Each | Descend | Slice | Compare, value: object
    ) -> Iterator[object]:
        match step:
            case Field(name):
                if isinstance(value, Mapping) and name in value:
                    yield value[name]
            case Each():
                yield from self._children(value)
            case Descend():
                yield from self._descendants(value)
            case Slice():
                yield from self._slice(step, value)
            case Compare():
                if self._is_strict and value.__class__ is not list:
                    raise self._error("a filter needs a list")
                for item in self._children(value):
                    if self._holds(step, item):
                        yield item
            case _ as never:
                assert_never(never)

    def _slice(self, step: Slice, value: object) -> Iterator[object]:
        if value is None:
            return
        if not isinstance(value, list):
            raise self._error(f"there is no list to index, but {_type_name(value)}")
        items = cast("list[object]", value)
        size = len(items)
        start = step.start or 0
        # Not Python's own slicing, which silently clips: kubectl reports an index that is out of
        # bounds.
        start += size if start < 0 else 0
        if not step.is_range:
            if not 0 <= start < size:
                raise self._error(f"index {step.start} is out of bounds: the list has {size} items")
            yield items[start]
            return
        stop = size if step.stop is None else step.stop + (size if step.stop < 0 else 0)
        if not 0 <= start <= stop <= size:
            raise self._error(f"the slice is out of bounds: the list has {size} items")
        yield from items[start : stop : step.step]

    def _holds(self, compare: Compare, item: object) -> bool:
        self._spend(1)
        left = self._operand(compare.left, item)
        if compare.right is None:
            return bool(left)
        right = self._operand(compare.right, item)
        if not left or not right:
            return False  # a missing value equals nothing, and differs from nothing
        one: Any = left[0]
        other: Any = right[0]
        if self._is_strict and one.__class__ is not other.__class__:
            raise self._error("incompatible types for comparison")
        try:
            return bool(_COMPARISONS[compare.operator](one, other))
        except TypeError:  # a text is neither more nor less than a number
            return False

    def _operand(self, operand: Path | Literal, item: object) -> list[object]:
        if isinstance(operand, Literal):
            return [operand.value]
        return self.follow(operand.steps, [item])

    def _children(self, value: object) -> Iterator[object]:
        if isinstance(value, Mapping):
            members = cast("Mapping[str, object]", value)
            if self._is_strict:
                yield from (members[name] for name in sorted(members))
            else:
                yield from members.values()
        elif isinstance(value, list):
            yield from cast("list[object]", value)

    def _descendants(self, value: object) -> Iterator[object]:
        if isinstance(value, Mapping | list):
            self._spend(1)
            yield cast("object", value)
            for child in self._children(cast("object", value)):
                yield from self._descendants(child)

    def _error(self, message: str) -> JsonPathError:
        return JsonPathError(message, text=self._text)


def _type_name(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a text" if isinstance(value, str) else "a plain value"

"""Label selectors, with the meaning of apimachinery's ``pkg/labels``.

Two differences, neither visible to the server: ``==`` is written as ``=``, and double commas in a
set (``a in (x,,)``) are always read as empty values, where apimachinery accepts some of them and
refuses others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, cast, final

from kinform.selectors.errors import SelectorError
from kinform.selectors.requirements import Operator, Requirement, key_problem, value_problem

__all__ = ["LabelSelector"]

_Anything: TypeAlias = Mapping[object, object]

_MATCHES: Final = ("matchLabels", "matchExpressions")
_EXPRESSION: Final = ("key", "operator", "values")
_OF_EXPRESSION: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_OF_TEXT: Final = {
    "=": Operator.EQUALS,
    "==": Operator.EQUALS,
    "!=": Operator.NOT_EQUALS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


@final
@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that all must be met; none at all selects everything.

    The requirements are kept sorted by key, each once, so two selectors with the same requirements
    in another order are equal and have the same text.

    >>> web = LabelSelector.parse("app = web, tier notin (db), !legacy")
    >>> str(web)
    'app=web,!legacy,tier notin (db)'
    >>> web.matches({"app": "web"}), web.matches({"app": "web", "legacy": ""})
    (True, False)
    """

    requirements: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(set(self.requirements), key=lambda r: (r.key, r.operator, r.values))
        object.__setattr__(self, "requirements", tuple(ordered))

    @classmethod
    def of(cls, value: LabelSelector | Mapping[str, object] | str | None) -> LabelSelector:
        """Return ``value`` as a selector.

        Text is parsed; a mapping holds labels (`from_labels`), unless it is the ``selector`` of
        a workload, with a ``matchLabels`` mapping or ``matchExpressions`` list (`from_dict`);
        None selects everything.

        Raises:
            SelectorError: if it is not valid.
        """
        if isinstance(value, LabelSelector):
            return value
        if value is None:
            return cls()
        if isinstance(value, str):
            return cls.parse(value)
        if not isinstance(cast("object", value), Mapping):
            raise SelectorError(f"{value!r} is not a label selector; expected text or a mapping")
        expression = any(not isinstance(value.get(name, ""), str) for name in _MATCHES)
        return cls.from_dict(value) if expression else cls.from_labels(value)

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Parse kubectl's syntax: ``a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5,j<7``.

        Space between words does not matter; the empty text selects everything; an empty value
        is a value (``a=``, ``a in (,x)``).

        Raises:
            SelectorError: with the position of the error and the expected token.
        """
        return cls(tuple(_Parser(text).requirements()))

    @classmethod
    def from_labels(cls, labels: Mapping[str, object]) -> LabelSelector:
        """Return the selector of the objects that have all these labels.

        Raises:
            SelectorError: if a key or value is not valid for a label.
        """
        return cls(tuple(_equals(key, value) for key, value in cast("_Anything", labels).items()))

    @classmethod
    def from_dict(cls, selector: Mapping[str, object] | None) -> LabelSelector:
        """Return the selector that a workload's ``spec.selector`` describes.

        Empty selects everything, None *nothing*, as in apimachinery: a workload without a selector
        has no objects.

        Raises:
            SelectorError: if it is not made of ``matchLabels`` and ``matchExpressions``.
        """
        if selector is None:
            return cls.nothing()
        if unknown := sorted(str(name) for name in selector if name not in _MATCHES):
            raise SelectorError(f"unknown {unknown[0]!r}, expected {' and '.join(_MATCHES)}")
        labels, expressions = (selector.get(name) for name in _MATCHES)
        if not isinstance(labels, Mapping | None):
            raise SelectorError("matchLabels is not a mapping of labels")
        found = [_equals(key, value) for key, value in cast("_Anything", labels or {}).items()]
        found += [
            _of_expression(expression, f"matchExpressions[{i}]")
            for i, expression in enumerate(_list(expressions, "matchExpressions"))
        ]
        return cls(tuple(found))

    @classmethod
    def everything(cls) -> LabelSelector:
        """Return the selector without requirements. Its text is empty."""
        return cls()

    @classmethod
    def nothing(cls) -> LabelSelector:
        """Return a selector that matches no object, here or on the server: ``nothing,!nothing``."""
        ops = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
        return cls(tuple(Requirement("nothing", op) for op in ops))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels meets every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class _Token(NamedTuple):
    text: str  # "" is the end
    position: int

    @property
    def is_word(self) -> bool:
        return bool(self.text) and self.text not in _SYMBOLS


class _Parser:
    """Recursive descent over the tokens. ``in`` and ``notin`` are operators only after a key."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = [_Token(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._tokens = [_Token("", len(text)), *reversed(found)]  # a stack: the next is the last

    def requirements(self) -> Iterator[Requirement]:
        """Yield the requirements in the order of the text."""
        if not self._tokens[-1].text:
            return
        while True:
            yield self._requirement()
            token = self._tokens.pop()
            if not token.text:
                return
            if token.text != ",":
                raise self._error(token, "',' or the end")

    def _requirement(self) -> Requirement:
        if self._tokens[-1].text == "!":
            self._tokens.pop()
            return Requirement(self._key(), Operator.DOES_NOT_EXIST)
        key = self._key()
        if self._tokens[-1].text in {"", ","}:
            return Requirement(key, Operator.EXISTS)
        token = self._tokens.pop()
        operator = _OF_TEXT.get(token.text)
        if operator is None:
            raise self._error(token, "one of = != in notin > < or ','")
        if operator in {Operator.IN, Operator.NOT_IN}:
            return Requirement(key, operator, tuple(self._values(operator)))
        return Requirement(key, operator, (self._value(operator),))

    def _key(self) -> str:
        token = self._tokens.pop()
        if not token.is_word:
            raise self._error(token, "a label key")
        return self._checked(token, key_problem(token.text))

    def _values(self, operator: Operator) -> Iterator[str]:
        token = self._tokens.pop()
        if token.text != "(":
            raise self._error(token, f"'(' after {operator!s}")
        while token.text != ")":
            yield self._value(operator)
            token = self._tokens.pop()
            if token.text not in {",", ")"}:
                raise self._error(token, "',' or ')'")

    def _value(self, operator: Operator) -> str:
        token = self._tokens[-1]
        if not token.is_word:  # the empty text is a valid value
            token = _Token("", token.position)
        else:
            self._tokens.pop()
        return self._checked(token, value_problem(token.text, operator))

    def _checked(self, token: _Token, problem: str | None) -> str:
        if problem:
            raise SelectorError(problem, text=self._text, position=token.position)
        return token.text

    def _error(self, token: _Token, expected: str) -> SelectorError:
        found = repr(token.text) if token.text else "the end"
        message = f"expected {expected}, found {found}"
        return SelectorError(message, text=self._text, position=token.position)


def _equals(key: object, value: object) -> Requirement:
    if isinstance(key, str) and isinstance(value, str):
        return Requirement(key, Operator.EQUALS, (value,))
    raise SelectorError(f"label {key!r}: {value!r} is not a label; both must be text, quote them")


def _of_expression(expression: object, where: str) -> Requirement:
    """Return the requirement of one element of ``matchExpressions``."""
    if not isinstance(expression, Mapping):
        raise SelectorError(f"{where} is not a mapping with key, operator and values")
    key, name, values = (cast("_Anything", expression).get(k) for k in _EXPRESSION)
    operator = _OF_EXPRESSION.get(str(name))
    if operator is None:
        raise SelectorError(f"{where}.operator is {name!r}, expected {', '.join(_OF_EXPRESSION)}")
    if not isinstance(key, str):
        raise SelectorError(f"{where}.key is {key!r}, expected a label key")
    found = _list(values, f"{where}.values")
    texts = [value for value in found if isinstance(value, str)]
    if len(texts) < len(found):
        raise SelectorError(f"{where}.values must all be text, quote them")
    return Requirement(key, operator, tuple(texts))


def _list(value: object, where: str) -> Sequence[object]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise SelectorError(f"{where} is not a list")
    return cast("Sequence[object]", value)

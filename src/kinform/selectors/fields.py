r"""Field selectors, with the meaning of apimachinery's ``pkg/fields``.

They have fewer operators than label selectors and another syntax: a value may be any text, with
``\``, ``,`` and ``=`` escaped by a backslash; space is part of a value, never of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast, final

from kinform.selectors.errors import SelectorError
from kinform.selectors.requirements import Operator

__all__ = ["FieldRequirement", "FieldSelector"]

_TERM: Final = re.compile(r"(?:\\.|[^,\\]|\\\Z)+", re.DOTALL)
_OPERATOR: Final = re.compile(r"!=|==?")
_SPECIAL: Final = re.compile(r"[\\,=]")
_ESCAPED: Final = re.compile(r"\\([\\,=])")


@final
@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One condition on one field: equal to ``value``, or not.

    Raises:
        SelectorError: if ``field`` is not a path, ``operator`` is neither ``EQUALS`` nor
            ``NOT_EQUALS``, or ``value`` is not text that can be sent.
    """

    field: str
    operator: Operator
    value: str

    def __post_init__(self) -> None:
        if self.operator not in {Operator.EQUALS, Operator.NOT_EQUALS}:
            raise SelectorError(f"fields cannot be selected with {self.operator!s}, only = and !=")
        if problem := _field_problem(self.field) or _value_problem(self.value):
            raise SelectorError(problem)

    def matches(self, get: Callable[[str], str | None]) -> bool:
        """Return whether an object meets it; ``get`` returns its fields, None counts as ``""``."""
        return ((get(self.field) or "") == self.value) is (self.operator is Operator.EQUALS)

    def __str__(self) -> str:
        escaped = _SPECIAL.sub(r"\\\g<0>", self.value)
        return f"{self.field}{self.operator}{escaped}"


@final
@dataclass(frozen=True, slots=True)
class FieldSelector:
    r"""Requirements on fields that all must be met; none at all selects everything.

    They are kept sorted by field, each once. The server decides which fields exist.

    >>> selector = FieldSelector.parse(r"status.phase!=Running,metadata.name==a\,b")
    >>> str(selector), selector.requirements[0].value
    ('metadata.name=a\\,b,status.phase!=Running', 'a,b')
    >>> selector.matches({"metadata.name": "a,b"}.get)
    True
    """

    requirements: tuple[FieldRequirement, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(set(self.requirements), key=lambda r: (r.field, r.operator, r.value))
        object.__setattr__(self, "requirements", tuple(ordered))

    @classmethod
    def of(cls, value: FieldSelector | Mapping[str, str] | str | None) -> FieldSelector:
        """Return ``value`` as a selector.

        Text is parsed, a mapping holds fields and their required values, None selects everything.

        Raises:
            SelectorError: if it is not valid.
        """
        if isinstance(value, FieldSelector):
            return value
        if value is None:
            return cls()
        if isinstance(value, str):
            return cls.parse(value)
        if not isinstance(cast("object", value), Mapping):
            raise SelectorError(f"{value!r} is not a field selector; expected text or a mapping")
        return cls.from_fields(value)

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Parse ``metadata.name=web,status.phase!=Running``; ``==`` is ``=``.

        In values ``\\``, ``\,`` and ``\=`` stand for the characters after the backslash. Empty
        terms are skipped.

        Raises:
            SelectorError: with the position of the error and the expected token.
        """
        return cls(tuple(_requirement(text, match) for match in _TERM.finditer(text)))

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> FieldSelector:
        """Return the selector of the objects whose fields have these values.

        Raises:
            SelectorError: if a field is not a path, or a value is not text.
        """
        return cls(tuple(_equals(fields)))

    @classmethod
    def everything(cls) -> FieldSelector:
        """Return the selector without requirements. Its text is empty."""
        return cls()

    def matches(self, get: Callable[[str], str | None]) -> bool:
        """Return whether an object meets every requirement; ``get`` returns its fields.

        ``get`` may be the method of a dict; a missing field is ``""``.
        """
        return all(requirement.matches(get) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _equals(fields: Mapping[str, str]) -> Iterator[FieldRequirement]:
    for field, value in cast("Mapping[object, object]", fields).items():
        if not (isinstance(field, str) and isinstance(value, str)):
            raise SelectorError(
                f"field {field!r}: {value!r} is not text; write it as the server does"
            )
        yield FieldRequirement(field, Operator.EQUALS, value)


def _requirement(text: str, term: re.Match[str]) -> FieldRequirement:
    """Parse one term; every error has its position in the whole ``text``."""
    operator = _OPERATOR.search(term[0])
    if operator is None:
        message = f"expected field=value or field!=value, found {term[0]!r}"
        raise SelectorError(message, text=text, position=term.start())
    field = term[0][: operator.start()]
    value = term[0][operator.end() :]
    start = term.start() + operator.end()
    if problem := _field_problem(field):
        raise SelectorError(problem, text=text, position=term.start())
    if bad := _SPECIAL.search(_ESCAPED.sub("..", value)):
        message = rf"expected \{bad[0]} in a value, found a lone {bad[0]}"
        raise SelectorError(message, text=text, position=start + bad.start())
    if problem := _value_problem(value):
        raise SelectorError(problem, text=text, position=start)
    kind = Operator.NOT_EQUALS if operator[0] == "!=" else Operator.EQUALS
    return FieldRequirement(field, kind, _ESCAPED.sub(r"\1", value))


def _field_problem(field: str) -> str | None:
    if field and field.isprintable() and not re.search(r"[ \\,=]|!$", field):
        return None
    return f"{field!r} is not a field; expected a path like 'metadata.name', without spaces"


def _value_problem(value: str) -> str | None:
    if value.isascii() or value.encode(errors="replace").decode() == value:
        return None
    return "the value holds half a surrogate pair, which has no UTF-8 form"

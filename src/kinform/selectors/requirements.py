"""`Requirement`: one condition on one label, its operators, validation and matching."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from kinform.selectors.errors import SelectorError

__all__ = ["Operator", "Requirement", "key_problem", "value_problem"]

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX: Final = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_INTEGER: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")

_NAME_RULE: Final = (
    "letters, digits, '-', '_' and '.', with a letter or digit at both ends, at most 63 characters"
)


class Operator(enum.StrEnum):
    """The relation between a key and its values."""

    EQUALS = "="
    """Has the key, with that value; ``==`` is read as the same."""
    NOT_EQUALS = "!="
    """Does not have the key, or has it with another value."""
    IN = "in"
    """Has the key, with one of the values."""
    NOT_IN = "notin"
    """Does not have the key, or has it with none of the values."""
    EXISTS = "exists"
    """Has the key."""
    DOES_NOT_EXIST = "!"
    """Does not have the key."""
    GREATER_THAN = ">"
    """Has the key, with a greater integer."""
    LESS_THAN = "<"
    """Has the key, with a smaller integer."""


# Tuples: a member is found in one by identity, while hashing it would call Python code.
_ONE_OF: Final = (Operator.EQUALS, Operator.IN)
_NONE_OF: Final = (Operator.NOT_EQUALS, Operator.NOT_IN)
_SETS: Final = (Operator.IN, Operator.NOT_IN)
_UNARY: Final = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_INTEGERS: Final = (Operator.GREATER_THAN, Operator.LESS_THAN)


@final
@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. ``values`` are kept sorted, each once.

    >>> str(Requirement("tier", Operator.IN, ("web", "db")))
    'tier in (db,web)'

    Raises:
        SelectorError: if the key, a value or their number is not valid for the operator.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(set(self.values))))
        problem = key_problem(self.key) or self._count_problem()
        for value in self.values:
            problem = problem or value_problem(value, self.operator)
        if problem:
            raise SelectorError(problem)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels meets the requirement.

        An absent key meets only ``!=``, ``notin`` and ``!``.
        """
        value, operator = labels.get(self.key), self.operator
        if operator in _ONE_OF:
            return value in self.values
        if operator in _NONE_OF:
            return value not in self.values
        if operator in _UNARY:
            return (value is None) is (operator is Operator.DOES_NOT_EXIST)
        number, bound = _integer(value), int(self.values[0])
        if number is None:
            return False
        return number > bound if operator is Operator.GREATER_THAN else number < bound

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in _SETS:
            return f"{self.key} {self.operator} ({','.join(self.values)})"
        return f"{self.key}{self.operator}{self.values[0]}"

    def _count_problem(self) -> str | None:
        count = len(self.values)
        if self.operator in _UNARY:
            return f"{self.operator.name} of {self.key!r} takes no values" if count else None
        if self.operator in _SETS:
            return None if count else f"{self.operator!s} of {self.key!r} needs at least one value"
        return None if count == 1 else f"{self.operator!s} of {self.key!r} takes exactly one value"


def key_problem(key: str) -> str | None:
    """Return why ``key`` is not a valid label key (``name`` or ``example.com/name``), or None."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _PREFIX.fullmatch(prefix)):
        return (
            f"the prefix of label key {key!r} is not a DNS name; expected lower case, digits, "
            "'-' and '.', with a letter or digit at both ends, at most 253 characters"
        )
    if len(name) > 63 or not _NAME.fullmatch(name):
        return f"{key!r} is not a label key; expected {_NAME_RULE}, after an optional 'prefix/'"
    return None


def value_problem(value: str, operator: Operator) -> str | None:
    """Return why ``value`` is not a valid label value for ``operator``, or None."""
    if operator in _INTEGERS and _integer(value) is None:
        return f"{operator!s} compares integers of 64 bits, and {value!r} is none"
    if len(value) > 63 or (value and not _NAME.fullmatch(value)):
        return f"{value!r} is not a label value; expected nothing, or {_NAME_RULE}"
    return None


def _integer(text: str | None) -> int | None:
    # As Go's ParseInt(text, 10, 64): ASCII digits, no spaces, no underscores.
    found = _INTEGER.fullmatch(text or "")
    if found is None:
        return None
    number = int(found[1] + found[2])  # without the zeros: int() refuses more than 4300 digits
    return number if -(2**63) <= number < 2**63 else None

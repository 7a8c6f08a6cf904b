"""Errors of single fields, in the words of kube-apiserver."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from typing import Final, final

import msgspec

__all__ = [
    "FieldError",
    "Problem",
    "aggregate",
    "duplicate",
    "forbidden",
    "internal",
    "invalid",
    "not_found",
    "not_supported",
    "quoted",
    "required",
    "too_long",
    "too_many",
    "type_invalid",
]


class Problem(enum.StrEnum):
    """The kind of a field's error: its value is the reason that a Status gives as cause."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    INTERNAL = "InternalError"
    TYPE_INVALID = "FieldValueTypeInvalid"


_WORDS: Final = {
    Problem.NOT_FOUND: "Not found",
    Problem.REQUIRED: "Required value",
    Problem.DUPLICATE: "Duplicate value",
    Problem.INVALID: "Invalid value",
    Problem.NOT_SUPPORTED: "Unsupported value",
    Problem.FORBIDDEN: "Forbidden",
    Problem.TOO_LONG: "Too long",
    Problem.TOO_MANY: "Too many",
    Problem.INTERNAL: "Internal error",
    Problem.TYPE_INVALID: "Invalid value",
}
_EXPONENT: Final = re.compile(r"e([+-])(\d)$")
_ESCAPES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    '"': r"\"", "\\": r"\\",
}  # fmt: skip
_HTML: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
"""The characters that Go escapes in JSON."""
_WITHOUT_VALUE: Final = {
    Problem.REQUIRED,
    Problem.FORBIDDEN,
    Problem.TOO_LONG,
    Problem.TOO_MANY,
    Problem.INTERNAL,
}


@final
class FieldError(msgspec.Struct, frozen=True):
    """One thing that is wrong with one field.

    >>> str(required("metadata.name", "name or generateName is required"))
    'metadata.name: Required value: name or generateName is required'
    >>> str(invalid("spec.replicas", -1, "must be greater than or equal to 0"))
    'spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    """

    problem: Problem
    field: str
    """Its path, such as ``spec.containers[0].name``."""
    detail: str = ""
    value: object = None

    @property
    def text(self) -> str:
        """The message without the path: that of a cause in a Status."""
        words = _WORDS[self.problem]
        if self.problem not in _WITHOUT_VALUE:
            words += f": {_shown(self.value)}"
        return f"{words}: {self.detail}" if self.detail else words

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be there is not."""
    return FieldError(Problem.REQUIRED, field, detail)


def invalid(field: str, value: object, detail: str) -> FieldError:
    """The value does not obey a rule, which ``detail`` states."""
    return FieldError(Problem.INVALID, field, detail, value)


def type_invalid(field: str, value: object, detail: str) -> FieldError:
    """The value is of another type than it must be."""
    return FieldError(Problem.TYPE_INVALID, field, detail, value)


def not_supported(field: str, value: object, valid: Iterable[str]) -> FieldError:
    """The value is none of the ``valid`` ones."""
    names = ", ".join(_shown(one) for one in sorted(valid))
    detail = f"supported values: {names}" if names else ""
    return FieldError(Problem.NOT_SUPPORTED, field, detail, value)


def duplicate(field: str, value: object) -> FieldError:
    """The value is there twice."""
    return FieldError(Problem.DUPLICATE, field, "", value)


def not_found(field: str, value: object) -> FieldError:
    """The value names something that is not there."""
    return FieldError(Problem.NOT_FOUND, field, "", value)


def forbidden(field: str, detail: str) -> FieldError:
    """The field must not be set, or not be changed."""
    return FieldError(Problem.FORBIDDEN, field, detail)


def too_long(field: str, limit: int) -> FieldError:
    """The text is longer than ``limit`` bytes."""
    unit = "byte" if limit == 1 else "bytes"
    return FieldError(Problem.TOO_LONG, field, f"may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """There are more items than ``limit``."""
    unit = "item" if limit == 1 else "items"
    return FieldError(Problem.TOO_MANY, field, f"{count}: must have at most {limit} {unit}")


def internal(field: str, detail: str) -> FieldError:
    """An internal error of the server."""
    return FieldError(Problem.INTERNAL, field, detail)


def aggregate(errors: Sequence[FieldError]) -> str:
    """Return all errors in one text, each once: alone as it is, else a list in brackets."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _shown(value: object) -> str:
    """Return a value as the server prints it: text in Go's quotes, all else as JSON.

    Fields come in the order in which they are given: that of Go's structs is the caller's to know;
    the keys of a map are to be sorted.
    """
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return _EXPONENT.sub(r"e\g<1>0\2", _signed(msgspec.json.encode(value).decode()))
    return msgspec.json.encode(value).decode().translate(_HTML)


def quoted(text: str) -> str:
    """Return a text in Go's quotes: what cannot be printed is escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _signed(text: str) -> str:
    """Return a number with a sign in its exponent, as Go writes it."""
    return re.sub(r"e(\d)", r"e+\1", text)

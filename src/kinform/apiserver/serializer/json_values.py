"""Decoded JSON: types, access to nested fields, and Go's syntax errors."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias, cast, final

__all__ = ["Json", "JsonValue", "as_dict", "as_list", "at", "syntax_error", "text", "too_deep"]

JsonValue: TypeAlias = Any
"""A decoded value: None, bool, int, float, str, list or dict. The client chose its type."""

Json: TypeAlias = dict[str, JsonValue]
"""An object that was decoded from JSON. Its holder may change it."""


def as_dict(value: object) -> Json:
    """Return ``value`` if it is an object, else a new empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[JsonValue]:
    """Return ``value`` if it is a list, else a new empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def at(obj: Json, *path: str) -> JsonValue:
    """Return the value at a path of keys, None if there is none.

    >>> at({"spec": {"nodeName": "a"}}, "spec", "nodeName")
    'a'
    >>> at({"spec": None}, "spec", "nodeName")
    """
    value: JsonValue = obj
    for key in path:
        if not isinstance(value, dict):
            return None
        value = cast("Json", value).get(key)
    return value


def text(obj: Json, *path: str) -> str:
    """Return the text at a path of keys, ``""`` if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, str) else ""


# --- syntax errors, in the words of Go's decoder

# Slow and exact: used only after the fast decoder has refused the text.

_LONG: Final = 256 * 1024
"""Longer texts are not scanned byte by byte: that takes seconds."""
_DEEPEST: Final = 10_000
_END: Final = "unexpected end of JSON input"
_SPACE: Final = b" \t\r\n"
_DIGITS: Final = b"0123456789"
_HEX: Final = b"0123456789abcdefABCDEF"
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPED: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
                   "\v": "\\v", "\\": "\\\\", "'": "\\'"}  # fmt: skip


class _Wrong(Exception):
    """The text ends the scan here."""


def syntax_error(text: bytes) -> str:
    """Return Go's complaint about a text, ``""`` if it is JSON.

    >>> syntax_error(b'{"a":1,}')
    "invalid character '}' looking for beginning of object key string"
    """
    if len(text) > _LONG:
        return _by_position(text)
    try:
        _Scanner(text).document()
    except _Wrong as exc:
        return str(exc)
    except RecursionError:
        return too_deep(text)
    return ""


def _by_position(text: bytes) -> str:
    """Return the complaint about a long text: the place is exact, the words may be other ones."""
    try:
        # Numbers are not made: very long ones take long, or are an error.
        json.loads(text.decode(errors="replace"), parse_int=str, parse_float=str)
    except json.JSONDecodeError as exc:
        rest = exc.doc[exc.pos : exc.pos + 1]
        if not rest or exc.msg.startswith("Unterminated string"):
            return _END
        return f"invalid character {_quoted(rest)} looking for beginning of value"
    except RecursionError:
        return too_deep(text)
    return ""


def too_deep(text: bytes) -> str:
    """Return Go's complaint about a text that is nested deeper than it, or Python, can read."""
    depth = 0
    is_text = is_escaped = False
    opening = "{"
    for byte in text:
        if is_text:
            is_text = is_escaped or byte != 0x22
            is_escaped = byte == 0x5C and not is_escaped
        elif byte == 0x22:
            is_text = True
        elif byte in b"{[":
            depth += 1
            opening = chr(byte)
            if depth > _DEEPEST:
                break
        elif byte in b"}]":
            depth -= 1
    return f"invalid character '{opening}' exceeded max depth"


@final
class _Scanner:
    """Reads values from the beginning; raises `_Wrong` at the first byte that cannot be there."""

    def __init__(self, text: bytes) -> None:
        self._text: Final = text
        self._at = 0

    def document(self) -> None:
        self._value()
        self._skip()
        if self._at < len(self._text):
            self._refuse("after top-level value")

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1

    def _next(self) -> int:
        """Return the next byte that is not blank, without taking it."""
        self._skip()
        if self._at == len(self._text):
            raise _Wrong(_END)
        return self._text[self._at]

    def _is_in(self, allowed: bytes) -> bool:
        return self._at < len(self._text) and self._text[self._at] in allowed

    def _refuse(self, where: str) -> None:
        # Go feeds its scanner one blank at the end, so a token cut short is refused for that.
        byte = self._text[self._at] if self._at < len(self._text) else 0x20
        raise _Wrong(f"invalid character {_quoted(chr(byte))} {where}")

    def _value(self) -> None:
        first = self._next()
        if first == ord("{"):
            self._object()
        elif first == ord("["):
            self._array()
        elif first == ord('"'):
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first == ord("-") or first in _DIGITS:
            self._number()
        else:
            self._refuse("looking for beginning of value")

    def _object(self) -> None:
        self._at += 1
        if self._next() == ord("}"):
            self._at += 1
            return
        while True:
            if self._next() != ord('"'):
                self._refuse("looking for beginning of object key string")
            self._string()
            if self._next() != ord(":"):
                self._refuse("after object key")
            self._at += 1
            self._value()
            if self._is_last(b"}", "after object key:value pair"):
                return

    def _array(self) -> None:
        self._at += 1
        if self._next() == ord("]"):
            self._at += 1
            return
        while True:
            self._value()
            if self._is_last(b"]", "after array element"):
                return

    def _is_last(self, closing: bytes, where: str) -> bool:
        byte = self._next()
        if byte not in closing and byte != ord(","):
            self._refuse(where)
        self._at += 1
        return byte in closing

    def _string(self) -> None:
        self._at += 1
        while self._at < len(self._text):
            byte = self._text[self._at]
            if byte < 0x20:
                self._refuse("in string literal")
            self._at += 1
            if byte == ord('"'):
                return
            if byte == ord("\\"):
                self._escape()
        raise _Wrong(_END)

    def _escape(self) -> None:
        if not self._is_in(b'bfnrt\\/"u'):
            self._refuse("in string escape code")
        is_code = self._text[self._at] == ord("u")
        self._at += 1
        for _ in range(4 if is_code else 0):
            if not self._is_in(_HEX):
                self._refuse("in \\u hexadecimal character escape")
            self._at += 1

    def _literal(self, word: bytes) -> None:
        for byte in word:
            if not self._is_in(bytes((byte,))):
                self._refuse(f"in literal {word.decode()} (expecting {_quoted(chr(byte))})")
            self._at += 1

    def _number(self) -> None:
        if self._is_in(b"-"):
            self._at += 1
        if self._is_in(b"0"):
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._is_in(b"."):
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._is_in(b"eE"):
            self._at += 1
            if self._is_in(b"+-"):
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, where: str) -> None:
        if not self._is_in(_DIGITS):
            self._refuse(where)
        while self._is_in(_DIGITS):
            self._at += 1


def _quoted(char: str) -> str:
    if char in _ESCAPED:
        return f"'{_ESCAPED[char]}'"
    return f"'{char}'" if char.isprintable() else f"'\\x{ord(char):02x}'"

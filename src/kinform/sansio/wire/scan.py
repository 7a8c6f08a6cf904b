"""A structural JSON scanner: finds the end of a value in bytes that arrive in pieces.

It is a fallback. `kinform.sansio.wire.watch` and `kinform.sansio.wire.list` cut by newline or by
guess and let the real decoder prove the cut; they use this module for the other cases: values
without a separator, objects too broken or too deep for the decoder, lists of another layout.

Rule 1: each byte is visited a constant number of times, for any split of the input.
Rule 2: nesting costs a counter, never the stack, so the depth is not limited.
Rule 3: brackets are counted, not matched, and scalars are not validated. A cut made here means
"no other position is possible", not "this is JSON"; the decoder validates the value. Only
`Cursor.check` follows the grammar: it detects early that a value will never end.
"""

from __future__ import annotations

import enum
import re
from typing import Final, final

__all__ = ["WHITESPACE", "Cursor", "Scanner", "members", "skip_whitespace"]

WHITESPACE: Final = b" \t\r\n"
"""The four bytes that JSON allows between tokens; no Unicode space is among them."""

# Every repeat is possessive (``*+``): there is no backtracking, so a match is linear and needs no
# extra memory, even over a string of millions of escapes. Each pattern also matches the empty
# text, so a match never fails: it only stops.

# The rest of a string. Stops before its quote, before a backslash that ends the data, or there.
_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
# Anything without a bracket, whole strings included. Stops before a bracket, before the quote of
# a string that the data does not finish, or at the end.
_FLAT: Final = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
# Brackets come in runs, ``[{`` and ``}}]}``; a run is one step, and so is any depth of ``[[[``.
_OPENINGS: Final = re.compile(rb"[{\[]*+")
_CLOSINGS: Final = re.compile(rb"[}\]]*+")
# A number or literal, or garbage in its place: the decoder validates it.
_SCALAR: Final = re.compile(rb"[^ \t\r\n,:\"{}\[\]]*+")
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
# One token. No token holds a raw newline, so text up to a newline is made of whole tokens; a
# quote alone is a string that the line does not finish.
_TOKENS: Final = re.compile(
    rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|[^ \t\r\n,:"{}\[\]]++|[,:{}\[\]"]'
)
_MAX_TOKENS: Final = 1_000_000

_BRACE: Final = ord("{")
_COMMA: Final = ord(",")
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_OPENING: Final = frozenset(b"{[")
_CLOSING: Final = {ord("}"): ord("{"), ord("]"): ord("[")}
_PUNCTUATION: Final = frozenset(b"{}[],:")
_SCALAR_TOKEN: Final = -1


class _Expect(enum.Enum):
    """The tokens that the grammar of JSON allows next."""

    VALUE = enum.auto()
    FIRST_ELEMENT = enum.auto()
    FIRST_KEY = enum.auto()
    KEY = enum.auto()
    COLON = enum.auto()
    NEXT = enum.auto()
    NOTHING = enum.auto()


# The state after each token, which is its first byte or _SCALAR_TOKEN. After closing brackets and
# commas it also depends on the enclosing bracket.
_VALUES: Final = {
    _QUOTE: _Expect.NEXT,
    _SCALAR_TOKEN: _Expect.NEXT,
    ord("{"): _Expect.FIRST_KEY,
    ord("["): _Expect.FIRST_ELEMENT,
}
_FOLLOWING: Final[dict[_Expect, dict[int, _Expect]]] = {
    _Expect.VALUE: _VALUES,
    _Expect.FIRST_ELEMENT: {**_VALUES, ord("]"): _Expect.NEXT},
    _Expect.FIRST_KEY: {_QUOTE: _Expect.COLON, ord("}"): _Expect.NEXT},
    _Expect.KEY: {_QUOTE: _Expect.COLON},
    _Expect.COLON: {ord(":"): _Expect.VALUE},
    _Expect.NEXT: {
        ord(","): _Expect.VALUE,
        ord("}"): _Expect.NEXT,
        ord("]"): _Expect.NEXT,
    },
    _Expect.NOTHING: {},
}


def skip_whitespace(data: bytes | bytearray, start: int = 0) -> int:
    """Return the index of the first byte at or after ``start`` that is not JSON whitespace."""
    return _end(_SPACE.match(data, start))


def _end(match: re.Match[bytes] | None) -> int:
    assert match is not None  # see above: the patterns match everywhere
    return match.end()


@final
class Scanner:
    """Finds the end of one JSON value: an object, array, string, number or literal.

    Feed it the pieces of one value with `scan`, in order; after it has returned the end, call
    `reset` before the next value. The caller keeps the bytes, the scanner only its state.
    """

    __slots__ = ("_depth", "_escaped", "_in_scalar", "_in_string", "_started")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again: the next byte scanned is the first one of a value."""
        self._started = False
        self._depth = 0
        self._in_scalar = False
        # Invariant: _escaped implies _in_string. It is set when the last byte seen was a
        # backslash whose partner has not arrived.
        self._in_string = False
        self._escaped = False

    def scan(self, data: bytes | bytearray, start: int = 0) -> int:
        """Take ``data[start:]`` as what follows; return the index just after the value.

        Returns -1 if the value does not end in ``data``; the next call then continues with the
        bytes after it. A number or literal ends only when the byte after it is seen. The first
        byte of a value must not be whitespace; a value that starts with a byte no value can
        start with ends where it starts, so a result equal to ``start`` means "no value here".
        """
        size = len(data)
        if start >= size:
            return -1
        if not self._started:
            self._started = True
            # The first byte decides what is looked for: a quote, a delimiter, or depth 0.
            first = data[start]
            self._in_string = first == _QUOTE
            self._in_scalar = first != _QUOTE and first not in _OPENING
            start += self._in_string
        if self._in_scalar:
            # Without the byte after it, ``12`` may be the start of ``123``.
            end = _end(_SCALAR.match(data, start))
            return -1 if end == size else end
        return self._scan_nested(data, start)

    def _scan_nested(self, data: bytes | bytearray, pos: int) -> int:
        # Invariant at the top of the loop: the state covers all of data[:pos], so the scan may
        # stop after any iteration and continue with the next piece.
        size = len(data)
        while True:
            if self._in_string:
                pos = self._scan_string(data, pos)
                if pos < 0:
                    return -1
                if self._depth == 0:  # the value is the string itself
                    return pos
            # One match runs to the next bracket: strings in between cost no iteration.
            # At depth 0 it matches nothing, because the value's own bracket comes first.
            pos = _end(_FLAT.match(data, pos))
            if pos == size:
                return -1
            byte = data[pos]
            if byte == _QUOTE:
                # Unfinished here. Its bytes are passed once more by _scan_string, and then
                # never again: at most twice per string and call.
                self._in_string = True
                pos += 1
            elif byte in _OPENING:
                end = _end(_OPENINGS.match(data, pos))
                self._depth += end - pos
                pos = end
            else:
                end = _end(_CLOSINGS.match(data, pos))
                if end - pos >= self._depth:
                    # The value ends within the run; the rest of the run closes outer values.
                    return pos + self._depth
                self._depth -= end - pos
                pos = end

    def _scan_string(self, data: bytes | bytearray, pos: int) -> int:
        """Return the index after the closing quote, or -1 with the state kept."""
        size = len(data)
        if self._escaped:  # and there is a byte: `scan` returns at once without one
            pos += 1  # the escaped byte cannot close the string; \uXXXX needs no special case
            self._escaped = False
        pos = _end(_STRING_REST.match(data, pos))
        if pos == size:
            return -1
        if data[pos] == _BACKSLASH:  # the pattern stops at one only if it is the last byte
            self._escaped = True
            return -1
        self._in_string = False
        return pos + 1


@final
class _Syntax:
    """Follows the grammar of one value over several lines; scalars are not validated."""

    __slots__ = ("_expected", "_open")

    def __init__(self) -> None:
        self._open = bytearray()
        self._expected = _Expect.VALUE

    def take(self, data: bytes | bytearray, start: int) -> None:
        """Take ``data[start:]``, which ends with a line, as what follows.

        Raises:
            ValueError: no valid value continues like this.
        """
        opened, expected = self._open, self._expected
        for count, match in enumerate(_TOKENS.finditer(data, start)):
            first, end = match.span()
            byte = data[first]
            if byte == _QUOTE and end - first == 1:
                raise ValueError("a line ends inside a string")
            if count == _MAX_TOKENS:
                raise ValueError("too many tokens in one line")
            token = byte if byte == _QUOTE or byte in _PUNCTUATION else _SCALAR_TOKEN
            following = _FOLLOWING[expected].get(token)
            if following is None:
                raise ValueError("unexpected token")
            expected = following
            if byte in _OPENING:
                opened.append(byte)
            elif byte in _CLOSING:
                if opened.pop() != _CLOSING[byte]:
                    raise ValueError("brackets do not match")
                expected = expected if opened else _Expect.NOTHING
            elif token == _COMMA and opened[-1] == _BRACE:
                expected = _Expect.KEY
        self._expected = expected


@final
class Cursor:
    """The unread bytes of a stream, and a position in them.

    Append new bytes to ``data``, read from ``pos`` on, and `compact` once per feed.
    """

    __slots__ = ("_checked", "_scanned", "_scanner", "_syntax", "data", "pos")

    data: bytearray
    """Consumed bytes that are not freed yet, then the unread bytes. Appending costs amortised
    constant time per byte, so that a value of any length may arrive in pieces of any size."""
    pos: int
    """The start of the next token in `data`; everything before is consumed."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.pos = 0
        # Invariant: if the scanner has begun on the value at pos, it has seen
        # data[pos:_scanned]; if not, _scanned is 0 and the scanner fresh. A value is never
        # empty, so the two cannot be confused.
        self._scanner = Scanner()
        self._scanned = 0
        # The same for the grammar, which few streams need: None if it has not begun.
        self._syntax: _Syntax | None = None
        self._checked = 0

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return len(self.data) - self.pos

    def peek(self) -> int:
        """Skip whitespace; return the next byte without consuming it, -1 if there is none."""
        self.pos = pos = skip_whitespace(self.data, self.pos)
        return self.data[pos] if pos < len(self.data) else -1

    def value_end(self) -> int:
        """Return the end of the value at `pos`, -1 if it has not arrived.

        Continues where the last call for the same value stopped: no byte is scanned twice.
        """
        end = self._scanner.scan(self.data, max(self.pos, self._scanned))
        self._scanned = len(self.data)
        return end

    def check(self) -> None:
        """Check that the unread bytes, which end with a line, can be the first lines of a value.

        Continues where the last call for the same value stopped.

        Raises:
            ValueError: they cannot, with any continuation.
        """
        if self._syntax is None:
            self._syntax = _Syntax()
        self._syntax.take(self.data, max(self.pos, self._checked))
        self._checked = len(self.data)

    @property
    def is_checked(self) -> bool:
        """True if lines of the value at `pos` were checked."""
        return self._syntax is not None

    def move(self, pos: int) -> None:
        """Consume everything before ``pos``, where another token or value starts."""
        self.pos = pos
        if self._syntax is not None:
            self._syntax = None
            self._checked = 0
        # Also when the scanner had only begun: the caller found the end of that value.
        if self._scanned:
            self._scanner.reset()
            self._scanned = 0

    def take(self, end: int) -> bytes:
        """Return and consume the bytes up to ``end``."""
        with memoryview(self.data) as view:  # a slice of the bytearray would be one more copy
            taken = bytes(view[self.pos : end])
        self.move(end)
        return taken

    def compact(self) -> None:
        """Free the consumed bytes.

        Done per feed, not per value, so that no more bytes are moved than were fed.
        """
        # Deleting the front of a bytearray moves its start and copies at most the rest.
        del self.data[: self.pos]
        self._scanned = max(0, self._scanned - self.pos)
        self._checked = max(0, self._checked - self.pos)
        self.pos = 0


def members(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Return the span ``(start, end)`` of each member's value in one JSON object.

    Keys are the bytes between the quotes, with escapes as they are: no server writes the keys of
    Kubernetes with escapes. A repeated key keeps its last value, as in decoders.

    Raises:
        ValueError: if ``data`` is not one JSON object at its top level.
    """
    # Without recursion, and tolerant inside the values: used on objects that no decoder accepts.
    found: dict[bytes, tuple[int, int]] = {}
    pos = _after(data, skip_whitespace(data), token=b"{")
    while data[pos : pos + 1] != b"}":
        if found:
            # A brace right behind the comma is not a key, so ``{"a":1,}`` fails below.
            pos = _after(data, pos, token=b",")
        key, key_end = pos, _value_end(data, pos)
        if data[key] != _QUOTE:
            raise ValueError("expected a key")
        start = _after(data, skip_whitespace(data, key_end), token=b":")
        end = _value_end(data, start)
        found[data[key + 1 : key_end - 1]] = (start, end)
        pos = skip_whitespace(data, end)
    if skip_whitespace(data, pos + 1) != len(data):
        raise ValueError("expected the end")
    return found


def _value_end(data: bytes, start: int) -> int:
    end = Scanner().scan(data, start)
    if end <= start:  # -1: unfinished; start: no value at all
        raise ValueError("expected a value")
    return end


def _after(data: bytes, pos: int, *, token: bytes) -> int:
    """Return the start of the next token, after the one expected at ``pos``."""
    if data[pos : pos + 1] != token:
        raise ValueError(f"expected {token.decode()!r}")
    return skip_whitespace(data, pos + 1)

"""Where does a JSON value end? Structure only, for bytes that arrive in pieces.

Fallback machinery. `kinform.sansio.watch` and `kinform.sansio.list` cut by newline or by guess
and let the real decoder prove the cut; they come here for what that cannot settle: values
without a separator, objects too broken or too deep for the decoder, lists of another shape.

Rule 1: each byte is looked at a constant number of times, however the input is split.
Rule 2: nesting costs a counter, never the stack, so depth is no limit here.
Rule 3: brackets are counted, not matched, and scalars are not validated. A cut made here says
"no other place is possible", not "this is JSON"; the decoder judges what was cut out. Only
`Cursor.check` knows the grammar: it finds out early that a value will never end.
"""

from __future__ import annotations

import enum
import re
from typing import Final, final

__all__ = ["WHITESPACE", "Cursor", "Scanner", "members", "skip_whitespace"]

WHITESPACE: Final = b" \t\r\n"
"""The four bytes that JSON allows between tokens; no Unicode space is among them."""

# Every repeat is possessive (``*+``): what was passed is never tried again, so a match is linear
# and needs no memory for going back, even over a string of millions of escapes. Each pattern
# also matches the empty text, so a match never fails: it only stops.

# The rest of a string. Stops before its quote, before a backslash that ends the data, or there.
_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
# Anything without a bracket, whole strings included. Stops before a bracket, before the quote of
# a string that the data does not finish, or at the end.
_FLAT: Final = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
# Brackets come in runs, ``[{`` and ``}}]}``; a run is one step, and so is any depth of ``[[[``.
_OPENINGS: Final = re.compile(rb"[{\[]*+")
_CLOSINGS: Final = re.compile(rb"[}\]]*+")
# A number or literal, or what else stands in its place: the decoder will say.
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
    """What the grammar of JSON allows next."""

    VALUE = enum.auto()
    FIRST_ELEMENT = enum.auto()
    FIRST_KEY = enum.auto()
    KEY = enum.auto()
    COLON = enum.auto()
    NEXT = enum.auto()
    NOTHING = enum.auto()


# What follows which token: the byte it starts with, or _SCALAR_TOKEN. Closing brackets and commas
# also depend on the bracket around them.
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
    """Return the index of the first byte at or after ``start`` that is no JSON whitespace."""
    return _end(_SPACE.match(data, start))


def _end(match: re.Match[bytes] | None) -> int:
    assert match is not None  # see above: the patterns match everywhere
    return match.end()


@final
class Scanner:
    """Finds the end of one JSON value: an object, array, string, number or literal.

    Feed it the pieces of one value with `scan`, in order; after it has told the end, call
    `reset` before the next value. The caller keeps the bytes, the scanner only its place.
    """

    __slots__ = ("_depth", "_escaped", "_in_scalar", "_in_string", "_started")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next byte scanned is the first one of a value."""
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
            # Only the byte after it tells that ``12`` is not the start of ``123``.
            end = _end(_SCALAR.match(data, start))
            return -1 if end == size else end
        return self._scan_nested(data, start)

    def _scan_nested(self, data: bytes | bytearray, pos: int) -> int:
        # Invariant at the top of the loop: all of data[:pos] is accounted for in the state, so
        # it may end after any turn and go on with the next piece.
        size = len(data)
        while True:
            if self._in_string:
                pos = self._scan_string(data, pos)
                if pos < 0:
                    return -1
                if self._depth == 0:  # the value is the string itself
                    return pos
            # One match runs to the next bracket: strings in between cost no turn of this loop.
            # At depth 0 it matches nothing, for there the value's own bracket comes first.
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
                    # The value ends within the run; the rest of it belongs to what is around.
                    return pos + self._depth
                self._depth -= end - pos
                pos = end

    def _scan_string(self, data: bytes | bytearray, pos: int) -> int:
        """Return the index after the closing quote, or -1 with the state kept."""
        size = len(data)
        if self._escaped:  # and there is a byte: `scan` stops at once where there is none
            pos += 1  # whatever it is, it is no quote that closes; \uXXXX needs no more care
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
            ValueError: no value goes on like this.
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
    """The bytes of a stream that wait to be read, and the place in them.

    Append to ``data`` what arrives, read on from ``pos``, and `compact` once per feed.
    """

    __slots__ = ("_checked", "_scanned", "_scanner", "_syntax", "data", "pos")

    data: bytearray
    """What waits, behind what is consumed but not yet freed. Appending costs amortised constant
    time per byte, so that a value of any length may arrive in pieces of any size."""
    pos: int
    """Where in `data` the next token starts; everything before is consumed."""

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
        """How many bytes wait."""
        return len(self.data) - self.pos

    def peek(self) -> int:
        """Skip whitespace; return the next byte without consuming it, -1 if there is none."""
        self.pos = pos = skip_whitespace(self.data, self.pos)
        return self.data[pos] if pos < len(self.data) else -1

    def value_end(self) -> int:
        """Return the end of the value at `pos`, -1 if it has not arrived.

        Goes on where the last call for the same value stopped: no byte is scanned twice.
        """
        end = self._scanner.scan(self.data, max(self.pos, self._scanned))
        self._scanned = len(self.data)
        return end

    def check(self) -> None:
        """Check that what waits, which ends with a line, can be the first lines of the value.

        Goes on where the last call for the same value stopped.

        Raises:
            ValueError: it cannot, whatever comes.
        """
        if self._syntax is None:
            self._syntax = _Syntax()
        self._syntax.take(self.data, max(self.pos, self._checked))
        self._checked = len(self.data)

    @property
    def is_checked(self) -> bool:
        """Whether the value at `pos` has lines that were checked."""
        return self._syntax is not None

    def move(self, pos: int) -> None:
        """Consume everything before ``pos``, where another token or value starts."""
        self.pos = pos
        if self._syntax is not None:
            self._syntax = None
            self._checked = 0
        # Also when the scanner had only begun: somebody else found the end of that value.
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
        """Free what is consumed.

        Not done per value but per feed, so that no more bytes are moved than were fed.
        """
        # Deleting the front of a bytearray moves its start and copies at most what is left.
        del self.data[: self.pos]
        self._scanned = max(0, self._scanned - self.pos)
        self._checked = max(0, self._checked - self.pos)
        self.pos = 0


def members(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Return where the value of each member of one JSON object lies, as ``(start, end)``.

    Keys are the bytes between the quotes, escapes not undone: what Kubernetes calls
    ``metadata`` is never written otherwise. A repeated key keeps its last value, as decoders do.

    Raises:
        ValueError: if ``data`` is not one JSON object, as far as this level shows.
    """
    # Recursion-free and tolerant inside the values: used on objects that no decoder can read.
    found: dict[bytes, tuple[int, int]] = {}
    pos = _after(data, skip_whitespace(data), token=b"{")
    while data[pos : pos + 1] != b"}":
        if found:
            # A brace right behind the comma is no key, so ``{"a":1,}`` fails below.
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
    """Return where the next token starts, after the one expected at ``pos``."""
    if data[pos : pos + 1] != token:
        raise ValueError(f"expected {token.decode()!r}")
    return skip_whitespace(data, pos + 1)

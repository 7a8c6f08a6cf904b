r"""Go's regular expressions in Python's: the same language, as far as it can be said.

Patterns in schemas are RE2. Python's syntax is close, but ``$`` and ``\z`` mean other things,
classes such as ``[[:alpha:]]`` and ``\pL`` do not exist, and flags must stand elsewhere.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from typing import Final, final

__all__ = ["Unsupported", "compiled", "complaint"]

_PERL: Final = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"\t\n\f\r ", "S": ""}
_PLAIN: Final = {"a": r"\x07", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t", "v": r"\v"}
_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CATEGORIES: Final = frozenset(
    "C L M N P S Z Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So "
    "Zl Zp Zs".split()
)
_REPEAT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<(\w+)>|([ims]*(?:-[ims]+)?)(:|\)))")
_MOST_REPEATS: Final = 1000


class Unsupported(Exception):
    """A pattern that Go understands and that cannot be said in Python."""


@final
class _Wrong(Exception):
    """A pattern that Go does not understand."""


def complaint(pattern: str) -> str:
    """Return what Go says of a pattern that it cannot parse, ``""`` of a good one."""
    try:
        _Translation(pattern).run()
    except _Wrong as exc:
        return f"error parsing regexp: {exc}"
    except Unsupported:
        return ""
    return ""


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern, to be searched with.

    Raises:
        Unsupported: if Python has no words for it, or it is no pattern at all.
    """
    try:
        return re.compile(_Translation(pattern).run(), re.ASCII)
    except (_Wrong, re.error) as exc:
        raise Unsupported(pattern) from exc


@functools.cache
def _category(name: str) -> str:
    """Return the characters of a Unicode category as the inside of a class."""
    spans: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if spans and spans[-1][1] == code - 1:
                spans[-1][1] = code
            else:
                spans.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in spans)


@final
class _Translation:
    """One pass over a pattern, left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._groups: list[tuple[int, str]] = []  # how many to close, and if ^ and $ are of lines
        self._closing = 0
        self._flags = ""
        self._repeated = ""  # the repetition just before, for the complaint about two
        self._has_operand = False

    def run(self) -> str:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if self._groups:
            raise _Wrong(f"missing closing ): `{self._text}`")
        return "".join(self._out) + ")" * self._closing

    def _emit(self, text: str, length: int = 1, *, operand: bool = True) -> None:
        self._out.append(text)
        self._at += length
        self._has_operand = operand
        self._repeated = ""

    def _step(self, char: str) -> None:
        match char:
            case "\\":
                self._escape()
            case "[":
                self._class()
            case "(":
                self._open()
            case ")":
                self._close()
            case "*" | "+" | "?":
                self._repeat(char)
            case "{":
                self._braces()
            case "|":
                self._emit("|", operand=False)
            case "$":
                self._emit("$" if "m" in self._flags else r"\Z")
            case _:
                self._emit(char if char in "^." else re.escape(char))

    def _escape(self) -> None:
        rest = self._text[self._at + 1 :]
        if rest.startswith("Q"):
            literal, _, _ = rest[1:].partition("\\E")
            length = 2 + len(literal) + (2 if "\\E" in rest else 0)
            self._emit(f"(?:{re.escape(literal)})", length, operand=bool(literal))
        elif rest[:1] in {"A", "b", "B"}:
            self._emit("\\" + rest[0], 2)
        elif rest.startswith("z"):
            self._emit(r"\Z", 2)
        else:
            inside, length = self._one(self._at)
            self._emit(f"[{inside}]", length)

    def _one(self, at: int, *, within: bool = False) -> tuple[str, int]:
        """Return the escaped thing at a place as the inside of a class, and its length."""
        rest = self._text[at + 1 :]
        if not rest:
            raise _Wrong("trailing backslash at end of expression: ``")
        first = rest[0]
        if first in "pP":
            return self._unicode(rest)
        if first == "S":
            if within:
                raise Unsupported(self._text)
            return r"^\t\n\f\r ", 2
        if first in _PERL:
            return _PERL[first], 2
        if first in _PLAIN:
            return _PLAIN[first], 2
        if found := re.match(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})", rest):
            code = int(found[1] or found[2], 16)
            return f"\\U{code:08x}", 1 + found.end()
        if first.isascii() and not first.isalnum():
            return re.escape(first), 2
        raise _Wrong(f"invalid escape sequence: `\\{first}`")

    def _unicode(self, rest: str) -> tuple[str, int]:
        found = re.match(r"([pP])(?:\{(\^?)(\w+)\}|(\w))", rest)
        if found is None:
            raise _Wrong(f"invalid character class range: `\\{rest}`")
        name = found[3] or found[4]
        if name not in _CATEGORIES:
            if len(name) <= 2:
                raise _Wrong(f"invalid character class range: `\\{found[0]}`")
            raise Unsupported(self._text)  # scripts, which Python does not know
        if (found[1] == "P") != bool(found[2]):
            raise Unsupported(self._text)
        return _category(name), 1 + found.end()

    def _class(self) -> None:
        at = self._at + 1
        negated = self._text.startswith("^", at)
        at += negated
        parts: list[str] = []
        begin = at
        while at == begin or not self._text.startswith("]", at):
            if at >= len(self._text):
                raise _Wrong(f"missing closing ]: `{self._text[self._at :]}`")
            part, at = self._member(at)
            parts.append(part)
        self._emit(f"[{'^' if negated else ''}{''.join(parts)}]", at + 1 - self._at)

    def _member(self, at: int) -> tuple[str, int]:
        """Return a member of a class, a range among them, and where the next one begins."""
        if found := re.compile(r"\[:(\^?)(\w*):\]").match(self._text, at):
            if found[2] not in _POSIX:
                raise _Wrong(f"invalid character class range: `{found[0]}`")
            if found[1]:
                raise Unsupported(self._text)
            return _POSIX[found[2]], found.end()
        low, after = self._character(at)
        if self._text.startswith("-", after) and not self._text.startswith("-]", after):
            if after + 1 >= len(self._text):
                raise _Wrong(f"missing closing ]: `{self._text[self._at :]}`")
            high, end = self._character(after + 1)
            if high in _PERL.values():
                raise _Wrong(f"invalid escape sequence: `{high}`")
            if len(low) == len(high) == 1 and low > high:
                raise _Wrong(f"invalid character class range: `{self._text[at:end]}`")
            return f"{low}-{high}", end
        return low, after

    def _character(self, at: int) -> tuple[str, int]:
        if self._text[at] == "\\":
            inside, length = self._one(at, within=True)
            return inside, at + length
        char = self._text[at]
        return (char if char.isalnum() else re.escape(char)), at + 1

    def _open(self) -> None:
        if not self._text.startswith("(?", self._at):
            self._begin("(", 1)
            return
        rest = self._text[self._at :]
        found = _GROUP.match(rest)
        if found is None:
            self._refuse_group(rest)
        elif found[1]:
            self._begin(f"(?P<{found[1]}>", found.end())
        elif found[3] == ":":
            self._begin(found[0], found.end(), flags=found[2])
        else:
            self._switch(found[2], found.end())

    def _begin(self, text: str, length: int, *, flags: str = "") -> None:
        self._groups.append((self._closing, self._flags))
        self._closing = 0
        self._flags += flags
        self._emit(text, length, operand=False)

    def _switch(self, flags: str, length: int) -> None:
        """Turn flags on until the group ends: in Python, they need a group of their own."""
        if self._has_operand or (self._out and self._out[-1] == "|"):
            raise Unsupported(self._text)
        self._emit(f"(?{flags}:", length, operand=False)
        self._flags += flags
        self._closing += 1

    def _refuse_group(self, rest: str) -> None:
        if rest.startswith(("(?P<", "(?<")):
            named, closed, _ = rest.partition(">")
            shown = named + closed if closed else rest
            raise _Wrong(f"invalid named capture: `{shown}`")
        if re.match(r"\(\?[imsU-]+[:)]", rest):
            raise Unsupported(self._text)
        raise _Wrong(f"invalid or unsupported Perl syntax: `{rest[:3]}`")

    def _close(self) -> None:
        if not self._groups:
            raise _Wrong(f"unexpected ): `{self._text}`")
        text = ")" * (self._closing + 1)
        self._closing, self._flags = self._groups.pop()
        self._emit(text)

    def _braces(self) -> None:
        found = _REPEAT.match(self._text, self._at)
        if found is None:
            self._emit(r"\{")
            return
        least = int(found[1])
        most = int(found[3]) if found[3] else least
        if least > _MOST_REPEATS or most > _MOST_REPEATS or most < least:
            raise _Wrong(f"invalid repeat count: `{found[0]}`")
        self._repeat(found[0])

    def _repeat(self, operator: str) -> None:
        if self._repeated:
            raise _Wrong(f"invalid nested repetition operator: `{self._repeated}{operator}`")
        if not self._has_operand:
            raise _Wrong(f"missing argument to repetition operator: `{operator}`")
        lazy = "?" if self._text.startswith("?", self._at + len(operator)) else ""
        self._emit(operator + lazy, len(operator) + len(lazy))
        self._repeated = operator + lazy

r"""Regular expressions of schemas, as Go reads them, evaluated in limited time.

They are in RE2's syntax. With ``google-re2``, which the extra ``testing`` installs, RE2 itself
evaluates them, in time that is linear in the text. Without it Python's engine does, but it
backtracks: a pattern that could take exponential time is then `Unsupported`.

Python's syntax is close to RE2's, but ``$`` and ``\z`` mean other things, classes such as
``[[:alpha:]]`` and ``\pL`` do not exist, and flags must stand elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any, Final, final

from kinform.apiserver.endpoints import work_budget

__all__ = ["Unsupported", "by_backtracking", "by_re2", "complaint", "has_re2", "matcher"]

has_re2: Final = importlib.util.find_spec("re2") is not None
"""RE2 is installed, so that (nearly) every pattern is evaluated."""

_PERL: Final = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"\t\n\f\r ", "S": ""}
_PLAIN: Final = {"a": r"\x07", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t", "v": r"\v"}
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
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
_OCTAL: Final = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_UNICODE: Final = re.compile(r"([pP])(?:\{(\^?)(\w+)\}|(\w))")
_POSIX_CLASS: Final = re.compile(r"\[:(\^?)(\w*):\]")
_OTHER_FLAGS: Final = re.compile(r"\(\?[imsU-]+[:)]")
_MOST_REPEATS: Final = 1000
_DEEPEST: Final = 1000
_LONGEST: Final = 10_000
"""Go, too, refuses patterns as too large, but by the size of the program."""
_STEPS: Final = 20
"""The number of steps of a regular expression engine that take as long as a unit of work."""
_MAX_DEGREE: Final = 8


class Unsupported(Exception):
    """A pattern that Go understands and that this server cannot evaluate in limited time."""


@final
class _Wrong(Exception):
    """A pattern that Go does not understand."""


def complaint(pattern: str) -> str:
    """Return Go's error about a pattern that it cannot parse, ``""`` for a valid one."""
    try:
        _Translation(pattern, only_checks=True).run()
    except _Wrong as exc:
        return f"error parsing regexp: {exc}"
    except Unsupported:
        return ""
    return ""


@functools.lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that returns whether a text contains a match.

    It spends `kinform.apiserver.endpoints.work_budget`: the most steps that a match could take.

    Raises:
        Unsupported: the engine cannot evaluate it, or it is not a pattern.
    """
    if complaint(pattern):
        raise Unsupported(pattern)
    return by_re2(pattern) if has_re2 else by_backtracking(pattern)


def by_re2(pattern: str) -> Callable[[str], bool]:
    """Return a matcher by RE2, whose time is at most program times text.

    Raises:
        Unsupported: RE2 refuses the pattern, or makes too large a program of it.
    """
    re2: Any = importlib.import_module("re2")  # it has no types
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        program = re2.compile(pattern, options)
    except re2.error as exc:
        raise Unsupported(pattern) from exc
    steps = max(program.programsize, program.reverseprogramsize)

    def is_found(text: str) -> bool:
        # A lone surrogate, which JSON can hold, has no UTF-8.
        read = text.encode(errors="replace").decode()
        work_budget.spend(1 + steps * len(read) // _STEPS)
        return program.search(read) is not None

    return is_found


def by_backtracking(pattern: str) -> Callable[[str], bool]:
    """Return a matcher by Python's engine, which backtracks: for simple patterns only.

    Raises:
        Unsupported: the pattern could take exponential time, or Python has no words for it.
    """
    translation = _Translation(pattern)
    try:
        program = re.compile(translation.run(), re.ASCII)
    except (re.error, RecursionError, OverflowError) as exc:
        raise Unsupported(pattern) from exc
    if translation.is_ambiguous:
        raise Unsupported(pattern)
    degree = translation.repeats + (not pattern.startswith("^"))

    def is_found(text: str) -> bool:
        work_budget.spend(1 + len(text) ** min(degree, _MAX_DEGREE) // _STEPS)
        return program.search(text) is not None

    return is_found


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

    def __init__(self, pattern: str, *, only_checks: bool = False) -> None:
        self._text = pattern
        self._only_checks = only_checks  # the result is not used, so classes need not be listed
        self._at = 0
        self._out: list[str] = []
        self._groups: list[tuple[int, str]] = []  # how many to close, and if ^ and $ are of lines
        self._closing = 0
        self._flags = ""
        self._repeated = ""  # the repetition just before, for the complaint about two
        self._has_operand = False
        self._counts: list[int] = []  # of the groups around: the largest count of repetitions
        self._count = 1  # the same of this group, without its last operand
        self._last = 1  # of the last operand
        self._choices: list[bool] = []  # whether the groups around can match in several ways
        self._is_choice = False
        self._last_is_choice = False
        self.repeats = 0
        """The number of unbounded repetitions."""
        self.is_ambiguous = False
        """A part that can match a text in several ways is repeated: backtracking may explode."""

    def run(self) -> str:
        if len(self._text) > _LONGEST:
            raise _Wrong(f"expression too large: `{self._text}`")
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
        self._count = max(self._count, self._last)
        self._last, self._last_is_choice = 1, False

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
                self._is_choice = True
                self._emit("|", operand=False)
            case "$":
                self._emit("$" if "m" in self._flags else r"\Z")
            case _:
                self._emit(char if char in "^." else re.escape(char))

    def _escape(self) -> None:
        kind = self._text[self._at + 1 : self._at + 2]
        if kind == "Q":
            end = self._text.find("\\E", self._at + 2)
            literal = self._text[self._at + 2 : len(self._text) if end < 0 else end]
            length = 2 + len(literal) + (0 if end < 0 else 2)
            self._emit(f"(?:{re.escape(literal)})", length, operand=bool(literal))
        elif kind in {"A", "b", "B"}:
            self._emit("\\" + kind, 2)
        elif kind == "z":
            self._emit(r"\Z", 2)
        else:
            inside, length = self._one(self._at)
            self._emit(f"[{inside}]", length)

    def _one(self, at: int, *, within: bool = False) -> tuple[str, int]:
        """Return the escaped thing at a place as the inside of a class, and its length."""
        if at + 1 == len(self._text):
            raise _Wrong("trailing backslash at end of expression: ``")
        first = self._text[at + 1]
        if first in "pP":
            return self._unicode(at + 1)
        if first == "S":
            if within:
                raise Unsupported(self._text)
            return r"^\t\n\f\r ", 2
        if first in _PERL:
            return _PERL[first], 2
        if first in _PLAIN:
            return _PLAIN[first], 2
        if first == "x":
            return self._hexadecimal(at)
        if found := _OCTAL.match(self._text, at + 1):
            return f"\\U{int(found[0], 8):08x}", 1 + len(found[0])
        if first.isascii() and not first.isalnum():
            return re.escape(first), 2
        raise _Wrong(f"invalid escape sequence: `\\{first}`")

    def _hexadecimal(self, at: int) -> tuple[str, int]:
        r"""Read ``\x7f`` or ``\x{7f}``; a refusal shows as much as Go has read until then."""
        end = at + 4
        digits = self._text[at + 2 : end]
        if digits[:1] == "{":
            end = at + 3
            while self._text[end : end + 1] in _HEXADECIMAL and end < len(self._text):
                end += 1
                if int(self._text[at + 3 : end], 16) > sys.maxunicode:
                    raise _Wrong(f"invalid escape sequence: `{self._text[at:end]}`")
            digits, closing = self._text[at + 3 : end], self._text[end : end + 1]
            end += 1
            if not digits or closing != "}":
                raise _Wrong(f"invalid escape sequence: `{self._text[at:end]}`")
        elif len(digits) < 2 or not _HEXADECIMAL.issuperset(digits):
            raise _Wrong(f"invalid escape sequence: `{self._text[at:end]}`")
        return f"\\U{int(digits, 16):08x}", end - at

    def _unicode(self, at: int) -> tuple[str, int]:
        found = _UNICODE.match(self._text, at)
        if found is None:
            raise _Wrong(f"invalid character class range: `\\{self._text[at:]}`")
        name = found[3] or found[4]
        if name not in _CATEGORIES:
            if len(name) <= 2:
                raise _Wrong(f"invalid character class range: `\\{found[0]}`")
            raise Unsupported(self._text)  # scripts, which Python does not know
        if (found[1] == "P") != bool(found[2]):
            raise Unsupported(self._text)
        return (name if self._only_checks else _category(name)), 1 + len(found[0])

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
        if found := _POSIX_CLASS.match(self._text, at):
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
        found = _GROUP.match(self._text, self._at)
        if found is None:
            self._refuse_group()
        elif found[1]:
            self._begin(f"(?P<{found[1]}>", len(found[0]))
        elif found[3] == ":":
            self._begin(found[0], len(found[0]), flags=found[2])
        else:
            self._switch(found[2], len(found[0]))

    def _begin(self, text: str, length: int, *, flags: str = "") -> None:
        self._groups.append((self._closing, self._flags))
        if len(self._groups) >= _DEEPEST:
            raise _Wrong(f"expression nests too deeply: `{self._text}`")
        self._closing = 0
        self._flags = "".join(sorted({*self._flags, *flags}))
        self._emit(text, length, operand=False)
        self._counts.append(self._count)
        self._choices.append(self._is_choice)
        self._count, self._is_choice = 1, False

    def _switch(self, flags: str, length: int) -> None:
        """Turn flags on until the group ends: in Python, they need a group of their own."""
        if self._has_operand or (self._out and self._out[-1] == "|"):
            raise Unsupported(self._text)
        self._emit(f"(?{flags}:", length, operand=False)
        self._flags = "".join(sorted({*self._flags, *flags}))
        self._closing += 1

    def _refuse_group(self) -> None:
        if self._text.startswith(("(?P<", "(?<"), self._at):
            closing = self._text.find(">", self._at)
            shown = self._text[self._at : closing + 1 if closing >= 0 else len(self._text)]
            raise _Wrong(f"invalid named capture: `{shown}`")
        if _OTHER_FLAGS.match(self._text, self._at):
            raise Unsupported(self._text)
        shown = self._text[self._at : self._at + 3]
        raise _Wrong(f"invalid or unsupported Perl syntax: `{shown}`")

    def _close(self) -> None:
        if not self._groups:
            raise _Wrong(f"unexpected ): `{self._text}`")
        text = ")" * (self._closing + 1)
        self._closing, self._flags = self._groups.pop()
        inside, is_choice = max(self._count, self._last), self._is_choice
        self._count, self._is_choice = self._counts.pop(), self._choices.pop()
        self._last = 1
        self._emit(text)
        self._last, self._last_is_choice = inside, is_choice
        self._is_choice = self._is_choice or is_choice

    def _braces(self) -> None:
        found = _REPEAT.match(self._text, self._at)
        if found is None:
            self._emit(r"\{")
            return
        least, most = _number(found[1]), _number(found[3]) if found[3] else _number(found[1])
        if least > _MOST_REPEATS or most > _MOST_REPEATS or most < least:
            raise _Wrong(f"invalid repeat count: `{found[0]}`")
        count = self._last * most
        self._repeat(found[0])
        if most >= 2 and count > _MOST_REPEATS:
            raise _Wrong(f"invalid repeat count: `{found[0]}`")
        self._last = count

    def _repeat(self, operator: str) -> None:
        if self._repeated:
            raise _Wrong(f"invalid nested repetition operator: `{self._repeated}{operator}`")
        if not self._has_operand:
            raise _Wrong(f"missing argument to repetition operator: `{operator}`")
        if operator != "?":
            self.is_ambiguous = self.is_ambiguous or self._last_is_choice
            self.repeats += 1
        self._is_choice = True
        last = self._last
        lazy = "?" if self._text.startswith("?", self._at + len(operator)) else ""
        self._last = 1
        self._emit(operator + lazy, len(operator) + len(lazy))
        self._last, self._last_is_choice = last, True
        self._repeated = operator + lazy


def _number(digits: str) -> int:
    """Return a count; one with many digits is as good as any that is too large."""
    return int(digits) if len(digits) <= len(str(_MOST_REPEATS)) else _MOST_REPEATS + 1

"""Canary secrets that must never be shown, and a witness that reads everything that is shown.

A witness runs with every test (tests/conftest.py), so that no path covered by any test may show a
secret.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import re
import secrets
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable
from types import TracebackType
from typing import Any

import pytest

__all__ = [
    "PASSWORD",
    "SECRET",
    "TOKEN",
    "Leaks",
    "Witness",
    "drawn_tokens_are_canaries",
    "encoded",
    "secret",
    "witness",
    "witness_of_a_test",
]

TOKEN = "canary-token-5f0c9a71d2"
"""A text with this shows a credential."""
PASSWORD = "canary-password-77ab30ce"
SECRET = "canary-secret-c41e8b6690"
"""A text with this shows the content of a Secret."""
DRAWN = "canary-drawn-"
"""The prefix of every token that an embedded server generates during tests."""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _forms(text: str) -> list[str]:
    """Return a text as it may be shown: as it is, and what of its base64 is always the same."""
    shifted = (base64.b64encode(b"x" * skip + text.encode()).decode() for skip in range(3))
    return [text, *(form[4:-4] for form in shifted)]


_CANARY = re.compile(
    "|".join(re.escape(form) for text in (TOKEN, PASSWORD, SECRET, DRAWN) for form in _forms(text))
    # What a real server's tokens and anybody's keys look like.
    + r"|eyJhbGciOi[\w-]{16,}\.[\w-]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


def secret(name: str = "canary", **metadata: object) -> dict[str, object]:
    """Return a Secret with canaries in every place that may hold one."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": {"last": f"is {SECRET}"}, **metadata},
        "data": {"password": encoded(SECRET)},
    }


class Leaks(list[str]):
    """Keeps of all texts only those with a canary in them."""

    def append(self, text: str) -> None:
        if _CANARY.search(text):
            super().append(text)

    def extend(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.append(text)


class Witness(logging.Handler):
    """Keeps the text of every log record, and of all that it is shown."""

    def __init__(self, *, texts: list[str] | None = None) -> None:
        super().__init__(logging.DEBUG)
        self.texts = [] if texts is None else texts
        self.failures: list[str] = []
        """The kinds of the errors it was shown: that it saw something at all."""

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{self.format(record)} {vars(record)!r}")
        if record.exc_info and record.exc_info[1] is not None:
            self._read(record.exc_info[1])

    def show(self, *things: object) -> None:
        """Read all forms in which each of ``things`` can be written."""
        for thing in things:
            self.texts.append(f"{thing!r} {thing} {thing!a}")
            if isinstance(thing, BaseException):
                self.failures.append(type(thing).__name__)
                self._read(thing)

    def _read(self, error: BaseException) -> None:
        self.texts.extend(traceback.format_exception(error))
        seen: set[int] = set()
        waiting: list[BaseException | None] = [error]
        while waiting:
            link = waiting.pop()
            if link is None or id(link) in seen:
                continue
            seen.add(id(link))
            self.texts.append(f"{link!r} {link} {link.args!r} {vars(link)!r}")
            self.texts.extend(getattr(link, "__notes__", ()))
            waiting += [link.__cause__, link.__context__]
            if isinstance(link, BaseExceptionGroup):
                waiting += link.exceptions

    async def attempt(self, work: Awaitable[object], *, within: float) -> None:
        """Await ``work``; what it raises is read, what it returns is not: it may be a secret."""
        try:
            async with asyncio.timeout(within):
                await work
        except Exception as exc:  # noqa: BLE001 - no exception may show a secret
            self.show(exc)

    def leaks(self) -> list[str]:
        """Return all texts with a canary in them."""
        return [text for text in self.texts if _CANARY.search(text)]


@contextlib.contextmanager
def witness() -> Generator[Witness]:
    """Let a witness read every log record; at the end it must have seen no canary."""
    root, seeing = logging.getLogger(), Witness()
    before = root.level
    root.addHandler(seeing)
    root.setLevel(logging.DEBUG)
    try:
        yield seeing
    finally:
        root.setLevel(before)
        root.removeHandler(seeing)
    assert seeing.leaks() == []


# --- over all tests -----------------------------------------------------------------------------


@contextlib.contextmanager
def drawn_tokens_are_canaries() -> Generator[None]:
    """Let every token that is drawn begin in a way that a witness knows."""
    draw = secrets.token_urlsafe
    secrets.token_urlsafe = lambda nbytes=None: DRAWN + draw(nbytes)
    try:
        yield
    finally:
        secrets.token_urlsafe = draw


@contextlib.contextmanager
def witness_of_a_test() -> Generator[Leaks]:
    """Let a witness read what kinform logs, and what errors ``pytest.raises`` is given.

    It gives what showed a canary.
    """
    root, ours, leaks = logging.getLogger(), logging.getLogger("kinform"), Leaks()
    seeing, level = Witness(texts=leaks), ours.level
    root.addHandler(seeing)
    ours.setLevel(logging.DEBUG)
    restore = [_shown_to(seeing, kind) for kind in (pytest.RaisesExc, pytest.RaisesGroup)]
    try:
        yield leaks
    finally:
        for undo in restore:
            undo()
        ours.setLevel(level)
        root.removeHandler(seeing)


def _shown_to(seeing: Witness, kind: Any) -> Callable[[], None]:
    leave = kind.__exit__

    def shown_and_left(
        self: object,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> object:
        if exc is not None:
            seeing.show(exc)
        return leave(self, exc_type, exc, trace)

    kind.__exit__ = shown_and_left
    return lambda: setattr(kind, "__exit__", leave)

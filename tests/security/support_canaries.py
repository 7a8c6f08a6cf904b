"""Secrets that must never be seen, and a witness who reads everything that is shown."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import re
import traceback
from collections.abc import Awaitable, Generator

__all__ = ["PASSWORD", "SECRET", "TOKEN", "Witness", "encoded", "secret", "witness"]

TOKEN = "canary-token-5f0c9a71d2"
"""Whoever shows this has shown a credential."""
PASSWORD = "canary-password-77ab30ce"
SECRET = "canary-secret-c41e8b6690"
"""Whoever shows this has shown what a Secret holds."""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _forms(text: str) -> list[str]:
    """Return a text as it may be shown: as it is, and what of its base64 is always the same."""
    shifted = (base64.b64encode(b"x" * skip + text.encode()).decode() for skip in range(3))
    return [text, *(form[4:-4] for form in shifted)]


_CANARY = re.compile("|".join(re.escape(f) for t in (TOKEN, PASSWORD, SECRET) for f in _forms(t)))


def secret(name: str = "canary", **metadata: object) -> dict[str, object]:
    """Return a Secret with canaries in every place that may hold one."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": {"last": f"is {SECRET}"}, **metadata},
        "data": {"password": encoded(SECRET)},
    }


class Witness(logging.Handler):
    """Keeps the text of every log record, and of all that it is shown."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
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
        except Exception as exc:  # noqa: BLE001 - whatever it is, it must not show a secret
            self.show(exc)

    def leaks(self) -> list[str]:
        """Return all texts with a canary in them."""
        return [text for text in self.texts if _CANARY.search(text)]


@contextlib.contextmanager
def witness() -> Generator[Witness]:
    """Let a witness read everything that anybody logs; at the end it must have seen no canary."""
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

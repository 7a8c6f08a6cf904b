"""`SelectorError`, raised for label and field selectors."""

from __future__ import annotations

from typing import final

from kinform.errors import UsageError

__all__ = ["SelectorError"]


@final
class SelectorError(UsageError, ValueError):
    """A selector that cannot be parsed, or that the server would refuse.

    >>> str(SelectorError("expected ')'", text="a in (b", position=7))
    "expected ')' at index 7 of selector 'a in (b'"
    """

    message: str
    """The problem and the expected token."""
    text: str
    """The selector as it was given; ``""`` if it was not text."""
    position: int | None
    """The index in ``text`` where parsing failed, if it was text."""

    def __init__(self, message: str, *, text: str = "", position: int | None = None) -> None:
        super().__init__(message, text, position)
        self.message = message
        self.text = text
        self.position = position

    def __str__(self) -> str:
        if self.position is None:
            return self.message
        return f"{self.message} at index {self.position} of selector {self.text!r}"

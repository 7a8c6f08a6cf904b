"""The journal of a handler: its notifications in order, for the judge of the scoreboard.

Kept only on request (``--journal``); nothing is measured then.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

__all__ = ["Entry", "Journal"]

Entry: TypeAlias = tuple[str, str, str, str]
"""``add``, ``update`` or ``delete``; key, uid and resourceVersion of the object."""

_MOST: Final = 20_000
"""A client that tells the same without end must not fill the memory."""


@final
class Journal:
    """The first entries, and how many there were. To be written from one thread at a time."""

    def __init__(self) -> None:
        self.entries: Final[list[Entry]] = []
        self.count = 0

    def note(self, what: str, key: str, *, uid: str | None, version: str | None) -> None:
        """Add an entry."""
        self.count += 1
        if len(self.entries) < _MOST:
            self.entries.append((what, key, uid or "", version or ""))

"""``Warning`` headers: notices of the API server about requests that succeeded.

Deprecated versions, unknown fields, dubious names: the text is for people and is logged once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, final

__all__ = ["ApiWarning", "WarningHandler", "WarningLogger", "ignore_warnings", "parse_warnings"]

log: Final = logging.getLogger(__name__)

_WARNING: Final = re.compile(
    r'(?:^|,)\s*(\d{3})\s+(\S+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"[^"]*")?\s*(?=,|$)'
)
_LONGEST: Final = 4096
_MOST_REMEMBERED: Final = 1000


class ApiWarning(NamedTuple):
    """One warning of the server."""

    code: int
    """299 for everything Kubernetes sends."""
    agent: str
    """The component that warns; usually ``-``."""
    text: str
    """The sentence, without control characters."""


WarningHandler: TypeAlias = Callable[[ApiWarning], None]
"""Called on the loop for each warning of a response. Must not block."""


def parse_warnings(header: str | None) -> list[ApiWarning]:
    """Parse a ``Warning`` header (several joined by commas too). Invalid parts are skipped."""
    found: list[ApiWarning] = []
    for match in _WARNING.finditer((header or "")[: _LONGEST * 16]):
        code, agent, quoted = match.groups()
        sentence = re.sub(r"\\(.)", r"\1", quoted)
        clean = "".join(char for char in sentence if char.isprintable())
        found.append(ApiWarning(int(code), agent, clean[:_LONGEST]))
    return found


@final
class WarningLogger:
    """The default handler: logs each distinct 299 warning once, at level WARNING."""

    def __init__(self) -> None:
        # Bounded: a server with ever new warnings must not fill our memory.
        self._seen: set[str] = set()

    def __call__(self, warning: ApiWarning) -> None:
        """Log ``warning`` unless its text was logged before."""
        if warning.code != 299 or not warning.text or warning.text in self._seen:
            return
        if len(self._seen) >= _MOST_REMEMBERED:
            self._seen.clear()
        self._seen.add(warning.text)
        log.warning("API server warns: %s", warning.text)


def ignore_warnings(warning: ApiWarning) -> None:
    """Handle a warning by doing nothing."""

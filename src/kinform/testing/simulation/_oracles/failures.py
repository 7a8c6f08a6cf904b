"""Failing reconciles: the keys that a program's controllers fail to reconcile, from their log."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, final

__all__ = ["PROCESS", "Failures"]

PROCESS: Final[ContextVar[str]] = ContextVar("kinform_simulation_process", default="")
"""The process that the running task belongs to."""

_FAILED: Final = re.compile(r"failed \(attempt (\d+)\), will be retried: (.*)", re.DOTALL)
_CONTROLLERS: Final = "kinform.controller"
_ROW: Final = 4
"""Failures in a row, without a success between them, that are more than bad luck."""
_SLACK: Final = 10.0


@dataclass(slots=True)
class _Row:
    """Failures of one key, one after the other."""

    last: float
    gap: float = 0.0
    count: int = 1
    since_healed: int = 0
    error: str = ""


@final
class Failures(logging.Handler):
    """A log handler that records failing reconciles; records still reach the other handlers."""

    def __init__(self, time: Callable[[], float]) -> None:
        super().__init__()
        self._time = time
        self._rows: dict[tuple[str, str, str], _Row] = {}
        self._is_healed = False
        self._level = logging.CRITICAL

    @contextlib.contextmanager
    def followed(self) -> Generator[None]:
        """Follow the log in this block."""
        logger = logging.getLogger(_CONTROLLERS)
        before = logger.level, logger.propagate
        self._level = logger.getEffectiveLevel()
        logger.addHandler(self)
        logger.setLevel(min(logging.INFO, self._level))
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(before[0])
            logger.propagate = before[1]

    def healed(self) -> None:
        """Record that all faults have ended."""
        self._is_healed = True

    def emit(self, record: logging.LogRecord) -> None:
        """Record a failure, and pass the record on to the other handlers."""
        if record.levelno >= self._level:
            parent = logging.getLogger(_CONTROLLERS).parent
            if parent is not None:
                parent.callHandlers(record)
        found = _FAILED.search(record.getMessage())
        if found is not None:
            controller, key = (str(getattr(record, name, "")) for name in ("controller", "object"))
            self._note((PROCESS.get(), controller, key), int(found[1]), found[2])

    def _note(self, key: tuple[str, str, str], attempt: int, error: str) -> None:
        row, now = self._rows.get(key), self._time()
        if row is None or attempt == 1:
            row = self._rows[key] = _Row(now)
        else:
            row.gap, row.last, row.count = now - row.last, now, row.count + 1
        row.error = error
        row.since_healed += self._is_healed

    def lasting(self, living: set[str]) -> str:
        """Return which key of a living process fails again and again, ``""`` if none does.

        A key that is overdue by twice its last wait has succeeded, or is not tried any more.
        """
        for (process, controller, key), row in self._rows.items():
            is_due = self._time() - row.last <= 2 * row.gap + _SLACK
            if process in living and row.since_healed and row.count >= _ROW and is_due:
                return (
                    f"{process}: {controller} fails to reconcile {key}, {row.count} times in a "
                    f"row, {row.since_healed} of them since all faults have ended; expected it to "
                    f"succeed. The last error: {row.error}"
                )
        return ""

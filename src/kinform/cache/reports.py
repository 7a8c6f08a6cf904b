"""What somebody should know of a reflector: its figures, its failures, its slow lists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kinform.cache.permissions import explained
from kinform.errors import (
    KinformError,
    ResourceVersionRegressed,
    SourceError,
    UnknownResourceError,
    UsageError,
)
from kinform.sansio import relist

__all__ = ["ReflectorStatistics", "Reports", "Trace", "WatchErrorHandler"]

log: Final = logging.getLogger(__name__)

WatchErrorHandler: TypeAlias = Callable[[KinformError], object]
"""Is told of everything that went wrong in listing and watching; must return quickly."""

TELL_AGAIN_AFTER: Final = 600.0
"""For how long the same failure, again and again, is logged only once."""
SLOW: Final = 10.0
"""A list that takes longer is written to the log, step by step."""


@final
@dataclass(slots=True, kw_only=True)
class ReflectorStatistics:
    """What a reflector has done, and how it stands. Times are the event loop's."""

    phase: str = "wait"
    """What it is doing: ``list``, ``stream`` (a streamed list), ``watch``, ``probe``, ``wait``, or
    ``clear`` (the kind is gone)."""
    is_connected: bool = False
    """Whether a watch is open."""
    lists: int = 0
    """Lists that were begun, streamed ones included; a list with all its pages counts once."""
    watches: int = 0
    """Watches that were begun, streamed lists included."""
    probes: int = 0
    """How often the server's version was requested; the probes of other informers are not counted,
    though one probe may answer for all informers of a resource."""
    events: int = 0
    """Events of watches that were written."""
    stale_bookmarks: int = 0
    """Bookmarks with a version older than what had been written; nothing was made of them."""
    ignored: int = 0
    """Objects that were left out for being of another kind."""
    failures: int = 0
    """Lists and watches that failed, in whatever way."""
    failures_in_a_row: int = 0
    """Of these, how many since the server was last heard of."""
    regressions: int = 0
    """How often the server's version went back."""
    last_contact: float | None = None
    """When the server was last heard of."""
    last_error: KinformError | None = None
    """What went wrong last."""


@final
class Reports:
    """Counts what happens and tells whom it concerns: ``on_error`` or else the log."""

    def __init__(self, name: str, *, on_error: WatchErrorHandler | None = None) -> None:
        self._name = name
        self._on_error = on_error
        self._logged = ("", float("-inf"))
        self._traced: set[str] = set()
        self.statistics: Final = ReflectorStatistics()

    def heard(self) -> float:
        """Note that the server said something; return when."""
        now = asyncio.get_running_loop().time()
        self.statistics.last_contact = now
        self.statistics.failures_in_a_row = 0
        return now

    def failure(self, exc: Exception) -> KinformError:
        """Count and tell a failure; return it as one of ours.

        Raises:
            UsageError: it is no failure of the source but a mistake in using it.
        """
        if isinstance(exc, UsageError) and not isinstance(exc, UnknownResourceError):
            raise exc
        error = exc
        if not isinstance(error, KinformError):
            error = SourceError(f"list or watch raised {type(exc).__name__}")
            error.__cause__ = exc
        self.statistics.failures += 1
        self.statistics.failures_in_a_row += 1
        self.statistics.last_error = error
        self._tell(error, logging.WARNING)
        # It is kept for long, and its frames would keep alive whatever was in their hands.
        return error.with_traceback(None)

    def notice(self, notice: relist.Notice) -> None:
        """Tell what was decided."""
        match notice:
            case relist.Regressed(before, now):
                self.statistics.regressions += 1
                self._tell(ResourceVersionRegressed(before, now), logging.ERROR)
            case relist.Expired(version):
                log.info("%s: version %s has expired; listing again", self._name, version)
            case relist.Unstreamed(for_an_hour):
                instead = "plain lists for an hour" if for_an_hour else "one plain list"
                log.info("%s: the list could not be streamed; trying %s", self._name, instead)
            case relist.Gone():
                log.warning("%s: the server has no such kind any more", self._name)

    def _tell(self, error: KinformError, level: int) -> None:
        if self._on_error is None:
            self._log(error, level)
            return
        try:
            self._on_error(error)
        except Exception:
            log.exception("%s: the watch error handler raised", self._name)

    def _log(self, error: KinformError, level: int) -> None:
        now, text = asyncio.get_running_loop().time(), str(error)
        known, since = self._logged
        if text == known and now - since < TELL_AGAIN_AFTER:
            level = logging.DEBUG
        else:
            self._logged = text, now
        log.log(level, "%s: %s", self._name, explained(error), exc_info=self._user_failure(error))

    def _user_failure(self, error: KinformError) -> BaseException | None:
        """Return what a user's own function raised, the first time: only its frames say where."""
        text = str(error)
        if not isinstance(error, SourceError) or error.__cause__ is None or text in self._traced:
            return None
        self._traced.add(text)
        return error.__cause__


@final
class Trace:
    """Notes the steps of something that should not take long, and tells if it did.

    client-go: the 10-second trace of a reflector's list.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._last = asyncio.get_running_loop().time()
        self._steps: list[tuple[str, float]] = []

    def step(self, name: str) -> None:
        """Note that a step is done."""
        now = asyncio.get_running_loop().time()
        self._steps.append((name, now - self._last))
        self._last = now

    def end(self) -> None:
        """Write it all to the log, if it took longer than ten seconds."""
        total = self._last - self._started
        if total > SLOW:
            steps = ", ".join(f"{name} {took:.1f} s" for name, took in self._steps if took >= 0.1)
            log.warning("%s took %.1f s: %s", self._what, total, steps)

"""Reports of a reflector: its statistics, its failures, and a trace of slow lists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kinform.cache._reflector.missing_permission import explained
from kinform.errors import (
    KinformError,
    ResourceVersionRegressed,
    SourceError,
    UnknownResourceError,
    UsageError,
)
from kinform.sansio.reflector import step as relist

__all__ = ["ReflectorStatistics", "Reports", "Trace", "WatchErrorHandler"]

log: Final = logging.getLogger(__name__)

WatchErrorHandler: TypeAlias = Callable[[KinformError], object]
"""Called with every failure of a list or a watch; must return quickly."""

LOG_AGAIN_AFTER: Final = 600.0
"""Seconds for which a failure that repeats itself is logged only once."""
SLOW: Final = 10.0
"""Seconds; the steps of a list that takes longer are logged."""


@final
@dataclass(slots=True, kw_only=True)
class ReflectorStatistics:
    """Counters and the current state of a reflector. Times are the event loop's."""

    phase: str = "wait"
    """The current phase: ``list``, ``stream`` (a streamed list), ``watch``, ``probe``, ``wait``, or
    ``clear`` (the resource is not served any more)."""
    is_connected: bool = False
    """True while a watch is open."""
    lists: int = 0
    """Lists that were begun, streamed ones included; a list with all its pages counts once."""
    watches: int = 0
    """Watches that were begun, streamed lists included."""
    probes: int = 0
    """Probes that were sent. One probe may answer for all informers of a resource; the probes of
    other informers are not counted."""
    events: int = 0
    """Events of watches that were written."""
    stale_bookmarks: int = 0
    """Bookmarks with a version older than the last one written; they were ignored."""
    ignored: int = 0
    """Objects that were dropped because they are of another kind."""
    failures: int = 0
    """Lists and watches that failed."""
    failures_in_a_row: int = 0
    """Failures since the last data from the server."""
    regressions: int = 0
    """Regressions of the server's version."""
    last_contact: float | None = None
    """When the last data arrived from the server."""
    last_error: KinformError | None = None
    """The last failure."""


@final
class Reports:
    """Counts failures and notices, and reports them to ``on_error`` or else to the log."""

    def __init__(self, name: str, *, on_error: WatchErrorHandler | None = None) -> None:
        self._name = name
        self._on_error = on_error
        self._logged = ("", float("-inf"))
        # By text, which names only the class of the exception: bounded by the number of classes.
        self._traced: set[str] = set()
        self.statistics: Final = ReflectorStatistics()

    def heard(self) -> float:
        """Note that data arrived from the server; return the time."""
        now = asyncio.get_running_loop().time()
        self.statistics.last_contact = now
        self.statistics.failures_in_a_row = 0
        return now

    def failure(self, exc: Exception) -> KinformError:
        """Count and report a failure; return it as a `KinformError`.

        Raises:
            UsageError: ``exc`` itself, if the source was used wrongly: a retry would not help.
        """
        # An unknown resource is retried: its CRD may be created later.
        if isinstance(exc, UsageError) and not isinstance(exc, UnknownResourceError):
            raise exc
        error = exc
        if not isinstance(error, KinformError):
            error = SourceError(f"list or watch raised {type(exc).__name__}")
            error.__cause__ = exc
        self.statistics.failures += 1
        self.statistics.failures_in_a_row += 1
        self.statistics.last_error = error
        self._report(error, logging.WARNING)
        # It is kept for long, and its traceback would keep all local variables of its frames alive.
        return error.with_traceback(None)

    def notice(self, notice: relist.Notice) -> None:
        """Report a notice of the decisions."""
        match notice:
            case relist.Regressed(before, now):
                self.statistics.regressions += 1
                self._report(ResourceVersionRegressed(before, now), logging.ERROR)
            case relist.Expired(version):
                log.info("%s: version %s has expired; listing again", self._name, version)
            case relist.Unstreamed(for_an_hour):
                instead = "plain lists for an hour" if for_an_hour else "one plain list"
                log.info("%s: the list could not be streamed; trying %s", self._name, instead)
            case relist.Gone():
                log.warning("%s: the resource is not served any more; cache emptied", self._name)

    def _report(self, error: KinformError, level: int) -> None:
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
        # client-go logs each failure of a deleted CRD, once a second (kubernetes#84494).
        if text == known and now - since < LOG_AGAIN_AFTER:
            level = logging.DEBUG
        else:
            self._logged = text, now
        log.log(level, "%s: %s", self._name, explained(error), exc_info=self._user_failure(error))

    def _user_failure(self, error: KinformError) -> BaseException | None:
        """Return the exception of user code, but only once: its traceback shows the place."""
        text = str(error)
        if not isinstance(error, SourceError) or error.__cause__ is None or text in self._traced:
            return None
        self._traced.add(text)
        return error.__cause__


@final
class Trace:
    """Measures the steps of a list, and logs them if it was slow.

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
        """Log all steps if they took longer than ten seconds."""
        total = self._last - self._started
        if total > SLOW:
            steps = ", ".join(f"{name} {took:.1f} s" for name, took in self._steps if took >= 0.1)
            log.warning("%s took %.1f s: %s", self._what, total, steps)

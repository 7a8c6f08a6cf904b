"""What an elector tells people: log lines and figures."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from kinform.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    KinformError,
    TransportError,
    UsageError,
)

__all__ = ["ElectionReporter", "ElectionStatistics"]

log: Final = logging.getLogger("kinform.runtime.leader_election")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionStatistics:
    """How an elector stands, and what it has done so far."""

    lease: str
    """``namespace/name``."""
    identity: str
    is_leader: bool
    holder: str
    """Who held the lease when it was last seen; ``""``: nobody, or not known."""
    transitions: int
    """How often the lease has passed from one to another, when it was last seen."""
    acquisitions: int
    """How often this one came to lead."""
    renewals: int
    failures: int
    """Requests that failed."""
    slow_paths: int
    """Renewals that had to read the lease first, because the last one had failed."""
    last_error: str
    """Why the last request failed; ``""`` if it did not."""


@final
class ElectionReporter:
    """Tells of changes, each once: a server that is gone for a day is worth one line.

    Raises:
        UsageError: ``on_new_leader`` is an async function, which nobody would await.
    """

    def __init__(
        self, lease: str, identity: str, on_new_leader: Callable[[str], object] | None
    ) -> None:
        if on_new_leader is not None and inspect.iscoroutinefunction(on_new_leader):
            raise UsageError("on_new_leader is an async function; expected one that cannot wait")
        self._lease = lease
        self._identity = identity
        self._on_new_leader = on_new_leader
        self._leader = ""
        self._failures: set[tuple[object, ...]] = set()  # kinds, since a try last went well

    def acquired(self, fencing_number: str) -> None:
        """Tell that this one leads now."""
        self._log(logging.INFO, "this replica leads, with fencing number %s", fencing_number)

    def lost(self, reason: str) -> None:
        """Tell that this one leads no more, and did not want that."""
        self._log(logging.WARNING, "leadership lost: %s", reason)

    def released(self, reason: str) -> None:
        """Tell how giving the lease back went."""
        self._log(logging.INFO, "leads no more: %s", reason)

    def request(self, failure: KinformError | None, *, holder: str, complete: bool) -> None:
        """Tell what came of a request, as far as it is news.

        ``complete``: it was the last one of a try.
        """
        if failure is not None:
            self._failed(failure)
            return
        if complete:  # else it is too early: perhaps we may read, and not write
            self._failures.clear()
        self._seen(holder)

    def _seen(self, holder: str) -> None:
        if not holder or holder == self._leader:
            return  # that there is none is no news
        self._leader = holder
        if holder != self._identity:
            self._log(logging.INFO, "%s leads", holder)
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(holder)
            except Exception:
                # A callback's fault: whoever leads, leads.
                log.exception("on_new_leader failed", extra={"lease": self._lease})

    def _failed(self, error: KinformError) -> None:
        kind = _kind(error)
        is_usual = isinstance(error, ConflictError | AlreadyExistsError)  # others are faster
        level = logging.DEBUG if is_usual or kind in self._failures else logging.WARNING
        self._failures.add(kind)
        self._log(level, "request failed: %s", error)

    def _log(self, level: int, message: str, *details: object) -> None:
        extra = {"lease": self._lease, "identity": self._identity}
        log.log(level, f"lease %s: {message}", self._lease, *details, extra=extra)  # noqa: G004 - ours


def _kind(error: KinformError) -> tuple[object, ...]:
    match error:
        case ApiError():
            return (type(error), error.code)
        case TransportError():
            return (type(error), error.failure)
        case _:
            return (type(error),)

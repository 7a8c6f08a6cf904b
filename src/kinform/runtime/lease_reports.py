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
        self._failure: tuple[object, ...] | None = None

    def acquired(self, fencing_number: str) -> None:
        """Tell that this one leads now."""
        self._log(logging.INFO, "leading", fencing_number=fencing_number)

    def lost(self, reason: str) -> None:
        """Tell that this one leads no more, and did not want that."""
        self._log(logging.WARNING, "leadership lost", reason=reason)

    def released(self, reason: str) -> None:
        """Tell how giving the lease back went."""
        self._log(logging.INFO, "lease given back", outcome=reason)

    def request(self, failure: KinformError | None, *, holder: str) -> None:
        """Tell what came of a request, as far as it is news."""
        if failure is None:
            self._answered()
            self._seen(holder)
        else:
            self._failed(failure)

    def _seen(self, holder: str) -> None:
        if not holder or holder == self._leader:
            return  # that there is none is no news
        self._leader = holder
        if holder != self._identity:
            self._log(logging.INFO, "new leader", leader=holder)
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(holder)
            except Exception:
                # A callback's fault: whoever leads, leads.
                log.exception("on_new_leader failed", extra={"lease": self._lease})

    def _failed(self, error: KinformError) -> None:
        kind = _kind(error)
        known = kind == self._failure or isinstance(error, ConflictError | AlreadyExistsError)
        self._failure = kind
        level = logging.DEBUG if known else logging.WARNING  # that others are faster is usual
        self._log(level, "lease request failed", error=str(error))

    def _answered(self) -> None:
        if self._failure is not None:
            self._log(logging.DEBUG, "lease request went well again")
        self._failure = None

    def _log(self, level: int, message: str, **fields: object) -> None:
        log.log(level, message, extra={"lease": self._lease, "identity": self._identity} | fields)


def _kind(error: KinformError) -> tuple[object, ...]:
    match error:
        case ApiError():
            return (type(error), error.code)
        case TransportError():
            return (type(error), error.failure)
        case _:
            return (type(error),)

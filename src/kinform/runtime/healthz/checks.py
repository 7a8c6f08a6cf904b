"""Health checks, reported in the format of kube-apiserver's health endpoints.

A check returns ``None``, or one sentence about the problem. Unauthenticated clients may read it: no
sentence contains a traceback, the text of an error, or the name of an object. The log has those.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, final

from kinform.cache._reflector.missing_permission import missing_rule
from kinform.cache.informer_statistics import InformerStatistics
from kinform.errors import (
    ApiError,
    KinformError,
    TransportError,
    UnknownResourceError,
    UsageError,
)

__all__ = ["Check", "Checks", "HealthReport", "Watched", "informers_check", "loop_check"]

log: Final = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], str | None]
"""Returns ``None`` if healthy, or else a sentence about the problem. It must be quick."""

MAX_NAMED: Final = 10
"""The limit of informers that are named in one sentence."""


@final
@dataclass(frozen=True, slots=True)
class HealthReport:
    """The results of the checks."""

    ok: bool
    lines: tuple[str, ...]
    """One for each check, as kube-apiserver writes them."""

    def text(self, endpoint: str, *, verbose: bool = False) -> str:
        """Return the answer of ``endpoint``: all lines if something is wrong, else ``ok``."""
        if self.ok and not verbose:
            return "ok"
        verdict = "passed" if self.ok else "failed"
        return "\n".join([*self.lines, f"{endpoint} check {verdict}", ""])


@final
class Checks:
    """Checks by name, asked in the order in which they were added."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Add ``check`` under ``name``.

        Raises:
            UsageError: a check has that name already, the name is not valid in a URL, or the check
                is an ``async def``.
        """
        if not name or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise UsageError(f"check {name!r}: a name has letters, digits, '-' and '_' only")
        if name in self._checks:
            raise UsageError(f"there is a check {name!r} already")
        if inspect.iscoroutinefunction(check):
            raise UsageError(f"check {name!r} is an async function; expected one that cannot wait")
        self._checks[name] = check

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all checks."""
        return tuple(self._checks)

    def report(self, exclude: Collection[str] = ()) -> HealthReport:
        """Ask all checks but those of ``exclude``.

        A check that raises has failed: its error is logged, and not shown.
        """
        ok, lines = True, list[str]()
        for name in self._checks:
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
            elif (wrong := self.ask(name)) is None:
                lines.append(f"[+]{name} ok")
            else:
                ok = False
                lines.append(f"[-]{name} failed: {wrong}")
        unknown = sorted(set(exclude).difference(self._checks))
        if unknown:
            count = "a check" if len(unknown) == 1 else f"{len(unknown)} checks"
            lines.append(f"warn: {count} to exclude cannot be found")  # never the client's text
        return HealthReport(ok, tuple(lines))

    def ask(self, name: str) -> str | None:
        """Run one check; return the problem, if any.

        Raises:
            KeyError: there is none of that name.
        """
        check = self._checks[name]
        try:
            wrong = check()
            return None if wrong is None else " ".join(wrong.split())
        except Exception as exc:
            log.exception("health check %s raised", name, extra={"check": name})
            return f"the check raised {type(exc).__name__}; see the log"


# --- checks --------------------------------------------------------------------------------------


class Watched(Protocol):
    """The part of an informer that `informers_check` reads; every `SharedInformer` has it."""

    @property
    def is_started(self) -> bool:
        """Whether the informer was started."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether the informer has stopped or failed."""
        ...

    def healthy(self, max_silence: float | None = None) -> bool:
        """Return whether the cache is up to date."""
        ...

    def statistics(self) -> InformerStatistics:
        """Return statistics, for the sentence about the problem."""
        ...


def informers_check(informers: Collection[Watched], max_silence: float | None = None) -> Check:
    """Return a check that every informer runs, has synced, and is in contact with the server.

    In contact means: it heard from the server in the last ``max_silence`` seconds; see
    `SharedInformer.healthy` for ``None``. ``informers`` is read at every check, so a list or a view
    of a dict may grow.
    """

    def check() -> str | None:
        wrong = [text for one in informers if (text := _wrong_with(one, max_silence)) is not None]
        if not wrong:
            return None
        more = len(wrong) - MAX_NAMED
        return "; ".join([*wrong[:MAX_NAMED], *([f"and {more} more"] if more > 0 else [])])

    return check


def _wrong_with(informer: Watched, max_silence: float | None) -> str | None:
    if informer.is_started and not informer.is_stopped and informer.healthy(max_silence):
        return None
    figures = informer.statistics()
    if not informer.is_started:
        return f"{figures.label} was not started"
    if informer.is_stopped:
        return f"{figures.label} has stopped"
    reflector = figures.reflector
    is_going_on = reflector.failures_in_a_row or not figures.has_synced
    error = reflector.last_error if is_going_on else None
    because = "" if error is None else f" ({_why(error)})"
    if not figures.has_synced or reflector.last_contact is None:
        return f"{figures.label} has not synced{because}"
    if isinstance(error, UnknownResourceError) and error.served_in:
        return f"{figures.label} is stale{because}"
    silence = asyncio.get_running_loop().time() - reflector.last_contact
    return f"{figures.label} has heard nothing for {silence:.0f} s{because}"


def _why(error: KinformError) -> str:
    rule = missing_rule(error, names_namespace=False)
    return f"{_kind_of(error)}; {rule or 'see the log'}"


def _kind_of(error: BaseException) -> str:
    """Return what kind of error it is; its text may hold URLs, selectors and names."""
    match error:
        case ApiError():
            return f"{type(error).__name__} {error.code}"
        case TransportError():
            return f"{type(error).__name__}: {error.failure.value}"
        case _:
            return type(error).__name__


class Blocking(Protocol):
    """The part of a `LoopWatchdog` that `loop_check` reads."""

    def longest_block(self, within: float) -> float:
        """Return the longest block that lasts, or ended in the last ``within`` seconds."""
        ...


def loop_check(watchdog: Blocking, *, max_blocked: float = 10.0, window: float = 15.0) -> Check:
    """Return a check that the event loop is not blocked for long.

    While the loop is blocked no probe is answered, and the probe times out. This check also reports
    a loop that is free only for moments: it fails for ``window`` seconds after the loop was blocked
    for more than ``max_blocked``. With kubelet's defaults (every 10 s, three failures) one such
    block does not restart a pod; one after the other does.
    """

    def check() -> str | None:
        longest = watchdog.longest_block(window)
        if longest <= max_blocked:
            return None
        return f"the event loop was blocked for {longest:.1f} s; the log says where"

    return check

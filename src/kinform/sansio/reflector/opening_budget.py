"""OpeningBudget: a limit on requests of one sort in any minute, after success as after failure.

A backoff is reset by success, so it bounds only a series of failures. A server that alternates
success and failure is bounded by this: a rolling window that nothing resets.

Rule 1: At most `LIMIT` requests begin in any `WINDOW` seconds.
Rule 2: While more than `PACED` slots are free, a request begins at once. With ``r <= PACED`` free
slots, the time until the oldest request leaves the window is divided by ``r``, and the next request
begins when that much time has passed since the last one. So a burst is followed by evenly spaced
requests (every 15 s) and not by a long wait; requests at least 7.5 s apart are never delayed.
Rule 3: Probes may use at most `PROBES` slots, so that ``LIMIT - PROBES`` lists in any window never
wait for probes. Probes do not count for rule 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

__all__ = ["OpeningBudget"]

LIMIT: Final = 8
"""Requests in any window."""
WINDOW: Final = 60.0
"""Length of the window in seconds."""
PACED: Final = 3
"""The last slots, which are spread over the rest of the window. With 3 of them the first waits of
the default `Backoff` are long enough: an outage is not waited out for longer than it says."""
PROBES: Final = 6
"""The slots that probes may use, out of `LIMIT`."""
_MARGIN: Final = 0.05
"""Added to each wait, so that rounding never ends it too early."""


@final
@dataclass(frozen=True, slots=True)
class OpeningBudget:
    """The times of the last requests; a value, so that state machines can hold it.

    >>> budget = OpeningBudget()
    >>> for _ in range(5):
    ...     budget = budget.used(0.0)
    >>> budget.wait(now=0.0), budget.wait(now=15.0)
    (15.05, 0.0)
    """

    times: tuple[float, ...] = ()
    """The last `LIMIT` requests that are no probes, in order."""
    probes: tuple[float, ...] = ()
    """The last `PROBES` probes, in order."""

    def wait(self, *, now: float) -> float:
        """Return how long the next request has to wait; 0: it may begin at once."""
        at, earliest = now, _due(self._all(), LIMIT)
        # A request that leaves the window before ``at`` changes what rule 2 asks for: repeat until
        # both rules allow ``at``, so that a caller that has waited need not wait again.
        while (due := max(self._paced(at), earliest)) > at:
            at = due + _MARGIN
        return at - now

    def probe_wait(self, *, now: float) -> float:
        """Return how long the next probe has to wait; 0: it may begin at once."""
        due = max(_due(self.probes, PROBES), _due(self._all(), LIMIT))
        return due - now + _MARGIN if due > now else 0.0

    def used(self, now: float) -> OpeningBudget:
        """Return the budget after one more request, which began at ``now``."""
        # Older times cannot matter: rule 1 looks at the oldest of the last LIMIT requests only. So
        # the state of a reflector does not grow with its age.
        return replace(self, times=(*self.times, now)[-LIMIT:])

    def probed(self, now: float) -> OpeningBudget:
        """Return the budget after one more probe, which began at ``now``."""
        return replace(self, probes=(*self.probes, now)[-PROBES:])

    def delayed(self, now: float) -> OpeningBudget:
        """Return the budget if the last request began only at ``now``."""
        return replace(self, times=(*self.times[:-1], now)) if self.times else self

    def probe_delayed(self, now: float) -> OpeningBudget:
        """Return the budget if the last probe began only at ``now``."""
        return replace(self, probes=(*self.probes[:-1], now)) if self.probes else self

    def _all(self) -> tuple[float, ...]:
        return tuple(sorted(self.times + self.probes))[-LIMIT:]

    def _paced(self, now: float) -> float:
        """Return when the next request is due by rule 2."""
        # Without the probes (rule 3): a reflector that probes before each watch would otherwise
        # pace its own lists.
        recent = [at for at in self.times if now - at < WINDOW]
        free = LIMIT - len(recent)
        if free > PACED:
            return float("-inf")
        # ``due - last == (oldest + WINDOW - due) / free``, solved for ``due``. Without a free slot
        # it is the moment at which the oldest request leaves the window: rule 1.
        oldest, last = recent[0], recent[-1]
        return last + (oldest + WINDOW - last) / (free + 1)


def _due(times: tuple[float, ...], limit: int) -> float:
    """Return when there is a free slot among ``limit``."""
    # ``-inf`` and not ``now``: the loop in `OpeningBudget.wait` ends when nothing is later than
    # ``at``.
    return times[0] + WINDOW if len(times) == limit else float("-inf")

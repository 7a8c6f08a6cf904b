"""Reconnects: the limit and the probes that all informers of one client share.

A server that shuts down ends every watch at once, and a client may have a thousand of them. Their
reconnects take turns (see `kinform.sansio.token_bucket`), and one probe of the server's version
answers for all informers of one resource.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator, Hashable
from typing import Final, NamedTuple, final

from kinform.errors import ApiError, TransportError, UsageError
from kinform.sansio.token_bucket import Departure, Pace, Wave, reconnect_rate
from kinform.tasks import SharedCalls

__all__ = ["ProbedVersion", "Reconnects", "check_reconnect_rate"]

log: Final = logging.getLogger(__name__)

REPORT_AFTER: Final = 30.0
"""Seconds; a longer wait is logged. With the default rate all informers are back sooner."""
REPORT_EVERY: Final = 10.0


class ProbedVersion(NamedTuple):
    """The server's version of one resource, as a probe found it."""

    order: int
    """Its place among all probes and losses of the client."""
    started: float
    """When it was sent, in the loop's time: changes made later may be missing."""
    version: str


def check_reconnect_rate(rate: float | None) -> None:
    """Check an option for the rate of reconnects; ``math.inf`` switches the limit off.

    Raises:
        UsageError: it is not a positive number.
    """
    if rate is not None and not rate > 0:
        raise UsageError(f"reconnect_rate must be positive or None, got {rate!r}")


@final
class Reconnects:
    """The limit on reconnects that all informers of one client share.

    At most ``rate`` times a second an informer that lost its watch opens another, and at most as
    often one lists again. A `kinform.RateLimiter`: `wait` is all that other users need.

    Args:
        rate: reconnects per second; ``None``: 5, or one for every 20 informers if that is more.

    Raises:
        UsageError: ``rate`` is not positive.
    """

    def __init__(self, *, rate: float | None = None) -> None:
        check_reconnect_rate(rate)
        self._rate = rate
        self._informers = 0
        # Two lines: an informer lists and then watches. In one line a thousand lists would keep
        # those that have listed already from watching.
        self._watches = _Line()
        self._lists = _Line()
        self._wave = Wave()
        # By resource, so there are few entries, and none is ever removed.
        self._lost: dict[Hashable, int] = {}  # the last watch that was lost
        self._probed: dict[Hashable, ProbedVersion] = {}  # the newest probe that was answered
        self._sent: dict[Hashable, tuple[int, float]] = {}  # the newest probe: its order and start
        self._calls = SharedCalls[tuple[Hashable, int], ProbedVersion]()
        self._order = 0

    @property
    def rate(self) -> float:
        """The reconnects per second that are allowed now."""
        return self._rate or reconnect_rate(self._informers)

    @property
    def informers(self) -> int:
        """The number of informers that share this limit now."""
        return self._informers

    @contextlib.contextmanager
    def following(self) -> Generator[None]:
        """Count one informer while the block runs."""
        self._informers += 1
        try:
            yield
        finally:
            self._informers -= 1

    # --- turns

    def ended(self, *, rand: float) -> Departure:
        """Count a watch that ended cleanly before its timeout; `returned` must follow."""
        return self._wave.join(asyncio.get_running_loop().time(), rand=rand)

    def returned(self) -> None:
        """Stop counting a watch that `ended`."""
        self._wave.leave()

    async def wait(self, departure: Departure | None = None) -> None:
        """Wait until a watch may be opened again.

        If it `ended` early it is spread over the time that all need which ended with it. A
        cancelled wait takes no turn.
        """
        loop = asyncio.get_running_loop()
        if departure is not None:
            while (left := self._due(departure) - loop.time()) > 0:  # noqa: ASYNC110 - it may grow
                await asyncio.sleep(left)
        # A function: informers that are started while others wait raise the rate for all.
        await self._watches.wait(lambda: self.rate)

    async def wait_to_list(self) -> None:
        """Wait until something may be listed again; these turns are counted by themselves."""
        await self._lists.wait(lambda: self.rate)

    def _due(self, departure: Departure) -> float:
        return self._wave.due(departure, rate=self.rate, informers=self._informers)

    # --- probes

    def lost(self, resource: Hashable) -> None:
        """Note that a watch of ``resource`` was lost: earlier probes are not used any more."""
        self._lost[resource] = self.mark()

    async def probe(
        self,
        resource: Hashable,
        send: Callable[[], Awaitable[str]],
        *,
        max_age: float,
        after: int = 0,
    ) -> ProbedVersion:
        """Return the server's version of ``resource``, from a probe that may be another informer's.

        A probe is used if it began at most ``max_age`` seconds ago, after the last watch of that
        resource was lost, and after ``after`` (a `mark`). Otherwise ``send`` is called, or the call
        under way is awaited. If another informer is not allowed to list, ``send`` is called all the
        same: this informer may be allowed. If the server does not answer, the probe has failed for
        all that share it.
        """
        oldest = asyncio.get_running_loop().time() - max_age
        known = self._probed.get(resource)
        lost = max(self._lost.get(resource, 0), after)
        # By order and not by time: a probe that was sent in the same instant as the loss, but
        # before it, may show the version of the server that has gone.
        if known is not None and known.order > lost and known.started >= oldest:
            return known
        order, started = self._sent.get(resource, (0, oldest))
        if not (order > lost and started >= oldest):
            # Noted before it is sent, so that the next caller joins this probe instead of an older
            # one.
            order, started = self._sent[resource] = self.mark(), oldest + max_age
        # `SharedCalls` gives the failure of one caller to all. Only the one that sent it knows
        # whether its own rights were the reason.
        is_mine = False

        async def ask() -> ProbedVersion:
            nonlocal is_mine
            is_mine = True
            return await self._send(resource, send)

        try:
            return await self._calls.call((resource, order), ask)
        except Exception as exc:
            # 403 concerns one informer's namespace or selector; an outage concerns all, and each of
            # a thousand informers would ask the dead server again.
            if is_mine or _is_outage(exc):
                raise
        return await self._send(resource, send)

    async def _send(self, resource: Hashable, send: Callable[[], Awaitable[str]]) -> ProbedVersion:
        """Call ``send`` and return its answer; other informers may use it from then on."""
        order, started = self.mark(), asyncio.get_running_loop().time()
        probed = ProbedVersion(order, started, await send())
        known = self._probed.get(resource)
        # Answers may arrive in another order than their requests.
        if known is None or known.order < order:
            self._probed[resource] = probed
        return probed

    def mark(self) -> int:
        """Return a number by which this moment can be compared with `ProbedVersion.order`."""
        # The clock would not do: it may show the same time twice.
        self._order += 1
        return self._order


@final
class _Line:
    """A queue for turns, first come, first served."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._first = asyncio.Lock()
        self._reported = float("-inf")

    async def wait(self, rate: Callable[[], float]) -> None:
        """Wait for a turn; ``rate()`` is called when it comes."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        # The lock makes a queue without reservations: a waiter that is cancelled leaves no gap, and
        # a changed rate takes effect with the next turn. asyncio's lock is fair.
        async with self._first:
            await asyncio.sleep(self._pace.due(asked) - loop.time())
            now = loop.time()
            self._pace.take(asked, now=now, rate=rate())
        self._report(now - asked, now)

    def _report(self, waited: float, now: float) -> None:
        if waited >= REPORT_AFTER and now - self._reported >= REPORT_EVERY:
            self._reported = now
            log.info("reconnects are throttled", extra={"waited": waited})


def _is_outage(error: Exception) -> bool:
    """Return whether the server could not answer any informer just now."""
    if isinstance(error, ApiError):
        return error.code in {429, 500, 502, 503, 504}
    return isinstance(error, TransportError)

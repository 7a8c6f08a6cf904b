"""Turns: one reflector's share in the reconnects and probes of its client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator, Hashable
from typing import Final, NamedTuple, final

from kinform.cache.listwatch import source_options
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.reconnects import Reconnects
from kinform.sansio.token_bucket import Departure
from kinform.sansio.versions import is_older

__all__ = ["ProbeAnswer", "Turns"]

MAX_PROBE_AGE: Final = 2.0
"""Seconds; the greatest age of another informer's probe that is used before a watch."""
SLOW_PROBE: Final = 1.0
"""Seconds; after a probe that took longer the watch takes a turn: other informers waited for the
same probe, and would all watch at once."""


class ProbeAnswer(NamedTuple):
    """The answer to a probe."""

    started: float
    version: str
    applied: str
    """The version that was applied when it began, at the latest."""
    is_stale: bool = False
    """The probe took so long that the watch has to take another turn."""


@final
class Turns:
    """Makes one reflector wait for its turns, and shares its probes.

    Args:
        lw: the reflector's source; its `SourceOptions` have the limiter and the probed resource.
        rand: returns numbers in [0, 1).

    Attributes:
        is_due: whether the next list or watch has to wait for its turn.
    """

    def __init__(self, lw: object, *, rand: Callable[[], float]) -> None:
        self._options = source_options(lw)
        self._rand = rand
        self._departure: Departure | None = None
        self._learned = ("", 0)  # a version, and a mark taken when or after it was applied
        self.is_due: bool = False

    @property
    def _limiter(self) -> RateLimiter | None:
        return self._options.reconnects

    @property
    def _shared(self) -> Reconnects | None:
        return limiter if isinstance(limiter := self._limiter, Reconnects) else None

    @contextlib.contextmanager
    def following(self) -> Generator[None]:
        """Count the reflector among the informers of its client while the block runs."""
        shared = self._shared
        with contextlib.nullcontext() if shared is None else shared.following():
            try:
                yield
            finally:
                self._return()

    def lost(self, *, cleanly: bool, is_answer: bool) -> None:
        """Note that a watch ended before its timeout, or could not be opened.

        Args:
            cleanly: the server ended it, perhaps together with all others.
            is_answer: the server refused our version, so it is the same server as before.
        """
        self._return()
        self.is_due = True
        if (shared := self._shared) is None:
            return
        # A server that shuts down ends its watches cleanly and all at once. A connection that broke
        # is spread by its own backoff.
        if cleanly:
            self._departure = shared.ended(rand=self._rand())
        resource = self._resource()
        # After a 410 the server is the one that was probed before, so that probe is still valid.
        # Without this an expired version would cost every informer a probe of its own.
        if resource is not None and not is_answer:
            shared.lost(resource)

    def kept(self) -> None:
        """Note that a watch lasted until its own timeout: the next one need not wait."""
        self._return()
        self.is_due = False

    async def take(self, *, to_list: bool = False) -> None:
        """Wait until the reflector may list or watch again."""
        limiter = self._limiter
        if self.is_due and limiter is not None:
            if not isinstance(limiter, Reconnects):
                await limiter.wait()
            elif to_list:
                await limiter.wait_to_list()
            else:
                await limiter.wait(self._departure)
        self._return()
        self.is_due = False

    def learned(self, version: str) -> None:
        """Note that ``version`` has been applied; only probes sent later can show a regression."""
        # Only the first mark of a version counts: a later one would reject probes that are new
        # enough.
        if version != self._learned[0] and (shared := self._shared) is not None:
            self._learned = version, shared.mark()

    async def probe(
        self, send: Callable[[], Awaitable[str]], applied: str, *, max_age: float | None = None
    ) -> ProbeAnswer:
        """Return the server's version, from ``send`` or from a probe of another informer.

        A shared probe that shows an older version than ``applied`` counts only if it was sent after
        ``applied`` was learned. Else it may just be old, and the informer waits for the next probe,
        which it shares with all others in that position.

        Args:
            send: sends a probe.
            applied: the reflector's version.
            max_age: how many seconds old the probe may be; given while a watch is open.
        """
        loop = asyncio.get_running_loop()
        began, shared, resource = loop.time(), self._shared, self._resource()
        if shared is None or resource is None:
            return ProbeAnswer(began, await send(), applied)
        self.learned(applied)
        learned, age = self._learned[1], MAX_PROBE_AGE if max_age is None else max_age
        probed = await shared.probe(resource, send, max_age=age)
        if probed.order < learned and is_older(probed.version, applied):
            probed = await shared.probe(resource, send, max_age=age, after=learned)
        is_stale = max_age is None and loop.time() - began > SLOW_PROBE
        self.is_due = self.is_due or is_stale
        return ProbeAnswer(probed.started, probed.version, applied, is_stale)

    def _resource(self) -> Hashable | None:
        return self._options.probed_resource()

    def _return(self) -> None:
        if self._departure is not None and (shared := self._shared) is not None:
            shared.returned()
        self._departure = None

"""Rate limiters: for requests (off by default) and for reconnects (always on)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol, final

from kinform.rest.reconnects import Reconnects
from kinform.sansio.token_bucket import TokenBucket

__all__ = ["RateLimiter", "TokenBucketLimiter", "reconnect_limiter"]

log: Final = logging.getLogger(__name__)

_LOG_AFTER: Final = 1.0  # shorter waits are not logged
_LOG_EVERY: Final = 10.0


class RateLimiter(Protocol):
    """Limits the rate of requests."""

    async def wait(self) -> None:
        """Return when one more request may be sent. Cancelling returns the token."""
        ...


@final
class TokenBucketLimiter:
    """client-go's limiter: ``qps`` requests a second, ``burst`` of them at once.

    Share one between clients to share the budget. Waits over a second are logged, at most one
    line every ten seconds.
    """

    def __init__(self, *, qps: float, burst: int, name: str = "requests") -> None:
        self._bucket = TokenBucket(rate=qps, burst=burst)
        self._name = name
        self._logged_at = float("-inf")

    async def wait(self) -> None:
        """Wait for a token. A cancelled wait returns the token and raises ``CancelledError``."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        delay = self._bucket.reserve(now)
        if not delay:
            return
        self._log(delay, now)
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self._bucket.give_back(now + delay)
            raise

    def _log(self, delay: float, now: float) -> None:
        if delay >= _LOG_AFTER and now - self._logged_at >= _LOG_EVERY:
            self._logged_at = now
            log.info("client-side throttling", extra={"limiter": self._name, "delay": delay})


def reconnect_limiter(rate: float | None = None) -> Reconnects:
    """Return the limiter that all reconnects of one client share.

    Args:
        rate: reconnects per second; ``None``: 5, or one for every 20 informers if that is more.

    Raises:
        UsageError: ``rate`` is not positive.
    """
    return Reconnects(rate=rate)

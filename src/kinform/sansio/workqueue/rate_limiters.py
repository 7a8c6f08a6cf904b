"""Rate limiters: the delay before a failed key is retried, as in client-go, without a clock.

``when(item, now)`` counts a failure and returns the seconds to wait. ``forget`` resets the count.
Nothing here waits, and there is no jitter: the caller may add some.

The memory of a limiter grows with the number of distinct keys that failed and were not forgotten:
forget a key when it succeeded, and when its object was deleted.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar, final

from kinform.sansio.token_bucket import TokenBucket

__all__ = [
    "BucketRateLimiter",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "RateLimiter",
    "WithMaxWaitRateLimiter",
    "default_controller_rate_limiter",
]

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[K_contra]):
    """Decides how long a key waits before it is worked on again."""

    def when(self, item: K_contra, now: float, /) -> float:
        """Count one more failure of ``item``; return how many seconds it is to wait."""
        ...

    def forget(self, item: K_contra, /) -> None:
        """Stop counting: it succeeded, or is given up. Unknown items are fine."""
        ...

    def num_requeues(self, item: K_contra, /) -> int:
        """Return how many failures were counted since it was last forgotten."""
        ...


@final
class ItemExponentialFailureRateLimiter(Generic[K]):
    """Waits ``base_delay``, twice that, four times that, up to ``max_delay``; each key by itself.

    >>> limiter = ItemExponentialFailureRateLimiter[str]()
    >>> [limiter.when("a", 0.0) for _ in range(4)], limiter.when("b", 0.0)
    ([0.005, 0.01, 0.02, 0.04], 0.005)

    Raises:
        ValueError: if a delay is negative or not a number, or the first exceeds the second.
    """

    __slots__ = ("_failures", "base_delay", "max_delay")

    def __init__(self, base_delay: float = 0.005, max_delay: float = 1000.0) -> None:
        if not 0 <= base_delay <= max_delay < math.inf:
            raise ValueError(
                f"base_delay is {base_delay!r} and max_delay {max_delay!r}; "
                "expected 0 <= base_delay <= max_delay"
            )
        self.base_delay: Final = base_delay
        self.max_delay: Final = max_delay
        self._failures: dict[K, int] = {}

    def when(self, item: K, now: float, /) -> float:  # noqa: ARG002 - the protocol's
        """Count a failure; return the wait."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        # A float overflows at 2**1024, and no cap is that far from its base.
        return min(self.base_delay * float(2 ** min(failures, 1000)), self.max_delay)

    def forget(self, item: K, /) -> None:
        """Start again with ``base_delay``."""
        self._failures.pop(item, None)

    def num_requeues(self, item: K, /) -> int:
        """Return how many failures were counted."""
        return self._failures.get(item, 0)


@final
class ItemFastSlowRateLimiter(Generic[K]):
    """Waits ``fast_delay`` for the first ``max_fast_attempts`` failures, then ``slow_delay``.

    Raises:
        ValueError: if a delay or the number of attempts is negative or not a number.
    """

    __slots__ = ("_failures", "fast_delay", "max_fast_attempts", "slow_delay")

    def __init__(self, fast_delay: float, slow_delay: float, *, max_fast_attempts: int) -> None:
        if not (0 <= fast_delay < math.inf and 0 <= slow_delay < math.inf):
            raise ValueError(f"delays are {fast_delay!r} and {slow_delay!r}; expected 0 or more")
        if max_fast_attempts < 0:
            raise ValueError(f"max_fast_attempts is {max_fast_attempts!r}; expected 0 or more")
        self.fast_delay: Final = fast_delay
        self.slow_delay: Final = slow_delay
        self.max_fast_attempts: Final = max_fast_attempts
        self._failures: dict[K, int] = {}

    def when(self, item: K, now: float, /) -> float:  # noqa: ARG002 - the protocol's
        """Count a failure; return the wait."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        return self.fast_delay if failures <= self.max_fast_attempts else self.slow_delay

    def forget(self, item: K, /) -> None:
        """Start again with the fast attempts."""
        self._failures.pop(item, None)

    def num_requeues(self, item: K, /) -> int:
        """Return how many failures were counted."""
        return self._failures.get(item, 0)


@final
class BucketRateLimiter(Generic[K]):
    """Lets all keys together fail ``burst`` times at once and ``rate`` times a second after that.

    It knows no single key: nothing is counted for one, and nothing forgotten.

    Raises:
        ValueError: if ``rate`` or ``burst`` is not positive.
    """

    __slots__ = ("_bucket",)

    def __init__(self, rate: float = 10.0, *, burst: int = 100) -> None:
        self._bucket = TokenBucket(rate=rate, burst=burst)

    def when(self, item: K, now: float, /) -> float:  # noqa: ARG002 - the protocol's
        """Take a token; return how long it takes until there is one."""
        return self._bucket.reserve(now)

    def forget(self, item: K, /) -> None:
        """Do nothing: a token is not given back."""

    def num_requeues(self, item: K, /) -> int:  # noqa: ARG002 - the protocol's
        """Return 0: failures of single keys are not counted."""
        return 0


@final
class MaxOfRateLimiter(Generic[K]):
    """Asks all ``limiters`` and obeys the strictest.

    Raises:
        ValueError: if there is none to ask.
    """

    __slots__ = ("_limiters",)

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        if not limiters:
            raise ValueError("no rate limiter to take the largest of; expected at least one")
        self._limiters = limiters

    def when(self, item: K, now: float, /) -> float:
        """Have all of them count a failure; return the longest wait."""
        # All are called, even if the first already decides: each counts its failures.
        return max(limiter.when(item, now) for limiter in self._limiters)

    def forget(self, item: K, /) -> None:
        """Have all of them forget."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: K, /) -> int:
        """Return the largest count."""
        most = 0
        for limiter in self._limiters:  # a loop, not max(): this runs for every reconcile
            most = max(most, limiter.num_requeues(item))
        return most


@final
class WithMaxWaitRateLimiter(Generic[K]):
    """Obeys another limiter, but never waits longer than ``max_delay``.

    Raises:
        ValueError: if ``max_delay`` is negative or not a number.
    """

    __slots__ = ("_limiter", "max_delay")

    def __init__(self, limiter: RateLimiter[K], max_delay: float) -> None:
        if not 0 <= max_delay < math.inf:
            raise ValueError(f"max_delay is {max_delay!r}; expected 0 or more")
        self._limiter = limiter
        self.max_delay: Final = max_delay

    def when(self, item: K, now: float, /) -> float:
        """Count a failure; return the wait, cut."""
        return min(self._limiter.when(item, now), self.max_delay)

    def forget(self, item: K, /) -> None:
        """Have the other forget."""
        self._limiter.forget(item)

    def num_requeues(self, item: K, /) -> int:
        """Return the other's count."""
        return self._limiter.num_requeues(item)


def default_controller_rate_limiter() -> RateLimiter[Hashable]:
    """Return what controllers use: 5 ms to 1,000 s for each key, 10 a second (burst 100) for all.

    The first keeps one bad object from being tried all the time, the second keeps many that fail
    together from overloading the server. A limiter counts: make one for each queue.
    """
    return MaxOfRateLimiter(
        ItemExponentialFailureRateLimiter[Hashable](), BucketRateLimiter[Hashable]()
    )

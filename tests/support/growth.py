"""Checks that the cost of some work is linear in its size, with a wide margin for busy machines."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["assert_linear"]


def assert_linear(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Check that work of 16 times ``size`` costs far less than 256 times as much CPU.

    ``prepare`` makes the work of one size. The bound of 64 lies in the middle between linear
    and quadratic: a neighbour that takes the caches away, or a clock that slows down, makes a
    factor of two or three, not of four. Rounds are interleaved, so that both sizes share what
    goes on; the best of each counts.
    """
    small, large = prepare(size), prepare(16 * size)
    costs = [(_cpu(small), _cpu(large)) for _ in range(5)]
    assert min(cost for _, cost in costs) < 64 * min(cost for cost, _ in costs)


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start

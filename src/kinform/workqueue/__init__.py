"""Client-go's ``util/workqueue``: keys to work on, with delays, retries and fair shares.

Names are loaded when they are first used, as those of `kinform` itself. What decides is pure and
lives in `kinform.sansio`; it needs nothing of kinform's objects, so any hashable can be a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.errors import QueueShutDown
    from kinform.sansio.workqueue.fair_order import FairOrder, by_namespace
    from kinform.sansio.workqueue.key_queue import Order, Priority
    from kinform.sansio.workqueue.rate_limiters import (
        BucketRateLimiter,
        ItemExponentialFailureRateLimiter,
        ItemFastSlowRateLimiter,
        MaxOfRateLimiter,
        RateLimiter,
        WithMaxWaitRateLimiter,
        default_controller_rate_limiter,
    )
    from kinform.workqueue.causes import Cause, CauseKind, Causes
    from kinform.workqueue.metrics import QueueMetrics, QueueStatistics
    from kinform.workqueue.queue import Drained, WorkQueue

__all__ = [
    "BucketRateLimiter",
    "Cause",
    "CauseKind",
    "Causes",
    "Drained",
    "FairOrder",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "Order",
    "Priority",
    "QueueMetrics",
    "QueueShutDown",
    "QueueStatistics",
    "RateLimiter",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "by_namespace",
    "default_controller_rate_limiter",
]

_HOMES: Final[dict[str, str]] = {
    "BucketRateLimiter": "kinform.sansio.workqueue.rate_limiters",
    "Cause": "kinform.workqueue.causes",
    "CauseKind": "kinform.workqueue.causes",
    "Causes": "kinform.workqueue.causes",
    "Drained": "kinform.workqueue.queue",
    "FairOrder": "kinform.sansio.workqueue.fair_order",
    "ItemExponentialFailureRateLimiter": "kinform.sansio.workqueue.rate_limiters",
    "ItemFastSlowRateLimiter": "kinform.sansio.workqueue.rate_limiters",
    "MaxOfRateLimiter": "kinform.sansio.workqueue.rate_limiters",
    "Order": "kinform.sansio.workqueue.key_queue",
    "Priority": "kinform.sansio.workqueue.key_queue",
    "QueueMetrics": "kinform.workqueue.metrics",
    "QueueShutDown": "kinform.errors",
    "QueueStatistics": "kinform.workqueue.metrics",
    "RateLimiter": "kinform.sansio.workqueue.rate_limiters",
    "WithMaxWaitRateLimiter": "kinform.sansio.workqueue.rate_limiters",
    "WorkQueue": "kinform.workqueue.queue",
    "by_namespace": "kinform.sansio.workqueue.fair_order",
    "default_controller_rate_limiter": "kinform.sansio.workqueue.rate_limiters",
}


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)

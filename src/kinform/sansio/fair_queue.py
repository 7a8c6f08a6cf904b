"""An order in which nobody starves: priorities that age, and equal shares for every tenant.

A strict priority queue lets a steady stream of urgent work keep the rest waiting for ever, and one
line for all lets one busy tenant do that to the others. Here the keys of one tenant and one
priority are a *flow*, first come, first served. A flow that has something to do has a *tag*, and
the flow with the smallest tag is served next:

* virtual time is the tag of the flow that was served last;
* a flow that was idle starts at virtual time plus the *handicap* of its priority, but not before
  its last tag plus its *stride*: nobody gains by being idle for a moment;
* a flow that was served and has more goes to its tag plus its stride.

So among flows of one priority everybody gets the same share, a priority gets twice the share of the
next lower one (the stride doubles), and what comes while others have waited for long starts behind
them: that is how waiting makes up for priority (the handicap is what it has to make up for).

Rule: tags of waiting flows are never smaller than virtual time, and those of one flow are a stride
of at least 1 apart. Therefore a key that finds ``ahead`` keys of its own flow waiting is taken
after at most `FairOrder.most_before` others, whatever is added after it.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar, final

from kinform.sansio.work_queue import Priority

__all__ = ["AGEING", "FairOrder", "by_namespace"]

K = TypeVar("K", bound=Hashable)

AGEING: Final = 64.0
"""How many keys of each busy flow of the next priority go first, before a key has aged enough."""

_FEW: Final = 64
# By priority, which is -1 (LOW), 0 or 1: an index into these, from the end if it is negative.
_STRIDES: Final = (2.0, 1.0, 4.0)
_STEPS: Final = (1, 0, 2)


def by_namespace(key: object) -> Hashable:
    """Return the namespace of a key: its attribute of that name, or what stands before a slash.

    >>> by_namespace("default/web-0"), by_namespace("node-1")
    ('default', '')
    """
    namespace: Hashable = getattr(key, "namespace", None)
    if namespace is None and isinstance(key, str) and "/" in key:
        return key.partition("/")[0]
    return namespace or ""


@final
class _Flow(Generic[K]):
    """The keys of one tenant and one priority."""

    __slots__ = ("handicap", "keys", "last", "number", "priority", "stride", "tenant")

    def __init__(self, tenant: Hashable, priority: Priority, handicap: float) -> None:
        self.tenant = tenant
        self.priority = priority
        self.handicap = handicap
        self.stride = _STRIDES[priority]
        # In order; one can be found, and leave from the middle. A dict is slow at its front.
        self.keys: OrderedDict[K, None] = OrderedDict()
        self.last = -math.inf  # the tag it was served at
        self.number = 0  # of its entry in the heap; 0: it has none that counts


@final
class FairOrder(Generic[K]):
    """An `Order` for work queues that shares turns out among tenants and priorities.

    A key that waits and is added again with a higher priority stands in both lines, and is taken
    from the one where its turn comes first: adding again never makes it later.

    Args:
        tenant: whose a key is; by default its namespace. It must say the same of a key each time.
        ageing: how many keys of each busy flow of one priority go before a newly added one of
            the next lower priority; then that one has waited long enough to be their equal.

    Raises:
        ValueError: if ``ageing`` is negative or not a number.
    """

    __slots__ = (
        "_ageing",
        "_alone",
        "_flows",
        "_heap",
        "_idle",
        "_limit",
        "_now",
        "_numbers",
        "_several",
        "_size",
        "_tenant",
    )

    def __init__(
        self, *, tenant: Callable[[K], Hashable] = by_namespace, ageing: float = AGEING
    ) -> None:
        if not 0 <= ageing < math.inf:
            raise ValueError(f"ageing is {ageing!r}; expected 0 or more")
        self._tenant = tenant
        self._ageing = ageing
        self._now = 0.0  # virtual time
        self._size = 0
        # The only key that waits, if none came since it did: nobody to share with, so there is
        # no line for it. That is how a queue is used whose workers keep up.
        self._alone: tuple[K, Priority] | None = None
        self._several: dict[K, list[_Flow[K]]] = {}  # flows of keys that stand in more than one
        # By priority, then by tenant: busy flows, and idle ones whose last tag still matters.
        self._flows: tuple[dict[Hashable, _Flow[K]], ...] = ({}, {}, {})
        self._idle = 0  # how many became idle since these were last looked for
        self._limit = _FEW
        # Invariant: each busy flow has one entry that bears its number. All others are passed over.
        self._heap: list[tuple[float, int, _Flow[K]]] = []
        self._numbers = 0

    def push(self, key: K, priority: Priority, /) -> None:
        """Put in a key that does not wait yet."""
        if not self._size:
            self._alone = key, priority
        else:
            tenant = self._tenant(key)
            self._end_solitude()
            self._join(tenant, key, priority)
        self._size += 1

    def touch(self, key: K, priority: Priority, /) -> None:
        """Have a key that waits stand in the line of a higher priority as well."""
        self._end_solitude()
        tenant = self._tenant(key)
        flows = self._several.get(key)
        if flows is None:
            lines = (self._flows[each].get(tenant) for each in Priority)
            flows = [flow for flow in lines if flow is not None and key in flow.keys]
        if all(flow.priority < priority for flow in flows):
            self._several[key] = [*flows, self._join(tenant, key, priority)]

    def pop(self) -> K:
        """Take out who is next.

        Raises:
            IndexError: if nobody waits.
        """
        if self._alone is not None:
            (key, _), self._alone = self._alone, None
            self._size = 0
            return key
        heap = self._heap
        tag, number, flow = heap[0]
        while number != flow.number:
            heapq.heappop(heap)
            tag, number, flow = heap[0]
        key, _ = flow.keys.popitem(last=False)
        self._size -= 1
        self._now = flow.last = tag
        if flow.keys:
            self._numbers = number = flow.number = self._numbers + 1
            heapq.heapreplace(heap, (tag + flow.stride, number, flow))
        else:
            heapq.heappop(heap)
            self._leave(flow)
        if self._several:
            self._leave_others(key)
        return key

    def __len__(self) -> int:
        return self._size

    def most_before(self, priority: Priority, *, flows: int, ahead: int = 0) -> int:
        """Return how many keys at most are taken before one that is pushed now.

        Args:
            flows: how many flows (pairs of tenant and priority) have work while it waits.
            ahead: how many keys of its own flow wait already.
        """
        stride = _STRIDES[priority]
        span = max(self._handicap(priority), stride) + ahead * stride
        return flows * (math.floor(span) + 1)

    def _handicap(self, priority: Priority) -> float:
        return self._ageing * _STEPS[priority]

    def _end_solitude(self) -> None:
        if self._alone is not None:
            key, priority = self._alone
            self._join(self._tenant(key), key, priority)
            self._alone = None

    def _join(self, tenant: Hashable, key: K, priority: Priority) -> _Flow[K]:
        flow = self._flows[priority].get(tenant)
        if flow is None:
            handicap = self._handicap(priority)
            flow = self._flows[priority][tenant] = _Flow[K](tenant, priority, handicap)
        if not flow.number:
            tag, soonest = self._now + flow.handicap, flow.last + flow.stride
            self._numbers = number = flow.number = self._numbers + 1
            # Numbers differ, so that no flow is ever compared.
            heapq.heappush(self._heap, (max(soonest, tag), number, flow))
        flow.keys[key] = None
        return flow

    def _leave(self, flow: _Flow[K]) -> None:
        """Take note that a flow has nothing to do any more."""
        flow.number = 0  # an entry of it that stays behind does not count
        if not self._size:
            self._heap.clear()
        self._idle += 1
        if self._idle > self._limit:
            self._forget_idle()

    def _leave_others(self, key: K) -> None:
        """Have a key that was taken leave the other lines it stood in."""
        for flow in self._several.pop(key, ()):
            if key in flow.keys:
                del flow.keys[key]
                if not flow.keys:
                    self._leave(flow)

    def _forget_idle(self) -> None:
        """Forget flows that are idle and would begin now as if they had never been.

        What is kept was served within the last stride of virtual time. Looking costs no more than
        serving did: there is as much to look at as became idle since, or was kept then.
        """
        for flows in self._flows:
            for flow in [*flows.values()]:
                if not flow.number and flow.last + flow.stride <= self._now + flow.handicap:
                    del flows[flow.tenant]
        self._idle = 0
        self._limit = _FEW + sum(map(len, self._flows))

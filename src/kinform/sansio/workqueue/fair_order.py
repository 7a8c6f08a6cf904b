"""A fair order for work queues: priorities that age, and equal shares for every tenant.

A strict priority queue lets a steady stream of urgent work keep the rest waiting for ever, and one
line for all lets one busy tenant do that to the others. Here each priority has a line of its own:

* Within a priority, tenants take turns, one key each; the keys of a tenant are served first come,
  first served. A tenant that comes, or has more after its turn, goes to the end of the round.
* Among priorities, the line with the smallest *tag* is next. Virtual time is the tag that was
  served last. A line that was empty gets virtual time plus its *stride*, and so does one that was
  served and has more. The stride is 1 for `Priority.HIGH` and ``ageing`` times that of the next
  higher one for the others: while a line waits its tag stands still and time goes on, so that
  waiting makes up for priority.

Rule: no line that waits has a tag below virtual time, and the tags of one line are a stride apart.
Therefore `FairOrder.most_before` limits how many keys are taken before one that is added now,
no matter which keys are added after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar, final

from kinform.sansio.workqueue.key_queue import Priority

__all__ = ["AGEING", "FairOrder", "by_namespace"]

K = TypeVar("K", bound=Hashable)

AGEING: Final = 8
"""The number of keys of a priority that are taken for one of the next lower."""


def by_namespace(key: object) -> Hashable:
    """Return the namespace of a key: its attribute of that name, or what stands before a slash.

    >>> by_namespace("default/web-0"), by_namespace("node-1")
    ('default', '')
    """
    namespace: Hashable = getattr(key, "namespace", None)
    if namespace is not None:
        return namespace
    return key.partition("/")[0] if isinstance(key, str) and "/" in key else ""


@final
class _Line(Generic[K]):
    """The keys of one priority."""

    __slots__ = ("priority", "round", "stride", "tag")

    def __init__(self, priority: Priority, stride: int) -> None:
        self.priority = priority
        self.stride = stride
        self.tag = 0  # says nothing while the line is empty
        # The tenants that have work, the next one first; their keys, likewise. Keys can be found,
        # and leave from the middle. (A plain dict is slow at its front, once much has left there.)
        self.round: OrderedDict[Hashable, OrderedDict[K, None]] = OrderedDict()

    def push(self, tenant: Hashable, key: K, *, now: int) -> None:
        keys = self.round.get(tenant)
        if keys is None:
            # A line that was empty must not use the turns that it missed: with its old tag it would
            # be served before all others until it caught up.
            if not self.round:
                self.tag = now + self.stride
            keys = self.round[tenant] = OrderedDict()
        keys[key] = None

    def has(self, tenant: Hashable, key: K) -> bool:
        return key in self.round.get(tenant, ())

    def remove(self, tenant: Hashable, key: K) -> None:
        keys = self.round.get(tenant)
        if keys is not None and key in keys:
            del keys[key]
            if not keys:
                del self.round[tenant]


@final
class FairOrder(Generic[K]):
    """An `Order` for work queues that shares turns out among tenants and priorities.

    A key that waits and is added again with a higher priority stands in both lines, and is taken
    from the one where its turn comes first: adding again never makes it later.

    Args:
        tenant: returns the tenant of a key (default `by_namespace`). It must be deterministic.
        ageing: how many keys of a priority are taken for one of the next lower, while both wait.

    Raises:
        ValueError: if ``ageing`` is less than 1.
    """

    __slots__ = ("_alone", "_lines", "_now", "_raised", "_size", "_tenant")

    def __init__(
        self, *, tenant: Callable[[K], Hashable] | None = None, ageing: int = AGEING
    ) -> None:
        if ageing < 1:
            raise ValueError(f"ageing is {ageing!r}; expected at least 1")
        # Not a default: a checker would take K for what that function accepts, any object.
        self._tenant: Callable[[K], Hashable] = by_namespace if tenant is None else tenant
        highest_first = sorted(Priority, reverse=True)
        self._lines = [_Line[K](each, ageing**n) for n, each in enumerate(highest_first)]
        self._now = 0  # virtual time
        self._size = 0
        self._raised: set[K] = set()  # keys that stand in more than one line
        # The only waiting key, while no other key waits: it competes with no other key, so it is
        # not put into a line. This is the common case of a queue whose workers keep up.
        self._alone: tuple[K, Priority] | None = None

    def push(self, key: K, priority: Priority, /) -> None:
        """Put in a key that does not wait yet."""
        if not self._size:
            self._alone = key, priority
        else:
            tenant = self._tenant(key)  # it may raise; then nothing has happened
            self._end_solitude()
            self._lines[1 - priority].push(tenant, key, now=self._now)
        self._size += 1

    def touch(self, key: K, priority: Priority, /) -> None:
        """Add a key that waits to the line of a higher priority as well."""
        self._end_solitude()
        # After `_end_solitude`, because the key may be the lone one. If it raises here, the key
        # still waits in one line.
        tenant = self._tenant(key)
        if not any(line.has(tenant, key) for line in self._lines if line.priority >= priority):
            self._lines[1 - priority].push(tenant, key, now=self._now)
            self._raised.add(key)

    def pop(self) -> K:
        """Take out the next key.

        Raises:
            IndexError: no key waits.
        """
        if self._alone is not None:
            (key, _), self._alone = self._alone, None
            self._size = 0
            return key
        line: _Line[K] | None = None
        for each in self._lines:
            if each.round and (line is None or each.tag < line.tag):
                line = each
        if line is None:
            raise IndexError("pop from an empty order")
        self._now = line.tag
        line.tag += line.stride
        tenant, keys = line.round.popitem(last=False)
        key, _ = keys.popitem(last=False)
        if keys:
            line.round[tenant] = keys  # the end of the round
        self._size -= 1
        if self._raised and key in self._raised:
            self._raised.remove(key)
            for each in self._lines:
                each.remove(tenant, key)
        return key

    def __len__(self) -> int:
        return self._size

    def most_before(self, priority: Priority, *, tenants: int, ahead: int = 0) -> int:
        """Return how many keys at most are taken before one that is pushed now.

        Args:
            tenants: how many tenants, its own included, have work of this priority at a time.
            ahead: how many keys of its own tenant and priority wait already.
        """
        turns = tenants * (ahead + 1)  # of its line, its own included
        span = turns * self._lines[1 - priority].stride
        others = (line for line in self._lines if line.priority != priority)
        return turns - 1 + sum(span // line.stride + 1 for line in others)

    def _end_solitude(self) -> None:
        if self._alone is not None:
            key, priority = self._alone
            self._lines[1 - priority].push(self._tenant(key), key, now=self._now)
            self._alone = None

"""Causes: the reasons why a key is in a work queue, merged as the key itself is.

A key stands once in the queue, however often it was added. Its causes are not lost: they are kept
beside it until it is done.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, final

__all__ = ["MAX_CAUSES", "Cause", "CauseKind", "Causes"]

MAX_CAUSES: Final = 16
"""The limit of different causes that are kept for one key."""


class CauseKind(enum.StrEnum):
    """The kind of a cause."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"
    RESYNC = "resync"
    """Nothing changed: a handler requested a periodic resync."""
    TIMER = "timer"
    """The key was added with a delay: `WorkQueue.add_after`."""
    RETRY = "retry"
    """The key failed and is retried: `WorkQueue.add_rate_limited`."""
    OTHER = "other"
    """Something outside of Kubernetes, for example."""


@final
@dataclass(frozen=True, slots=True)
class Cause:
    """One reason to work on a key.

    >>> first = Cause(CauseKind.UPDATED, "pods", object="web-0", old_version="1", new_version="2")
    >>> second = Cause(CauseKind.UPDATED, "pods", object="web-0", old_version="2", new_version="5")
    >>> print(first.merged(second))
    pods: web-0 updated (1 → 5), 2 times
    """

    kind: CauseKind
    source: str = ""
    """The handler, informer or timer that the cause comes from."""
    object: Hashable = None
    """The object that changed; often not the one that the key names."""
    old_version: str = ""
    """Its resourceVersion before that."""
    new_version: str = ""
    """Its resourceVersion then."""
    count: int = 1
    """The number of times that it happened."""

    def merged(self, later: Cause) -> Cause:
        """Return one cause for both: from the version before the first to that of the later."""
        return replace(
            self,
            old_version=self.old_version or later.old_version,
            new_version=later.new_version or self.new_version,
            count=self.count + later.count,
        )

    def __str__(self) -> str:
        what = f"{self.kind}" if self.object is None else f"{self.object} {self.kind}"
        versions = (self.old_version, self.new_version)
        if any(versions):
            what += f" ({' → '.join(version for version in versions if version)})"
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{self.source}: {what}{times}" if self.source else f"{what}{times}"


@final
class Causes:
    """The causes of one key, in the order of their first appearance; read-only for reconcilers.

    Two of the same kind, source and object are one, see `Cause.merged`. There is a bound to what
    is kept; what does not fit is counted in `dropped`.
    """

    __slots__ = ("_by_subject", "_dropped", "_limit")

    def __init__(self, causes: Iterable[Cause] = (), *, limit: int = MAX_CAUSES) -> None:
        self._limit = limit
        self._by_subject: dict[tuple[CauseKind, str, Hashable], Cause] = {}
        self._dropped = 0
        for cause in causes:
            self._add(cause)

    @property
    def dropped(self) -> int:
        """The number of causes that did not fit."""
        return self._dropped

    def with_more(self, causes: Iterable[Cause], *, dropped: int = 0) -> Causes:
        """Return these causes and ``causes``; these stay as they are."""
        # A copy: a reconcile that runs may hold these causes, and must not see those of the next
        # run.
        merged = Causes((), limit=self._limit)
        merged._by_subject.update(self._by_subject)
        merged._dropped = self._dropped + dropped
        for cause in causes:
            merged._add(cause)
        return merged

    def _add(self, cause: Cause) -> None:
        subject = (cause.kind, cause.source, cause.object)
        known = self._by_subject.get(subject)
        if known is not None:
            self._by_subject[subject] = known.merged(cause)
        elif len(self._by_subject) < self._limit:
            self._by_subject[subject] = cause
        else:
            # Bounded, because one key may be added by a million events of as many objects (a key of
            # a whole cluster, for example) before a worker takes it.
            self._dropped += cause.count

    def __iter__(self) -> Iterator[Cause]:
        return iter(tuple(self._by_subject.values()))

    def __len__(self) -> int:
        return len(self._by_subject)

    def __repr__(self) -> str:
        more = f", and {self._dropped} more" if self._dropped else ""
        return f"<Causes: {'; '.join(map(str, self))}{more}>"

"""Activity: the writes of a program, how many of them changed anything, and the last change."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final, final

import msgspec

from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.storage.versioned_store import Change, Storage

if TYPE_CHECKING:
    from kinform.testing.simulation._world.link import Sent

__all__ = ["Activity", "is_bookkeeping", "stuck_deletion"]

_MINUTE: Final = 60.0
_PER_INPUT: Final = 10
_EVERYTHING: Final = "a write"
_OBJECTS: Final = 10
"""The limit on all writes of a process, as a multiple of the limit on writes of one object."""
_CREATES: Final = 4
"""The limit on created objects, as a multiple of the limit on writes of one object."""
_BOOKKEEPING: Final = ("leases", "events")


def is_bookkeeping(path: str) -> bool:
    """Return whether a path is of leases or events, which are written as long as a program runs."""
    return any(part in _BOOKKEEPING for part in path.split("/"))


@final
class Activity:
    """Records all writes to a storage, and separates the program's from the schedule's.

    Args:
        storage: The storage to observe.
        limit: How often one process may write one object in a minute.
        time: Returns what time it is.
    """

    def __init__(self, storage: Storage, *, limit: int, time: Callable[[], float]) -> None:
        self._limit = limit
        self._time = time
        self._is_input = False
        self._inputs: deque[float] = deque()
        self._changes: deque[tuple[float, str]] = deque()
        self._since = time()
        self._writes: defaultdict[tuple[object, str], deque[float]] = defaultdict(deque)
        storage.observe(self._note)

    # --- input

    @contextlib.contextmanager
    def input(self) -> Generator[None]:
        """Note that what changes meanwhile is not the program's."""
        self._is_input = True
        self._inputs.append(self._time())
        try:
            yield
        finally:
            self._is_input = False

    def begin(self) -> None:
        """Note that from now on nothing changes but by the program."""
        self._since = self._time()
        self._changes.clear()

    def sent(self, process: object, sent: Sent) -> str:
        """Record a request; return the limit that it exceeds, ``""`` if none."""
        if not sent.is_write or is_bookkeeping(sent.path) or not self._limit:
            return ""
        _forget(self._inputs, sent.at - 2 * _MINUTE)
        more = _PER_INPUT * len(self._inputs)
        one = f"{sent.method} {sent.path}"
        limit = self._limit * (_CREATES if sent.method == "POST" else 1) + more
        allowed = {one: limit, _EVERYTHING: _OBJECTS * self._limit + more}
        for what, limit in allowed.items():
            times = self._writes[process, what]
            times.append(sent.at)
            _forget(times, sent.at - _MINUTE)
            if len(times) > limit:
                last = "" if what == one else f", the last one {one}"
                return (
                    f"{what} was sent {len(times)} times within a minute{last}; expected at most "
                    f"{limit}. Does the controller write what makes it reconcile again?"
                )
        return ""

    def _note(self, resource: str, change: Change) -> None:
        if not self._is_input and resource.partition(".")[0] not in _BOOKKEEPING:
            self._changes.append((self._time(), f"{resource} {change.key}"))

    # --- results

    def unrest(self, seconds: float) -> str:
        """Return the object that the program changed within the last ``seconds``; ``""``: none."""
        now = self._time()
        while self._changes and self._changes[0][0] <= now - seconds:
            self._changes.popleft()
        if not self._changes:
            return "" if now - self._since >= seconds else "it is too early to tell"
        counts = Counter(what for _, what in self._changes)
        (most, times), *_ = counts.most_common(1)
        total = sum(counts.values())
        return (
            f"{most} was changed {times} times in the last {seconds:g} s ({total} changes in all), "
            "though all faults are over and nothing else is written; expected no change"
        )


def stuck_deletion(storage: Storage) -> str:
    """Return an object whose deletion is held up by finalizers, ``""`` if there is none."""
    for resource in storage.resources():
        for stored in storage.table(resource).now():
            if b'"deletionTimestamp"' not in stored.raw:
                continue
            content: Json = msgspec.json.decode(stored.raw)
            metadata = as_dict(content.get("metadata"))
            if metadata.get("deletionTimestamp") and (held := metadata.get("finalizers")):
                return (
                    f"{resource} {stored.key} was deleted at {metadata['deletionTimestamp']} and "
                    f"is still there: expected its finalizers to be removed, it has {held}"
                )
    return ""


def _forget(times: deque[float], before: float) -> None:
    while times and times[0] < before:
        times.popleft()

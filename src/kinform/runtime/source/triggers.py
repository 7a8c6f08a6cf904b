"""Sources of names other than objects: timers, streams, and channels that callers send to.

controller-runtime: ``pkg/source`` (Channel, Func). For kinds of objects there is `KindSource`;
the sources here add names to the queue themselves.

Rule: a source only says which names to reconcile. The reconcile finds out what to do, from the
current state.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast, final

from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.runtime.map_functions import MapFunc
from kinform.sansio.workqueue.key_queue import Priority
from kinform.workqueue.causes import Cause, CauseKind

__all__ = [
    "ChannelSource",
    "Enqueue",
    "Source",
    "StreamSource",
    "TimerSource",
]

T = TypeVar("T")
S = TypeVar("S")

log: Final = logging.getLogger(__name__)

Names: TypeAlias = Iterable[ObjectName] | Callable[[], Iterable[ObjectName]]

_PER_TURN: Final = 256
"""Names that a source adds before other tasks get a turn."""
_TURN: Final = 0.002
"""Seconds after which they have one in any case."""
BUFFER: Final = 1024
"""Names that a channel keeps until its controller takes them."""


class Enqueue(Protocol):
    """Puts a name into a controller's queue: `WorkQueue.add`."""

    def __call__(
        self, key: ObjectName, *, priority: Priority = ..., cause: Cause | None = None
    ) -> None:
        """Add ``key`` to the queue, to be reconciled."""
        ...


class Source(Protocol):
    """A source of names to reconcile. It belongs to one controller."""

    @property
    def name(self) -> str:
        """The name of the source in causes and logs."""
        ...

    async def run(self, add: Enqueue) -> None:
        """Call ``add`` for each name to reconcile, until cancelled.

        A source that raises is a part that ended unexpectedly: it is logged, counted, and run again
        with backoff; more than five such ends within a minute end the manager. A source whose
        backend may be down for longer handles that itself. `UsageError` is final: the source is not
        run again. A source that returns is not run again either.
        """
        ...


@final
class TimerSource:
    """Reconciles names periodically: for state that no event reports.

    .. code-block:: python

        TimerSource(300, [ObjectName("", "cluster")])      # first at once, then every 5 minutes
        TimerSource(300, lambda: [widget.key for widget in widgets.lister.list()])

    Args:
        every: seconds between two rounds, a tenth more at most: many replicas started together
            do not stay in step.
        names: which, or a function that says so each time.

    Raises:
        UsageError: ``every`` is not a number above 0.
    """

    def __init__(self, every: float, names: Names, *, name: str = "timer") -> None:
        if not 0 < every < math.inf:
            raise UsageError(f"every is {every!r}; expected seconds, more than 0")
        self.name: Final = name
        self._every = every
        self._names: Names = names if callable(names) else tuple(names)

    async def run(self, add: Enqueue) -> None:
        """Put the names in, and again after each pause."""
        while True:
            names = self._names() if callable(self._names) else self._names
            turns = _Turns()
            for each in tuple(names):  # all of them, or none if that fails
                add(each, cause=Cause(CauseKind.TIMER, self.name))
                await turns.next()
            await asyncio.sleep(self._every * random.uniform(1.0, 1.1))


@final
class StreamSource(Generic[S]):
    """Has names reconciled that come out of an async iterator: a queue, a webhook, a database.

    Args:
        open_stream: makes the iterator; called again if that fails, after a growing pause. More
            than five failures within a minute stop the manager with the error.
        map: which names an item means.
    """

    def __init__(
        self,
        open_stream: Callable[[], AsyncIterable[S]],
        map: MapFunc[S],  # noqa: A002 - as KindSource has it
        *,
        name: str = "stream",
    ) -> None:
        self.name: Final = name
        self._open = open_stream
        self._map = map

    async def run(self, add: Enqueue) -> None:
        """Add the names of each item, until the iterator ends. Its errors are raised."""
        stream = self._open()
        closing = getattr(stream, "aclose", None)
        if closing is None:
            await self._read(stream, add)
            return
        async with aclosing(cast("AsyncGenerator[S]", stream)):
            await self._read(stream, add)

    async def _read(self, stream: AsyncIterable[S], add: Enqueue) -> None:
        turns = _Turns()
        async for item in stream:
            names = self._map(item)
            for each in [names] if isinstance(names, ObjectName) else names or ():
                add(each, cause=Cause(CauseKind.OTHER, self.name))
                await turns.next()


@final
class ChannelSource:
    """A source that callers `send` names to, from any thread, before or after the start.

    Args:
        buffer: how many different names wait at most until the controller runs.
    """

    def __init__(self, *, name: str = "channel", buffer: int = BUFFER) -> None:
        self.name: Final = name
        self._buffer = buffer
        self._waiting: dict[ObjectName, None] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._add: Enqueue | None = None

    def send(self, name: ObjectName) -> None:
        """Add ``name`` to the queue, to be reconciled.

        Raises:
            UsageError: the controller does not run, and the buffer is full; or ``name`` is none.
        """
        if not isinstance(name, ObjectName):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            raise UsageError(f"{name!r} is not an ObjectName: ObjectName.parse('namespace/name')")
        with self._lock:
            if self._loop is None:
                self._keep(name)
                return
            loop = self._loop
        with suppress(RuntimeError):  # the loop is closed: no controller runs any more
            loop.call_soon_threadsafe(self._pass_on, name)

    def _keep(self, name: ObjectName) -> None:
        if len(self._waiting) >= self._buffer and name not in self._waiting:
            raise UsageError(
                f"channel {self.name!r} is full: {self._buffer} names wait for a controller that "
                "does not run"
            )
        self._waiting[name] = None

    def _pass_on(self, name: ObjectName) -> None:
        if self._add is None:  # stopped meanwhile
            with self._lock, suppress(UsageError):
                self._keep(name)
        else:
            self._add(name, cause=Cause(CauseKind.OTHER, self.name))

    async def run(self, add: Enqueue) -> None:
        """Add the names that were sent, and those that come."""
        with self._lock:
            if self._loop is not None:
                raise UsageError(f"channel {self.name!r} belongs to another controller already")
            self._loop, self._add = asyncio.get_running_loop(), add
            waiting, self._waiting = deque(self._waiting), {}
        turns = _Turns()
        try:
            while waiting:
                self._pass_on(waiting.popleft())
                await turns.next()
            await asyncio.get_running_loop().create_future()  # for ever
        finally:
            with self._lock:
                self._loop = self._add = None
                self._waiting = dict.fromkeys([*waiting, *self._waiting])


@final
class _Turns:
    """Lets other tasks have a turn now and then: for a source that may have much to put in."""

    __slots__ = ("_clock", "_count", "_since")

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._count = 0
        self._since = self._clock()

    async def next(self) -> None:
        """Suspend, if it is time to."""
        self._count += 1
        if self._count % _PER_TURN == 0 or self._clock() - self._since > _TURN:
            await asyncio.sleep(0)
            self._since = self._clock()

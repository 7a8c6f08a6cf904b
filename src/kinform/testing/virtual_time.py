"""An event loop whose time jumps: a day of back-off passes in a millisecond.

`VirtualTimeLoop` never waits. When every task waits for a timer, the clock jumps to the nearest
one; what takes no time takes no time. It carries a `VirtualClock`, which `kinform.clock.current`
finds, so boot time, wall time and `kinform.clock.offload` are virtual as well. A hang is a failure:
`Deadlock` when all tasks wait and no timer is left, `Livelock` when the loop turns and turns
while time stands still, `TimeoutError` when a test needs more virtual time than it was given.

For tests without sockets, processes and threads: virtual time would run away from them, so the
loop refuses sockets and pipes, and runs executor jobs inline.

.. code-block:: python

    @in_virtual_time
    async def test_backs_off_for_thirty_seconds() -> None:
        before = virtual_clock().boot()
        await asyncio.sleep(30)
        assert virtual_clock().boot() == before + 30
"""

from __future__ import annotations

import asyncio
import functools
import math
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Final,
    ParamSpec,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    final,
    overload,
)

from kinform.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

__all__ = [
    "Deadlock",
    "LeakedTasks",
    "Livelock",
    "VirtualClock",
    "VirtualTimeLoop",
    "in_virtual_time",
    "run",
    "virtual_clock",
]

P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_WALL: Final = 1_767_225_600.0  # 2026-01-01T00:00:00Z: a round number, and always the same
_BOOT: Final = 10_000.0  # unlike the loop's own time, so that mixing the two shows
_MAX_TURNS: Final = 100_000
_WEEK: Final = 7 * 86_400.0

_Ready: TypeAlias = list[tuple[selectors.SelectorKey, int]]


class Deadlock(AssertionError):
    """Every task waits, and no timer is left that could wake one. Lists where each task waits."""


class Livelock(AssertionError):
    """The loop turned too often without time moving: a task waits in a busy loop."""


class LeakedTasks(AssertionError):
    """A test ended before tasks it had started. Lists them and where they wait."""


@final
class VirtualClock:
    """The clock of a `VirtualTimeLoop`: boot and wall time follow the loop's own time.

    Implements `kinform.clock.Clock`. Time passes when tasks wait; `jump_wall` and `suspend` do
    what else happens to clocks.
    """

    def __init__(self, monotonic: Callable[[], float], *, wall: float = _WALL) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._suspended = 0.0

    def boot(self) -> float:
        """Return seconds since some fixed point, counting time spent suspended."""
        return _BOOT + self._monotonic() + self._suspended

    def wall(self) -> float:
        """Return seconds since 1970; starts at the same instant in every test."""
        return self._wall + self._monotonic() + self._suspended

    async def offload(self, call: Callable[[], R]) -> R:
        """Run ``call`` here and now, after one turn of the loop: a thread would take no less."""
        await asyncio.sleep(0)
        return call()

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back if negative, as an administrator or NTP does.

        Boot time and timers do not notice.
        """
        self._wall += seconds

    def suspend(self, seconds: float) -> None:
        """Put the machine to sleep for ``seconds``: boot and wall time go on, timers do not.

        Raises:
            ValueError: if ``seconds`` is negative.
        """
        if seconds < 0:
            raise ValueError(f"cannot sleep for {seconds} seconds; expected zero or more")
        self._suspended += seconds


@final
class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer instead of waiting for it.

    Its time starts at 0. ``wall`` is where the wall clock starts; after ``max_turns`` turns of
    the loop without time moving, it raises `Livelock`. Both it and `Deadlock` end the ``run_*``
    call that drives the loop, not a task: no ``except`` in the code under test can hide them.
    """

    clock: VirtualClock
    """The clock that `kinform.clock.current` returns in this loop."""

    def __init__(self, *, wall: float = _WALL, max_turns: int = _MAX_TURNS) -> None:
        self._jumps = _JumpSelector(max_turns, self._describe_tasks)
        super().__init__(self._jumps)  # registers its self-pipe, the one descriptor it needs
        self._jumps.sealed = True
        self._jumps.on_move = self._be_exact
        self._be_exact(0.0)
        self.clock = VirtualClock(self.time, wall=wall)

    def time(self) -> float:
        """Return the virtual time, in seconds since the loop was made."""
        return self._jumps.now

    def _be_exact(self, now: float) -> None:
        """Run timers exactly when they are due, never earlier.

        asyncio runs a timer up to a clock's resolution too early. In real time that does no harm;
        in virtual time two tasks that wait for the same time could wake each other for ever.
        """
        self._clock_resolution = math.ulp(now)

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002 - asyncio's signature
        func: Callable[[*Ts], R],
        *args: *Ts,
    ) -> asyncio.Future[R]:
        """Run ``func`` inline, for any executor, and return its result as a done future."""
        future: asyncio.Future[R] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - any error belongs to the caller
            future.set_exception(error)
        return future

    def _describe_tasks(self) -> str:
        return _describe(asyncio.all_tasks(self))


@final
class _JumpSelector(selectors.DefaultSelector):
    """Polls for I/O without waiting; if there is none, advances ``now`` by the time-out."""

    def __init__(self, max_turns: int, describe: Callable[[], str]) -> None:
        super().__init__()
        self.now = 0.0
        self.sealed = False
        self.on_move: Callable[[float], None] = lambda _: None
        self._max_turns = max_turns
        self._turns = 0  # since time last moved
        self._describe = describe

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        if self.sealed:
            raise UsageError(
                "virtual time cannot wait for a real socket, pipe or process; "
                "use an in-memory transport, or an ordinary event loop"
            )
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> _Ready:
        # Only what is sealed off from real input can leave out to ask for it.
        ready = [] if timeout == 0 and self.sealed else super().select(0)
        if ready or timeout == 0:
            self._turn()
        elif timeout is None:
            raise Deadlock(f"every task waits, and no timer is left\n{self._describe()}")
        else:
            self._turns = 0
            self.now += timeout
            self.on_move(self.now)
        return ready

    def _turn(self) -> None:
        self._turns += 1
        if self._turns > self._max_turns:
            self._turns = 0  # the tasks must still be able to end
            turns = f"{self._max_turns} turns of the loop, and it is still {self.now}"
            raise Livelock(f"{turns}\n{self._describe()}")


def virtual_clock() -> VirtualClock:
    """Return the clock of the running `VirtualTimeLoop`.

    Raises:
        UsageError: if the running loop is another one.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise UsageError(
            f"{type(loop).__name__} has no virtual clock; use @in_virtual_time or run()"
        )
    return loop.clock


def run(
    main: Coroutine[object, object, R],
    *,
    timeout: float | None = _WEEK,
    wall: float = _WALL,
    max_turns: int = _MAX_TURNS,
) -> R:
    """Run ``main`` in a `VirtualTimeLoop` of its own and return its result.

    ``timeout`` is in virtual seconds: it ends a test that waits for ever while some periodic
    timer keeps time moving.

    Raises:
        Deadlock: if every task waits and no timer is left.
        Livelock: after ``max_turns`` turns of the loop without time moving.
        LeakedTasks: if ``main`` ends without error before a task it started.
        TimeoutError: after ``timeout`` virtual seconds.
    """
    with asyncio.Runner(
        loop_factory=lambda: VirtualTimeLoop(wall=wall, max_turns=max_turns)
    ) as runner:
        return runner.run(_supervised(main, timeout))


@overload
def in_virtual_time(test: Callable[P, Coroutine[object, object, R]], /) -> Callable[P, R]: ...
@overload
def in_virtual_time(
    *, timeout: float | None = _WEEK, wall: float = _WALL, max_turns: int = _MAX_TURNS
) -> Callable[[Callable[P, Coroutine[object, object, R]]], Callable[P, R]]: ...
def in_virtual_time(
    test: Callable[P, Coroutine[object, object, R]] | None = None,
    /,
    *,
    timeout: float | None = _WEEK,
    wall: float = _WALL,
    max_turns: int = _MAX_TURNS,
) -> Callable[P, R] | Callable[[Callable[P, Coroutine[object, object, R]]], Callable[P, R]]:
    """Make an ``async def`` test an ordinary one that runs in virtual time; see `run`.

    Independent of any pytest plugin: the test keeps its parameters, so fixtures, parametrize and
    hypothesis's ``given`` work; async fixtures do not, they have a loop of their own. Used
    as ``@in_virtual_time`` or, with the parameters of `run`, as ``@in_virtual_time(timeout=60)``.
    """

    def decorate(test: Callable[P, Coroutine[object, object, R]]) -> Callable[P, R]:
        @functools.wraps(test)
        def run_test(*args: P.args, **kwargs: P.kwargs) -> R:
            main = test(*args, **kwargs)
            return run(main, timeout=timeout, wall=wall, max_turns=max_turns)

        return run_test

    return decorate if test is None else decorate(test)


async def _supervised(main: Coroutine[object, object, R], timeout: float | None) -> R:
    async with asyncio.timeout(timeout):
        result = await main
    for _ in range(10):  # tasks that were just cancelled or released may end in peace
        await asyncio.sleep(0)
    leaked = asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}
    if leaked:
        raise LeakedTasks(f"the test ended before {len(leaked)} of its tasks\n{_describe(leaked)}")
    return result


def _describe(tasks: set[asyncio.Task[object]]) -> str:
    """Return one line per task: its name, and where it waits."""
    lines = [f"  {task.get_name()}: {_where(task.get_coro())}" for task in tasks]
    return "\n".join(sorted(lines)) or "  no task is left"


def _where(coroutine: object) -> str:
    """Return the lines that an awaited coroutine has stopped at, outermost first."""
    places: list[str] = []
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None:
            code = frame.f_code
            places.append(f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_qualname}")
        coroutine = getattr(coroutine, "cr_await", None)
    return " > ".join(places) or "about to end"

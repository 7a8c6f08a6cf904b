"""The world: a server, processes, and the schedule of faults, under virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import math
import random
import shlex
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.server import APIServer
from kinform.client import connect
from kinform.errors import LeadershipLost, UsageError
from kinform.rest.config import Config
from kinform.testing import virtual_time
from kinform.testing.simulation import actions as acts
from kinform.testing.simulation._oracles.activity import Activity, is_bookkeeping, stuck_deletion
from kinform.testing.simulation._oracles.failures import PROCESS, Failures
from kinform.testing.simulation._oracles.witness import Divergence
from kinform.testing.simulation._schedule import knobs
from kinform.testing.simulation._schedule.workload import Workload
from kinform.testing.simulation._world.history import History
from kinform.testing.simulation._world.link import Link, Sent
from kinform.testing.simulation._world.slots import Countdown, Slot
from kinform.testing.simulation._world.writer import BUSY, Lost, Writer
from kinform.testing.simulation.actions import Action, Schedule, Write
from kinform.testing.simulation.drawing import NAMESPACES
from kinform.testing.simulation.limits import WATCHER, Limits, TimeUp, limited
from kinform.testing.simulation.process import Process

__all__ = ["BUDGET", "Check", "Outcome", "Program", "World", "simulate"]

BUDGET: Final = 8
"""The limit of lists, and of watches, of an informer in any minute."""
SETTLE: Final = 600.0
"""Seconds after the last fault until everything must be equal: longer than any watch."""
_RESTS: Final = 3.0
"""A program may take this many times its limit to come to rest."""
_LEASES: Final = 120.0
"""Seconds after the last fault until which a process may lose its lease."""
_TICK: Final = 2.5
_OTHER_VERSION: Final = "v1beta1"
"""The API version that is served while the objects' own version is not."""
_ANSWER_TIMEOUT: Final = 150.0
"""Shorter than usual, so that slow answers time out before everything must be equal."""
_AFTER_RESTORE: Final = 75.0
"""Seconds after a restore in which a lease may be in the hands of two: it was edited."""

Program: TypeAlias = Callable[[Process], Awaitable[None]]
"""The program that runs in each process, until it is cancelled."""
Check: TypeAlias = Callable[["World"], str | None]
"""Called at the end: returns or raises the first problem, else returns ``""`` or None."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a run."""

    schedule: Schedule
    divergence: Divergence | None
    seconds: float
    """Virtual ones."""
    requests: int
    writes: int
    """Of all processes, without those of leases and events."""
    command: str = ""
    """A shell command that runs this schedule again, if it was drawn from its seed."""

    def raise_for_divergence(self) -> None:
        """Do nothing if the run found nothing.

        Raises:
            Divergence: it did; its message also says how to run the schedule again.
        """
        if self.divergence is None:
            return
        text = str(self.divergence).partition(": ")[2]
        called = self.schedule.name or f"seed {self.schedule.seed}"
        again = f"; again: {self.command}" if self.command else ""
        raise Divergence(self.divergence.oracle, f"{called}: {text}{again}")


def simulate(
    schedule: Schedule,
    program: Program,
    check: Check | None = None,
    *,
    workload: Workload | None = None,
    limits: Limits | None = None,
) -> Outcome:
    """Run a schedule; the same one with the same program gives the same outcome.

    Without a ``workload`` its writes are of ConfigMaps. ``limits`` say how much the program may
    write and how long the run may take; see `Limits`.

    Python's own ``random`` is seeded meanwhile, and no garbage is collected, since finalizers would
    run at moments that depend on what ran before. That sets are iterated in the same order takes
    a fixed ``PYTHONHASHSEED``; the command line sees to it.

    Raises:
        UsageError: the workload cannot be written.
    """
    limits = limits or Limits()
    world = World(schedule, program, check, workload=workload, limits=limits)
    dice = random.getstate()
    collects = gc.isenabled()
    gc.disable()
    random.seed(schedule.seed)
    divergence: Divergence | None = None
    late: list[str] = []
    try:
        with (
            knobs.turned(random.Random(f"knobs {schedule.seed}")),
            limited(limits.seconds) as late,
        ):
            virtual_time.run(world.run())
    except TimeUp:
        pass
    except Divergence as exc:
        divergence = exc
    except (virtual_time.Deadlock, virtual_time.Livelock, TimeoutError) as exc:
        divergence = Divergence("hang", str(exc))
    except virtual_time.LeakedTasks as exc:
        divergence = Divergence("leak", str(exc))
    finally:
        random.setstate(dice)
        if collects:
            gc.enable()
    if late:
        divergence = Divergence("time", f"{late[0]} (after {world.now:.0f} virtual s)")
    return Outcome(
        schedule=schedule,
        divergence=divergence if late else world.failure or divergence,
        seconds=world.now,
        requests=sum(map(len, world.sent)),
        writes=sum(
            one.is_write and not is_bookkeeping(one.path) for life in world.sent for one in life
        ),
        command=_command(schedule, program, check),
    )


@final
class World:
    """One run of one schedule."""

    def __init__(
        self,
        schedule: Schedule,
        program: Program,
        check: Check | None = None,
        *,
        workload: Workload | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.schedule: Final = schedule
        self.limits: Final = limits or Limits()
        self.server: Final = APIServer(port=None, seed=schedule.seed, token="simulation")  # noqa: S106 - in memory only
        self.failure: Divergence | None = None
        self.now: float = 0.0
        self.sent: list[list[Sent]] = []
        """The requests of each life of each process."""
        self._program = program
        self._check = check
        self._slots = [Slot(number) for number in range(schedule.processes)]
        self._undo: dict[_Undoing, asyncio.TimerHandle] = {}
        self._remaining: list[acts.Remain] = []
        self._moved = 0  # how often the API version is not to be served
        self._moved_kind: Kind | None = None
        self._writer = Writer(self.server, workload)
        self._anywhere: Countdown | None = None
        self._threads = set(threading.enumerate())
        self._healed_at: float | None = None

    @property
    def living(self) -> Sequence[Process]:
        """The processes that run."""
        return [slot.process for slot in self._slots if slot.process is not None]

    async def run(self) -> None:
        """Run the schedule.

        Raises:
            Divergence: a promise was broken.
            UsageError: the workload cannot be written.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_error)
        before = _timers(loop)
        async with self.server:
            for namespace in NAMESPACES:
                self._writer.create_namespace(namespace)
            self._writer.install()
            self.history: History = History(
                self.server.cluster.storage,
                self._writer.kind.storage,
                value_at=self._writer.workload.value_at,
                time=loop.time,
            )
            self.activity: Activity = Activity(
                self.server.cluster.storage, limit=self.limits.writes, time=loop.time
            )
            self.failures: Failures = Failures(loop.time)
            try:
                with self.failures.followed():
                    await self._act()
            except* (Divergence, UsageError) as several:
                raise next(_leaves(several)) from None
            finally:
                self.now = loop.time()
            self._check_budget()
        self._check_timers(before)
        self._raise()

    # --- the schedule

    async def _act(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._direct())
            for slot in self._slots:
                group.create_task(self._supervise(slot))

    async def _direct(self) -> None:
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            while len(self.living) < len(self._slots):  # noqa: ASYNC110 - a turn or two
                await asyncio.sleep(0)
            ticking = loop.create_task(self._tick())
            stack.callback(ticking.cancel)
            for action in self.schedule.actions:
                await asyncio.sleep(max(0.0, action.at - loop.time()))
                self._raise()
                with self._in_own_version():
                    self._perform(action)
            await asyncio.sleep(0)
            self._heal()
            self._healed_at = loop.time()
            self.activity.begin()
            self.failures.healed()
            await self._settle()
        for slot in self._slots:
            slot.ends = True
            slot.end(crash=False)

    def _perform(self, action: Action) -> None:
        server, clock = self.server, virtual_time.virtual_clock()
        match action:
            case Write():
                with self.activity.input():
                    self._writer.write(action)
            case acts.Meddle():
                with self.activity.input():
                    self._writer.meddle(action)
            case acts.Happen():
                fault = server.faults.add(action.made())
                self._later(action.lasts, lambda: _remove(server, fault))
            case acts.Remain():
                self._remaining.append(action)
                server.faults.add(action.made())
            case acts.Unserve():
                self._unserve(action)
            case acts.Compact():
                server.compact()
            case acts.Restore():
                with self.activity.input():
                    self._restore(action)
            case acts.Lag():
                server.lag(action.seconds)
                self._later(action.lasts, lambda: server.lag(0))
            case acts.Pause():
                server.pause()
                self._later(action.lasts, server.resume)
            case acts.Suspend():
                clock.suspend(action.seconds)
            case acts.JumpWall():
                clock.jump_wall(action.seconds)
            case _:
                self._to_process(action)

    def _to_process(self, action: Action) -> None:
        assert isinstance(action, acts.Partition | acts.Restart | acts.Crash | acts.CrashAtWrite)
        if isinstance(action, acts.CrashAtWrite) and action.process < 0:
            self._anywhere = Countdown(action)
            for each in self._slots:
                if each.link is not None:
                    each.link.on_any_write = self._anywhere.of(each)
            return
        slot = self._slots[action.process % len(self._slots)]
        link = slot.link
        match action:
            case acts.Restart():
                slot.end(crash=False)
            case acts.Crash():
                slot.end(crash=True, after=action.after)
            case acts.CrashAtWrite() if link is not None:
                link.on_write = Countdown(action).of(slot)
            case acts.Partition() if link is not None:
                link.cut(silent=action.silent)
                self._later(action.lasts, link.heal)
            case _:
                pass  # it does not run just now

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        undoing = _Undoing(undo, self._undo)
        self._undo[undoing] = asyncio.get_running_loop().call_later(seconds, undoing)

    def _heal(self) -> None:
        """End all that is wrong."""
        for undoing, timer in tuple(self._undo.items()):
            timer.cancel()
            undoing()
        self.server.faults.clear()
        for action in self._remaining:
            self.server.faults.add(action.made())
        for slot in self._slots:
            if slot.link is not None:
                slot.link.on_write = None

    def _unserve(self, action: acts.Unserve) -> None:
        kind = self._writer.kind
        if kind.custom is None:
            self._moved += 1
            self._later(action.lasts, self._serve_again)

    def _serve_again(self) -> None:
        self._moved -= 1
        with self._in_own_version():
            pass

    @contextlib.contextmanager
    def _in_own_version(self) -> Generator[None]:
        """Serve the written objects in their own version for an instant: faults spare writes."""
        kinds = self.server.cluster.kinds
        if self._moved_kind is not None:
            kinds.move(self._moved_kind, self._moved_kind.version)
            self._moved_kind = None
        yield
        if self._moved:
            self._moved_kind = self._writer.kind
            kinds.move(self._moved_kind, _OTHER_VERSION)

    def _restore(self, action: acts.Restore) -> None:
        self._heal()
        lost = self._writer.restore(action.by)
        if lost is not None:
            self.history.note_restore()
            self._redo(lost, action.redo)
        for slot in self._slots:
            if slot.link is not None:
                slot.link.reset()

    def _redo(self, lost: Sequence[Lost], count: int) -> None:
        """Repeat updates that were lost, as far as every process can see the difference."""
        there = self.history.now()
        seen = min((process.seen for process in self.living), default=0)
        for mark, write in lost:
            held = there.get(self._writer.key_of(write))
            if held is None or write.verb not in {"update", "relabel"}:
                continue
            # The server must not overtake them before they notice: leases are renewed meanwhile.
            if not count or mark + 3 * BUSY > seen:
                return
            self._writer.redo((mark, write))
            count -= 1

    # --- processes

    async def _supervise(self, slot: Slot) -> None:
        life = 0
        while not slot.ends:
            await self._live(slot, life)
            life += 1
            if not slot.ends:
                await asyncio.sleep(slot.after)
                slot.after = 0.0

    async def _live(self, slot: Slot, life: int) -> None:
        loop = asyncio.get_running_loop()
        sent: list[Sent] = []
        self.sent.append(sent)
        dice = random.Random(f"link {self.schedule.seed} {slot.number} {life}")
        link = Link(
            self.server.application, sent, dice=dice, latency=dice.choice((0.002, 0.02, 0.05))
        )
        config = Config(
            server="http://localhost", token=self.server.token, answer_timeout=_ANSWER_TIMEOUT
        )
        client = connect(config, transport=link)
        async with client:
            process = Process(
                slot.number,
                life,
                client=client,
                link=link,
                history=self.history,
                report=self.report,
                schedule=self.schedule,
            )
            link.on_sent = functools.partial(self._note_sent, process)
            if self._anywhere is not None:
                link.on_any_write = self._anywhere.of(slot)
            task = loop.create_task(_run(self._program, process), name=str(process))
            slot.begin(process, task)
            await asyncio.wait([task])
            took = loop.time() - slot.ended_at if slot.ended_at is not None else 0.0
            slot.over()
        if not task.cancelled() and slot.ended_at is None:
            if not self._may_end(task.exception()):
                text = f"{process} ended by itself: {task.exception()!r}"
                self.report(Divergence("program", f"{text}; expected it to run until cancelled"))
            slot.after = 1.0
        elif not task.cancelled() and (error := task.exception()) is not None:
            self.report(Divergence("program", f"{process} ended by an error: {error!r}"))
        if took > process.grace + 0.5 and not slot.crashed:
            self.report(Divergence("stop", f"{process} took {took:.1f} s to end"))
        for text in link.impatience:
            self.report(Divergence("patience", f"{process}: {text}"))
        if link.open_streams:
            self.report(Divergence("leak", f"{process} left {link.open_streams} answers open"))

    def _may_end(self, error: BaseException | None) -> bool:
        """Return whether a process may end by this: one that has lost its lease is started again.

        As in a cluster. Long after the last fault a lease must not be lost.
        """
        late = self._healed_at is not None and self.time() - self._healed_at > _LEASES
        return isinstance(error, LeadershipLost) and not late

    def time(self) -> float:
        """Return the virtual time, in seconds since the start."""
        return asyncio.get_running_loop().time()

    # --- promises

    def _note_sent(self, process: Process, sent: Sent) -> None:
        if text := self.activity.sent(process, sent):
            self.report(Divergence("writes", f"{process}: {text}"))

    def report(self, divergence: Divergence) -> None:
        """Record a divergence; the first one counts."""
        if self.failure is None:
            at = asyncio.get_running_loop().time()
            message = f"{divergence} (at {at:.2f} s)"
            self.failure = Divergence(divergence.oracle, message.partition(": ")[2])

    def _raise(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._look()

    def _look(self) -> None:
        if strange := [each.name for each in threading.enumerate() if self._is_strange(each)]:
            text = f"the program started threads ({', '.join(strange)}), and virtual time does not"
            hint = "expected asyncio.to_thread or loop.run_in_executor, which run inline"
            self.report(Divergence("threads", f"{text} wait for them: {hint}"))
        for process in self.living:
            for witness in process.witnesses:
                witness.look()
        leaders = [str(process) for process in self.living if process.is_leading]
        now = asyncio.get_running_loop().time()
        if len(leaders) > 1 and now - self.history.restored_at > _AFTER_RESTORE:
            self.report(Divergence("leaders", f"{' and '.join(leaders)} lead at once"))

    def _is_strange(self, thread: threading.Thread) -> bool:
        return thread not in self._threads and thread.name != WATCHER

    async def _settle(self) -> None:
        """Wait until everything is equal, and the program rests."""
        limit = self.time() + SETTLE
        rests_by = math.inf
        while missing := self._difference() or self._unrest():
            self._raise()
            for process in self.living:
                for witness in process.witnesses:
                    witness.hurry()
            if missing.oracle == "quiescence":
                rests_by = min(rests_by, self.time() + _RESTS * self.limits.quiet)
            else:
                rests_by = math.inf
            if self.time() > min(limit, rests_by):
                raise self._explained(missing)
            await asyncio.sleep(5.0)
        self._raise()

    def _explained(self, missing: Divergence) -> Divergence:
        """Return the divergence, with a key that fails, if that may be the reason."""
        failing = self._failing()
        if not failing or missing.oracle == "failing":
            return missing
        text = str(missing).partition(": ")[2]
        return Divergence(missing.oracle, f"{text}; besides, {failing}")

    def _difference(self) -> Divergence | None:
        """Return the first difference from the expected final state."""
        if len(self.living) < len(self._slots):
            return Divergence("equality", "a process does not run")
        for process in self.living:
            for witness in process.witnesses:
                if not witness.informer.has_synced:
                    return Divergence("equality", f"{witness.name} has not synced")
                if found := witness.difference():
                    return Divergence("equality", found)
        if found := self._verdict():
            return Divergence("equality", found)
        if found := stuck_deletion(self.server.cluster.storage):
            return Divergence("deletion", found)
        if found := self._failing():
            return Divergence("failing", found)
        return None

    def _failing(self) -> str:
        return self.failures.lasting({str(process) for process in self.living})

    def _unrest(self) -> Divergence | None:
        """Return what the program still changes, though nothing else does."""
        if not self.limits.quiet:
            return None
        found = self.activity.unrest(self.limits.quiet)
        return Divergence("quiescence", found) if found else None

    def _verdict(self) -> str:
        """Return what the check finds; one that raises has found something, for now."""
        if self._check is None:
            return ""
        try:
            return self._check(self) or ""
        except UsageError:
            raise
        except Exception as exc:  # noqa: BLE001 - the user's check may raise anything
            return f"the check raised {type(exc).__name__}: {exc}".removesuffix(": ")

    def _check_timers(self, before: set[asyncio.TimerHandle]) -> None:
        if left := _timers(asyncio.get_running_loop()) - before:
            self.report(Divergence("leak", f"timers are left: {left}"))

    def _check_budget(self) -> None:
        for requests in self.sent:
            for verb in ("list", "watch", "probe"):
                for stream in {one.stream for one in requests}:
                    times = [
                        one.at
                        for one in requests
                        if one.stream == stream and one.verb == verb and not one.continues
                    ]
                    most = max((sum(at <= t < at + 60 for t in times) for at in times), default=0)
                    if most > BUDGET:
                        text = f"{most} times {verb} of {stream} within a minute: {times}"
                        self.report(Divergence("budget", text))


class _Undoing:
    """Ends something, once: when its time has come, or before."""

    def __init__(
        self, undo: Callable[[], None], pending: dict[_Undoing, asyncio.TimerHandle]
    ) -> None:
        self._undo = undo
        self._pending = pending

    def __call__(self) -> None:
        del self._pending[self]
        self._undo()


def _timers(loop: asyncio.AbstractEventLoop) -> set[asyncio.TimerHandle]:
    """Return what a loop has yet to do at some time."""
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return {timer for timer in scheduled if not timer.cancelled()}


def _log_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log uncaught errors, except for the end of a run that took too long."""
    if not isinstance(context.get("exception"), TimeUp):
        loop.default_exception_handler(context)


async def _run(program: Program, process: Process) -> None:
    PROCESS.set(str(process))
    await program(process)


def _command(schedule: Schedule, program: Program, check: Check | None) -> str:
    """Return the command that runs a schedule again; ``""`` if the program has no name."""
    named = (
        [("--program", program)] if check is None else [("--program", program), ("--check", check)]
    )
    words = ["kinform", "simulate", "--first-seed", str(schedule.seed), "--seeds", "1"]
    for option, function in named:
        module = getattr(function, "__module__", "")
        name = getattr(function, "__qualname__", "<")
        if schedule.name or "<" in name or "." in name:
            return ""
        words += [option, f"{module}:{name}"]
    return shlex.join(words)


def _remove(server: APIServer, fault: object) -> None:
    for one in server.faults:
        if one is fault:
            server.faults.remove(one)


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each

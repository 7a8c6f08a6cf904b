"""The fault plan of a server: its faults, the requests that they hit, and their removal."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar, final

from kinform.apiserver.faults import kinds as fault_kinds
from kinform.apiserver.faults.files import dump
from kinform.apiserver.faults.kinds import Effect, Fault, Match, Subject, Verb
from kinform.errors import UsageError

__all__ = ["FaultPlan", "random_plan"]

R = TypeVar("R")

_LIMIT: Final = 30.0
"""Seconds that a change from another thread may take: much more than it needs."""


@final
class FaultPlan:
    """The faults of one server, at present.

    Can be changed from every thread: while the server runs, `add`, `remove` and `clear` are done
    in its own, and are done when they return.

    Args:
        faults: Those to begin with.
        seed: Of all that is random in them: the same seed, the same faults.
    """

    def __init__(self, faults: Iterable[Fault] = (), *, seed: int = 0) -> None:
        self.random: Final = random.Random(seed)
        self.active: Final[dict[Fault, asyncio.Event]] = {}
        """The faults of the plan, each with the event that its removal sets. Changed here only."""
        self._undo: dict[Fault, list[Callable[[], None]]] = {}
        self._refusals: dict[Fault, asyncio.TimerHandle | None] = {}
        self._is_running = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._doors: list[Callable[[], None]] = []
        self.is_over: Final = asyncio.Event()
        """The server ends: what is silent until then ends with it."""
        for fault in faults:
            self.add(fault)

    def __len__(self) -> int:
        return len(self.active)

    def __iter__(self) -> Iterator[Fault]:
        return iter(tuple(self.active))

    def __repr__(self) -> str:
        return f"FaultPlan({list(self)!r})"

    def __str__(self) -> str:
        return dump(self)

    # --- for tests

    def add(self, fault: Fault) -> Fault:
        """Let a fault happen from now on; return it.

        Raises:
            UsageError: it is in the plan already, or is not a fault.
        """
        _check(fault)
        return self._at_home(lambda: self._add(fault))

    def _add(self, fault: Fault) -> Fault:
        if fault in self.active:
            raise UsageError(f"{fault!r} is in the plan already; make another one")
        self.active[fault] = asyncio.Event()
        if self._is_running:
            self._begin(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """End a fault: requests that it held up continue.

        Raises:
            UsageError: it is not in the plan.
        """
        self._at_home(lambda: self._remove(fault))

    def _remove(self, fault: Fault) -> None:
        if fault not in self.active:
            raise UsageError(f"{fault!r} is not in the plan")
        end = self.active.pop(fault)
        self._admit(fault)
        for undo in self._undo.pop(fault, []):
            undo()
        end.set()

    def clear(self) -> None:
        """Remove all faults."""
        self._at_home(self._clear)

    def _clear(self) -> None:
        for fault in self:
            self._remove(fault)

    def _at_home(self, change: Callable[[], R]) -> R:
        """Make a change in the thread of the server that runs, else here."""
        loop = self._loop
        if loop is None or loop.is_closed() or threading.get_ident() == self._thread:
            return change()
        result: Future[R] = Future()

        def run() -> None:
            try:
                result.set_result(change())
            except BaseException as exc:  # noqa: BLE001 - it is the caller's, in its own thread
                result.set_exception(exc)

        loop.call_soon_threadsafe(run)
        return result.result(_LIMIT)

    # --- for the server

    def start(self) -> None:
        """Begin: what needs no request to happen happens now."""
        self._is_running = True
        with contextlib.suppress(RuntimeError):  # without an event loop there are no other threads
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        for fault in self:
            self._begin(fault)

    def stop(self) -> None:
        """Stop with the server: release everything that waits for a fault to end."""
        self.is_over.set()
        self._loop = None
        self.clear()

    def struck(self, subject: Subject) -> list[Fault]:
        """Count a request; return the faults that hit it, in the order they were added."""
        return [fault for fault in self if not _is_at_once(fault) and fault.strikes(subject)]

    def when_removed(self, fault: Fault, undo: Callable[[], None]) -> None:
        """Call ``undo`` once the fault is removed, at once if it was."""
        if fault in self.active:
            self._undo.setdefault(fault, []).append(undo)
        else:
            undo()

    async def wait_removed(self, fault: Fault, *, within: float | None = None) -> None:
        """Wait until the fault is removed, or for so long."""
        end = self.active.get(fault)
        if end is None:
            return
        try:
            async with asyncio.timeout(within):
                await end.wait()
        except TimeoutError:
            return

    # --- refusing

    @property
    def is_refusing(self) -> bool:
        """New connections are refused."""
        return bool(self._refusals)

    def when_refusing(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` whenever `is_refusing` has changed."""
        self._doors.append(changed)

    def refuse(self, fault: Fault, effect: fault_kinds.Refuse) -> None:
        """Refuse new connections because of a fault."""
        if fault not in self.active or fault in self._refusals:
            return
        timer: asyncio.TimerHandle | None = None
        if effect.duration is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(effect.duration, self._admit, fault)
        was, self._refusals[fault] = self.is_refusing, timer
        if not was:
            self._tell_doors()

    def _begin(self, fault: Fault) -> None:
        if isinstance(fault.effect, fault_kinds.Refuse) and _is_at_once(fault):
            fault.hits += 1
            self.refuse(fault, fault.effect)

    def _admit(self, fault: Fault) -> None:
        if fault not in self._refusals:
            return
        timer = self._refusals.pop(fault)
        if timer is not None:
            timer.cancel()
        if not self._refusals:
            self._tell_doors()

    def _tell_doors(self) -> None:
        for changed in self._doors:
            changed()


def _check(fault: object) -> None:
    if not isinstance(fault, Fault):
        raise UsageError(
            f"{fault!r} is not a fault; make one with faults.close(...) and the like, "
            "or of YAML with faults.load(text)"
        )


def _is_at_once(fault: Fault) -> bool:
    """It waits for no request: there would be none."""
    return isinstance(fault.effect, fault_kinds.Refuse) and fault.match.is_everything


def random_plan(*, seed: int, size: int = 8, resource: str | None = None) -> FaultPlan:
    """Return a plan of ``size`` faults of most kinds, at random: the same seed, the same faults.

    Each happens a few times at most, early among the matching requests, and none lasts forever: a
    client that retries long enough succeeds. Not included are permanent faults (a wrong clock),
    restores, which no client can detect after newer writes, and faults of some servers only: older
    events, bookmarks of the past, and stale caches. ``str(plan)`` is the text of a fault file.

    Args:
        resource: What they are about; None: everything.
    """
    draw = random.Random(seed)
    return FaultPlan([_random_fault(draw, resource) for _ in range(size)], seed=seed)


_VERBS: Final[Sequence[Verb | None]] = ("list", "watch", "watch", "get", None)
_CODES: Final = (400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504)
_EVENT_CODES: Final = (400, 403, 410, 410, 429, 500, 503, 504)


def _random_fault(draw: random.Random, resource: str | None) -> Fault:
    effect = _random_effect(draw)
    reads = isinstance(effect, fault_kinds.Stale)
    match = Match(
        verb=draw.choice(("list", "watch")) if reads else draw.choice(_VERBS),
        resource=resource,
        nth=draw.randint(1, 4),
        times=draw.randint(1, 3),
    )
    return Fault(effect, match)


def _random_effect(draw: random.Random) -> Effect:
    kinds = fault_kinds
    after: dict[str, int] = {}
    match draw.randrange(3):
        case 0:
            after["after_events"] = draw.randint(0, 6)
        case 1:
            after["after_bytes"] = draw.randint(0, 3000)
        case _:
            pass
    seconds = round(draw.uniform(0.1, 20), 1)
    makers: Sequence[Callable[[], Effect]] = (
        lambda: kinds.Refuse(duration=seconds),
        lambda: kinds.Reset(**after),
        lambda: kinds.Close(**after),
        lambda: kinds.HalfOpen(**after),
        lambda: kinds.Stall(duration=seconds),
        lambda: kinds.TruncateFrame(event=draw.randint(1, 6)),
        lambda: kinds.Corrupt(event=draw.randint(1, 6)),
        lambda: kinds.Status(code=draw.choice(_CODES), retry_after=draw.choice((None, None, 1, 5))),
        lambda: kinds.Status(code=draw.choice((502, 503)), text="upstream is gone\n"),
        lambda: kinds.ErrorEvent(code=draw.choice(_EVENT_CODES), after_events=draw.randint(0, 6)),
        lambda: kinds.Drip(size=draw.randint(1, 2000), every=round(draw.uniform(0.01, 0.5), 2)),
        kinds.DuplicateEvents,
        lambda: kinds.NoBookmarks(initial_end=draw.random() < 0.3),
        kinds.NoWatchList,
        kinds.Gzip,
        lambda: kinds.Latency(seconds=seconds, jitter=round(draw.uniform(0, 2), 1)),
        lambda: kinds.Stale(revisions=draw.randint(1, 6)),
        lambda: kinds.Stale(seconds=seconds),
        kinds.Compact,
    )
    return draw.choice(makers)()

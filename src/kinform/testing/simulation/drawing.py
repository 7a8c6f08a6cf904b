"""Schedules at random: the same seed, the same schedule."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kinform.apiserver import faults
from kinform.apiserver.faults.files import dump
from kinform.apiserver.faults.kinds import EFFECTS, Fault, Stale
from kinform.apiserver.faults.plan import random_plan
from kinform.errors import UsageError
from kinform.testing.simulation._schedule import fault_names
from kinform.testing.simulation._schedule.fault_names import ALL, name_of, name_of_fault
from kinform.testing.simulation._schedule.themes import Theme, every_theme, scene_of, theme_of
from kinform.testing.simulation.actions import (
    Action,
    Compact,
    Crash,
    CrashAtWrite,
    Happen,
    JumpWall,
    Lag,
    Meddle,
    Partition,
    Pause,
    Restart,
    Restore,
    Schedule,
    Suspend,
    Verb,
    Write,
    is_of_server,
    kind_of,
)

__all__ = ["NAMESPACES", "QUIET", "calmed", "crashes", "draw"]

Timed: TypeAlias = Callable[[float], Action]
"""Something that happens, at a time that is not known yet."""
Maker: TypeAlias = Callable[[random.Random, int, float], Timed]
"""Draws a fault, for a process, which lasts so long."""

NAMESPACES: Final = ("blue", "green")
"""The namespaces of written objects."""
WRITES: Final = 150
MOST_WRITES: Final = 180
FAULTS: Final = 5
MOST_FAULTS: Final = 10
KINDS: Final = 3
QUIET: Final = 150.0
"""Seconds after a restore without writes: longer than any client waits before it reconnects."""

_NAMES: Final = tuple(f"n{number}" for number in range(9))
_CHANGES: Final[Sequence[Verb]] = ("update", "relabel", "delete", "recreate")
_LASTING: Final = 0.25
"""The share of server faults that affect every request while they last, not one to three."""
_AT_WRITES: Final = (4, 10)
_WRITING: Final[Sequence[faults.Verb]] = ("create", "update", "patch", "delete", "delete")
_DRIPPING: Final[Sequence[faults.Verb | None]] = ("list", None)
_GAPS: Final = (0.0, 0.0, 0.01, 0.2, 0.5, 1.0, 3.0)


def draw(seed: int, *, faults: str | Iterable[str] = "default") -> Schedule:
    """Return the schedule of ``seed``.

    It has at least 150 writes and 2 processes. With ``faults="all"`` it also has at least 5 faults
    of the server, of at least 3 kinds, and 2 restarts: what the server does wrong in every eighth
    schedule is of one theme, in every sixteenth of a rare one. Other choices leave out what was
    not chosen, and put other faults in its place.

    Args:
        seed: The same seed and choice give the same schedule.
        faults: Which may happen: names as in ``kinform simulate --faults``, as a text or a
            collection. ``"default"``: all but restores from a backup and untrue 404s.

    Raises:
        UsageError: a fault does not exist.
    """
    chosen = fault_names.chosen(faults)
    dice = random.Random(f"schedule {seed}")
    processes = dice.choice((2, 2, 2, 3))
    wrong = _faults(dice, processes, theme_of(seed))
    writes = _writes(dice)
    end = writes[-1].at
    timed = [_moved(action, dice.uniform(0, end)) for action in wrong]
    timed += [_moved(action, dice.uniform(0, end)) for action in _restarts(dice, processes)]
    timed += [_moved(action, dice.uniform(0, end)) for action in _meddlings(dice)]
    if (scene := scene_of(seed)) is not None:
        begin = dice.uniform(0, end)
        timed += [_put_off(action, begin) for action in scene(dice)]
    timed += _topping(random.Random(f"topping {seed}"), timed, end)
    if chosen != frozenset(ALL):
        timed = [*_chosen(timed, chosen, seed=seed, processes=processes)]
        at_writes = _at_writes(random.Random(f"writes {seed}"), end)
        timed += [action for action in at_writes if name_of(action) in chosen]
    actions: list[Action] = sorted([*writes, *timed], key=lambda action: action.at)
    return Schedule(seed=seed, processes=processes, actions=tuple(_after_restores(actions)))


def crashes(schedule: Schedule, writes: int) -> Iterator[Schedule]:
    """Yield for each of the first ``writes`` writes of the program schedules that crash it there.

    Once before it learns what became of the write, and once after: the process that makes it,
    whichever that is. Writes of leases and events do not count. Everything else in ``schedule``
    happens as well. Each has a name of its own.
    """
    called = schedule.name.removesuffix(_CALM) or schedule.seed
    for nth in range(1, writes + 1):
        for before in (True, False):
            crash = CrashAtWrite(
                at=0.0, process=-1, nth=nth, before_answer=before, bookkeeping=False
            )
            name = f"{called}-write-{nth}-{'unanswered' if before else 'answered'}"
            yield msgspec.structs.replace(schedule, name=name, actions=(crash, *schedule.actions))


def calmed(schedule: Schedule) -> Schedule:
    """Return what of a schedule others write, under a name of its own."""
    calm = tuple(action for action in schedule.actions if isinstance(action, Write))
    return msgspec.structs.replace(schedule, name=f"{schedule.seed}{_CALM}", actions=calm)


def _moved(make: Timed, at: float) -> Action:
    return make(round(at, 2))


def _put_off(action: Action, seconds: float) -> Action:
    return msgspec.structs.replace(action, at=round(action.at + seconds, 2))


def _writes(dice: random.Random) -> list[Write]:
    """Return writes, each of which makes sense if none of those before it is lost."""
    there: dict[tuple[str, str], int] = {}
    writes: list[Write] = []
    at = 0.0
    slow = dice.choice((1.0, 1.0, 4.0))
    for number in range(dice.randint(WRITES, MOST_WRITES)):
        (namespace,) = dice.choices(NAMESPACES, weights=(2, 1))  # what is mirrored costs more
        name = dice.choice(_NAMES)
        key = (namespace, name)
        verb: Verb = "create"
        if key in there:
            (verb,) = dice.choices(_CHANGES, weights=(5, 2, 3, 2))
        if verb == "delete":
            del there[key]
        else:
            there[key] = number
        writes.append(
            Write(at=round(at, 2), verb=verb, namespace=namespace, name=name, value=number)
        )
        at += slow * dice.choice(_GAPS)
    return writes


def _faults(dice: random.Random, processes: int, theme: Theme | None) -> Sequence[Timed]:
    wanted = dice.randint(FAULTS, MOST_FAULTS)
    while True:
        found = [_fault(dice, processes, theme) for _ in range(wanted)]
        if len({kind_of(make(0.0)) for make in found}) >= KINDS:
            return found


def _fault(dice: random.Random, processes: int, theme: Theme | None) -> Timed:
    lasts = round(dice.choice((1.0, 5.0, 20.0, 60.0)) * dice.uniform(0.5, 1.5), 1)
    process = dice.randrange(processes)
    kind = dice.randrange(16)
    if kind < (8 if theme is None else 10):
        made = _any_fault(dice) if theme is None else theme(dice)
        if isinstance(made, Restore):
            return lambda at: msgspec.structs.replace(made, at=at)
        text = dump([made])
        return lambda at: Happen(at=at, fault=text, lasts=lasts)
    return _BY_NUMBER[kind](dice, process, lasts)


def _compact(dice: random.Random, process: int, lasts: float) -> Timed:
    del dice, process, lasts
    return lambda at: Compact(at=at)


def _lag(dice: random.Random, process: int, lasts: float) -> Timed:
    del process
    seconds = round(dice.uniform(0.5, 20), 1)
    return lambda at: Lag(at=at, seconds=seconds, lasts=lasts)


def _pause(dice: random.Random, process: int, lasts: float) -> Timed:
    del dice, process
    return lambda at: Pause(at=at, lasts=lasts)


def _partition(dice: random.Random, process: int, lasts: float) -> Timed:
    silent = dice.random() < 0.5
    return lambda at: Partition(at=at, process=process, silent=silent, lasts=lasts)


def _suspend(dice: random.Random, process: int, lasts: float) -> Timed:
    del process, lasts
    seconds = round(dice.choice((1.0, 30.0, 3600.0)), 1)
    return lambda at: Suspend(at=at, seconds=seconds)


def _jump_wall(dice: random.Random, process: int, lasts: float) -> Timed:
    del process, lasts
    seconds = dice.choice((-3600.0, -30.0, 30.0, 86_400.0))
    return lambda at: JumpWall(at=at, seconds=seconds)


def _crash_at_write(dice: random.Random, process: int, lasts: float) -> Timed:
    del lasts
    nth, before = dice.randint(1, 8), dice.random() < 0.5
    return lambda at: CrashAtWrite(at=at, process=process, nth=nth, before_answer=before)


def _restore(dice: random.Random, process: int, lasts: float) -> Timed:
    del process, lasts
    by = dice.randint(1, 25)
    return lambda at: Restore(at=at, by=by)


_BY_NUMBER: Final[Mapping[int, Maker]] = {
    8: _compact,
    9: _lag,
    10: _pause,
    11: _partition,
    12: _suspend,
    13: _jump_wall,
    14: _crash_at_write,
    15: _restore,
}
"""The faults that are not in the server's plan, by the number that is drawn."""


# --- chosen faults


def _chosen(
    timed: Sequence[Action], chosen: frozenset[str], *, seed: int, processes: int
) -> Sequence[Action]:
    """Return the faults that were chosen; in place of each other one, another that was.

    In place of what the server does wrong, if there is anything chosen that is of the server.
    """
    dice = random.Random(f"chosen {seed}")
    names = sorted(chosen - _RESTARTS)
    of_server = [name for name in names if name in EFFECTS or name in _OF_SERVER]
    found: list[Action] = []
    for action in timed:
        name = name_of(action)
        if name in chosen:
            found.append(action)
        elif (instead := of_server or names) and name not in _RESTARTS:
            found.append(_named(dice, dice.choice(instead), processes)(action.at))
    return found


def _at_writes(dice: random.Random, end: float) -> Sequence[Action]:
    """Return faults that hit a program while it writes: a write is done, and it never learns that.

    Its connection breaks before the answer, or it ends there. What controllers do wrong is wrong
    mostly then.
    """
    found: list[Action] = []
    for _ in range(dice.randint(*_AT_WRITES)):
        at = round(dice.uniform(0, end), 2)
        nth, verb = dice.randint(1, 6), dice.choice(_WRITING)
        if dice.random() < 0.5:
            lost = dice.choice((faults.reset, faults.close))(
                after_bytes=0, verb=verb, nth=nth, times=dice.randint(1, 2)
            )
            found.append(Happen(at=at, fault=dump([lost]), lasts=round(dice.uniform(20, 90), 1)))
        else:
            before = dice.random() < 0.5
            found.append(
                CrashAtWrite(at=at, process=-1, nth=nth, before_answer=before, bookkeeping=False)
            )
    return found


def _named(dice: random.Random, name: str, processes: int) -> Timed:
    """Return a fault of that name."""
    lasts = round(dice.choice((1.0, 5.0, 20.0, 60.0)) * dice.uniform(0.5, 1.5), 1)
    process = dice.randrange(processes)
    if (maker := _BY_NAME.get(name)) is not None:
        return maker(dice, process, lasts)
    sources: Sequence[Theme] = (_any_fault, _clock, *every_theme())
    for _ in range(_TRIES):
        made = dice.choice(sources)(dice)
        if isinstance(made, Fault) and name_of_fault(made) == name:
            return functools.partial(_put_off, Happen(at=0.0, fault=dump([made]), lasts=lasts))
    raise UsageError(f"no schedule has the fault {name!r}: no theme draws it")


def _clock(dice: random.Random) -> Fault:
    return faults.clock_offset(dice.choice((-86_400.0, -30.0, 30.0, 86_400.0)))


def _restart_of(dice: random.Random, process: int, lasts: float) -> Timed:
    del dice, lasts
    return lambda at: Restart(at=at, process=process)


def _crash_of(dice: random.Random, process: int, lasts: float) -> Timed:
    del lasts
    after = round(dice.uniform(0.0, 20.0), 1)
    return lambda at: Crash(at=at, process=process, after=after)


_BY_NAME: Final[Mapping[str, Maker]] = {
    "compact": _compact,
    "lag": _lag,
    "pause": _pause,
    "partition": _partition,
    "suspend": _suspend,
    "jump_wall": _jump_wall,
    "crash_at_write": _crash_at_write,
    "restore": _restore,
    "restart": _restart_of,
    "crash": _crash_of,
}
"""Faults that are not of the server's plan."""
_RESTARTS: Final = frozenset({"restart", "meddle"})
"""Never drawn in place of something else."""
_OF_SERVER: Final = frozenset({"compact", "restore", "lag", "not_found"})
_TRIES: Final = 20_000
_CALM: Final = "-calm"


def _any_fault(dice: random.Random) -> Fault:
    (fault,) = random_plan(seed=dice.getrandbits(32), size=1)
    if dice.random() < _LASTING:
        return Fault(fault.effect, msgspec.structs.replace(fault.match, times=None))
    return fault


def _topping(dice: random.Random, there: Sequence[Action], end: float) -> Sequence[Action]:
    """Return more faults of the server, if ``there`` has too few or too few kinds of them.

    It has its own dice, so that no other schedule changes. No lag is among them: with a lag the
    oracles can require less of a cache.
    """
    kinds = [kind_of(action) for action in there if is_of_server(action)]
    added: list[Action] = []
    while len(kinds) < FAULTS or len(set(kinds)) < KINDS:
        action = _besides(dice, round(dice.uniform(0, end), 2))
        if len(kinds) < FAULTS or kind_of(action) not in kinds:
            added.append(action)
            kinds.append(kind_of(action))
    return added


def _besides(dice: random.Random, at: float) -> Action:
    lasts = round(dice.uniform(5, 60), 1)
    match dice.randrange(8):
        case 0:
            return Compact(at=at)
        case 1:
            fault = faults.clock_offset(dice.choice((-86_400.0, -30.0, 30.0, 86_400.0)))
        case 2 | 3:  # so slow that only a limit on the whole time notices
            size, verb = dice.randint(1, 50), dice.choice(_DRIPPING)
            fault = faults.drip(size=size, every=20.0, verb=verb, times=2)
        case _:
            fault = _any_fault(dice)
            while isinstance(fault.effect, Stale):
                fault = _any_fault(dice)
    return Happen(at=at, fault=dump([fault]), lasts=lasts)


def _meddlings(dice: random.Random) -> Sequence[Timed]:
    return [_meddling(dice) for _ in range(dice.randint(0, 6))]


def _meddling(dice: random.Random) -> Timed:
    namespace, name, deletes = NAMESPACES[-1], dice.choice(_NAMES), dice.random() < 0.5
    return lambda at: Meddle(at=at, namespace=namespace, name=name, deletes=deletes)


def _restarts(dice: random.Random, processes: int) -> Sequence[Timed]:
    return [_restart(dice, dice.randrange(processes)) for _ in range(dice.randint(2, 4))]


def _restart(dice: random.Random, process: int) -> Timed:
    if dice.random() < 0.5:
        return lambda at: Restart(at=at, process=process)
    after = round(dice.uniform(0.0, 20.0), 1)
    return lambda at: Crash(at=at, process=process, after=after)


def _after_restores(actions: Sequence[Action]) -> Sequence[Action]:
    """Delay the actions after a restore until all clients can have noticed it."""
    put_off = 0.0
    moved: list[Action] = []
    for action in actions:
        moved.append(_put_off(action, put_off))
        if isinstance(action, Restore):
            put_off += QUIET
    return moved

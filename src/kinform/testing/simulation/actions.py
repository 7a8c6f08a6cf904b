"""Schedules: writes, faults and restarts, each with its time. Pure data.

A schedule contains all input of a simulation: run again, it gives the same result. In a file it
is JSON, one action per line, so that it can be read and edited by hand.
"""

from __future__ import annotations

import functools
from typing import Final, Literal, TypeAlias, final

import msgspec

from kinform.apiserver import faults
from kinform.apiserver.faults.kinds import Fault
from kinform.errors import UsageError

__all__ = [
    "Action",
    "Compact",
    "Crash",
    "CrashAtWrite",
    "Happen",
    "JumpWall",
    "Lag",
    "Meddle",
    "Partition",
    "Pause",
    "Remain",
    "Restart",
    "Restore",
    "Schedule",
    "Suspend",
    "Unserve",
    "Verb",
    "Write",
    "is_fault",
    "is_of_server",
    "kind_of",
]


Verb: TypeAlias = Literal["create", "update", "relabel", "delete", "recreate"]
"""The kinds of writes to an object."""


class _Timed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    at: float
    """Virtual seconds after the start."""


@final
class Write(_Timed, tag="write", frozen=True, kw_only=True):
    """Another client writes one object; no fault affects this write."""

    verb: Verb
    namespace: str
    name: str
    value: int = 0


@final
class Meddle(_Timed, tag="meddle", frozen=True, kw_only=True):
    """Another client changes or deletes the Secret of that name; no fault affects this write."""

    namespace: str
    name: str
    deletes: bool = False


@final
class Happen(_Timed, tag="happen", frozen=True, kw_only=True):
    """A fault of the server's plan, in the words of a fault file, for ``lasts`` seconds."""

    fault: str
    lasts: float = 60.0

    def made(self) -> Fault:
        """Return the fault, with counts of its own."""
        (found,) = faults.load(self.fault, source="the schedule")
        return found


@final
class Remain(_Timed, tag="remain", frozen=True, kw_only=True):
    """A fault in the words of a fault file that stays to the end: caches have to cope with it.

    For example a gateway that breaks watches, while lists work.
    """

    fault: str

    def made(self) -> Fault:
        """Return the fault, with counts of its own."""
        (found,) = faults.load(self.fault, source="the schedule")
        return found


@final
class Unserve(_Timed, tag="unserve", frozen=True, kw_only=True):
    """The API version of the written objects is not served; another version is.

    The objects stay as they are. Nothing happens to a custom kind.
    """

    lasts: float = 120.0


@final
class Compact(_Timed, tag="compact", frozen=True, kw_only=True):
    """The server forgets its past."""


@final
class Restore(_Timed, tag="restore", frozen=True, kw_only=True):
    """The server is again as before the last ``by`` writes of this schedule, as from a backup.

    All faults end and all connections break, as when a control plane is set up anew. Nothing is
    written for some minutes then: once as many writes were made again as were lost, no client could
    tell.

    ``redo``: so many of the lost updates are made again at once, with other values and the same
    versions, as by controllers that find their work undone. Only where every client has seen more
    than that: to others nothing would seem to have happened.
    """

    by: int
    redo: int = 0


@final
class Lag(_Timed, tag="lag", frozen=True, kw_only=True):
    """Reads show what was ``seconds`` ago, as of a replica that is behind."""

    seconds: float
    lasts: float = 60.0


@final
class Pause(_Timed, tag="pause", frozen=True, kw_only=True):
    """The server says nothing for a while."""

    lasts: float = 10.0


@final
class Partition(_Timed, tag="partition", frozen=True, kw_only=True):
    """One process is cut off: refused at once, or answered by silence."""

    process: int
    silent: bool = False
    lasts: float = 20.0


@final
class Restart(_Timed, tag="restart", frozen=True, kw_only=True):
    """One process is stopped cleanly and started again."""

    process: int


@final
class Crash(_Timed, tag="crash", frozen=True, kw_only=True):
    """One process is killed and started again."""

    process: int
    after: float = 1.0
    """Seconds until it is there again."""


@final
class CrashAtWrite(_Timed, tag="crash_at_write", frozen=True, kw_only=True):
    """One process ends right after the ``nth`` write that it makes from now on was done.

    ``process`` -1: whichever makes the ``nth`` of all processes' writes.
    """

    process: int
    nth: int = 1
    before_answer: bool = True
    """True: it ends before it gets the response to the write."""
    bookkeeping: bool = True
    """True: writes of leases and events count too."""


@final
class Suspend(_Timed, tag="suspend", frozen=True, kw_only=True):
    """The machine sleeps: clocks go on, timers do not."""

    seconds: float


@final
class JumpWall(_Timed, tag="jump_wall", frozen=True, kw_only=True):
    """Sets the wall clock."""

    seconds: float


Action: TypeAlias = (
    Write
    | Meddle
    | Happen
    | Remain
    | Unserve
    | Compact
    | Restore
    | Lag
    | Pause
    | Partition
    | Restart
    | Crash
    | CrashAtWrite
    | Suspend
    | JumpWall
)

_RESTARTS: Final = (Restart, Crash, CrashAtWrite)


def is_fault(action: Action) -> bool:
    """Return whether it is neither a write nor a restart."""
    return not isinstance(action, Write | Meddle | Restart)


def is_of_server(action: Action) -> bool:
    """Return whether it is a fault of the server's fault plan: of the server, or of a proxy."""
    return isinstance(action, Happen | Remain | Unserve | Compact | Restore | Lag)


def kind_of(action: Action) -> str:
    """Return what sort of thing happens: of two faults of one sort only one counts as a kind."""
    if isinstance(action, Happen | Remain):
        return _name_of(action.fault)
    return str(type(action).__struct_config__.tag)


@functools.lru_cache(maxsize=1024)
def _name_of(fault: str) -> str:
    return Happen(at=0.0, fault=fault).made().name


@final
class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One run: how many processes, with which dice, and all that happens to them."""

    seed: int
    name: str = ""
    """The name of the schedule, if it was not drawn from its seed."""
    processes: int = 2
    actions: tuple[Action, ...] = ()
    """In the order of their times."""

    def dump(self) -> str:
        """Return the text that `load` reads."""
        lines = [msgspec.json.encode(action).decode() for action in self.actions]
        name = f'"name":{msgspec.json.encode(self.name).decode()},' if self.name else ""
        head = f'{{"seed":{self.seed},{name}"processes":{self.processes},"actions":[\n'
        return head + ",\n".join(lines) + "\n]}\n"

    @classmethod
    def load(cls, text: str | bytes, *, source: str = "schedule") -> Schedule:
        """Read a schedule.

        Raises:
            UsageError: it is malformed; says where.
        """
        try:
            found = msgspec.json.decode(text, type=cls)
            for action in found.actions:
                if isinstance(action, Happen | Remain):
                    action.made()
        except (msgspec.DecodeError, UsageError, ValueError) as exc:
            raise UsageError(f"{source}: not a schedule: {exc}") from exc
        ordered = tuple(sorted(found.actions, key=lambda action: action.at))
        return msgspec.structs.replace(found, actions=ordered)

    def without(self, dropped: frozenset[int]) -> Schedule:
        """Return the schedule less the actions at these places."""
        kept = tuple(one for place, one in enumerate(self.actions) if place not in dropped)
        return msgspec.structs.replace(self, actions=kept)

    def summary(self) -> str:
        """Return in one line how much of what there is."""
        writes = sum(isinstance(action, Write) for action in self.actions)
        restarts = sum(isinstance(action, _RESTARTS) for action in self.actions)
        kinds = sorted({kind_of(action) for action in self.actions if is_fault(action)})
        return (
            f"{writes} writes, {restarts} restarts of {self.processes} processes, "
            f"faults: {', '.join(kinds) or 'none'}"
        )

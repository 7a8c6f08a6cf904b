"""The Python half of the protocol that all peers speak: JSON lines in, JSON lines out.

A module makes a `Peer` of its client and gives it to `main`. The driver owns the process: one event
loop in the main thread, and a thread that is blocked in reading commands, so that waiting for one
costs nothing. Clients that need threads of their own have them; what they tell is counted without
locks (`bench.peers.goals`).

One command is done before the next is read. The process ends with ``quit``, or when its standard
input is closed because its parent has ended. It then exits at once, without freeing its cache.
"""

from __future__ import annotations

import abc
import argparse
import asyncio
import ctypes
import gc
import json
import logging
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, ClassVar, Final, TypeAlias, final

from bench.peers import goals, lookups
from bench.peers.journal import Journal

__all__ = ["SENT", "Kept", "Options", "Peer", "Unsupported", "main"]

SENT: Final = "bench.example.com/sent"
"""The annotation with the Unix time in nanoseconds at which an event was sent."""

Command: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, object]
Kept: TypeAlias = tuple[str | None, str | None, str]
"""The identity of an object's state: its resourceVersion, its uid and its annotation `SENT`."""


class Unsupported(Exception):
    """The client has nothing for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of a peer."""

    url: str | None
    kubeconfig: str | None
    form: str
    lists: str
    """The form of lists: ``whole``, ``pages`` or ``stream``."""
    fields: bool
    """True if the handler reads fields of each object."""
    namespaces: int
    """So many watches, one for each namespace; 0: one for all pods."""
    loop: str
    timeout: float
    gc: str = "usual"
    """``frozen``: no garbage is looked for during the first sync, nor in what it has left."""
    journal: bool = False
    """True if every notification is recorded."""
    restart: float | None = None
    """Seconds after which the loop is started again if an exception of the client ended it; None:
    the process ends. Clients with a cache of their own need no such loop."""
    compression: bool = False
    """True if the client requests compression by its own default; otherwise it is disabled."""

    @property
    def scopes(self) -> Sequence[str]:
        """The namespaces to watch; ``""`` is all of them."""
        return [f"bench-{number}" for number in range(self.namespaces)] or [""]


class Peer(abc.ABC):
    """A client with a cache of pods, an index by node and a handler that calls ``tell``.

    All methods are called on the event loop. ``tell`` is changed by the driver between events:
    look it up each time. It may be called from any thread.
    """

    packages: ClassVar[Sequence[str]]
    """The distributions whose versions matter."""
    forms: ClassVar[Sequence[str]] = ("typed",)
    """The values of ``--form``; the first is the default."""

    has_annotations: bool = True
    """True if kept objects contain managedFields."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tell: goals.Tell = goals.quiet
        self.journal: Journal | None = Journal() if options.journal else None
        self.restarts = 0

    # --- what every client has

    @abc.abstractmethod
    async def configure(self) -> None:
        """Import and set up everything; nothing is sent yet."""

    @abc.abstractmethod
    async def start(self, group: asyncio.TaskGroup) -> None:
        """Begin to fill the cache. What runs from then on belongs to the group, if it can."""

    @abc.abstractmethod
    def count(self) -> int:
        """Return how many objects are in the cache."""

    @abc.abstractmethod
    def look(self, pod: Any) -> object:
        """Read the node's name, the phase and all labels."""

    @abc.abstractmethod
    def sent(self, pod: Any) -> str:
        """Read the annotation `SENT`."""

    @abc.abstractmethod
    def lookups(self) -> lookups.Lookups:
        """Return the ways to read the cache."""

    @abc.abstractmethod
    def relisted(self) -> Awaitable[object]:
        """Return what waits until each watch has listed again, from this call on."""

    def content(self) -> Mapping[str, Kept]:
        """Return what is in the cache, by ``namespace/name``."""
        raise Unsupported

    # --- what some have

    async def stop(self, tasks: Sequence[asyncio.Task[object]]) -> None:
        """End the client as its users do; ``tasks`` are those that `start` has begun."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> None:  # noqa: B027 - most have nothing to wait for
        """Wait until the cache is in the form in which it is to stay."""

    async def join(self) -> int:
        """Add a second handler; return the number of objects that it received."""
        raise Unsupported

    async def queue(self, items: int) -> Callable[[], Coroutine[Any, Any, None]]:  # noqa: ARG002
        """Return what takes so many distinct keys through a new work queue."""
        raise Unsupported

    def controller(self, done: goals.Goal) -> None:  # noqa: ARG002
        """Pass every later object through a work queue, to a worker that counts it."""
        raise Unsupported


# --- the process ------------------------------------------------------------------------------


def main(peer: type[Peer], arguments: Sequence[str] | None = None) -> None:
    """Run a peer until ``quit``. Never returns."""
    logging.basicConfig(level=logging.WARNING)
    options = _options(peer, arguments)
    status = 1
    try:
        with asyncio.Runner(loop_factory=_loop_factory(options.loop)) as runner:
            runner.run(_Driver(peer(options)).run())
        status = 0
    except BaseException:  # noqa: BLE001 - it is printed, and ends the process
        traceback.print_exc()
    finally:
        _end(status)


def _end(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _options(peer: type[Peer], arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser()
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--url", help="where the API server listens, with plain HTTP")
    place.add_argument("--kubeconfig", metavar="FILE")
    parser.add_argument("--form", choices=peer.forms, default=peer.forms[0])
    parser.add_argument("--lists", choices=("whole", "pages", "stream"), default="whole")
    parser.add_argument("--fields", action="store_true", help="the handler looks at every object")
    parser.add_argument("--namespaces", type=int, default=0, metavar="K")
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--gc", choices=("usual", "frozen"), default="usual")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each command")
    parser.add_argument("--journal", action="store_true", help="record every notification")
    parser.add_argument("--restart", type=float, metavar="SECONDS", help="a loop that failed")
    parser.add_argument("--compression", action="store_true", help="as the client has it")
    return Options(**vars(parser.parse_args(arguments)))


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    import uvloop

    return uvloop.new_event_loop


def _read_commands(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[bytes]) -> None:
    """Pass on line after line; end the process when there will be no more."""
    rest = b""
    while piece := os.read(0, 65536):  # not sys.stdin, whose lock would be in the way of the end
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            loop.call_soon_threadsafe(queue.put_nowait, line)
    _end(0)


def _give_back() -> None:
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


# --- the commands -----------------------------------------------------------------------------


@final
class _Driver:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._timeout = peer.options.timeout
        self._look = peer.look if peer.options.fields else None
        self._commands: dict[str, Callable[[Command], Coroutine[Any, Any, Answer]]] = {
            "expect": self._expect,
            "latency": self._latency,
            "lookup": self._lookup,
            "join": self._join,
            "rest": self._come_to_rest,
            "release": self._release,
            "relisted": self._relisted,
            "queue": self._queue,
            "controller": self._controller,
            "content": self._content,
            "stop": self._stop,
        }
        self._tasks: Sequence[asyncio.Task[object]] = ()

    async def run(self) -> None:
        """Answer commands until ``quit``."""
        await self._peer.configure()
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        arguments = (asyncio.get_running_loop(), lines)
        threading.Thread(target=_read_commands, args=arguments, daemon=True).start()
        versions = {name: metadata.version(name) for name in self._peer.packages}
        _answer({"ready": True, "versions": {**versions, "python": platform.python_version()}})
        async with asyncio.TaskGroup() as group:
            while (command := json.loads(await lines.get()))["do"] != "quit":
                _answer(await self._obey(command, group))
            _end(0)

    async def _obey(self, command: Command, group: asyncio.TaskGroup) -> Answer:
        what = command["do"]
        if what == "start":
            return await self._start(command["objects"], group)
        if what not in self._commands:
            return {"unsupported": True}
        try:
            return await self._commands[what](command)
        except Unsupported:
            return {"unsupported": True}

    async def _start(self, objects: int, group: asyncio.TaskGroup) -> Answer:
        goal = goals.Goal(objects, what="objects delivered at first")
        self._peer.tell = goals.telling(goal, self._look)
        before = asyncio.all_tasks()
        if self._peer.options.gc == "frozen":
            gc.disable()
        await self._peer.start(group)
        self._tasks = [task for task in asyncio.all_tasks() if task not in before]
        await goal.wait(self._timeout)
        if self._peer.options.gc == "frozen":
            gc.freeze()
            gc.enable()
        self._rest()
        kept = self._peer.count()
        if kept != objects:
            raise RuntimeError(f"{objects} objects were delivered, and {kept} are in the cache")
        return {"synced": True, "objects": kept, "delivered": objects}

    async def _expect(self, command: Command) -> Answer:
        goal = goals.Goal(command["events"], what="events delivered")
        self._peer.tell = goals.telling(goal, self._look)
        _answer({"expecting": goal.steps})
        await goal.wait(self._timeout)
        self._rest()
        return {"delivered": goal.steps}

    async def _latency(self, command: Command) -> Answer:
        if not self._peer.has_annotations:
            raise Unsupported
        took: list[int] = []
        goal = goals.Goal(command["events"], what="events delivered")
        self._peer.tell = goals.latencies(goal, self._peer.sent, took)
        _answer({"expecting": goal.steps})
        await goal.wait(self._timeout)
        self._rest()
        took = sorted(took[: goal.steps])
        shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
        ranks = {name: goals.percentile(took, share) for name, share in shares.items()}
        return {"delivered": goal.steps, **ranks}

    async def _lookup(self, command: Command) -> Answer:
        return dict(lookups.measure(self._peer.lookups(), command["rounds"]))

    async def _join(self, _: Command) -> Answer:
        began = time.perf_counter_ns()
        delivered = await self._peer.join()
        return {"joined_ms": (time.perf_counter_ns() - began) / 1e6, "delivered": delivered}

    async def _come_to_rest(self, _: Command) -> Answer:
        async with asyncio.timeout(self._timeout):
            await self._peer.settle()
        return {"rested": True}

    async def _release(self, _: Command) -> Answer:
        _give_back()
        return {"released": True}

    async def _relisted(self, _: Command) -> Answer:
        listed = self._peer.relisted()
        _answer({"expecting": "relist"})
        async with asyncio.timeout(self._timeout):
            await listed
        self._rest()
        return {"relisted": True, "objects": self._peer.count()}

    async def _queue(self, command: Command) -> Answer:
        work = await self._peer.queue(command["items"])
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        await work()
        cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        return {"items": command["items"], "wall_ns": wall, "cpu_ns": cpu}

    async def _controller(self, command: Command) -> Answer:
        goal = goals.Goal(command["items"], what="keys worked on")
        self._peer.controller(goal)
        _answer({"expecting": goal.steps})
        await goal.wait(self._timeout)
        self._rest()
        return {"done": goal.steps}

    async def _content(self, command: Command) -> Answer:
        peer, journal = self._peer, self._peer.journal
        wanted = journal is not None and command.get("delivered")
        entries = journal.entries if journal is not None and wanted else None
        return {"content": dict(peer.content()), "delivered": entries, "restarts": peer.restarts}

    async def _stop(self, _: Command) -> Answer:
        began = time.perf_counter_ns()
        await self._peer.stop(self._tasks)
        return {"stopped_ms": (time.perf_counter_ns() - began) / 1e6}

    def _rest(self) -> None:
        self._peer.tell = self._look or goals.quiet


def _answer(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()

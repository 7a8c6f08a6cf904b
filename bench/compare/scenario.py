"""One life of one peer, measured from outside.

Start-up → first sync → settled memory → a blast of updates → settled memory → updates at 1,000 a
second → lookups → a late handler → a relist in which nothing changed → nothing at all → the end.
A `Job` says which of these steps there are.

CPU time is that of the whole process, all threads, from before a command was sent to after its
answer was read. *Settled* means that the process has become idle, including background work
after the answer, and has then released free memory; the CPU time of that is kept as
a figure of its own. Figures are nanoseconds (``_ns``), bytes, counts, or named otherwise.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

from bench.compare.plan import Job
from bench.compare.processes import Answer, Child, ChildError

__all__ = ["Figures", "Life", "Server", "Target", "ignore"]

Figures: TypeAlias = dict[str, float]
Tell: TypeAlias = Callable[[str], None]

PER_SECOND: Final = 1_000
_READY_TIMEOUT: Final = 120.0
_SHORT: Final = 60.0
_IDLE_SHARE: Final = 0.02
_IDLE_WINDOW: Final = 0.5
_LOOKUPS: Final = 1_000


def ignore(text: str) -> None:
    """Show nothing."""
    del text


@final
class Server:
    """The replay server, in a process of its own; use it with ``with``."""

    def __init__(self, command: Sequence[str], *, folder: Path) -> None:
        self._child: Final = Child("the replay server", command, folder=folder)
        try:
            ready = self._child.answer("port", timeout=_READY_TIMEOUT, what="start")
        except BaseException:
            self._child.close()
            raise
        self.url: Final = f"http://127.0.0.1:{ready['port']}"
        self.usage: Final = self._child.usage

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._child.close()

    def serve(self, job: Job) -> None:
        """Show so many objects from now on, in their first state."""
        request = {"lists": job.lists, "namespaces": job.namespaces}
        self._ask(
            "serve", "serving", timeout=_patience(job, "start"), objects=job.objects, **request
        )

    def prepare(self, events: int) -> None:
        """Build so many updates, to be sent by `begin_blast`."""
        self._ask("prepare", "prepared", timeout=_SHORT + events / 500, events=events)

    def begin_blast(self) -> None:
        """Send all that is prepared, as fast as it is taken; `sent` tells the end of it."""
        self._child.send({"do": "blast", "watchers": 1})

    def begin_pace(self, events: int) -> None:
        """Send so many updates one by one, at 1,000 a second; `sent` tells the end of it."""
        request = {"do": "pace", "events": events, "per_second": PER_SECOND, "watchers": 1}
        self._child.send(request)

    def sent(self, timeout: float) -> Answer:
        """Wait until what was begun is sent."""
        return self._child.answer("sent", timeout=timeout, what="send events")

    def expire(self) -> None:
        """End all watches so that clients list again."""
        self._ask("expire", "expired", timeout=_SHORT)

    def _ask(self, do: str, key: str, *, timeout: float, **rest: object) -> Answer:
        return self._child.ask({"do": do, **rest}, timeout=timeout, key=key)


Target: TypeAlias = Server | Path
"""The target of a peer: the replay server, or the kubeconfig of another server."""


@final
class Life:
    """A peer's life from its start to its end.

    ``figures`` fill up as it goes; after a failure they are what there is. Steps that the peer
    does not support leave no figures.
    """

    def __init__(self, job: Job, target: Target, *, folder: Path, tell: Tell = ignore) -> None:
        self.job: Final = job
        self.figures: Final[Figures] = {}
        self.versions: Mapping[str, str] = {}
        self.step = "start"
        self._target: Final = target
        self._folder: Final = folder
        self._tell: Final = tell
        self._steps: Final[Mapping[str, Callable[[Child], None]]] = {
            "sync": self._sync,
            "events": self._events,
            "latency": self._latency,
            "lookup": self._lookup,
            "join": self._join,
            "relist": self._relist,
            "idle": self._idle,
            "queue": self._queue,
            "controller": self._controller,
        }

    def live(self) -> None:
        """Go through all steps.

        Raises:
            ChildError: The peer or the server failed in ``step``.
        """
        self._tell(self.step)
        if isinstance(self._target, Server):
            self._target.serve(self.job)
        began = time.monotonic_ns()
        with Child(self.job.peer.label, self._command(), folder=self._folder) as child:
            ready = child.answer("ready", timeout=_READY_TIMEOUT, what="start")
            self.figures.update(
                {
                    "ready_wall_ns": time.monotonic_ns() - began,
                    "ready_cpu_ns": child.usage.cpu_ns(),
                    "ready_resident": child.usage.resident(),
                }
            )
            versions = ready.get("versions")
            self.versions = versions if isinstance(versions, dict) else {}
            for step in self.job.steps:
                self.step = step
                self._tell(step)
                self._steps[step](child)
            self.step = "quit"
            if code := child.quit():
                raise ChildError(f"{child.name} quit with exit code {code}")

    def _command(self) -> list[str]:
        command = [*self.job.peer.command, "--lists", self.job.lists]
        if isinstance(self._target, Server):
            command += ["--url", self._target.url]
        else:
            command += ["--kubeconfig", str(self._target)]
        if self.job.fields:
            command += ["--fields"]
        if self.job.namespaces:
            command += ["--namespaces", str(self.job.namespaces)]
        return command

    # --- the steps

    def _sync(self, child: Child) -> None:
        request = {"do": "start", "objects": self.job.objects}
        with self._measured(child, "sync"):
            answer = child.ask(request, timeout=self._patience("sync"), key="synced")
        if answer.get("objects") != self.job.objects:
            raise ChildError(f"{child.name} has {answer.get('objects')} of {self.job.objects}")
        self._settle(child, "sync")

    def _events(self, child: Child) -> None:
        self._server.prepare(self.job.events)
        if not self._begin(child, "expect", events=self.job.events):
            return
        served = self._server.usage.cpu_ns()
        with self._measured(child, "events"):
            self._server.begin_blast()
            self._delivered(child, "delivered")
        self._server.sent(_SHORT)
        self.figures["events"] = self.job.events
        self.figures["events_server_cpu_ns"] = self._server.usage.cpu_ns() - served
        self._settle(child, "events")

    def _latency(self, child: Child) -> None:
        if not self._begin(child, "latency", events=self.job.paced):
            return
        with self._measured(child, "latency"):
            self._server.begin_pace(self.job.paced)
            answer = self._delivered(child, "delivered")
        self._server.sent(_SHORT)
        self.figures["latency_events"] = self.job.paced
        self._keep(answer, "latency", names=("p50", "p99", "p999", "max"))

    def _lookup(self, child: Child) -> None:
        rounds = min(_LOOKUPS, self.job.objects)
        request = {"do": "lookup", "rounds": rounds}
        self._keep(child.ask(request, timeout=5 * _SHORT, key="key_ns"), "lookup")

    def _join(self, child: Child) -> None:
        with self._measured(child, "join"):
            answer = child.ask({"do": "join"}, timeout=self._patience("join"), key="joined_ms")
        self._keep(answer, "join")

    def _relist(self, child: Child) -> None:
        self._settle(child, "before_relist")
        if not self._begin(child, "relisted"):
            return
        with self._measured(child, "relist"):
            self._server.expire()
            child.answer("relisted", timeout=self._patience("relist"), what="list again")
        self._settle(child, "relist")

    def _idle(self, child: Child) -> None:
        self._settle(child, "before_idle")
        with self._measured(child, "idle"):
            time.sleep(self.job.idle)  # this is what is measured

    def _queue(self, child: Child) -> None:
        request = {"do": "queue", "items": self.job.items}
        self._keep(child.ask(request, timeout=5 * _SHORT, key="wall_ns"), "queue")

    def _controller(self, child: Child) -> None:
        self._server.prepare(self.job.events)
        if not self._begin(child, "controller", items=self.job.events):
            return
        with self._measured(child, "controller"):
            self._server.begin_blast()
            self._delivered(child, "done")
        self._server.sent(_SHORT)
        self.figures["controller_events"] = self.job.events

    # --- what they are made of

    @property
    def _server(self) -> Server:
        if not isinstance(self._target, Server):
            raise ChildError(f"{self.step!r} needs the replay server")
        return self._target

    @contextlib.contextmanager
    def _measured(self, child: Child, name: str) -> Generator[None]:
        child.usage.reset_peak()
        cpu, wall = child.usage.cpu_ns(), time.monotonic_ns()
        yield
        wall = time.monotonic_ns() - wall
        self.figures.update(
            {
                f"{name}_wall_ns": wall,
                f"{name}_cpu_ns": child.usage.cpu_ns() - cpu,
                f"{name}_peak": child.usage.peak(),
            }
        )

    def _settle(self, child: Child, name: str) -> None:
        """Wait until the process is idle; then have it give back what it does not need.

        ``…_alone`` is its memory before that request, ``…_resident`` after it.
        """
        began = child.usage.cpu_ns()
        self._wait_idle(child)
        rested = child.ask({"do": "rest"}, timeout=self._patience("sync"), key="rested")
        if "rested" in rested:  # else it has nothing to do in the background
            self._wait_idle(child)
        self.figures[f"{name}_settle_cpu_ns"] = child.usage.cpu_ns() - began
        peak = f"{name}_peak"
        if peak in self.figures:  # what is done in the background belongs to it
            self.figures[peak] = max(self.figures[peak], child.usage.peak())
        self.figures[f"{name}_alone"] = child.usage.resident()
        child.ask({"do": "release"}, timeout=2 * _SHORT, key="released")
        self.figures[f"{name}_resident"] = child.usage.resident()

    def _wait_idle(self, child: Child) -> None:
        # Nothing reports the end of background work, so the CPU clock is polled until it stops.
        deadline = time.monotonic() + self._patience("sync")
        while True:
            cpu, wall = child.usage.cpu_ns(), time.monotonic_ns()
            time.sleep(_IDLE_WINDOW)
            used = child.usage.cpu_ns() - cpu
            if used < _IDLE_SHARE * (time.monotonic_ns() - wall):
                return
            if time.monotonic() > deadline:
                raise ChildError(f"{child.name} did not become idle after {self.step!r}")

    def _begin(self, child: Child, do: str, **rest: object) -> bool:
        """Return whether the peer knows what it is to wait for."""
        request = {"do": do, **rest}
        return "unsupported" not in child.ask(request, timeout=_SHORT, key="expecting")

    def _delivered(self, child: Child, key: str) -> Answer:
        return child.answer(key, timeout=self._patience(self.step), what=self.step)

    def _keep(self, answer: Answer, name: str, *, names: Sequence[str] | None = None) -> None:
        for key, value in answer.items():
            wanted = names is None or key in names
            if wanted and isinstance(value, int | float) and not isinstance(value, bool):
                self.figures[f"{name}_{key}"] = value

    def _patience(self, step: str) -> float:
        return _patience(self.job, step)


def _patience(job: Job, step: str) -> float:
    """Return how long a step may take: many times what it should."""
    return _SHORT + 8 * job.seconds(step)

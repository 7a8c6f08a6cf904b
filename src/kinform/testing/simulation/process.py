"""A process under test: its own client, and its reports to the oracles."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Callable, Generator
from typing import Any, final

from kinform.cache.factory import SharedInformerFactory
from kinform.cache.shared_informer import SharedInformer
from kinform.client import Client
from kinform.objects.object import Object
from kinform.runtime.leader_election import LeaderElector
from kinform.testing.simulation._oracles.witness import Divergence, Witness
from kinform.testing.simulation._world.history import History, Sees, everything
from kinform.testing.simulation._world.link import Link
from kinform.testing.simulation.actions import Schedule, is_fault, kind_of

__all__ = ["Process"]


@final
class Process:
    """One life of one process. Programs are given it.

    Attributes:
        number: Which process it is; it keeps that when it is started again.
        life: How often it was started before.
        client: An open client; its link to the server may be cut.
        seed: The schedule's.
        before_events: Awaited by every witness before it looks at an event; None: nothing is.
        grace: Seconds that its end may take; half a second more is a broken promise.
        dice: The only chance a program should take: all of a run is repeatable by it.
    """

    def __init__(
        self,
        number: int,
        life: int,
        *,
        client: Client,
        link: Link,
        history: History,
        report: Callable[[Divergence], None],
        schedule: Schedule,
    ) -> None:
        self.number = number
        self.life = life
        self.client = client
        self.seed: int = schedule.seed
        self.before_events: Callable[[], Awaitable[None]] | None = None
        self.grace: float = 5.0
        self.link = link
        self.dice: random.Random = random.Random(f"{schedule.seed} {number} {life}")
        self.witnesses: list[Witness] = []
        self.electors: list[LeaderElector] = []
        self._factories: list[SharedInformerFactory] = []
        self._history = history
        self._report = report
        faults = {kind_of(action) for action in schedule.actions if is_fault(action)}
        self._damages = "corrupt" in faults
        self._garbles = bool(faults & {"corrupt", "truncate_frame"})
        self._lags = bool(faults & {"lag", "stale"})
        self._working: set[object] = set()

    def __str__(self) -> str:
        return f"process {self.number}.{self.life}"

    @property
    def is_leading(self) -> bool:
        """True if it believes that it leads, at this instant."""
        return any(elector.is_leader for elector in self.electors)

    @property
    def seen(self) -> int:
        """The version that all its informers have seen, of those that were reported."""
        informers: list[SharedInformer[Any]] = [witness.informer for witness in self.witnesses]
        informers += [each for factory in self._factories for each in factory.all_informers]
        return min((int(each.last_sync_resource_version or 0) for each in informers), default=0)

    @contextlib.contextmanager
    def informed_by(self, factory: SharedInformerFactory) -> Generator[None]:
        """Report informers that have no witness, while they run."""
        self._factories.append(factory)
        try:
            yield
        finally:
            self._factories.remove(factory)

    def witness(
        self,
        informer: SharedInformer[Object],
        *,
        name: str = "",
        sees: Sees = everything,
        resyncs: bool = False,
    ) -> Witness:
        """Check all events of an informer of the churned kind.

        It must have an index ``team``, by that label. Not to be called after its start.
        ``resyncs``: it delivers all objects again from time to time.
        """
        witness = Witness(
            informer,
            history=self._history,
            report=self._report,
            sees=sees,
            damages=self._damages,
            garbles=self._garbles,
            lags=self._lags,
            resyncs=resyncs,
            pauses=(0.0, 0.0, self.dice.choice((0.0, 0.1, 3.0, 20.0))),
            before=self.before_events,
            dice=self.dice,
            name=f"{self}, {name or informer.name}",
        )
        self.witnesses.append(witness)
        return witness

    def watch_leadership(self, elector: LeaderElector, *, guards: str = "") -> None:
        """Check from now on that no other process leads while this one does.

        With ``guards``, also check that it leads whenever it writes to a path that contains it.
        """
        self.electors.append(elector)

        def check(path: str) -> None:
            if guards in path and not elector.is_leader:
                self.fail("fencing", f"it wrote to {path}, and did not lead")

        if guards:
            self.link.before_write = check

    def renew_informers(self, part: str) -> None:
        """Count requests to paths that contain ``part`` for new informers from now on.

        Each informer has its own budget of requests.
        """
        self.link.renewals[part] += 1

    @contextlib.contextmanager
    def working(self, key: object) -> Generator[None]:
        """Check that no other task in this process works on ``key`` meanwhile."""
        if key in self._working:
            self._report(Divergence("workers", f"{self}: {key} is worked on twice at once"))
        self._working.add(key)
        try:
            yield
        finally:
            self._working.discard(key)

    def fail(self, oracle: str, message: str) -> None:
        """Report that a promise was broken."""
        self._report(Divergence(oracle, f"{self}: {message}"))

"""Reporting: a manager's health checks and statistics, and the endpoints that serve them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Final, final

from kinform._parts import Parts
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.informer_statistics import InformerStatistics
from kinform.cache.shared_informer import SharedInformer
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.runtime.controller.controller import Controller
from kinform.runtime.controller.statistics import ControllerStatistics
from kinform.runtime.events.recorder import EventRecorder, RecorderStatistics
from kinform.runtime.healthz.checks import Checks, informers_check, loop_check
from kinform.runtime.healthz.http_server import StatusServer
from kinform.runtime.leader_election import ElectionStatistics, LeaderElector
from kinform.runtime.watchdog import LoopWatchdog

__all__ = ["Reporting"]

TOLERANCE: Final = 30.0
"""Seconds after the expiry of its lease at which a leader counts as unhealthy."""


@final
class Reporting:
    """The health checks and statistics of one manager.

    ``live`` says whether the process should be restarted, ``ready`` whether it can be relied on.
    """

    def __init__(
        self,
        controllers: Collection[Controller],
        *,
        factory: SharedInformerFactory,
        elector: Callable[[], LeaderElector | None],
        recorders: Sequence[EventRecorder],
        parts: Parts,
        is_stopping: Callable[[], bool],
        max_silence: float,
        address: str | int | None,
        hosts: Sequence[str] = (),
    ) -> None:
        self._controllers = controllers
        self._factory = factory
        self._elector = elector
        self._recorders = recorders
        self._watchdog = LoopWatchdog()
        self.live: Checks = Checks()
        """Checks of ``/livez``."""
        self.ready: Checks = Checks()
        """Checks of ``/readyz``."""
        self.live.add("loop", loop_check(self._watchdog))
        self.live.add("leader-election", self._election_check)
        self.ready.add("shutdown", lambda: "it is stopping" if is_stopping() else None)
        self.ready.add("controllers", self._controllers_check)
        self.ready.add("informers", informers_check(_Informers(factory), max_silence))
        self.ready.add("parts", parts.problem)
        self._server = (
            None
            if address is None
            else StatusServer(
                address,
                live=self.live,
                ready=self.ready,
                metrics=self.metrics if find_spec("prometheus_client") else None,
                hosts=hosts,
            )
        )
        self._exposition: Callable[[str], tuple[str, bytes]] | None = None
        self._stack = contextlib.AsyncExitStack()

    @property
    def url(self) -> str:
        """The URL of the endpoints; ``""`` if they are not served."""
        return "" if self._server is None else self._server.url

    def metrics(self, accept: str = "") -> tuple[str, bytes]:
        """Return content type and body of ``/metrics``, for Prometheus. From any thread.

        Raises:
            UsageError: there are no endpoints, or ``kinform[metrics]`` is not installed.
        """
        if self._exposition is None:
            raise UsageError("there are no metrics: they need health=..., and kinform[metrics]")
        return self._exposition(accept)

    def controllers(self) -> Iterable[ControllerStatistics]:
        """Return the statistics of each controller."""
        return [each.statistics() for each in self._controllers]

    def informers(self) -> Iterable[InformerStatistics]:
        """Return the statistics of each informer."""
        return [each.statistics() for each in self._factory.all_informers]

    def election(self) -> ElectionStatistics | None:
        """Return the statistics of the election, if there is one."""
        elector = self._elector()
        return None if elector is None else elector.statistics()

    def recorders(self) -> Iterable[RecorderStatistics]:
        """Return the statistics of each event recorder."""
        return [each.statistics() for each in self._recorders]

    async def __aenter__(self) -> Reporting:
        async with self._stack:  # stop the first ones if a later one cannot start
            self._watchdog.start()
            self._stack.callback(self._watchdog.stop)
            if self._server is not None:
                await self._prepare_metrics()
                await self._server.start()
                self._stack.push_async_callback(self._server.stop)
            self._stack = self._stack.pop_all()
        return self

    async def _prepare_metrics(self) -> None:
        if find_spec("prometheus_client"):
            await offload(import_module, "prometheus_client")  # which reads from /proc
            from kinform.runtime.metrics import exposition

            self._exposition = exposition(self)

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def _controllers_check(self) -> str | None:
        cold = [each.name for each in self._controllers if not each.is_warm]
        return f"not ready yet: {', '.join(cold)}" if cold else None

    def _election_check(self) -> str | None:
        elector = self._elector()
        if elector is None or elector.healthy(TOLERANCE):
            return None
        return "the lease was lost, and what it allowed has not ended"


@final
class _Informers(Collection["SharedInformer[object]"]):
    """The informers that a factory has at each moment."""

    def __init__(self, factory: SharedInformerFactory) -> None:
        self._factory = factory

    def __iter__(self) -> Iterator[SharedInformer[object]]:
        return iter(self._factory.all_informers)

    def __len__(self) -> int:
        return len(self._factory.all_informers)

    def __contains__(self, informer: object) -> bool:
        return informer in self._factory.all_informers

"""The implementation of ``kinform watch``: informers, the output of changes, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, final

from kinform import clock
from kinform.cli import problems
from kinform.cli.cluster.cluster_choice import OpenCluster, open_cluster
from kinform.cli.cluster.informer_feed import InformerFeed, RowChange
from kinform.cli.cluster.row_sources import Meter, Wanted
from kinform.cli.cluster.targets import Target, resolve
from kinform.cli.cluster.until import Until
from kinform.cli.execution import emit, warn
from kinform.cli.options import ClusterOptions, Filters
from kinform.cli.output import wire
from kinform.cli.output.board import Board
from kinform.cli.output.formats import Output
from kinform.cli.output.lines import Lines
from kinform.cli.output.live import Standing, paint
from kinform.cli.output.tally import Tally
from kinform.cli.problems import CommandProblem
from kinform.tasks import gather

__all__ = ["Plan", "watch"]

_LOOK: Final = 0.2
"""Seconds between two looks at how the connections are doing."""
DEMO_TIME: Final = 30.0
"""Seconds for which the demo is watched without a terminal."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of the command line."""

    words: Sequence[str]
    access: ClusterOptions
    selection: Filters
    output: Output
    time: float | None = None
    until: Until | None = None
    metadata_only: bool = False
    demo: bool = False
    seed: int | None = None
    is_terminal: bool = False


class _Finished(Exception):
    """The condition of --until is met."""


async def watch(plan: Plan) -> int:
    """Watch until the time has elapsed or the condition is met; return the exit code."""
    async with open_cluster(plan.access, demo=plan.demo, seed=plan.seed) as cluster:
        targets = await resolve(cluster.client, plan.words, verb="watch")
        selection = plan.selection
        if cluster.is_demo and selection.namespace is None:
            selection = Filters(
                all_namespaces=True, labels=selection.labels, fields=selection.fields
            )
        wanted = [
            Wanted(
                client=cluster.client,
                target=target,
                selection=selection,
                metadata_only=plan.metadata_only,
            )
            for target in targets
        ]
        time = plan.time
        if time is None and cluster.is_demo and not plan.is_terminal:
            time = DEMO_TIME
        if plan.output.form == "wire":
            several = len(wanted) > 1
            works = [wire.follow(one, emit, with_kind=several) for one in wanted]
            await _in_time(time, *works)
            return problems.OK
        return await _Watching(plan, cluster, wanted, time=time).run()


@final
class _Watching:
    def __init__(
        self, plan: Plan, cluster: OpenCluster, wanted: Sequence[Wanted], *, time: float | None
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._time = time
        self._meter = Meter()
        self._tally = Tally(_now())
        self._feeds = [
            InformerFeed(one, self._meter, as_table=plan.output.is_table) for one in wanted
        ]
        targets = [one.target for one in wanted]
        several = any(one.namespace == "" for one in wanted)
        self._lines = Lines(plan.output, with_namespace=several, with_kind=len(wanted) > 1)
        self._board = Board(targets, wide=plan.output.is_wide, with_namespace=several)
        self._is_live = plan.is_terminal and plan.output.is_table
        self._reported: dict[Target, str] = {}

    async def run(self) -> int:
        """Follow all feeds until the end; then tell how it went."""
        async with AsyncExitStack() as stack:
            for feed in self._feeds:
                await stack.enter_async_context(feed.informer)
            works = [self._look_after(), *(self._follow(feed) for feed in self._feeds)]
            if self._is_live:
                works.append(paint(self._board, self._standing))
            try:
                await _in_time(self._time, *works)
            except _Finished:
                return problems.OK
            return await self._summary()

    async def _follow(self, feed: InformerFeed) -> None:
        await feed.informer.wait_synced()
        self._lines.measure(feed.target, feed.informer.lister.list(), wall=_wall())
        await feed.follow(self._tell)

    def _tell(self, change: RowChange) -> None:
        if not change.initial:
            self._tally.note(_now(), change.row.received)
        if self._is_live:
            self._board.apply(change, now=_now(), wall=_wall())
        else:
            emit(self._lines.text(change, wall=_wall()))
        until = self._plan.until
        if until is not None:
            key = (change.target, change.key)
            if change.type == "DELETED":
                until.forget(key)
            else:
                until.note(key, change.row.obj)
            self._check_until()

    def _check_until(self) -> None:
        until = self._plan.until
        if until is not None and all(feed.is_told for feed in self._feeds) and until.is_met:
            raise _Finished

    async def _look_after(self) -> None:
        """Check for refusals, lost connections and conditions that are met from the start."""
        while True:
            for feed in self._feeds:
                if feed.fatal is not None:
                    raise feed.fatal
                if not self._is_live:
                    self._tell_trouble(feed)
            self._check_until()
            await asyncio.sleep(_LOOK)

    def _tell_trouble(self, feed: InformerFeed) -> None:
        trouble = _words(feed)
        reported = self._reported.get(feed.target, "")
        if trouble and not reported:
            warn(f"{trouble}; trying again")
        elif reported and not trouble:
            warn(f"{feed.target.label}: connected again")
        self._reported[feed.target] = trouble

    def _standing(self) -> Standing:
        statistics = [feed.informer.statistics() for feed in self._feeds]
        versions = [one.resource_version for one in statistics]
        return Standing(
            has_synced=all(one.has_synced for one in statistics),
            objects=sum(one.objects for one in statistics),
            rate=self._tally.rate(_now()),
            version=max(versions, key=lambda version: (len(version), version)),
            lag=self._tally.lag(_now()),
            received=self._meter.received,
            trouble="; ".join(filter(None, map(_words, self._feeds))),
        )

    async def _summary(self) -> int:
        """Print the summary at the end of the time; a condition that was not met is a failure."""
        if self._plan.until is not None:
            raise CommandProblem(f"timed out: {self._plan.until}")
        await self._cluster.settle()
        equal = [await feed.equals_fresh_list() is not None for feed in self._feeds]
        objects = sum(len(feed.informer.lister.list()) for feed in self._feeds)
        answer = "yes" if all(equal) else "no"
        warn(
            f"{self._tally.events} events seen, {objects} objects; "
            f"cache equals a fresh list: {answer}"
        )
        return problems.OK if all(equal) or not self._cluster.is_demo else problems.FAILED


def _words(feed: InformerFeed) -> str:
    trouble = feed.trouble
    if trouble is None:
        return ""
    return f"{feed.target.label}: connection lost: {problems.explain(trouble) or trouble}"


async def _in_time(time: float | None, *works: Coroutine[object, object, None]) -> None:
    """Run ``works`` until the time has elapsed; the first failure ends all of them."""
    limit = asyncio.timeout(time)
    try:
        async with limit:
            await gather(*works)
    except TimeoutError:
        if not limit.expired():
            raise


def _now() -> float:
    return asyncio.get_running_loop().time()


def _wall() -> float:
    return clock.current().wall()

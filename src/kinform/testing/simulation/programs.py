"""The program that is simulated unless another one is given: all of kinform in one process.

Two informers, one with a selector, in one of many configurations, each with a witness; a handler
that is slow, and may raise; an election; and for the leader a controller that keeps for every
ConfigMap of one namespace a Secret of the same name and value. In some schedules it is rough: see
`kinform.testing.simulation.rough_programs`.
"""

from __future__ import annotations

import asyncio
import base64
import functools
from typing import Any, Final

from kinform.cache.processor.events import Updated
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.errors import LeadershipLost
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.controller.reconciler import Result
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.runtime.manager import Manager
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.sansio.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from kinform.testing.simulation._schedule.themes import is_rough
from kinform.testing.simulation.process import Process
from kinform.testing.simulation.rough_programs import Backlog, misuse, with_nulls

__all__ = ["MIRRORED", "everything_at_once", "secret_value"]

MIRRORED: Final = "green"
"""The namespace whose ConfigMaps have Secrets."""
_LOOK_AGAIN: Final = 60.0
_RELEASE: Final = 3.0
"""Seconds for giving back the lease."""


async def everything_at_once(process: Process) -> None:
    """Run until cancelled."""
    # One after the other: a manager, the lease that is given back, and two informers.
    process.grace = 5.0 + _RELEASE + 5.0 + 5.0
    if is_rough(process.seed):
        process.before_events = misuse
        process.link.alters = with_nulls
    resync = process.dice.choice((None, None, 40.0))
    options = _options(process, resync)
    whole = process.client.informer("v1/configmaps", **options)
    red = process.client.informer("v1/configmaps", label_selector="team=red", **_options(process))
    process.witness(whole, name="all", resyncs=resync is not None)
    process.witness(red, name="red", sees=lambda state: state.team == "red")
    _add_slow_handler(process, whole)
    async with whole, red:
        await _compete(process)


def _options(process: Process, resync: float | None = None) -> InformerOptions[Object]:
    dice = process.dice
    return InformerOptions(
        indexers={"team": _team},
        queue=functools.partial(
            dice.choice((RealFIFO, RealFIFO, DeltaFIFO)), high_water=dice.choice((3, 2000))
        ),
        resync_period=resync,
        options=ReflectorOptions(
            stream_lists=dice.random() < 0.6,
            page_size=dice.choice((None, 3)),
            watch_timeout=dice.choice((30.0, 120.0)),
        ),
    )


def _team(obj: Object) -> str | None:
    return obj.labels.get("team")


def _add_slow_handler(process: Process, informer: SharedInformer[Object]) -> None:
    seconds, raises = process.dice.choice((0.0, 0.3, 30.0)), process.dice.random() < 0.3

    async def dawdle(event: Updated[Object]) -> None:
        await asyncio.sleep(seconds)
        if raises:
            raise RuntimeError(f"{event.key}: as every handler may")

    informer.add_event_handler(on_update=dawdle, name="slow")


async def _compete(process: Process) -> None:
    """Lead as often as possible."""
    quick = process.dice.random() < 0.3
    times = (15.0, 10.0, 4.0) if quick else (60.0, 40.0, 15.0)
    election = LeaderElection(
        lease="simulation",
        namespace="default",
        identity=str(process).replace(" ", "-"),
        lease_duration=times[0],
        renew_deadline=times[1],
        retry_period=times[2],
    )
    elector = LeaderElector(process.client, election)
    process.watch_leadership(elector, guards="/secrets")
    while True:
        try:
            await elector.run(lambda: _lead(process, elector), release_within=lambda: _RELEASE)
        except LeadershipLost:
            continue


async def _lead(process: Process, elector: LeaderElector) -> None:
    # From a stale cache a Secret gets an owner that was deleted; it is collected, its deletion is
    # delivered, and it is created again, as quickly as this lets it.
    pause = process.dice.choice((0.2, 0.5, 1.0))

    async def reconcile(ctx: Context, name: ObjectName) -> Result | None:
        with process.working(name):
            if is_rough(process.seed):
                await misuse()
            source = ctx.lister("v1/configmaps").get(name)
            if source is None:
                return None  # its secret goes with it
            secret = ctx.lister("v1/secrets").get(name)
            if secret is None or not _is_of(source, secret):
                await ctx.apply(_secret(source), owner=source)
                await asyncio.sleep(pause)
                # If it is deleted before the cache has seen it, no event reports that.
                return Result(requeue_after=_LOOK_AGAIN)
            return None

    client = process.client.guarded(elector.check)
    process.renew_informers(f"/namespaces/{MIRRORED}/")
    manager = Manager(client, namespaces=MIRRORED, signals=False, grace=5.0)
    controller = Controller(
        "mirror",
        reconcile,
        for_="v1/configmaps",
        owns=["v1/secrets"],
        workers=2,
        timeout=120,
        # The default goes up to 1,000 s, but 600 s after the last fault the state is checked.
        rate_limiter=ItemExponentialFailureRateLimiter(max_delay=300.0),
    )
    with process.informed_by(manager.factory):
        async with manager:
            manager.add(controller)
            if is_rough(process.seed):
                manager.add(Backlog(process).controller())
            await manager.run()


def _secret(source: Object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": source.name, "namespace": source.namespace},
        "data": {"value": secret_value(str(source.at("data", "value", default="")))},
    }


def _is_of(source: Object, secret: Object) -> bool:
    value = _secret(source)["data"]["value"]
    owners = [reference.uid for reference in secret.metadata.owner_references]
    return owners == [source.uid] and secret.at("data", "value", default=None) == value


def secret_value(value: str) -> str:
    """Return what the Secret of a ConfigMap with this value has in it."""
    return base64.b64encode(value.encode()).decode()

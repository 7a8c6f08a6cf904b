"""The program that is simulated unless another one is given: all of kinform in one process.

Two informers, one with a selector, in one of many configurations, each with a witness and a handler
that is slow; an election; and for the leader a controller that keeps for every ConfigMap of one
namespace a Secret of the same name and value.
"""

from __future__ import annotations

import asyncio
import base64
import functools
from typing import Any, Final

from kinform.cache.events import Updated
from kinform.cache.informer import InformerOptions, SharedInformer
from kinform.cache.options import ReflectorOptions
from kinform.errors import LeadershipLost
from kinform.meta import ObjectName
from kinform.objects import Object
from kinform.runtime.context import Context
from kinform.runtime.controller import Controller
from kinform.runtime.leader_election import LeaderElection, LeaderElector
from kinform.runtime.manager import Manager
from kinform.sansio.delta_fifo import DeltaFIFO
from kinform.sansio.real_fifo import RealFIFO
from kinform.testing.simulation.process import Process

__all__ = ["MIRRORED", "everything_at_once", "secret_value"]

MIRRORED: Final = "green"
"""The namespace whose ConfigMaps have Secrets."""


async def everything_at_once(process: Process) -> None:
    """Run until cancelled."""
    process.grace = 15.0  # two informers and a manager, one after the other
    whole = process.client.informer("v1/configmaps", **_options(process))
    red = process.client.informer("v1/configmaps", label_selector="team=red", **_options(process))
    process.witness(whole, name="all")
    process.witness(red, name="red", sees=lambda state: state.team == "red")
    _add_slow_handler(process, whole)
    async with whole, red:
        await _compete(process)


def _options(process: Process) -> InformerOptions[Object]:
    dice = process.dice
    return InformerOptions(
        indexers={"team": _team},
        queue=functools.partial(
            dice.choice((RealFIFO, RealFIFO, DeltaFIFO)), high_water=dice.choice((3, 2000))
        ),
        resync_period=None,
        options=ReflectorOptions(
            stream_lists=dice.random() < 0.6,
            page_size=dice.choice((None, None, 3)),
            watch_timeout=dice.choice((30.0, 120.0)),
        ),
    )


def _team(obj: Object) -> str | None:
    return obj.labels.get("team")


def _add_slow_handler(process: Process, informer: SharedInformer[Object]) -> None:
    seconds = process.dice.choice((0.0, 0.3, 30.0))

    async def dawdle(event: Updated[Object]) -> None:
        del event
        await asyncio.sleep(seconds)

    informer.add_event_handler(on_update=dawdle, name="slow")


async def _compete(process: Process) -> None:
    """Lead as often as possible."""
    quick = process.dice.random() < 0.3
    times = (15.0, 10.0, 2.0) if quick else (60.0, 40.0, 10.0)
    election = LeaderElection(
        lease="simulation",
        namespace="default",
        identity=str(process).replace(" ", "-"),
        lease_duration=times[0],
        renew_deadline=times[1],
        retry_period=times[2],
    )
    elector = LeaderElector(process.client, election)
    process.watch_leadership(elector)
    while True:
        try:
            await elector.run(lambda: _lead(process, elector), release_within=lambda: 3.0)
        except LeadershipLost:
            continue


async def _lead(process: Process, elector: LeaderElector) -> None:
    async def reconcile(ctx: Context, name: ObjectName) -> None:
        with process.working(name):
            source = ctx.lister("v1/configmaps").get(name)
            if source is not None:  # else its secret goes with it
                await ctx.apply(_secret(source), owner=source)

    client = process.client.guarded(elector.check)
    manager = Manager(client, namespaces=MIRRORED, signals=False, grace=5.0)
    controller = Controller(
        "mirror", reconcile, for_="v1/configmaps", owns=["v1/secrets"], workers=2, timeout=120
    )
    async with manager:
        manager.add(controller)
        await manager.run()


def _secret(source: Object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": source.name, "namespace": source.namespace},
        "data": {"value": secret_value(str(source.at("data", "value", default="")))},
    }


def secret_value(value: str) -> str:
    """Return what the Secret of a ConfigMap with this value has in it."""
    return base64.b64encode(value.encode()).decode()

"""Everything that can be asked of a server, and everything that can go wrong meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeAlias

import msgspec

import kinform
from kinform.apiserver import faults
from kinform.apiserver.faults.kinds import Fault
from kinform.runtime import Controller, KindSource, LeaderElection, LeaderElector, Manager
from kinform.runtime.controller.context import Context
from kinform.runtime.metrics import exposition
from tests.security.support_canaries import SECRET, Witness, secret

__all__ = ["CLIENTS", "EFFECTS", "OPERATIONS", "Make", "Unfit", "fragile"]

Make: TypeAlias = Callable[[], Fault]

EFFECTS: dict[str, list[Make]] = {
    "refuse": [faults.refuse, lambda: faults.refuse(verb="watch", duration=60)],
    "reset": [
        faults.reset,
        lambda: faults.reset(after_bytes=150),
        lambda: faults.reset(after_events=1),
    ],
    "close": [
        faults.close,
        lambda: faults.close(after_bytes=150),
        lambda: faults.close(after_events=1),
    ],
    "half_open": [faults.half_open, lambda: faults.half_open(after_bytes=150)],
    "stall": [faults.stall],
    "truncate_frame": [faults.truncate_frame],
    "corrupt": [faults.corrupt, lambda: faults.corrupt(verb="watch", event=2)],
    "status": [
        *(lambda code=code: faults.status(code) for code in (400, 401, 403, 404, 409, 410, 422)),
        *(lambda code=code: faults.status(code) for code in (429, 500, 503, 504)),
        lambda: faults.status(502, text="<html>the proxy has nothing to say</html>"),
    ],
    "error_event": [faults.error_event, lambda: faults.error_event(500, after_events=1)],
    "end_watch": [faults.end_watch, lambda: faults.end_watch(after_events=1)],
    "drip": [lambda: faults.drip(size=7, every=30.0)],
    "duplicate_events": [faults.duplicate_events],
    "older_events": [faults.older_events],
    "stray_bookmarks": [faults.stray_bookmarks],
    "no_bookmarks": [lambda: faults.no_bookmarks(initial_end=True)],
    "no_watch_list": [faults.no_watch_list],
    "gzip": [faults.gzip, lambda: faults.gzip(together=True)],
    "latency": [lambda: faults.latency(90.0)],
    "stale": [lambda: faults.stale(revisions=3)],
    "stale_cache": [lambda: faults.stale_cache(revisions=3)],
    "compact": [lambda: faults.compact(times=None)],
    "restore": [lambda: faults.restore(by=2, times=None)],
    "clock_offset": [lambda: faults.clock_offset(-86_400)],
}
"""The faults for each effect of the fault plan; a test checks that none is missing."""


class Unfit(msgspec.Struct):
    """A model that no Secret fits."""

    data: int


SECRETS = kinform.Resource.of("v1/secrets", kind="Secret", namespaced=True)
UNFIT = kinform.Resource.of("v1/secrets", model=Unfit, kind="Secret", namespaced=True)
"""Known without asking: requests are about Secrets from the first one on."""

Operation: TypeAlias = Callable[["kinform.Client"], Coroutine[Any, Any, object]]


async def _watch(client: kinform.Client) -> None:
    async with client.resource(SECRETS).watch(resource_version="1") as events:
        async for _ in events:
            pass


def _spoil(_: object) -> NoReturn:
    raise ValueError("the change cannot be made")


def _merge(value: str) -> dict[str, object]:
    return {"metadata": {"annotations": {"more": value}}, "stringData": {"more": value}}


OPERATIONS: dict[str, Operation] = {
    "get": lambda client: client.resource(SECRETS).get("canary"),
    "get of an unfit model": lambda client: client.resource(UNFIT).get("canary"),
    "list": lambda client: client.resource(SECRETS).list(),
    "list of an unfit model": lambda client: client.resource(UNFIT).list(),
    "watch": _watch,
    "create": lambda client: client.resource(SECRETS).create(secret("other")),
    "create an existing object": lambda client: client.resource(SECRETS).create(secret()),
    "create what is invalid": lambda client: client.resource(SECRETS).create(
        {**secret("invalid"), "data": {"no such key!": "not base64, but " + SECRET}}
    ),
    "replace": lambda client: client.resource(SECRETS).replace(secret(resourceVersion="1")),
    "update": lambda client: client.resource(SECRETS).update("canary", _spoil),
    "patch": lambda client: client.resource(SECRETS).patch("canary", _merge(SECRET)),
    "json patch": lambda client: client.resource(SECRETS).patch(
        "canary", [{"op": "test", "path": "/data/password", "value": SECRET}]
    ),
    "apply": lambda client: client.resource(SECRETS).apply(secret(), field_manager="canary"),
    "delete": lambda client: client.resource(SECRETS).delete("other"),
    "delete all": lambda client: client.resource(SECRETS).delete_collection(
        label_selector="no=such"
    ),
    "version": lambda client: client.version(),
    "discovery": lambda client: client.find("secrets"),
}


def fragile(*_: object, **__: object) -> NoReturn:
    """Fail for every event."""
    raise RuntimeError("cannot be handled")


async def _inform(client: kinform.Client, seeing: Witness, seconds: float) -> None:
    informer = client.informer("v1/secrets", namespace="default")
    unfit = client.informer("v1/secrets", model=Unfit, namespace="default")
    informer.add_event_handler(on_add=fragile, on_update=fragile, on_delete=fragile)
    async with informer, unfit:
        await asyncio.sleep(seconds)
        for each in (informer, unfit):
            seeing.show(each, each.statistics(), each.lister, each.lister.list(), each.unreadable)
            seeing.show(*each.unreadable.values())


async def _reconcile(ctx: Context, name: kinform.ObjectName) -> None:
    obj = await ctx.client.resource(SECRETS).get(name)
    ctx.logger.debug("reconciling %s as %r", obj, ctx)
    await ctx.client.resource(SECRETS).patch(name, _merge(SECRET))
    raise RuntimeError("cannot be reconciled")


async def _control(client: kinform.Client, seeing: Witness, seconds: float) -> None:
    election = LeaderElection(lease="canary", namespace="default")
    source = KindSource("v1/secrets", namespace="default")
    controller = Controller("canary", _reconcile, for_=source)
    async with Manager(client, leader_election=election, signals=False) as manager:
        manager.add(controller)
        await manager.start()
        await asyncio.sleep(seconds)
        reporting = manager.reporting
        seeing.show(manager, controller, manager.elector, *reporting.controllers())
        seeing.show(*reporting.informers(), reporting.election(), reporting.ready.ask("informers"))
        seeing.show(exposition(reporting)("")[1].decode())


async def _elect(client: kinform.Client, seeing: Witness, seconds: float) -> None:
    elector = LeaderElector(client, LeaderElection(lease="other", namespace="default"))

    async def lead() -> None:
        await asyncio.sleep(seconds)

    async with asyncio.timeout(seconds):
        await elector.run(lead)
    seeing.show(elector, elector.statistics())


CLIENTS = {"informer": _inform, "controller": _control, "leader election": _elect}
"""The long-running users of a client."""

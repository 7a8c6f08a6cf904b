"""An operator for a kind without namespaces, once right and four times wrong.

A Room has a door code (a Secret, which only the room's finalizer takes back), a booking sheet (a
ConfigMap that it owns), a line in the floor plan (a ConfigMap that all rooms share and that is not
watched), and a status. Each wrong operator has one mistake that a quiet cluster never shows.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from kinform import (
    AlreadyExistsError,
    ConflictError,
    Context,
    Controller,
    Finalizer,
    KinformError,
    LeaderElection,
    Manager,
    NotFoundError,
    Object,
    ObjectName,
    clock,
)
from kinform.runtime import apply_status, owner_reference
from kinform.testing.simulation import Process, Workload, World

__all__ = [
    "WORKLOAD",
    "doubles_sheets",
    "is_settled",
    "leaks_finalizers",
    "never_rests",
    "operate",
    "swallows_conflicts",
]

Mistake: TypeAlias = Literal["", "conflict", "duplicates", "finalizer", "hot loop"]

ROOMS: Final = "example.com/v1/rooms"
MAPS: Final = "v1/configmaps"
SECRETS: Final = "v1/secrets"
HERE: Final = "blue"
PLAN: Final = "floor-plan"
CODE: Final = Finalizer("example.com/door-code")
_TRIES: Final = 20
CRD: Final[dict[str, object]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rooms.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "rooms", "singular": "room", "kind": "Room"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"seats": {"type": "integer"}},
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "seats": {"type": "string"},
                                    "seen": {"type": "string"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}
WORKLOAD: Final = Workload(
    resource=ROOMS,
    make=lambda draft: {"spec": {"seats": draft.value}},
    value_at=("spec", "seats"),
    manifests=[CRD],
)


async def operate(process: Process) -> None:
    """Run the operator that is right."""
    await _run(process, "")


async def swallows_conflicts(process: Process) -> None:
    """Run a program that takes a conflict for the success of another writer."""
    await _run(process, "conflict")


async def doubles_sheets(process: Process) -> None:
    """Run one that creates what its cache does not show yet."""
    await _run(process, "duplicates")


async def leaks_finalizers(process: Process) -> None:
    """Run one that fails to give back what it has given back already."""
    await _run(process, "finalizer")


async def never_rests(process: Process) -> None:
    """Run one that writes the time into the status, which makes it reconcile again."""
    await _run(process, "hot loop")


async def _run(process: Process, mistake: Mistake) -> None:
    """Run as the guides say; a process that loses its lease ends, and is started again."""
    election = LeaderElection(lease="rooms", namespace="default")
    controller = Controller(
        "rooms",
        functools.partial(_reconcile, mistake=mistake),
        for_=ROOMS,
        owns=[MAPS],
        workers=4,
        timeout=60,
    )
    async with Manager(process.client, signals=False, grace=4, leader_election=election) as manager:
        manager.add(controller)
        await manager.run()


async def _reconcile(ctx: Context, name: ObjectName, *, mistake: Mistake) -> None:
    cached = ctx.lister(ROOMS).get(name)
    rooms = ctx.client.resource(ROOMS)
    if cached is None or await CODE.handle(rooms, cached, lambda: _give_back(ctx, name, mistake)):
        return
    room = await CODE.ensure(rooms, cached)
    if not CODE.is_on(room) or not await _is_there(ctx, room):
        return  # it goes, or has gone: the cache will show that
    seats = str(room.at("spec", "seats"))
    code = {"name": f"code-{room.name}", "namespace": HERE}
    await ctx.apply({"apiVersion": "v1", "kind": "Secret", "metadata": code})
    await _keep_sheet(ctx, room, seats, mistake)
    await _write_plan(ctx, room.name, seats, mistake)
    status = {"seats": seats}
    if mistake == "hot loop":
        status["seen"] = f"{clock.current().wall():.3f}"
    if room.at("status", default=None) != status:
        await apply_status(ctx.client, room, status=status, field_manager="rooms")


async def _is_there(ctx: Context, room: Object) -> bool:
    """Tell whether the server has the room too, before something is made that it must give back."""
    try:
        found = await ctx.client.resource(ROOMS).get(room.name)
    except NotFoundError:
        return False
    return found.uid == room.uid and not found.metadata.deletion_timestamp


async def _give_back(ctx: Context, room: ObjectName, mistake: Mistake) -> None:
    with contextlib.suppress(NotFoundError):
        await ctx.client.resource(MAPS, namespace=HERE).patch(PLAN, {"data": {room.name: None}})
    try:
        await ctx.client.resource(SECRETS, namespace=HERE).delete(f"code-{room.name}")
    except NotFoundError:
        if mistake == "finalizer":
            raise


async def _keep_sheet(ctx: Context, room: Object, seats: str, mistake: Mistake) -> None:
    maps = ctx.client.resource(MAPS, namespace=HERE)
    sheets = ctx.lister(MAPS).by_index("owner", room.uid)
    sheet: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"seats": seats}}
    if mistake != "duplicates":
        sheet["metadata"] = {"name": f"sheet-{room.name}", "namespace": HERE}
        if [each.at("data", "seats") for each in sheets] != [seats]:
            await ctx.apply(sheet, owner=room)
    elif sheets:
        for each in sheets:
            if each.at("data", "seats") != seats:
                await maps.patch(each.name, {"data": {"seats": seats}})
    else:
        owners = [owner_reference(room)]
        sheet["metadata"] = {"generateName": f"{room.name}-", "ownerReferences": owners}
        await maps.create(sheet)


async def _write_plan(ctx: Context, name: str, seats: str, mistake: Mistake) -> None:
    maps = ctx.client.resource(MAPS, namespace=HERE)
    for _ in range(_TRIES):
        try:
            plan = await maps.get(PLAN)
            if plan.at("data", name, default=None) == seats:
                return
            version = {"resourceVersion": plan.resource_version}
            await maps.patch(PLAN, {"metadata": version, "data": {name: seats}})
        except NotFoundError:
            try:
                await maps.create({"metadata": {"name": PLAN}, "data": {name: seats}})
            except AlreadyExistsError:
                continue
        except ConflictError:
            if mistake != "conflict":
                continue
        return
    raise KinformError("the floor plan is too busy")


# --- what must hold at the end


def is_settled(world: World) -> str:
    """Return what is not as its room says, ``""`` if everything is."""
    rooms = _stored(world, "rooms.example.com", str)
    maps = _stored(world, "configmaps", lambda key: key.removeprefix(f"{HERE}/"))
    codes = {key.partition("/code-")[2] for key in _stored(world, "secrets", str)} - {""}
    plan = maps.get(PLAN, {}).get("data", {})
    for name, room in rooms.items():
        seats = str(room["spec"]["seats"])
        sheets = {
            key: each for key, each in maps.items() if _owner(each) == room["metadata"]["uid"]
        }
        if [each["data"]["seats"] for each in sheets.values()] != [seats]:
            return f"{name} has the sheets {sorted(sheets)}, expected one with {seats} seats"
        if plan.get(name) != seats:
            return f"the floor plan has {plan.get(name)} seats in {name}, expected {seats}"
        if room.get("status", {}).get("seats") != seats:
            return f"the status of {name} is {room.get('status')}, expected {seats} seats"
    for what, found in (("codes", codes), ("lines in the plan", {*plan})):
        if found != {*rooms}:
            return f"there are {what} of {sorted(found)}, expected {sorted(rooms)}"
    return ""


def _stored(world: World, table: str, name: Callable[[str], str]) -> Mapping[str, dict[str, Any]]:
    now = world.server.cluster.storage.table(table).now()
    return {name(stored.key): json.loads(stored.raw) for stored in now}


def _owner(obj: Mapping[str, Any]) -> str:
    return next((each["uid"] for each in obj["metadata"].get("ownerReferences", ())), "")

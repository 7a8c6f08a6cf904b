"""A custom kind for simulations, and two operators for it: one that is right, and one that forgets.

Each keeps for every ``Widget`` a Secret of the same name with the widget's text in it, and says in
the widget's status which generation it has seen.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from typing import Any, Final

from kinform import Context, Controller, Manager, NotFoundError, Object, ObjectName, Result
from kinform.runtime import apply, apply_status
from kinform.testing.simulation import Process, Workload, World

RESOURCE: Final = "example.com/v1/widgets"
LOOK_AGAIN: Final = 60.0
CRD: Final[dict[str, object]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
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
                                "properties": {
                                    "text": {"type": "string"},
                                    "size": {"type": "integer", "maximum": 100_000},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"observedGeneration": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}
WIDGETS: Final = Workload(
    resource=RESOURCE,
    make=lambda draft: {"spec": {"text": draft.text, "size": draft.value}},
    value_at=("spec", "text"),
    manifests=[CRD],
)


async def operate(process: Process) -> None:
    """Run the operator that is right, in every process: what is done twice does no harm."""
    await _run(process, Controller("right", _own, for_=RESOURCE, owns=["v1/secrets"], timeout=120))


async def forget(process: Process) -> None:
    """Run a program that deletes Secrets itself, and misses widgets deleted while it is down.

    It runs in the first process alone, so that no other process does it instead.
    """
    if process.number:
        await asyncio.Event().wait()
    await _run(process, Controller("wrong", _mind, for_=RESOURCE, timeout=120))


def is_settled(world: World) -> str:
    """Return which Secret or status is not that of its widget, ``""`` if all are."""
    storage = world.server.cluster.storage
    secrets = {
        one.key: json.loads(one.raw)["data"].get("text") for one in storage.table("secrets").now()
    }
    widgets = world.history.now()
    for key in sorted({*secrets, *widgets}):
        if key not in widgets:
            return f"secret {key} is of no widget"
        if secrets.get(key) != encoded(widgets[key].value):
            return f"secret {key} has {secrets.get(key)}, its widget {widgets[key].value!r}"
    for one in storage.table("widgets.example.com").now():
        content = json.loads(one.raw)
        if observed(content) != content["metadata"]["generation"]:
            return f"the status of widget {one.key} is of generation {observed(content)}"
    return ""


def encoded(text: str) -> str:
    """Return a text as Secrets have it."""
    return base64.b64encode(text.encode()).decode()


def observed(widget: dict[str, Any]) -> int:
    """Return the generation that the status is of."""
    found: int = widget.get("status", {}).get("observedGeneration", 0)
    return found


async def _run(process: Process, controller: Controller) -> None:
    manager = Manager(process.client, signals=False, grace=5)
    process.witness(manager.factory.informer(RESOURCE, indexers={"team": _team}))
    async with manager:
        manager.add(controller)
        with process.informed_by(manager.factory):
            await manager.run()


def _team(widget: Object) -> str | None:
    return widget.labels.get("team")


async def _own(ctx: Context, name: ObjectName) -> Result | None:
    widget = ctx.lister(RESOURCE).get(name)
    if widget is None:
        return None  # its secret goes with it
    secret, wanted = ctx.lister("v1/secrets").get(name), _secret(widget)
    owners = [] if secret is None else [it.uid for it in secret.metadata.owner_references]
    if secret is None or owners != [widget.uid] or secret.at("data") != wanted["data"]:
        await ctx.apply(wanted, owner=widget)
    await _report(ctx, widget)
    # If it is deleted before the cache has seen it, no event reports that.
    return Result(requeue_after=LOOK_AGAIN)


async def _mind(ctx: Context, name: ObjectName) -> Result | None:
    widget = ctx.lister(RESOURCE).get(name)
    if widget is not None:
        await apply(ctx.client, _secret(widget), field_manager="wrong")
        await _report(ctx, widget)
        return Result(requeue_after=LOOK_AGAIN)
    with contextlib.suppress(NotFoundError):
        await ctx.client.resource("v1/secrets", namespace=name.namespace).delete(name.name)
    return None


async def _report(ctx: Context, widget: Object) -> None:
    generation = widget.metadata.generation
    if observed(widget.to_dict()) != generation:
        status = {"observedGeneration": generation}
        await apply_status(ctx.client, widget, status=status, field_manager="widgets")


def _secret(widget: Object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": widget.name, "namespace": widget.namespace},
        "data": {"text": encoded(widget.at("spec", "text"))},
    }

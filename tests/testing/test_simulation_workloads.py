"""Simulations of other kinds than ConfigMaps: what is written, what is held against it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kinform.errors import UsageError
from kinform.testing.simulation import (
    Draft,
    Limits,
    Outcome,
    Process,
    Schedule,
    Workload,
    World,
    draw,
    simulate,
)
from kinform.testing.simulation.actions import Action, Crash, Restore, Verb, Write
from tests.testing import rooms
from tests.testing.widgets import CRD, RESOURCE, WIDGETS, forget, is_settled, operate

TABLE = "widgets.example.com"


def write(at: float, verb: Verb = "create", name: str = "a") -> Write:
    return Write(at=at, verb=verb, namespace="blue", name=name, value=int(at))


def only(*actions: Action) -> Schedule:
    return Schedule(seed=1, processes=1, actions=actions)


def written(workload: Workload, *actions: Write) -> Outcome:
    """Run a program that does nothing."""
    return simulate(only(*(actions or (write(1),))), idle, workload=workload)


async def idle(process: Process) -> None:
    del process
    await asyncio.Event().wait()


async def watch(process: Process) -> None:
    informer = process.client.informer(
        RESOURCE, indexers={"team": lambda widget: widget.labels.get("team")}
    )
    process.witness(informer)
    async with informer:
        await asyncio.Event().wait()


def stored(world: World, key: str) -> dict[str, Any]:
    held = world.server.cluster.storage.table(TABLE).get(key)
    assert held is not None
    content: dict[str, Any] = json.loads(held.raw)
    return content


# --- an operator


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 22, 30, 32])
def test_an_operator_that_is_right_comes_through(seed: int) -> None:
    # After a restore an owner in the cache may not exist: until that is noticed, the garbage
    # collector deletes each Secret as soon as it is applied. So writes have no limit here.
    limits = Limits(writes=0)
    schedule = draw(seed, faults="all")
    outcome = simulate(schedule, operate, is_settled, workload=WIDGETS, limits=limits)
    assert outcome.divergence is None
    assert outcome.writes > 50


@pytest.mark.slow
def test_an_operator_that_forgets_what_it_missed_is_found_out() -> None:
    schedule = only(write(1), Crash(at=10, process=0, after=20), write(15, "delete"))
    outcome = simulate(schedule, forget, is_settled, workload=WIDGETS)
    assert str(outcome.divergence) == "equality: secret blue/a is of no widget"
    assert simulate(schedule, operate, is_settled, workload=WIDGETS).divergence is None


# --- what is written


def test_a_draft_becomes_an_object_of_the_kind_with_the_labels_of_the_schedule() -> None:
    def make(draft: Draft) -> Mapping[str, object]:
        return {
            "metadata": {"name": draft.name, "labels": {"app": "shop"}},
            "spec": {"size": draft.value},
        }

    def as_drafted(world: World) -> str:
        content = stored(world, "blue/a")
        assert content["metadata"]["labels"] == {"app": "shop", "team": "blue"}
        assert content["spec"] == {"size": 3}
        (state,) = world.history.now().values()
        assert (state.team, state.value) == ("blue", "3")
        return ""

    workload = dataclasses.replace(WIDGETS, make=make, value_at=("spec", "size"))
    actions = only(write(1), write(2, "update"), write(3, "relabel"))
    assert simulate(actions, watch, as_drafted, workload=workload).divergence is None


def test_an_update_leaves_to_others_what_is_theirs() -> None:
    async def decorate(process: Process) -> None:
        widgets = process.client.resource(RESOURCE, namespace="blue")
        await asyncio.sleep(5)
        mine = {"finalizers": ["example.com/mine"], "annotations": {"by": "me"}}
        await widgets.patch("a", {"metadata": {**mine, "labels": {"app": "shop"}}})
        await widgets.status.patch("a", {"status": {"observedGeneration": 7}})
        await asyncio.Event().wait()

    def kept(world: World) -> str:
        content = stored(world, "blue/a")
        metadata = content["metadata"]
        assert metadata["finalizers"] == ["example.com/mine"]
        assert metadata["annotations"] == {"by": "me"}
        assert metadata["labels"] == {"app": "shop", "team": "red"}
        assert content["status"] == {"observedGeneration": 7}
        assert content["spec"]["size"] == 9
        return ""

    outcome = simulate(only(write(1), write(9, "update")), decorate, kept, workload=WIDGETS)
    assert outcome.divergence is None


@pytest.mark.parametrize("verb", ["delete", "recreate"])
def test_what_has_a_finalizer_is_deleted_when_that_is_gone(verb: Verb) -> None:
    async def hold(process: Process) -> None:
        widgets = process.client.resource(RESOURCE, namespace="blue")
        await asyncio.sleep(5)
        await widgets.patch("a", {"metadata": {"finalizers": ["example.com/mine"]}})
        await watch(process)

    def ends(world: World) -> str:
        content = stored(world, "blue/a")
        assert content["metadata"]["deletionTimestamp"]
        assert len({it.state.uid for it in world.history.moments("blue/a") if it.state}) == 1
        return ""

    outcome = simulate(only(write(1), write(9, verb)), hold, ends, workload=WIDGETS)
    assert outcome.divergence is not None
    assert outcome.divergence.oracle == "deletion"
    assert "widgets.example.com blue/a was deleted at " in str(outcome.divergence)
    assert str(outcome.divergence).endswith("it has ['example.com/mine']")


def test_what_a_restore_has_undone_is_done_again_under_the_version_it_had() -> None:
    def twice(world: World) -> str:
        states = [moment.state for moment in world.history.moments("blue/a")]
        first, again = (it for it in states if it is not None and it.value.startswith("1"))
        assert (first.uid, first.version) == (again.uid, again.version)
        assert again == world.history.now()["blue/a"]
        return ""

    actions: list[Action] = [
        Write(at=5.0, verb="create", namespace="blue", name="a", value=0),
        Write(at=6.0, verb="update", namespace="blue", name="a", value=1),
        *(Write(at=7.0, verb="create", namespace="blue", name=name) for name in "bcdef"),
        Restore(at=20, by=6, redo=1),
    ]
    assert simulate(only(*actions), watch, twice, workload=WIDGETS).divergence is None


def test_objects_without_a_namespace_have_both_words_in_their_names() -> None:
    async def follow(process: Process) -> None:
        informer = process.client.informer(
            rooms.ROOMS, indexers={"team": lambda room: room.labels.get("team")}
        )
        process.witness(informer)
        async with informer:
            await asyncio.Event().wait()

    drafts: list[str] = []

    def make(draft: Draft) -> Mapping[str, object]:
        drafts.append(draft.key)
        return rooms.WORKLOAD.make(draft)

    def there(world: World) -> str:
        assert {key: state.value for key, state in world.history.now().items()} == {"blue-b": "5"}
        return ""

    workload = dataclasses.replace(rooms.WORKLOAD, make=make)
    actions = only(write(1), write(2, "create", "b"), write(3, "delete"), write(5, "update", "b"))
    assert simulate(actions, follow, there, workload=workload).divergence is None
    assert drafts == ["blue-a", "blue-b", "blue-b"]


def test_what_was_there_before_the_first_write_is_part_of_the_history() -> None:
    first = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "first", "namespace": "green"},
        "spec": {"text": "as ever"},
    }

    def both(world: World) -> str:
        assert {*world.history.now()} == {"green/first", "blue/a"}
        return ""

    workload = dataclasses.replace(WIDGETS, manifests=[CRD, first])
    assert simulate(only(write(1)), watch, both, workload=workload).divergence is None


# --- what cannot be


def boom(draft: Draft) -> Mapping[str, object]:
    raise ZeroDivisionError(f"no {draft.name}")


def made(**members: object) -> Callable[[Draft], Mapping[str, object]]:
    return lambda draft: {"spec": {"text": draft.text}, **members}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"manifests": []}, "nothing serves the workload's 'example.com/v1/widgets'"),
        ({"manifests": [{"kind": "Gadget"}]}, "manifest Gadget None is refused: "),
        ({"manifests": [CRD, CRD]}, '"widgets.example.com" already exists'),
        ({"manifests": [{**CRD, "spec": {}}]}, "is refused: .*spec.group: Required value"),
        ({"make": boom}, r"make\(\) failed for blue/a: ZeroDivisionError: no a"),
        ({"make": lambda _: None}, r"make\(\) failed for blue/a: ValidationError: "),
        ({"make": lambda _: {"spec": object()}}, r"make\(\) failed for blue/a: TypeError: "),
        ({"make": made(kind="Gadget")}, "for blue/a kind 'Gadget', not 'Widget'"),
        ({"make": made(apiVersion="v1")}, "for blue/a apiVersion 'v1', not 'example.com/v1'"),
        ({"make": made(metadata={"name": "b"})}, "for blue/a name 'b', not 'a'"),
        ({"make": made(metadata={"namespace": "b"})}, "for blue/a namespace 'b', not 'blue'"),
        ({"make": made(spec={})}, "for blue/a no text or number at spec.text"),
        ({"make": made(spec={"text": "1", "size": 1 << 20})}, "blue/a is refused: .*spec.size"),
    ],
)
def test_what_cannot_be_written_is_said(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        written(dataclasses.replace(WIDGETS, **changes))


def test_what_is_no_resource_is_none_from_the_start() -> None:
    with pytest.raises(UsageError, match="'widgets' is not a resource like 'v1/pods'"):
        dataclasses.replace(WIDGETS, resource="widgets")

"""Finalizers on the embedded server, in virtual time: only ours, and only on the right object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform import LeadershipLost, Object, ResourceClient
from kinform.apiserver import APIServer, faults
from kinform.errors import ConflictError, InvalidError, NotFoundError, UsageError
from kinform.meta import ObjectMeta
from kinform.runtime.finalizer import Finalizer
from kinform.testing import in_virtual_time
from kinform.testing.virtual_time import run

OURS = Finalizer("example.com/ours")
THEIRS = Finalizer("example.com/theirs")


@asynccontextmanager
async def config_maps() -> AsyncIterator[tuple[APIServer, ResourceClient[Object]]]:
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        yield server, client.resource("v1/configmaps", namespace="default")


async def made(
    maps: ResourceClient[Object], *finalizers: Finalizer, deleted: bool = False
) -> Object:
    names = [finalizer.name for finalizer in finalizers]
    obj = await maps.create({"metadata": {"name": "a", "finalizers": names}})
    return (await maps.delete("a") or obj) if deleted else obj


async def never() -> None:
    raise AssertionError("there was nothing to clean up")


@pytest.mark.parametrize(
    "name",
    ["", "ours", "/ours", "example.com/", "Example.com/x", "a/b/c", "a b/c", "a/" + "b" * 64],
)
def test_a_finalizer_is_named_within_a_domain(name: str) -> None:
    with pytest.raises(UsageError, match=r"expected a name within a domain of yours, like"):
        Finalizer(name)


@in_virtual_time
async def test_a_finalizer_is_added_once_beside_others() -> None:
    async with config_maps() as (_, maps):
        before = await made(maps, THEIRS)
        after = await OURS.ensure(maps, before)
        assert after.metadata.finalizers == (THEIRS.name, OURS.name)
        assert OURS.is_on(after)
        assert not OURS.is_on(before)
        assert await OURS.ensure(maps, after) is after
        again = await OURS.ensure(maps, before)  # as a cache may still show it
        assert again.resource_version == after.resource_version


@in_virtual_time
async def test_an_object_that_is_being_deleted_gets_no_finalizer() -> None:
    async with config_maps() as (_, maps):
        before = await made(maps, THEIRS)
        deleted = await maps.delete("a")
        assert deleted is not None
        assert await OURS.ensure(maps, deleted) is deleted
        found = await OURS.ensure(maps, before)  # as a cache may still show it
        assert found.metadata.deletion_timestamp
        assert found.metadata.finalizers == (THEIRS.name,)


@in_virtual_time
async def test_other_changes_to_the_object_are_no_conflict() -> None:
    async with config_maps() as (server, maps):
        before = await made(maps)
        await maps.patch("a", {"data": {"x": "1"}})
        server.faults.add(faults.status(500, verb="get"))  # nothing needs to be read
        after = await OURS.ensure(maps, before)
        assert after.at("data", "x") == "1"
        await maps.patch("a", {"data": {"x": "2"}})
        left = await OURS.remove(maps, after)
        assert left is not None
        assert (left.at("data", "x"), left.metadata.finalizers) == ("2", ())


@in_virtual_time
async def test_removing_leaves_other_finalizers_alone() -> None:
    async with config_maps() as (_, maps):
        before = await made(maps, OURS)
        await THEIRS.ensure(maps, before)
        left = await OURS.remove(maps, before)  # who had never heard of theirs
        assert left is not None
        assert left.metadata.finalizers == (THEIRS.name,)
        assert await OURS.remove(maps, left) is left


@in_virtual_time
async def test_a_finalizer_on_an_object_that_vanished_is_no_trouble() -> None:
    async with config_maps() as (_, maps):
        obj = await made(maps, OURS, deleted=True)
        await maps.patch("a", {"metadata": {"finalizers": None}})  # by hand
        assert await OURS.remove(maps, obj) is None
        assert await OURS.handle(maps, obj, never)
        with pytest.raises(NotFoundError):
            await THEIRS.ensure(maps, before_deletion(obj))


def before_deletion(obj: Object) -> Object:
    """Return the object as a cache may still show it, from before its deletion."""
    content = obj.to_dict()
    metadata = obj.to_dict("metadata")
    del metadata["deletionTimestamp"]
    return Object.from_dict({**content, "metadata": metadata})


@in_virtual_time
async def test_another_object_of_the_same_name_is_never_touched() -> None:
    async with config_maps() as (_, maps):
        old = await made(maps, OURS, deleted=True)
        await maps.patch("a", {"metadata": {"finalizers": None}})
        new = await made(maps, OURS)
        assert await OURS.remove(maps, old) is None
        assert await OURS.handle(maps, old, never)
        with pytest.raises(ConflictError, match="is gone; another object has its name, with uid"):
            await THEIRS.ensure(maps, before_deletion(old))
        assert (await maps.get("a")).resource_version == new.resource_version


@in_virtual_time
async def test_the_same_name_with_the_same_finalizers_is_still_another_object() -> None:
    """The list alone would not tell the two apart."""
    async with config_maps() as (_, maps):
        old = await made(maps)
        await maps.delete("a")
        new = await made(maps)
        with pytest.raises(ConflictError, match=f"uid {new.uid}"):
            await OURS.ensure(maps, old)
        assert not OURS.is_on(await maps.get("a"))


@in_virtual_time
async def test_cleaning_up_comes_before_the_object_goes() -> None:
    async with config_maps() as (_, maps):
        seen: list[Object] = []

        async def cleanup() -> None:
            seen.append(await maps.get("a"))

        alive = await made(maps, OURS)
        assert not await OURS.handle(maps, alive, never)
        deleted = await maps.delete("a")
        assert deleted is not None
        assert await OURS.handle(maps, deleted, cleanup)
        assert [each.uid for each in seen] == [deleted.uid]
        with pytest.raises(NotFoundError):
            await maps.get("a")
        assert await OURS.handle(maps, deleted, never)  # as a cache may still show it


@in_virtual_time
async def test_nothing_is_cleaned_up_twice_though_the_cache_lags() -> None:
    async with config_maps() as (_, maps):
        cached = await made(maps, OURS, THEIRS, deleted=True)
        assert await OURS.remove(maps, cached) is not None
        assert await OURS.handle(maps, cached, never)
        assert (await maps.get("a")).metadata.finalizers == (THEIRS.name,)


@in_virtual_time
async def test_others_that_are_deleted_without_our_finalizer_are_none_of_our_business() -> None:
    async with config_maps() as (server, maps):
        deleted = await made(maps, THEIRS, deleted=True)
        server.faults.add(faults.status(500))  # nothing is asked
        assert await OURS.handle(maps, deleted, never)


@in_virtual_time
async def test_the_finalizer_stays_if_cleaning_up_fails_or_is_cancelled() -> None:
    async with config_maps() as (_, maps):
        deleted = await made(maps, OURS, deleted=True)

        async def fails() -> None:
            raise OSError("the bucket is not empty")

        async def hangs() -> None:
            await asyncio.sleep(3600)

        with pytest.raises(OSError, match="not empty"):
            await OURS.handle(maps, deleted, fails)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await OURS.handle(maps, deleted, hangs)
        with pytest.raises(UsageError, match="cleanup answered NoneType; it must be an async"):
            await OURS.handle(maps, deleted, lambda: None)  # type: ignore[arg-type,return-value] # pyright: ignore[reportArgumentType, reportUnknownLambdaType] - users err
        assert OURS.is_on(await maps.get("a"))


@in_virtual_time
async def test_a_refusal_that_is_no_conflict_is_told_at_once() -> None:
    async with config_maps() as (server, maps):
        obj = await made(maps)
        server.faults.add(faults.status(422, verb="patch", message="a webhook says no"))
        with pytest.raises(InvalidError, match="a webhook says no"):
            await OURS.ensure(maps, obj)


@in_virtual_time
async def test_endless_conflicts_are_given_up_after_a_few_tries() -> None:
    async with config_maps() as (server, maps):
        obj = await made(maps, OURS)
        server.faults.add(faults.status(409, verb="patch"))
        with pytest.raises(ConflictError, match="finalizers of default/a kept changing, 5 times"):
            await THEIRS.ensure(maps, obj)
        with pytest.raises(ConflictError, match="kept changing"):
            await OURS.remove(maps, obj)


@in_virtual_time
async def test_who_leads_no_more_writes_no_finalizer() -> None:
    def guard() -> None:
        raise LeadershipLost("no longer ours")

    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        obj = await made(maps)
        guarded = client.guarded(guard).resource("v1/configmaps", namespace="default")
        with pytest.raises(LeadershipLost):
            await OURS.ensure(guarded, obj)
        assert not OURS.is_on(await maps.get("a"))


class ConfigMap(msgspec.Struct):
    metadata: ObjectMeta


class Data(msgspec.Struct):
    data: dict[str, str] | None = None


@in_virtual_time
async def test_models_that_declare_their_metadata_will_do() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource("v1/configmaps", model=ConfigMap, namespace="default")
        obj = await maps.create({"metadata": {"name": "a"}})
        with_it = await OURS.ensure(maps, obj)
        assert with_it.metadata.finalizers == (OURS.name,)
        others = client.resource("v1/configmaps", model=Data, namespace="default")
        with pytest.raises(UsageError, match="Data has no metadata"):
            await OURS.ensure(others, Data())
        with pytest.raises(UsageError, match="has no uid"):
            await OURS.ensure(maps, ConfigMap(ObjectMeta(name="a")))


STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["ensure", "remove"])), max_size=8)


@settings(max_examples=30)
@given(STEPS, st.integers(0, 2**16))
def test_writers_with_old_caches_never_lose_or_keep_anothers_finalizer(
    steps: list[tuple[int, str]], seed: int
) -> None:
    """All at once, all from the same first state: each finds its own result at the end."""
    run(check_writers(dict(steps), seed))


async def check_writers(actions: dict[int, str], seed: int) -> None:
    finalizers = [Finalizer(f"example.com/f{number}") for number in range(4)]
    async with APIServer(port=None, seed=seed) as server, server.connect() as client:
        maps = client.resource("v1/configmaps", namespace="default")
        first = await made(maps, *finalizers[:2])
        server.faults.add(faults.latency(0.001, jitter=0.02))

        async def writer(number: int, action: str) -> None:
            finalizer = finalizers[number]
            await (finalizer.ensure if action == "ensure" else finalizer.remove)(maps, first)

        async with asyncio.TaskGroup() as group:
            for number, action in actions.items():
                group.create_task(writer(number, action))
        expected = {
            finalizer.name
            for number, finalizer in enumerate(finalizers)
            if actions.get(number, "ensure" if number < 2 else "remove") == "ensure"
        }
        found = (await maps.get("a")).metadata.finalizers
        assert sorted(found) == sorted(expected)

"""Controllers on an embedded server, in virtual time."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kinform
from kinform.apiserver import faults
from kinform.runtime.controller.caches import Caches
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.controller.reconciler import Result, is_async
from kinform.runtime.controller.statistics import Outcome
from kinform.runtime.manager import Manager
from kinform.runtime.map_functions import to_label
from kinform.runtime.predicate import all_of, generation_changed, labels_changed
from kinform.runtime.source.kind import KindSource
from kinform.runtime.source.triggers import TimerSource
from kinform.testing import in_virtual_time, virtual_time
from kinform.workqueue import CauseKind
from tests.runtime.support_controllers import (
    MAPS,
    SECRETS,
    Log,
    controller,
    key,
    named,
    running,
    served,
)

# --- what is reconciled -----------------------------------------------------------------------


@in_virtual_time
async def test_what_was_there_is_reconciled_once_all_of_it_is_in_the_cache() -> None:
    seen: list[int] = []

    async def count(ctx: Context, _name: kinform.ObjectName) -> None:
        seen.append(len(ctx.lister(MAPS).list()))

    log = Log(count)
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        for number in range(50):
            await maps.create(named(f"m{number}"))
        async with running(client, controller(log)):
            await log.called(50)
    assert sorted(set(log.names)) == sorted(f"m{number}" for number in range(50))
    assert set(seen) == {50}


@in_virtual_time
async def test_each_change_leads_to_a_reconcile_that_sees_it_and_knows_why() -> None:
    log = Log()
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        async with running(client, controller(log)) as manager:
            await manager.wait_warm(30)
            made = await maps.create(named("a"))
            await log.called(1)
            changed = await maps.patch("a", {"data": {"k": "1"}})
            await log.called(2)
            await maps.delete("a")
            await log.called(3)
    (added,), (updated,), (deleted,) = (tuple(ctx.causes) for ctx in log.contexts)
    assert (added.kind, added.new_version) == (CauseKind.ADDED, made.resource_version)
    assert (updated.kind, updated.old_version, updated.new_version) == (
        CauseKind.UPDATED,
        made.resource_version,
        changed.resource_version,
    )
    assert (deleted.kind, deleted.object, deleted.source) == (CauseKind.DELETED, key("a"), MAPS)


@in_virtual_time
async def test_an_owner_hears_of_what_it_owns_also_of_what_it_no_longer_owns() -> None:
    log = Log()
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        secrets = client.resource(SECRETS, namespace="default")
        owner = await maps.create(named("owner"))
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner.uid,
            "controller": True,
        }
        async with running(client, controller(log, owns=[SECRETS])):
            await log.called(1)
            await secrets.create(named("child", ownerReferences=[reference]))
            await log.called(2)
            await secrets.patch("child", {"metadata": {"ownerReferences": None}})
            await log.called(3)
            await secrets.patch("child", {"metadata": {"labels": {"orphan": "yes"}}})
            await asyncio.sleep(60)
    assert log.names == ["owner"] * 3
    assert [cause.source for cause in log.contexts[1].causes] == [SECRETS]


@in_virtual_time
async def test_what_is_watched_means_what_its_map_says() -> None:
    log = Log()
    source = KindSource(SECRETS, map=to_label("for"))
    async with served() as (_, client):
        secrets = client.resource(SECRETS, namespace="default")
        async with running(client, controller(log, watches=[source])) as manager:
            await manager.wait_warm(30)
            await secrets.create(named("s", labels={"for": "one"}))
            await log.called(1)
            await secrets.patch("s", {"metadata": {"labels": {"for": "two"}}})
            await log.called(3)
    assert log.names[0] == "one"
    assert sorted(log.names[1:]) == ["one", "two"]  # who lost it, and who got it


@in_virtual_time
async def test_predicates_keep_events_out() -> None:
    log = Log()
    source = KindSource(MAPS, namespace="default", when=all_of(labels_changed, generation_changed))
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        async with running(client, controller(log, for_=source)):
            await maps.create(named("a"))
            await log.called(1)
            await maps.patch("a", {"data": {"k": "1"}})  # no label, so nothing
            await asyncio.sleep(60)
            await maps.patch("a", {"metadata": {"labels": {"x": "1"}}})
            await log.called(2)
    assert [cause.kind for cause in log.contexts[1].causes] == [CauseKind.UPDATED]


@in_virtual_time
async def test_two_selections_of_one_kind_are_two_caches_and_one_must_say_which() -> None:
    seen: list[object] = []
    chosen = KindSource(MAPS, namespace="default", label_selector="app=web")
    others = KindSource(MAPS, namespace="default", label_selector="app=db", map=lambda _: key("w"))

    async def count(ctx: Context, _name: kinform.ObjectName) -> None:
        seen.append([len(ctx.lister(each).list()) for each in (chosen, others)])
        with pytest.raises(kinform.UsageError, match=r"2 caches of v1/configmaps.*say which"):
            ctx.lister(MAPS)
        with pytest.raises(kinform.UsageError, match="is none of test's sources"):
            ctx.lister(KindSource(MAPS))

    log = Log(count)
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("w", labels={"app": "web"}))
        async with running(client, controller(log, for_=chosen, watches=[others])):
            await log.called(1)
            await maps.create(named("d", labels={"app": "db"}))
            await log.called(2)
    assert log.names == ["w", "w"]
    assert seen == [[1, 0], [1, 1]]


@in_virtual_time
async def test_a_lookup_finds_in_the_caches_what_an_object_means() -> None:
    def uses(config: kinform.Object) -> str | None:
        secret: str | None = config.at("data", "secret")
        return secret

    def users(secret: kinform.Object, caches: Caches) -> list[kinform.ObjectName]:
        return [config.key for config in caches.lister(MAPS).by_index("secret", secret.name)]

    log = Log()
    configs = KindSource(MAPS, namespace="default", indexers={"secret": uses})
    secrets = KindSource(SECRETS, namespace="default", lookup=users)
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        for name, secret in (("a", "one"), ("b", "one"), ("c", "two")):
            await maps.create({**named(name), "data": {"secret": secret}})
        async with running(client, controller(log, for_=configs, watches=[secrets])):
            await log.called(3)
            await client.resource(SECRETS, namespace="default").create(named("one"))
            await log.called(5)
    assert sorted(log.names[3:]) == ["a", "b"]


@in_virtual_time
async def test_a_kind_that_is_not_installed_yet_is_waited_for() -> None:
    log = Log()
    widgets = "example.com/v1/widgets"
    async with served() as (_, client):
        one = controller(log, for_=widgets, owns=[MAPS])
        async with running(client, one) as manager:
            with pytest.raises(
                TimeoutError, match=r"not ready within 30 s: test; .*UnknownResource"
            ):
                await manager.wait_warm(30)
            await client.resource("customresourcedefinitions").create(widget_definition())
            await client.resource(widgets, namespace="default").create(named("w"))
            await log.called(1)
            assert one.is_warm
    assert log.names == ["w"]


def widget_definition() -> dict[str, object]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


# --- how it ends ------------------------------------------------------------------------------


@in_virtual_time
async def test_a_failure_is_tried_again_later_and_later_until_it_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times: list[float] = []

    async def fail(ctx: Context, _name: kinform.ObjectName) -> None:
        times.append(asyncio.get_running_loop().time())
        if ctx.attempt < 12:
            raise ValueError("not yet")

    log, one = Log(fail), None
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        one = controller(log)
        async with running(client, one):
            await log.called(13)
            await asyncio.sleep(3600)
        outcomes = one.statistics().outcomes
        assert one.queue.num_requeues(key("a")) == 0
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits == pytest.approx([0.005 * 2**n for n in range(12)], abs=1e-3)
    assert [ctx.attempt for ctx in log.contexts] == list(range(13))
    assert (outcomes[Outcome.ERROR], outcomes[Outcome.SUCCESS]) == (12, 1)
    logged = [record for record in caplog.records if "default/a" in record.message]
    assert len(logged) == 12
    assert [bool(record.exc_info) for record in logged] == [True] + [False] * 11
    assert (
        logged[0].message
        == "default/a: reconcile failed (attempt 1), will be retried: ValueError: not yet"
    )


@in_virtual_time
async def test_what_is_hopeless_is_not_tried_again_before_something_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(_ctx: Context, _name: kinform.ObjectName) -> None:
        raise kinform.TerminalError("spec.size is negative")

    log = Log(fail)
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("a"))
        async with running(client, controller(log)):
            await log.called(1)
            await asyncio.sleep(7200)
            assert len(log.names) == 1
            await maps.patch("a", {"data": {"k": "1"}})
            await log.called(2)
    assert (
        "terminal error, not retried until something changes: spec.size is negative" in caplog.text
    )


@in_virtual_time
async def test_it_comes_again_when_it_asks_for_that() -> None:
    times: list[float] = []

    async def again(_ctx: Context, _name: kinform.ObjectName) -> Result:
        times.append(asyncio.get_running_loop().time())
        return Result(requeue_after=90)

    log = Log(again)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(4)
    assert [b - a for a, b in pairwise(times)] == pytest.approx([90.0] * 3)
    assert [cause.kind for cause in log.contexts[1].causes] == [CauseKind.TIMER]


@in_virtual_time
async def test_what_takes_too_long_is_cancelled_and_tried_again() -> None:
    ended: list[str] = []

    async def hang(ctx: Context, _name: kinform.ObjectName) -> None:
        if ctx.attempt:
            return
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    log = Log(hang)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        one = controller(log, timeout=30)
        async with running(client, one):
            await log.called(2)
            await asyncio.sleep(1)
        assert one.statistics().outcomes[Outcome.TIMEOUT] == 1
    assert ended == ["cancelled"]


@in_virtual_time
async def test_a_time_out_of_its_own_is_a_failure_like_any_other() -> None:
    async def fail(ctx: Context, _name: kinform.ObjectName) -> None:
        if not ctx.attempt:
            async with asyncio.timeout(1):
                await asyncio.Event().wait()

    log = Log(fail)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        one = controller(log, timeout=30)
        async with running(client, one):
            await log.called(2)
        outcomes = one.statistics().outcomes
    assert (outcomes[Outcome.TIMEOUT], outcomes[Outcome.ERROR]) == (0, 1)


@in_virtual_time
async def test_what_it_awaits_may_be_cancelled_without_ending_the_worker() -> None:
    async def fail(ctx: Context, _name: kinform.ObjectName) -> None:
        if not ctx.attempt:
            inner = asyncio.get_running_loop().create_task(asyncio.sleep(10))
            inner.cancel()
            await inner

    log = Log(fail)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(2)


@in_virtual_time
async def test_a_reconcile_that_hangs_occupies_one_worker_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def hang(_ctx: Context, name: kinform.ObjectName) -> None:
        if name.name == "bad":
            await asyncio.Event().wait()

    log = Log(hang)
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("bad"))
        one = controller(log, workers=2)
        async with running(client, one):
            await log.called(1)
            for number in range(20):
                await maps.create(named(f"m{number}"))
            await log.called(21)
            await asyncio.sleep(1000)
            assert one.statistics().active == 1
            await maps.patch("bad", {"data": {"k": "1"}})  # and never twice at once
            await asyncio.sleep(10)
    logged = [record.message for record in caplog.records if "slow reconcile" in record.message]
    assert [text.split()[-2] for text in logged] == ["60", "120", "240", "480", "960"]


@in_virtual_time
async def test_what_it_returns_by_mistake_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def wrong(ctx: Context, _name: kinform.ObjectName) -> object:
        return "done" if not ctx.attempt else None

    log = Log(wrong)  # type: ignore[arg-type]
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(2)
    assert "the reconcile of test returned str; expected None or a Result" in caplog.text


@in_virtual_time
async def test_a_conflict_is_no_riddle(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def stale(ctx: Context, name: kinform.ObjectName) -> None:
        if not ctx.attempt:
            maps = ctx.client.resource(MAPS)
            patch = {"metadata": {"resourceVersion": "1"}, "data": {"k": "1"}}
            await maps.patch(name, patch)

    log = Log(stale)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(2)
    (logged,) = [record for record in caplog.records if "will be retried" in record.message]
    assert (logged.levelno, logged.exc_info) == (logging.INFO, None)
    assert "ConflictError" in logged.message


class Fatal(BaseException):
    """Like ``SystemExit``, which asyncio itself takes to end the loop."""


@in_virtual_time
async def test_what_must_end_the_process_ends_the_manager() -> None:
    async def leave(_ctx: Context, _name: kinform.ObjectName) -> None:
        raise Fatal

    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with Manager(client, signals=False) as manager:
            manager.add(controller(leave))
            with pytest.raises(Fatal):
                await manager.run()
            with pytest.raises(Fatal):
                await manager.wait_warm()


# --- reading and writing ----------------------------------------------------------------------


@in_virtual_time
async def test_it_reads_its_own_writes_when_it_waits_for_them() -> None:
    seen: list[object] = []

    async def write(ctx: Context, name: kinform.ObjectName) -> None:
        maps, lister = ctx.client.resource(MAPS), ctx.lister(MAPS)
        cached = lister.get(name)
        assert cached is not None
        if cached.at("data", "n"):
            return
        written = await maps.patch(name, {"data": {"n": "1"}})
        await ctx.wait_for_cache(written)
        now = lister.get(name)
        assert now is not None
        seen.append(now.at("data", "n"))

    log = Log(write)
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        server.lag(0)
        async with running(client, controller(log)):
            await log.called(2)  # its own write is an event like any other
    assert seen == ["1"]


@in_virtual_time
async def test_a_write_that_does_not_come_back_is_told_with_what_goes_wrong() -> None:
    errors: list[str] = []

    async def write(ctx: Context, name: kinform.ObjectName) -> None:
        written = await ctx.client.resource(MAPS).patch(name, {"data": {"n": "1"}})
        try:
            await ctx.wait_for_cache(written, 5)
        except TimeoutError as exc:
            errors.append(str(exc))

    log = Log(write)
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        server.faults.add(faults.close_watch(after_events=0, verb="watch"))
        async with running(client, controller(log)):
            await log.called(1)
            await asyncio.sleep(30)
    assert errors
    assert "v1/configmaps in default has not seen version" in errors[0]


@in_virtual_time
async def test_waiting_for_a_kind_without_a_cache_is_a_mistake_that_is_named() -> None:
    errors: list[str] = []

    async def write(ctx: Context, _name: kinform.ObjectName) -> None:
        secret = await ctx.client.resource(SECRETS, namespace="default").create(named("s"))
        try:
            await ctx.wait_for_cache(secret)
        except kinform.UsageError as exc:
            errors.append(str(exc))
        try:
            ctx.lister(SECRETS)
        except kinform.UsageError as exc:
            errors.append(str(exc))

    log = Log(write)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(1)
            await asyncio.sleep(5)
    assert errors == [
        "test: no cache receives Secret default/s; it has v1/configmaps",
        "test: no cache of v1/secrets; it has v1/configmaps. Add it to owns or watches",
    ]


@in_virtual_time
async def test_what_it_applies_is_owned_and_its_events_are_recorded() -> None:
    async def make(ctx: Context, name: kinform.ObjectName) -> None:
        owner = ctx.lister(MAPS).get(name)
        if owner is None or owner.metadata.owner_references:
            return
        secret = {"apiVersion": "v1", "kind": "Secret", **named(f"{name.name}-made")}
        await ctx.apply(secret, owner=owner)
        ctx.event(owner, "Normal", "Made", "a secret was made")

    log = Log(make)
    async with served() as (_, client):
        owner = await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log, owns=[SECRETS])):
            await log.called(2)
            await asyncio.sleep(30)
        secret = await client.resource(SECRETS, namespace="default").get("a-made")
        (event,) = await client.resource("v1/events", namespace="default").list()
    (reference,) = secret.metadata.owner_references
    assert (reference.uid, reference.kind, reference.controller) == (owner.uid, "ConfigMap", True)
    managers = [field["manager"] for field in secret.at("metadata", "managedFields")]
    assert managers == ["test"]
    assert (event.at("reason"), event.at("source", "component")) == ("Made", "test")
    assert event.at("involvedObject", "uid") == owner.uid


# --- never twice at once ----------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.floats(0, 3), st.booleans()), min_size=1, max_size=30
    ),
    workers=st.integers(1, 4),
)
def test_no_change_is_missed_and_no_name_is_worked_on_twice_at_once(
    steps: Sequence[tuple[int, float, bool]], workers: int
) -> None:
    """After the last change each object was reconciled once more, and saw that change."""

    async def scenario() -> None:
        seen: dict[str, str] = {}
        failing = {number for number, (_, _, fails) in enumerate(steps) if fails}
        calls = 0

        async def work(ctx: Context, name: kinform.ObjectName) -> None:
            nonlocal calls
            calls += 1
            number = calls
            cached = ctx.lister(MAPS).get(name)
            version = "" if cached is None else cached.resource_version
            await asyncio.sleep(steps[number % len(steps)][1])
            if number in failing:
                raise ValueError
            seen[name.name] = version

        log = Log(work)
        async with served() as (_, client):
            maps = client.resource(MAPS, namespace="default")
            for number in range(4):
                await maps.create(named(f"m{number}"))
            async with running(client, controller(log, workers=workers)):
                for which, pause, _ in steps:
                    await asyncio.sleep(pause)
                    await maps.patch(f"m{which}", {"data": {"at": f"{pause}"}})
                await asyncio.sleep(600)
            assert seen == {one.name: one.resource_version for one in await maps.list()}

    virtual_time.run(scenario())


# --- mistakes ---------------------------------------------------------------------------------


async def nothing(_ctx: Context, _name: kinform.ObjectName) -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "no controller can be called ''"),
        ({"reconcile": 1}, "reconcile is of type int; expected a function"),
        ({"reconcile": lambda name: name}, r"with a Context and an ObjectName, and takes \(name\)"),
        ({"workers": 0}, "workers is 0; expected at least 1"),
        ({"timeout": 0.0}, "timeout is 0.0; expected seconds"),
        ({"owns": "v1/pods"}, r"owns is 'v1/pods'; expected a list, perhaps \['v1/pods'\]"),
        ({"watches": ["v1/pods"]}, "watches has 'v1/pods', which is not a source"),
        ({"watches": [KindSource("v1/pods")]}, "watches has v1/pods without a map"),
        ({"for_": "not a kind"}, "'not a kind' names no resource"),
        ({"for_": 7}, "7 names no kind; give 'v1/pods', a model or a KindSource"),
    ],
)
def test_mistakes_are_named_at_once(options: dict[str, object], message: str) -> None:
    usual: dict[str, object] = {"name": "test", "reconcile": nothing, "for_": MAPS}
    with pytest.raises(kinform.UsageError, match=message):
        Controller(**{**usual, **options})  # type: ignore[arg-type]


def test_what_a_source_is_made_of_is_checked() -> None:
    async def wait(_obj: kinform.Object) -> None: ...

    with pytest.raises(kinform.UsageError, match="map is an async function"):
        KindSource(MAPS, map=wait)  # type: ignore[arg-type]
    with pytest.raises(kinform.UsageError, match="when is 1; expected a function"):
        KindSource(MAPS, when=1)  # type: ignore[call-overload]
    with pytest.raises(kinform.UsageError, match="give map or lookup, not both"):
        KindSource(MAPS, map=lambda obj: obj.key, lookup=lambda obj, _: obj.key)


@pytest.mark.parametrize("after", [0, -1.0, float("nan"), float("inf")])
def test_a_result_must_say_when(after: float) -> None:
    with pytest.raises(kinform.UsageError, match="with backoff, raise an error"):
        Result(requeue_after=after)


@in_virtual_time
async def test_a_controller_runs_once() -> None:
    async with served() as (_, client):
        one = controller(nothing, watches=[TimerSource(10, [key("x")])])
        async with running(client, one):
            pass
        with pytest.raises(kinform.UsageError, match="controller test has run already"):
            async with running(client, one):
                pytest.fail("it began")


# --- models -----------------------------------------------------------------------------------


class Config(msgspec.Struct):
    __resource__ = MAPS
    metadata: kinform.ObjectMeta
    data: dict[str, str] = {}


@in_virtual_time
async def test_a_controller_may_read_its_objects_as_a_model() -> None:
    seen: list[object] = []

    async def look(ctx: Context, name: kinform.ObjectName) -> None:
        found = ctx.lister(Config).get(name)
        assert found is not None
        seen.append(found.data)
        seen.append(list(ctx.lister(Config).informers))
        with pytest.raises(kinform.UsageError, match=r"no cache of v1/configmaps; it has .*Config"):
            ctx.lister(MAPS)
        with pytest.raises(kinform.UsageError, match="no cache of v1/secrets as Config"):
            ctx.lister(SECRETS, model=Config)
        with pytest.raises(kinform.UsageError, match="under virtual time a plain function"):
            ctx.wait(asyncio.sleep(1))

    log = Log(look)
    source = KindSource(Config, namespace="default", when=generation_changed)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create({**named("a"), "data": {"k": "v"}})
        async with running(client, controller(log, for_=source)) as manager:
            await log.called(1)
            (one,) = manager.controllers
            assert repr(one) == "<Controller test for v1/configmaps>"
    assert seen == [{"k": "v"}, ["default"]]


@pytest.mark.parametrize("reconcile", [functools.partial(nothing), Log()])
@in_virtual_time
async def test_what_is_async_is_known_whatever_it_is_wrapped_in(reconcile: object) -> None:
    assert is_async(reconcile)  # type: ignore[arg-type]
    assert not is_async(lambda _ctx, _name: None)


@in_virtual_time
async def test_a_hopeless_error_in_a_task_group_is_hopeless(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise kinform.TerminalError

    async def grouped(_ctx: Context, _name: kinform.ObjectName) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    log = Log(grouped)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await asyncio.sleep(3600)
    assert log.names == ["a"]
    assert "terminal error, not retried until something changes: TerminalError" in caplog.text


@in_virtual_time
async def test_a_predicate_that_fails_lets_the_event_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_event: object) -> bool:
        raise KeyError("spec")

    log = Log()
    source = KindSource(MAPS, namespace="default", when=fail)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log, for_=source)):
            await log.called(1)
    assert "v1/configmaps: predicate failed, the event of default/a passes" in caplog.text


async def yielding(_ctx: object, _name: object) -> AsyncIterator[None]:
    yield


def test_a_reconcile_with_a_yield_is_refused_because_it_would_never_run() -> None:
    with pytest.raises(kinform.UsageError, match="reconcile is an async generator function"):
        kinform.Controller("c", yielding, for_=MAPS)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["owner", "namespace"])
def test_the_name_of_a_built_in_index_is_refused_where_it_is_given(name: str) -> None:
    indexers: dict[str, Callable[[kinform.Object], str]] = {name: lambda obj: obj.name}
    with pytest.raises(kinform.UsageError, match=f"an index named '{name}' already"):
        kinform.KindSource(MAPS, indexers=indexers)
    client = kinform.connect("http://127.0.0.1:1")
    with pytest.raises(kinform.UsageError, match=f"an index named '{name}' already"):
        kinform.SharedInformerFactory(client, indexers=indexers)
    with pytest.raises(kinform.UsageError, match=f"an index named '{name}' already"):
        kinform.SharedInformerFactory(client).configure(MAPS, indexers=indexers)

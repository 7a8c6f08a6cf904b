"""What a type checker sees of work queues and controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import assert_type

import msgspec

import kinform
from kinform import (
    ChannelSource,
    Context,
    KindSource,
    ObjectName,
    Result,
    StreamSource,
    TimerSource,
)
from kinform.cache import InformerGroup
from kinform.runtime import any_of, generation_changed, labels_changed, to_label
from kinform.workqueue import Cause, Causes, Drained, FairOrder, Priority


class Widget(msgspec.Struct):
    __resource__ = "example.com/v1/widgets"
    metadata: kinform.ObjectMeta


async def work(queue: kinform.WorkQueue[ObjectName]) -> None:
    queue.add(ObjectName("default", "a"), priority=Priority.HIGH)
    queue.add("default/a")  # type: ignore[arg-type]
    assert_type(await queue.get(), ObjectName)
    async with queue.processing() as key:
        assert_type(key, ObjectName)
        assert_type(queue.causes(key), Causes)
    assert_type(await queue.shut_down_with_drain(10), Drained[ObjectName])


def any_key() -> None:
    numbers: kinform.WorkQueue[int] = kinform.WorkQueue(order=FairOrder())
    numbers.add(1)


async def reconcile(ctx: Context, name: ObjectName) -> Result | None:
    assert_type(ctx.lister("v1/pods").get(name), kinform.Object | None)
    assert_type(ctx.lister(Widget), InformerGroup[Widget])
    assert_type(ctx.lister("v1/pods", model=Widget).list(), list[Widget])
    for cause in ctx.causes:
        assert_type(cause, Cause)
    pod = await ctx.client.resource("v1/pods").get(name)
    await ctx.wait_for_cache(pod)
    ctx.event(pod, "Normal", "Seen", "it was seen")
    ctx.event(pod, "Bad", "Seen", "it was seen")  # type: ignore[arg-type]
    assert_type(await ctx.apply({"kind": "Secret"}, owner=pod), kinform.Object)
    return Result(requeue_after=60)


def in_a_thread(ctx: Context, name: ObjectName) -> None:
    assert_type(ctx.wait(ctx.client.resource("v1/pods").get(name)), kinform.Object)


def wrong(name: ObjectName) -> None: ...


def owner_of(pod: kinform.Object) -> ObjectName | None:
    return pod.key


def names_of(widget: Widget) -> Iterable[ObjectName]:
    return [widget.metadata.key]


async def items() -> AsyncIterator[int]:
    yield 1


def controllers() -> None:
    kinform.Controller("plain", reconcile, for_="v1/pods")
    kinform.Controller("thread", in_a_thread, for_=Widget, owns=["v1/pods", Widget])
    kinform.Controller("wrong", wrong, for_="v1/pods")  # type: ignore[arg-type]
    assert_type(KindSource("v1/pods"), KindSource[kinform.Object])
    assert_type(KindSource(Widget), KindSource[Widget])
    assert_type(KindSource("v1/pods", model=Widget), KindSource[Widget])
    KindSource("v1/pods", map=names_of)  # type: ignore[arg-type]
    kinform.Controller(
        "all",
        reconcile,
        for_=KindSource(Widget, when=any_of(generation_changed, labels_changed)),
        owns=[KindSource("v1/pods", label_selector="app=web")],
        watches=[
            KindSource("v1/secrets", map=to_label("example.com/widget")),
            KindSource("v1/pods", map=owner_of),
            KindSource(Widget, map=names_of),
            TimerSource(60, [ObjectName("", "cluster")]),
            StreamSource(items, lambda number: ObjectName("", str(number))),
            ChannelSource(),
        ],
    )


async def managed(client: kinform.Client) -> None:
    election = kinform.LeaderElection(lease="widgets", namespace="ops")
    async with kinform.Manager(client, leader_election=election) as manager:
        assert_type(manager, kinform.Manager)
        elector = manager.elector
        assert elector is not None
        assert_type(elector.is_leader, bool)
        await manager.run()


async def elected(elector: kinform.LeaderElector) -> None:
    async def lead() -> int:
        return 1

    assert_type(await elector.run(lead), int)

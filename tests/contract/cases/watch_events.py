"""The events of a watch, their order and their chunks."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, EVERYWHERE, NAMESPACES, PODS, SECRETS, rv
from tests.contract.exchange import Json
from tests.contract.session import Session


async def start(s: Session, path: str = CONFIGMAPS) -> str:
    """Return a version from which nothing of this case has happened yet."""
    return rv(await s.look(path))


@case("watch", "one event per chunk: added, modified, deleted with the last state")
async def live(s: Session) -> None:
    begin = await start(s)
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=begin, chunks=True) as watch:
        await s.configmap("a")
        await watch.take(1)
        await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
        await watch.take(1)
        await s.remove(f"{CONFIGMAPS}/a")
        await watch.take(1)


@case("watch", "the past comes as it happened")
async def replay(s: Session) -> None:
    begin = await start(s)
    for name in ("b", "a"):
        await s.configmap(name)
    await s.change(f"{CONFIGMAPS}/b", {"data": {"k": "v"}})
    await s.remove(f"{CONFIGMAPS}/a")
    await s.configmap("a")
    query: Json = {"watch": "true", "resourceVersion": begin, "timeoutSeconds": 1}
    await s.watched(CONFIGMAPS, **query)


@case("watch", "a large object is one chunk too")
async def large(s: Session) -> None:
    begin = await start(s)
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=begin, chunks=True) as watch:
        await s.make(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 100_000}})
        await watch.take(1)
        await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "small"}})
        await watch.take(1)
    watch.events[0]["object"]["data"] = "<large>"


@each(
    "watch",
    "the first state comes by key, not by age",
    {"unset": {"version": None}, "zero": {"version": "0"}},
)
async def first_state(s: Session, *, version: str | None) -> None:
    for name in ("c", "a-b", "a", "b"):
        made = await s.configmap(name)
    await s.settle(CONFIGMAPS, rv(made))
    query: Json = {"watch": "true", "resourceVersion": version, "timeoutSeconds": 1}
    await s.watched(CONFIGMAPS, **query)


@case("watch", "many events stay in order")
async def many(s: Session) -> None:
    begin = await start(s)
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=begin) as watch:
        for number in range(20):
            await s.configmap(f"c{number % 7}-{number}")
        await watch.take(20)


@case("watch", "two watches bring the same")
async def two(s: Session) -> None:
    begin = await start(s)
    query: Json = {"watch": "true", "resourceVersion": begin}
    async with s.watch(CONFIGMAPS, **query) as one, s.watch(CONFIGMAPS, **query) as other:
        await s.configmap("a")
        await s.remove(f"{CONFIGMAPS}/a")
        await one.take(2)
        await other.take(2)


@case("watch", "kinds do not mix")
async def kinds(s: Session) -> None:
    begin = await start(s)
    query: Json = {"watch": "true", "resourceVersion": begin}
    async with s.watch(CONFIGMAPS, **query) as maps, s.watch(SECRETS, **query) as secrets:
        await s.configmap("a")
        await s.make(SECRETS, {"metadata": {"name": "a"}})
        await s.configmap("b")
        await maps.take(2)
        await secrets.take(1)


@case("watch", "across namespaces events come as they happened")
async def everywhere(s: Session) -> None:
    others = [await s.namespace(name) for name in ("b", "a")]
    begin = await start(s)
    query: Json = {"watch": "true", "resourceVersion": begin, "labelSelector": f"case={s.ident}"}
    async with s.watch(EVERYWHERE, **query) as watch:
        for other in (*others, s.ns):
            await s.configmap("x", ns=other, case=s.ident)
        await watch.take(3)


@case("watch", "the first state across namespaces comes by key")
async def everywhere_first_state(s: Session) -> None:
    for name in ("b", "a", "a-b"):
        made = await s.configmap("x", ns=await s.namespace(name), case=s.ident)
    await s.settle(CONFIGMAPS, rv(made))
    query: Json = {"watch": "true", "timeoutSeconds": 1, "labelSelector": f"case={s.ident}"}
    await s.watched(EVERYWHERE, **query)
    await s.watched(EVERYWHERE, **query, resourceVersion="0")


@case("watch", "another namespace is not seen")
async def other_namespace(s: Session) -> None:
    other = await s.namespace("other")
    begin = await start(s)
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=begin) as watch:
        await s.configmap("a", ns=other)
        await s.configmap("b")
        await watch.take(1)


@case("watch", "an unknown namespace is watched in silence")
async def unknown_namespace(s: Session) -> None:
    path = f"/api/v1/namespaces/{s.unique('none')}/configmaps"
    await s.watched(path, watch="true", timeoutSeconds=1)


@case("watch", "a write that changes nothing brings nothing")
async def no_change(s: Session) -> None:
    made = await s.configmap("a", x="1")
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=rv(made)) as watch:
        await s.change(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"x": "1"}}})
        await s.change(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"x": "2"}}})
        await watch.take(1)


@case("watch", "finalizers: deletion is a modification, the end comes with the last finalizer")
async def finalizers(s: Session) -> None:
    held = {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}}
    made = await s.make(CONFIGMAPS, held)
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=rv(made)) as watch:
        await s.remove(f"{CONFIGMAPS}/a")
        await s.change(f"{CONFIGMAPS}/a", {"metadata": {"finalizers": None}})
        await watch.take(2)


@case("watch", "a name used again is another object")
async def again(s: Session) -> None:
    made = await s.configmap("a")
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=rv(made)) as watch:
        await s.remove(f"{CONFIGMAPS}/a")
        await s.configmap("a")
        await watch.take(2)


@case("watch", "a deleted collection comes one by one")
async def collection(s: Session) -> None:
    for name in ("b", "a", "c"):
        made = await s.configmap(name)
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=rv(made)) as watch:
        await s.remove(CONFIGMAPS)
        await watch.take(3)


@case("watch", "a status is a modification like any other")
async def status(s: Session) -> None:
    spec = {"containers": [{"name": "c", "image": "example.com/c"}]}
    made = await s.make(PODS, {"metadata": {"name": "p"}, "spec": spec})
    async with s.watch(PODS, watch="true", resourceVersion=rv(made)) as watch:
        await s.change(f"{PODS}/p/status", {"status": {"phase": "Running"}})
        await watch.take(1)


@case("watch", "a deleted pod without a node is gone at once; with one it lingers")
async def pod_grace(s: Session) -> None:
    spec = {"containers": [{"name": "c", "image": "example.com/c"}]}
    await s.make(PODS, {"metadata": {"name": "free"}, "spec": spec})
    made = await s.make(PODS, {"metadata": {"name": "bound"}, "spec": {**spec, "nodeName": "n"}})
    async with s.watch(PODS, watch="true", resourceVersion=rv(made)) as watch:
        await s.remove(f"{PODS}/free")
        await s.remove(f"{PODS}/bound")
        await watch.take(3)
        await s.remove(f"{PODS}/bound?gracePeriodSeconds=0")
        await watch.take(1)


@case("watch", "a namespace of its own")
async def namespaces(s: Session) -> None:
    begin = await start(s, NAMESPACES)
    query: Json = {"watch": "true", "resourceVersion": begin, "labelSelector": f"case={s.ident}"}
    async with s.watch(NAMESPACES, **query) as watch:
        await s.namespace("a", case=s.ident)
        await watch.take(1)


@case("watch", "custom resources: kind and apiVersion are theirs")
async def custom(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    begin = await start(s, path)
    async with s.watch(path, watch="true", resourceVersion=begin, chunks=True) as watch:
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "spec": {"size": 1}}
        await s.make(path, {**body, "metadata": {"name": "a"}})
        await watch.take(1)
        await s.change(f"{path}/a", {"spec": {"size": 2}})
        await watch.take(1)
        await s.remove(f"{path}/a")
        await watch.take(1)
    await s.watched(
        path,
        1,
        watch="true",
        allowWatchBookmarks="true",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    )


@case("watch", "events are watched in either group, each in its own form")
async def both_event_groups(s: Session) -> None:
    core, newer = "/api/v1/namespaces/{ns}/events", "/apis/events.k8s.io/v1/namespaces/{ns}/events"
    begin = await start(s, core)
    about = {"kind": "Pod", "name": "p", "namespace": s.ns}
    await s.make(core, {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Tested"})
    for path in (core, newer):
        await s.watched(path, 1, watch="true", resourceVersion=begin)

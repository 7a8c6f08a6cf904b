"""Objects that enter and leave the selector of a watch."""

from __future__ import annotations

from typing import Final

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, rv
from tests.contract.exchange import Json
from tests.contract.session import Session

POD: Final = {"containers": [{"name": "c", "image": "example.com/c"}]}


def labelled(value: str | None) -> dict[str, object]:
    return {"metadata": {"labels": {"x": value}}}


@each("watch", "in and out of a label selector", {"live": {"live": True}, "past": {"live": False}})
async def labels(s: Session, *, live: bool) -> None:
    begin = rv(await s.look(CONFIGMAPS))
    query: Json = {"watch": "true", "resourceVersion": begin, "labelSelector": "x=1"}

    async def write() -> None:
        await s.configmap("a", x="1")
        await s.configmap("b", x="2")
        await s.change(f"{CONFIGMAPS}/a", labelled("2"))
        await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "unseen"}})
        await s.change(f"{CONFIGMAPS}/b", labelled("1"))
        await s.change(f"{CONFIGMAPS}/b", {"data": {"k": "seen"}})
        await s.remove(f"{CONFIGMAPS}/a")
        await s.remove(f"{CONFIGMAPS}/b")

    if live:
        async with s.watch(CONFIGMAPS, **query) as watch:
            await write()
            await watch.take(5)
    else:
        await write()
        await s.watched(CONFIGMAPS, **query, timeoutSeconds=1)


@each(
    "watch",
    "a label selector with an operator",
    {
        "not_equals": {"selector": "x!=1"},
        "exists": {"selector": "x"},
        "exists_not": {"selector": "!x"},
        "within": {"selector": "x in (1,2)"},
        "notin": {"selector": "x notin (1,2)"},
    },
)
async def operators(s: Session, *, selector: str) -> None:
    begin = rv(await s.look(CONFIGMAPS))
    await s.configmap("a")
    for value in ("1", "2", "3", None):
        await s.change(f"{CONFIGMAPS}/a", labelled(value))
    await s.remove(f"{CONFIGMAPS}/a")
    query: Json = {"watch": "true", "resourceVersion": begin, "labelSelector": selector}
    await s.watched(CONFIGMAPS, **query, timeoutSeconds=1)


@case("watch", "what leaves a selector is shown as it was before, at the version of the change")
async def leaving_state(s: Session) -> None:
    made = await s.make(
        CONFIGMAPS, {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "old"}}
    )
    query: Json = {"watch": "true", "resourceVersion": rv(made), "labelSelector": "x=1"}
    async with s.watch(CONFIGMAPS, **query) as watch:
        await s.patch(f"{CONFIGMAPS}/a", {**labelled("2"), "data": {"k": "new"}})
        await watch.take(1)


@case("watch", "one object by the field of its name")
async def by_name(s: Session) -> None:
    begin = rv(await s.look(CONFIGMAPS))
    query: Json = {"watch": "true", "resourceVersion": begin, "fieldSelector": "metadata.name=a"}
    async with s.watch(CONFIGMAPS, **query) as watch:
        for name in ("b", "a"):
            await s.configmap(name)
            await s.remove(f"{CONFIGMAPS}/{name}")
        await watch.take(2)


@case("watch", "the first state through selectors")
async def selected_first_state(s: Session) -> None:
    await s.configmap("a", x="1")
    await s.configmap("b", x="2")
    await s.settle(CONFIGMAPS, rv(await s.configmap("c", x="1")))
    queries: list[Json] = [
        {"labelSelector": "x=1"},
        {"fieldSelector": "metadata.name=b"},
        {"labelSelector": "x=1", "fieldSelector": "metadata.name!=a"},
        {"labelSelector": "x=9"},
    ]
    for query in queries:
        await s.watched(CONFIGMAPS, watch="true", timeoutSeconds=1, **query)
    await s.watched(
        CONFIGMAPS, watch="1", resourceVersion="0", timeoutSeconds=1, labelSelector="x=1"
    )


@case("watch", "initial events through selectors, and the bookmark after none")
async def selected_initial_events(s: Session) -> None:
    await s.configmap("a", x="1")
    await s.configmap("b", x="2")
    for selector, count in (("x=1", 2), ("x=9", 1)):
        await s.watched(
            CONFIGMAPS,
            count,
            watch="true",
            allowWatchBookmarks="true",
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            labelSelector=selector,
        )


@case("watch", "a pod enters the phase of a selector, and leaves it")
async def pod_phase(s: Session) -> None:
    made = await s.make(PODS, {"metadata": {"name": "p"}, "spec": POD})
    query: Json = {
        "watch": "true",
        "resourceVersion": rv(made),
        "fieldSelector": "status.phase=Running",
    }
    async with s.watch(PODS, **query) as watch:
        for phase in ("Running", "Succeeded"):
            await s.change(f"{PODS}/p/status", {"status": {"phase": phase}})
        await watch.take(2)


@case("watch", "a pod is bound to the node of a selector")
async def pod_node(s: Session) -> None:
    made = await s.make(PODS, {"metadata": {"name": "p"}, "spec": POD})
    query: Json = {"watch": "true", "resourceVersion": rv(made)}
    bound: Json = {**query, "fieldSelector": "spec.nodeName=n1"}
    free: Json = {**query, "fieldSelector": "spec.nodeName="}
    async with s.watch(PODS, **bound) as on, s.watch(PODS, **free) as off:
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        await s.make(f"{PODS}/p/binding", binding)
        await on.take(1)
        await off.take(1)


@case("watch", "a deletion that no longer matches is not told")
async def deleted_outside(s: Session) -> None:
    await s.configmap("a", x="2")
    made = await s.configmap("b", x="1")
    query: Json = {"watch": "true", "resourceVersion": rv(made), "labelSelector": "x=1"}
    async with s.watch(CONFIGMAPS, **query) as watch:
        await s.remove(f"{CONFIGMAPS}/a")
        await s.remove(f"{CONFIGMAPS}/b")
        await watch.take(1)


@case("watch", "Tables and metadata of what leaves a selector")
async def leaving_forms(s: Session) -> None:
    made = await s.configmap("a", x="1")
    await s.change(f"{CONFIGMAPS}/a", labelled("2"))
    query: Json = {"watch": "true", "resourceVersion": rv(made), "labelSelector": "x=1"}
    for form in ("Table", "PartialObjectMetadata"):
        headers = {"Accept": f"application/json;as={form};v=v1;g=meta.k8s.io"}
        await s.watched(CONFIGMAPS, 1, **query, headers=headers)


@case("watch", "custom resources through selectors")
async def custom_selected(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    begin = rv(await s.look(path))
    body = {"apiVersion": f"{group}/v1", "kind": "Widget"}
    await s.make(path, {**body, "metadata": {"name": "a", "labels": {"x": "1"}}})
    await s.change(f"{path}/a", labelled("2"))
    query: Json = {"watch": "true", "resourceVersion": begin, "timeoutSeconds": 1}
    await s.watched(path, **query, labelSelector="x=1")
    await s.watched(path, **query, fieldSelector="metadata.name=a")
    await s.watched(path, **query, fieldSelector="spec.x=1")

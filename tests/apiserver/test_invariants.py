"""Invariants that hold after any sequence of writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.server import preload
from kinform.apiserver.storage.versioned_store import Storage

Json = dict[str, Any]

MAPS, SECRETS, PODS = "configmaps", "secrets", "pods"
SPACES = ("default", "one", "two")
NAMES = ("a", "b", "c")
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/{}/widgets"
SELECTIONS = (
    "",
    "labelSelector=a%3Db",
    "labelSelector=%21a",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=metadata.namespace%21%3Ddefault",
)


@pytest.fixture(autouse=True, scope="module")
def _data() -> None:
    preload()


class World:
    """A server, and what was seen of it."""

    def __init__(self, *, history: int = 10_000) -> None:
        self.application = Application(Cluster(seed=1, history=history))
        self.application.start()
        self.storage: Storage = self.application.cluster.storage
        self.seen: dict[int, dict[str, Json]] = {}
        """The lists of all tables at some revisions."""

    async def send(
        self, method: str, target: str, body: object = None, *, media: str = "application/json"
    ) -> tuple[int, Json]:
        data = b"" if body is None else json.dumps(body).encode()
        request = ServerRequest.of(method, target, headers={"content-type": media}, body=data)
        response = await self.application.handle(request)
        assert isinstance(response.body, bytes)
        found = json.loads(response.body) if response.body.startswith(b"{") else {}
        assert response.status < 500, found
        return response.status, found

    async def listed(self, resource: str, query: str = "") -> Json:
        _, found = await self.send("GET", f"/api/v1/{resource}?{query}")
        return found

    async def remember(self) -> None:
        self.seen[self.storage.revision] = {
            f"{resource}?{query}": await self.listed(resource, query)
            for resource in (MAPS, SECRETS, PODS)
            for query in SELECTIONS
        }

    def uid(self, space: str, name: str) -> str:
        stored = self.storage.table(MAPS).get(f"{space}/{name}")
        return stored.uid if stored is not None else "no-such-uid"

    def dump(self) -> dict[str, list[tuple[str, bytes]]]:
        """Return everything that is stored."""
        tables = {
            resource: [(it.key, it.raw) for it in self.storage.table(resource).now()]
            for resource in self.storage.resources()
        }
        return {resource: rows for resource, rows in tables.items() if rows}


# --- what can be done

Step = Callable[[World], Coroutine[None, None, tuple[int, Json]]]
_spaces, _names = st.sampled_from(SPACES), st.sampled_from(NAMES)
_resources = st.sampled_from((MAPS, SECRETS))
_labels = st.sampled_from(({}, {"a": "b"}, {"a": "c"}))
_contents = st.dictionaries(st.sampled_from(("x", "y", "z")), st.sampled_from(("MQ==", "Mg==")))
_finalizers = st.sampled_from(([], [], [], ["example.com/held"]))
_dry = st.sampled_from(("", "", "", "?dryRun=All"))
_policies = st.sampled_from(("Background", "Foreground", "Orphan"))


@st.composite
def _metadata(draw: st.DrawFn) -> Callable[[World, str], Json]:
    name, labels, finalizers = draw(_names), draw(_labels), draw(_finalizers)
    owner, blocks = draw(st.none() | _names), draw(st.booleans())

    def made(world: World, space: str) -> Json:
        meta: Json = {"name": name, "labels": labels, "finalizers": finalizers}
        if owner is not None:
            reference = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner,
                "uid": world.uid(space, owner),
                "blockOwnerDeletion": blocks,
            }
            meta["ownerReferences"] = [reference]
        return meta

    return made


@st.composite
def _create(draw: st.DrawFn) -> Step:
    space, resource, dry, data = draw(_spaces), draw(_resources), draw(_dry), draw(_contents)
    meta = draw(_metadata())
    target = f"/api/v1/namespaces/{space}/{resource}{dry}"
    return lambda world: world.send("POST", target, {"metadata": meta(world, space), "data": data})


@st.composite
def _create_pod(draw: st.DrawFn) -> Step:
    space, dry, meta = draw(_spaces), draw(_dry), draw(_metadata())
    node = draw(st.sampled_from(("", "node")))
    spec = {"nodeName": node, "containers": [{"name": "a", "image": "a"}]}
    target = f"/api/v1/namespaces/{space}/pods{dry}"
    return lambda world: world.send("POST", target, {"metadata": meta(world, space), "spec": spec})


@st.composite
def _put(draw: st.DrawFn) -> Step:
    space, resource, dry, data = draw(_spaces), draw(_resources), draw(_dry), draw(_contents)
    meta = draw(_metadata())

    def step(world: World) -> Coroutine[None, None, tuple[int, Json]]:
        made = meta(world, space)
        target = f"/api/v1/namespaces/{space}/{resource}/{made['name']}{dry}"
        return world.send("PUT", target, {"metadata": made, "data": data})

    return step


@st.composite
def _patch(draw: st.DrawFn) -> Step:
    space, resource, name, dry = draw(_spaces), draw(_resources), draw(_names), draw(_dry)
    field = draw(st.sampled_from(("labels", "finalizers", "ownerReferences", "data")))
    value = draw(_labels | st.none()) if field == "labels" else None
    body: Json = {"metadata": {field: value}}
    if field == "data":
        body = {"data": draw(st.none() | _contents)}
    target = f"/api/v1/namespaces/{space}/{resource}/{name}{dry}"
    return lambda world: world.send("PATCH", target, body, media=MERGE)


@st.composite
def _apply(draw: st.DrawFn) -> Step:
    space, name, dry = draw(_spaces), draw(_names), draw(_dry)
    manager, data = draw(st.sampled_from(("m", "n"))), draw(_contents)
    meta = {"name": name, "labels": draw(_labels)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    target = f"/api/v1/namespaces/{space}/{MAPS}/{name}{dry}{'&' if dry else '?'}"
    target += f"force=true&fieldManager={manager}"
    return lambda world: world.send("PATCH", target, body, media=APPLY)


@st.composite
def _delete(draw: st.DrawFn) -> Step:
    space, name, dry = draw(_spaces), draw(_names), draw(_dry)
    resource = draw(st.sampled_from((MAPS, MAPS, SECRETS, PODS)))
    body = {"propagationPolicy": draw(_policies)}
    if dry:
        body["dryRun"] = ["All"]  # type: ignore[assignment] # it is JSON
    target = f"/api/v1/namespaces/{space}/{resource}/{name}"
    return lambda world: world.send("DELETE", target, body)


@st.composite
def _delete_many(draw: st.DrawFn) -> Step:
    space, resource = draw(_spaces), draw(_resources)
    target = f"/api/v1/namespaces/{space}/{resource}?{draw(st.sampled_from(SELECTIONS))}"
    return lambda world: world.send("DELETE", target)


@st.composite
def _namespace(draw: st.DrawFn) -> Step:
    name, dry = draw(st.sampled_from(SPACES[1:])), draw(_dry)
    if draw(st.booleans()):
        body = {"metadata": {"name": name}}
        return lambda world: world.send("POST", f"/api/v1/namespaces{dry}", body)
    return lambda world: world.send("DELETE", f"/api/v1/namespaces/{name}{dry}")


@st.composite
def _definition(draw: st.DrawFn) -> Step:
    if draw(st.booleans()):
        return lambda world: world.send("DELETE", f"{DEFINITIONS}/widgets.example.com")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    return lambda world: world.send("POST", DEFINITIONS, body)


@st.composite
def _widget(draw: st.DrawFn) -> Step:
    space, meta = draw(_spaces), draw(_metadata())

    def step(world: World) -> Coroutine[None, None, tuple[int, Json]]:
        obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta(world, space)}
        return world.send("POST", WIDGETS.format(space), obj)

    return step


_steps = st.lists(
    st.one_of(
        _create(),
        _create(),
        _create_pod(),
        _put(),
        _patch(),
        _patch(),
        _apply(),
        _delete(),
        _delete(),
        _delete_many(),
        _namespace(),
        _namespace(),
        _definition(),
        _widget(),
    ),
    min_size=1,
    max_size=25,
)
_often = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _run(main: Coroutine[None, None, None]) -> None:
    asyncio.run(main)


# --- what holds


@pytest.mark.slow
@_often
@given(steps=_steps)
def test_a_watch_over_any_old_list_ends_at_the_present_one(steps: list[Step]) -> None:
    async def main() -> None:
        world = World()
        await world.remember()
        for step in steps:
            await step(world)
            await world.remember()
        for revision, lists in world.seen.items():
            for name, listed in lists.items():
                now = await world.listed(*name.split("?", 1))
                assert await _replayed(world, name, listed, revision) == _by_key(now)

    _run(main())


async def _replayed(world: World, name: str, listed: Json, revision: int) -> dict[str, Json]:
    """Return a list, after all that a watch tells since."""
    assert listed["metadata"]["resourceVersion"] == str(revision)
    resource, _, query = name.partition("?")
    target = f"/api/v1/{resource}?{query}&watch=1&resourceVersion={revision}"
    response = await world.application.handle(ServerRequest.of("GET", target))
    assert not isinstance(response.body, bytes)
    objects, last = _by_key(listed), revision
    async with contextlib.aclosing(response.body) as chunks:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                async for chunk in chunks:
                    for line in chunk.splitlines():
                        event = json.loads(line)
                        last = _take(objects, event, last)
    return objects


def _take(objects: dict[str, Json], event: Json, last: int) -> int:
    obj, kind = event["object"], event["type"]
    [(key, value)] = _by_key({"items": [obj]}).items()
    version = int(obj["metadata"]["resourceVersion"])
    assert version > last, "versions of events increase"
    assert (key in objects) == (kind != "ADDED"), f"{kind} of {key}"
    if kind == "DELETED":
        del objects[key]
    else:
        objects[key] = value
    return version


def _by_key(listed: Json) -> dict[str, Json]:
    plain = [
        {k: v for k, v in it.items() if k not in {"kind", "apiVersion"}} for it in listed["items"]
    ]
    return {f"{it['metadata'].get('namespace')}/{it['metadata']['name']}": it for it in plain}


@_often
@given(steps=_steps)
def test_versions_increase_and_a_dry_run_changes_nothing(steps: list[Step]) -> None:
    async def main() -> None:
        world = World()
        changes = list[int]()
        world.storage.observe(lambda _, change: changes.append(change.revision))
        for step in steps:
            before, revision = world.dump(), world.storage.revision
            code, answer = await step(world)
            if world.storage.revision == revision:
                assert world.dump() == before
            elif code < 300 and answer.get("kind") in {"ConfigMap", "Secret", "Pod"}:
                assert int(answer["metadata"]["resourceVersion"]) > revision
        assert changes == sorted(set(changes))
        assert changes == list(range(changes[0], changes[0] + len(changes))) if changes else True
        for resource, rows in world.dump().items():
            for key, raw in rows:
                held = world.storage.table(resource).get(key)
                assert held is not None
                assert json.loads(raw)["metadata"]["resourceVersion"] == str(held.revision)

    _run(main())


@_often
@given(steps=_steps, data=st.data())
def test_a_dry_run_of_any_step_changes_nothing(steps: list[Step], data: st.DataObject) -> None:
    async def main() -> None:
        world = World()
        for step in steps:
            await step(world)
        before, revision = world.dump(), world.storage.revision
        for resource in (MAPS, SECRETS, PODS):
            for name in NAMES:
                space = data.draw(_spaces)
                target = f"/api/v1/namespaces/{space}/{resource}"
                body = {"metadata": {"name": name}}
                await world.send("POST", f"{target}?dryRun=All", body)
                await world.send("PUT", f"{target}/{name}?dryRun=All", body)
                await world.send("DELETE", f"{target}/{name}?dryRun=All")
                patch = {"metadata": {"finalizers": None, "labels": {"q": "r"}}}
                await world.send("PATCH", f"{target}/{name}?dryRun=All", patch, media=MERGE)
            await world.send("DELETE", f"/api/v1/namespaces/default/{resource}?dryRun=All")
        for space in SPACES:
            await world.send("DELETE", f"/api/v1/namespaces/{space}?dryRun=All")
        await world.send("DELETE", f"{DEFINITIONS}/widgets.example.com?dryRun=All")
        assert (world.dump(), world.storage.revision) == (before, revision)

    _run(main())


@_often
@given(steps=_steps, limit=st.integers(1, 3), writes=_steps)
def test_pages_show_the_list_at_their_first_revision(
    steps: list[Step], limit: int, writes: list[Step]
) -> None:
    async def main() -> None:
        world = World()
        for step in steps:
            await step(world)
        whole = await world.listed(MAPS)
        pages, token, left = list[Json](), "", iter(writes)
        while True:
            page = await world.listed(MAPS, f"limit={limit}&continue={quote(token)}")
            assert page["metadata"]["resourceVersion"] == whole["metadata"]["resourceVersion"]
            pages += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
            if (step_ := next(left, None)) is not None:
                await step_(world)
        assert pages == whole["items"]

    _run(main())


@_often
@given(steps=_steps)
def test_nothing_outlives_its_namespace_its_definition_or_its_owners(steps: list[Step]) -> None:
    async def main() -> None:
        world = World()
        for step in steps:
            await step(world)
            _check_ownership(world)

    _run(main())


def _check_ownership(world: World) -> None:
    tables = {name: world.storage.table(name).now() for name in world.storage.resources()}
    spaces = {it.key for it in tables["namespaces"]}
    uids = {it.uid for table in tables.values() for it in table}
    assert len(uids) == sum(map(len, tables.values()))
    for resource, table in tables.items():
        for stored in table:
            space, separator, _ = stored.key.partition("/")
            assert not separator or space in spaces, stored.key
            is_going = b'"deletionTimestamp"' in stored.raw
            if stored.owners and not is_going:
                assert uids.intersection(stored.owners), f"{resource} {stored.key} is an orphan"
    if tables.get("widgets.example.com"):
        assert world.application.cluster.kinds.find("example.com", "v1", "widgets") is not None


@pytest.mark.slow
@_often
@given(steps=_steps, data=st.data())
def test_a_restore_gives_exactly_what_was(steps: list[Step], data: st.DataObject) -> None:
    async def main() -> None:
        world = World()
        await world.remember()
        dumps = {world.storage.revision: world.dump()}
        for step in steps:
            await step(world)
            dumps[world.storage.revision] = world.dump()
            await world.remember()
        revision = data.draw(st.sampled_from(sorted(dumps)))
        world.storage.restore(revision)
        world.application.reload()
        assert world.dump() == dumps[revision]
        for name, listed in world.seen[revision].items():
            assert await world.listed(*name.split("?", 1)) == listed
        for step in steps:  # and it goes on from there
            await step(world)
            _check_ownership(world)

    _run(main())


@_often
@given(steps=_steps)
def test_every_field_that_is_owned_is_there(steps: list[Step]) -> None:
    async def main() -> None:
        world = World()
        for step in steps:
            await step(world)
            for resource in (MAPS, SECRETS, PODS, "namespaces"):
                for stored in world.storage.table(resource).now():
                    obj = json.loads(stored.raw)
                    for entry in obj["metadata"].get("managedFields", ()):
                        assert entry["fieldsType"] == "FieldsV1"
                        assert entry["operation"] in {"Apply", "Update"}
                        _check_owned(obj, entry["fieldsV1"], stored.key)

    _run(main())


def _check_owned(value: Any, owned: Json, where: str) -> None:
    for name, inner in owned.items():
        mark, _, rest = name.partition(":")
        if mark == "f":
            if not inner and rest in {"data", "labels"}:
                continue  # an empty map can be applied, is owned, and is not stored
            assert rest in value, f"{where} has no {rest}"
            _check_owned(value[rest], inner, f"{where}.{rest}")
        elif mark == "k":
            keys = json.loads(rest)
            found = [it for it in value if all(it.get(k) == v for k, v in keys.items())]
            assert found, f"{where} has no {rest}"
            _check_owned(found[0], inner, f"{where}[{rest}]")
        elif mark == "v":
            assert json.loads(rest) in value, f"{where} has no {rest}"

"""A reflector over HTTP: answers that say "expired", that are cut, and that are no answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from kinform.cache.listwatch import ListWatch
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import TransportFailure
from kinform.objects.object import Object
from kinform.rest.client import RESTClient
from kinform.rest.transport import HttpRequest
from kinform.sansio.queue.deltas import ReplacedAll
from kinform.sansio.queue.real_fifo import RealFIFO
from kinform.testing import in_virtual_time
from kinform.testing.virtual_time import run
from tests.cache.support_reflector import Told, most_in_a_minute, names, running, turns, until
from tests.support.scripted import JSON, Answer, answer, connection, failed

PAGED = ReflectorOptions(stream_lists=False, page_size=1)
PLAIN = ReflectorOptions(stream_lists=False)


def pod(name: str, version: int, **more: object) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return {"kind": "Pod", "metadata": metadata, **more}


def line(what: str, obj: object) -> bytes:
    return json.dumps({"type": what, "object": obj}).encode() + b"\n"


class World:
    """A small API server: three pods at version 3, and what happens when it is first watched.

    ``faults`` are given in place of answers: by what was asked for (``list``, ``page``,
    ``probe``, ``watch``) and how many of these were answered before.
    """

    def __init__(self, *changes: tuple[str, dict[str, Any]]) -> None:
        self.pods = [pod("a", 1), pod("b", 2), pod("c", 3)]
        self.changes = list(changes)
        self.version = 3
        self.faults: dict[tuple[str, int], Answer] = {}
        self.asked: list[tuple[str, float]] = []

    def __call__(self, request: HttpRequest) -> Answer:
        query = dict(parse_qsl(urlsplit(request.url).query))
        what = "watch" if "watch" in query else "page" if "continue" in query else "list"
        what = "probe" if what == "list" and query.get("limit") == "1" else what
        count = sum(what == asked for asked, _ in self.asked)
        self.asked.append((what, asyncio.get_running_loop().time()))
        if what == "watch" and self.changes:
            self.version = int(self.changes[-1][1]["metadata"]["resourceVersion"])
        if (what, count) in self.faults:
            return self.faults[what, count]
        return self.watch(query) if what == "watch" else self.list(query)

    def list(self, query: dict[str, str]) -> Answer:
        start, _, token = query.get("continue", "0@").partition("@")
        version, first, limit = int(token or self.version), int(start), int(query.get("limit", 500))
        pods = {obj["metadata"]["name"]: obj for obj in self.pods}
        for what, obj in self.changes:
            if int(obj["metadata"]["resourceVersion"]) <= version:
                pods.pop(obj["metadata"]["name"], None)
                pods |= {} if what == "DELETED" else {obj["metadata"]["name"]: obj}
        metadata = {"resourceVersion": str(version)}
        if first + limit < len(pods):
            metadata["continue"] = f"{first + limit}@{version}"
        items = list(pods.values())[first : first + limit]
        return answer(200, {"kind": "PodList", "metadata": metadata, "items": items})

    def watch(self, query: dict[str, str]) -> Answer:
        return Answer(200, JSON, list(self.lines(int(query["resourceVersion"]))), stalls=True)

    def lines(self, since: int) -> Iterator[bytes]:
        for what, obj in self.changes:
            if int(obj["metadata"]["resourceVersion"]) > since:
                yield line(what, obj)

    def requests(self, *kinds: str) -> Sequence[float]:
        return [at for what, at in self.asked if what in kinds]


CHANGES = (("ADDED", pod("d", 4)), ("MODIFIED", pod("a", 5)), ("DELETED", pod("b", 6)))
AFTER = {"a", "c", "d"}


def source_of(world: World) -> tuple[ListWatch[Object], Any]:
    conn, transport = connection(world)
    return ListWatch.from_client(RESTClient(conn), "pods"), transport


def applied(queue: RealFIFO[Object], store: Store[Object]) -> list[tuple[str, str, str]]:
    """Apply what waits in ``queue``; return the changes that were told, one by one."""
    told: list[tuple[str, str, str]] = []
    while batch := queue.pop_batch():
        content: Any = batch.content
        if isinstance(content, ReplacedAll):
            store.replace(content.entries, content.resource_version)
        elif isinstance(content, Sequence):
            store.apply(content)
            told += [
                (str(one.type), one.key.name, one.entry.metadata.resource_version)
                for one in content
                if one.entry is not None
            ]
        queue.done(batch)
    return told


# --- F-R04: 410 in all its forms

REASONS = {"Gone": "Gone", "Expired": "Expired", "no reason": None}


def gone(reason: str | None) -> dict[str, Any]:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410}
    return status if reason is None else {**status, "reason": reason, "message": "too old"}


ANSWERS = {
    **{f"JSON, {name}": answer(410, gone(reason)) for name, reason in REASONS.items()},
    "text": answer(410, body=b"gone", headers={"Content-Type": "text/plain"}),
    "nothing": answer(410),
}
EVENTS = {name: line("ERROR", gone(reason)) for name, reason in REASONS.items()}


async def expires(where: tuple[str, int], fault: Answer) -> None:
    world = World(*CHANGES)
    world.faults[where] = fault
    source, transport = source_of(world)
    queue, store = RealFIFO[Object](), Store[Object]()
    told: list[tuple[str, str, str]] = []
    reflector = Reflector(source, queue, options=PAGED)
    async with running(reflector):

        def is_there() -> bool:
            told.extend(applied(queue, store))
            return names(store) == AFTER

        await until(is_there)
    assert transport.open == 0
    assert reflector.statistics().lists <= 2
    assert len(told) == len(set(told)), "no change is told twice"


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize("where", [("list", 0), ("page", 1), ("watch", 0)], ids=str)
def test_an_answer_that_says_expired_leads_to_one_more_list(
    where: tuple[str, int], form: str
) -> None:
    """F-R04: at the first list, at its third page, and where a watch begins."""
    run(expires(where, ANSWERS[form]))


@pytest.mark.parametrize("form", EVENTS)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_event_that_says_expired_leads_to_one_more_list(after: int, form: str) -> None:
    """F-R04: the first one of a watch, or a later one; in the same read or not."""
    before = [line(what, obj) for what, obj in CHANGES[:after]]
    for pieces in ([b"".join(before) + EVENTS[form]], [*before, EVENTS[form]]):
        run(expires(("watch", 0), Answer(200, JSON, pieces)))


# --- F-R23: cut anywhere


async def is_cut(at: int, error: bool) -> None:
    world = World(*CHANGES)
    body = b"".join(world.lines(3))[:at]
    reset = failed(TransportFailure.TRUNCATED) if error else None
    world.faults["watch", 0] = Answer(200, JSON, [body] if body else [], error=reset)
    source, transport = source_of(world)
    queue, store = RealFIFO[Object](), Store[Object]()
    reflector = Reflector(source, queue, options=PLAIN)
    told: list[tuple[str, str, str]] = []
    async with running(reflector):
        await asyncio.sleep(10)
        told += applied(queue, store)
    assert names(store) == AFTER
    assert [name for _, name, _ in told] == ["d", "a", "b"], "none twice, none lost"
    assert (reflector.statistics().lists, transport.open) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("error", [False, True], ids=["in good order", "by a reset"])
def test_a_stream_may_be_cut_at_any_byte(error: bool) -> None:
    """F-R23: what is left of an event is dropped, and comes again."""
    for at in range(len(b"".join(World(*CHANGES).lines(3))) + 1):
        run(is_cut(at, error))


@in_virtual_time
async def test_a_line_that_is_rubbish_is_met_twice_and_then_passed_by_with_a_list() -> None:
    """F-R23: never by leaving out an event."""
    world = World(*CHANGES)
    rubbish = Answer(200, JSON, [line(*CHANGES[0]), b"{]\n", line(*CHANGES[2])])
    world.faults["watch", 0] = world.faults["watch", 1] = rubbish
    source, _ = source_of(world)
    store, told = Store[Object](), Told()
    reflector = Reflector(source, store, options=PLAIN, watch_error_handler=told)
    async with running(reflector):
        await until(lambda: names(store) == AFTER)
    assert told.kinds == ["DecodeError", "DecodeError"]
    asked = [what for what, _ in world.asked]
    assert asked == ["list", "watch", "probe", "watch", "list", "watch"]


# --- F-R28: no answer at all

HTML = answer(200, body=b"<html>log in</html>", headers={"Content-Type": "text/html"})
WRONG = {
    "a login page": HTML,
    "a login page that says it is JSON": answer(200, body=b"<html>", headers=JSON),
    "a Status": answer(200, {"kind": "Status", "status": "Success", "code": 200}),
    "a Table": answer(200, {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": []}),
    "a Table with items": answer(
        200, {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": []}
    ),
    "a list of another kind": answer(
        200, {"kind": "ServiceList", "metadata": {"resourceVersion": "9"}, "items": []}
    ),
    "nothing": answer(200, body=b"", headers=JSON),
    "null": answer(200, body=b"null", headers=JSON),
}
WRONG_EVENTS = {
    "of an unknown type": line("EXPLODED", pod("d", 9)),
    "without an object": b'{"type":"ADDED"}\n',
    "without metadata": line("ADDED", {"kind": "Pod"}),
    "without a name": line("ADDED", {"kind": "Pod", "metadata": {"resourceVersion": "9"}}),
    "null": b"null\n",
    "a login page": b"<html>\n",
}


@pytest.mark.parametrize("what", WRONG)
@in_virtual_time
async def test_what_is_no_list_never_empties_the_store(what: str) -> None:
    """F-R28."""
    world = World(*CHANGES)
    world.faults["watch", 0] = Answer(200, JSON, [EVENTS["Gone"]])
    for count in range(1, 6):
        world.faults["list", count] = WRONG[what]
    source, transport = source_of(world)
    store, told = Store[Object](), Told()
    reflector = Reflector(
        source, store, options=PLAIN, expected_kind="Pod", watch_error_handler=told
    )
    async with running(reflector):
        await turns(50)
        while len(world.requests("list")) < 6:
            assert names(store) == {"a", "b", "c"}
            await asyncio.sleep(1)
        await until(lambda: names(store) == AFTER)
    assert set(told.kinds[1:]) <= {"DecodeError", "ApiError", "TransportError"}
    assert len(told.errors) == 6
    assert most_in_a_minute(world.requests("list", "probe")) <= 8
    assert transport.open == 0


@pytest.mark.parametrize("what", WRONG)
@in_virtual_time
async def test_what_is_no_watch_is_waited_out(what: str) -> None:
    """F-R28."""
    world = World(*CHANGES)
    for count in range(4):
        world.faults["watch", count] = WRONG[what]
    source, transport = source_of(world)
    store = Store[Object]()
    async with running(Reflector(source, store, options=PLAIN, expected_kind="Pod")):
        await until(lambda: names(store) == AFTER)
    assert most_in_a_minute(world.requests("list", "probe")) <= 8
    assert most_in_a_minute(world.requests("watch")) <= 8
    assert transport.open == 0


@pytest.mark.parametrize("what", WRONG_EVENTS)
@in_virtual_time
async def test_what_is_no_event_leads_to_a_list_at_last(what: str) -> None:
    """F-R28."""
    world = World(*CHANGES)
    odd = Answer(200, JSON, [line(*CHANGES[0]) + WRONG_EVENTS[what]], stalls=True)
    world.faults["watch", 0] = world.faults["watch", 1] = odd
    source, transport = source_of(world)
    store, told = Store[Object](), Told()
    async with running(Reflector(source, store, options=PLAIN, watch_error_handler=told)):
        await until(lambda: names(store) == AFTER)
    assert told.kinds == ["DecodeError", "DecodeError"]
    assert len(world.requests("list")) == 2
    assert transport.open == 0


# --- F-R27: objects that cannot be read


class Spec(msgspec.Struct):
    replicas: int = 0


class Model(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec = msgspec.field(default_factory=Spec)


DEEP = "[" * 12_000 + "]" * 12_000


def poison(version: int) -> dict[str, Any]:
    return pod("p", version, spec={"replicas": "many"})


@pytest.mark.parametrize("options", [PLAIN, PAGED], ids=["whole", "paged"])
@in_virtual_time
async def test_one_object_that_does_not_fit_the_model_costs_no_other(
    options: ReflectorOptions,
) -> None:
    """F-R27: in a list and in a watch; and it comes back when it fits again."""
    world = World(
        ("MODIFIED", poison(4)),
        ("ADDED", pod("d", 5)),
        ("MODIFIED", pod("p", 6, spec={"replicas": 2})),
        ("MODIFIED", poison(7)),
        ("DELETED", pod("a", 8)),
    )
    world.pods.append(poison(3))
    conn, _ = connection(world)
    source = ListWatch.from_client(RESTClient(conn), "pods", model=Model)
    store, told = Store[Model](), Told()
    reflector = Reflector(source, store, options=options, watch_error_handler=told)
    async with running(reflector):
        await until(lambda: "d" in names(store))
        await turns()
    assert names(store) == {"b", "c", "d"}, "no older state of it stays"
    (key,) = reflector.unreadable
    assert key.name == "p"
    assert "replicas" in str(reflector.unreadable[key])
    assert reflector.last_sync_resource_version == "8"
    assert told.errors == []


@pytest.mark.parametrize("deep", ["list", "watch"])
@in_virtual_time
async def test_an_object_that_is_too_deep_costs_no_other(deep: str) -> None:
    """F-R27: its key can be read all the same."""
    world = World(("MODIFIED", pod("a", 4)), ("ADDED", pod("d", 5)))
    text = json.dumps({**pod("p", 3), "spec": "@"}).replace('"@"', DEEP)
    if deep == "list":
        items = ",".join([*(json.dumps(one) for one in world.pods), text])
        body = f'{{"kind":"PodList","metadata":{{"resourceVersion":"3"}},"items":[{items}]}}'
        world.faults["list", 0] = answer(200, body=body.encode(), headers=JSON)
    else:
        body = f'{{"type":"ADDED","object":{text}}}\n'
        pieces = [body.encode() + b"".join(world.lines(0))]
        world.faults["watch", 0] = Answer(200, JSON, pieces, stalls=True)
    source, _ = source_of(world)
    store = Store[Object]()
    reflector = Reflector(source, store, options=PLAIN)
    async with running(reflector):
        await until(lambda: "d" in names(store))
    assert names(store) - {"p"} == {"a", "b", "c", "d"}
    assert len(world.requests("list")) == 1
    if "p" not in names(store):
        assert [key.name for key in reflector.unreadable] == ["p"]


@in_virtual_time
async def test_an_object_without_a_key_ends_the_watch_and_does_not_spoil_the_list() -> None:
    """F-R27: nobody knows which one it was, so everything is listed."""
    nameless = pod("", 4)
    world = World(("ADDED", nameless), ("ADDED", pod("d", 5)))
    world.pods.append(pod("", 3))
    source, _ = source_of(world)
    store, told = Store[Object](), Told()
    reflector = Reflector(source, store, options=PLAIN, watch_error_handler=told)
    world.faults["list", 1] = answer(
        200,
        {"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": [nameless, pod("d", 5)]},
    )
    async with running(reflector):
        await turns(50)
        assert names(store) == {"a", "b", "c"}
        assert len(reflector.unreadable) == 1
        await until(lambda: names(store) == {"d"})
    assert told.kinds == ["DecodeError", "DecodeError"]

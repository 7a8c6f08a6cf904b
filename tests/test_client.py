"""The front door over real sockets: what is sent for each call, and what goes wrong clearly."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.cache.reflector_options import ReflectorOptions
from kinform.clock import offload
from kinform.errors import (
    ConfigError,
    ConflictError,
    DecodeError,
    InvalidError,
    NotFoundError,
    TransportError,
    TransportFailure,
    UsageError,
)
from kinform.rest.conflict import retry_on_conflict
from kinform.selectors import SelectorError
from kinform.testing import in_virtual_time
from tests.support.wire import Reply, WireConnection, WireRequest, WireServer, reply

PODS = {
    "groupVersion": "v1",
    "resources": [
        {"name": "pods", "kind": "Pod", "namespaced": True},
        {"name": "nodes", "kind": "Node", "namespaced": False},
    ],
}
POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
    "spec": {"a": 1, "hidden": True},
}


PODS_RESOURCE = kinform.Resource.of("v1/pods", kind="Pod", namespaced=True)


class FakeApi:
    """Answers by method and path; discovery of v1 is built in."""

    def __init__(self, **answers: Reply | Callable[[WireRequest], Reply]) -> None:
        self.answers = answers
        self.seen: list[WireRequest] = []

    async def __call__(self, request: WireRequest, conn: WireConnection) -> None:
        if request.path == "/api/v1":
            return await conn.reply(reply(json=PODS))
        self.seen.append(request)
        answer = self.answers[request.method]
        return await conn.reply(answer if isinstance(answer, Reply) else answer(request))

    def said(self) -> list[tuple[str, str, object]]:
        return [(r.method, r.target, json.loads(r.body) if r.body else None) for r in self.seen]


async def test_reads_ask_for_what_they_say() -> None:
    listing = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [POD]}
    api = FakeApi(GET=lambda r: reply(json=listing if r.path.endswith("pods") else POD))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        pods = client.resource("v1/pods")
        assert (await pods.get("web")).at("spec", "a") == 1
        await pods.list(label_selector={"app": "web"}, resource_version="5")
        await pods.in_namespace("").list(field_selector="spec.nodeName=n", page_size=None)
        assert [one.name async for one in pods.iterate(page_size=7)] == ["web"]
    pods_path = "/api/v1/namespaces/ns/pods"
    assert [target for _, target, _ in api.said()] == [
        "/api/v1/namespaces/ns/pods/web",
        f"{pods_path}?labelSelector=app%3Dweb&resourceVersion=5&resourceVersionMatch=NotOlderThan",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn",
        "/api/v1/namespaces/ns/pods?limit=7",
    ]


async def test_writes_send_what_they_say() -> None:
    api = FakeApi(**dict.fromkeys(["POST", "PUT", "PATCH"], reply(json=POD)))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        pods = client.resource("v1/pods")
        body = {"metadata": {"name": "web"}}
        full = {"apiVersion": "v1", "kind": "Pod", **body}
        await pods.create(body, dry_run=True, field_manager="me", field_validation="Strict")
        await pods.replace(body)
        await pods.patch("web", {"a": None})
        await pods.patch("web", [{"op": "remove", "path": "/a"}])
        await pods.status.patch("web", {}, patch_type="strategic")
        await pods.apply(body, field_manager="me", force=True)
    pod = "/api/v1/namespaces/ns/pods/web"
    assert api.said() == [
        (
            "POST",
            "/api/v1/namespaces/ns/pods?fieldManager=me&fieldValidation=Strict&dryRun=All",
            full,
        ),
        ("PUT", pod, full),
        ("PATCH", pod, {"a": None}),
        ("PATCH", pod, [{"op": "remove", "path": "/a"}]),
        ("PATCH", f"{pod}/status", {}),
        ("PATCH", f"{pod}?fieldManager=me&force=true", full),
    ]
    kinds = [r.headers["content-type"].removeprefix("application/") for r in api.seen[2:]]
    assert kinds == [
        "merge-patch+json",
        "json-patch+json",
        "strategic-merge-patch+json",
        "apply-patch+yaml",
    ]


async def test_deletes_say_under_which_conditions() -> None:
    gone = {"kind": "Status", "status": "Success"}
    held = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    objects = {"lingers": held, "last-state": POD}
    api = FakeApi(DELETE=lambda r: reply(json=objects.get(r.path.rpartition("/")[2], gone)))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        pods = client.resource("v1/pods")
        options = {"propagation": "Orphan", "uid": "u", "resource_version": "7"}
        assert await pods.delete("web", grace_period=0, dry_run=True, **options) is None  # type: ignore[arg-type]
        lingering = await pods.delete("lingers")
        assert lingering is not None
        assert await pods.delete("last-state") is None
        await pods.delete_collection(label_selector="a=b")
    head = {"kind": "DeleteOptions", "apiVersion": "v1"}
    assert [(target.rpartition("/")[2], body) for _, target, body in api.said()] == [
        (
            "web",
            {
                **head,
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Orphan",
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "dryRun": ["All"],
            },
        ),
        ("lingers", head),
        ("last-state", head),
        ("pods?labelSelector=a%3Db", head),
    ]


async def test_one_object_is_watched_by_its_name_of_either_form() -> None:
    api = FakeApi(GET=reply(200, headers={"Content-Type": "application/json"}))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        pods = client.resource("v1/pods")
        for name in ("web", kinform.ObjectName("other", "web")):
            async with pods.watch(name=name, field_selector="spec.nodeName=n") as events:
                assert [event async for event in events] == []
        with pytest.raises(DecodeError, match="empty"):
            await pods.get("web", resource_version="0")
    asked = [(request.path, request.query.get("fieldSelector")) for request in api.seen[:2]]
    selector = "metadata.name=web,spec.nodeName=n"
    assert asked == [
        ("/api/v1/namespaces/ns/pods", selector),
        ("/api/v1/namespaces/other/pods", selector),
    ]
    assert api.seen[2].query == {"resourceVersion": "0"}


async def test_cluster_scoped_kinds_have_no_namespace_in_their_path() -> None:
    api = FakeApi(GET=reply(json=POD))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        await client.resource("v1/nodes").get("n")
    assert api.said() == [("GET", "/api/v1/nodes/n", None)]


class Spec(msgspec.Struct):
    a: int = 0
    b: str = "default"


class View(msgspec.Struct):
    __resource__ = "v1/pods"
    spec: Spec


async def test_update_sends_only_the_difference_and_guards_it() -> None:
    api = FakeApi(GET=reply(json=POD), PATCH=reply(json=POD))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        await client.resource("v1/pods").update("web", lambda pod: {**pod, "spec": {"a": 2}})
        await client.resource(View).update("web", lambda view: View(Spec(a=2)))
        await client.resource(View).update("web", lambda view: None)
    guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    patches = [body for method, _, body in api.said() if method == "PATCH"]
    change = {"op": "replace", "path": "/spec/a", "value": 2}
    assert patches == [
        [guard, change, {"op": "remove", "path": "/spec/hidden"}],
        [guard, change],  # what the model does not declare, and its defaults, stay out of it
    ]


async def test_update_begins_again_when_somebody_else_was_faster() -> None:
    outcomes = iter([reply(409), reply(409), reply(json=POD)])
    api = FakeApi(GET=reply(json=POD), PATCH=lambda _: next(outcomes))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        await client.resource("v1/pods").update("web", lambda pod: {**pod, "x": 1})
    assert [method for method, _, _ in api.said()] == ["GET", "PATCH"] * 3


async def test_a_patch_that_no_longer_fits_is_a_conflict_if_the_object_has_changed() -> None:
    """The server applies a patch before it compares versions: 422 may mean 409."""
    newer = {**POD, "metadata": {**POD["metadata"], "resourceVersion": "8"}}
    reads = iter([reply(json=POD), *[reply(json=newer)] * 9])
    writes = iter([reply(422), reply(json=newer), reply(422)])
    api = FakeApi(GET=lambda _: next(reads), PATCH=lambda _: next(writes))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        pods = client.resource("v1/pods")
        await pods.update("web", lambda pod: {**pod, "x": 1})
        with pytest.raises(InvalidError):  # nothing has changed: it is really invalid
            await pods.update("web", lambda pod: {**pod, "x": 1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pod: {"data": {}}, "whole object"),
        (lambda pod: "text", "whole object, got str"),
        (lambda pod: asyncio.sleep(0), "plain function"),
    ],
)
async def test_a_change_that_cannot_be_meant_is_told(change: Any, message: str) -> None:
    api = FakeApi(GET=reply(json=POD))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        with pytest.raises(UsageError, match=message):
            await client.resource("v1/pods").update("web", change)
        with pytest.raises(UsageError, match="patch_type must be"):
            await client.resource("v1/pods").patch("web", {}, patch_type="mrge")  # type: ignore[arg-type]


async def test_update_guards_a_manifest_written_from_scratch() -> None:
    api = FakeApi(GET=reply(json=POD), PATCH=reply(json=POD))
    fresh = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"a": 2}}
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        await client.resource("v1/pods").update("web", lambda _: fresh)
    _, (_, _, operations) = api.said()
    assert isinstance(operations, list)
    assert operations[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    assert [one["path"] for one in operations].count("/metadata/resourceVersion") == 1


DEEP = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"},"spec":%b%b}'
DEEP = DEEP % (b"[" * 20000, b"]" * 20000)
UNREADABLE = {
    "html": reply(200, body=b"<html>", headers={"Content-Type": "text/html"}),
    "empty": reply(200),
    "an array": reply(json=[]),
    "nested too deep": reply(200, body=DEEP, headers={"Content-Type": "application/json"}),
    "cut off": reply(200, body=b'{"kind":"Po', headers={"Content-Type": "application/json"}),
    "bad utf-8": reply(200, body=b'{"kind":"\xff"}', headers={"Content-Type": "application/json"}),
}


@pytest.mark.parametrize("shape", UNREADABLE)
@pytest.mark.parametrize("verb", ["get", "list", "update", "delete", "delete_collection", "create"])
async def test_an_answer_that_makes_no_sense_is_a_decode_error(verb: str, shape: str) -> None:
    api = FakeApi(**dict.fromkeys(["GET", "DELETE", "POST"], UNREADABLE[shape]))
    calls = {
        "get": lambda pods: pods.get("x"),
        "list": lambda pods: pods.list(),
        "update": lambda pods: pods.update("x", lambda pod: None),
        "delete": lambda pods: pods.delete("x"),
        "delete_collection": lambda pods: pods.delete_collection(),
        "create": lambda pods: pods.create({}),
    }
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        if verb == "delete_collection" and shape != "html":
            await calls[verb](client.resource("v1/pods"))  # what it says is not looked into
            return
        with pytest.raises(DecodeError) as caught:
            await calls[verb](client.resource("v1/pods"))
    assert caught.value.method
    assert caught.value.url.startswith(server.url)


async def test_a_list_that_takes_too_long_is_given_up() -> None:
    async def stall(request: WireRequest, conn: WireConnection) -> None:
        if request.path == "/api/v1":
            await conn.reply(reply(json=PODS))
        else:
            await conn.stall()

    async with WireServer(stall) as server, kinform.connect(server.url, namespace="ns") as client:
        with pytest.raises(TransportError, match=r"no answer within 0\.1 s"):
            await client.resource("v1/pods").list(timeout=0.1)
        with pytest.raises(TransportError) as caught:
            config = dataclasses.replace(client.config, read_timeout=0.05)
            async with kinform.connect(config) as hasty:
                await hasty.version()
        assert caught.value.failure is TransportFailure.TIMEOUT
        await server.wait_all_gone()


async def test_an_object_over_the_limit_is_refused() -> None:
    big = {**POD, "spec": {"x": "y" * 5000}}
    listing = {"kind": "PodList", "metadata": {}, "items": [big]}
    api = FakeApi(GET=lambda r: reply(json=listing if r.path.endswith("pods") else big))
    async with WireServer(api) as server:
        config = kinform.Config(server=server.url, max_object_size=1000)
        async with kinform.connect(config) as client:
            pods = client.resource("v1/pods")
            with pytest.raises(TransportError, match="longer than 1000 bytes"):
                await pods.get("x")
            with pytest.raises(DecodeError):
                await pods.list()


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError(kinform.meta.Status(code=404, reason="NotFound"), method="GET", url="/x"),
        TransportError("gone", failure=TransportFailure.RESET, method="GET", url="/x"),
        DecodeError("bad", path="$.x"),
        ConfigError("bad", source="file"),
        kinform.AmbiguousResourceError("x", candidates=["a", "b"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_can_be_copied(error: kinform.KinformError) -> None:
    other = copy.copy(error)  # as process pools do on their way
    assert type(other) is type(error)
    assert (str(other), other.__dict__) == (str(error), error.__dict__)


async def test_a_message_of_the_server_is_fit_to_be_shown() -> None:
    status = {
        "kind": "Status",
        "code": 500,
        "reason": "X",
        "message": "a\x1b[31m\r\n" + "b" * 99999,
    }
    api = FakeApi(GET=reply(500, json=status))
    async with WireServer(api) as server, kinform.connect(server.url) as client:
        with pytest.raises(kinform.ApiError) as caught:
            await client.resource("v1/pods").get("x")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 20_000


CONFLICT = ConflictError(kinform.meta.Status(code=409, reason="Conflict"))


@pytest.mark.parametrize(
    ("outcomes", "attempts", "expected"),
    [
        ([CONFLICT] * 9, 5, ConflictError),
        ([CONFLICT, CONFLICT, None], 3, None),
        ([ValueError("mine")], 1, ValueError),
        ([CONFLICT, TimeoutError()], 2, TimeoutError),
    ],
    ids=["always", "twice", "another error", "the caller's own time-out"],
)
@in_virtual_time
async def test_conflicts_are_retried_a_few_times(
    outcomes: list[Exception | None], attempts: int, expected: type[Exception] | None
) -> None:
    """CG-H16: the conflict itself after all steps; every other error at once and as it is."""
    count = 0

    async def attempt() -> str:
        nonlocal count
        count += 1
        if (outcome := outcomes[count - 1]) is not None:
            raise outcome
        return "done"

    if expected is None:
        assert await retry_on_conflict(attempt) == "done"
    else:
        with pytest.raises(expected):
            await retry_on_conflict(attempt)
    assert count == attempts


async def test_a_model_declares_what_is_read() -> None:
    api = FakeApi(GET=reply(json=POD))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        assert await client.resource("v1/pods", model=View).get("web") == View(Spec(a=1))
        assert await client.resource("v1/pods", model=dict).get("web") == POD
        wrong = client.resource("v1/pods", model=Wrong)
        with pytest.raises(DecodeError, match="spec") as caught:
            await wrong.get("web")
    assert "hidden" not in str(caught.value)


class Wrong(msgspec.Struct):
    spec: int


class Nameless(msgspec.Struct):
    spec: Spec


async def test_mistakes_are_told_before_anything_is_sent() -> None:
    async with kinform.connect("http://127.0.0.1:1") as client:
        with pytest.raises(UsageError, match="__resource__"):
            client.resource(Nameless)
        with pytest.raises(UsageError, match="not both"):
            client.resource(View, model=Nameless)  # type: ignore[call-overload]
        with pytest.raises(UsageError, match="names no resource"):
            client.resource(None)  # type: ignore[call-overload]
        with pytest.raises(UsageError, match="name must be a text, got dict"):
            await client.resource(PODS_RESOURCE).get({})  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            client.resource("v1/pods", model=int)
        with pytest.raises(SelectorError, match="app="):
            await client.resource("v1/pods").list(label_selector="app=a=b")
        with pytest.raises(SelectorError):
            client.resource("v1/pods").watch(field_selector="=")


@pytest.mark.parametrize("namespace", [None, "", kinform.ALL_NAMESPACES])
async def test_an_informer_without_a_namespace_looks_at_all(namespace: str | None) -> None:
    listing = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [POD]}
    api = FakeApi(GET=reply(json=listing))
    async with WireServer(api) as server, kinform.connect(server.url, namespace="ns") as client:
        options = ReflectorOptions(stream_lists=False)
        informer = client.informer("v1/pods", namespace=namespace, options=options)
        async with informer:
            await informer.wait_synced(5)
    assert {request.path for request in api.seen} == {"/api/v1/pods"}


async def test_an_informer_of_what_cannot_be_is_refused_at_once() -> None:
    async with kinform.connect("http://127.0.0.1:1") as client:
        for kind in ("", "a/b/c/d"):
            with pytest.raises(UsageError, match="names no resource; give 'v1/pods'"):
                client.informer(kind)
        for namespace in ("*", "a/b", "Default"):
            with pytest.raises(UsageError, match="no namespace can be called"):
                client.informer("v1/pods", namespace=namespace)
        with pytest.raises(UsageError, match=r"SharedInformerFactory\(client, namespaces="):
            client.informer("v1/pods", namespace=["a"])  # type: ignore[call-overload]
        with pytest.raises(UsageError, match="ResourceClient is not a ListerWatcher"):
            kinform.SharedInformer(client.resource("v1/pods"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a/b", "..", "%2e%2e", "a\nb", ""])
async def test_names_cannot_leave_their_place(name: str) -> None:
    api = FakeApi()
    async with WireServer(api) as server, kinform.connect(server.url) as client:
        with pytest.raises(UsageError, match="name"):
            await client.resource("v1/pods").get(name)
        with pytest.raises(UsageError, match="namespace"):
            await client.resource("v1/pods", namespace=name).get("web")
    assert api.seen == []


async def test_a_client_is_opened_once_and_closed_for_good() -> None:
    client = kinform.connect("http://127.0.0.1:1")
    with pytest.raises(UsageError, match="not open yet; enter it first: `async with client`"):
        client.resource("v1/pods")
    async with client:
        pods, found = client.resource("v1/pods"), client.resource(PODS_RESOURCE)
        with pytest.raises(UsageError, match="opened before"):
            await client.__aenter__()
    with pytest.raises(UsageError, match="closed"):
        client.rest()
    with pytest.raises(UsageError, match="closed"):
        await pods.get("x")
    with pytest.raises(UsageError, match="closed"):
        await found.get("x")
    assert repr(client) == "<Client http://127.0.0.1:1 closed>"
    assert repr(pods) == "<ResourceClient of v1/pods in 'default'>"
    await client.aclose()


async def test_nobody_there_is_told_with_the_address() -> None:
    async with kinform.connect("http://127.0.0.1:1") as client:
        with pytest.raises(TransportError, match=r"127\.0\.0\.1:1") as caught:
            await client.version()
    assert caught.value.failure is TransportFailure.REFUSED


async def test_a_missing_kubeconfig_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-file"):
        async with kinform.connect(kubeconfig=tmp_path / "no-such-file"):
            pass


async def test_two_clients_share_nothing() -> None:
    """CG-H13: no cache of transports outlives its client."""
    api = FakeApi(GET=reply(json=POD))
    async with WireServer(api) as server:
        for _ in range(3):
            async with kinform.connect(server.url) as client:
                await client.resource("v1/pods").get("web")
            await server.wait_all_gone()
        assert len(server.connections) == 3


async def test_logs_come_line_by_line() -> None:
    text = "first\nsecond ü\r\n\nlast".encode()

    async def handler(request: WireRequest, conn: WireConnection) -> None:
        if request.path == "/api/v1":
            await conn.reply(reply(json=PODS))
        else:
            await conn.chunked(headers={"Content-Type": "text/plain"})
            for start in range(0, len(text), 4):
                await conn.chunk(text[start : start + 4])
            await conn.end_chunks()

    async with WireServer(handler) as server, kinform.connect(server.url) as client:
        pods = client.resource("v1/pods")
        async with pods.logs("web", container="c", tail_lines=5, since=1.2, follow=True) as lines:
            assert [line async for line in lines] == ["first", "second ü\r", "", "last"]
    assert server.requests[-1].query == {
        "container": "c",
        "follow": "true",
        "sinceSeconds": "1",
        "tailLines": "5",
    }


async def test_a_line_without_end_is_handed_out_in_pieces() -> None:
    async def handler(request: WireRequest, conn: WireConnection) -> None:
        if request.path == "/api/v1":
            await conn.reply(reply(json=PODS))
        else:
            await conn.send(200, {"Content-Type": "text/plain"}, b"x" * 3_000_000)

    async with WireServer(handler) as server, kinform.connect(server.url) as client:
        async with client.resource("v1/pods").logs("web") as lines:
            pieces = [line async for line in lines]
    assert "".join(pieces) == "x" * 3_000_000
    assert len(pieces) > 1


async def test_a_log_of_nothing_is_a_plain_error() -> None:
    api = FakeApi(GET=reply(404, json={"kind": "Status", "code": 404, "reason": "NotFound"}))
    async with WireServer(api) as server, kinform.connect(server.url) as client:
        log = client.resource("v1/pods").logs("web")
        with pytest.raises(UsageError, match="open the log"):
            log.iter_bytes()
        with pytest.raises(NotFoundError):
            async with log:
                pass


async def test_cancelling_a_call_frees_its_connection() -> None:
    async def stall(request: WireRequest, conn: WireConnection) -> None:
        await conn.stall()

    async with WireServer(stall) as server, kinform.connect(server.url) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.version()
        await server.wait_all_gone()


@in_virtual_time
async def test_a_guarded_client_asks_before_every_write_and_never_before_a_read() -> None:
    asked: list[str] = []

    def guard() -> None:
        asked.append("asked")
        if len(asked) > 1:
            raise kinform.LeadershipLost("no longer ours", lease="ops/me")

    async with APIServer(port=None) as server, server.connect() as client:
        guarded = client.guarded(guard)
        maps = guarded.resource("v1/configmaps", namespace="default")
        await maps.list()
        assert not asked
        await maps.create({"metadata": {"name": "a"}})
        with pytest.raises(kinform.LeadershipLost, match=r"lease ops/me: no longer ours"):
            await maps.delete("a")
        await guarded.aclose()  # a view: its client stays open
        await client.resource("v1/configmaps", namespace="default").get("a")
    assert len(asked) == 2


@in_virtual_time
async def test_guards_add_up_and_a_view_is_open_as_long_as_its_client() -> None:
    def refuse() -> None:
        raise kinform.LeadershipLost("no")

    async with APIServer(port=None) as server:
        async with server.connect() as client:
            view = client.guarded(refuse).guarded(lambda: None)
            with pytest.raises(kinform.LeadershipLost):
                await view.resource("v1/configmaps", namespace="default").create({})
            assert "open" in repr(view)
        assert "closed" in repr(view)
        with pytest.raises(UsageError, match="this client is closed"):
            view.resource("v1/configmaps")


async def test_a_client_belongs_to_the_loop_that_opened_it_not_to_the_one_that_sends_first() -> (
    None
):
    async with APIServer(port=None) as server:
        client = await server.connect().open()
        maps = client.resource("v1/configmaps", namespace="default")

        def elsewhere() -> None:
            with pytest.raises(UsageError, match="another event loop, the one that opened it"):
                asyncio.run(maps.get("a"))

        await offload(elsewhere)
        assert len(await maps.list()) >= 0
        await client.aclose()

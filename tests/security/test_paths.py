"""Names and selectors stay in their place: the server sees the intended route, or nothing.

kube-apiserver allows nearly everything in the names of some kinds, so any user that can create an
object can choose the name in a controller's next request.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.errors import UsageError
from tests.support.wire import WireServer, answers, reply

SEED = 20261116
PODS = kinform.Resource.of("v1/pods", kind="Pod", namespaced=True)
PIECES = [
    *"/\\.%?#&=;:@+,'\"<>[]{}|^`~!$()* \t\r\n\0\x01\x1b\x7f\x85\xa0",
    *"aZ0-_",
    *(
        "..",
        "//",
        "/../",
        "%2f",
        "%2F",
        "%2e%2e",
        "%252f",
        "%00",
        "..;/",
        "\\..\\",
        "\r\nHost: evil",
    ),
    *(
        "/api/v1/secrets",
        "?watch=true",
        "#",
        "secrets",
        "namespaces",
        "kube-system",
        "\r\n\r\nGET /",
    ),
    *("é", "\u202e", "\u2028", "\uff0f", "\u2215", "\u2024\u2024", "\ud800", "\U0001f600", "ß"),
]


def fuzzed(count: int, seed: int = SEED) -> Iterator[str]:
    """Yield names that want to be something else."""
    rand = random.Random(seed)
    yield from PIECES
    for _ in range(count):
        yield "".join(rand.choices(PIECES, k=rand.randint(1, 6)))


def segments(target: str) -> list[str]:
    """Return the segments of a path as a server sees them, splitting or unescaping first."""
    path, _, _ = target.partition("?")
    assert path.startswith("/")
    assert not {"#", "\\", " "} & set(path)
    assert path.isascii()
    return [unquote(segment, errors="strict") for segment in path[1:].split("/")]


@pytest.mark.slow
async def test_thousands_of_names_reach_the_server_as_one_segment_or_not_at_all() -> None:
    sent = 0
    async with (
        WireServer(answers(then=reply(200, json={"metadata": {"name": "x"}}))) as server,
        kinform.connect(server.url) as client,
    ):
        for name in fuzzed(2_000):
            try:
                await client.resource(PODS, namespace="here").get(name)
                await client.resource(PODS, namespace="here").patch(name, {"a": 1})
                await client.resource(PODS, namespace="here").delete(name)
            except UsageError:
                assert len(server.requests) == sent, name
                continue
            for request in server.requests[sent:]:
                route = segments(request.target)
                assert route == ["api", "v1", "namespaces", "here", "pods", name]
                assert name not in {".", ".."}
                assert not set(name) & set("/%\r\n\0")
                assert "?" not in request.target
            assert len(server.requests) == sent + 3
            sent = len(server.requests)
        assert len(server.connections) == 1, "a name has broken the connection"
    assert sent > 300, "nothing was put to the test"


async def test_thousands_of_namespaces_reach_the_server_as_one_segment_or_not_at_all() -> None:
    sent = 0
    async with (
        WireServer(answers(then=reply(200, json={"metadata": {"name": "x"}}))) as server,
        kinform.connect(server.url) as client,
    ):
        for namespace in fuzzed(2_000, SEED + 1):
            try:
                await client.resource(PODS, namespace=namespace).get("web")
            except UsageError:
                assert len(server.requests) == sent, namespace
                continue
            route = segments(server.requests[-1].target)
            assert route == ["api", "v1", "namespaces", namespace, "pods", "web"]
            sent = len(server.requests)
        assert len(server.connections) <= 1
        await client.resource(PODS, namespace="good").get("web")
    assert server.requests[-1].target == "/api/v1/namespaces/good/pods/web"


@pytest.mark.slow
async def test_thousands_of_selectors_are_one_parameter_or_not_sent() -> None:
    """A value in a selector adds no parameter and no route, however it is written."""
    sent = 0
    empty = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}
    async with (
        WireServer(answers(then=reply(200, json=empty))) as server,
        kinform.connect(server.url) as client,
    ):
        pods = client.resource(PODS, namespace="here")
        for text in fuzzed(1_500, SEED + 2):
            for labels, fields in (
                (text, None),
                ({"app": text}, None),
                (None, text),
                (None, {"a.b": text}),
            ):
                try:
                    await pods.list(label_selector=labels, field_selector=fields, limit=7)
                except UsageError:
                    assert len(server.requests) == sent, text
                    continue
                target = server.requests[-1].target
                assert segments(target) == ["api", "v1", "namespaces", "here", "pods"]
                query = parse_qsl(target.partition("?")[2], keep_blank_values=True)
                names = [name for name, _ in query]
                assert len(names) == len(set(names))
                assert set(names) <= {"labelSelector", "fieldSelector", "limit"}
                assert ("limit", "7") in query
                assert len(server.requests) == sent + 1
                sent = len(server.requests)
        assert len(server.connections) == 1
    assert sent > 300, "nothing was put to the test"


async def test_the_embedded_server_finds_nothing_but_the_object_that_is_meant() -> None:
    """The other side of the wire: no name leads to another object's route, on any way there."""
    async with APIServer(port=None, seed=1) as server, server.connect() as client:
        await client.resource("v1/configmaps").create({"metadata": {"name": "web"}})
        maps = client.resource("v1/configmaps")
        for name in fuzzed(500, SEED + 3):
            with pytest.raises((UsageError, kinform.NotFoundError)):
                await maps.get(name)
        assert (await maps.get("web")).name == "web"

"""Keywords of informers: checked when they are given; namespaces mean the same everywhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.selection import check_namespaces
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import UsageError
from kinform.runtime.manager import Manager
from kinform.runtime.source.kind import KindSource
from kinform.testing import in_virtual_time
from tests.cache.support_informer import source_of


async def later(_obj: object) -> object:
    return None


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": 5}, "name is of type int"),
    "transform": ({"transform": "strip"}, "transform is of type str; expected a function"),
    "async transform": ({"transform": later}, "transform is an async function"),
    "error handler": ({"watch_error_handler": 5}, "watch_error_handler is of type int"),
    "async error handler": ({"watch_error_handler": later}, "watch_error_handler is an async"),
    "queue": ({"queue": "fifo"}, "queue is of type str"),
    "options": ({"options": {"page_size": 5}}, "options is of type dict; expected ReflectorOpt"),
    "period": ({"resync_period": 0.1}, "resync_period is 0.1"),
    "storage": ({"storage": "gzip"}, "storage is 'gzip'"),
    "indexers": ({"indexers": ["node"]}, "indexers is of type list"),
    "index function": ({"indexers": {"node": "nodeName"}}, "node"),
    "index name": ({"indexers": {"owner": len}}, "owner"),
}
wrong = pytest.mark.parametrize("keywords, message", WRONG.values(), ids=WRONG)


@wrong
def test_informer_refuses_it_when_it_is_made(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SharedInformer(source_of(), **keywords)


async def makers() -> AsyncGenerator[Callable[..., object]]:
    """Yield all that takes the keywords of informers and passes them on."""
    async with APIServer(port=None) as server, server.connect() as client:
        factory = SharedInformerFactory(client)
        yield lambda **keywords: client.informer("v1/pods", **keywords)
        yield lambda **keywords: client.resource("v1/pods").informer(**keywords)
        yield lambda **keywords: client.core_v1.pods().informer(**keywords)
        yield lambda **keywords: factory.informer("v1/pods", **keywords)
        yield lambda **keywords: factory.configure("v1/pods", **keywords)
        yield lambda **keywords: SharedInformerFactory(client, **keywords)
        yield lambda **keywords: Manager(client, **keywords)


@wrong
@in_virtual_time
async def test_everything_that_makes_informers_refuses_it_at_once(
    keywords: dict[str, Any], message: str
) -> None:
    async for make in makers():
        with pytest.raises(UsageError, match=message):
            make(**keywords)


@in_virtual_time
async def test_keyword_that_does_not_exist_is_a_type_error_at_once() -> None:
    async for make in makers():
        with pytest.raises(TypeError, match="unexpected keyword argument 'indexer'"):
            make(indexer={})


@in_virtual_time
async def test_one_informer_for_several_namespaces_is_refused_with_the_way_to_do_it() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        factory = SharedInformerFactory(client)
        for make in (client.informer, factory.informer):
            with pytest.raises(UsageError, match=r"SharedInformerFactory\(client, namespaces="):
                make("v1/pods", namespaces=["a", "b"])  # type: ignore[call-overload]
            with pytest.raises(UsageError, match=r"SharedInformerFactory\(client, namespaces="):
                make("v1/pods", namespace=["a", "b"])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["indexers", "resync_period"])
def test_source_of_a_controller_refuses_values_when_it_is_made(name: str) -> None:
    for keywords, message in WRONG.values():
        if name in keywords:
            with pytest.raises(UsageError, match=message):
                KindSource("v1/pods", **keywords)


# --- namespaces -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "namespace, namespaces, meant",
    [
        (None, None, ("",)),
        ("", None, ("",)),
        (None, "", ("",)),
        ("a", None, ("a",)),
        ("a", "", ("a",)),
        (None, "a", ("a",)),
        (None, ["a"], ("a",)),
        (None, ("b", "a", "b"), ("b", "a")),
        (None, [""], ("",)),
        (None, [None], ("",)),
    ],
)
@in_virtual_time
async def test_namespace_and_namespaces_mean_the_same_for_all_that_take_them(
    namespace: str | None, namespaces: Any, meant: tuple[str, ...]
) -> None:
    assert check_namespaces(namespace, namespaces) == meant
    async with APIServer(port=None) as server, server.connect() as client:
        places = {"namespace": namespace, "namespaces": namespaces}
        assert SharedInformerFactory(client, **places).namespaces == meant
        assert Manager(client, **places).factory.namespaces == meant


IMPOSSIBLE = ["*", "A", "a/b", "-a", "a" * 64, 5, ["a", "b"], b"a"]


@pytest.mark.parametrize("namespace", IMPOSSIBLE, ids=repr)
@in_virtual_time
async def test_namespace_that_cannot_exist_is_refused_by_all_that_take_one(namespace: Any) -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        factory = SharedInformerFactory(client)
        pods = client.resource("v1/pods")
        for take in (
            lambda: client.resource("v1/pods", namespace=namespace),
            lambda: client.core_v1.pods(namespace),
            lambda: pods.in_namespace(namespace),
            lambda: client.informer("v1/pods", namespace=namespace),
            lambda: factory.informer("v1/pods", namespace=namespace),
            lambda: SharedInformerFactory(client, namespace=namespace),
            lambda: Manager(client, namespace=namespace),
            lambda: KindSource("v1/pods", namespace=namespace),
        ):
            with pytest.raises(UsageError, match="namespace"):
                take()


@pytest.mark.parametrize("namespaces", [[], ["a", ""], ["a", "*"], 5, ["a", 5]], ids=repr)
@in_virtual_time
async def test_namespaces_that_make_no_sense_are_refused_by_all_that_take_several(
    namespaces: Any,
) -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        for take in (
            lambda: SharedInformerFactory(client, namespaces=namespaces),
            lambda: Manager(client, namespaces=namespaces),
            lambda: KindSource("v1/pods", namespaces=namespaces),
        ):
            with pytest.raises(UsageError, match="namespace"):
                take()
            with pytest.raises(UsageError, match="not both"):
                check_namespaces("a", namespaces)


@in_virtual_time
async def test_namespace_none_is_as_if_it_was_not_given() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        assert client.informer("v1/pods", namespace=None).name == client.informer("v1/pods").name
        given, plain = client.resource("v1/pods", namespace=None), client.resource("v1/pods")
        assert repr(given) == repr(plain) == "<ResourceClient of v1/pods in 'default'>"
        factory = SharedInformerFactory(client, namespaces="theirs")
        assert factory.informer("v1/pods", namespace=None) is factory.informer("v1/pods")
        assert factory.informer("v1/pods").name == "v1/pods in theirs"
        assert factory.informer("v1/pods", namespace=kinform.ALL_NAMESPACES).name == "v1/pods"

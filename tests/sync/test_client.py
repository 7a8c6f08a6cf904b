"""The blocking client: the same answers, from any thread, with any other event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import kinform
from kinform.apiserver import faults
from kinform.clientset import core_v1, meta_v1
from kinform.resource import Resource
from kinform.resource_client import ResourceClient as AsyncResourceClient
from kinform.rest.config import Config
from kinform.sync import Client, ResourceClient, connect, run
from kinform.testing import APIServerThread
from tests.support.scripted import ScriptedTransport, answer
from tests.testing.eventually import eventually


class Settings(msgspec.Struct):
    __resource__ = "v1/configmaps"
    data: dict[str, str] = {}


def body(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": data}


def repaint(content: dict[str, Any]) -> None:
    content["data"]["color"] = "blue"


async def tasks_on_the_loop() -> int:
    return len(asyncio.all_tasks() - {asyncio.current_task()})


def test_every_verb_does_what_its_asyncio_twin_does(maps: ResourceClient) -> None:
    made = maps.create(body("a", color="red"))
    assert isinstance(made, kinform.Object)
    assert maps.get("a") == made
    assert maps.patch("a", {"data": {"size": "L"}}).at("data", "size") == "L"
    assert maps.apply(body("b", x="y"), field_manager="me").name == "b"
    assert maps.update("a", repaint).at("data") == {"color": "blue", "size": "L"}
    content = maps.get("b").to_dict()
    content["data"] = {"x": "z"}
    assert maps.replace(content).at("data", "x") == "z"
    assert [one.name for one in maps.list()] == ["a", "b"]
    assert maps.delete("a") is None
    maps.delete_collection()
    assert not maps.list()


def test_a_model_is_what_is_returned(client: Client) -> None:
    settings = client.resource(Settings)
    assert settings.create(body("a", color="red")) == Settings({"color": "red"})
    assert settings.update("a", lambda it: Settings({**it.data, "n": "1"})).data["n"] == "1"
    assert client.resource("v1/configmaps", model=Settings).get("a").data["color"] == "red"


def test_views_of_a_kind_are_blocking_as_well(client: Client, maps: ResourceClient) -> None:
    client.resource("v1/namespaces").create({"metadata": {"name": "other"}})
    maps.in_namespace("other").create(body("a"))
    assert maps.in_namespace("").metadata_only.list()[0].namespace == "other"
    assert repr(maps.scale) == "<ResourceClient of v1/configmaps/scale in 'default'>"
    assert "status" in repr(maps.status)
    assert "eviction" in repr(maps.subresource("eviction"))


def test_iterate_yields_every_object_once_across_pages(maps: ResourceClient) -> None:
    for n in range(7):
        maps.create(body(f"m{n}"))
    assert [one.name for one in maps.iterate(page_size=3)] == [f"m{n}" for n in range(7)]


def test_leaving_iterate_early_leaves_no_task(maps: ResourceClient) -> None:
    for n in range(7):
        maps.create(body(f"m{n}"))
    items = maps.iterate(page_size=1)
    next(items)
    items.close()
    eventually(lambda: run(tasks_on_the_loop) == 0)


def test_iterate_raises_after_all_that_was_read_before_the_failure() -> None:
    """A server may send less than requested: the page size does not matter."""
    metadata = {"resourceVersion": "5", "continue": "more"}
    items = [{"metadata": {"name": "a", "namespace": "default"}}]
    page = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
    gone = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410}
    expired = answer(410, {**gone, "reason": "Expired", "metadata": {}})
    pods = Resource.of("v1/pods", kind="Pod", namespaced=True)
    seen: list[str] = []
    with connect("http://api.test", transport=ScriptedTransport(answer(json=page), expired)) as it:
        with pytest.raises(kinform.ResourceExpiredError):
            seen.extend(one.name for one in it.resource(pods).iterate(page_size=3))
    assert seen == ["a"]


def test_what_discovery_and_version_say(client: Client) -> None:
    assert client.find("po").gvr.resource == "pods"
    assert any(one.gvr.resource == "pods" for one in client.api_resources())
    assert client.version().major == "1"
    assert client.config.namespace == "default"


def test_a_guarded_client_asks_before_it_writes(client: Client) -> None:
    def refuse() -> None:
        raise kinform.LeadershipLost("not any more")

    guarded = client.guarded(refuse).resource("v1/configmaps")
    assert not guarded.list()
    with pytest.raises(kinform.LeadershipLost):
        guarded.create(body("a"))


def test_run_is_for_what_the_facade_does_not_offer(client: Client) -> None:
    assert b"gitVersion" in run(client.asynchronous.rest().get().abs_path("/version").raw)


# --- threads and loops


def test_many_threads_share_one_client(maps: ResourceClient) -> None:
    def write_and_read(n: int) -> str:
        maps.create(body(f"m{n}", n=str(n)))
        return str(maps.get(f"m{n}").at("data", "n"))

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(write_and_read, range(48))) == [str(n) for n in range(48)]
    assert len(maps.list()) == 48


def test_all_clients_share_one_loop_thread(server: APIServerThread, client: Client) -> None:
    config = Config(server=server.url, token=server.token)
    with connect(config) as other:
        other.version()
    assert [one.name for one in threading.enumerate()].count("kinform-sync") == 1


async def test_it_works_where_an_event_loop_runs(maps: ResourceClient) -> None:
    """As in a notebook: the caller's loop stands still meanwhile, ours does not."""
    maps.create(body("a"))
    assert maps.get("a").name == "a"


def test_context_variables_of_the_caller_are_there() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def read() -> str:
        return variable.get()

    variable.set("mine")
    assert run(read) == "mine"


def test_a_blocking_call_on_the_loop_thread_says_what_to_do(maps: ResourceClient) -> None:
    maps.create(body("a"))

    def change(content: dict[str, object]) -> None:
        maps.get("a")

    with pytest.raises(kinform.UsageError, match="Handlers run on threads of their own"):
        maps.update("a", change)


# --- errors, cancellation, life


def test_an_error_keeps_its_class_and_shows_where_it_comes_from(maps: ResourceClient) -> None:
    with pytest.raises(kinform.NotFoundError, match='configmaps "nope" not found') as caught:
        maps.get("nope")
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[0] == "test_an_error_keeps_its_class_and_shows_where_it_comes_from"
    assert "get" in frames


def test_what_a_coroutine_raises_for_the_process_reaches_its_caller_alone() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        run(leave)
    assert run(tasks_on_the_loop) == 0  # and the loop goes on


def test_a_call_that_cannot_even_begin_fails_in_the_caller(maps: ResourceClient) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        maps.get()  # type: ignore[call-arg]


def test_closing_the_client_ends_a_call_of_another_thread(
    server: APIServerThread, client: Client
) -> None:
    server.faults.add(faults.stall(verb="get", resource="configmaps"))
    maps = client.resource("v1/configmaps")
    maps.list()
    failures: list[Exception] = []

    def ask() -> None:
        try:
            maps.get("a")
        except kinform.KinformError as exc:
            failures.append(exc)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: run(tasks_on_the_loop) > 0)
    client.close()
    thread.join(10)
    assert len(failures) == 1
    eventually(lambda: run(tasks_on_the_loop) == 0)


def test_a_client_that_is_not_open_says_how_to_open_it() -> None:
    client = connect("http://127.0.0.1:1")
    with pytest.raises(kinform.UsageError, match="enter it first: `with client`"):
        client.resource("v1/pods")
    client.close()
    assert not client.is_open


def test_a_client_is_opened_once_and_closed_often(server: APIServerThread, client: Client) -> None:
    with pytest.raises(kinform.UsageError, match="opened before"):
        client.open()
    assert client.version().major  # and is none the worse for it
    client.close()
    client.close()
    with pytest.raises(kinform.UsageError, match="closed"):
        client.version()


def test_a_missing_configuration_is_an_error_on_entering(tmp_path: object) -> None:
    with pytest.raises(kinform.ConfigError), connect(kubeconfig=f"{tmp_path}/none"):
        pass


def test_methods_look_like_their_originals() -> None:
    for name in ("get", "list", "create", "patch", "watch"):
        ours, theirs = getattr(ResourceClient, name), getattr(AsyncResourceClient, name)
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs)
        assert not inspect.iscoroutinefunction(ours)


def test_typed_clients_lead_to_the_same_kinds(client: Client) -> None:
    maps = client.core_v1.config_maps("default")
    metadata = meta_v1.ObjectMeta(name="typed")
    made = maps.create(core_v1.ConfigMap(metadata=metadata, data={"color": "red"}))
    assert isinstance(made, core_v1.ConfigMap)
    assert maps.get("typed").data == {"color": "red"}
    assert "default" in {one.metadata.name for one in client.core_v1.namespaces().list()}
    with maps.informer() as informer:
        informer.wait_synced(30)
        cached = informer.lister.get("default/typed")
        assert cached is not None
        assert cached.data == {"color": "red"}
    maps.delete("typed")

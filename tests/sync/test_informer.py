"""Informers in blocking code: reads where one is, handlers that may block, an end in any case."""

from __future__ import annotations

import gc
import logging
import threading
import time
from concurrent.futures import CancelledError

import pytest

import kinform
from kinform.apiserver import faults
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.sync import (
    Client,
    ResourceClient,
    SharedInformerFactory,
    run,
    wait_for_cache_sync,
)
from kinform.testing import APIServerThread
from tests.sync.test_client import body, tasks_on_the_loop
from tests.testing.eventually import eventually


def threads_of_handlers() -> list[str]:
    names = {one.name for one in threading.enumerate()} - {"kinform-sync", "kinform-apiserver"}
    return [name for name in names if name.startswith("kinform-")]


def test_the_cache_is_the_same_object_as_on_the_loop(client: Client, maps: ResourceClient) -> None:
    maps.create(body("a"))
    with client.informer("v1/configmaps", indexers={"name": lambda it: it.name}) as informer:
        informer.wait_synced(10)
        assert informer.lister is informer.asynchronous.lister
        assert informer.lister.get("default/a") == maps.get("a")
        assert informer.indexer.by_index("name", "a") == [maps.get("a")]
        assert informer.has_synced
        assert informer.last_sync_resource_version
        assert not informer.unreadable
        assert informer.statistics().objects == 1
        assert informer.healthy()
    assert informer.is_stopped
    assert informer.lister.get("default/a")  # readable as it was last


def test_reads_its_own_writes(client: Client, maps: ResourceClient) -> None:
    with client.informer("v1/configmaps") as informer:
        informer.wait_synced(10)
        made = maps.create(body("a"))
        informer.wait_until(made.resource_version, 10)
        assert informer.lister.get("default/a") == made
        assert informer.wait_for(lambda it: it.get("default/a"), 10) == made


@pytest.mark.slow
def test_a_time_out_says_what_is_wrong(server: APIServerThread, client: Client) -> None:
    server.faults.add(faults.status(403, resource="configmaps"))
    with client.informer("v1/configmaps") as informer:
        with pytest.raises(TimeoutError, match="has not synced within"):
            informer.wait_synced(0.5)


def test_handlers_run_in_order_on_one_thread_of_their_own(
    client: Client, maps: ResourceClient
) -> None:
    delivered: list[tuple[str, str]] = []
    informer = client.informer("v1/configmaps")
    registration = informer.add_event_handler(
        on_add=lambda event: delivered.append((event.key.name, threading.current_thread().name)),
        on_update=lambda event: delivered.append((event.key.name, threading.current_thread().name)),
        name="mine",
    )
    with informer:
        registration.wait_synced(10)
        for n in range(5):
            maps.create(body(f"m{n}"))
        eventually(lambda: len(delivered) == 5)
    assert [name for name, _ in delivered] == [f"m{n}" for n in range(5)]
    assert {thread for _, thread in delivered} == {"kinform-mine-1"}
    eventually(lambda: not threads_of_handlers())


def test_a_handler_may_call_the_cluster(client: Client, maps: ResourceClient) -> None:
    def copy(event: kinform.Added[kinform.Object]) -> None:
        if event.key.name == "a":
            maps.create(body("copy", n=str(maps.get("a").at("data", "n"))))

    with client.informer("v1/configmaps") as informer:
        informer.add_event_handler(on_add=copy)
        maps.create(body("a", n="1"))
        assert informer.wait_for(lambda it: it.get("default/copy"), 10).at("data", "n") == "1"


def test_a_slow_handler_harms_nobody(client: Client, maps: ResourceClient) -> None:
    go_on = threading.Event()
    quick: list[str] = []
    maps.create(body("m0"))
    with client.informer("v1/configmaps") as informer:
        slow = informer.add_event_handler(on_add=lambda event: go_on.wait(20), name="slow")
        informer.add_event_handler(on_add=lambda event: quick.append(event.key.name))
        for n in (1, 2):
            maps.create(body(f"m{n}"))
        eventually(lambda: len(quick) == 3)
        assert len(informer.lister.list()) == 3
        assert not slow.has_synced
        go_on.set()
        slow.wait_synced(10)


def test_a_failing_handler_is_logged_and_counted(
    client: Client, maps: ResourceClient, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: kinform.Added[kinform.Object]) -> None:
        raise ValueError("no")

    maps.create(body("a"))
    with client.informer("v1/configmaps") as informer:
        informer.add_event_handler(on_add=fail).wait_synced(10)
        (figures,) = informer.statistics().handlers
    assert figures.errors == 1
    assert figures.last_error == "ValueError on default/a"
    assert "fail failed on Added of default/a" in caplog.text


def test_a_handler_value_is_told_on_its_own_at_each_informer(
    client: Client, maps: ResourceClient
) -> None:
    maps.create(body("a"))
    delivered: list[str] = []
    value: EventHandler[kinform.Object] = handler(
        on_add=lambda event: delivered.append(event.key.name), filter=lambda it: True
    )
    with client.informer("v1/configmaps") as one, client.informer("v1/configmaps") as other:
        wait_for_cache_sync(
            one.add_event_handler(value), other.add_event_handler(value), timeout=10
        )
    assert delivered == ["a", "a"]
    with pytest.raises(kinform.UsageError, match="not both"):
        client.informer("v1/configmaps").add_event_handler(value, name="x")
    with pytest.raises(kinform.UsageError, match="is not a handler"):
        client.informer("v1/configmaps").add_event_handler(print)  # type: ignore[arg-type]


def test_an_async_handler_is_refused(client: Client) -> None:
    async def on_add(event: object) -> None: ...

    with pytest.raises(kinform.UsageError, match="a blocking informer calls plain ones"):
        client.informer("v1/configmaps").add_event_handler(on_add=on_add)


def test_a_filter_that_calls_the_cluster_is_told_where_it_runs(
    client: Client, maps: ResourceClient, caplog: pytest.LogCaptureFixture
) -> None:
    maps.create(body("a"))
    with client.informer("v1/configmaps") as informer:
        registration = informer.add_event_handler(
            on_add=print, filter=lambda it: bool(maps.get("a"))
        )
        registration.wait_synced(10)
    assert "a blocking call on kinform's own thread would wait for itself" in caplog.text


# --- removal


def test_a_handler_can_be_removed_and_waited_for(client: Client, maps: ResourceClient) -> None:
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def on_add(event: kinform.Added[kinform.Object]) -> None:
        began.set()
        go_on.wait(20)
        ended.set()

    maps.create(body("a"))
    with client.informer("v1/configmaps") as informer:
        registration = informer.add_event_handler(on_add=on_add)
        assert began.wait(10)
        threading.Timer(0.05, go_on.set).start()
        registration.shut_down()
        assert ended.is_set()
        assert registration.is_removed
        informer.remove_event_handler(registration)  # once more does nothing
        eventually(lambda: not threads_of_handlers())  # its thread is gone before the informer


def test_a_handler_cannot_wait_for_itself(client: Client, maps: ResourceClient) -> None:
    delivered: list[str] = []
    done = threading.Event()
    informer = client.informer("v1/configmaps")

    def on_add(event: kinform.Added[kinform.Object]) -> None:
        for wait in (registration.shut_down, informer.wait_stopped):
            try:
                wait()
            except kinform.UsageError as exc:
                delivered.append(str(exc))
        registration.remove()
        informer.stop()  # asks for it, and does not wait
        done.set()

    registration = informer.add_event_handler(on_add=on_add)
    maps.create(body("a"))
    informer.run()
    assert done.wait(10)
    assert delivered[0] == "handler 'on_add' cannot wait for its own callback; use remove() there"
    assert "a handler of v1/configmaps cannot wait for the end of v1/configmaps" in delivered[1]


# --- the end


def test_stop_comes_from_any_thread_and_run_returns(client: Client) -> None:
    informer = client.informer("v1/configmaps")

    def stop_when_synced() -> None:
        eventually(lambda: informer.has_synced)
        informer.stop()

    thread = threading.Thread(target=stop_when_synced)
    thread.start()
    informer.run()
    thread.join(10)
    assert informer.is_stopped
    assert run(tasks_on_the_loop) == 0


def test_stop_is_bounded_by_its_grace_and_ends_a_handlers_call(
    server: APIServerThread,
    client: Client,
    maps: ResourceClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The thread cannot be ended, but its blocking calls can: the handler gets the error."""
    delivered: list[BaseException] = []
    began, over = threading.Event(), threading.Event()

    def on_add(event: kinform.Added[kinform.Object]) -> None:
        began.set()
        for _ in range(2):  # again: the call after the one that was cancelled is refused
            try:
                maps.get("a")
            except CancelledError as exc:
                delivered.append(exc)
        over.set()

    maps.create(body("a"))
    server.faults.add(faults.stall(verb="get", resource="configmaps"))
    informer = client.informer("v1/configmaps")
    informer.add_event_handler(on_add=on_add)
    informer.start()
    assert began.wait(10)
    started = time.monotonic()
    informer.stop(grace=0.2)
    assert time.monotonic() - started < 10
    assert over.wait(10)
    assert len(delivered) == 2
    eventually(lambda: run(tasks_on_the_loop) == 0)
    eventually(lambda: not threads_of_handlers())


def test_a_handler_that_never_returns_is_named_and_left_behind(
    client: Client, maps: ResourceClient, caplog: pytest.LogCaptureFixture
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def on_add(event: kinform.Added[kinform.Object]) -> None:
        began.set()
        go_on.wait(20)

    maps.create(body("a"))
    with caplog.at_level(logging.ERROR), client.informer("v1/configmaps") as informer:
        informer.add_event_handler(on_add=on_add, name="stuck")
        assert began.wait(10)
        started = time.monotonic()
        informer.stop(grace=0.1)
        assert time.monotonic() - started < 10
    assert "handler stuck ignores its cancellation and is abandoned" in caplog.text
    go_on.set()
    eventually(lambda: run(tasks_on_the_loop) == 0)


def test_a_handler_that_never_returns_keeps_nothing_from_the_others(
    client: Client, maps: ResourceClient
) -> None:
    began, go_on = threading.Event(), threading.Event()
    delivered: list[str] = []

    def on_add(event: kinform.Added[kinform.Object]) -> None:
        began.set()
        go_on.wait(20)

    maps.create(body("a"))
    with client.informer("v1/configmaps") as informer:
        stuck = informer.add_event_handler(on_add=on_add)
        assert began.wait(10)
        free = informer.add_event_handler(on_add=lambda event: delivered.append(event.obj.name))
        free.wait_synced(10)
        maps.create(body("b"))
        eventually(lambda: delivered == ["a", "b"])
        assert not go_on.is_set()
        assert not stuck.has_synced
        go_on.set()
        stuck.wait_synced(10)


def test_an_informer_is_started_once(client: Client) -> None:
    informer = client.informer("v1/configmaps")
    with pytest.raises(kinform.UsageError, match="was not started"):
        informer.wait_stopped()
    with informer, pytest.raises(kinform.UsageError, match="was started before"):
        informer.run()


# --- events


def test_events_are_a_plain_iterator_that_ends_with_the_informer(
    client: Client, maps: ResourceClient
) -> None:
    for n in range(3):
        maps.create(body(f"m{n}"))
    seen = []
    with client.informer("v1/configmaps") as informer:
        for event in informer.events():
            seen.append(event)
            if len(seen) == 3:
                maps.delete("m0")
            if isinstance(event, kinform.Deleted):
                informer.stop()
    assert {event.key.name for event in seen[:3]} == {"m0", "m1", "m2"}
    assert all(isinstance(event, kinform.Added) for event in seen[:3])
    assert isinstance(seen[3], kinform.Deleted)


def test_a_stream_has_synced_when_the_reader_came_back_for_more(
    client: Client, maps: ResourceClient
) -> None:
    for n in range(3):
        maps.create(body(f"m{n}"))
    with client.informer("v1/configmaps") as informer:
        informer.wait_synced(10)
        with informer.events() as events:
            for _ in range(3):
                next(events)
                assert not events.has_synced
            maps.create(body("m3"))
            next(events)
            assert events.has_synced
        assert next(events, None) is None


def test_closing_a_stream_ends_it_for_who_waits(client: Client) -> None:
    with client.informer("v1/configmaps") as informer:
        informer.wait_synced(10)
        events = informer.events()
        ends: list[object] = []
        reader = threading.Thread(target=lambda: ends.append(next(events, "end")))
        reader.start()
        eventually(lambda: events._reader._is_read)
        events.close()
        reader.join(10)
        assert ends == ["end"]


# --- factories


def test_a_factory_shares_informers(client: Client, maps: ResourceClient) -> None:
    maps.create(body("a"))
    factory = SharedInformerFactory(client, namespaces="default")
    factory.configure("v1/secrets", resync_period=60)
    informer = factory.informer("v1/configmaps")
    assert factory.informer("v1/configmaps") is informer
    assert list(factory.all_informers) == [informer]
    assert factory.namespaces == ("default",)
    delivered: list[str] = []
    informer.add_event_handler(on_add=lambda event: delivered.append(event.key.name))
    with factory:
        factory.wait_for_cache_sync(10)
        wait_for_cache_sync(informer, timeout=10)
        assert informer.lister.get("default/a")
        eventually(lambda: delivered == ["a"])
        secrets = factory.informer("v1/secrets")
        factory.start()
        secrets.wait_synced(10)
        factory.remove(secrets)
        assert secrets.is_stopped
        factory.remove(secrets)  # not its own any more
    assert informer.is_stopped
    eventually(lambda: not threads_of_handlers())
    with pytest.raises(kinform.UsageError, match="shut down"):
        factory.informer("v1/pods")


def test_informers_of_several_namespaces_are_used_as_one(
    client: Client, maps: ResourceClient
) -> None:
    client.resource("v1/namespaces").create({"metadata": {"name": "other"}})
    maps.create(body("a"))
    maps.in_namespace("other").create(body("b"))
    factory = SharedInformerFactory(client, namespaces=["default", "other"])
    group = factory.informers("v1/configmaps")
    delivered: list[str] = []
    registrations = group.add_event_handler(on_add=lambda event: delivered.append(event.key.name))
    with pytest.raises(kinform.UsageError):
        group.add_event_handler()
    with factory:
        group.wait_synced(10)
        assert group.has_synced
        wait_for_cache_sync(group, *registrations.values(), timeout=10)
        assert {one.name for one in group.list()} == {"a", "b"}
        assert group.get("other/b")
    assert sorted(delivered) == ["a", "b"]
    assert set(group.informers) == {"default", "other"}


def test_waiting_for_nothing_is_refused() -> None:
    with pytest.raises(kinform.UsageError, match="nothing to wait for"):
        wait_for_cache_sync()


def test_a_stream_that_nobody_holds_is_gone_at_once(client: Client, maps: ResourceClient) -> None:
    """Without a garbage collection: its buffer would fill until then."""
    maps.create(body("a"))
    with client.informer("v1/configmaps") as informer:
        informer.wait_synced(10)
        gc.disable()
        try:
            for _ in range(5):
                for _ in informer.events():
                    break
            eventually(lambda: not informer.statistics().handlers)
        finally:
            gc.enable()


def test_a_cache_that_was_never_filled_cannot_be_read(
    server: APIServerThread, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    informer = client.informer("v1/configmaps")
    for read in (
        informer.lister.list,
        lambda: informer.lister.get("default/a"),
        lambda: len(informer.indexer),
    ):
        with pytest.raises(kinform.UsageError, match="v1/configmaps was not started"):
            read()
    server.faults.add(faults.status(403, resource="configmaps"))
    with informer:
        assert informer.lister.list() == []
        assert informer.lister.list() == []
        with pytest.raises(TimeoutError, match=r"has not synced .* needs the rule") as caught:
            informer.wait_for(lambda maps: maps.get("default/a") is None, 0.5)
        assert isinstance(caught.value.__cause__, kinform.ForbiddenError)
    assert informer.lister.list() == []
    assert len([one for one in caplog.records if "before its first sync" in one.msg]) == 1


def test_a_key_that_no_object_can_have_is_refused(client: Client, maps: ResourceClient) -> None:
    maps.create(body("a"))
    with client.informer("v1/configmaps") as informer:
        informer.wait_synced(10)
        for key in ("a", ("default", "a"), maps.get("a"), None):
            with pytest.raises(kinform.UsageError, match="pass"):
                informer.lister.get(key)  # type: ignore[arg-type]
        with pytest.raises(kinform.UsageError, match="pass"):
            informer.lister.namespace("default").get("default/a")


def test_keywords_are_checked_when_they_are_given(client: Client) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'indexer'"):
        client.informer("v1/configmaps", indexer={})  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected keyword argument 'indexer'"):
        SharedInformerFactory(client, indexer={})  # type: ignore[call-arg]
    with pytest.raises(kinform.UsageError, match="transform is of type str"):
        SharedInformerFactory(client, transform="x")  # type: ignore[arg-type]
    assert SharedInformerFactory(client, namespace="a").namespaces == ("a",)
    with pytest.raises(kinform.UsageError, match="no namespace can be called"):
        client.resource("v1/configmaps", namespace="A")

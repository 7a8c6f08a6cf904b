"""Reconciles that are plain functions, in threads, in real time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.clock import offload
from kinform.runtime.controller._threads import Threads
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.statistics import Outcome
from tests.runtime.support_controllers import MAPS, controller, key, named, running


async def test_a_plain_function_runs_in_a_thread_and_may_write() -> None:
    threads: set[str] = set()

    def reconcile(ctx: Context, name: kinform.ObjectName) -> None:
        threads.add(threading.current_thread().name)
        cached = ctx.lister(MAPS).get(name)
        if cached is not None and not cached.at("data", "n"):
            written = ctx.wait(ctx.client.resource(MAPS).patch(name, {"data": {"n": "1"}}))
            ctx.wait(ctx.wait_for_cache(written))

    async with APIServer(port=None) as server, server.connect() as client:
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("a"))
        async with running(client, controller(reconcile)), client.informer(MAPS) as informer:
            await informer.wait_for(
                lambda cache: (one := cache.get("default/a")) and one.at("data", "n"), 10
            )
    assert threads == {"kinform-test-1"}


@pytest.mark.slow
async def test_a_function_that_takes_too_long_keeps_its_name_until_it_returns() -> None:
    go_on, late, again = threading.Event(), threading.Event(), threading.Event()

    def reconcile(ctx: Context, _name: kinform.ObjectName) -> None:
        if late.is_set():
            again.set()
            return
        while not ctx.is_cancelled:
            go_on.wait(0.01)
        late.set()
        go_on.wait(30)
        with pytest.raises(TimeoutError, match="the time of <Context test default/a> is up"):
            ctx.wait(ctx.wait_for_cache(kinform.Object.from_dict(named("x"))))

    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource(MAPS, namespace="default").create(named("a"))
        one = controller(reconcile, timeout=0.5, workers=2)
        async with running(client, one):
            assert await offload(late.wait, 30)
            one.queue.add(key("a"))
            assert one.queue.statistics().processing == 1
            assert len(one.queue) == 0  # though a worker is free
            go_on.set()
            assert await offload(again.wait, 30)
        assert one.statistics().outcomes[Outcome.TIMEOUT] == 1


async def test_a_wrapper_around_an_async_function_will_do() -> None:
    done = asyncio.Event()

    async def reconcile(_ctx: Context, _name: kinform.ObjectName) -> None:
        done.set()

    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource(MAPS, namespace="default").create(named("a"))
        one = controller(lambda ctx, name, timeout=None: reconcile(ctx, name))
        async with running(client, one):
            async with asyncio.timeout(10):
                await done.wait()


async def test_threads_are_used_again() -> None:
    threads = Threads("t")
    names = [
        await threads.call(lambda: threading.current_thread().name, on_cancel=lambda: None)
        for _ in range(5)
    ]
    assert names == ["t-1"] * 5
    barrier = threading.Barrier(3)
    together = await asyncio.gather(
        *(threads.call(lambda: barrier.wait(10), on_cancel=lambda: None) for _ in range(3))
    )
    assert sorted(together) == [0, 1, 2]
    threads.close()


async def test_what_a_function_raises_passes() -> None:
    threads = Threads("t")

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await threads.call(fail, on_cancel=lambda: None)
    threads.close()


@pytest.mark.slow
def test_a_function_that_never_returns_does_not_keep_the_process_from_ending() -> None:
    program = textwrap.dedent("""
        import asyncio, threading
        from kinform.apiserver import APIServer
        from kinform.runtime.controller.controller import Controller
        from kinform.runtime.manager import Manager

        begun = threading.Event()

        def reconcile(ctx, name):
            begun.set()
            threading.Event().wait()

        async def main():
            async with APIServer(port=None) as server, server.connect() as client:
                async with Manager(client, grace=0.1) as manager:
                    manager.add(Controller("test", reconcile, for_="v1/namespaces"))
                    await manager.start()
                    await asyncio.to_thread(begun.wait)
                print("stopped")

        asyncio.run(main())
        print("over")
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["stopped", "over"], done.stderr
    assert done.returncode == 0
    assert "not done within the grace" in done.stderr


async def test_what_a_thread_waits_for_ends_with_its_time() -> None:
    ends: list[str] = []
    again = asyncio.Event()
    loop = asyncio.get_running_loop()

    def reconcile(ctx: Context, _name: kinform.ObjectName) -> None:
        if ends:
            loop.call_soon_threadsafe(again.set)
            return
        try:
            ctx.wait(asyncio.sleep(1000))
        except TimeoutError as error:
            ends.append(str(error))
            raise

    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(reconcile, timeout=0.05)):
            async with asyncio.timeout(10):
                await again.wait()
    assert ends == ["the time of <Context test default/a> is up"]


async def test_a_stop_iteration_is_a_failure_like_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again = asyncio.Event()
    loop = asyncio.get_running_loop()

    def reconcile(ctx: Context, _name: kinform.ObjectName) -> None:
        if ctx.attempt:
            loop.call_soon_threadsafe(again.set)
            return
        next(iter(()))

    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(reconcile)):
            async with asyncio.timeout(10):
                await again.wait()
    assert "RuntimeError: the function raised StopIteration" in caplog.text

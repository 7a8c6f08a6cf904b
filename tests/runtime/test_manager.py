"""Managers: how programs of controllers start, lead, report and stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator

import aiohttp
import pytest

import kinform
from kinform.apiserver import APIServer, faults
from kinform.apiserver.memory import MemoryTransport
from kinform.cache.store.indexes import NAMESPACE_INDEX
from kinform.rest.transport import HttpRequest, HttpResponse
from kinform.runtime.controller.context import Context
from kinform.runtime.controller.controller import Controller
from kinform.runtime.controller.reconciler import Result
from kinform.runtime.manager import Manager
from kinform.runtime.source.kind import KindSource
from kinform.runtime.source.triggers import StreamSource, TimerSource
from kinform.testing import in_virtual_time, virtual_clock
from tests.runtime.support_controllers import (
    MAPS,
    SECRETS,
    Log,
    controller,
    key,
    named,
    running,
    served,
)

LEASE = kinform.LeaderElection(lease="test", namespace="default", identity="one")
OTHER = kinform.LeaderElection(lease="test", namespace="default", identity="two")


# --- stopping ---------------------------------------------------------------------------------


@in_virtual_time
async def test_a_stop_lets_what_waits_and_what_runs_be_done() -> None:
    finished: list[str] = []

    async def work(_ctx: Context, name: kinform.ObjectName) -> None:
        await asyncio.sleep(2)
        finished.append(name.name)

    log = Log(work)
    async with served() as (_, client):
        for number in range(4):
            await client.resource(MAPS, namespace="default").create(named(f"m{number}"))
        async with running(client, controller(log)):
            await log.called(1)
    assert sorted(finished) == ["m0", "m1", "m2", "m3"]


@in_virtual_time
async def test_what_takes_longer_than_the_grace_is_cancelled_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cancelled: list[str] = []

    async def hang(_ctx: Context, name: kinform.ObjectName) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(name.name)

    log = Log(hang)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        clock = asyncio.get_running_loop().time
        async with Manager(client, signals=False, grace=7) as manager:
            manager.add(controller(log))
            await manager.start()
            await log.called(1)
            began = clock()
        assert 7 <= clock() - began <= 8
    assert cancelled == ["a"]
    assert "test: 1 not done within the grace of 7 s: default/a" in caplog.text


@in_virtual_time
async def test_a_reconcile_that_ignores_its_cancellation_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = asyncio.Event()

    async def deaf(_ctx: Context, _name: kinform.ObjectName) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    log = Log(deaf)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        clock = asyncio.get_running_loop().time
        async with Manager(client, signals=False, grace=1) as manager:
            manager.add(controller(log))
            await manager.start()
            await log.called(1)
            began = clock()
        assert clock() - began < 3
        assert "test: reconcile ignores its cancellation and is abandoned: default/a" in caplog.text
        release.set()
        await asyncio.sleep(1)


@in_virtual_time
async def test_cancelling_run_drains_and_cancelling_again_does_not() -> None:
    ends: list[str] = []

    async def work(_ctx: Context, _name: kinform.ObjectName) -> None:
        try:
            await asyncio.sleep(10)
            ends.append("done")
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    for cancels, end in ((1, "done"), (2, "cancelled")):
        log = Log(work)
        async with served() as (_, client):
            await client.resource(MAPS, namespace="default").create(named("a"))
            async with Manager(client, signals=False) as manager:
                manager.add(controller(log))
                task = asyncio.get_running_loop().create_task(manager.run())
                await log.called(1)
                for _ in range(cancels):
                    task.cancel()
                    await asyncio.sleep(1)
                with pytest.raises(asyncio.CancelledError):
                    await task
        assert ends.pop() == end


@in_virtual_time
async def test_a_manager_that_was_never_started_ends_at_once() -> None:
    async with served() as (_, client), Manager(client) as manager:
        manager.add(controller(Log()))
        with pytest.raises(kinform.UsageError, match="was not started"):
            await manager.wait_warm(1)


# --- starting ---------------------------------------------------------------------------------


@in_virtual_time
async def test_what_makes_no_sense_is_refused() -> None:
    async with served() as (_, client):
        with pytest.raises(kinform.UsageError, match="grace is -1"):
            Manager(client, grace=-1)
        with pytest.raises(kinform.UsageError, match=r"expected LeaderElection\(lease"):
            Manager(client, leader_election="test")  # type: ignore[arg-type]
        with pytest.raises(kinform.UsageError, match=r"client is of type str; expected kinform"):
            Manager("http://localhost")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="unexpected keyword argument 'leader_electon'"):
            Manager(client, leader_electon=LEASE)  # type: ignore[call-arg]
        with pytest.raises(kinform.UsageError, match="is not a Controller"):
            Manager(client).add(print)  # type: ignore[arg-type]
        async with Manager(client, signals=False) as manager:
            manager.add(controller(Log()))
            with pytest.raises(kinform.UsageError, match="there is a controller 'test' already"):
                manager.add(controller(Log()))
            await manager.start()
            with pytest.raises(kinform.UsageError, match="a manager runs once"):
                await manager.run()
            with pytest.raises(kinform.UsageError, match="must be added before"):
                manager.add(controller(Log()))


@in_virtual_time
async def test_controllers_share_informers_and_look_where_the_manager_does() -> None:
    log, other = Log(), Log()
    async with served() as (_, client):
        for namespace in ("default", "kube-public", "kube-system"):
            await client.resource(MAPS, namespace=namespace).create(
                {"metadata": {"name": f"of-{namespace}"}}
            )
        places = ["default", "kube-public"]
        async with Manager(client, signals=False, namespaces=places) as manager:
            manager.add(
                Controller("one", log, for_=MAPS),
                Controller("two", other, for_=MAPS),
            )
            await manager.start()
            await log.called(2)
            await other.called(2)
            await manager.wait_warm(5)
            assert len(manager.factory.all_informers) == 2
            maps = log.contexts[0].lister(MAPS)
            assert {found.name for found in maps.list()} == {"of-default", "of-kube-public"}
            assert maps.get("kube-public/of-kube-public") is not None
            (public,) = maps.by_index(NAMESPACE_INDEX, "kube-public")
            assert public.name == "of-kube-public"
            assert maps.get("kube-system/of-kube-system") is None
    assert sorted(log.names) == sorted(other.names) == ["of-default", "of-kube-public"]


@in_virtual_time
async def test_an_outage_at_the_start_is_waited_out() -> None:
    log = Log()
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        server.faults.add(faults.refuse())
        async with running(client, controller(log, owns=[SECRETS])):
            await asyncio.sleep(120)
            assert not log.names
            server.faults.clear()
            await log.called(1)


# --- leading ----------------------------------------------------------------------------------


def manager_of(client: kinform.Client, log: Log, election: kinform.LeaderElection) -> Manager:
    manager = Manager(client, leader_election=election, signals=False)
    manager.add(controller(log))
    return manager


@in_virtual_time
async def test_one_works_and_the_other_has_everything_ready() -> None:
    one, two = Log(), Log()
    async with served() as (_, client):
        maps = client.resource(MAPS, namespace="default")
        await maps.create(named("a"))
        async with (
            manager_of(client, one, LEASE) as first,
            manager_of(client, two, OTHER) as second,
        ):
            await first.start()
            await one.called(1)
            await second.start()
            await second.wait_warm(60)
            await maps.patch("a", {"data": {"k": "1"}})
            await one.called(2)
            (waiting,) = second.controllers
            assert waiting.is_warm
            assert len(waiting.queue) == 0  # it would grow without workers
            assert one.contexts[0].fencing_number.isdigit()
            assert not two.names

            clock = asyncio.get_running_loop().time
            began = clock()
            await first.stop()  # gives the lease back
            await two.called(1)
            assert clock() - began < 6
            assert two.contexts[0].fencing_number > one.contexts[0].fencing_number


@in_virtual_time
async def test_a_leader_that_is_cut_off_stops_before_another_begins() -> None:
    """Its reconcile is cancelled, its writes are refused, and ``run`` says why."""
    clock = asyncio.get_running_loop().time
    ended: list[float] = []
    began: list[float] = []

    async def hang(_ctx: Context, _name: kinform.ObjectName) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(clock())

    async def note(_ctx: Context, _name: kinform.ObjectName) -> None:
        began.append(clock())

    one, two = Log(hang), Log(note)
    async with served() as (server, healthy):
        await healthy.resource(MAPS, namespace="default").create(named("a"))
        cable = Cable(server)
        config = kinform.Config(server="http://localhost", token=server.token)
        client = kinform.connect(config, transport=cable)
        async with client, manager_of(client, one, LEASE) as first:
            leading = asyncio.get_running_loop().create_task(first.run())
            await one.called(1)
            async with manager_of(healthy, two, OTHER) as second:
                await second.start()
                await second.wait_warm(60)
                cable.is_cut = True
                await two.called(1)
            with pytest.raises(kinform.LeadershipLost, match="lease default/test"):
                await leading
    assert ended[0] < began[0]


class Cable:
    """A transport that can be cut: what is sent then never arrives."""

    def __init__(self, server: APIServer) -> None:
        self._whole = MemoryTransport(server.application)
        self.is_cut = False

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        if self.is_cut:
            await asyncio.Event().wait()
        async with self._whole.send(request) as response:
            yield response

    async def aclose(self) -> None:
        await self._whole.aclose()


@in_virtual_time
async def test_after_a_sleep_of_the_machine_the_first_write_is_refused() -> None:
    """Nothing had a chance to run meanwhile: no renewal, and no timer that noticed."""
    outcomes: list[str] = []

    async def write(ctx: Context, name: kinform.ObjectName) -> Result | None:
        maps = ctx.client.resource(MAPS)
        await maps.patch(name, {"data": {"k": "1"}})
        virtual_clock().suspend(60)
        try:
            await maps.patch(name, {"data": {"k": "2"}})
            outcomes.append("written")
        except kinform.LeadershipLost:
            outcomes.append("refused")
            raise
        return None

    log = Log(write)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with manager_of(client, log, LEASE) as manager:
            with pytest.raises(kinform.LeadershipLost):
                await manager.run()
        written = await client.resource(MAPS, namespace="default").get("a")
    assert outcomes[0] == "refused"
    assert written.at("data", "k") == "1"


@in_virtual_time
async def test_who_need_not_lead_works_everywhere() -> None:
    one, two, everywhere = Log(), Log(), Log()
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with (
            manager_of(client, one, LEASE) as first,
            manager_of(client, two, OTHER) as second,
        ):
            source = KindSource(MAPS, namespace="default")
            second.add(Controller("always", everywhere, for_=source, needs_leader=False))
            await first.start()
            await one.called(1)
            await second.start()
            await everywhere.called(1)
            await asyncio.sleep(60)
            assert not two.names
            assert everywhere.contexts[0].fencing_number == ""


@in_virtual_time
async def test_a_stop_while_it_waits_to_lead_ends_at_once() -> None:
    one, two = Log(), Log()
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with (
            manager_of(client, one, LEASE) as first,
            manager_of(client, two, OTHER) as second,
        ):
            await first.start()
            await one.called(1)
            await second.start()
            await second.wait_warm(60)
            began = asyncio.get_running_loop().time()
            await second.stop()
            assert asyncio.get_running_loop().time() - began < 1
            lease = await client.resource("leases.coordination.k8s.io", namespace="default").get(
                "test"
            )
            assert lease.at("spec", "holderIdentity") == "one"


# --- telling ----------------------------------------------------------------------------------


async def test_only_known_hosts_are_answered() -> None:
    async with APIServer() as server, server.connect() as client:
        manager = Manager(client, health=0, health_hosts=["metrics.example"], signals=False)
        async with manager:
            await manager.start()
            async with aiohttp.ClientSession(manager.reporting.url) as http:
                found: list[int] = []
                for host in ("localhost", "metrics.example", "rebound.example"):
                    async with http.get("/livez", headers={"Host": host}) as answer:
                        found.append(answer.status)
    assert found == [200, 200, 421]


async def test_probes_and_metrics_are_served_over_http() -> None:
    log = Log()
    async with APIServer() as server, server.connect() as client:
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with Manager(client, health=0, signals=False) as manager:
            manager.add(controller(log))
            manager.reporting.ready.add("mine", lambda: None)
            await manager.start()
            await log.called(1)
            await manager.wait_warm(30)
            assert manager.reporting.url.startswith("http://127.0.0.1:")
            async with aiohttp.ClientSession(manager.reporting.url) as http:
                async with http.get("/readyz?verbose") as ready:
                    assert ready.status == 200
                    text = await ready.text()
                async with http.get("/livez") as live:
                    assert (live.status, await live.text()) == (200, "ok")
                async with http.get("/metrics") as metrics:
                    figures = await metrics.text()
    for line in ("[+]shutdown ok", "[+]controllers ok", "[+]informers ok", "[+]mine ok"):
        assert line in text
    assert 'controller_runtime_reconcile_total{controller="test",result="success"} 1.0' in figures
    assert 'workqueue_adds_total{controller="test",name="test"} 1.0' in figures


@in_virtual_time
async def test_a_stale_cache_is_not_ready() -> None:
    log = Log()
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)) as manager:
            ready = manager.reporting.ready
            assert not ready.report().ok
            await log.called(1)
            assert ready.report().ok
            server.pause()
            await asyncio.sleep(170)
            assert ready.report().ok
            await asyncio.sleep(120)
            report = ready.report()
            assert not report.ok
            assert any("v1/configmaps has heard nothing" in line for line in report.lines)
            server.resume()
            await asyncio.sleep(120)
            assert ready.report().ok
            stopping = asyncio.get_running_loop().create_task(manager.stop())
            await asyncio.sleep(0)
            assert "[-]shutdown failed: it is stopping" in ready.report().lines
            await stopping


@in_virtual_time
async def test_logs_of_a_reconcile_say_which(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def tell(ctx: Context, _name: kinform.ObjectName) -> None:
        ctx.logger.info("seen", extra={"mine": 1})

    log = Log(tell)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(1)
    (record,) = [each for each in caplog.records if each.name == "kinform.controller.test"]
    assert record.message == "default/a: seen"
    shown = json.loads(json.dumps(vars(record), default=str))
    assert (shown["object"], shown["controller"], shown["mine"]) == ("default/a", "test", 1)
    assert shown["reconcile_id"] == log.contexts[0].reconcile_id
    assert log.contexts[0].name == key("a")


# --- its client -------------------------------------------------------------------------------


@in_virtual_time
async def test_a_client_that_is_not_open_is_opened_and_closed_by_the_manager() -> None:
    log = Log()
    async with APIServer(port=None) as server:
        client = server.connect()
        async with Manager(client, signals=False, leader_election=LEASE) as manager:
            manager.add(Controller("test", log, for_="v1/namespaces"))
            await manager.start()
            await log.called(1)
        assert not client.is_open
        with pytest.raises(kinform.UsageError, match="the client is not open"):
            await Manager(server.connect()).start()


@pytest.mark.slow
async def test_a_reconcile_that_blocks_the_loop_is_found(caplog: pytest.LogCaptureFixture) -> None:
    async def block_the_loop(_ctx: Context, _name: kinform.ObjectName) -> None:
        while "kinform test worker 1" not in caplog.text:
            alarms = caplog.text.count("has been blocked")
            while caplog.text.count("has been blocked") == alarms:
                time.perf_counter()
            await asyncio.sleep(0)  # an alarm of another cause, on a busy machine, is over now

    log = Log(block_the_loop)
    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)):
            await log.called(1)
    assert "block_the_loop" in caplog.text
    assert "kinform test worker 1" in caplog.text


@in_virtual_time
async def test_a_stop_before_the_caches_are_warm_waits_for_nobody() -> None:
    timer = TimerSource(10, [key("x")])
    async with served() as (_, client):
        one = controller(Log(), for_="example.com/v1/widgets", watches=[timer])
        async with running(client, one):
            await asyncio.sleep(60)
            assert not one.is_warm
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 1


@in_virtual_time
async def test_events_that_cannot_be_sent_hold_up_the_end_once_however_many_controllers() -> None:
    async def tell(ctx: Context, name: kinform.ObjectName) -> None:
        found = ctx.lister(MAPS).get(name)
        assert found is not None
        ctx.event(found, "Normal", "Seen", "it was seen")

    logs = [Log(tell) for _ in range(4)]
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        server.faults.add(faults.stall(verb="create"))
        source = KindSource(MAPS, namespace="default")
        names = [Controller(f"c{n}", log, for_=source) for n, log in enumerate(logs)]
        async with running(client, *names):
            for log in logs:
                await log.called(1)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 8


class Fatal(BaseException):
    """An error that must end the process."""


@in_virtual_time
async def test_what_works_everywhere_and_fails_ends_who_waits_to_lead() -> None:
    async def fail(_ctx: Context, _name: kinform.ObjectName) -> None:
        raise Fatal

    one, two = Log(), Log()
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with manager_of(client, one, LEASE) as first:
            await first.start()
            await one.called(1)
            async with manager_of(client, two, OTHER) as second:
                source = KindSource(MAPS, namespace="default")
                second.add(Controller("always", fail, for_=source, needs_leader=False))
                with pytest.raises(Fatal):
                    await second.run()
                assert repr(second) == "<Manager of test, always: over>"


async def test_a_port_that_is_taken_is_told_by_start() -> None:
    async with APIServer() as server, server.connect() as client:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(kinform.UsageError, match=f"127.0.0.1:{port} is in use"):
            async with Manager(client, health=port, signals=False) as manager:
                await manager.start()
                pytest.fail("it began")


# --- a stop that stops ------------------------------------------------------------------------


@in_virtual_time
async def test_whatever_happens_a_stop_takes_no_longer_than_the_grace_and_a_moment() -> None:
    """A silent server, a lease, events that wait, sources and handlers that mind nothing."""

    class Deaf:
        name = "deaf"

        async def run(self, add: object) -> None:
            while True:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)
                    if release.is_set():
                        return

    async def hang(ctx: Context, name: kinform.ObjectName) -> None:
        found = ctx.lister(MAPS).get(name)
        assert found is not None
        ctx.event(found, "Normal", "Seen", "it was seen")
        await asyncio.Event().wait()

    async def slow(_event: object) -> None:
        await asyncio.sleep(1000)

    release = asyncio.Event()
    for grace in (0.0, 5.0):
        log = Log(hang)
        async with served() as (server, client):
            await client.resource(MAPS, namespace="default").create(named("a"))
            manager = Manager(client, leader_election=LEASE, signals=False, grace=grace)
            manager.add(controller(log, watches=[Deaf(), Deaf()]))
            manager.factory.informer(SECRETS).add_event_handler(on_add=slow)
            await client.resource(SECRETS, namespace="default").create(named("s"))
            async with manager:
                await manager.start()
                await log.called(1)
                server.faults.add(faults.stall())
                began = asyncio.get_running_loop().time()
            assert asyncio.get_running_loop().time() - began <= grace + 0.5
            release.set()
            await asyncio.sleep(5)
            release.clear()


@in_virtual_time
async def test_who_waits_to_lead_with_a_request_under_way_stops_within_the_grace() -> None:
    async with served() as (server, client):
        manager = Manager(client, leader_election=LEASE, signals=False, grace=1)
        manager.add(controller(Log()))
        async with manager:
            await manager.start()
            await manager.wait_warm(10)
            server.faults.add(faults.stall())
            await asyncio.sleep(1)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began <= 1.5


@in_virtual_time
async def test_a_worker_whose_reconcile_swallows_its_cancellation_takes_nothing_more() -> None:
    async def swallow(_ctx: Context, _name: kinform.ObjectName) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        await asyncio.sleep(1)

    log = Log(swallow)
    async with served() as (_, client):
        for number in range(5):
            await client.resource(MAPS, namespace="default").create(named(f"m{number}"))
        async with Manager(client, signals=False, grace=0) as manager:
            manager.add(controller(log))
            await manager.start()
            await log.called(1)
        await asyncio.sleep(3600)
    assert len(log.names) == 1


@in_virtual_time
async def test_a_lease_is_not_given_back_while_a_reconcile_goes_on() -> None:
    release = asyncio.Event()

    async def deaf(_ctx: Context, _name: kinform.ObjectName) -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    log = Log(deaf)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with Manager(client, leader_election=LEASE, signals=False, grace=1) as manager:
            manager.add(controller(log))
            await manager.start()
            await log.called(1)
        leases = client.resource("leases.coordination.k8s.io", namespace="default")
        assert (await leases.get("test")).at("spec", "holderIdentity") == "one"
        release.set()
        await asyncio.sleep(1)


@in_virtual_time
async def test_the_last_events_are_sent_before_the_lease_is_given_back() -> None:
    async def tell(ctx: Context, name: kinform.ObjectName) -> None:
        found = ctx.lister(MAPS).get(name)
        assert found is not None
        await asyncio.sleep(5)
        for number in range(3):
            ctx.event(found, "Normal", f"Done{number}", "it is done")

    log = Log(tell)
    async with served() as (server, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with Manager(client, leader_election=LEASE, signals=False) as manager:
            manager.add(controller(log))
            await manager.start()
            await log.called(1)
            server.faults.add(faults.latency(0.05))
        server.faults.clear()
        events = await client.resource("v1/events", namespace="default").list()
    assert sorted(event.at("reason") for event in events) == ["Done0", "Done1", "Done2"]


@in_virtual_time
async def test_a_reconcile_may_ask_for_the_end() -> None:
    managers: list[Manager] = []

    async def enough(_ctx: Context, _name: kinform.ObjectName) -> None:
        await managers[0].stop()

    log = Log(enough)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with Manager(client, signals=False) as manager:
            managers.append(manager)
            manager.add(controller(log))
            await manager.run()
            assert asyncio.get_running_loop().time() < 1


@in_virtual_time
async def test_a_stop_that_is_given_up_ends_the_manager_and_cancels_nobody_else() -> None:
    async def hang(_ctx: Context, _name: kinform.ObjectName) -> None:
        await asyncio.Event().wait()

    log = Log(hang)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with Manager(client, signals=False) as manager:
            manager.add(controller(log))
            run = asyncio.get_running_loop().create_task(manager.run())
            await log.called(1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await manager.stop()
            await run


@in_virtual_time
async def test_messages_of_others_are_left_to_who_leads() -> None:
    taken: list[str] = []

    async def messages() -> AsyncGenerator[str]:
        for number in range(3):
            taken.append(f"m{number}")
            yield f"m{number}"

    one, two = Log(), Log()
    async with served() as (_, client):
        first, second = manager_of(client, one, LEASE), Manager(client, leader_election=OTHER)
        second.add(controller(two, watches=[StreamSource(messages, key)]))
        async with first, second:
            await first.start()
            await first.wait_warm(10)
            await asyncio.sleep(5)
            await second.start()
            await asyncio.sleep(60)
            assert not taken
            await first.stop()
            await two.called(3)
    assert two.names == ["m0", "m1", "m2"]


@in_virtual_time
async def test_the_end_of_a_started_manager_can_be_waited_for() -> None:
    async with served() as (_, client):
        manager = Manager(client, signals=False)
        with pytest.raises(kinform.UsageError, match="was not started"):
            await manager.wait_stopped()
        log = Log()
        manager.add(controller(log))
        await manager.start()
        loop = asyncio.get_running_loop()
        waiting = loop.create_task(manager.wait_stopped())
        given_up = loop.create_task(manager.wait_stopped())
        await asyncio.sleep(5)
        given_up.cancel()
        await asyncio.sleep(5)
        assert given_up.cancelled()
        assert not waiting.done()
        await manager.stop()
        await waiting
        await manager.wait_stopped()  # it has ended


@in_virtual_time
async def test_a_reconcile_cannot_wait_for_the_end_of_its_manager() -> None:
    async def wait(_ctx: Context, _name: kinform.ObjectName) -> None:
        with pytest.raises(kinform.UsageError, match="which waits for the reconcile"):
            await manager.wait_stopped()

    log = Log(wait)
    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        async with running(client, controller(log)) as manager:
            await log.called(1)


@in_virtual_time
async def test_whoever_waits_for_the_end_gets_what_ended_the_manager() -> None:
    class Broken:
        def push(self, _key: object, _priority: object) -> None: ...
        def touch(self, _key: object, _priority: object) -> None: ...
        def pop(self) -> kinform.ObjectName:
            raise LookupError("out of order")

        def __len__(self) -> int:
            return 0

    async with served() as (_, client):
        await client.resource(MAPS, namespace="default").create(named("a"))
        manager = Manager(client, signals=False)
        manager.add(controller(Log(), order=Broken()))
        await manager.start()
        with pytest.raises(LookupError, match="out of order"):
            await manager.wait_stopped()

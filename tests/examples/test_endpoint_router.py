"""The router: only what is ready is sent to, and what was missed is found out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import endpoint_router as program
from examples.endpoint_router import Change, NoEndpoint, Router
from kinform import Client, NotFoundError
from kinform.apiserver import APIServer, faults
from kinform.clock import offload
from kinform.testing import APIServerThread, ControlPlane, in_virtual_time
from tests.examples.support_programs import (
    RECOVERED,
    SETTLED,
    check_that_errors_are_one_line,
    outage,
    run_program,
)
from tests.support.eventually import eventually

MAX_SILENCE = 100.0


class Scene:
    """A server, a router, and what the router said."""

    def __init__(self, server: APIServer, client: Client, router: Router) -> None:
        self.server = server
        self.router = router
        self.pods = client.resource("v1/pods", namespace="default")
        self.slices = client.resource("discovery.k8s.io/v1/endpointslices", namespace="default")
        self.said: list[str] = []

    async def ready_pod(self, name: str, address: str, *, finalizers: tuple[str, ...] = ()) -> None:
        metadata = {"name": name, "labels": {"app": "vllm"}, "finalizers": finalizers}
        spec = {"containers": [{"name": "main", "image": "example/never-runs"}]}
        await self.pods.create({"metadata": metadata, "spec": spec})
        await self.set_ready(name, address)

    async def set_ready(self, name: str, address: str, status: str = "True") -> None:
        conditions = [{"type": "Ready", "status": status}]
        body = {"phase": "Running", "podIP": address, "conditions": conditions}
        await self.pods.status.patch(name, {"status": body})

    @property
    def addresses(self) -> list[str]:
        return [one.address for one in self.router.ready]

    def is_stale(self) -> bool:
        return self.router.is_stale

    async def listen(self) -> None:
        async for change in self.router.changes():
            self.said.append(str(change))


@contextlib.asynccontextmanager
async def scene(server: APIServer, *, service: str = "") -> AsyncGenerator[Scene]:
    async with server.connect() as client:
        if service:
            router = program.service(
                client, namespace="default", name=service, max_silence=MAX_SILENCE
            )
        else:
            router = program.pods(
                client, namespace="default", selector="app=vllm", port=8000, max_silence=MAX_SILENCE
            )
        here = Scene(server, client, router)
        async with router, asyncio.TaskGroup() as group:
            await router.wait_synced(30)
            listening = group.create_task(here.listen())
            yield here
            listening.cancel()


# --- what is ready


@in_virtual_time
async def test_endpoints_come_and_go_with_their_readiness() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "10.0.0.1")
        await here.ready_pod("b", "10.0.0.2")
        await asyncio.sleep(SETTLED)
        assert here.addresses == ["10.0.0.1:8000", "10.0.0.2:8000"]
        await here.set_ready("a", "10.0.0.1", "False")
        await asyncio.sleep(SETTLED)
        assert here.addresses == ["10.0.0.2:8000"]
        await here.set_ready("a", "10.0.0.1")
        await here.pods.delete("b", grace_period=0)
        await asyncio.sleep(SETTLED)
        assert here.addresses == ["10.0.0.1:8000"]
        assert here.said == [
            "up: 10.0.0.1:8000 (a)",
            "up: 10.0.0.2:8000 (b)",
            "down: 10.0.0.1:8000 (a)",
            *sorted(["up: 10.0.0.1:8000 (a)", "down: 10.0.0.2:8000 (b)"], key=here.said.index),
        ]


@in_virtual_time
async def test_a_terminating_pod_leaves_at_once() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "10.0.0.1", finalizers=("example.com/drain",))
        await asyncio.sleep(SETTLED)
        lingering = await here.pods.delete("a")
        assert lingering is not None
        await asyncio.sleep(SETTLED)
        assert (await here.pods.get("a")).at("status", "conditions", 0, "status") == "True"
        assert here.addresses == []


@in_virtual_time
async def test_a_pod_that_loses_its_label_leaves() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "10.0.0.1")
        await here.pods.patch("a", {"metadata": {"labels": {"app": "other"}}})
        await asyncio.sleep(SETTLED)
        assert here.addresses == []


@in_virtual_time
async def test_an_address_with_colons_is_bracketed() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "fd00::1")
        await asyncio.sleep(SETTLED)
        assert here.addresses == ["[fd00::1]:8000"]


@in_virtual_time
async def test_the_endpoint_slices_of_a_service_can_be_followed_instead() -> None:
    def entry(address: str, **conditions: bool) -> dict[str, object]:
        target = {"kind": "Pod", "name": f"pod-{address[-1]}", "uid": address}
        return {"addresses": [address], "conditions": conditions, "targetRef": target}

    def part(name: str, service: str, *entries: dict[str, object]) -> dict[str, object]:
        metadata = {"name": name, "labels": {"kubernetes.io/service-name": service}}
        ports = [{"port": 9000}]
        return {"metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": entries}

    async with APIServer(port=None) as server, scene(server, service="vllm") as here:
        await here.slices.create(
            part(
                "x",
                "vllm",
                entry("10.0.0.1", ready=True),
                entry("10.0.0.2", ready=False),
                entry("10.0.0.3", ready=True, serving=True, terminating=True),
                entry("10.0.0.4"),
            )
        )
        await here.slices.create(part("y", "vllm", entry("10.0.0.1", ready=True)))
        await here.slices.create(part("z", "other", entry("10.0.0.5", ready=True)))
        await asyncio.sleep(SETTLED)
        assert here.addresses == ["10.0.0.1:9000", "10.0.0.4:9000"]
        assert here.router.ready[0].name == "pod-1"
        await here.slices.delete("x")
        await asyncio.sleep(SETTLED)
        assert here.addresses == ["10.0.0.1:9000"]  # another slice has it as well
        await here.slices.patch("y", {"ports": []})
        await asyncio.sleep(SETTLED)
        assert here.addresses == []


# --- choosing


@in_virtual_time
async def test_round_robin_gives_each_its_turn() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        for number in range(3):
            await here.ready_pod(f"p-{number}", f"10.0.0.{number + 1}")
        await asyncio.sleep(SETTLED)
        turns = Counter(here.router.round_robin().name for _ in range(300))
        assert turns == {"p-0": 100, "p-1": 100, "p-2": 100}


@in_virtual_time
async def test_the_least_loaded_is_chosen_and_load_ends_with_its_request() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        for number in range(3):
            await here.ready_pod(f"p-{number}", f"10.0.0.{number + 1}")
        await asyncio.sleep(SETTLED)
        router = here.router
        with contextlib.ExitStack() as stack:
            busy = [stack.enter_context(router.sending()).name for _ in range(6)]
            assert Counter(busy) == {"p-0": 2, "p-1": 2, "p-2": 2}
            with pytest.raises(LookupError), router.sending() as chosen:
                raise LookupError("the request failed")
            assert router.least_loaded() in router.ready
            with router.sending(), router.sending():
                (idle,) = {one.name for one in (router.least_loaded(), router.least_loaded())}
            assert idle in busy
        assert len({router.least_loaded().name for _ in range(3)}) == 3
        assert chosen in router.ready


@in_virtual_time
async def test_with_nothing_ready_choosing_says_so() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        with pytest.raises(NoEndpoint, match=r"no endpoint is ready$"):
            here.router.round_robin()
        async with outage(server, "pods"):
            await asyncio.sleep(2 * MAX_SILENCE)
            with pytest.raises(NoEndpoint, match="as far as is known"):
                here.router.least_loaded()


# --- what was missed


@pytest.mark.parametrize("compacts", [False, True], ids=["watched again", "compacted"])
@in_virtual_time
async def test_a_missed_delete_leaves_no_dead_endpoint(compacts: bool) -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("dead", "10.0.0.1")
        await here.ready_pod("alive", "10.0.0.2")
        await asyncio.sleep(SETTLED)
        async with outage(server, "pods", compacts=compacts):
            await here.pods.delete("dead", grace_period=0)
            await asyncio.sleep(SETTLED)
            assert here.addresses == ["10.0.0.1:8000", "10.0.0.2:8000"]  # it cannot know yet
        assert here.addresses == ["10.0.0.2:8000"]
        assert here.said[-1] == "down: 10.0.0.1:8000 (dead)"


@in_virtual_time
async def test_a_watch_that_is_closed_right_before_the_delete_leaves_no_dead_endpoint() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("dead", "10.0.0.1")
        await asyncio.sleep(SETTLED)
        # The next watch ends before it has sent anything: the DELETE falls between two watches.
        server.faults.add(faults.close_watch(after_events=0, resource="pods", nth=1, times=2))
        server.cluster.storage.disconnect()
        await here.pods.delete("dead", grace_period=0)
        await asyncio.sleep(RECOVERED)
        assert here.addresses == []


@in_virtual_time
async def test_a_watch_that_falls_silent_is_noticed_and_leaves_no_dead_endpoint() -> None:
    """No error, no end, no bookmark: a connection whose other end has vanished."""
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("dead", "10.0.0.1")
        await asyncio.sleep(SETTLED)
        server.faults.add(faults.half_open(verb="watch", resource="pods", after_events=2, nth=1))
        server.cluster.storage.disconnect()
        await asyncio.sleep(150)  # until the second bookmark, which arms the idle watchdog
        await here.pods.delete("dead", grace_period=0)
        async with contextlib.aclosing(here.router.changes()) as changes:
            assert [(await anext(changes)).what for _ in range(2)] == ["up", "stale"]
        assert here.addresses == ["10.0.0.1:8000"]
        assert here.is_stale()
        await asyncio.sleep(RECOVERED)
        assert here.addresses == []
        assert not here.is_stale()
        assert sorted(here.said[-2:]) == ["down: 10.0.0.1:8000 (dead)", "fresh"]


@in_virtual_time
async def test_an_address_that_a_new_pod_has_is_another_endpoint() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("old", "10.0.0.1")
        await asyncio.sleep(SETTLED)
        (before,) = here.router.ready
        async with outage(server, "pods"):
            await here.pods.delete("old", grace_period=0)
            await here.ready_pod("new", "10.0.0.1")
        (after,) = here.router.ready
        assert (before.address, after.address) == ("10.0.0.1:8000", "10.0.0.1:8000")
        assert [said for said in here.said if "0.1" in said][-2:] in (
            ["down: 10.0.0.1:8000 (old)", "up: 10.0.0.1:8000 (new)"],
            ["up: 10.0.0.1:8000 (new)", "down: 10.0.0.1:8000 (old)"],
        )


@in_virtual_time
async def test_a_quiet_cluster_is_not_stale_and_an_outage_is() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "10.0.0.1")
        await asyncio.sleep(20 * MAX_SILENCE)
        assert not here.is_stale()
        assert here.said == ["up: 10.0.0.1:8000 (a)"]
        async with outage(server, "pods"):
            assert here.said == ["up: 10.0.0.1:8000 (a)"]  # it was heard of a minute ago
            await asyncio.sleep(1.5 * MAX_SILENCE)
            assert here.said == ["up: 10.0.0.1:8000 (a)", "stale"]
            assert here.addresses == ["10.0.0.1:8000"]  # better than nothing
        assert here.said == ["up: 10.0.0.1:8000 (a)", "stale", "fresh"]


@in_virtual_time
async def test_changes_begin_when_all_that_is_there_is_known() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "10.0.0.1")
        server.faults.add(faults.latency(60, resource="pods", times=1))
        async with server.connect() as client:
            late = program.pods(
                client, namespace="default", selector="app=vllm", port=8000, max_silence=10
            )
            async with late, contextlib.aclosing(late.changes()) as changes:
                assert str(await anext(changes)) == "up: 10.0.0.1:8000 (a)"


@in_virtual_time
async def test_a_slow_reader_of_changes_is_told_the_sum_of_them() -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        await here.ready_pod("a", "10.0.0.1")
        await asyncio.sleep(SETTLED)
        async with contextlib.aclosing(here.router.changes()) as changes:
            first = await anext(changes)
            assert str(first) == "up: 10.0.0.1:8000 (a)"
            for _ in range(5):
                await here.ready_pod("b", "10.0.0.2")
                await here.pods.delete("b", grace_period=0)
            await here.pods.delete("a", grace_period=0)
            await asyncio.sleep(SETTLED)
            assert await anext(changes) == Change("down", first.endpoint)


acts = st.lists(
    st.tuples(
        st.sampled_from(
            ["ready", "ready", "unready", "delete", "outage", "heal", "compact", "wait"]
        ),
        st.integers(0, 3),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(acts)
@in_virtual_time
async def test_whatever_happens_the_router_ends_with_what_is_ready(
    steps: list[tuple[str, int]],
) -> None:
    async with APIServer(port=None) as server, scene(server) as here:
        for what, number in steps:
            name, address = f"p-{number}", f"10.0.0.{number + 1}"
            with contextlib.suppress(NotFoundError):
                match what:
                    case "ready":
                        try:
                            await here.set_ready(name, address)
                        except NotFoundError:
                            await here.ready_pod(name, address)
                    case "unready":
                        await here.set_ready(name, address, "False")
                    case "delete":
                        await here.pods.delete(name, grace_period=0)
                    case "outage":
                        server.faults.add(faults.reset(verb="watch", resource="pods"))
                        server.cluster.storage.disconnect()
                    case "heal":
                        server.faults.clear()
                    case "compact":
                        server.compact()
                    case _:
                        await asyncio.sleep(number * 20)
        server.faults.clear()
        await asyncio.sleep(RECOVERED)
        truth = {
            f"{pod.at('status', 'podIP')}:8000"
            for pod in await here.pods.list()
            if pod.at("status", "conditions", 0, "status") == "True"
        }
        assert set(here.addresses) == truth


@pytest.mark.slow
async def test_a_server_that_restarts_without_the_pod_leaves_no_dead_endpoint(
    tmp_path: Path,
) -> None:
    """On sockets: the DELETE is in the data file, and no watch ever sent it."""
    data = tmp_path / "data"
    async with APIServer(data=data) as first:
        async with scene(first) as here:
            port = int(first.url.rpartition(":")[2])
            await here.ready_pod("dead", "10.0.0.1")
            await here.ready_pod("alive", "10.0.0.2")

            async def has(*addresses: str) -> None:
                assert here.addresses == list(addresses)

            await eventually(lambda: has("10.0.0.1:8000", "10.0.0.2:8000"), AssertionError)
            first.faults.add(faults.reset(verb="watch", resource="pods"))
            first.cluster.storage.disconnect()
            await here.pods.delete("dead", grace_period=0)
            await first.__aexit__(None, None, None)
            await has("10.0.0.1:8000", "10.0.0.2:8000")
            async with APIServer(data=data, port=port, token=first.token):
                await eventually(lambda: has("10.0.0.2:8000"), AssertionError)


# --- the program


@pytest.mark.slow
def test_its_demo_ends_well_where_no_cluster_is(tmp_path: Path) -> None:
    done = run_program("endpoint_router.py", "--demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "no endpoint is ready"
    check_that_errors_are_one_line("endpoint_router.py", "--demo", home=tmp_path)


@pytest.mark.slow
async def test_it_prints_what_changes_for_a_while(
    kinform_apiserver: APIServerThread, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(kinform_apiserver.kubeconfig(), encoding="utf-8")
    async with kinform_apiserver.connect() as client:
        pods = client.resource("v1/pods", namespace="default")
        await pods.create(program.demo_pod("a", "x"))
        await pods.status.patch("a", program.demo_status("10.0.0.1"))
    arguments = ["--selector", "kinform-demo=x", "--port", "80", "--for", "1"]
    done = await offload(run_program, "endpoint_router.py", *arguments, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "up: 10.0.0.1:80 (a); 1 ready\n"


@pytest.mark.e2e
@pytest.mark.slow
def test_its_demo_ends_well_on_a_control_plane(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    kubeconfig = kinform_control_plane.kubeconfig_path
    done = run_program(
        "endpoint_router.py", "--demo", "-n", kinform_namespace, kubeconfig=kubeconfig
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "no endpoint is ready"

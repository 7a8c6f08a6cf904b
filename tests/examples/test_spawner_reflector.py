"""The spawner's reflector: its contents, when it is stale, and its waiters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from examples.spawner_reflector import LABEL, PodReflector, Progress, Spawner, SpawnError
from kinform import Client
from kinform.apiserver import APIServer
from kinform.testing import ControlPlane, in_virtual_time
from tests.examples.support_programs import (
    RECOVERED,
    SETTLED,
    check_that_errors_are_one_line,
    outage,
    run_program,
)

SPEC = {"containers": [{"name": "main", "image": "example/never-runs"}]}
RUNNING = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
MAX_SILENCE = 100.0


class Scene:
    """A server, a reflector that follows it, and what the reflector complains of."""

    def __init__(self, server: APIServer, client: Client) -> None:
        self.server = server
        self.complaints: list[str | None] = []
        self.pods = client.resource("v1/pods", namespace="default")
        self.events = client.resource("v1/events", namespace="default")
        self.reflector = PodReflector(
            client,
            namespace="default",
            label_selector=LABEL,
            max_silence=MAX_SILENCE,
            on_failure=self.complaints.append,
        )

    def is_stale(self) -> bool:
        return self.reflector.is_stale

    async def spawner(self, name: str) -> Spawner:
        spawner = Spawner(self.pods, self.reflector)
        await spawner.make(name, SPEC)
        return spawner

    async def tell(self, pod: str, message: str, *, name: str | None = None) -> str:
        """Make an Event about a pod; return its name."""
        uid = (await self.pods.get(pod)).uid
        made = await self.events.create(
            {
                "metadata": {"name": name or f"{pod}.{message}"},
                "involvedObject": {"kind": "Pod", "namespace": "default", "name": pod, "uid": uid},
                "type": "Normal",
                "message": message,
            }
        )
        await asyncio.sleep(1)
        return made.name


@contextlib.asynccontextmanager
async def scene() -> AsyncGenerator[Scene]:
    async with APIServer(port=None) as server, server.connect() as client:
        here = Scene(server, client)
        async with here.reflector:
            await here.reflector.first_load(30)
            yield here


@contextlib.asynccontextmanager
async def recorded(spawner: Spawner) -> AsyncGenerator[list[Progress]]:
    """Read the progress to its end, beside the block."""
    steps: list[Progress] = []

    async def read() -> None:
        steps.extend([step async for step in spawner.progress()])

    async with asyncio.timeout(3600), asyncio.TaskGroup() as group:
        group.create_task(read())
        await asyncio.sleep(1)
        yield steps


# --- the reflector


@in_virtual_time
async def test_pods_and_events_are_found_by_name() -> None:
    async with scene() as here:
        await here.spawner("ada")
        await here.pods.create({"metadata": {"name": "other"}, "spec": SPEC})
        for message in ("z", "a"):
            await here.tell("ada", message)
        await here.tell("other", "unrelated")
        assert set(here.reflector.pods) == {"ada"}
        assert here.reflector.pod("ada") == here.reflector.pods["ada"]
        assert here.reflector.pod("other") is None
        found = here.reflector.events("ada")
        assert [event.at("message") for event in found] == ["z", "a"]  # in order of arrival


@in_virtual_time
async def test_a_first_load_that_fails_says_why() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        reflector = PodReflector(client, namespace="default", label_selector=LABEL)
        async with outage(server, "pods"):
            async with reflector:
                with pytest.raises(TimeoutError, match="pods") as caught:
                    await reflector.first_load(20)
                assert "reset" in f"{caught.value} {caught.value.__cause__}"


@in_virtual_time
async def test_a_stale_cache_is_told_once_with_the_reason_and_so_is_its_recovery() -> None:
    async with scene() as here:
        await asyncio.sleep(10 * MAX_SILENCE)
        assert not here.is_stale()
        assert here.complaints == []  # a quiet cluster is not a stale cache
        async with outage(here.server, "pods"):
            await asyncio.sleep(3 * MAX_SILENCE)
            assert here.is_stale()
            (complaint,) = here.complaints
            assert complaint is not None
            assert "out of date" in complaint
            assert "reset" in complaint
        assert not here.is_stale()
        assert here.complaints == [complaint, None]


@in_virtual_time
async def test_a_first_load_that_never_comes_is_a_stale_cache_too() -> None:
    complaints: list[str | None] = []
    async with APIServer(port=None) as server, server.connect() as client:
        reflector = PodReflector(
            client,
            namespace="default",
            label_selector=LABEL,
            max_silence=MAX_SILENCE,
            on_failure=complaints.append,
        )
        async with outage(server, "events"), reflector:
            await asyncio.sleep(0.9 * MAX_SILENCE)
            assert complaints == []
            await asyncio.sleep(0.2 * MAX_SILENCE)
            assert len(complaints) == 1


@in_virtual_time
async def test_who_complains_badly_is_told_the_next_time_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reported: list[str | None] = []

    def fail(problem: str | None) -> None:
        reported.append(problem)
        raise LookupError("a bug of the listener")

    async with APIServer(port=None) as server, server.connect() as client:
        async with PodReflector(
            client,
            namespace="default",
            label_selector=LABEL,
            max_silence=MAX_SILENCE,
            on_failure=fail,
        ):
            async with outage(server, "pods"):
                await asyncio.sleep(3 * MAX_SILENCE)
    assert [problem is None for problem in reported] == [False, True]
    assert "on_failure raised" in caplog.text


# --- the spawner


@in_virtual_time
async def test_a_pod_that_gets_ready_is_returned_and_its_progress_ends() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        async with recorded(spawner) as steps:
            await here.tell("ada", "scheduled")
            await here.tell("ada", "pulled")
            await here.pods.status.patch("ada", RUNNING)
        assert [step.message for step in steps] == [
            "[Normal] scheduled",
            "[Normal] pulled",
            "ada is ready",
        ]
        assert [step.percent for step in steps] == [20, 40, 100]
        assert (await spawner.wait_ready(0)).name == "ada"
        assert spawner.poll() is None


@in_virtual_time
async def test_a_pod_that_is_not_in_the_cache_yet_is_not_taken_for_deleted() -> None:
    async with scene() as here:
        async with outage(here.server, "pods"):
            with pytest.raises(TimeoutError, match="has not seen version"):
                await here.spawner("ada")
        assert set(here.reflector.pods) == {"ada"}


@in_virtual_time
async def test_running_is_not_ready() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        await here.pods.status.patch("ada", {"status": {"phase": "Running"}})
        with pytest.raises(TimeoutError, match=r"ada was not ready in time$"):
            await spawner.wait_ready(60)


@in_virtual_time
async def test_an_event_that_is_told_again_is_shown_again_and_no_other() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        async with recorded(spawner) as steps:
            again = await here.tell("ada", "unhealthy")
            await here.tell("ada", "other")
            await here.events.patch(again, {"count": 2})
            await asyncio.sleep(1)
            await here.pods.status.patch("ada", RUNNING)
        shown = [step.message for step in steps[:-1]]
        assert shown == ["[Normal] unhealthy", "[Normal] other", "[Normal] unhealthy"]


@in_virtual_time
async def test_progress_is_at_most_ninety_before_the_end() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        async with recorded(spawner) as steps:
            for message in "abcdef":
                await here.tell("ada", message)
            await here.pods.status.patch("ada", RUNNING)
        assert [step.percent for step in steps] == [20, 40, 60, 80, 90, 90, 100]


@in_virtual_time
async def test_a_slow_reader_of_the_progress_misses_nothing() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        await here.tell("ada", "one")
        steps: list[str] = []
        async for step in spawner.progress():
            steps.append(step.message)
            if len(steps) == 1:
                await here.tell("ada", "two")
                await here.pods.status.patch("ada", RUNNING)
                await asyncio.sleep(SETTLED)
        assert steps == ["[Normal] one", "[Normal] two", "ada is ready"]


@in_virtual_time
async def test_events_of_an_earlier_pod_of_the_name_are_not_shown() -> None:
    async with scene() as here:
        first = await here.spawner("ada")
        await here.tell("ada", "old")
        await first.stop()
        second = await here.spawner("ada")
        async with recorded(second) as steps:
            await here.tell("ada", "new")
            await here.pods.status.patch("ada", RUNNING)
        assert [step.message for step in steps] == ["[Normal] new", "ada is ready"]
        assert len(here.reflector.events("ada")) == 2


@pytest.mark.parametrize(
    ("phase", "code", "expected"), [("Failed", 137, 137), ("Succeeded", 0, 0), ("Failed", None, 1)]
)
@in_virtual_time
async def test_a_pod_that_ends_is_an_error_with_its_reason(
    phase: str, code: int | None, expected: int
) -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        status: dict[str, object] = {"phase": phase, "message": "out of memory"}
        if code is not None:
            ended = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
            status["containerStatuses"] = [ended | {"state": {"terminated": {"exitCode": code}}}]
        await here.pods.status.patch("ada", {"status": status})
        with pytest.raises(SpawnError, match=f"ada has {phase.lower()}: out of memory"):
            await spawner.wait_ready(60)
        assert spawner.poll() == expected


@in_virtual_time
async def test_a_pod_that_is_deleted_ends_the_wait() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        async with recorded(spawner) as steps:
            await spawner.stop()
            await spawner.stop()  # again does no harm
        assert steps == [Progress(100, "ada was deleted before it was ready")]
        assert spawner.poll() == 1


@pytest.mark.parametrize("compacts", [False, True])
@in_virtual_time
async def test_a_pod_that_was_replaced_during_an_outage_is_not_taken_for_the_old_one(
    compacts: bool,
) -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(caught(spawner))
            async with outage(here.server, "pods", compacts=compacts):
                await here.pods.delete("ada", grace_period=0)
                metadata = {"name": "ada", "labels": {LABEL: "yes"}}
                await here.pods.create({"metadata": metadata, "spec": SPEC})
                await here.pods.status.patch("ada", RUNNING)
                await asyncio.sleep(SETTLED)
                assert not waiting.done()  # nothing is known, so nothing is said
        assert waiting.result() == "ada was deleted before it was ready"


async def caught(spawner: Spawner) -> str:
    with pytest.raises(SpawnError) as error:
        await spawner.wait_ready()
    return str(error.value)


@in_virtual_time
async def test_a_wait_that_ends_while_the_cache_is_stale_says_so() -> None:
    async with scene() as here:
        spawner = await here.spawner("ada")
        async with outage(here.server, "pods"):
            with pytest.raises(TimeoutError, match="what is known of it is out of date"):
                await spawner.wait_ready(RECOVERED)


# --- the program


@pytest.mark.slow
def test_its_demo_ends_well_where_no_cluster_is(tmp_path: Path) -> None:
    done = run_program("spawner_reflector.py", "--demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("poll says 1")
    check_that_errors_are_one_line("spawner_reflector.py", "--demo", home=tmp_path)


@pytest.mark.slow
def test_a_pod_that_nobody_runs_is_given_up_in_time(tmp_path: Path) -> None:
    done = run_program("spawner_reflector.py", "ada", "--timeout", "0.5", home=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: ada was not ready in time"


@pytest.mark.e2e
@pytest.mark.slow
def test_its_demo_ends_well_on_a_control_plane(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    kubeconfig = kinform_control_plane.kubeconfig_path
    arguments = ("--demo", "-n", kinform_namespace)
    done = run_program("spawner_reflector.py", *arguments, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert " is ready" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("poll says 1")

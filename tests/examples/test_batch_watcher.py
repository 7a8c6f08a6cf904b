"""The batch watcher: every job ends once, also with lost connections."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import batch_watcher as program
from examples.batch_watcher import Batch, BatchWatcher, End, Job, Outcome
from kinform import Client, ObjectName
from kinform.apiserver import APIServer, faults
from kinform.testing import ControlPlane, in_virtual_time
from tests.examples.support_programs import (
    RECOVERED,
    SETTLED,
    check_that_errors_are_one_line,
    outage,
    run_program,
)

SELECTOR = "kinform-demo=x"
STATES = ["", "Complete", "Failed", "Suspended", "SuccessCriteriaMet", "Complete=False"]


def job(uid: str, state: str) -> Job:
    """Return what is kept of a job with that condition."""
    type_, _, status = state.partition("=")
    reason = "DeadlineExceeded"
    condition = program.Condition(type=type_, status=status or "True", reason=reason)
    kept = program.Status(conditions=(condition,) if type_ else None)
    return Job(metadata=program.Identity(uid=uid), status=kept)


class Scene:
    """A server with jobs, and the ends that a watcher reported."""

    def __init__(self, server: APIServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.jobs = client.resource("batch/v1/jobs", namespace="default")
        self.ends: list[End] = []
        self.lines: list[str] = []
        self.batch = Batch(on_end=self.ends.append)

    async def make(self, *names: str, **spec: object) -> None:
        for name in names:
            body = program.demo_job(name, "x")
            await self.jobs.create({**body, "spec": {**as_dict(body["spec"]), **spec}})

    async def end(self, name: str, *, fails: bool = False) -> None:
        await self.jobs.status.patch(name, {"status": program.demo_status(fails=fails)})

    async def delete(self, name: str) -> None:
        await self.jobs.delete(name, propagation="Background")

    @contextlib.asynccontextmanager
    async def watching(
        self, *, expect: int = 0, leaves_suspended: bool = False, every: float = 60.0
    ) -> AsyncGenerator[asyncio.Task[None]]:
        """Watch beside the block; the watcher must have ended within the hour after it."""
        informer = self.client.informer(Job, namespace="default", label_selector=SELECTOR)
        watcher = BatchWatcher(
            informer, self.batch, expect=expect, leaves_suspended=leaves_suspended
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(watcher.run(every=every, say=self.lines.append))
            await asyncio.sleep(SETTLED)
            yield task
            async with asyncio.timeout(3600):
                await task

    @property
    def outcomes(self) -> dict[str, str]:
        return {end.key.name: str(end.outcome) for end in self.ends}


def as_dict(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


@contextlib.asynccontextmanager
async def scene() -> AsyncGenerator[Scene]:
    async with APIServer(port=None) as server, server.connect() as client:
        yield Scene(server, client)


# --- ends


@in_virtual_time
async def test_every_way_to_end_is_told_with_what_is_known() -> None:
    async with scene() as here:
        await here.make("good", "bad", "gone")
        async with here.watching() as task:
            await here.end("good")
            await here.end("bad", fails=True)
            await asyncio.sleep(SETTLED)
            assert not task.done()
            await here.delete("gone")
        assert here.ends == [
            End(ObjectName("default", "good"), Outcome.COMPLETE, "CompletionsReached", 30.0),
            End(ObjectName("default", "bad"), Outcome.FAILED, "BackoffLimitExceeded", 30.0),
            End(ObjectName("default", "gone"), Outcome.DELETED),
        ]


@in_virtual_time
async def test_jobs_that_had_ended_before_are_counted_and_the_watcher_ends_at_once() -> None:
    async with scene() as here:
        await here.make("a")
        await here.end("a")
        async with here.watching() as task:
            assert task.done()
        assert here.outcomes == {"a": "complete"}


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(STATES), st.booleans())))
def test_the_first_end_that_is_seen_of_a_job_is_the_only_one(
    sightings: list[tuple[int, str, bool]],
) -> None:
    """A DELETE carries the final state: a deleted job may be complete."""
    expected: dict[str, str] = {}
    ends: list[End] = []
    batch = Batch(on_end=ends.append)
    for number, state, is_gone in sightings:
        batch.see(ObjectName("default", f"j-{number}"), job(str(number), state), is_gone=is_gone)
        end = state.lower() if state in {"Complete", "Failed"} else "deleted" if is_gone else None
        if end is not None:
            expected.setdefault(f"j-{number}", end)
    assert [(end.key.name, str(end.outcome)) for end in ends] == list(expected.items())
    assert batch.seen == len({number for number, *_ in sightings})
    assert len(batch.open) == batch.seen - len(expected)


@in_virtual_time
async def test_a_job_made_anew_under_its_name_is_another_job() -> None:
    async with scene() as here:
        await here.make("a", "b")
        async with here.watching():
            async with outage(here.server, "jobs"):
                await here.delete("a")
                await here.make("a")
                await here.end("a", fails=True)
            await here.end("b")
        counts = Counter((end.key.name, str(end.outcome)) for end in here.ends)
        assert counts == {("a", "deleted"): 1, ("a", "failed"): 1, ("b", "complete"): 1}


@in_virtual_time
async def test_a_suspended_job_is_waited_for() -> None:
    async with scene() as here:
        await here.make("a", suspend=True)
        async with here.watching(every=10) as task:
            await asyncio.sleep(300)
            assert not task.done()
            assert here.batch.suspended == 1
            assert "1 suspended" in here.lines[-1]
            await here.jobs.patch("a", {"spec": {"suspend": False}})
            await asyncio.sleep(SETTLED)
            assert here.batch.suspended == 0
            await here.end("a")
        assert here.outcomes == {"a": "complete"}


@in_virtual_time
async def test_a_suspended_job_is_left_where_that_is_wanted() -> None:
    async with scene() as here:
        await here.make("asleep", suspend=True)
        await here.make("awake")
        async with here.watching(leaves_suspended=True) as task:
            assert not task.done()
            await here.end("awake")
        assert here.outcomes == {"awake": "complete"}
        assert here.batch.suspended == 1


@in_virtual_time
async def test_jobs_that_are_expected_are_waited_for() -> None:
    async with scene() as here:
        async with here.watching(expect=2) as task:
            await here.make("a")
            await here.end("a")
            await asyncio.sleep(SETTLED)
            assert not task.done()
            await here.make("b")
            await here.end("b")
        assert here.outcomes == {"a": "complete", "b": "complete"}


@in_virtual_time
async def test_events_told_twice_and_lists_told_again_count_once() -> None:
    async with scene() as here:
        here.server.faults.add(faults.duplicate_events(resource="jobs"))
        await here.make(*[f"j-{number}" for number in range(20)], "last")
        async with here.watching():
            for number in range(20):
                await here.end(f"j-{number}", fails=number == 3)
                if number % 5 == 0:
                    here.server.compact()
                    here.server.cluster.storage.disconnect()
                    await asyncio.sleep(60)
            await here.end("last")
        assert len(here.ends) == len(here.outcomes) == 21
        assert Counter(here.outcomes.values()) == {"complete": 20, "failed": 1}


# --- many


@pytest.mark.slow
@in_virtual_time
async def test_two_thousand_jobs_are_followed_over_an_outage() -> None:
    choose = random.Random(7)
    names = [f"j-{number:04}" for number in range(2_000)]
    fates = {
        name: choose.choices(["complete", "failed", "deleted"], [90, 7, 3])[0] for name in names
    }

    async def fulfil(here: Scene, name: str) -> None:
        match fates[name]:
            case "deleted":
                await here.delete(name)
            case fate:
                await here.end(name, fails=fate == "failed")

    async with scene() as here:
        async with here.watching(expect=2_000, every=10):
            await here.make(*names[:1_500])
            for name in names[:700]:
                await fulfil(here, name)
            await asyncio.sleep(30)
            assert len(here.ends) == 700
            async with outage(here.server, "jobs", compacts=True):
                for name in names[700:1_300]:
                    await fulfil(here, name)
                await asyncio.sleep(2 * RECOVERED)
                assert len(here.ends) == 700
                assert "out of date: " in here.lines[-1]
            assert len(here.ends) == 1_300
            assert "out of date: " not in here.lines[-1]
            await here.make(*names[1_500:])
            for name in names[1_300:]:
                await fulfil(here, name)
        assert len(here.ends) == 2_000
        assert here.outcomes == fates
        rows = {line.split()[0]: line.split()[1] for line in program.table(here.batch, 60.0)}
        expected = Counter(fates.values())
        assert {row: int(rows[row].replace(",", "")) for row in expected} == expected
        assert rows["suspended"] == "0"


@in_virtual_time
async def test_little_is_kept_of_a_job() -> None:
    async with scene() as here:
        await here.make("a")
        variables = [{"name": f"V_{number}", "value": "x" * 100} for number in range(100)]
        container = {"name": "main", "image": "x", "env": variables}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        await here.make("b", template=template)
        await here.end("b")
        assert len((await here.jobs.get("b")).raw) > 10_000
        informer = here.client.informer(Job, namespace="default", label_selector=SELECTOR)
        async with informer:
            await informer.wait_synced(30)
            kept = informer.lister.get("default/b")
        assert isinstance(kept, Job)
        assert len(msgspec.json.encode(kept)) < 500


# --- the account


def arguments(**others: object) -> argparse.Namespace:
    usual: dict[str, object] = {
        "namespace": "default",
        "selector": SELECTOR,
        "expect": 0,
        "leave_suspended": False,
        "progress": 5.0,
        "timeout": None,
    }
    return argparse.Namespace(**usual | others)


@pytest.mark.parametrize(("fails", "code"), [(False, 0), (True, 1)])
@in_virtual_time
async def test_the_exit_code_tells_of_failures(fails: bool, code: int) -> None:
    async with scene() as here:
        await here.make("a", "b")
        await here.end("a")
        await here.end("b", fails=fails)
        assert await program.follow(here.client, arguments()) == code


@in_virtual_time
async def test_the_exit_code_tells_that_time_was_up(capsys: pytest.CaptureFixture[str]) -> None:
    async with scene() as here:
        await here.make("a")
        assert await program.follow(here.client, arguments(timeout=60)) == 1
        said = capsys.readouterr()
        assert "not ended         1  100.0%" in said.out
        assert "0 of 1 ended, 0 failed" in said.err


@in_virtual_time
async def test_no_job_at_all_is_an_error_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    async with scene() as here:
        assert await program.follow(here.client, arguments()) == 2
        assert capsys.readouterr().err == (
            "error: no job has these labels; --expect waits for them\n"
        )


def test_at_most_twenty_failures_are_named() -> None:
    batch = Batch()
    for number in range(25):
        batch.see(ObjectName("default", f"j-{number:02}"), job(str(number), "Failed"))
    lines = list(program.table(batch, 10.0))
    assert "25 jobs in 10.0 s, 2.5 a second" in lines
    assert [line for line in lines if line.startswith("failed: ")][-1] == (
        "failed: default/j-19: DeadlineExceeded"
    )
    assert lines[-1] == "and 5 more"


# --- the program


@pytest.mark.slow
def test_its_demo_ends_well_where_no_cluster_is(tmp_path: Path) -> None:
    done = run_program("batch_watcher.py", "--demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "complete         38   95.0%"
    check_that_errors_are_one_line("batch_watcher.py", "--demo", home=tmp_path)


@pytest.mark.e2e
@pytest.mark.slow
def test_its_demo_ends_well_on_a_control_plane(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    kubeconfig = kinform_control_plane.kubeconfig_path
    done = run_program("batch_watcher.py", "--demo", "-n", kinform_namespace, kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "complete         38   95.0%"

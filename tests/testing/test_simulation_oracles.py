"""Oracles: the mistakes that are found in users' programs, and their limits in virtual time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from kinform import Context, Controller, Manager, ObjectName, Result
from kinform.errors import LeadershipLost, UsageError
from kinform.testing.simulation import (
    Divergence,
    Limits,
    Outcome,
    Process,
    Schedule,
    draw,
    simulate,
)
from kinform.testing.simulation._schedule.fault_names import ALL, DEFAULT, chosen, name_of
from kinform.testing.simulation.actions import Action, CrashAtWrite, Restart, Write
from tests.testing import rooms

MAPS = "v1/configmaps"
CREATE = Write(at=1.0, verb="create", namespace="blue", name="a", value=1)
LAST = Write(at=30.0, verb="create", namespace="blue", name="b", value=2)

Reconcile = Callable[[Context, ObjectName], Awaitable[Result | None]]


def only(*actions: Action, processes: int = 1) -> Schedule:
    return Schedule(seed=1, processes=processes, actions=actions or (CREATE,))


def controlled(reconcile: Reconcile | Callable[[Context, ObjectName], None]) -> Outcome:
    """Run a controller of ConfigMaps over a small schedule."""

    async def program(process: Process) -> None:
        controller = Controller("maps", reconcile, for_=MAPS, timeout=30)
        async with Manager(process.client, signals=False, grace=4) as manager:
            manager.add(controller)
            await manager.run()

    return simulate(only(CREATE, LAST), program)


def found(outcome: Outcome) -> tuple[str, str]:
    assert outcome.divergence is not None
    return outcome.divergence.oracle, str(outcome.divergence)


# --- faults by choice


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_fault_that_is_chosen_is_the_only_one(name: str) -> None:
    names = {name_of(action) for seed in range(3) for action in draw(seed, faults=name).actions}
    assert names == {"", name}


@pytest.mark.slow
def test_no_restore_and_no_untrue_404_happens_unless_it_is_chosen() -> None:
    names = [name_of(each) for seed in range(70) for each in draw(seed).actions]
    everything = [name_of(each) for seed in range(70) for each in draw(seed, faults="all").actions]
    assert {"restore", "not_found"} <= {*everything}
    assert not {"restore", "not_found"} & {*names}
    assert len(names) > len(everything)  # what is left out is replaced


def test_a_choice_may_take_away_from_a_set() -> None:
    assert chosen("none") == frozenset()
    assert chosen("-lag") == chosen(("default", "-lag")) == DEFAULT - {"lag"}
    assert chosen("all,-restore, -not_found") == DEFAULT
    with pytest.raises(UsageError, match="unknown fault 'restor'; did you mean 'restore'"):
        chosen("lag,restor")
    assert not {name_of(action) for action in draw(1, faults="none").actions} - {""}


# --- oracles


def test_a_controller_that_never_stops_writing_is_found_out() -> None:
    due: dict[str, float] = {}

    async def touch(ctx: Context, name: ObjectName) -> Result:
        now = asyncio.get_running_loop().time()
        if due.get(name.name, 0.0) <= now:
            due[name.name] = now + 20
            maps = ctx.client.resource(MAPS, namespace=name.namespace)
            await maps.patch(name, {"data": {"seen": f"{now}"}})
        return Result(requeue_after=due[name.name] - now)

    oracle, text = found(controlled(touch))
    assert oracle == "quiescence"
    assert "configmaps blue/a was changed " in text
    assert "expected no change" in text


@pytest.mark.slow
def test_a_controller_that_writes_what_makes_it_reconcile_is_found_out_at_once() -> None:
    async def spin(ctx: Context, name: ObjectName) -> None:
        maps = ctx.client.resource(MAPS, namespace=name.namespace)
        await maps.patch(name, {"data": {"seen": f"{asyncio.get_running_loop().time()}"}})

    oracle, text = found(controlled(spin))
    assert oracle == "writes"
    assert "PATCH /api/v1/namespaces/blue/configmaps/a was sent " in text
    assert "expected at most 70" in text


def test_writes_that_change_nothing_are_no_unrest() -> None:
    async def same(ctx: Context, name: ObjectName) -> Result:
        maps = ctx.client.resource(MAPS, namespace=name.namespace)
        await maps.patch(name, {"data": {"seen": "yes"}})
        return Result(requeue_after=20)

    assert controlled(same).divergence is None


def test_a_key_that_fails_for_ever_is_told_with_its_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(ctx: Context, name: ObjectName) -> None:
        if name.name == "b":
            raise ZeroDivisionError(f"of {ctx.controller}")

    with caplog.at_level(logging.WARNING):
        oracle, text = found(controlled(fail))
    assert oracle == "failing"
    assert "maps fails to reconcile blue/b, " in text
    assert "expected it to succeed. The last error: ZeroDivisionError: of maps" in text
    assert "failed (attempt 1), will be retried" in caplog.text  # as without a simulation


def test_a_key_that_fails_for_a_while_is_none_that_fails_for_ever() -> None:
    async def stumble(ctx: Context, name: ObjectName) -> None:
        del name
        if ctx.attempt < 12:
            raise ZeroDivisionError

    assert controlled(stumble).divergence is None


def test_a_process_that_loses_its_lease_is_started_again_and_any_other_end_is_told() -> None:
    lives: list[int] = []

    async def lose(process: Process) -> None:
        lives.append(process.life)
        if process.life == 0:
            await asyncio.sleep(5)
            raise LeadershipLost("not renewed", lease="default/a")
        await asyncio.Event().wait()

    assert simulate(only(CREATE, LAST), lose).divergence is None
    assert lives == [0, 1]

    async def leave(process: Process) -> None:
        await asyncio.sleep(5 + process.number)

    oracle, text = found(simulate(only(CREATE, LAST), leave))
    assert oracle == "program"
    assert "process 0.0 ended by itself: None; expected it to run until cancelled" in text


# --- time


@pytest.mark.slow
def test_a_program_that_never_yields_is_ended_and_its_line_is_told() -> None:
    async def spin(process: Process) -> None:
        del process
        while True:
            pass

    oracle, text = found(simulate(only(), spin, limits=Limits(seconds=0.3)))
    assert oracle == "time"
    assert "the run took more than 0.3 s of CPU time" in text
    assert f"it was at {__file__}:" in text
    assert "in test_a_program_that_never_yields_is_ended_and_its_line_is_told.<locals>.spin" in text


@pytest.mark.slow
def test_a_program_that_blocks_is_ended_and_its_line_is_told() -> None:
    async def block(process: Process) -> None:
        del process
        queue.SimpleQueue[None]().get()

    oracle, text = found(simulate(only(), block, limits=Limits(seconds=0.3)))
    assert oracle == "time"
    assert ".<locals>.block" in text


# --- what a program may use


def test_task_groups_timeouts_and_threads_of_asyncio_work_under_virtual_time() -> None:
    done: list[str] = []

    async def use(ctx: Context, name: ObjectName) -> None:
        del ctx
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(asyncio.to_thread(time.perf_counter))  # noqa: TID251 - as users do
            group.create_task(asyncio.sleep(3))
        assert first.result()
        pool = concurrent.futures.ThreadPoolExecutor(1)
        assert await asyncio.get_running_loop().run_in_executor(pool, sum, (1, 2)) == 3
        done.append(name.name)

    assert controlled(use).divergence is None
    assert {*done} == {"a", "b"}


def test_a_reconcile_that_is_a_plain_function_works_under_virtual_time() -> None:
    done: list[str] = []

    def use(ctx: Context, name: ObjectName) -> None:
        assert ctx.lister(MAPS).get(name) is not None
        done.append(name.name)

    assert controlled(use).divergence is None
    assert {*done} == {"a", "b"}


def test_a_thread_of_the_program_itself_is_told_to_be_none_for_virtual_time() -> None:
    over = threading.Event()

    async def start(process: Process) -> None:
        thread = threading.Thread(target=over.wait, name="mine", daemon=True)
        if process.number == 0:
            thread.start()
        await asyncio.Event().wait()

    try:
        oracle, text = found(simulate(only(CREATE, LAST), start))
    finally:
        over.set()
    assert oracle == "threads"
    assert "the program started threads (mine)" in text
    assert "asyncio.to_thread" in text


# --- crashes at writes


def test_a_crash_at_a_write_hits_whoever_makes_it_and_no_lease() -> None:
    lives: list[str] = []

    async def write(process: Process) -> None:
        lives.append(str(process))
        client = process.client
        await client.resource("coordination.k8s.io/v1/leases", namespace="blue").create(
            {"metadata": {"generateName": "lease-"}}
        )
        if process.number == 1 and process.life == 0:
            await client.resource("v1/secrets", namespace="blue").create(
                {"metadata": {"name": "s"}}
            )
            lives.append("it knows")
        await asyncio.Event().wait()

    crash = CrashAtWrite(at=0.0, process=-1, nth=1, bookkeeping=False)
    outcome = simulate(only(crash, CREATE, LAST, processes=2), write)
    assert outcome.divergence is None
    assert lives == ["process 0.0", "process 1.0", "process 1.1"]
    assert outcome.writes == 1


# --- reports


async def restless(process: Process) -> None:
    del process
    raise ZeroDivisionError


def test_what_is_raised_names_the_seed_and_the_command() -> None:
    simulate(only(CREATE), rooms_idle).raise_for_divergence()
    with pytest.raises(
        Divergence, match=r"^program: seed 1: process 0\.0 ended by itself: Zero"
    ) as exc:
        simulate(only(CREATE, Restart(at=20, process=0)), restless).raise_for_divergence()
    assert str(exc.value).endswith(
        "; again: kinform simulate --first-seed 1 --seeds 1 --program "
        "tests.testing.test_simulation_oracles:restless"
    )


async def rooms_idle(process: Process) -> None:
    del process
    await asyncio.Event().wait()


# --- an operator that is right, and four that are not


def simulated(schedule: Schedule, program: Callable[[Process], Awaitable[None]]) -> Outcome:
    return simulate(schedule, program, rooms.is_settled, workload=rooms.WORKLOAD)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_an_operator_that_is_right_is_found_to_be(seed: int) -> None:
    """`kinform simulate` has found nothing in seeds 0 to 99; these are a sample."""
    simulated(draw(seed), rooms.operate).raise_for_divergence()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "schedule", "oracle", "words"),
    [
        (rooms.swallows_conflicts, draw(1), "equality", "the floor plan has "),
        (rooms.doubles_sheets, draw(11), "equality", " has the sheets "),
        (rooms.leaks_finalizers, draw(0), "equality", "; besides, process "),
        (rooms.never_rests, only(CREATE, LAST), "writes", "Does the controller write what makes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_operator_with_a_mistake_is_found_out(
    program: Callable[[Process], Awaitable[None]], schedule: Schedule, oracle: str, words: str
) -> None:
    broken, text = found(simulated(schedule, program))
    assert broken == oracle
    assert words in text

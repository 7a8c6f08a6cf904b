"""The simulator: schedules by seed, the same outcome each time, and divergences that are found."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver import APIServer
from kinform.errors import TransportError, UsageError
from kinform.rest.transport import HttpRequest
from kinform.testing import in_virtual_time
from kinform.testing.simulation import (
    Process,
    Schedule,
    World,
    draw,
    everything_at_once,
    mirrored,
    simulate,
)
from kinform.testing.simulation._schedule.shrinking import shrunk
from kinform.testing.simulation._schedule.themes import is_rough, scene_of, theme_of
from kinform.testing.simulation._world.link import Link
from kinform.testing.simulation.actions import (
    Action,
    Crash,
    CrashAtWrite,
    Happen,
    Partition,
    Restart,
    Restore,
    Write,
    is_of_server,
    kind_of,
)
from kinform.testing.simulation.drawing import crashes
from kinform.testing.simulation.seeds import SimulatedProgram, drawn, run_schedules
from tests.testing.eventually import eventually
from tests.testing.processes import is_alive

# --- schedules


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=60)
def test_every_schedule_has_enough_of_everything(seed: int) -> None:
    schedule = draw(seed, faults="all")
    faults = [action for action in schedule.actions if is_of_server(action)]
    assert sum(isinstance(action, Write) for action in schedule.actions) >= 150
    assert len(faults) >= 5
    assert len({kind_of(action) for action in faults}) >= 3
    assert sum(isinstance(one, Restart | Crash | CrashAtWrite) for one in schedule.actions) >= 2
    assert schedule.processes >= 2
    times = [action.at for action in schedule.actions]
    assert times == sorted(times)


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=20)
def test_a_schedule_is_of_its_seed_and_outlives_a_file(seed: int) -> None:
    first = draw(seed)
    assert draw(seed) == first
    assert Schedule.load(first.dump()) == first


def test_a_schedule_that_was_not_drawn_has_a_name_that_outlives_a_file() -> None:
    names = [schedule.name for schedule in crashes(draw(7), 2)]
    assert names == [
        "7-write-1-unanswered",
        "7-write-1-answered",
        "7-write-2-unanswered",
        "7-write-2-answered",
    ]
    named = Schedule(seed=7, name='"mine" ä')
    assert Schedule.load(named.dump()) == named
    assert Schedule.load('{"seed":7}').name == draw(7).name == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "truncated"),
        ('{"seed":1,"actions":[{"type":"wright","at":1}]}', "wright"),
        ('{"seed":1,"actions":[{"type":"happen","at":1,"fault":"- clothe: {}"}]}', "clothe"),
    ],
)
def test_what_is_no_schedule_is_said_to_be_none(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"mine: not a schedule: .*{words}"):
        Schedule.load(text, source="mine")


@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        (14, {"stray_bookmarks", "close", "partition"}),
        (30, {"error_event", "status", "restore", "partition"}),
        (46, {"stale_cache", "error_event", "partition"}),
        (78, {"gzip", "partition"}),
    ],
)
def test_every_sixteenth_schedule_plays_a_scene(seed: int, kinds: set[str]) -> None:
    assert kinds <= {kind_of(action) for action in draw(seed, faults="all").actions}


@pytest.mark.parametrize("seed", [13, 15, 22, 38])
def test_no_other_schedule_has_what_scenes_are_made_of(seed: int) -> None:
    kinds = {kind_of(action) for action in draw(seed, faults="all").actions}
    assert not kinds & {"stray_bookmarks", "older_events", "stale_cache"}


def test_rough_programs_take_one_of_32_seeds_from_those_without_theme_and_scene() -> None:
    rough = [seed for seed in range(3200) if is_rough(seed)]
    assert len(rough) == 100
    assert all(theme_of(seed) is None and scene_of(seed) is None for seed in rough)


@pytest.mark.slow
def test_a_rough_program_keeps_all_promises_and_others_see_no_nulls() -> None:
    assert is_rough(24)
    assert simulate(draw(24, faults="all"), everything_at_once, mirrored).divergence is None
    raws: list[bytes] = []

    async def look(process: Process) -> None:
        async with process.client.informer("v1/configmaps") as informer:
            await informer.wait_synced()
            await asyncio.sleep(20.0)
            raws.extend(bytes(one.raw) for one in informer.lister.list())
            await asyncio.Event().wait()

    simulate(Schedule(seed=24, processes=1, actions=draw(24).actions[:40]), look)
    assert raws
    assert not any(b"null" in raw for raw in raws)


# --- shrinking


@given(places=st.sets(st.integers(0, 99), min_size=1, max_size=4))
@settings(max_examples=30)
def test_what_is_left_is_what_it_takes(places: set[int]) -> None:
    whole = Schedule(seed=1, actions=tuple(Restart(at=float(n), process=0) for n in range(100)))
    needed = {float(place) for place in places}

    def fails(schedule: Schedule) -> bool:
        return needed <= {action.at for action in schedule.actions}

    short = shrunk(whole, fails, tries=2_000)
    assert {action.at for action in short.actions} == needed


# --- runs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    schedule = draw(seed, faults="all")
    first = simulate(schedule, everything_at_once, mirrored)
    again = simulate(schedule, everything_at_once, mirrored)
    assert first.divergence is None
    assert again == first


def only(*actions: Write | Happen | Partition | Restart | CrashAtWrite) -> Schedule:
    return Schedule(seed=1, processes=2, actions=actions)


def write(at: float) -> Write:
    return Write(at=at, verb="create", namespace="green", name="a", value=int(at))


async def informer_alone(process: Process) -> None:
    informer = process.client.informer(
        "v1/configmaps", indexers={"team": lambda obj: obj.labels.get("team")}
    )
    process.witness(informer)
    async with informer:
        await asyncio.Event().wait()


def test_what_a_restore_has_undone_may_be_done_again_under_the_version_it_had() -> None:
    def twice(world: World) -> str:
        states = [moment.state for moment in world.history.moments("blue/a")]
        first, again = (it for it in states if it is not None and it.value.startswith("1"))
        assert (first.uid, first.version) == (again.uid, again.version)
        assert again == world.history.now()["blue/a"]
        return ""

    writes = [
        Write(at=5.0, verb="create", namespace="blue", name="a", value=0),
        Write(at=6.0, verb="update", namespace="blue", name="a", value=1),
        *(Write(at=7.0, verb="create", namespace="blue", name=name) for name in "bcdef"),
    ]
    schedule = Schedule(seed=1, actions=(*writes, Restore(at=20, by=6, redo=1)))
    assert simulate(schedule, informer_alone, twice).divergence is None


def test_nothing_is_done_again_that_a_client_could_not_tell_from_what_was() -> None:
    """A client that is behind the restored server does not notice the restore."""

    def gone(world: World) -> str:
        return "" if world.history.now()["blue/a"].value.startswith("0") else "it was done again"

    writes = [
        Write(at=5.0, verb="create", namespace="blue", name="a", value=0),
        Write(at=6.0, verb="update", namespace="blue", name="a", value=1),
    ]
    schedule = Schedule(seed=1, actions=(*writes, Restore(at=20, by=1, redo=1)))
    assert simulate(schedule, informer_alone, gone).divergence is None


def test_a_cache_that_does_not_follow_is_a_divergence() -> None:
    async def deaf(process: Process) -> None:
        """Begin with a list, and hear of nothing that comes later."""
        informer = process.client.informer(
            "v1/configmaps", indexers={"team": lambda obj: obj.labels.get("team")}
        )
        process.witness(informer)
        async with informer:
            await informer.wait_synced(60)
        await asyncio.Event().wait()

    outcome = simulate(only(write(5)), deaf)
    assert outcome.divergence is not None
    assert outcome.divergence.oracle == "equality"
    assert "green/a" in str(outcome.divergence)


BEHIND = """{"seed":1618,"processes":2,"actions":[
{"type":"lag","at":6.88,"seconds":8.6,"lasts":81.8},
{"type":"write","at":48.7,"verb":"create","namespace":"green","name":"n4","value":67},
{"type":"compact","at":50.99},
{"type":"write","at":58.1,"verb":"create","namespace":"blue","name":"n2","value":76}
]}
"""


def test_who_saw_more_than_a_replica_that_lags_may_take_it_for_a_restored_server() -> None:
    """Its watch is from before: seed 1618, which asked for a compacted version in vain."""
    assert simulate(Schedule.load(BEHIND), everything_at_once, mirrored).divergence is None


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_was_set_apart_may_be_told_again_as_it_was(seed: int) -> None:
    """Seed 3823: handlers receive a delete of an object that never existed."""
    damage = [f"- corrupt: {{verb: {verb}, times: null}}\n" for verb in ("list", "watch")]
    expired = "- error_event: {code: 410, verb: watch, times: 2}\n"
    actions: tuple[Action, ...] = (
        Write(at=0.0, verb="create", namespace="blue", name="n1", value=1),
        Write(at=0.1, verb="create", namespace="blue", name="n2", value=2),
        *(Happen(at=5.0, fault=fault, lasts=30.0) for fault in damage),
        Happen(at=5.0, fault=expired, lasts=3.0),
        Partition(at=6.0, process=0, silent=False, lasts=0.5),
        Write(at=90.0, verb="create", namespace="blue", name="n3", value=3),
    )
    schedule = Schedule(seed=seed, processes=1, actions=actions)
    assert simulate(schedule, everything_at_once).divergence is None


def test_a_program_that_ends_by_an_error_is_a_divergence() -> None:
    async def fails(process: Process) -> None:
        del process
        raise ZeroDivisionError

    outcome = simulate(only(write(1)), fails)
    assert outcome.divergence is not None
    assert outcome.divergence.oracle == "program"


def test_a_program_that_does_not_stop_is_a_divergence() -> None:
    async def stubborn(process: Process) -> None:
        del process
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(7)

    outcome = simulate(only(write(1), Restart(at=2, process=0)), stubborn)
    assert outcome.divergence is not None
    assert outcome.divergence.oracle == "stop"


def test_two_workers_on_one_key_are_a_divergence() -> None:
    async def twice(process: Process) -> None:
        with process.working("a"), process.working("a"):
            await asyncio.Event().wait()

    outcome = simulate(only(), twice)
    assert outcome.divergence is not None
    assert outcome.divergence.oracle == "workers"


def test_what_a_users_check_misses_is_a_divergence() -> None:
    def never(world: World) -> str:
        return f"{len(world.living)} processes, and still no unicorn"

    outcome = simulate(only(write(1)), informer_alone, never)
    assert outcome.divergence is not None
    assert "2 processes, and still no unicorn" in str(outcome.divergence)


def test_a_process_that_crashes_at_a_write_has_made_it_and_is_started_again() -> None:
    lives: list[int] = []

    async def writer(process: Process) -> None:
        lives.append(process.life)
        maps = process.client.resource("v1/configmaps", namespace="green")
        if process.number == 0:
            await maps.create({"metadata": {"name": f"life-{process.life}"}})
            lives.append(99)
        await asyncio.Event().wait()

    def both(world: World) -> str:
        names = {key for key in world.history.now() if "life" in key}
        return "" if names == {"green/life-0", "green/life-1"} else f"there is {names}"

    schedule = Schedule(seed=1, processes=1, actions=(CrashAtWrite(at=0, process=0), write(9)))
    outcome = simulate(schedule, writer, both)
    assert outcome.divergence is None
    assert lives == [0, 1, 99]


# --- links


@in_virtual_time
async def test_a_request_on_its_way_is_reset_with_all_others() -> None:
    """A server that is restored between a list and its watch has the watch's connection too."""
    async with APIServer(port=None) as server:
        link = Link(server.application, [], dice=random.Random(0))
        request = HttpRequest(method="GET", url="http://localhost/version")
        asyncio.get_running_loop().call_later(link.latency / 2, link.reset)
        with pytest.raises(TransportError, match="the connection was reset"):
            await link.send(request).__aenter__()
        async with link.send(request) as answer:
            assert answer.status == 200


@in_virtual_time
async def test_a_request_that_a_server_has_not_answered_ends_with_that_server() -> None:
    """Seed 9266: it was paused, and then another one, from a backup, answered in its place."""
    async with APIServer(port=None) as server:
        link = Link(server.application, [], dice=random.Random(0))
        request = HttpRequest(
            method="GET",
            url="http://localhost/version",
            headers={"Authorization": f"Bearer {server.token}"},
        )
        server.pause()
        loop = asyncio.get_running_loop()
        loop.call_later(5, link.reset)
        loop.call_later(5, server.resume)
        with pytest.raises(TransportError, match="the connection was reset"):
            await link.send(request).__aenter__()


@in_virtual_time
async def test_who_waits_behind_a_silent_link_is_told_when_its_process_dies() -> None:
    """Seed 5477: what a dead process had open stayed open for as long as its link was cut."""
    async with APIServer(port=None) as server:
        link = Link(server.application, [], dice=random.Random(0))
        request = HttpRequest(method="GET", url="http://localhost/version", read_timeout=60)
        asyncio.get_running_loop().call_later(link.latency * 2, link.kill)
        link.cut(silent=True)
        with pytest.raises(TransportError, match="the connection was refused"):
            await link.send(request).__aenter__()
        assert asyncio.get_running_loop().time() == link.latency * 2


# --- processes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
def test_a_run_that_is_given_up_ends_without_a_word() -> None:
    """The pool's pipe was closed before its last message: a traceback at exit, now and then."""
    command = [sys.executable, "-m", "kinform", "simulate", "--seeds", "1000000", "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        eventually(lambda: len(_descendants(run.pid)) >= 2, within=60)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=30)
    assert b"Traceback" not in said
    assert run.returncode == 130


@pytest.mark.slow
def test_who_reads_no_further_ends_the_workers_of_that_run_only() -> None:
    before = os.environ.get("PYTHONHASHSEED")
    others = set(multiprocessing.active_children())
    one, other = (run_schedules(drawn(0, 1_000), SimulatedProgram(), jobs=1) for _ in range(2))
    assert not next(one).oracle
    assert not next(other).oracle
    mine = set(multiprocessing.active_children()) - others
    assert len(mine) == 2
    one.close()
    assert len(mine.intersection(multiprocessing.active_children())) == 1
    assert not next(other).oracle
    other.close()
    assert os.environ.get("PYTHONHASHSEED") == before
    assert not mine.intersection(multiprocessing.active_children())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_command_that_started_them(end: signal.Signals) -> None:
    command = [sys.executable, "-m", "kinform", "simulate", "--seeds", "1000000", "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            eventually(lambda: len(_descendants(run.pid)) >= 2, within=60)
            workers = _descendants(run.pid)
            run.send_signal(end)
            eventually(lambda: not any(map(is_alive, workers)), within=60)
        finally:
            run.kill()


def _descendants(pid: int) -> list[int]:
    """Return the processes that ``pid`` has started."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found += map(int, children.read_text(encoding="ascii").split())
    return found

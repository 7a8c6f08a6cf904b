"""The checks of a soak run: it fails when it should, and only then."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tools.soak.messages import Sample, State
from tools.soak.record import Checkpoint, Record, differences, problems, trends
from tools.soak.trends import Trend, trend_of

ROOT = Path(__file__).parents[2]
MEGABYTE = 1024 * 1024


def samples(seconds: int, growth: float, *, tasks: float = 0.0, seed: int = 3) -> list[Sample]:
    """Return samples of a process that grows by so much an hour, with spikes and noise."""
    rng = random.Random(seed)
    return [
        Sample(
            at=float(at),
            rss=int(60e6 + growth * at / 3600 + rng.gauss(0, 2e5) + (rng.random() < 0.05) * 8e6),
            tasks=int(20 + tasks * at / 3600 + rng.choice([0, 0, 0, 1, 3])),
            descriptors=12,
            events=at,
            failures=0,
        )
        for at in range(seconds)
    ]


def record(seconds: int = 1200, growth: float = 0.0, tasks: float = 0.0) -> Record:
    checkpoint = Checkpoint(at=30, took=1, objects=2, tasks=20, wrong=[])
    made = Record(server="embedded", seed=1, minutes=seconds / 60, checkpoints=[checkpoint])
    made.samples = samples(seconds, growth, tasks=tasks)
    return made


def found_in(made: Record) -> list[str]:
    return list(problems(made, trends(made)))


@pytest.mark.slow
def test_a_process_that_does_not_grow_is_well_whatever_the_noise() -> None:
    for seed in range(10):
        made = record()
        made.samples = samples(1200, 0.0, seed=seed)
        assert found_in(made) == []


@pytest.mark.slow
def test_memory_that_grows_is_found() -> None:
    (problem,) = found_in(record(growth=30e6))
    assert problem.startswith("rss grows by ")


def test_within_minutes_a_small_slope_is_noise_and_within_a_day_it_is_a_leak() -> None:
    slope = Trend(slope=1e6, low=8e5, high=1.2e6, hours=16 / 60)
    assert not slope.grows(per_hour=50e3, resolution=MEGABYTE)
    assert Trend(slope=1e6, low=8e5, high=1.2e6, hours=19).grows(per_hour=50e3, resolution=MEGABYTE)


def test_a_day_with_200_kilobytes_an_hour_is_a_leak() -> None:
    points = [(float(at), at / 3600 * 2e5) for at in range(0, 86_400, 60)]
    trend = trend_of(points)
    assert trend is not None
    assert trend.slope == pytest.approx(2e5)
    assert trend.grows(per_hour=50e3, resolution=MEGABYTE)


def test_what_a_process_takes_to_warm_up_does_not_count() -> None:
    points = [(float(at), min(at, 200) * 1e5) for at in range(1200)]
    trend = trend_of(points)
    assert trend is not None
    assert trend.slope == 0


def test_a_run_of_two_minutes_does_not_judge_memory_but_tasks() -> None:
    (problem,) = found_in(record(seconds=120, growth=500e6, tasks=600))
    assert problem.startswith("tasks grows by ")


def test_tasks_that_grow_in_number_are_found() -> None:
    (problem,) = found_in(record(tasks=60))
    assert problem.startswith("tasks grows by ")


@pytest.mark.slow
def test_a_run_without_a_checkpoint_has_shown_nothing() -> None:
    made = record()
    made.checkpoints = []
    assert found_in(made) == ["there was no checkpoint"]


def test_every_difference_and_every_complaint_is_wrong() -> None:
    truth = {"cache": {"a": "u@1", "b": "u@2"}, "handler": {"a": "u@1"}}
    views = {"cache": {"a": "u@1", "c": "u@3"}, "handler": {"a": "u@1"}}
    state = State(views=views, complaints=["a was added twice"])
    assert differences(state, truth) == [
        "a was added twice",
        "cache: b is nothing, and should be u@2",
        "cache: c is u@3, and should be nothing",
    ]


def start(folder: Path, minutes: str) -> subprocess.Popen[str]:
    options = ["--minutes", minutes, "--server", "embedded", "--period", "5", "--out", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-m", "tools.soak", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_short_run_passes_and_leaves_a_record_and_a_picture(tmp_path: Path) -> None:
    with start(tmp_path, "0.25") as process:
        out, err = process.communicate(timeout=170)
    assert (process.returncode, err) == (0, ""), out
    made = msgspec.json.decode((tmp_path / "embedded.json").read_bytes(), type=Record)
    assert made.checkpoints
    assert made.faults
    assert made.writes > 100
    assert (tmp_path / "embedded.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_a_run_and_what_was_seen_is_kept(tmp_path: Path) -> None:
    with start(tmp_path, "60") as process:
        assert process.stdout is not None
        process.stdout.readline()  # the first checkpoint
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    made = msgspec.json.decode((tmp_path / "embedded.json").read_bytes(), type=Record)
    assert made.broken == ["interrupted"]
    assert made.checkpoints

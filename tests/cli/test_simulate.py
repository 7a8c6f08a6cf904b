"""``kinform simulate``: what it says and keeps of what fails, and that its commands fail again."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from kinform.cli.execution import run
from kinform.testing.simulation import Schedule
from kinform.testing.simulation._schedule import fault_names
from kinform.testing.simulation.actions import CrashAtWrite, Restart, Write

SHOP = '''
import asyncio

from kinform.testing.simulation import Workload


async def idle(process):
    await asyncio.Event().wait()


async def order(process):
    """Make two writes, and never look whether both were made."""
    if process.number == 0 and process.life == 0:
        maps = process.client.resource("v1/configmaps", namespace="default")
        await maps.create({"metadata": {"name": "begun"}})
        await maps.create({"metadata": {"name": "done"}})
    await asyncio.Event().wait()


def nobody_was_restarted(world):
    return "restarted" if any(process.life for process in world.living) else ""


def make(draft):
    return {"data": {"value": 1 / 0}}


def everybody_was_restarted(world):
    for process in world.living:
        assert process.life, f"{process} never was"


BROKEN = Workload(resource="v1/configmaps", make=make, value_at=("data", "value"))


def order_is_done(world):
    there = {stored.key for stored in world.server.cluster.storage.table("configmaps").now()}
    return "" if there >= {"default/begun", "default/done"} else "half an order"
'''
IDLE = ("--program", "simulated_shop:idle", "--check", "simulated_shop:nobody_was_restarted")
ORDER = ("--program", "simulated_shop:order", "--check", "simulated_shop:order_is_done")
WIDGETS = (
    *("--program", "tests.testing.widgets:forget"),
    *("--check", "tests.testing.widgets:is_settled"),
    *("--workload", "tests.testing.widgets:WIDGETS"),
)
KEPT = Path("build/simulation")
RESTART = Restart(at=1.0, process=0)
WRITE = Write(at=2.0, verb="create", namespace="blue", name="n1")
LAST = Write(at=3.0, verb="create", namespace="blue", name="n2")


class Said(NamedTuple):
    code: int
    failures: Sequence[str]
    last: str
    commands: dict[str, list[str]]
    """The arguments of the command that is printed after each word."""


class Shop(NamedTuple):
    capsys: pytest.CaptureFixture[str]

    def simulate(self, *args: str) -> Said:
        """Run the command on one worker."""
        code = run(["simulate", "--jobs", "1", *args])
        captured = self.capsys.readouterr()
        assert "error" not in captured.err  # progress may be reported there
        *failures, last = captured.out.splitlines()
        found = re.findall(r"^  (\w+): kinform simulate (.*)$", captured.out, re.MULTILINE)
        return Said(code, failures, last, {word: shlex.split(line) for word, line in found})


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shop:
    """A folder to work in, with a user's module."""
    (tmp_path / "simulated_shop.py").write_text(SHOP, encoding="utf-8")
    (tmp_path / "misspelt.py").write_text("def main(:", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as the command does, which does not take it back
    monkeypatch.delitem(sys.modules, "simulated_shop", raising=False)
    return Shop(capsys)


@pytest.mark.slow
def test_an_exception_of_a_check_is_reported(shop: Shop) -> None:
    """Test authors use assert."""
    file = str(written("calm.json", WRITE, LAST))
    check = ("--check", "simulated_shop:everybody_was_restarted")
    said = shop.simulate("--schedule", file, *IDLE[:2], *check, "--no-shrink")
    assert said.code == 1
    assert said.failures[0].startswith("calm: equality: the check raised AssertionError: ")
    assert said.failures[0].endswith("never was")


def written(name: str, *actions: Restart | Write) -> Path:
    """Write a schedule to where others are kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    file = KEPT / name
    file.write_text(Schedule(seed=7, actions=actions).dump(), encoding="utf-8")
    return file


@pytest.mark.slow
def test_nothing_found_is_said_in_one_line_and_leaves_no_file(shop: Shop) -> None:
    said = shop.simulate("--seeds", "1")
    assert (said.code, said.failures) == (0, [])
    assert re.fullmatch(
        r"1 schedule, \d+\.\d simulated hours, in \d+\.\d s: none failed", said.last
    )
    assert not KEPT.exists()


@pytest.mark.slow
def test_a_seed_that_fails_fails_again_by_both_commands(shop: Shop) -> None:
    first = shop.simulate("--first-seed", "7", "--seeds", "1", *IDLE)
    assert first.code == 1
    assert first.last.endswith(": 1 failed")
    assert first.failures[0] == "seed 7: equality: restarted"
    assert first.failures[1].endswith(" actions, shrunk to 1")
    assert first.commands == {
        "again": ["--first-seed", "7", "--seeds", "1", *IDLE],
        "short": ["--schedule", "build/simulation/7.json", *IDLE],
    }
    kept = (KEPT / "7.json").read_bytes()
    assert len(Schedule.load(kept).actions) == 1  # a restart
    again = shop.simulate(*first.commands["again"])
    assert (again.code, again.failures) == (1, first.failures)
    short = shop.simulate(*first.commands["short"])
    assert (short.code, short.failures[0]) == (1, "7: equality: restarted")
    assert short.commands == {"short": first.commands["short"]}
    assert (KEPT / "7.json").read_bytes() == kept
    assert [file.name for file in KEPT.iterdir()] == ["7.json"]


@pytest.mark.slow
def test_schedules_in_files_are_run_and_left_as_they_are(shop: Shop) -> None:
    good, bad = written("good one.json", WRITE), written("bad one.json", RESTART, WRITE, LAST)
    before = bad.read_bytes()
    said = shop.simulate("--schedule", str(good), "--schedule", str(bad), *IDLE)
    assert said.code == 1
    assert said.last.startswith("2 schedules, ")
    assert said.failures[:2] == [
        "bad one: equality: restarted",
        "  3 actions, shrunk to 1",
    ]
    assert said.commands == {"short": ["--schedule", "build/simulation/bad one-2.json", *IDLE]}
    assert bad.read_bytes() == before
    assert Schedule.load((KEPT / "bad one-2.json").read_bytes()).actions == (RESTART,)


@pytest.mark.slow
def test_an_operator_of_another_kind_that_fails_fails_again_by_its_file(shop: Shop) -> None:
    first = shop.simulate("--first-seed", "1", "--seeds", "1", "--no-shrink", *WIDGETS)
    assert first.code == 1
    assert re.fullmatch(r"seed 1: equality: secret \w+/n\d is of no widget", first.failures[0])
    assert first.commands == {
        "again": ["--first-seed", "1", "--seeds", "1", *WIDGETS],
        "short": ["--schedule", "build/simulation/1.json", *WIDGETS],
    }
    short = shop.simulate(*first.commands["short"], "--no-shrink")
    assert (short.code, short.commands) == (1, {"short": first.commands["short"]})
    assert short.failures[0] == first.failures[0].removeprefix("seed ")


@pytest.mark.slow
@pytest.mark.parametrize("instead", [(), ("--every-write",)])
def test_a_workload_that_cannot_be_written_ends_the_command(
    shop: Shop, instead: tuple[str, ...]
) -> None:
    args = ("--workload", "simulated_shop:BROKEN", "--jobs", "1", *IDLE, *instead)
    assert run(["simulate", *args]) == 2
    captured = shop.capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: the workload's make() failed for ")
    assert "ZeroDivisionError: division by zero (see: kinform simulate --help)" in captured.err
    assert captured.err.count("\n") == 1
    assert not KEPT.exists()


@pytest.mark.slow
def test_each_write_whose_crash_is_not_survived_is_kept_and_fails_again(shop: Shop) -> None:
    said = shop.simulate("--every-write", "--first-seed", "7", "--no-shrink", *ORDER)
    assert said.code == 1
    assert said.last.startswith("5 schedules, ")
    assert said.last.endswith(": 2 failed")
    names = ["7-write-1-answered", "7-write-1-unanswered"]
    assert sorted(file.stem for file in KEPT.iterdir()) == names
    for name in names:
        assert f"{name}: equality: half an order" in said.failures
        kept = Schedule.load((KEPT / f"{name}.json").read_bytes())
        (crash,) = (one for one in kept.actions if isinstance(one, CrashAtWrite))
        assert (crash.nth, crash.before_answer) == (1, name.endswith("-unanswered"))
    assert [*said.commands] == ["short"]
    short = shop.simulate(*said.commands["short"], "--no-shrink")
    assert (short.code, short.commands) == (1, said.commands)
    assert short.failures[0] in said.failures
    assert sorted(file.stem for file in KEPT.iterdir()) == names


@pytest.mark.slow
def test_every_write_of_a_schedule_in_a_file_is_crashed_at(shop: Shop) -> None:
    file = written("small.json", WRITE, LAST)
    said = shop.simulate("--every-write", "--schedule", str(file), "--no-shrink", *ORDER)
    assert said.code == 1
    assert said.last.startswith("5 schedules, ")
    names = ["small-write-1-answered", "small-write-1-unanswered"]
    assert sorted(kept.stem for kept in KEPT.iterdir()) == ["small", *names]
    for name in names:
        kept = Schedule.load((KEPT / f"{name}.json").read_bytes())
        assert kept.actions[1:] == (WRITE, LAST)


def test_only_chosen_faults_are_in_the_schedules(shop: Shop) -> None:
    args = ("--show", "--seeds", "2", *IDLE[:2], "--faults", "lag,compact")
    assert run(["simulate", *args]) == 0
    shown = shop.capsys.readouterr().out
    others = [line for line in shown.splitlines() if '"type"' in line and '"write"' not in line]
    assert len(others) > 10
    assert all('"lag"' in line or "compact" in line for line in others)


@pytest.mark.slow
def test_the_command_that_is_printed_has_the_chosen_faults_and_limits(shop: Shop) -> None:
    chosen = ("--faults=restart", "--quiet-for", "30")
    args = ("--first-seed", "7", "--seeds", "1", "--no-shrink", *IDLE, *chosen)
    said = shop.simulate(*args)
    assert said.code == 1
    assert said.commands == {
        "again": ["--first-seed", "7", "--seeds", "1", *IDLE, *chosen],
        "short": ["--schedule", "build/simulation/7.json", *IDLE, *chosen[1:]],
    }


def test_help_lists_every_fault_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--help"]) == 0
    text = capsys.readouterr().out
    for name in fault_names.ALL:
        mark = r"\*" if name in fault_names.NOT_BY_DEFAULT else ""
        assert re.search(rf"^  {name}{mark}  +\w", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--program", "nowhere:main"], "cannot load 'nowhere:main': ModuleNotFoundError: No"),
        (["--program", "misspelt:main"], "cannot load 'misspelt:main': SyntaxError: "),
        (["--program", "simulated_shop:main"], "module 'simulated_shop' has no attribute 'main'"),
        (["--program", "simulated_shop"], "has no attribute ''; write module:function"),
        ([*IDLE[:3], "simulated_shop:main"], "module 'simulated_shop' has no attribute 'main'"),
        (["--program", "nowhere:main", "--every-write"], "No module named 'nowhere'"),
        (["--program", "nowhere:main", "--show"], "No module named 'nowhere'"),
        (["--check", "simulated_shop:order_is_done"], "--check is about what --program does"),
        (["--workload", "simulated_shop:BROKEN"], "--workload is about what --program does"),
        ([*IDLE, "--workload", "nowhere:WIDGETS"], "cannot load 'nowhere:WIDGETS': ModuleNotF"),
        ([*IDLE, "--workload", "simulated_shop:idle"], "is not a Workload, but of type function"),
        (["--schedule", "simulated_shop.py"], "simulated_shop.py: not a schedule"),
        (["--schedule", "none.json"], "'none.json' does not exist"),
        ([*IDLE, "--faults", "restor"], "unknown fault 'restor'; did you mean 'restore'? (see"),
        (["--faults", "nothing like it"], "unknown fault 'nothing like it' (see: kinform "),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(shop: Shop, args: list[str], words: str) -> None:
    assert run(["simulate", *args]) == 2
    captured = shop.capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1

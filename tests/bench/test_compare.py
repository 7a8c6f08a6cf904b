"""The comparison's own judgement, with made-up figures, and its children, with tiny scripts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench.compare import bars, peers, plan, plots, report, results, runner, table
from bench.compare.__main__ import main
from bench.compare.bars import Bar, Outcome
from bench.compare.extras import extra_jobs
from bench.compare.measures import MEASURES, SECTIONS
from bench.compare.peers import JSON, PROTOBUF, RAW, ROOT, UVLOOP, Peer
from bench.compare.plan import FULL, LIFE, PARTS, QUICK, Job
from bench.compare.processes import Child, ChildError
from bench.compare.results import Lived, Record, Select
from tests.testing.eventually import eventually
from tests.testing.processes import is_alive

CPU = MEASURES["sync_cpu"].of


def lived(label: str, number: int = 0, *, part: str = "life", objects: int = 1_000, **figures):
    return Lived(
        part=part,
        label=label,
        round=number,
        objects=objects,
        lists="stream",
        fields=part == "fields",
        figures=figures,
    )


def record(*lives: Lived) -> Record:
    return Record(
        scale="quick",
        machine={"CPU": "made up", "cores": "2"},
        corpus={"count": 1_000, "bytes each": 6_300.0},
        versions={"kinform raw": {"kinform": "0.1"}},
        left_out={"kube-rs": "there is no Rust toolchain to build it with"},
        lives=list(lives),
        began="2026-01-02T03:04:05+00:00",
        seconds=90.0,
        partial=False,
    )


def syncs(label: str, *microseconds: float, part: str = "life") -> list[Lived]:
    """Lives whose first sync took so many microseconds of CPU per object, one for each round."""
    return [
        lived(label, number, part=part, sync_cpu_ns=each * 1_000 * 1_000, sync_settle_cpu_ns=0,
              sync_wall_ns=each * 1_000 * 1_000, ready_resident=1e6, sync_alone=9e6)
        for number, each in enumerate(microseconds)
    ]  # fmt: skip


# --- figures


def test_median_and_spread_over_rounds():
    figure = results.spread(record(*syncs("kinform raw", 30, 10, 20)), Select(label=RAW.label), CPU)
    assert figure == results.Spread(20.0, 10.0, 30.0, 3)


def test_what_nobody_measured_has_no_figure():
    assert results.spread(record(), Select(label="kinform raw"), CPU) is None
    without = record(lived("kinform raw"))
    assert results.spread(without, Select(label="kinform raw"), CPU) is None


def test_ratio_is_taken_within_a_round():
    """A slow second round is slow for both: the ratio of medians would be 0.2."""
    both = record(*syncs(RAW.label, 10, 100, 20), *syncs(JSON.label, 100, 1_000, 100))
    figure = results.ratio(both, Select(label=RAW.label), CPU, to=Select(label=JSON.label))
    assert figure is not None
    assert (figure.median, figure.count) == (pytest.approx(0.1), 3)


def test_who_lived_once_is_compared_with_the_others_median():
    both = record(*syncs("kopf", 500), *syncs(JSON.label, 100, 200, 300))
    figure = results.ratio(both, Select(label="kopf"), CPU, to=Select(label=JSON.label))
    assert figure == results.Spread(2.5, 2.5, 2.5, 1)


def test_latency_rounds_count_with_those_of_the_life():
    lives = [lived(RAW.label, n, latency_p99=n * 1e6) for n in (1, 2, 3)]
    lives += [lived(RAW.label, n, part="latency", latency_p99=n * 1e6) for n in (4, 5)]
    figure = results.spread(record(*lives), Select(label=RAW.label), MEASURES["p99"].of)
    assert figure == results.Spread(3.0, 1.0, 5.0, 5)


def test_memory_per_object_is_the_growth_since_the_start():
    life = lived(RAW.label, objects=1_000, ready_resident=5e6, sync_alone=12e6, sync_resident=11e6)
    assert MEASURES["memory"].of(life) == 7_000
    assert MEASURES["memory_needed"].of(life) == 6_000


def test_every_column_of_a_table_is_a_known_quantity():
    assert {name for _, _, names in SECTIONS for name in names} <= set(MEASURES)
    assert {bar.measure for bar in bars.BARS if not bar.elsewhere} <= set(MEASURES)


def test_a_record_survives_being_written_and_read(tmp_path: Path):
    before = record(*syncs(RAW.label, 10, 20), replace(lived("kr8s"), failure="sync: no answer"))
    results.save(before, tmp_path / "latest.json")
    assert results.load(tmp_path / "latest.json") == before


def test_something_else_is_not_taken_for_a_record(tmp_path: Path):
    (tmp_path / "other.json").write_text('{"format": 0}', encoding="utf-8")
    with pytest.raises(ValueError, match="not a record"):
        results.load(tmp_path / "other.json")


# --- bars


def verdict(bar: Bar, made: Record) -> bars.Verdict:
    return bars.judged(made, [bar])[0]


SYNC_BAR = Bar(name="sync", measure="sync_cpu", limit=1 / 12, against=JSON.label, also=UVLOOP.label)


@pytest.mark.parametrize(
    ("ours", "outcome"),
    [(50.0, Outcome.REACHED), (60.0, Outcome.MISSED)],
    ids=["reached", "missed"],
)
def test_verdict_on_a_ratio(ours: float, outcome: Outcome):
    found = verdict(SYNC_BAR, record(*syncs(RAW.label, ours), *syncs(JSON.label, 650)))
    assert found.outcome is outcome
    assert found.figure is not None
    assert found.figure.median == pytest.approx(ours / 650)


def test_verdict_tells_how_another_configuration_does():
    made = record(*syncs(RAW.label, 50), *syncs(UVLOOP.label, 25), *syncs(JSON.label, 500))
    found = verdict(SYNC_BAR, made)
    assert found.also is not None
    assert found.also.median == pytest.approx(0.05)


def test_bar_from_below():
    bar = Bar(name="events", measure="events_rate", limit=12, at_least=True, against=JSON.label)
    lives = [lived(RAW.label, events=100, events_wall_ns=1e7)]
    made = record(*lives, lived(JSON.label, events=100, events_wall_ns=1e8))
    assert verdict(bar, made).outcome is Outcome.MISSED  # ten times as many
    assert verdict(replace(bar, limit=9), made).outcome is Outcome.REACHED


def test_bar_without_figures_is_not_reached():
    assert verdict(SYNC_BAR, record(*syncs(RAW.label, 50))).outcome is Outcome.UNMEASURED


def test_bar_on_growth_compares_the_largest_with_the_smallest():
    bar = Bar(name="growth", measure="memory", limit=1.25, part="growth", growth=(-1, 0))
    lives = [
        lived(RAW.label, part="growth", objects=size, ready_resident=0, sync_alone=size * each)
        for size, each in ((10, 100.0), (100, 150.0), (1_000, 120.0))
    ]
    found = verdict(bar, record(*lives))
    assert found.figure is not None
    assert (found.outcome, found.figure.median) == (Outcome.REACHED, pytest.approx(1.2))
    assert verdict(bar, record(lives[0])).outcome is Outcome.UNMEASURED


def test_bars_of_other_proofs_are_listed():
    assert {found.outcome for found in bars.judged(record())} == {
        Outcome.UNMEASURED,
        Outcome.ELSEWHERE,
    }


# --- tables and plots


def whole() -> Record:
    made = record(
        *syncs(PROTOBUF.label, 100, 110),
        *syncs(JSON.label, 600, 660),
        *syncs(RAW.label, 60, 66),
        *syncs(RAW.label, 70, part="fields"),
        lived(RAW.label, events=100, events_wall_ns=1e7, latency_p50=1e6, latency_p99=2e6),
        replace(lived("kr8s"), failure="sync: kr8s ended before it answered\n  | Boom: no pods"),
    )
    for size in (1_000, 10_000):
        made.lives.append(
            lived(RAW.label, part="growth", objects=size, sync_cpu_ns=size * 6e4, ready_resident=0,
                  sync_settle_cpu_ns=0, sync_alone=size * 7e3)
        )  # fmt: skip
    return made


def test_table_tells_medians_spread_ratios_and_verdicts():
    text = table.markdown(whole())
    assert "63.0 [60.0 … 66.0] (0.600x, 0.100x)" in text
    assert "| first sync, replayed: CPU, of client-go's JSON " in text
    assert "at most 1/12" in text
    assert "**MISSED**" in text
    assert "CPU made up" in text
    assert "- kube-rs: there is no Rust toolchain" in text
    assert "Boom: no pods" in text
    assert "| kinform raw | 10,000 " in text
    assert "Partial" not in text


def test_table_says_that_a_run_ended_early():
    made = whole()
    made.partial = True
    assert "Partial" in table.markdown(made)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0123, "0.012"),
        (0.5, "0.500"),
        (1.23, "1.23"),
        (12.34, "12.3"),
        (1e4, "10,000"),
    ],
)
def test_amounts_have_the_digits_that_count(value: float, text: str):
    assert table.amount(value) == text


@pytest.mark.slow
def test_plots_are_the_same_for_the_same_record(tmp_path: Path):
    first, second = plots.draw(whole(), tmp_path / "a"), plots.draw(whole(), tmp_path / "b")
    assert [path.name for path in first] == [
        "sync-cpu.svg", "events.svg", "memory.svg", "latency.svg", "growth.svg",
    ]  # fmt: skip
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.slow
def test_report_is_made_from_the_stored_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    report.write(whole(), tmp_path)
    stored = (tmp_path / "latest.json").read_bytes()
    page = (tmp_path / "latest.md").read_text(encoding="utf-8")
    (tmp_path / "latest.md").unlink()
    assert main(["--report", str(tmp_path / "latest.json")]) == 1  # a bar was missed
    assert (tmp_path / "latest.md").read_text(encoding="utf-8") == page
    assert (tmp_path / "latest.json").read_bytes() == stored
    assert page in capsys.readouterr().out


# --- plans


def test_every_peer_lives_once_a_round_in_an_order_that_rotates():
    three = [PROTOBUF, JSON, RAW]
    jobs = plan.main_jobs(QUICK, three, LIFE)
    rounds = [[job.peer for job in jobs if job.round == number] for number in (0, 1)]
    assert rounds == [[PROTOBUF, JSON, RAW], [JSON, RAW, PROTOBUF]]


def test_slow_peers_live_once_with_what_they_can_bear():
    slow = [peer for peer in peers.PEERS if peer.is_slow]
    jobs = plan.main_jobs(FULL, slow, LIFE)
    assert [job.peer for job in jobs] == slow
    assert all(job.objects <= job.peer.most for job in jobs)


def test_a_part_of_the_life_needs_the_sync_before_it():
    (job, *_) = plan.main_jobs(QUICK, [RAW], ["lookup"])
    assert job.steps == ("sync", "lookup")


def test_only_the_parts_asked_for_are_planned():
    assert plan.main_jobs(QUICK, [RAW], ["growth"]) == []
    jobs = extra_jobs(FULL, peers.PEERS, ["growth"])
    assert {job.part for job in jobs} == {"growth"}
    assert {job.objects for job in jobs} == set(FULL.growth)


@pytest.mark.parametrize(("scale", "minutes"), [(QUICK, 12), (FULL, 44)], ids=["quick", "full"])
def test_the_whole_plan_is_estimated_within_its_time(scale: plan.Scale, minutes: float):
    jobs = [*plan.main_jobs(scale, peers.PEERS, PARTS), *extra_jobs(scale, peers.PEERS, PARTS)]
    assert sum(job.estimate() for job in jobs) / 60 < minutes


def test_peers_are_chosen_by_name_or_label():
    assert peers.chosen([""]) == list(peers.PEERS)
    assert peers.chosen(["client-go"]) == [PROTOBUF, JSON]
    assert peers.chosen(["kinform raw"]) == [RAW]
    with pytest.raises(ValueError, match="no peer 'unknown'"):
        peers.chosen(["unknown"])


# --- programs


def test_a_program_that_nobody_knows_is_not_built(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main(["--build", "client-go", "kinform"])
    assert "no program 'kinform'; there is client-go, kube-rs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "client-go is not built: there is no Go toolchain to build it with"),
        (["kube-rs"], "kube-rs is not built: there is no Rust toolchain to build it with"),
    ],
    ids=["all", "kube-rs"],
)
def test_a_program_without_its_toolchain_is_an_error(
    names: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--build", *names]) == 1
    assert text in capsys.readouterr().err


# --- children

GOOD = """
import json, sys
def say(**answer): print(json.dumps(answer), flush=True)
say(ready=True, versions={"tiny": "1"})
for line in sys.stdin:
    command = json.loads(line)
    match command["do"]:
        case "start": say(synced=True, objects=command["objects"], delivered=command["objects"])
        case "expect": say(expecting=command["events"]); say(delivered=command["events"])
        case "release": say(released=True)
        case "quit": sys.exit(0)
        case _: say(unsupported=True)
"""
DYING = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
sys.stdin.readline()
print("Traceback: the cache is on fire", file=sys.stderr)
sys.exit(3)
"""
SERVER = """
import json, sys
print(json.dumps({"ready": True, "port": 1}), flush=True)
answers = {"serve": "serving", "prepare": "prepared", "blast": "sent", "expire": "expired"}
for line in sys.stdin:
    print(json.dumps({answers[json.loads(line)["do"]]: 1}), flush=True)
"""
MUTE = "import sys; sys.stdin.read()"


def tiny(label: str, script: str) -> Peer:
    return Peer(name=label, label=label, command=(sys.executable, "-c", script))


def run(*jobs: Job) -> Record:
    made = Record(scale="quick", machine={})
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        runner.run(
            jobs,
            made,
            server=[sys.executable, "-c", SERVER],
            folder=ROOT,
            progress=runner.Progress(1.0, len(jobs), stream=nowhere),
            real=no_real_server,
        )
    return made


@contextmanager
def no_real_server(objects: int) -> Iterator[Path]:
    if objects:
        raise RuntimeError(f"no binaries for {objects} pods")
    yield Path()


def job(peer: Peer, *steps: str, part: str = "life") -> Job:
    return Job(part=part, peer=peer, round=0, objects=5, steps=steps, events=5)


@pytest.mark.slow
def test_a_peer_that_dies_is_reported_and_the_run_goes_on():
    made = run(job(tiny("dying", DYING), "sync"), job(tiny("good", GOOD), "sync", "events"))
    dead, good = made.lives
    assert dead.failure is not None
    assert dead.failure.startswith("sync: dying ended before it answered to 'start' (exit code 3)")
    assert "| Traceback: the cache is on fire" in dead.failure
    assert "ready_cpu_ns" in dead.figures  # what there is of it
    assert good.failure is None
    assert {"sync_cpu_ns", "sync_resident", "events_wall_ns", "events_peak"} <= set(good.figures)
    assert made.versions == {"good": {"tiny": "1"}}


@pytest.mark.slow
def test_what_a_peer_cannot_do_leaves_no_figures():
    (life,) = run(job(tiny("good", GOOD), "sync", "lookup", "join", "relist", "queue")).lives
    assert life.failure is None
    assert not [name for name in life.figures if name.startswith(("lookup_", "relist_", "queue_"))]


def test_a_real_server_that_cannot_start_is_left_out():
    made = run(job(tiny("good", GOOD), "sync", part="real"))
    assert made.lives == []
    assert "no binaries for 5 pods" in made.left_out["a real kube-apiserver"]


def test_a_child_that_does_not_answer_is_given_up_and_killed():
    with Child("mute", [sys.executable, "-c", MUTE]) as child:
        with pytest.raises(ChildError, match=r"mute did not answer to 'start' within 0\.05 s"):
            child.ask({"do": "start"}, timeout=0.05, key="synced")
        assert Path(f"/proc/{child.pid}").exists()
    assert not Path(f"/proc/{child.pid}").exists()


def test_a_child_that_talks_nonsense_is_quoted():
    script = "print('hello'); import sys; sys.stdin.read()"
    with Child("odd", [sys.executable, "-c", script]) as child:
        with pytest.raises(ChildError, match="odd answered 'hello' to 'start', without 'ready'"):
            child.answer("ready", timeout=20, what="start")


def test_a_program_that_is_not_there_is_an_error_of_its_own():
    with pytest.raises(ChildError, match="ghost cannot be started"):
        Child("ghost", ["/nowhere/ghost"])


def test_cpu_time_and_memory_of_a_child_come_from_the_kernel():
    script = """
import sys
x = bytearray(50_000_000); sum(range(1_000_000)); print('{"ready": 1}', flush=True)
sys.stdin.readline(); del x; print('{"released": 1}', flush=True); sys.stdin.read()
"""
    with Child("busy", [sys.executable, "-c", script]) as child:
        child.answer("ready", timeout=20, what="start")
        assert 1e6 < child.usage.cpu_ns() < 20e9
        assert child.usage.resident() > 50_000_000
        child.ask({"do": "release"}, timeout=20, key="released")
        assert child.usage.peak() > 50_000_000 > child.usage.resident()
        child.usage.reset_peak()
        assert child.usage.peak() < 50_000_000


PARENT = """
import sys
from bench.compare.processes import Child
child = Child("orphan", [sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_children_die_with_their_parent():
    command = [sys.executable, "-c", PARENT]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        orphan = int(parent.stdout.readline())
        assert is_alive(orphan)
        parent.send_signal(signal.SIGKILL)
    eventually(lambda: not is_alive(orphan))

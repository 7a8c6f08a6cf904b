"""Parsers under fuzz: what is known to be hard is tried again, and a little that is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import targets
from tests.fuzz.targets import TARGETS
from tools.fuzz.engine import Fuzzer, Target, finding

FOLDER = Path(__file__).parent
SEED = 1
EXECUTIONS = {
    "watch": 100,
    "list": 60,
    "chunked": 200,
    "gzip": 120,
    "kubeconfig": 300,
    "server_side_apply": 80,
    "server": 25,
}
"""The number of new inputs for each target here; `make fuzz` has no such limit."""
KEPT = 300 * 1024

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_kept_holds(name: str) -> None:
    """Every seed, and every input that failed once."""
    for data in targets.seeds(name):
        if (found := finding(TARGETS[name], data)) is not None:
            pytest.fail(f"{name} fails on {found.data!r}\n{found.text}", pytrace=False)


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_run_finds_nothing(name: str) -> None:
    fuzzer = Fuzzer(TARGETS[name], targets.seeds(name), seed=SEED)
    fuzzer.start()
    for _ in range(EXECUTIONS.get(name, 600)):
        fuzzer.step()
    for found in fuzzer.findings.values():
        pytest.fail(f"{name} fails on {found.data!r}\n{found.text}", pytrace=False)


@pytest.mark.parametrize("folder", ["corpus", "found"])
def test_what_is_kept_belongs_to_a_target(folder: str) -> None:
    assert {path.name for path in (FOLDER / folder).iterdir()} <= TARGETS.keys()


def test_every_target_has_seeds_and_all_are_small() -> None:
    assert all(targets.seeds(name) for name in TARGETS)
    assert KEPT > sum(len(data) for name in TARGETS for data in targets.seeds(name))


# --- the engine --------------------------------------------------------------------------------


def planted(data: bytes) -> None:
    """Fail on what chance alone does not find: three steps, each behind the one before."""
    for place, byte in enumerate(b"k8s"):
        if data[place : place + 1] != bytes([byte]):
            return
    raise LookupError("planted")


def steps_to_the_planted_mistake(seed: int, *, files: tuple[str, ...] = ("test_fuzz.py",)) -> int:
    fuzzer = Fuzzer(Target(name="planted", run=planted, files=files), [b"a"], seed=seed)
    fuzzer.start()
    while not fuzzer.findings and fuzzer.executions < 15_000:
        fuzzer.step()
    assert [found.data for found in fuzzer.findings.values()] in ([], [b"k8s"])
    return fuzzer.executions if fuzzer.findings else 0


def test_coverage_leads_to_a_mistake_and_chance_alone_does_not() -> None:
    assert steps_to_the_planted_mistake(SEED) > 0
    assert steps_to_the_planted_mistake(SEED, files=("no such file",)) == 0


def test_one_seed_is_one_run() -> None:
    def corpus(seed: int) -> list[bytes]:
        fuzzer = Fuzzer(TARGETS["field_selector"], targets.seeds("field_selector"), seed=seed)
        fuzzer.start()
        for _ in range(150):
            fuzzer.step()
        return fuzzer.corpus

    assert corpus(1) == corpus(1) != corpus(2)


def test_what_takes_time_out_of_proportion_is_found() -> None:
    def quadratic(data: bytes) -> None:
        while data:
            sum(data)
            data = data[20:]

    target = Target(name="quadratic", run=quadratic, files=(), limit=0.02)
    assert finding(target, b"a" * 500) is None
    found = finding(target, b"a" * 20_000)
    assert found is not None
    assert found.place[0] == "Slow"


def test_findings_are_made_small() -> None:
    def fails(data: bytes) -> None:
        assert b"{" not in data or b"}" not in data

    fuzzer = Fuzzer(Target(name="braces", run=fails, files=()), [b"abc{defgh}ij" * 9], seed=SEED)
    fuzzer.start()
    (found,) = fuzzer.findings.values()
    assert found.data in {b"{}", b"}{"}

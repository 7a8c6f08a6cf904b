"""Both clients as players: the same script gives the same outcome, and a mutant another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.skipping import cannot_run
from tools.differential import proof
from tools.differential.drawing import draw
from tools.differential.players import PROGRAM, ClientGo, Kinform
from tools.differential.running import judge
from tools.mutants.patches import load

pytestmark = pytest.mark.slow

SEEDS = range(5)


@pytest.fixture
def kinform() -> Iterator[Kinform]:
    player = Kinform()
    yield player
    player.close()


@pytest.fixture
def client_go() -> Iterator[ClientGo]:
    if not PROGRAM.exists():
        cannot_run(f"{PROGRAM.name} is not built (`make differential` builds it)")
    player = ClientGo()
    yield player
    player.close()


def test_kinform_plays_a_script_the_same_way_twice(kinform: Kinform) -> None:
    scripts = [draw(seed) for seed in SEEDS]
    once = [kinform.play(script) for script in scripts]
    assert [kinform.play(script) for script in reversed(scripts)] == once[::-1]


def test_client_go_plays_a_script_the_same_way_twice(client_go: ClientGo) -> None:
    scripts = [draw(seed) for seed in SEEDS]
    once = [client_go.play(script).cache for script in scripts]
    assert [client_go.play(script).cache for script in reversed(scripts)] == once[::-1]


def test_a_mutant_of_the_reflector_is_found(client_go: ClientGo, kinform: Kinform) -> None:
    (patch,) = [one for one in load() if one.name == "delete-is-an-update"]
    calm = [script for seed in range(60) if (script := draw(seed)).theme == "calm"]
    script = next(one for one in calm if not (one.style.nulls or one.style.pretty))
    theirs = client_go.play(script)
    assert judge(script, kinform.play(script), theirs).defects == []
    with proof.mutated(patch) as source:
        mutant = Kinform(source)
        outcome = mutant.play(script)
        mutant.close()
    assert judge(script, outcome, theirs).defects

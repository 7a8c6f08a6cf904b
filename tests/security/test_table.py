"""SECURITY.md says which test proves what: every name in it leads to a test that is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs/guides/security.md").read_text(encoding="utf-8")
CLAIM = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
CLAIMS = sorted({(path, name) for path, name in CLAIM.findall(TEXT + GUIDE)})
ADVERSARIES = {f"A{number}" for number in range(1, 8)}


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


def rows() -> list[list[str]]:
    """Return the cells of the threats."""
    section = TEXT.split("## Threats")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("path, name", CLAIMS)
def test_every_test_that_is_named_is_there(path: str, name: str) -> None:
    assert (ROOT / path).is_file(), f"there is no {path}"
    if name:
        assert name in names_in(path), f"{path} has no {name}"


def test_every_threat_has_adversaries_a_default_and_a_test() -> None:
    assert len(rows()) >= 21
    for threat, by, default, proof in rows():
        assert threat
        assert default
        assert by
        assert set(re.findall(r"A\d", by)) <= ADVERSARIES
        assert CLAIM.search(proof) or proof.startswith("Nothing to test:"), threat


def test_every_adversary_is_described_and_faced() -> None:
    assert set(re.findall(r"^- \*\*(A\d)\*\*", TEXT, re.MULTILINE)) == ADVERSARIES
    assert {each for _, by, *_ in rows() for each in re.findall(r"A\d", by)} == ADVERSARIES


def test_every_test_of_this_folder_is_accounted_for() -> None:
    """A test module that no row names proves nothing that anybody promised."""
    here = {f"tests/security/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    assert here <= {path for path, _ in CLAIMS}

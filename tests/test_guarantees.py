"""docs/guarantees.md names existing tests, and each guarantee has a test and a result."""

from __future__ import annotations

import re

import pytest

from tools.conformance import NAMED, PROMISES, ROOT

HEADS = ("| guarantee ", "| --- ")


def rows() -> list[list[str]]:
    """Return the cells of every guarantee."""
    lines = PROMISES.read_text("utf-8").splitlines()
    promises = [line for line in lines if line.startswith("| ") and not line.startswith(HEADS)]
    return [[cell.strip() for cell in line[1:-1].split(" | ")] for line in promises]


def test_every_proof_exists() -> None:
    named = dict.fromkeys(NAMED.findall(PROMISES.read_text("utf-8")))
    assert len(named) > 60
    assert not [node for node in named if not exists(node)]


def exists(node: str) -> bool:
    path, _, name = node.partition("::")
    file = ROOT / path
    return file.exists() and f"def {name}(" in file.read_text("utf-8")


def test_every_test_name_has_the_checked_form() -> None:
    text = PROMISES.read_text("utf-8")
    assert text.count("::") == len(NAMED.findall(text))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_a_guarantee_has_a_test_and_a_result(row: list[str]) -> None:
    """A dash is a result: the test checks a single case."""
    promise, proofs, figure = row
    assert promise.endswith((".", ".)"))
    assert NAMED.search(proofs)
    assert figure == "–" or re.search(r"\w", figure)

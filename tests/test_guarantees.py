"""The page of promises names tests that exist, and says what they found."""

from __future__ import annotations

import re

import pytest

from tools.conformance import NAMED, PROMISES, ROOT

HEADS = ("| promise ", "| --- ")


def rows() -> list[list[str]]:
    """Return the cells of every promise."""
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


def test_nothing_is_named_in_a_form_that_nobody_checks() -> None:
    text = PROMISES.read_text("utf-8")
    assert text.count("::") == len(NAMED.findall(text))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_a_promise_has_a_test_and_a_figure(row: list[str]) -> None:
    """A dash is a figure: that there is none, for the reason the page gives."""
    promise, proofs, figure = row
    assert promise.endswith((".", ".)"))
    assert NAMED.search(proofs)
    assert figure == "–" or re.search(r"\w", figure)

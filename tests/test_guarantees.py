"""The page of promises names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guarantees.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_proof_exists() -> None:
    named = NAMED.findall(PAGE.read_text("utf-8"))
    assert len(named) > 20
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"def {name}\(", (ROOT / file).read_text("utf-8"))
    ]
    assert not missing


def test_every_row_has_a_proof() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.startswith(("| ---", "| promise"))]
    proofs = (NAMED.search, re.compile(r"`(kinform|make) ").search)
    assert promises
    assert not [row for row in promises if not any(proof(row) for proof in proofs)]

"""The board as a picture: a square for each cell, with words for readers who see no colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from bench.scoreboard.judge import Outcome
from bench.scoreboard.record import Cell, Record

__all__ = ["svg"]

_LEFT: Final = 430
_TOP: Final = 40
_WIDTH: Final = 128
_HEIGHT: Final = 24
_COLOURS: Final = {
    Outcome.PASSED: "#2e7d4f",
    Outcome.HOT: "#c0392b",
    Outcome.DIED: "#922b21",
    Outcome.LEAK: "#922b21",
    Outcome.STALL: "#b9770e",
    Outcome.GHOSTS: "#8e44ad",
    Outcome.CORRUPTED: "#8e44ad",
    Outcome.SLOW: "#b9770e",
    Outcome.FAIL: "#c0392b",
    Outcome.UNKNOWN: "#7f8c8d",
}


def svg(record: Record, rows: Sequence[tuple[str, str]], labels: Sequence[str]) -> str:
    """Return the picture; ``rows`` are the names and titles of scenarios."""
    width, height = _LEFT + _WIDTH * len(labels) + 8, _TOP + _HEIGHT * len(rows) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for column, label in enumerate(labels):
        x = _LEFT + _WIDTH * column + _WIDTH / 2
        parts.append(_text(x, _TOP - 12, label, attributes='text-anchor="middle" fill="#222"'))
    for number, (name, title) in enumerate(rows):
        y = _TOP + _HEIGHT * number
        parts.append(_text(8, y + 16, title, attributes='fill="#222"'))
        for column, label in enumerate(labels):
            cell = record.find(name, label)
            if cell is not None:
                parts.append(_square(_LEFT + _WIDTH * column, y, cell))
    return "\n".join([*parts, "</g></svg>", ""])


def _square(x: float, y: float, cell: Cell) -> str:
    verdict = cell.verdict
    word = str(verdict.outcome)
    if verdict.outcome is Outcome.HOT:
        word += f" {verdict.detail.partition('/s')[0]}/s"
    box = (
        f'<rect x="{x + 1}" y="{y + 1}" width="{_WIDTH - 2}" height="{_HEIGHT - 2}" rx="3" '
        f'fill="{_COLOURS[verdict.outcome]}"/>'
    )
    middle = 'text-anchor="middle" fill="#fff"'
    return box + _text(x + _WIDTH / 2, y + 16, word, attributes=middle)


def _text(x: float, y: float, text: str, *, attributes: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {attributes}>{escape(text)}</text>'

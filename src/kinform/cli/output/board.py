"""The model of the live table: rows by kind, and the cells that changed recently. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from kinform.cli.cluster.informer_feed import RowChange
from kinform.cli.cluster.targets import Target
from kinform.cli.output.rows import Row, cell_text, header_texts, row_texts
from kinform.meta import ObjectName

__all__ = ["FLASH", "Board", "BoardSection", "Cell"]

FLASH: Final = 1.0
"""For how many seconds a change is shown."""
_FRAME: Final = 2
"""The lines of a kind beside its rows: the header, and the count of hidden rows."""
_EVERYTHING: Final = -1
"""Instead of a cell's place: the whole row is new."""


@final
@dataclass(slots=True)
class _Line:
    row: Row
    changed: float = 0.0
    """When it last changed; 0 for what was there at first."""
    flashing: dict[int, float] = field(default_factory=dict[int, float])
    """The cells that changed, and when."""
    is_gone: bool = False


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and why it stands out: ``new``, ``changed``, ``gone`` or nothing."""

    text: str
    mark: str = ""


@final
@dataclass(frozen=True, slots=True)
class BoardSection:
    """One kind's part of the screen."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    hidden: int
    """The number of rows that did not fit."""


@final
class Board:
    """The rows of all kinds. Times are the event loop's."""

    def __init__(self, targets: Sequence[Target], *, wide: bool, with_namespace: bool) -> None:
        self._wide = wide
        self._with_namespace = with_namespace
        self._lines: dict[Target, dict[ObjectName, _Line]] = {target: {} for target in targets}
        self._last_change = float("-inf")
        self.is_dirty: bool = True
        """A change was not drawn yet; the painter resets it."""

    def apply(self, change: RowChange, *, now: float, wall: float) -> None:
        """Apply a change."""
        lines = self._lines[change.target]
        line = lines.get(change.key)
        self.is_dirty = True
        self._last_change = now
        if change.type == "DELETED":
            if line is not None:
                line.is_gone, line.changed = True, now
        elif line is None or line.is_gone:
            made = lines[change.key] = _Line(change.row)
            if not change.initial:
                made.changed = made.flashing[_EVERYTHING] = now
        else:
            # What no cell shows has changed as well: then the name stands out.
            for place in self._differences(line.row, change.row, wall) or [0]:
                line.flashing[place] = now
            line.row, line.changed = change.row, now

    def is_flashing(self, now: float) -> bool:
        """Return whether a change is still highlighted."""
        return now - self._last_change <= FLASH + 0.2  # a little longer, to draw it plain again

    def sections(self, *, now: float, wall: float, height: int) -> list[BoardSection]:
        """Return what to draw in ``height`` lines; rows that changed last are kept in view.

        A kind for which there is not even room for one row is left out.
        """
        for lines in self._lines.values():
            for key in [k for k, line in lines.items() if _is_over(line, now)]:
                del lines[key]
        kinds = [(target, lines) for target, lines in self._lines.items() if lines]
        kinds = kinds[: max(0, height // (_FRAME + 1))]
        rooms = _share([len(lines) for _, lines in kinds], height - _FRAME * len(kinds))
        return [
            self._section(target, lines, room=room, now=now, wall=wall)
            for (target, lines), room in zip(kinds, rooms, strict=True)
        ]

    def _section(
        self,
        target: Target,
        lines: dict[ObjectName, _Line],
        *,
        room: int,
        now: float,
        wall: float,
    ) -> BoardSection:
        keys = sorted(lines)
        if len(keys) > room:
            latest = sorted(keys, key=lambda key: -lines[key].changed)[: max(0, room)]
            keys = sorted(latest)
        columns = next(iter(lines.values())).row.columns
        header = header_texts(columns, wide=self._wide)
        with_namespace = self._with_namespace and target.resource.namespaced
        if with_namespace:
            header.insert(0, "NAMESPACE")
        rows: list[list[Cell]] = []
        for key in keys:
            cells = self._cells(lines[key], now=now, wall=wall)
            if with_namespace:
                cells.insert(0, Cell(cell_text(key.namespace), cells[0].mark if cells else ""))
            rows.append(cells)
        return BoardSection(target.label, header, rows, len(lines) - len(keys))

    def _cells(self, line: _Line, *, now: float, wall: float) -> list[Cell]:
        texts = row_texts(line.row, wide=self._wide, wall=wall)
        flashing = {at for at, since in line.flashing.items() if now - since <= FLASH}
        marks = ["changed" if at in flashing else "" for at in range(len(texts))]
        if line.is_gone:
            marks = ["gone"] * len(texts)
        elif _EVERYTHING in flashing:
            marks = ["new"] * len(texts)
        return [Cell(text, mark) for text, mark in zip(texts, marks, strict=True)]

    def _differences(self, old: Row, new: Row, wall: float) -> list[int]:
        before = row_texts(old, wide=self._wide, wall=wall)
        after = row_texts(new, wide=self._wide, wall=wall)
        return [at for at, text in enumerate(after) if at >= len(before) or before[at] != text]


def _is_over(line: _Line, now: float) -> bool:
    return line.is_gone and now - line.changed > FLASH


def _share(wanted: Sequence[int], room: int) -> list[int]:
    """Divide ``room`` lines fairly: a kind that needs less leaves the rest to the others.

    >>> _share([2, 50, 50], 22)
    [2, 10, 10]
    """
    given = [0] * len(wanted)
    for _ in range(max(0, min(room, sum(wanted)))):
        hungry = [at for at, want in enumerate(wanted) if given[at] < want]
        given[min(hungry, key=lambda at: given[at])] += 1
    return given

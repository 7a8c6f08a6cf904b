"""Drawing the live table on a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kinform import clock
from kinform.cli.output.board import Board, BoardSection
from kinform.cli.output.tally import bytes_text, lag_text
from kinform.cli.problems import one_line

__all__ = ["Standing", "draw", "fitting", "paint"]

_STYLES: Final = {"": "", "new": "bold green", "changed": "bold black on yellow", "gone": "red"}
_FRAME: Final = 0.1
"""Seconds between two looks at what has changed."""
_FRAMES_OF_AGE: Final = 10
"""The number of frames after which ages are redrawn without a change."""
_GAP: Final = 2
"""Columns of the terminal between two of a table's."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The contents of the status line."""

    has_synced: bool
    objects: int
    rate: float
    version: str
    lag: float
    received: int
    trouble: str = ""


def draw(sections: Sequence[BoardSection], standing: Standing, *, width: int) -> RenderableType:
    """Return the whole picture: a table for each kind, and the status line."""
    parts: list[RenderableType] = []
    for section in sections:
        parts += [_table(section, width), _below(section)]
    parts.append(_status(standing))
    if standing.trouble:
        parts.append(Text(f"✗ {one_line(standing.trouble)}", "bold red", no_wrap=True))
    return Group(*parts)


def _table(section: BoardSection, width: int) -> Table:
    table = Table(box=None, show_edge=False, pad_edge=False, header_style="bold")
    wanted = [cell_len(name) for name in section.header]
    for row in section.rows:
        wanted = [max(w, cell_len(c.text)) for w, c in zip(wanted, row, strict=True)]
    name_at = section.header.index("NAME") if "NAME" in section.header else 0
    widths = fitting(wanted, room=width, least=name_at + 2)
    for name, one in zip(section.header, widths, strict=False):
        table.add_column(Text(name), no_wrap=True, overflow="ellipsis", width=one)
    for row in section.rows:
        # Plain texts, never markup: names of labels and images must not be interpreted.
        cells = row[: len(widths)]
        table.add_row(*(Text(cell.text, _STYLES[cell.mark]) for cell in cells))
    return table


def fitting(wanted: Sequence[int], *, room: int, least: int) -> list[int]:
    """Return the widths of the columns that fit into ``room``; the rightmost ones are left out.

    The first ``least`` columns are always kept; if they are too wide, the widest is made narrower.

    >>> fitting([10, 5, 6, 20], room=30, least=2)
    [10, 5, 6]
    >>> fitting([60, 5, 6, 20], room=40, least=2)
    [33, 5]
    """
    widths = list(wanted)
    while len(widths) > least and _whole(widths) > room:
        widths.pop()
    while _whole(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _below(section: BoardSection) -> Text:
    more = f"{section.title}: {section.hidden} more" if section.hidden else ""
    return Text(more, "dim", no_wrap=True)


def _status(standing: Standing) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    if standing.trouble:
        text.append("○ disconnected", "bold red")
    elif standing.has_synced:
        text.append("● synced", "bold green")
    else:
        text.append("○ syncing", "bold yellow")
    figures = (
        f"{standing.objects} objects",
        f"{standing.rate:.1f} events/s",
        f"resourceVersion {standing.version or '-'}",
        f"lag {lag_text(standing.lag)}",
        bytes_text(standing.received),
    )
    for figure in figures:
        text.append(f"  {figure}")
    return text


async def paint(board: Board, standing: Callable[[], Standing]) -> None:
    """Keep the terminal's picture equal to the board until cancelled; leave the last one there."""
    console = Console()
    frame = 0
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        try:
            while True:
                now = asyncio.get_running_loop().time()
                if board.is_dirty or board.is_flashing(now) or frame % _FRAMES_OF_AGE == 0:
                    board.is_dirty = False
                    live.update(_picture(board, standing(), console), refresh=True)
                frame += 1
                await asyncio.sleep(_FRAME)
        finally:
            live.update(_picture(board, standing(), console), refresh=True)


def _picture(board: Board, standing: Standing, console: Console) -> RenderableType:
    sections = board.sections(
        now=asyncio.get_running_loop().time(),
        wall=clock.current().wall(),
        height=console.height - 2,
    )
    return draw(sections, standing, width=console.width)

"""A run as a picture: memory and tasks over time, with faults and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.soak.record import Record
from tools.soak.trends import Trend

__all__ = ["draw"]

_BLUE: Final = "#0072B2"
_ORANGE: Final = "#E69F00"
_VERMILION: Final = "#D55E00"
_GREY: Final = "#999999"


def draw(record: Record, memory: Trend | None, path: Path) -> None:
    """Write the picture as SVG. Needs matplotlib.

    Raises:
        ImportError: it is not installed.
    """
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    style = mpl.rc_context(  # pyright: ignore[reportUnknownMemberType] - matplotlib's
        {"svg.hashsalt": "kinform", "axes.spines.top": False}
    )
    with style:
        figure, (above, below) = plt.subplots(
            2, 1, sharex=True, figsize=(9, 5), layout="constrained"
        )
        minutes = [one.at / 60 for one in record.samples]
        above.plot(minutes, [one.rss / 1e6 for one in record.samples], color=_BLUE, lw=1)
        above.set_ylabel("memory, MB")
        above.set_title(_title(record, memory), loc="left", fontsize=9)
        below.plot(minutes, [one.tasks for one in record.samples], color=_BLUE, lw=1, label="tasks")
        below.plot(
            minutes,
            [one.descriptors for one in record.samples],
            color=_ORANGE,
            lw=1,
            label="descriptors",
        )
        below.set_ylim(bottom=0)
        below.set_xlabel("minutes")
        for axes in (above, below):
            for fault in record.faults:
                axes.axvspan(
                    fault.at / 60, (fault.at + fault.took) / 60, color=_GREY, alpha=0.2, lw=0
                )
            for checkpoint in record.checkpoints:
                color = _VERMILION if checkpoint.wrong else _BLUE
                axes.axvline(checkpoint.at / 60, color=color, alpha=0.4, lw=0.6)
        below.legend(frameon=False, fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(  # pyright: ignore[reportUnknownMemberType] - matplotlib's
            path, format="svg", metadata={"Date": None}
        )
        plt.close(figure)


def _title(record: Record, memory: Trend | None) -> str:
    what = f"{record.writes:,} writes, {len(record.faults)} faults (grey), "
    what += f"{len(record.checkpoints)} checkpoints, {record.server}"
    if memory is None:
        return what
    low, high = memory.low / 1e6, memory.high / 1e6
    return f"{what}\nmemory: {memory.slope / 1e6:+.2f} MB an hour ({low:+.2f} to {high:+.2f})"

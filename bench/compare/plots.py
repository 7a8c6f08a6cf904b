"""The plots, as SVG: the same bytes for the same record.

Colours are Okabe and Ito's, which all readers can distinguish. One hue for each client: kinform's
are blue, client-go's orange, all others grey.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.compare import results
from bench.compare.measures import MEASURES
from bench.compare.peers import CLIENT_GO, FROZEN, KINFORM, RAW, ZSTD
from bench.compare.results import Record, Select, Spread
from bench.compare.table import amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

_BLUE: Final = "#0072B2"
_SKY: Final = "#56B4E9"
_ORANGE: Final = "#E69F00"
_VERMILION: Final = "#D55E00"
_GREY: Final = "#999999"
_INK: Final = "#333333"
_BARS: Final = (
    ("sync-cpu", "sync_cpu", "First sync: CPU per object (µs, less is better)"),
    ("events", "events_rate", "Watch events per second (more is better)"),
    ("memory", "memory", "Memory per object, settled (bytes, less is better)"),
)
_PERCENTILES: Final = (("p50", "p50", _SKY), ("p99", "p99", _BLUE), ("p999", "p99.9", _VERMILION))


def draw(record: Record, folder: Path) -> list[Path]:
    """Write every plot for which there are figures; return the files."""
    import matplotlib as mpl

    mpl.use("svg")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    style = mpl.rc_context(
        {
            "svg.hashsalt": "kinform",
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "axes.edgecolor": _INK,
            "axes.labelcolor": _INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "text.color": _INK,
            "xtick.color": _INK,
            "ytick.color": _INK,
            "figure.facecolor": "white",
        }
    )
    with style:
        for name, measure, title in _BARS:
            figures = _figures(record, measure)
            if figures:
                written.append(_save(folder / f"{name}.svg", _bars(figures, title), len(figures)))
        latency = {label: _latencies(record, label) for label in record.labels()}
        latency = {label: row for label, row in latency.items() if row}
        if latency:
            written.append(_save(folder / "latency.svg", _grouped(latency), 2 * len(latency)))
        if growth := _grown(record):
            written.append(_save(folder / "growth.svg", _lines(growth), 8))
    return written


def _save(path: Path, paint: Callable[[Axes], None], rows: int) -> Path:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.32 * rows), layout="constrained")
    try:
        paint(axes)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    finally:
        plt.close(figure)
    return path


def _figures(record: Record, measure: str) -> dict[str, Spread]:
    found = {
        label: results.spread(record, Select(label=label), MEASURES[measure].of)
        for label in record.labels()
    }
    return {label: figure for label, figure in found.items() if figure is not None}


def _latencies(record: Record, label: str) -> dict[str, Spread]:
    found = {
        name: results.spread(record, Select(label=label), MEASURES[name].of)
        for name, _, _ in _PERCENTILES
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _grown(record: Record) -> dict[str, list[tuple[int, float, float]]]:
    """Return per label: objects, CPU seconds of the sync until idle, megabytes."""
    lines: dict[str, list[tuple[int, float, float]]] = {}
    for label in (RAW.label, FROZEN.label, ZSTD.label):
        points = [
            (life.objects, cpu * life.objects / 1e6, memory * life.objects / 1e6)
            for life in Select(label=label, part="growth").of(record)
            if (cpu := MEASURES["sync_all_cpu"].of(life)) is not None
            and (memory := MEASURES["memory"].of(life)) is not None
        ]
        if len(points) > 1:
            lines[label] = sorted(points)
    return lines


def _colour(label: str) -> str:
    if label.startswith(KINFORM):
        return _BLUE
    return _ORANGE if label.startswith(CLIENT_GO) else _GREY


def _bars(figures: Mapping[str, Spread], title: str) -> Callable[[Axes], None]:
    def paint(axes: Axes) -> None:
        ordered = list(figures.items())[::-1]
        for place, (label, figure) in enumerate(ordered):
            spread = [[figure.median - figure.least], [figure.most - figure.median]]
            axes.barh(
                place,
                figure.median,
                height=0.7,
                color=_colour(label),
                xerr=spread if figure.count > 1 else None,
                error_kw={"ecolor": _INK, "elinewidth": 1, "capsize": 2},
            )
            axes.annotate(
                amount(figure.median),
                (figure.most, place),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(range(len(ordered)), [label for label, _ in ordered])
        axes.margins(x=0.12)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title)

    return paint


def _grouped(rows: Mapping[str, Mapping[str, Spread]]) -> Callable[[Axes], None]:
    def paint(axes: Axes) -> None:
        labels = list(rows)[::-1]
        for number, (name, title, colour) in enumerate(_PERCENTILES):
            places = [place + 0.26 * (1 - number) for place in range(len(labels))]
            figures = [rows[label].get(name) for label in labels]
            values = [figure.median if figure else 0.0 for figure in figures]
            axes.barh(places, values, height=0.24, color=colour, label=title)
            for place, value in zip(places, values, strict=True):
                if value:
                    axes.annotate(
                        amount(value),
                        (value, place),
                        xytext=(3, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=7,
                    )
        axes.set_xscale("log")
        axes.set_yticks(range(len(labels)), labels)
        axes.margins(x=0.15)
        axes.tick_params(axis="y", length=0)
        axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        axes.set_title("Event → handler at 1,000 events/s (ms, log)")

    return paint


def _lines(lines: Mapping[str, Sequence[tuple[int, float, float]]]) -> Callable[[Axes], None]:
    def paint(axes: Axes) -> None:
        for (label, points), colour in zip(lines.items(), (_BLUE, _VERMILION), strict=False):
            objects = [point[0] for point in points]
            axes.plot(objects, [point[1] for point in points], color=colour, marker="o",
                      label=f"{label}: CPU until idle (s)")  # fmt: skip
            axes.plot(objects, [point[2] for point in points], color=colour, marker="s",
                      linestyle="--", label=f"{label}: memory (MB)")  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("objects")
        axes.grid(visible=True, which="major", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.legend(frameon=False)
        axes.set_title("Growth: straight lines of slope 1 are linear")

    return paint

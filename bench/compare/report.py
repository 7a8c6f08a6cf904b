"""The report of a run: the table and the plots, written from a record."""

from __future__ import annotations

from pathlib import Path

from bench.compare import plots, results, table
from bench.compare.results import Record

__all__ = ["write"]


def write(record: Record, folder: Path, *, with_record: bool = True) -> list[Path]:
    """Write ``latest.json`` (unless not), ``latest.md`` and the plots; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    if with_record:
        results.save(record, folder / "latest.json")
        written.append(folder / "latest.json")
    page = folder / "latest.md"
    page.write_text(table.markdown(record), encoding="utf-8")
    return [*written, page, *plots.draw(record, folder)]

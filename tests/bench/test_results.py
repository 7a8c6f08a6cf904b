"""The published performance numbers are those of the last full run, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare import quotes, results, table

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "bench" / "results" / "latest.json"


def test_the_record_is_of_a_whole_full_run() -> None:
    record = results.load(RECORD)
    assert (record.scale, record.partial) == ("full", False)
    assert max(life.objects for life in record.lives) == 1_000_000


def test_the_table_is_made_of_the_record() -> None:
    page = (RECORD.parent / "latest.md").read_text(encoding="utf-8")
    assert page == table.markdown(results.load(RECORD))


def test_the_readme_quotes_the_record_and_nothing_else() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, rest = readme.partition(quotes.BEGIN + "\n")
    figures, end, _ = rest.partition(quotes.END)
    assert end
    assert figures == quotes.quoted(results.load(RECORD))


def test_a_readme_without_marks_is_left_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing here\n", encoding="utf-8")
    with pytest.raises(ValueError, match="figures of bench/results"):
        quotes.write(results.load(RECORD), readme)
    assert readme.read_text(encoding="utf-8") == "nothing here\n"

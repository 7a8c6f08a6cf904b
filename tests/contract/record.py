"""Answers of the real server on disk: one file per area, made by ``tools.contract record``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.contract.exchange import Json

__all__ = ["FOLDER", "differences", "judged", "listed_differences", "load", "save"]

HERE: Final = Path(__file__).parent
FOLDER: Final = HERE / "recorded"
WIDTH: Final = 110


@cache
def load(area: str) -> dict[str, Json]:
    """Return the recorded cases of an area by id; none if it was never recorded."""
    path = FOLDER / f"{area}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def judged(case_id: str, exchanges: list[Json], error: str) -> list[str]:
    """Say in words how an outcome differs from what is recorded for the case, if it does."""
    entry = load(case_id.partition("/")[0]).get(case_id)
    if entry is None:
        return ["nothing is recorded: run python -m tools.contract record"]
    found = differences(entry["exchanges"], exchanges)
    return [*found, f"the case could not go on: {error}"] if error else found


def save(area: str, entries: dict[str, Json]) -> None:
    """Write the recorded cases of an area."""
    FOLDER.mkdir(exist_ok=True)
    text = layout(dict(sorted(entries.items()))) + "\n"
    (FOLDER / f"{area}.json").write_text(text, encoding="utf-8")
    load.cache_clear()


def listed_differences() -> dict[str, str]:
    """Return the reasons of the cases that are known to differ, by id."""
    return tomllib.loads((HERE / "differences.toml").read_text("utf-8"))


def layout(value: object, depth: int = 0) -> str:
    """Return JSON with sorted keys in which all that fits into a line is on one."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(flat) + depth <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        inner = [
            f"{json.dumps(key, ensure_ascii=False)}: {layout(value[key], depth + 1)}"
            for key in sorted(value)
        ]
        return "{\n" + ",\n".join(pad + each for each in inner) + "\n" + " " * depth + "}"
    inner = [layout(each, depth + 1) for each in value]
    return "[\n" + ",\n".join(pad + each for each in inner) + "\n" + " " * depth + "]"


def differences(wanted: list[Json], got: list[Json]) -> list[str]:
    """Say in words where the exchanges of a case differ from the recorded ones."""
    found: list[str] = []
    for number, (one, other) in enumerate(zip(wanted, got, strict=False), 1):
        request = one["request"]
        where = f"{number}. {request['method']} {request['path']}"
        if query := request.get("query"):
            where += "?" + "&".join(query)
        found += [f"{where}\n    {each}" for each in _compared(one, other, "")]
    if len(wanted) != len(got):
        found.append(f"{len(wanted)} exchanges were recorded, these are {len(got)}")
    return found


def _compared(one: object, other: object, path: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            here = f"{path}.{key}" if path else key
            if key not in other:
                yield f"{here}: missing, recorded {_short(one[key])}"
            elif key not in one:
                yield f"{here}: not recorded, got {_short(other[key])}"
            else:
                yield from _compared(one[key], other[key], here)
    elif isinstance(one, list) and isinstance(other, list):
        for index, (mine, its) in enumerate(zip(one, other, strict=False)):
            yield from _compared(mine, its, f"{path}[{index}]")
        for index in range(len(other), len(one)):
            yield f"{path}[{index}]: missing, recorded {_short(one[index])}"
        for index in range(len(one), len(other)):
            yield f"{path}[{index}]: not recorded, got {_short(other[index])}"
    elif type(one) is not type(other) or one != other:
        yield f"{path}: recorded {_short(one)}, got {_short(other)}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 300 else f"{text[:300]}…"

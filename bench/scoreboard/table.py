"""The board as Markdown: rules first, then the table, then what stands behind each cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bench.scoreboard import clients, scenarios
from bench.scoreboard.judge import GRACE, HOT, Outcome, notes
from bench.scoreboard.record import Cell, Record
from bench.scoreboard.scenarios import Scenario

__all__ = ["markdown", "shown_clients", "shown_scenarios"]

_MARKS: Final = {"restarted": "¹", "recreated as update": "²", "duplicate": "³", "followed": "⁴"}
_LEGEND: Final = f"""\
¹ the client's own call ended with an exception, and the loop around it, which is ours and waits
{clients.RESTART:g} s, listed again. ² a pod that was deleted and recreated was delivered as an
update of the same pod (client-go's contract allows it; handlers have to compare uids). ³ the
handler received the same version twice in a row. ⁴ the redirect was followed, without
credentials.
"""
_PATIENT: Final = {each.name for each in scenarios.SCENARIOS if each.is_patient}
_RULES: Final = f"""\
A client **passes** if its cache (names, uids, resourceVersions, contents) is equal to the server's
objects within the deadline after the fault is over: 20 s, and 360 s for the silent connection and
the restored etcd, where the clients that notice document minutes. A **hot loop** is more than
{HOT:g} requests a second, on average over the fault or over the time to recover; it counts even if
the client recovers. A **silent stall**: since the fault was over the client asked for nothing and
learned nothing, and its cache is wrong. **Ghost objects**: only objects that are gone are too many.
**Corrupted**: an object with the right version and a content that the server never had. **Died**:
the process ended. **Leak**: another host was sent credentials. **Slow stop**: longer than
{GRACE:g} s.
"""


def markdown(record: Record) -> str:
    """Return the whole board."""
    shown, rows = shown_clients(record), shown_scenarios(record)
    parts = [
        _head(record),
        "### Rules\n\n" + _RULES,
        "### Board\n\n" + _table(record, rows, [it.label for it in shown]),
        _LEGEND,
        "### What was seen\n\n" + _details(record.cells),
        "### Versions\n\n" + _versions(record, shown),
    ]
    return "\n".join(parts)


def shown_clients(record: Record) -> list[clients.Client]:
    """Return the clients in a record."""
    labels = {cell.client for cell in record.cells}
    return [client for client in clients.CLIENTS if client.label in labels]


def shown_scenarios(record: Record) -> list[Scenario]:
    """Return the scenarios in a record."""
    names = {cell.scenario for cell in record.cells}
    return [scenario for scenario in scenarios.SCENARIOS if scenario.name in names]


def _head(record: Record) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in record.machine.items())
    more = f" Gone on with: {', '.join(record.resumed)}." if record.resumed else ""
    more += " **It is not a whole run.**" if record.partial else ""
    lines = [
        f"Made {record.began}, in {record.seconds / 60:.0f} minutes, on: {machine}.{more}",
        "",
        *(f"Left out: {label}: {reason}." for label, reason in record.left_out.items()),
    ]
    return "\n".join(lines)


def _table(record: Record, rows: Iterable[Scenario], labels: list[str]) -> str:
    lines = [
        "| | " + " | ".join(labels) + " |",
        "|---|" + "---|" * len(labels),
    ]
    for row in rows:
        cells = (record.find(row.name, label) for label in labels)
        texts = (_text(cell) if cell is not None else "–" for cell in cells)
        lines.append(f"| {row.title} | " + " | ".join(texts) + " |")
    lines.append("| **passed** | " + " | ".join(_passed(record, it) for it in labels) + " |")
    return "\n".join(lines) + "\n"


def _passed(record: Record, label: str) -> str:
    outcomes = [cell.verdict.outcome for cell in record.cells if cell.client == label]
    judged = [outcome for outcome in outcomes if outcome is not Outcome.UNKNOWN]
    return f"**{judged.count(Outcome.PASSED)} of {len(judged)}**"


def _text(cell: Cell) -> str:
    verdict = cell.verdict
    marks = "".join(_MARKS[note] for note in notes(cell.seen))
    match verdict.outcome:
        case Outcome.PASSED if cell.scenario in _PATIENT:
            text = f"{verdict.outcome}, after {cell.seen.recovery:.0f} s"
        case Outcome.PASSED | Outcome.UNKNOWN:
            text = str(verdict.outcome)
        case Outcome.HOT:
            text = f"**{verdict.outcome}** {verdict.detail}"
        case Outcome.FAIL | Outcome.GHOSTS:
            text = f"**{verdict.outcome}**: {verdict.detail}"
        case _:
            text = f"**{verdict.outcome}**"
    return f"{text} {marks}".strip()


def _details(cells: Iterable[Cell]) -> str:
    """Return a line for each cell that did not simply pass."""
    lines = [
        f"- *{cell.scenario}*, {cell.client}: {cell.verdict.outcome}"
        + (f", `{_one_line(cell.verdict.detail)}`" if cell.verdict.detail else "")
        + (f" ({_figures(cell)})" if cell.seen.fault else "")
        for cell in sorted(cells, key=_order)
        if cell.verdict.outcome is not Outcome.PASSED
    ]
    return "\n".join(lines or ["Everything passed."]) + "\n"


def _order(cell: Cell) -> tuple[int, int]:
    labels = [it.label for it in clients.CLIENTS]
    return scenarios.NAMES.index(cell.scenario), labels.index(cell.client)


def _figures(cell: Cell) -> str:
    seen = cell.seen
    parts = [f"{seen.fault_requests:,} requests in the {seen.fault:.0f} s of the fault"]
    if seen.recovery:
        then = "right after" if seen.is_right else "given up after"
        parts.append(f"{then} {seen.recovery:.1f} s and {seen.recovery_requests:,} requests")
    if seen.restarts:
        parts.append(f"restarted {seen.restarts} times")
    if seen.said:
        parts.append(f"said: `{_one_line(seen.said)}`")
    return "; ".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "").replace("|", "/").split())[:160]


def _versions(record: Record, shown: Iterable[clients.Client]) -> str:
    lines = ["| client | versions | cache |", "|---|---|---|"]
    for client in shown:
        versions = record.versions.get(client.label, {})
        text = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines.append(f"| {client.label} | {text} | {client.how} |")
    return "\n".join(lines) + "\n"

"""Generate docs/conformance.md and the table of names in the guide "Coming from client-go".

Both are generated from the tests (`tools.claims`) and from the data in ``tests/conformance/``;
names are checked by importing them. Run it as ``make conformance``, or with ``python -m``:

    tools.conformance               write them
    tools.conformance --check       fail if they are out of date or inconsistent
    tools.conformance --ran FILE    fail if a test named there, or in docs/guarantees.md, did not
                                    run and pass (JUnit XML)
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from tools.claims import ID, Claims, Test, of_folder

__all__ = [
    "NAMED",
    "PROMISES",
    "ROOT",
    "Facts",
    "gather",
    "guide",
    "missing",
    "mistakes",
    "not_proven",
    "not_run",
    "page",
]

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "tests" / "conformance"
PAGE: Final = ROOT / "docs" / "conformance.md"
GUIDE: Final = ROOT / "docs" / "guides" / "coming-from-client-go.md"
PROMISES: Final = ROOT / "docs" / "guarantees.md"
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
"""A test id as docs/guarantees.md writes it."""
BEGIN, END = "<!-- names: begin, made by make conformance -->", "<!-- names: end -->"

MOST_NOT_APPLICABLE: Final = 25 + 5  # client-go, and the two peers
ELSEWHERE: Final = frozenset("H")
"""Groups of scenarios of the REST client that are not listed in scenarios.toml."""
PARTS: Final = 41
SCENARIOS: Final = 249 + 67  # client-go, and the two peers
FINDINGS: Final = 13

Table = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """The data of ``tests/conformance`` and the claims of the tests."""

    groups: Mapping[str, Mapping[str, str]]
    """The scenarios: title, then id, then description."""
    parts: list[Table]
    findings: list[Table]
    names: list[Table]
    claims: Claims

    @property
    def scenarios(self) -> dict[str, str]:
        """The descriptions of all scenarios, by id."""
        return {key: text for group in self.groups.values() for key, text in group.items()}

    def tests_of(self, shown_by: str) -> list[Test]:
        """Return the tests behind a scenario's id or a node id."""
        if ID.fullmatch(shown_by):
            return self.claims.scenarios.get(shown_by, [])
        return [self.claims.tests[shown_by]] if shown_by in self.claims.tests else []


def gather() -> Facts:
    """Read the data and the tests."""
    data = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in DATA.glob("*.toml")}
    groups = {group.pop("title"): group for group in data["scenarios"].values()}
    return Facts(
        groups,
        parts=data["seeds"]["part"],
        findings=data["findings"]["finding"],
        names=data["names"]["section"],
        claims=of_folder(ROOT / "tests"),
    )


@cache
def exists(name: str) -> bool:
    """Return whether ``name`` can be imported: a module, or a member of one."""
    value: object = None
    path = ""
    for part in name.split("."):
        path = f"{path}.{part}" if path else part
        try:
            known = value is not None and hasattr(value, part)
            value = getattr(value, part) if known else importlib.import_module(path)
        except ImportError:
            return False
    return True


# --- mistakes and missing entries ---------------------------------------------------------------


def mistakes(facts: Facts) -> list[str]:
    """Return contradictions between the data and the tests."""
    claims, scenarios = facts.claims, facts.scenarios
    found = list(claims.mistakes)
    if len(scenarios) != SCENARIOS or sum(map(len, facts.groups.values())) != SCENARIOS:
        found.append(f"scenarios.toml does not have {SCENARIOS} scenarios, each once")
    found += [
        f"{key}: no such scenario"
        for key in sorted({*claims.scenarios, *claims.not_applicable, *claims.deviations})
        if key not in scenarios and key[3] not in ELSEWHERE
    ]
    found += [
        f"{key}: not applicable, says one module, but {claims.scenarios[key][0].node} plays it"
        for key in claims.not_applicable
        if key in claims.scenarios
    ]
    found += [
        f"{key}: said to be different here, but no test shows how"
        for key in claims.deviations
        if key not in claims.scenarios
    ]
    found += [
        f"8.3, finding {n}: no such finding" for n in claims.findings if not 0 < n <= FINDINGS
    ]
    if len(claims.not_applicable) > MOST_NOT_APPLICABLE:
        found.append(f"{len(claims.not_applicable)} not applicable: {MOST_NOT_APPLICABLE} at most")
    if [part["row"] for part in facts.parts] != [*range(1, PARTS + 1)]:
        found.append(f"seeds.toml does not have the rows 1 to {PARTS}")
    if [finding["number"] for finding in facts.findings] != [*range(1, FINDINGS + 1)]:
        found.append(f"findings.toml does not have the findings 1 to {FINDINGS}")
    return found


def missing(facts: Facts) -> list[str]:
    """Return scenarios, findings and parts without a test, and names that do not exist."""
    claims = facts.claims
    lost = [
        f"{key}: {text}"
        for key, text in facts.scenarios.items()
        if key not in claims.scenarios and key not in claims.not_applicable
    ]
    lost += [
        f"finding {finding['number']}: {finding['ours']}"
        for finding in facts.findings
        if not finding.get("later") and finding["number"] not in claims.findings
    ]
    for part in facts.parts:
        if part.get("later"):
            continue
        place = f"part {part['row']} ({part['what']})"
        if not part["shown_by"] or not part["names"]:
            lost.append(f"{place}: no name, or nothing that shows it")
        if unshown := [each for each in part["shown_by"] if not facts.tests_of(each)]:
            lost.append(f"{place}: no test {', '.join(unshown)}")
    lost += [f"no {name}" for name in sorted(all_names(facts)) if not exists(name)]
    return lost


def all_names(facts: Facts) -> set[str]:
    """Return every name of ours that one of the tables shows."""
    in_guide = {name for row in rows_of(facts.names) for name in row["ours"]}
    return in_guide.union(*(part["names"] for part in facts.parts))


def rows_of(sections: Iterable[Table]) -> Iterator[Table]:
    """Yield the rows of all sections of the guide's table."""
    for section in sections:
        yield from section["rows"]


def not_run(facts: Facts, report: Path) -> list[str]:
    """Return the tests that did not run, or did not pass, according to a JUnit XML file."""
    shown = {test for key in facts.scenarios for test in facts.tests_of(key)}
    shown.update(*facts.claims.findings.values())
    shown.update(
        test for p in facts.parts for each in p["shown_by"] for test in facts.tests_of(each)
    )
    return _lost(sorted(shown), report)


def not_proven(text: str, report: Path) -> list[str]:
    """Return the tests that ``text`` names and that did not run, or did not pass: skipped ones too.

    A skipped test proves nothing.
    """
    named = (node.partition("::") for node in dict.fromkeys(NAMED.findall(text)))
    return _lost((Test(path, 0, name) for path, _, name in named), report)


def _lost(tests: Iterable[Test], report: Path) -> list[str]:
    verdicts = _verdicts(report)
    lost: list[str] = []
    for test in tests:
        dotted = f"{test.path.removesuffix('.py')}/{test.name}".replace("/", ".").replace("::", ".")
        cases = {k: ok for k, ok in verdicts.get(dotted, {}).items() if test.case in k}
        if not cases or not all(cases.values()):
            lost.append(f"{test.node}: {'did not pass' if cases else 'did not run'}")
    return lost


def _verdicts(report: Path) -> dict[str, dict[str, bool]]:
    """Return whether each case of each test passed."""
    verdicts: dict[str, dict[str, bool]] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own file
        function, _, rest = case.attrib["name"].partition("[")
        passed = not any(child.tag in {"failure", "error", "skipped"} for child in case)
        cases = verdicts.setdefault(f"{case.attrib['classname']}.{function}", {})
        cases[rest] = cases.get(rest, True) and passed
    return verdicts


# --- pages --------------------------------------------------------------------------------------


PAGE_TEXT: Final = """\
<!-- Made by `make conformance` from the tests; do not edit. -->
# Conformance

This page compares kinform with client-go, and with the informers of kube-rs and java-operator-sdk,
by the scenarios of their own test suites. It is generated from kinform's tests: a test carries the
id of the scenario it covers; a test that is skipped or expected to fail does not count. CI checks
that every test named here ran and passed.

Of {all} scenarios {passed} passed, {differing} of them with an intended difference; {ruled_out}
are not applicable{still_open}.

## The parts

The parts of client-go's architecture and their counterparts in kinform.

{parts}

## The scenarios

The scenarios of the peers' own tests, written anew: client-go's cache and work queues (`CG`),
kube-rs' watcher and reflector (`KR`), java-operator-sdk's informers (`JO`). *Differs* marks an
intended difference; the test then proves kinform's result.

{scenarios}

## Where client-go can be improved upon

Weaknesses found while reading its code. Each difference has its own test.

{findings}
"""


def page(facts: Facts) -> str:
    """Return the text of docs/conformance.md."""
    claims, scenarios = facts.claims, facts.scenarios
    passed = scenarios.keys() & claims.scenarios.keys()
    ruled_out = scenarios.keys() & claims.not_applicable.keys()
    still_open = len(scenarios) - len(passed | ruled_out)
    groups = (
        f"### {title}\n\n"
        + table(
            ("id", "scenario", "result", "tests"),
            (scenario_row(facts, key, text) for key, text in group.items()),
        )
        for title, group in facts.groups.items()
    )
    return PAGE_TEXT.format(
        all=len(scenarios),
        passed=len(passed),
        differing=len(passed & claims.deviations.keys()),
        ruled_out=len(ruled_out),
        still_open=f", {still_open} not there yet" if still_open else "",
        parts=table(
            ("", "part", "in kinform", "tests"), (part_row(facts, part) for part in facts.parts)
        ),
        scenarios="\n\n".join(groups),
        findings=table(
            ("", "client-go", "kinform", "tests"),
            (finding_row(facts, finding) for finding in facts.findings),
        ),
    )


def part_row(facts: Facts, part: Table) -> tuple[str, ...]:
    """Return one row of the first table; of a scenario's tests, the first one."""
    tests = [facts.tests_of(each)[:1] for each in part["shown_by"]]
    shown = nodes(dict.fromkeys(test for found in tests for test in found))
    names = ", ".join(reference(name) for name in part["names"])
    return str(part["row"]), part["what"], names or "still to come", shown


def scenario_row(facts: Facts, key: str, text: str) -> tuple[str, ...]:
    """Return one row of the second table."""
    claims = facts.claims
    if key in claims.not_applicable:
        return key, text, f"not applicable: {claims.not_applicable[key]}", ""
    if key not in claims.scenarios:
        return key, text, "not there yet", ""
    differs = f". *Differs*: {claims.deviations[key]}" if key in claims.deviations else ""
    return key, text, f"passed{differs}", nodes(claims.scenarios[key])


def finding_row(facts: Facts, finding: Table) -> tuple[str, ...]:
    """Return one row of the third table."""
    tests = nodes(facts.claims.findings.get(finding["number"], ()))
    return str(finding["number"]), finding["theirs"], finding["ours"], tests


def nodes(tests: Iterable[Test]) -> str:
    """Return the node ids of ``tests``, one below the other."""
    return "<br>".join(f"`{test.node}`" for test in tests)


def reference(name: str) -> str:
    """Return ``name`` as a link to where it is documented, if it exists."""
    return f"{{py:obj}}`{name}`" if exists(name) else f"`{name}` (not there yet)"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def guide(facts: Facts, text: str) -> str:
    """Return the guide with a regenerated table of names."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    sections = (
        f"### {section['title']}\n\n"
        + table(
            ("client-go", "kinform", "difference"),
            ((row["go"], ours(row), row["differs"]) for row in section["rows"]),
        )
        for section in facts.names
    )
    return f"{before}{BEGIN}\n\n" + "\n\n".join(sections) + f"\n\n{END}{after}"


def ours(row: Table) -> str:
    """Return the second column: names, which are checked, or words."""
    return ", ".join([*(reference(name) for name in row["ours"]), *row.get("words", ())]) or "–"


# --- the command --------------------------------------------------------------------------------


def main() -> None:
    """Write, or check."""
    parser = argparse.ArgumentParser(description="Write or check docs/conformance.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    parser.add_argument("--ran", type=Path, metavar="FILE", help="JUnit XML of a whole test run")
    arguments = parser.parse_args()
    facts = gather()
    wanted = {PAGE: page(facts), GUIDE: guide(facts, GUIDE.read_text("utf-8"))}
    wrong = mistakes(facts)
    if arguments.ran:
        wrong += not_run(facts, arguments.ran)
        wrong += not_proven(PROMISES.read_text("utf-8"), arguments.ran)
    for path, text in wanted.items():
        if arguments.check and (not path.exists() or path.read_text("utf-8") != text):
            wrong.append(f"{path.relative_to(ROOT)} is out of date: run make conformance")
        elif not arguments.check:
            path.write_text(text, encoding="utf-8")
    lost = missing(facts)
    print(*(f"warning: {warning}" for warning in facts.claims.warnings), sep="\n")
    print(*(f"not there yet: {each}" for each in lost), sep="\n")
    print(*(f"wrong: {each}" for each in wrong), sep="\n", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

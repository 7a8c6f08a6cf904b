"""A reader of the tests' sources: which test covers which scenario.

A test carries ids at the beginning of its docstring (``CG-R12, CG-R13: ...``) or of a parametrize
id (``id="CG-F02"``), which is more precise and wins. A module lists in ``NOT_APPLICABLE`` the
scenarios that do not apply to kinform, and in ``DEVIATIONS`` intended differences;
both are plain dicts from id to reason. A paragraph of a docstring that begins with ``CG-R10
differs:`` is a deviation of its test. ``8.3, finding 4`` in a docstring names that finding.

The tests are not imported: a test that is skipped or expected to fail must not count, and that is
visible only in the source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["ID", "Claims", "Test", "of_folder", "of_source"]

ID: Final = re.compile(r"(?:CG|KR|JO)-[A-Z]\d\d\b")
LEADING_IDS: Final = re.compile(rf"{ID.pattern}(?:(?:, and |, | and ){ID.pattern})*")
DIFFERS: Final = re.compile(
    rf"^({ID.pattern}) differs: (.+?)\.?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL
)
FINDING: Final = re.compile(r"8\.3,\s+finding\s+(\d+)")
CROWD: Final = 6
"""More scenarios than this in one test cause a warning."""
GIVING_UP: Final = frozenset(
    f"pytest.{name}"
    for name in ("skip", "xfail", "importorskip", "mark.skip", "mark.skipif", "mark.xfail")
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Test:
    """A test function, or those of its cases whose id begins with ``case``."""

    path: str
    line: int
    name: str
    case: str = ""

    @property
    def node(self) -> str:
        """Its node id; of cases, the part of their ids by which they were chosen."""
        return f"{self.path}::{self.name}" + (f"[{self.case}]" if self.case else "")


@dataclass
class Claims:
    """The claims of all tests."""

    tests: dict[str, Test] = field(default_factory=dict[str, Test])
    """Every test that runs, by node id."""
    scenarios: dict[str, list[Test]] = field(default_factory=dict[str, list[Test]])
    findings: dict[int, list[Test]] = field(default_factory=dict[int, list[Test]])
    not_applicable: dict[str, str] = field(default_factory=dict[str, str])
    deviations: dict[str, str] = field(default_factory=dict[str, str])
    mistakes: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def of_folder(folder: Path) -> Claims:
    """Return what all tests below ``folder`` say."""
    claims = Claims()
    for file in sorted(folder.rglob("test_*.py")):
        path = file.relative_to(folder.parent).as_posix()
        of_source(file.read_text(encoding="utf-8"), path, into=claims)
    return claims


def of_source(source: str, path: str, *, into: Claims | None = None) -> Claims:
    """Return what the tests of one module say, added to ``into``."""
    claims = Claims() if into is None else into
    _Module(source, path, claims).read()
    return claims


class _Module:
    """One module of tests, being read."""

    def __init__(self, source: str, path: str, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.tree = ast.parse(source, path)
        self.constants = dict(_constants(self.tree))

    def read(self) -> None:
        self.add_table("NOT_APPLICABLE", self.claims.not_applicable)
        self.add_table("DEVIATIONS", self.claims.deviations)
        marks = self.constants.get("pytestmark")
        calls = [statement for statement in self.tree.body if isinstance(statement, ast.Expr)]
        if not self.gives_up(calls if marks is None else [*calls, marks]):
            for name, function in self.functions(self.tree.body):
                self.add_test(Test(self.path, function.lineno, name), function)

    def add_table(self, name: str, table: dict[str, str]) -> None:
        try:
            rows: dict[str, str] = ast.literal_eval(self.constants.get(name, ast.Dict([], [])))
        except ValueError:
            self.claims.mistakes.append(f"{self.path}: {name} is not a plain dict of texts")
            return
        for scenario, reason in rows.items():
            self.add_row(table, scenario, reason)

    def add_row(self, table: dict[str, str], scenario: str, reason: str) -> None:
        if scenario in table:
            what = "different" if table is self.claims.deviations else "not applicable"
            self.claims.mistakes.append(f"{self.path}: {scenario} is {what} twice")
        table[scenario] = reason

    def functions(self, body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
        """Yield each test that pytest would run to its end, by its name within the module."""
        for statement in body:
            if isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
                if not self.gives_up(statement.decorator_list):
                    yield from self.functions(statement.body, f"{statement.name}::")
            elif isinstance(statement, Function) and statement.name.startswith("test_"):
                # A decorator that skips single cases is handled with the cases.
                marks = [mark for mark in statement.decorator_list if _parametrized(mark) is None]
                if not self.gives_up([*statement.body, *marks]):
                    yield prefix + statement.name, statement

    def gives_up(self, nodes: Iterable[ast.AST]) -> bool:
        """Return whether there is a skip, or a failure that is expected, in one of ``nodes``."""
        return any(
            isinstance(part, ast.Attribute) and ast.unparse(part) in GIVING_UP
            for node in nodes
            for part in ast.walk(self.resolved(node))
        )

    def resolved(self, node: ast.AST) -> ast.AST:
        """Return what ``node`` is a name for, or itself."""
        return self.constants.get(node.id, node) if isinstance(node, ast.Name) else node

    # --- one test

    def add_test(self, test: Test, function: Function) -> None:
        self.claims.tests[test.node] = test
        docstring = ast.get_docstring(function) or ""
        lead = _lead(docstring)
        by_case = dict.fromkeys(
            scenario for case in self.cases(function) for scenario in ID.findall(_lead(case))
        )
        differing = dict(DIFFERS.findall(docstring))
        by_name = dict.fromkeys([*ID.findall(lead), *differing])
        for scenario in by_case:
            of_case = Test(test.path, test.line, test.name, scenario)
            self.claims.scenarios.setdefault(scenario, []).append(of_case)
        for scenario in by_name.keys() - by_case.keys():
            self.claims.scenarios.setdefault(scenario, []).append(test)
        for number in FINDING.findall(docstring):
            self.claims.findings.setdefault(int(number), []).append(test)
        for scenario, reason in differing.items():
            self.add_row(self.claims.deviations, scenario, " ".join(reason.split()))
        if (count := len(by_name.keys() - by_case.keys())) > CROWD:
            self.claims.warnings.append(f"{test.node}: can it play {count} scenarios?")
        self.check_mentions(test, DIFFERS.sub("", docstring[len(lead) :]))

    def check_mentions(self, test: Test, text: str) -> None:
        """Report ids in the text of a docstring that may or may not be claims."""
        for mention in ID.finditer(text):
            if not text[: mention.start()].endswith("see "):
                self.claims.mistakes.append(
                    f"{test.node}: if it plays {mention[0]}, put that first in the docstring; "
                    f"else write 'see {mention[0]}'"
                )

    # --- its cases

    def cases(self, function: Function) -> Iterator[str]:
        """Yield the ids of its cases, as far as they are written down; of none that is skipped."""
        for decorator in function.decorator_list:
            if (given := _parametrized(decorator)) is None:
                continue
            values = self.elements(given.get("argvalues"))
            for number, case in enumerate(self.elements(given.get("ids")) or values):
                value = values[number] if number < len(values) else case
                if not self.gives_up([value]) and (text := _id_of(case)) is not None:
                    yield text

    def elements(self, node: ast.AST | None) -> list[ast.expr]:
        """Return what a list, the keys of a dict, or a name for one of them holds."""
        match node and self.resolved(node):
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return elements
            case ast.Dict(keys=keys):
                return [key for key in keys if key is not None]
            case ast.Call(func=ast.Name(id="list" | "sorted" | "tuple"), args=[one]):
                return self.elements(one)
            case ast.Call(func=ast.Attribute(value=one, attr="keys" | "values" | "items")):
                return self.elements(one)
            case _:
                return []


def _constants(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield every name that is given a value at the top level."""
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def _parametrized(decorator: ast.expr) -> dict[str | None, ast.expr] | None:
    """Return the arguments of a parametrize, by name; None for any other decorator."""
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith(
        "parametrize"
    ):
        return None
    given: dict[str | None, ast.expr] = {k.arg: k.value for k in decorator.keywords}
    return {**given, **dict(zip(("argnames", "argvalues"), decorator.args, strict=False))}


def _lead(text: str) -> str:
    """Return the ids that ``text`` begins with."""
    found = LEADING_IDS.match(text)
    return found[0] if found else ""


def _id_of(case: ast.expr) -> str | None:
    """Return the id of a case: a string, or the ``id`` argument of ``pytest.param``."""
    match case:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(keywords=keywords):
            return next((_id_of(k.value) for k in keywords if k.arg == "id"), None)
        case _:
            return None

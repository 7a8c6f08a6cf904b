"""docs/conformance.md is what the tests say, and they say nothing by accident."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tools import claims, conformance
from tools.claims import Claims, of_source
from tools.conformance import Facts

pytestmark = pytest.mark.slow  # all tests are read, once


@pytest.fixture(scope="module")
def facts() -> Facts:
    return conformance.gather()


# --- the pages


def test_the_page_is_what_the_tests_say(facts: Facts) -> None:
    message = "docs/conformance.md is out of date: run make conformance"
    assert conformance.PAGE.read_text("utf-8") == conformance.page(facts), message


def test_the_guides_table_of_names_is_what_the_data_say(facts: Facts) -> None:
    written = conformance.GUIDE.read_text("utf-8")
    message = "the guide is out of date: run make conformance"
    assert written == conformance.guide(facts, written), message


def test_nothing_on_them_is_nonsense(facts: Facts) -> None:
    """Unknown ids, ids that are played and not applicable, too many that are not, and so on."""
    assert conformance.mistakes(facts) == []


def test_no_scenario_part_finding_or_name_is_missing(facts: Facts) -> None:
    assert "\n".join(conformance.missing(facts)) == ""


def test_no_test_claims_to_play_a_crowd_of_scenarios(facts: Facts) -> None:
    assert facts.claims.warnings == []


# --- what counts as a claim


def read(source: str) -> Claims:
    return of_source(textwrap.dedent(source), "tests/test_x.py")


def played(source: str) -> dict[str, list[str]]:
    """Return the scenarios that the tests of ``source`` play, and the names of these tests."""
    return {
        scenario: [test.node.removeprefix("tests/test_x.py::") for test in tests]
        for scenario, tests in read(source).scenarios.items()
    }


def test_a_docstring_claims_what_it_begins_with() -> None:
    source = '''
    def test_one():
        """CG-R01, CG-R02 and CG-W03: and here is why."""

    class TestTwo:
        async def test_more(self):
            """CG-R01."""
    '''
    one = ["test_one"]
    assert played(source) == {
        "CG-R01": ["test_one", "TestTwo::test_more"],
        "CG-R02": one,
        "CG-W03": one,
    }


@pytest.mark.parametrize(
    "decorator",
    [
        'parametrize("x", [1, 2], ids=["CG-F01", "CG-F02 with words"])',
        'parametrize("x", [pytest.param(1, id="CG-F01"), pytest.param(2, id="CG-F02")])',
        'parametrize("x", ["CG-F01", "CG-F02 as CG-F03"])',
        'parametrize("x", TABLE.values(), ids=TABLE)',
        'parametrize("x", list(TABLE.values()), ids=list(TABLE))',
        'parametrize(("x", "y"), TABLE.items(), ids=TABLE.keys())',
        'parametrize("x", argvalues=CASES)',
    ],
)
def test_a_case_claims_what_its_id_begins_with(decorator: str) -> None:
    source = f'''
    TABLE: Final = {{"CG-F01": 1, "CG-F02": 2}}
    CASES = [pytest.param(1, id="CG-F01"), pytest.param(2, id="CG-F02")]

    @pytest.mark.{decorator}
    def test_one(x):
        """CG-F02, CG-F09: a case is more precise."""
    '''
    assert played(source) == {
        "CG-F01": ["test_one[CG-F01]"],
        "CG-F02": ["test_one[CG-F02]"],
        "CG-F09": ["test_one"],
    }


@pytest.mark.parametrize(
    "skipped",
    [
        "@pytest.mark.skip\ndef test_one(): 'CG-R01'",
        "@pytest.mark.skipif(True, reason='')\ndef test_one(): 'CG-R01'",
        "@pytest.mark.xfail(strict=True)\nasync def test_one(): 'CG-R01'",
        "needs = pytest.mark.skipif(True, reason='')\n@needs\ndef test_one(): 'CG-R01'",
        "@pytest.mark.skip\nclass TestIt:\n  def test_one(self): 'CG-R01'",
        "pytestmark = [pytest.mark.skip]\ndef test_one(): 'CG-R01'",
        "pytest.importorskip('x')\ndef test_one(): 'CG-R01'",
        "def test_one():\n  'CG-R01'\n  if x:\n    pytest.skip('no')",
        "def test_one():\n  'CG-R01'\n  pytest.xfail('no')",
        "@parametrize('x', [param(1, id='CG-R01', marks=pytest.mark.skip)])\ndef test_one(x): 0",
        "@parametrize('x', [param(1, marks=pytest.mark.xfail)], ids=['CG-R01'])\ndef test_a(x): 0",
        "def helper(): 'CG-R01'",
        "class Helper:\n  def test_one(self): 'CG-R01'",
        "def outer():\n  def test_one(): 'CG-R01'",
    ],
)
def test_what_does_not_run_claims_nothing(skipped: str) -> None:
    assert played(skipped + "\ndef test_two(): 'CG-R02'").get("CG-R01") is None


def test_an_id_in_the_middle_of_a_docstring_is_meant_or_only_mentioned_but_says_which() -> None:
    source = '''
    def test_one():
        """CG-R01; for tombstones see CG-R02."""

    def test_two():
        """Much as CG-R03."""
    '''
    found = read(source)
    assert list(found.scenarios) == ["CG-R01"]
    (mistake,) = found.mistakes
    assert mistake.startswith("tests/test_x.py::test_two: if it plays CG-R03, put that first")


def test_a_paragraph_may_say_what_differs() -> None:
    source = '''
    def test_one():
        """CG-R01: one start.

        CG-R02 differs: client-go asks again
        for ever, as CG-R03.
        """

    def test_two():
        """CG-R04 differs: for good reason."""
    '''
    found = read(source)
    assert found.deviations == {
        "CG-R02": "client-go asks again for ever, as CG-R03",
        "CG-R04": "for good reason",
    }
    assert (sorted(found.scenarios), found.mistakes) == (["CG-R01", "CG-R02", "CG-R04"], [])


def test_findings_are_named_by_number() -> None:
    source = '''
    def test_one():
        """CG-P05. Deviation (8.3, finding 4): client-go
        sends it (8.3, finding 12)."""
    '''
    assert list(read(source).findings) == [4, 12]


def test_tables_are_read_and_an_id_stands_in_one_of_each_kind_once() -> None:
    source = (
        'NOT_APPLICABLE: Final = {"CG-S12": "no " "such store"}\nDEVIATIONS = {"CG-S04": "why"}'
    )
    found = read(source)
    assert found.not_applicable == {"CG-S12": "no such store"}
    assert (found.deviations, found.mistakes) == ({"CG-S04": "why"}, [])
    of_source(source, "tests/test_y.py", into=found)
    assert found.mistakes == [
        "tests/test_y.py: CG-S12 is not applicable twice",
        "tests/test_y.py: CG-S04 is different twice",
    ]
    computed = read('NOT_APPLICABLE = dict(a="b")')
    assert computed.mistakes == ["tests/test_x.py: NOT_APPLICABLE is not a plain dict of texts"]


def test_a_crowd_of_ids_on_one_test_is_doubted() -> None:
    ids = ", ".join(f"CG-R0{n}" for n in range(1, claims.CROWD + 2))
    (warning,) = read(f"def test_one(): '{ids}'").warnings
    assert warning == "tests/test_x.py::test_one: can it play 7 scenarios?"


# --- what is wrong with all of them together


@pytest.mark.parametrize(
    ("source", "mistake"),
    [
        ("def test_one(): 'CG-R99'", "CG-R99: no such scenario"),
        ("def test_one(): 'CG-X01'", "CG-X01: no such scenario"),
        ("def test_one(): 'CG-H01'", None),
        ("NOT_APPLICABLE = {'CG-R77': ''}", "CG-R77: no such scenario"),
        (
            "NOT_APPLICABLE = {'CG-R01': ''}\ndef test_one(): 'CG-R01'",
            "CG-R01: not applicable, says one module, but tests/test_x.py::test_one plays it",
        ),
        ("DEVIATIONS = {'CG-R01': ''}", "CG-R01: said to be different here, but no test shows how"),
        ("def test_one(): '8.3, finding 14'", "8.3, finding 14: no such finding"),
    ],
)
def test_a_claim_that_cannot_be_true_is_a_mistake(
    facts: Facts, source: str, mistake: str | None
) -> None:
    found = conformance.mistakes(replace(facts, claims=read(source)))
    assert found == ([] if mistake is None else [mistake])


def test_not_more_than_thirty_are_not_applicable(facts: Facts) -> None:
    ids = list(facts.scenarios)
    few, many = (Claims(not_applicable=dict.fromkeys(ids[:n], "")) for n in (30, 31))
    assert conformance.mistakes(replace(facts, claims=few)) == []
    assert conformance.mistakes(replace(facts, claims=many)) == ["31 not applicable: 30 at most"]


def test_what_nobody_shows_is_missing(facts: Facts) -> None:
    lost = conformance.missing(replace(facts, claims=read("def test_one(): 'CG-R01'")))
    assert not any(each.startswith("CG-R01") for each in lost)
    assert any(each.startswith("CG-R02: ") for each in lost)
    assert any(each.startswith("finding 4: ") for each in lost)
    assert any(each.startswith("part 1 ") for each in lost)
    later = [{**part, "later": True} for part in facts.parts]
    lost = conformance.missing(replace(facts, parts=later))
    assert not any(each.startswith("part 1 ") for each in lost)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("kinform", True),
        ("kinform.cache", True),
        ("kinform.cache.ListWatch", True),
        ("kinform.cache.ListWatch.from_client", True),
        ("kinform.rest.pager.PAGE_SIZE", True),
        ("asyncio.TaskGroup", True),
        ("kinform.Missing", False),
        ("kinform.cache.ListWatch.nothing", False),
        ("missing.at.all", False),
    ],
)
def test_a_name_exists_if_it_can_be_had(name: str, there: bool) -> None:
    assert conformance.exists(name) is there


# --- what really ran

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_x" name="test_passed"/>
<testcase classname="tests.test_x" name="test_skipped"><skipped/></testcase>
<testcase classname="tests.test_x" name="test_failed"><failure/></testcase>
<testcase classname="tests.test_x" name="test_torn_down"/>
<testcase classname="tests.test_x" name="test_torn_down"><error/></testcase>
<testcase classname="tests.test_x.TestIt" name="test_cases[CG-F01-a]"/>
<testcase classname="tests.test_x.TestIt" name="test_cases[CG-F02-a]"><skipped/></testcase>
</testsuite></testsuites>"""
SOURCE = """
def test_passed(): "CG-R01"
def test_skipped(): "CG-R02"
def test_failed(): "CG-R03"
def test_torn_down(): "CG-R04"
def test_not_run(): "CG-R05"
class TestIt:
  @pytest.mark.parametrize("x", [1, 2], ids=["CG-F01", "CG-F02"])
  def test_cases(self, x): pass
"""


def test_what_was_skipped_or_failed_or_did_not_run_is_found_in_the_report(
    facts: Facts, tmp_path: Path
) -> None:
    (report := tmp_path / "report.xml").write_text(REPORT, encoding="utf-8")
    ran = replace(facts, claims=read(SOURCE), parts=[])
    assert conformance.not_run(ran, report) == [
        "tests/test_x.py::test_skipped: did not pass",
        "tests/test_x.py::test_failed: did not pass",
        "tests/test_x.py::test_torn_down: did not pass",
        "tests/test_x.py::test_not_run: did not run",
        "tests/test_x.py::TestIt::test_cases[CG-F02]: did not pass",
    ]


def test_a_proof_that_was_skipped_or_failed_or_did_not_run_is_found_in_the_report(
    tmp_path: Path,
) -> None:
    (report := tmp_path / "report.xml").write_text(REPORT, encoding="utf-8")
    names = ("passed", "skipped", "failed", "torn_down", "not_run", "skipped")
    text = ", ".join(f"`tests/test_x.py::test_{name}`" for name in names)
    assert conformance.not_proven(f"| a promise | {text} | 8 |", report) == [
        "tests/test_x.py::test_skipped: did not pass",
        "tests/test_x.py::test_failed: did not pass",
        "tests/test_x.py::test_torn_down: did not pass",
        "tests/test_x.py::test_not_run: did not run",
    ]

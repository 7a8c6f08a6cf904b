"""The mutants fit the source, break existing rules, and are caught; and the tool that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants import report
from tools.mutants.hunting import Caught
from tools.mutants.patches import ROOT, Hunk, Patch, PatchError, load, parse
from tools.mutants.rules import ELSEWHERE, RULES

PATCHES = load()

TEXT = """\
# rule: F-R20
# what: The second is left out.
# oracle: equality
--- a/src/kinform/one.py
+++ b/src/kinform/one.py
@@ -2,3 +2,2 @@
 b = 2

-c = 3
"""


def read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_a_mutant_fits_the_source_and_is_python(patch: Patch) -> None:
    for path, text in patch.applied(read).items():
        assert text != read(path)
        compile(text, path, "exec")


def test_there_are_mutants_enough() -> None:
    assert sum(not patch.survives for patch in PATCHES) >= 30


def test_each_mutant_breaks_a_rule_and_was_caught_within_500_seeds() -> None:
    caught = report.load()
    assert report.mistakes(PATCHES, caught) == []
    assert all(one.seed < 500 for one in caught.values())


def test_the_page_is_as_it_would_be_written() -> None:
    assert report.PAGE.read_text("utf-8") == report.page(PATCHES, report.load())


# --- the tool


def test_a_patch_changes_the_lines_it_names() -> None:
    patch = parse(TEXT, name="one")
    assert (patch.rule, patch.oracle) == ("F-R20", "equality")
    source = "a = 1\nb = 2\n\nc = 3\nd = 4\n"
    assert patch.applied(lambda _: source) == {"src/kinform/one.py": "a = 1\nb = 2\n\nd = 4\n"}


def test_a_hunk_is_found_where_its_lines_have_moved_to_nearest_first() -> None:
    hunk = Hunk(3, ("x\n",), ("y\n",))
    assert hunk.place(["x\n", "a\n", "x\n", "a\n", "a\n", "a\n", "x\n"]) == 2
    assert hunk.place(["x\n", "a\n", "a\n", "a\n", "a\n", "a\n", "x\n"]) in {0, 6}
    assert hunk.place(["a\n"]) is None


def test_a_patch_that_does_not_fit_says_where() -> None:
    patch = parse(TEXT, name="one")
    with pytest.raises(PatchError, match=r"one does not fit src/kinform/one\.py, near line 2"):
        patch.applied(lambda _: "a = 1\nb = 2\nc = 3\n")


def test_a_patch_that_changes_nothing_is_none() -> None:
    patch = parse(TEXT.replace("-c = 3", " c = 3"), name="one")
    with pytest.raises(PatchError, match="changes nothing"):
        patch.applied(lambda _: "a = 1\nb = 2\n\nc = 3\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TEXT.replace("# what: The second is left out.\n", ""), "lacks what"),
        (TEXT.partition("---")[0], "lacks a diff"),
        (TEXT.replace("src/kinform", "tests"), "belongs to no patch"),
        ("hello\n", "belongs to no patch: 'hello'"),
    ],
    ids=["no what", "no diff", "another folder", "no patch"],
)
def test_what_is_no_patch_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(PatchError, match=complaint):
        parse(text, name="one")


def test_the_output_of_git_diff_is_a_patch(tmp_path: Path) -> None:
    head, _, diff = TEXT.partition("---")
    git = "diff --git a/src/kinform/one.py b/src/kinform/one.py\nindex 1..2 100644\n"
    (tmp_path / "one.patch").write_text(f"{head}{git}---{diff}", "utf-8")
    assert load(tmp_path) == [parse(TEXT, name="one")]


def test_a_record_tells_what_does_not_go_together() -> None:
    patch = parse(TEXT.replace("F-R20", "F-R99"), name="one")
    wrong = report.mistakes([patch], {"two": Caught(0, "order", 0.1)})
    assert wrong[:3] == [
        "one: there is no rule F-R99",
        "one was never caught: make mutants ARGS=one",
        "two is no mutant that is hunted",
    ]
    assert set(wrong[3:]) == {
        f"{rule} has neither a mutant nor a reason" for rule in RULES.keys() - ELSEWHERE.keys()
    }


def test_a_survivor_has_a_reason_and_is_not_in_the_record() -> None:
    patch = parse("# survives: Nobody looks there.\n" + TEXT, name="one")
    assert not any("one" in each or "F-R20" in each for each in report.mistakes([patch], {}))
    wrong = report.mistakes([patch], {"one": Caught(0, "order", 0.1)})
    assert "one is no mutant that is hunted" in wrong
    page = report.page([patch], {})
    assert "0 mutants of 0 rules were caught" in page
    assert "| `one` | F-R20 | The second is left out. | Nobody looks there. |" in page


def test_the_page_names_mutant_rule_seed_and_promise() -> None:
    page = report.page([parse(TEXT, name="one")], {"one": Caught(17, "order", 2.04)})
    assert "| `one` | F-R20 | The second is left out. | 17 | order | 2.0 |" in page
    assert "1 mutants of 1 rules were caught; the highest seed that it took is 17" in page
    assert "| F-R12 | HTTP/2 | none: kinform speaks HTTP/1.1 |" in page

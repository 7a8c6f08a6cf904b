"""Pointers in the documentation: links, file names and make targets exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
TOPS: Final = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "constraints.txt"]
PAGES: Final = sorted(
    [ROOT / name for name in TOPS] + list((ROOT / "docs").rglob("*.md")),
    key=lambda page: page.as_posix(),
)
FENCE: Final = re.compile(r"^ *(`{3,}|:{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\]\(([^()\s]+)\)")
QUOTED: Final = re.compile(r"(?<![`\w}])`([^`\n]+)`(?!`)")
FOLDERS: Final = "bench|docs|examples|newsfragments|src|tests|tools|\\.ci"
FILE: Final = re.compile(rf"(?:{FOLDERS})/[\w./-]+|[A-Za-z_.-]+\.(?:md|toml|txt)|Makefile|NOTICE")
TARGET: Final = re.compile(r"make ([a-z][a-z-]*)")


def of_page(text: str, page: Path) -> Iterator[str]:
    """Yield the links and the quoted file names in ``text`` that lead nowhere from ``page``."""
    prose = FENCE.sub("", text)
    for link in LINK.findall(prose):
        path = link.partition("#")[0]
        if path and "://" not in path and not (page.parent / path).exists():
            yield link
    for quoted in QUOTED.findall(prose):
        path = quoted.partition("::")[0]
        if FILE.fullmatch(path) and "NAME" not in path and not any_exists(path, page):
            yield quoted


def any_exists(path: str, page: Path) -> bool:
    return (ROOT / path).exists() or (page.parent / path).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_and_every_quoted_file_exists(page: Path) -> None:
    assert not list(of_page(page.read_text(encoding="utf-8"), page))


def test_a_dead_pointer_is_found() -> None:
    text = "[a](gone.md#part) `tools/gone.py` `docs/index.md` [b](https://example.com) `make test`"
    assert list(of_page(text, ROOT / "docs" / "index.md")) == ["gone.md#part", "tools/gone.py"]


def test_the_constraints_name_files_that_exist() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    named = re.findall(r"\b[\w/]+\.(?:py|toml)\b", text)
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_every_make_target_in_the_docs_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    named = {
        target
        for page in PAGES
        for quoted in QUOTED.findall(page.read_text(encoding="utf-8"))
        for target in TARGET.findall(quoted)
    }
    assert len(named) > 20
    assert named <= targets


def test_every_page_is_in_the_map_of_the_docs() -> None:
    """The toctrees are written by hand, in reading order: a new page must be added to one."""
    docs = ROOT / "docs"
    listed: set[Path] = set()
    for index in (docs / "index.md", docs / "reference" / "index.md"):
        text = index.read_text(encoding="utf-8")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(index.parent / entry).with_suffix(".md") for entry in entries}
    assert listed == set(docs.rglob("*.md")) - {docs / "index.md"}


def test_pre_commit_runs_the_checks_of_make_lint() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^lint:.*\n\t(.+)$", makefile, re.MULTILINE)
    assert recipe is not None
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    wanted = recipe[1].replace("$(PY)", ".venv/bin/python").split(" && ")
    assert [entry.replace(" --force-exclude", " .") for entry in entries] == wanted
    assert {repo["repo"] for repo in hooks["repos"]} == {"local"}


def test_news_fragments_have_a_known_type() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    types = {entry["directory"] for entry in project["tool"]["towncrier"]["type"]}
    for fragment in (ROOT / "newsfragments").glob("*.md"):
        if fragment.name != "README.md":
            issue, kind, *_ = fragment.name.split(".")
            assert issue.isdecimal(), fragment.name
            assert kind in types, fragment.name

"""F-P25: what a release consists of. That two builds are equal, `make release` says."""

from __future__ import annotations

import json
import tomllib
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tools.release import Resolved, bill_of_materials, metadata_of, resolve

METADATA = """\
Metadata-Version: 2.4
Name: kinform
Version: 1.2.3
License-Expression: Apache-2.0
Requires-Dist: aiohttp>=3.14.3
Requires-Dist: pyyaml>=6.0.2
Provides-Extra: all
Requires-Dist: kinform[cli]; extra == 'all'
Provides-Extra: cli
Requires-Dist: click>=8.2; extra == 'cli'
"""
DIGEST = "0" * 64
ROOT = Path(__file__).parents[2]


@pytest.fixture
def metadata() -> Message:
    return HeaderParser().parsestr(METADATA)


RESOLVED = [
    Resolved("aiohttp", "3.14.5", is_required=True, depends_on=("yarl",), license="Apache-2.0"),
    Resolved("click", "8.5.1", is_required=False),
    Resolved("pyyaml", "6.0.3", is_required=True),
    Resolved("yarl", "1.23.0", is_required=True),
]


def bill(metadata: Message, digest: str = DIGEST) -> dict[str, Any]:
    return bill_of_materials(metadata, wheel="kinform.whl", digest=digest, resolved=RESOLVED)


def test_the_bill_of_materials_names_all_that_is_installed(metadata: Message) -> None:
    made = bill(metadata)
    components = made["components"]
    assert [(each["purl"], each["scope"]) for each in components] == [
        ("pkg:pypi/aiohttp@3.14.5", "required"),
        ("pkg:pypi/click@8.5.1", "optional"),
        ("pkg:pypi/pyyaml@6.0.3", "required"),
        ("pkg:pypi/yarl@1.23.0", "required"),
    ]
    bounds = [each["properties"][0]["value"] for each in components if "properties" in each]
    assert bounds == ["3.14.3", "8.2", "6.0.2"]
    assert DIGEST in json.dumps(made["metadata"])
    depends = {each["ref"]: each["dependsOn"] for each in made["dependencies"]}
    assert depends["pkg:pypi/aiohttp@3.14.5"] == ["pkg:pypi/yarl@1.23.0"]
    assert len(depends["pkg:pypi/kinform@1.2.3"]) == 3


def test_one_wheel_has_one_bill_of_materials(metadata: Message) -> None:
    one, same, other = bill(metadata), bill(metadata), bill(metadata, "1" * 64)
    assert one == same != other
    references = [each["ref"] for each in one["dependencies"]]
    assert len(references) == len(set(references))


def test_versions_are_resolved_whole(metadata: Message) -> None:
    """Indirect dependencies are included, in the version that is installed and pinned."""
    found = {each.name: each for each in resolve(metadata)}
    assert {"aiohttp", "yarl", "multidict", "pyyaml", "click"} <= set(found)
    assert found["yarl"].is_required
    assert not found["click"].is_required
    assert all(each.version == version(each.name) for each in found.values())
    assert all(set(each.depends_on) <= set(found) for each in found.values())


def test_what_is_not_installed_cannot_be_resolved(metadata: Message) -> None:
    metadata["Requires-Dist"] = "no-such-distribution-anywhere>=1"
    with pytest.raises(SystemExit, match="no-such-distribution-anywhere is not installed"):
        resolve(metadata)


def test_what_a_wheel_says_of_itself_is_read_from_it() -> None:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("kinform/__init__.py", "")
        archive.writestr("kinform-1.2.3.dist-info/METADATA", METADATA)
    assert metadata_of(packed.getvalue())["Version"] == "1.2.3"


# --- licences ---------------------------------------------------------------------------------


def test_the_licence_and_the_credits_are_part_of_what_is_published() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE"]  # in the wheel and in the sdist
    assert "Copyright 2026 The kinform authors" in (ROOT / "LICENSE").read_text("utf-8")
    notice = (ROOT / "NOTICE").read_text("utf-8")
    assert "Copyright The Kubernetes Authors" in notice
    assert "Apache License" in notice


OURS = {"tests/mutants/caught.json", "tests/differential/record.json"}
"""Outcomes of our own tools: seeds that find mutants, and counts of differences."""


def test_every_recorded_file_says_where_it_comes_from() -> None:
    """In a README beside it: the program, its version, and its licence."""
    data = [
        path
        for root in ("src", "tests")
        for path in (ROOT / root).rglob("*")
        if path.name.endswith((".json", ".json.xz", ".yaml")) and "fuzz" not in path.parts
    ]
    named = [path for path in data if path.relative_to(ROOT).as_posix() not in OURS]
    assert len(named) > 30
    for path in named:
        readme = path.with_name("README.md")
        assert readme.is_file(), f"{path} has no README.md beside it"
        text = readme.read_text("utf-8")
        assert f"`{path.name}`" in text or f"`*{path.suffix}`" in text, f"{readme}: {path.name}"
        assert "1.36" in text
        assert "Copyright The Kubernetes Authors" in " ".join(text.split())
        assert "Apache License, Version 2.0" in " ".join(text.split())

"""F-P25: what a release consists of. That two builds are equal, `make release` says."""

from __future__ import annotations

import json
from email.message import Message
from email.parser import HeaderParser
from io import BytesIO
from zipfile import ZipFile

import pytest

from tools.release import bill_of_materials, metadata_of

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


@pytest.fixture
def metadata() -> Message:
    return HeaderParser().parsestr(METADATA)


def test_the_bill_of_materials_names_all_that_is_installed(metadata: Message) -> None:
    bill = bill_of_materials(metadata, wheel="kinform-1.2.3-py3-none-any.whl", digest=DIGEST)
    components = bill["components"]
    assert isinstance(components, list)
    assert [(each["name"], each["scope"]) for each in components] == [
        ("aiohttp", "required"),
        ("pyyaml", "required"),
        ("click", "optional"),
    ]
    assert [each["properties"][0]["value"] for each in components] == ["3.14.3", "6.0.2", "8.2"]
    assert DIGEST in json.dumps(bill["metadata"])


def test_one_wheel_has_one_bill_of_materials(metadata: Message) -> None:
    one, same = (bill_of_materials(metadata, wheel="w", digest=DIGEST) for _ in range(2))
    other = bill_of_materials(metadata, wheel="w", digest="1" * 64)
    assert one == same != other
    references = [each["ref"] for each in one["dependencies"]]  # type: ignore[attr-defined]
    assert len(references) == len(set(references))


def test_what_a_wheel_says_of_itself_is_read_from_it() -> None:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("kinform/__init__.py", "")
        archive.writestr("kinform-1.2.3.dist-info/METADATA", METADATA)
    assert metadata_of(packed.getvalue())["Version"] == "1.2.3"

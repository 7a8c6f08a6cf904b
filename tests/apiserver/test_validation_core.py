from __future__ import annotations

import re
from typing import Any

import pytest

from kinform.apiserver.scheme.field_errors import aggregate
from tests.apiserver.recorded_objects import created, recorded, updated

Json = dict[str, Any]

# Found only when the address is to be given out: see the tests of the defaults.
ON_ALLOCATION = "failed to allocate IP"

# What changed of a claim was not recorded here: see the tests of repeated refusals.
DIFFERENCE = re.compile(r"\n@@ .*?\n(?=, |\]|$)", re.DOTALL)


def refused(what: str) -> list[Any]:
    return [
        pytest.param(*case, id=f"{case[0].rpartition('/')[2]}-{index}")
        for index, case in enumerate(recorded()[what])
        if isinstance(case[-1], str) and ON_ALLOCATION not in case[-1]
    ]


@pytest.mark.parametrize("path, body, expected", refused("creates"))
def test_a_wrong_object_is_refused_in_the_words_of_the_real_server(
    path: str, body: Json, expected: str
) -> None:
    _, errors = created(path, body)

    assert expected == aggregate(errors)


@pytest.mark.parametrize("path, old, new, expected", refused("updates"))
def test_a_wrong_change_is_refused_in_the_words_of_the_real_server(
    path: str, old: Json, new: Json, expected: str
) -> None:
    _, errors = updated(path, old, new)

    assert expected == DIFFERENCE.sub("", aggregate(errors))

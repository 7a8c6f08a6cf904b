"""YAML bodies: JSON is read as YAML would read it, and no document takes long."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinform.apiserver.serializer import yaml_decoder

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda it: st.lists(it) | st.dictionaries(TEXTS, it), max_leaves=12)


def loaded(text: bytes) -> object:
    try:
        value, complaints = yaml_decoder.load(text)
    except yaml_decoder.YamlError as exc:
        return f"refused: {exc}"
    return repr(value), complaints  # repr, because 1 == 1.0 == True


@pytest.mark.slow
@given(st.dictionaries(TEXTS, VALUES), st.booleans(), st.sampled_from([None, 1]))
@example(obj={"a": 1e3, "b": [-0.0, 1e21, 1e300]}, is_ascii=False, indent=None)
@example(obj={"a": 2**64, "b": -(2**63) - 1, "k" * 1025: ""}, is_ascii=False, indent=None)
@example(obj={"a": "\x7f", "b": "\x85"}, is_ascii=True, indent=None)
def test_json_is_read_as_yaml_reads_it(
    obj: dict[str, object], is_ascii: bool, indent: int | None
) -> None:
    """A blank in front makes the same document one that only the YAML parser reads."""
    text = json.dumps(obj, ensure_ascii=is_ascii, indent=indent).encode()

    assert loaded(text) == loaded(b" " + text)


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', '{"a":"\\ud83d\\ude00"}'])
def test_json_that_yaml_reads_in_another_way_is_left_to_yaml(text: str) -> None:
    spaced = text.replace(",", ", ").encode()

    assert loaded(spaced) == loaded(b" " + spaced)

"""Names from the cluster are escaped: no terminal, log viewer or YAML parser interprets them."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kinform.cli.cluster.informer_feed import RowChange
from kinform.cli.cluster.targets import Target
from kinform.cli.output.formats import parse_output, to_json, to_yaml
from kinform.cli.output.lines import Lines, columns_text
from kinform.cli.output.rows import Column, Row, header_texts
from kinform.cli.problems import one_line
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.rest.restmapper import APIResource
from kinform.rest.warnings import parse_warnings

EVIL = [
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "a\rroot",
    "\u202egpj.exe",
    "\u2066\u2069",
    "a\nb",
    "a\u2028b",
    "\x08\x08",
    "\x7f",
    "\0",
    "\u200b",
]
TEXTS = st.one_of(st.sampled_from(EVIL), st.text(max_size=12))
JSON = st.recursive(
    st.one_of(TEXTS, st.booleans(), st.integers(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


def is_harmless(text: str) -> bool:
    """Tell whether a terminal shows all of it, line by line, from left to right."""
    return all(
        char.isprintable() or char in "\n\u3000\xa0" or char.isspace() for char in text
    ) and (not set(text) & set("\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"))


def roles(name: str, namespace: str = "default") -> RowChange:
    gvr = GroupVersionResource("rbac.authorization.k8s.io", "v1", "roles")
    resource = APIResource(gvr=gvr, kind="Role", namespaced=True)
    obj = Object.from_dict(
        {"metadata": {"name": name, "namespace": namespace, "annotations": {name: name}}}
    )
    row = Row(obj, (name, ""), (Column(name), Column("Age")))
    return RowChange(target=Target(resource), type="ADDED", row=row)


@pytest.mark.parametrize("form", ["table", "wide", "name", "json", "yaml"])
@given(name=TEXTS, namespace=TEXTS)
def test_no_form_of_a_change_holds_what_a_terminal_obeys(
    form: str, name: str, namespace: str
) -> None:
    """Names of roles may hold nearly anything, and so may what a hostile server answers."""
    change = roles(name.replace("\ud800", ""), namespace)
    lines = Lines(parse_output(form), with_namespace=True, with_kind=True)
    assert is_harmless(lines.text(change, wall=0.0))


@given(JSON)
def test_escapes_in_json_and_yaml_lose_nothing(value: object) -> None:
    for text in (to_json(value), to_json(value, compact=True)):
        assert is_harmless(text)
        assert json.loads(text) == value
    text = to_yaml({"root": value})
    assert is_harmless(text)
    assert yaml.safe_load(text) == {"root": value}


@pytest.mark.parametrize("evil", EVIL)
def test_a_name_cannot_add_lines_to_yaml(evil: str) -> None:
    lines = Lines(parse_output("yaml"), with_namespace=True, with_kind=True)
    text = lines.text(roles(f"{evil}\nkind: Secret\n---\nkind: Pod"), wall=0.0)
    (document,) = yaml.safe_load_all(text)
    assert "kind" not in document


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=3))
def test_tables_have_as_many_lines_as_rows(table: list[list[str]]) -> None:
    text = columns_text(table)
    assert is_harmless(text)
    assert len(text.splitlines()) == len(table)


@given(TEXTS)
def test_errors_headers_and_warnings_are_one_printable_line(text: str) -> None:
    assert one_line(text).isprintable()
    assert "".join(header_texts([Column(text)], wide=True)).isprintable()
    quoted = text.replace("\\", "").replace('"', "")
    assert all(each.text.isprintable() for each in parse_warnings(f'299 - "{quoted}"'))

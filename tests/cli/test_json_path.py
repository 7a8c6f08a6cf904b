from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cli.output.json_path import JsonPath, as_text
from kinform.sansio.json_path import JsonPathError

RECORDED = json.loads(Path(__file__).with_name("kubectl_jsonpath.json").read_text("utf-8"))
CASES = [(case["template"], case["answer"]) for case in RECORDED["cases"]]


@pytest.mark.parametrize(("template", "answer"), CASES, ids=[template for template, _ in CASES])
def test_a_template_gives_what_kubectl_gives(template: str, answer: str | None) -> None:
    if answer is None:
        with pytest.raises(JsonPathError):
            JsonPath(template).render(RECORDED["document"])
    else:
        assert JsonPath(template).render(RECORDED["document"]) == answer


@pytest.mark.parametrize(
    ("template", "position", "words"),
    [
        ("{.a", 3, "expected '}', found the end"),
        ("{.a[}", 4, "expected an index"),
        ("{.a[-]}", 4, "expected an index"),
        ("{.a[?(@.b==)]}", 11, "begins with '.'"),
        ("{'text}", 1, "not closed"),
        ("{a.b}", 1, "begins with '.'"),
        ("{.a.}", 4, "expected a field name"),
        ("{end}", 1, "no range to end"),
        ("{.a[0:1:0]}", 9, "must be positive"),
    ],
)
def test_an_error_says_where_it_is(template: str, position: int, words: str) -> None:
    with pytest.raises(JsonPathError, match=f"{position + 1}$") as caught:
        JsonPath(template)
    assert caught.value.position == position
    assert words in str(caught.value)


def test_a_bare_path_needs_no_braces() -> None:
    assert JsonPath(".a.b").render({"a": {"b": 3}}) == "3"


def test_find_returns_values_and_leaves_texts_out() -> None:
    assert JsonPath("x{.a[*]}y{.b}").find({"a": [1, "two"], "b": None}) == [1, "two", None]


def test_what_cannot_be_compared_is_not_chosen() -> None:
    assert JsonPath('{[?(@.n>"a")].n}').render([{"n": 1}, {"n": "b"}]) == "b"


def test_whole_floats_print_as_integers() -> None:
    assert as_text([1.0, 1.5, {"a": 2.0}]) == '[1,1.5,{"a":2}]'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.text(alphabet="{}[].*@$?()'\"=<>!a0:,- \\", max_size=20), JSON)
def test_any_text_is_read_or_refused_with_its_place(text: str, value: object) -> None:
    try:
        position = None if JsonPath(text).render(value) is not None else -1
    except JsonPathError as error:
        text, position = error.text, error.position
    assert position is None or 0 <= position <= len(text)


@given(st.text(min_size=1).filter(lambda text: "{" not in text), JSON)
def test_text_without_braces_is_itself(text: str, value: object) -> None:
    if not text.startswith((".", "$", "[")):
        assert JsonPath(text).render(value) == text


@given(st.dictionaries(st.text(min_size=1), st.integers(), min_size=1))
def test_every_key_can_be_named_in_quotes(content: dict[str, int]) -> None:
    for key, value in content.items():
        quoted = "".join(f"\\{char}" if char in "\\'." else char for char in key)
        assert JsonPath(f"{{['{quoted}']}}").find(content) == [value]

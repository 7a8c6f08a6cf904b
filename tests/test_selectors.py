from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.selectors import (
    FieldRequirement,
    FieldSelector,
    FieldSelectorLike,
    LabelSelector,
    LabelSelectorLike,
    Operator,
    Requirement,
    SelectorError,
    field_selector,
    label_selector,
)

S = TypeVar("S", LabelSelector, FieldSelector)

ALPHANUMERIC = string.ascii_letters + string.digits

# A small world, so that selectors and labels meet; and a wide one, for the syntax.
few_keys = st.sampled_from(["a", "b", "in", "notin", "example.com/a"])
few_values = st.sampled_from(["", "x", "in", "5", "007", "12", "9223372036854775807"])
wide_values = st.builds(
    "{}{}{}".format,
    st.sampled_from(ALPHANUMERIC),
    st.text(ALPHANUMERIC + "-_.", max_size=61),
    st.sampled_from(ALPHANUMERIC),
)
prefixes = st.lists(st.sampled_from(["a", "0", "a--b", "x9"]), min_size=1, max_size=4).map(".".join)
wide_keys = st.builds("{}/{}".format, prefixes, wide_values) | wide_values
spaces = st.text(" \t\r\n", max_size=2)

exact = st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS])
sets = st.sampled_from([Operator.IN, Operator.NOT_IN])
unary = st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])
order = st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN])
integers = st.sampled_from(["5", "007"]) | st.integers(0, 2**63 - 1).map(str)


def selectors(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[str]
) -> st.SearchStrategy[LabelSelector]:
    several = st.lists(values, min_size=1, max_size=3).map(tuple)
    requirement = st.one_of(
        st.builds(Requirement, keys, exact, st.tuples(values)),
        st.builds(Requirement, keys, sets, several),
        st.builds(Requirement, keys, unary),
        st.builds(Requirement, keys, order, st.tuples(integers)),
    )
    return st.builds(LabelSelector, st.lists(requirement, max_size=4).map(tuple))


def oracle(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Kubernetes' documented meaning, one sentence per operator, written apart from ours."""
    name, present = requirement.operator.name, requirement.key in labels
    if name.startswith("NOT_") or name == "DOES_NOT_EXIST":
        positive = {"NOT_EQUALS": "EQUALS", "NOT_IN": "IN", "DOES_NOT_EXIST": "EXISTS"}[name]
        opposite = Requirement(requirement.key, Operator[positive], requirement.values)
        return not oracle(opposite, labels)
    if not present or name == "EXISTS":
        return present
    value = labels[requirement.key]
    if name in {"EQUALS", "IN"}:
        return any(value == wanted for wanted in requirement.values)
    distance = int(value) - int(requirement.values[0]) if value.isdigit() else 0
    return distance > 0 if name == "GREATER_THAN" else distance < 0


def attempt(parse: Callable[[str], S], text: str) -> S | SelectorError:
    try:
        return parse(text)
    except SelectorError as error:
        return error


@given(selectors(wide_keys, wide_values | st.just("")))
def test_a_label_selector_survives_being_written_and_parsed(selector: LabelSelector) -> None:
    assert LabelSelector.parse(str(selector)) == selector


@given(selectors(few_keys, few_values), st.dictionaries(few_keys, few_values))
def test_a_label_selector_matches_what_kubernetes_documents(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    expected = all(oracle(requirement, labels) for requirement in selector.requirements)
    assert selector.matches(labels) is expected


@given(selectors(few_keys, few_values), st.data())
def test_order_and_space_do_not_matter(selector: LabelSelector, data: st.DataObject) -> None:
    parts = data.draw(st.permutations([str(r) for r in selector.requirements]))
    text = ",".join(data.draw(spaces) + part + data.draw(spaces) for part in parts)
    assert label_selector(text) == str(selector)


@given(st.text(" ,=!()<>abi5in/-\\", max_size=20))
def test_any_text_is_a_label_selector_or_an_error_with_its_place(text: str) -> None:
    outcome = attempt(LabelSelector.parse, text)
    if isinstance(outcome, SelectorError):
        assert outcome.text == text
        assert outcome.position in range(len(text) + 1)
    else:
        assert LabelSelector.parse(str(outcome)) == outcome


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("", ""),
        (" \t\n", ""),
        ("a", "a"),
        ("!a", "!a"),
        ("! a", "!a"),
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        ("a = b", "a=b"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a!=b", "a!=b"),
        ("a!=", "a!="),
        ("a in (b)", "a in (b)"),
        ("a in(c,b,c)", "a in (b,c)"),
        ("a notin ( c , b )", "a notin (b,c)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (b,)", "a in (,b)"),
        ("a in (b,,c)", "a in (,b,c)"),
        ("in in (in, notin)", "in in (in,notin)"),
        ("notin notin (in)", "notin notin (in)"),
        ("!in", "!in"),
        ("a>5,b<007", "a>5,b<007"),
        ("b,a=1,a,a=1", "a=1,a,b"),
        ("app.kubernetes.io/name=web", "app.kubernetes.io/name=web"),
        (f"{'x' * 253}/{'y' * 63}={'z' * 63}", f"{'x' * 253}/{'y' * 63}={'z' * 63}"),
    ],
)
def test_kubectls_syntax_has_one_canonical_text(text: str, canonical: str) -> None:
    assert label_selector(text) == canonical


@pytest.mark.parametrize(
    "text, position, complaint",
    [
        ("a,", 2, "expected a label key, found the end"),
        (",a", 0, "expected a label key, found ','"),
        ("a,,b", 2, "expected a label key, found ','"),
        ("!", 1, "expected a label key, found the end"),
        ("!!a", 1, "expected a label key, found '!'"),
        ("=b", 0, "expected a label key, found '='"),
        ("a b", 2, "expected one of = != in notin > < or ',', found 'b'"),
        ("a!b", 1, "expected one of = != in notin > < or ',', found '!'"),
        ("a in b", 5, "expected '(' after in, found 'b'"),
        ("a notin", 7, "expected '(' after notin, found the end"),
        ("a in (b", 7, "expected ',' or ')', found the end"),
        ("a in (b c)", 8, "expected ',' or ')', found 'c'"),
        ("a in (b=c)", 7, "expected ',' or ')', found '='"),
        ("a=b c", 4, "expected ',' or the end, found 'c'"),
        ("a===b", 3, "expected ',' or the end, found '='"),
        ("!a=b", 2, "expected ',' or the end, found '='"),
        ("a>=5", 2, "> compares integers of 64 bits, and '' is none"),
        ("a>x", 2, "> compares integers of 64 bits, and 'x' is none"),
        ("a<9223372036854775808", 2, "< compares integers of 64 bits"),
        ("a>-5", 2, "'-5' is not a label value"),
        ("a>1_0", 2, "> compares integers of 64 bits, and '1_0' is none"),
        ("-a", 0, "'-a' is not a label key"),
        ("a.", 0, "'a.' is not a label key"),
        ("x=1, é=1", 5, "'é' is not a label key"),
        ("a" * 64, 0, "at most 63 characters"),
        ("Example.com/a", 0, "the prefix of label key 'Example.com/a' is not a DNS name"),
        ("/a", 0, "the prefix of label key '/a' is not a DNS name"),
        ("a/b/c", 0, "the prefix of label key 'a/b/c' is not a DNS name"),
        ("a..b/c", 0, "the prefix of label key 'a..b/c' is not a DNS name"),
        (f"{'x' * 254}/a", 0, "at most 253 characters"),
        ("a/", 0, "'a/' is not a label key"),
        ("a=b_", 2, "'b_' is not a label value"),
        ("a in (ok,-b)", 9, "'-b' is not a label value"),
        (f"a={'b' * 64}", 2, "at most 63 characters"),
        ("a=b\x00", 2, "is not a label value"),
    ],
)
def test_a_bad_label_selector_says_where_and_what_was_expected(
    text: str, position: int, complaint: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert complaint in caught.value.message
    assert (caught.value.text, caught.value.position) == (text, position)
    assert str(caught.value).endswith(f" at index {position} of selector {text!r}")


def test_a_selector_error_is_the_callers_fault_and_a_value_error() -> None:
    with pytest.raises(UsageError):
        label_selector("a b")
    with pytest.raises(ValueError, match="at index 2"):
        label_selector("a b")


@pytest.mark.parametrize(
    "key, operator, values",
    [
        ("a", Operator.EXISTS, ("b",)),
        ("a", Operator.DOES_NOT_EXIST, ("b",)),
        ("a", Operator.IN, ()),
        ("a", Operator.NOT_IN, ()),
        ("a", Operator.EQUALS, ()),
        ("a", Operator.NOT_EQUALS, ("b", "c")),
        ("a", Operator.GREATER_THAN, ()),
        ("a", Operator.LESS_THAN, ("x",)),
        ("", Operator.EXISTS, ()),
        ("a", Operator.IN, ("b", "-")),
    ],
)
def test_a_requirement_is_valid_or_is_not_made(
    key: str, operator: Operator, values: tuple[str, ...]
) -> None:
    with pytest.raises(SelectorError) as caught:
        Requirement(key, operator, values)
    assert caught.value.position is None
    assert str(caught.value) == caught.value.message


@pytest.mark.parametrize(
    "value, greater",
    [
        ("6", True),
        ("+6", True),
        ("5", False),
        ("-6", False),
        ("", False),
        ("x", False),
        (" 6", False),
        ("1_0", False),
        ("٦", False),
        ("0" * 5000 + "6", True),
        ("9223372036854775807", True),
        ("9223372036854775808", False),
        ("-9223372036854775809", False),
    ],
    ids=lambda value: str(value)[-20:],
)
def test_only_integers_as_go_reads_them_are_compared(value: str, greater: bool) -> None:
    assert LabelSelector.parse("a>5").matches({"a": value}) is greater


def test_no_selector_and_an_empty_one_select_everything() -> None:
    values: list[LabelSelectorLike] = [None, "", {}, LabelSelector(), LabelSelector.everything()]
    for value in values:
        assert label_selector(value) == ""
        assert LabelSelector.of(value).matches({})


@given(st.dictionaries(few_keys | st.just("nothing"), few_values))
def test_nothing_matches_nothing_and_can_be_sent(labels: dict[str, str]) -> None:
    nothing = LabelSelector.nothing()
    assert not nothing.matches(labels)
    assert LabelSelector.parse(str(nothing)) == nothing


def test_a_mapping_of_labels_is_a_selector() -> None:
    assert label_selector({"tier": "web", "app": ""}) == "app=,tier=web"
    assert label_selector({"matchLabels": "yes"}) == "matchLabels=yes"


def test_a_workloads_selector_is_a_selector() -> None:
    workload = {
        "spec": {
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [
                    {"key": "tier", "operator": "In", "values": ["b", "a"]},
                    {"key": "env", "operator": "NotIn", "values": ["dev"]},
                    {"key": "up", "operator": "Exists"},
                    {"key": "down", "operator": "DoesNotExist", "values": []},
                ],
            }
        }
    }
    expected = "app=web,!down,env notin (dev),tier in (a,b),up"
    assert label_selector(workload["spec"]["selector"]) == expected
    assert label_selector(Object.from_dict(workload).at("spec", "selector")) == expected


def test_a_workload_without_selector_selects_nothing_but_an_empty_one_everything() -> None:
    assert LabelSelector.from_dict(None) == LabelSelector.nothing()
    assert LabelSelector.from_dict({}) == LabelSelector.everything()
    hollow: dict[str, object] = {"matchLabels": None, "matchExpressions": []}
    assert LabelSelector.from_dict(hollow) == LabelSelector.everything()


@pytest.mark.parametrize(
    "value, complaint",
    [
        ({"enabled": True}, "label 'enabled': True is not a label"),
        ({5: "a"}, "label 5: 'a' is not a label"),
        ({"-": "a"}, "'-' is not a label key"),
        ({"a": "-"}, "'-' is not a label value"),
        ({"matchLabels": {}, "app": "web"}, "unknown 'app'"),
        ({"matchLabels": ["a"]}, "matchLabels is not a mapping"),
        ({"matchLabels": {"a": 1}}, "label 'a': 1 is not a label"),
        ({"matchExpressions": {}}, "matchExpressions is not a list"),
        ({"matchLabels": {}, "matchExpressions": "a"}, "matchExpressions is not a list"),
        ({"matchExpressions": ["a"]}, "matchExpressions[0] is not a mapping"),
        ({"matchExpressions": [{"key": "a"}]}, "[0].operator is None, expected In, NotIn"),
        ({"matchExpressions": [{"key": "a", "operator": "in"}]}, "[0].operator is 'in'"),
        ({"matchExpressions": [{"operator": "Exists"}]}, "[0].key is None"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
            "matchExpressions[0].values is not a list",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "matchExpressions[0].values must all be text",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "in of 'a' needs at least one"),
        (["app=web"], "['app=web'] is not a label selector"),
    ],
)
def test_what_is_no_label_selector_is_refused_by_name(value: object, complaint: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector(cast("LabelSelectorLike", value))
    assert complaint in str(caught.value)


# --- fields -----------------------------------------------------------------------------------

few_fields = st.sampled_from(["metadata.name", "status.phase", "a!b"])
field_values = st.text(r"a\,=! ", max_size=5) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8
)
field_requirements = st.builds(FieldRequirement, few_fields, exact, field_values)
field_selectors = st.builds(FieldSelector, st.lists(field_requirements, max_size=4).map(tuple))


@given(field_selectors)
def test_a_field_selector_survives_being_written_and_parsed(selector: FieldSelector) -> None:
    assert FieldSelector.parse(str(selector)) == selector


@given(field_selectors, st.dictionaries(few_fields, field_values))
def test_a_field_selector_matches_what_kubernetes_documents(
    selector: FieldSelector, fields: dict[str, str]
) -> None:
    """An absent field is an empty one: upstream's ``Fields.Get`` knows no difference."""
    compare: dict[Operator, Callable[[str, str], bool]] = {
        Operator.EQUALS: lambda have, want: have == want,
        Operator.NOT_EQUALS: lambda have, want: have != want,
    }
    expected = all(
        compare[r.operator](fields.get(r.field, ""), r.value) for r in selector.requirements
    )
    assert selector.matches(fields.get) is expected


@given(st.text("ab=!\\, ", max_size=16))
def test_any_text_is_a_field_selector_or_an_error_with_its_place(text: str) -> None:
    outcome = attempt(FieldSelector.parse, text)
    if isinstance(outcome, SelectorError):
        assert outcome.text == text
        assert outcome.position in range(len(text))
    else:
        assert FieldSelector.parse(str(outcome)) == outcome


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("", ""),
        (",", ""),
        ("a=b", "a=b"),
        ("a==b", "a=b"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("b=1,,a=2,", "a=2,b=1"),
        ("b=1,a=2,b=1", "a=2,b=1"),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
        ("a= b ", "a= b "),
        ("a=b!c", "a=b!c"),
        ("a=\\\\\n", "a=\\\\\n"),
        ("status.phase!=Running,metadata.name=web", "metadata.name=web,status.phase!=Running"),
    ],
)
def test_field_selectors_have_one_canonical_text(text: str, canonical: str) -> None:
    assert field_selector(text) == canonical


@pytest.mark.parametrize(
    "text, position, complaint",
    [
        ("a", 0, "expected field=value or field!=value, found 'a'"),
        ("a=b,c", 4, "expected field=value or field!=value, found 'c'"),
        ("=b", 0, "'' is not a field"),
        (
            "a=b, c=d",
            4,
            "' c' is not a field; expected a path like 'metadata.name', without spaces",
        ),
        ("a\\=b", 0, "'a\\\\' is not a field"),
        ("a!!=b", 0, "'a!' is not a field"),
        ("a=b=c", 3, r"expected \= in a value, found a lone ="),
        (r"a=\,b=c", 5, r"expected \= in a value, found a lone ="),
        (r"a=b\c", 3, r"expected \\ in a value, found a lone \ "),
        ("a=b\\", 3, r"expected \\ in a value, found a lone \ "),
        ("a=b\\\n", 3, r"expected \\ in a value, found a lone \ "),
        ("a=\ud800", 2, "half a surrogate pair"),
    ],
)
def test_a_bad_field_selector_says_where_and_what_was_expected(
    text: str, position: int, complaint: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        FieldSelector.parse(text)
    assert complaint in f"{caught.value.message} "
    assert (caught.value.text, caught.value.position) == (text, position)


@pytest.mark.parametrize(
    "value, text",
    [
        (None, ""),
        ({}, ""),
        (FieldSelector.everything(), ""),
        ({"spec.nodeName": "a,b", "metadata.name": ""}, r"metadata.name=,spec.nodeName=a\,b"),
    ],
)
def test_what_stands_for_a_field_selector(value: FieldSelectorLike, text: str) -> None:
    assert field_selector(value) == text


@pytest.mark.parametrize(
    "value, complaint",
    [
        ({"spec.unschedulable": True}, "field 'spec.unschedulable': True is not text"),
        ({1: "a"}, "field 1: 'a' is not text"),
        ({"a b": "c"}, "'a b' is not a field"),
        ({"a": "\udfff"}, "half a surrogate pair"),
        (["a=b"], "['a=b'] is not a field selector"),
    ],
)
def test_what_is_no_field_selector_is_refused_by_name(value: object, complaint: str) -> None:
    with pytest.raises(SelectorError) as caught:
        field_selector(cast("FieldSelectorLike", value))
    assert complaint in str(caught.value)


def test_fields_know_two_operators_only() -> None:
    with pytest.raises(SelectorError, match="only = and !="):
        FieldRequirement("metadata.name", Operator.IN, "a")

"""`strip_managed_fields`: removes these bytes and nothing else, in any layout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinform import transforms
from kinform.objects.object import Object
from kinform.objects.storage import Codec
from kinform.sansio.wire.heads import Head
from kinform.transforms import strip_managed_fields

FIELDS: list[dict[str, Any]] = [
    {
        "manager": manager,
        "operation": "Update",
        "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:x": {}}}}},
        "subresource": "status",
    }
    for manager in ("kubelet", "kube-controller-manager")
]
POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web-0",
        "labels": {"app": "web"},
        "annotations": {"last": '{"metadata":{"a":1,"managedFields":[]}}'},
        "ownerReferences": [{"uid": "u", "finalizers": []}],
        "managedFields": FIELDS,
    },
    "spec": {"containers": [{"name": "a"}], "tolerations": []},
    "status": {"conditions": [{"type": "Ready"}]},
}
WIDGET: dict[str, Any] = {  # the names of custom resources are sorted
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"labels": {}, "managedFields": FIELDS, "name": "web-0", "uid": "u"},
    "spec": {},
}
LISTED = {key: POD[key] for key in ("metadata", "spec", "status")}
AS_WRITTEN = [
    json.dumps(document, separators=(",", ":")).encode() for document in (POD, WIDGET, LISTED)
]
"""As kube-apiserver writes it."""


def obj(text: str) -> Object:
    return Object(text.encode(), Head())


def stripped(text: str) -> str:
    return strip_managed_fields(obj(text)).raw.decode()


def without(document: Any) -> Any:
    """Return what the answer must mean: the same JSON without the one member."""
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        rest = {key: value for key, value in metadata.items() if key != "managedFields"}
        return {**document, "metadata": rest}
    return document


@pytest.mark.parametrize("raw", AS_WRITTEN, ids=["typed", "custom", "item of a list"])
def test_what_kube_apiserver_writes_is_cut_and_not_written_anew(raw: bytes) -> None:
    pod = Object.from_bytes(raw)
    bare = strip_managed_fields(pod)
    assert json.loads(bare.raw) == without(json.loads(raw))
    start = raw.index(b',"managedFields":')
    assert raw[:start] + raw[start + len(raw) - len(bare.raw) :] == bare.raw
    assert transforms._cut_at(raw, start + 1) == bare.raw  # the quick way


def test_kind_and_metadata_stay_the_very_same() -> None:
    pod = Object.from_dict(POD)
    bare = strip_managed_fields(pod)
    assert bare.metadata is pod.metadata
    assert (bare.api_version, bare.kind) == (pod.api_version, pod.kind)
    assert pod.at("metadata", "managedFields") == FIELDS
    assert bare.at("metadata", "managedFields") is None
    assert bare.to_dict("spec") == pod.to_dict("spec")


@pytest.mark.parametrize(
    "before, after",
    [
        ('{"metadata":{"a":1,"managedFields":[{}]},"x":2}', '{"metadata":{"a":1},"x":2}'),
        ('{"metadata":{"managedFields":[{}],"a":1}}', '{"metadata":{"a":1}}'),
        ('{"metadata":{"managedFields":[]}}', '{"metadata":{}}'),
        ('{"metadata":{"a":1,"managedFields":null}}', '{"metadata":{"a":1}}'),
        ('{"metadata":{"a":1,"managedFields":[],"name":"b"}}', '{"metadata":{"a":1,"name":"b"}}'),
        ('{"metadata":{"a":1,"managedFields":[["]"]]},"x":2}', '{"metadata":{"a":1},"x":2}'),
        ('{"metadata":{"a":1,"managedFields":["]"]},"x":2}', '{"metadata":{"a":1},"x":2}'),
        ('{"x":[1,2],"metadata":{"a":1,"managedFields":[]}}', '{"x":[1,2],"metadata":{"a":1}}'),
    ],
    ids=["last", "first", "only", "null", "sorted", "lists", "bracket in text", "metadata last"],
)
def test_it_goes_from_wherever_it_is(before: str, after: str) -> None:
    assert stripped(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"metadata":null}',
        '{"metadata":{}}',
        '{"metadata":{"a":"managedFields"}}',
        '{"metadata":{"a":",\\"managedFields\\":[]"}}',
        '{"metadata":{"x,\\"managedFields":[]}}',
        '{"metadata":{"a":1},"spec":{"b":1,"managedFields":[]}}',
        '{"metadata":{"a":1},"spec":{"metadata":{"b":1,"managedFields":[]}}}',
        '{"metadata":{"a":{"b":1,"managedFields":[]}}}',
        '{"metadata":{"a":[{"b":1,"managedFields":[]}]}}',
        '{"a":1,"managedFields":[]}',
        '{"metadata":["managedFields"]}',
    ],
)
def test_an_object_without_is_returned_itself(text: str) -> None:
    same = obj(text)
    assert strip_managed_fields(same) is same


def test_lookalikes_elsewhere_stay() -> None:
    """The metadata of a template within the object, and the same member of another object."""
    other = {"b": 1, "managedFields": FIELDS}
    document = {
        "metadata": {"name": "a", "managedFields": FIELDS},
        "spec": {"template": {"metadata": other}, "same": {"name": "a", "managedFields": FIELDS}},
        "managedFields": [],
    }
    for order in (sorted(document), sorted(document, reverse=True)):
        text = json.dumps({key: document[key] for key in order}, separators=(",", ":"))
        assert json.loads(stripped(text)) == without(document)


def test_all_of_a_name_that_is_repeated_go() -> None:
    for first in ("[]", "null", "[1]"):
        for sep in ("", ' "x": 1 ,'):
            text = f'{{"metadata":{{"a":1,"managedFields":{first},{sep}"managedFields":[2]}}}}'
            assert "managedFields" not in json.loads(stripped(text))["metadata"]


def test_metadata_written_twice_breaks_nothing() -> None:
    for second in ('{"b":1}', '{"b":1,"managedFields":[]}', "null"):
        text = f'{{"metadata":{{"a":1,"managedFields":[1]}},"metadata":{second}}}'
        assert without(json.loads(stripped(text))) == without(json.loads(text))


def test_an_object_too_deep_to_take_apart_stays_whole() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    text = f'{{"metadata":{{"managedFields":[]}},"spec":{deep}}}'
    assert stripped(text) == text


def test_a_packed_object_can_be_stripped() -> None:
    pod, expected = obj('{"metadata":{"a":1,"managedFields":[1]}}'), b'{"metadata":{"a":1}}'
    pod.pack(Codec().packer())
    assert strip_managed_fields(pod).raw == expected


keys = st.sampled_from(
    ["metadata", "managedFields", "name", "a", '","managedFields":[', '"managedFields"', "é", "]"]
)
texts = keys | st.text(alphabet='"\\[]{},:é ', max_size=5)
values = st.recursive(
    st.none() | st.integers(0, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=10,
)
metadata = st.lists(st.tuples(keys, values), max_size=6)
names = keys | st.just("metadata")
documents = st.lists(st.tuples(names, values | metadata.map(tuple)), max_size=5)
COMPACT = [("a", 1), ("managedFields", [1])]


def written(pairs: list[tuple[str, Any]], *, space: str, ascii_only: bool) -> str:
    """Write an object by hand, because its keys may come twice."""

    def text(value: Any) -> str:
        if isinstance(value, tuple):  # members, as they are listed
            return written(list(value), space=space, ascii_only=ascii_only)
        separators = (f"{space},{space}", f"{space}:{space}")
        return json.dumps(value, ensure_ascii=ascii_only, separators=separators)

    members = [f"{text(key)}{space}:{space}{text(value)}" for key, value in pairs]
    return f"{{{space}{f'{space},{space}'.join(members)}{space}}}"


@pytest.mark.slow
@given(documents, st.sampled_from(["", "", " ", "\n\t"]), st.booleans())
@example([("metadata", (*COMPACT,)), ("name", 1)], "", True)
@example([("metadata", (("a", 1),)), ("name", (*COMPACT,))], "", True)
@example([("metadata", (*COMPACT, ("b", 1), *COMPACT))], "", True)
def test_any_json_keeps_its_meaning(
    pairs: list[tuple[str, Any]], space: str, ascii_only: bool
) -> None:
    text = written(pairs, space=space, ascii_only=ascii_only)
    before, after = json.loads(text), json.loads(stripped(text))
    if [key for key, _ in pairs].count("metadata") > 1:
        assert without(after) == without(before)
    else:
        assert after == without(before)
        if after == before:
            assert stripped(text) == text

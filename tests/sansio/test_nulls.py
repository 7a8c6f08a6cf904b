"""A null among the metadata is a field that is not set, for objects, lists and models."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.clientset import core_v1
from kinform.errors import DecodeError
from kinform.meta import ListMeta, ObjectMeta
from kinform.objects.object import Object
from kinform.sansio.wire.heads import read_head, without_nulls
from kinform.sansio.wire.list import ListDecoder, ListHead
from kinform.sansio.wire.watch import WatchDecoder

METADATA: dict[str, Any] = {
    "name": "a",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 3,
    "generateName": "a-",
    "selfLink": "/api",
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "deletionTimestamp": "2026-01-02T03:04:06Z",
    "deletionGracePeriodSeconds": 30,
    "labels": {"app": "web", "tier": ""},
    "annotations": {"note": "é", "empty": ""},
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True},
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "2", "blockOwnerDeletion": True},
    ],
    "finalizers": ["x/y", ""],
    "managedFields": [{"manager": "me", "operation": "Apply", "fieldsV1": {"f:a": None}}],
}


def document(metadata: object, **more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, object], dict[str, object]]:
    """Return one object twice: some fields absent, and the same fields null."""
    unset = draw(st.sets(st.sampled_from(sorted(METADATA))))
    absent, null = copy.deepcopy(METADATA), copy.deepcopy(METADATA)
    for name in unset:
        del absent[name]
        null[name] = None
    for name in ("ownerReferences", "managedFields"):
        for one, other in zip(absent.get(name) or (), null.get(name) or (), strict=True):
            for field in draw(st.sets(st.sampled_from(sorted(one)))):
                del one[field]
                other[field] = None
    for name in ("labels", "annotations"):
        for key, value in (null.get(name) or {}).items():
            null[name][key] = value or None
    if null.get("finalizers"):
        null["finalizers"][1] = None
    first, second = document(absent, spec={"a": None}), document(null, spec={"a": None})
    for name in draw(st.sets(st.sampled_from(["apiVersion", "kind", "metadata"]))):
        del first[name]
        second[name] = None
    return first, second


def read_all(raw: bytes) -> list[object]:
    """Return an object's head as each way in reads it."""
    frames = WatchDecoder().feed(b'{"type":"ADDED","object":%b}\n' % raw)
    typed, plain = ListDecoder(), ListDecoder()
    body = b'{"kind":%b,"apiVersion":"v1","metadata":{},"items":[%b]}'
    items = plain.feed(body % (b'"List"', b",".join([raw] * 3)))
    named = typed.feed(body % (b'"ConfigMapList"', b",".join([raw] * 3)))
    assert isinstance(plain.finish(), ListHead)
    assert isinstance(typed.finish(), ListHead)
    for item in named:  # what is kept must read as it was read
        assert item.head is not None
        assert read_head(item.raw) == item.head
    return [
        read_head(raw),
        *((frame.type, frame.head) for frame in frames),
        *(item.head for item in (*items, *named)),
    ]


@pytest.mark.slow
@given(pairs())
def test_null_fields_of_metadata_read_as_absent_fields(
    pair: tuple[dict[str, object], dict[str, object]],
) -> None:
    absent, null = (encoded(one) for one in pair)
    assert read_all(null) == read_all(absent)
    expected, found = Object.from_bytes(absent), Object.from_bytes(null)
    assert found.annotations == expected.annotations
    assert found.at("spec") == expected.at("spec") == {"a": None}


class Model(msgspec.Struct):
    metadata: ObjectMeta
    spec: dict[str, str | None] = {}


@dataclass
class Inner:
    name: str = ""
    generation: int = 0


@dataclass
class Plain:
    metadata: Inner


@given(pairs())
def test_models_read_null_fields_of_metadata_as_absent_fields(
    pair: tuple[dict[str, object], dict[str, object]],
) -> None:
    absent, null = (Object.from_bytes(encoded({"metadata": {}, **one})) for one in pair)
    if absent["metadata"] is None or null["metadata"] is None:
        return
    for model in (Model, Plain, core_v1.ConfigMap):
        assert null.decode(model) == absent.decode(model)


def test_null_that_is_a_mistake_elsewhere_is_still_reported() -> None:
    raw = encoded(document({"name": "a", "uid": None, "labels": {"x": 5, "y": None}}))
    with pytest.raises(DecodeError) as caught:
        read_head(raw)
    assert (caught.value.message, caught.value.key) == ("Expected `str`, got `int`", "a")


def test_head_read_past_nulls_keeps_no_other_bytes_alive() -> None:
    raw = encoded(document({"name": "a", "uid": None, "annotations": {"x": "y"}}, data={"a": "b"}))
    head = read_head(raw)
    assert head.spec is head.status is msgspec.UNSET
    assert head.metadata.annotations == {"x": "y"}
    held = head.metadata.raw_annotations
    assert isinstance(held, msgspec.Raw)
    assert bytes(held) == b'{"x":"y"}'


def test_null_outside_of_metadata_stays() -> None:
    assert without_nulls(b'{"metadata":{"name":"a"},"spec":null}') is None
    clean = without_nulls(b'{"spec":null,"metadata":{"uid":null},"status":{"a":null}}')
    assert clean == b'{"spec":null,"metadata":{},"status":{"a":null}}'


LIST = b'{"kind":"PodList","apiVersion":"v1","metadata":%b,"items":%b}'


@pytest.mark.parametrize(
    "metadata, expected",
    [
        (b"null", ListMeta()),
        (b'{"resourceVersion":"7","continue":null}', ListMeta("7")),
        (b'{"resourceVersion":null,"continue":"x"}', ListMeta("", "x")),
        (b'{"resourceVersion":"7","remainingItemCount":null,"selfLink":null}', ListMeta("7")),
    ],
)
@pytest.mark.parametrize("items", [b"[]", b"null"])
def test_null_fields_of_list_metadata_read_as_absent_fields(
    metadata: bytes, expected: ListMeta, items: bytes
) -> None:
    decoder = ListDecoder()
    assert decoder.feed(LIST % (metadata, items)) == []
    assert decoder.finish() == ListHead("v1", "PodList", expected)


def test_list_metadata_of_another_type_is_refused() -> None:
    decoder = ListDecoder()
    decoder.feed(LIST % (b'{"continue":7}', b"[]"))
    with pytest.raises(DecodeError, match=r"\$\.metadata\.continue"):
        decoder.finish()


@pytest.mark.parametrize("damage", [b"\x01", b"\xff", b'"'])
@pytest.mark.parametrize("labels", ["null", "7", "{}"])
def test_damaged_bytes_behind_a_null_or_a_wrong_type_count_as_damaged(
    labels: str, damage: bytes
) -> None:
    """The decoder stops at the first type error; an event that is damaged is asked for again."""
    raw = f'{{"metadata":{{"name":"a","labels":{labels}}},"spec":{{"text":"?"}}}}'.encode()
    with pytest.raises(DecodeError) as caught:
        read_head(raw.replace(b"?", damage))
    assert caught.value.is_damaged


def test_a_wrong_type_in_whole_json_is_not_damage() -> None:
    with pytest.raises(DecodeError) as caught:
        read_head(b'{"metadata":{"name":"a","labels":7}}')
    assert not caught.value.is_damaged

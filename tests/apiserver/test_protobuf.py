"""Protobuf: what Go's encoders wrote is read as the JSON that they write of the same object.

``data_protobuf.json`` has objects in both forms, from the serializers of k8s.io/apimachinery. The
texts of refusals are those that a real server answered.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.serializer import decoding, protobuf
from kinform.apiserver.serializer.json_values import Json

PAIRS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("data_protobuf.json").read_text(encoding="utf-8")
)
BODIES = {pair["name"]: base64.b64decode(pair["protobuf"]) for pair in PAIRS}


def decode(body: bytes, kind: str = "ConfigMap") -> Json:
    return decoding.decode(body, protobuf.MEDIA_TYPE, kind=kind, api_version="v1")[0]


def refusal(body: bytes, kind: str = "ConfigMap") -> str:
    with pytest.raises(StatusError) as caught:
        decode(body, kind)
    assert caught.value.code == 400
    return caught.value.message


def outcome(body: bytes, kind: str) -> int:
    try:
        decode(body, kind)
    except StatusError as exc:
        return exc.code
    return 200


def config_map(raw: bytes) -> bytes:
    return b"k8s\0\n\0\x12" + bytes([len(raw)]) + raw


def without_nulls(value: Any) -> Any:
    """A field that is null is one that is not there; Go writes it, the server drops it."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair["name"]))
def test_an_object_is_read_as_the_json_that_go_writes_of_it(pair: dict[str, Any]) -> None:
    found = decode(base64.b64decode(pair["protobuf"]), pair["name"])
    assert without_nulls(found) == without_nulls(pair["json"])


def test_zero_stays_where_it_was_meant_and_goes_where_it_is_only_empty() -> None:
    deployment = decode(BODIES["Deployment"], "Deployment")
    assert deployment["spec"]["replicas"] == 0
    assert "minReadySeconds" not in deployment["spec"]
    assert "generation" not in deployment["metadata"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty data (<empty>)"),
        (
            b"{}",
            (
                "provided data does not appear to be a protobuf message, "
                "expected prefix [107 56 115 0] ({})"
            ),
        ),
        (b"k8s\0", "empty body (6b387300)"),
        (b"k8s\0\n", "unexpected EOF (6b3873000a)"),
    ],
)
def test_a_body_without_an_envelope_is_unrecognized(body: bytes, why: str) -> None:
    expected = f"the object provided is unrecognized (must be of type ConfigMap): {why}"
    assert refusal(body) == expected


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\n\x05", "unexpected EOF"),
        (b"\x08\x05", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x0c", "proto: ConfigMap: wiretype end group for non-group"),
        (b"\x02", "proto: ConfigMap: illegal tag 0 (wire type 2)"),
        (b"\n\x01\x0f", "proto: wrong wireType = 7 for field Name"),
        (b"\n" + b"\xff" * 10 + b"\x01", "proto: integer overflow"),
        (b"\xfe\x7f\x01", "proto: illegal wireType 6"),
        (b"\xfb\x7f", "unexpected EOF"),
    ],
)
def test_a_broken_object_is_refused_in_the_words_of_go(raw: bytes, why: str) -> None:
    start = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
    assert refusal(config_map(raw)) == start + why


def test_delete_options_are_refused_with_the_bare_text() -> None:
    body = b"k8s\0\n\0\x12\x02\x0a\x00"
    assert refusal(body, "") == "proto: wrong wireType = 2 for field GracePeriodSeconds"


def test_an_object_that_does_not_name_its_kind_is_of_the_kind_of_the_path() -> None:
    assert decode(config_map(b"\n\x03\n\x01e")) == {"metadata": {"name": "e"}}


def test_unknown_fields_and_groups_are_skipped() -> None:
    unknown = b"2\x02\x08\x05" + b"\xfb\x7f\x08\x01\xfc\x7f" + b"\xf9\x7f" + b"\0" * 8
    assert decode(config_map(unknown + b"\n\x03\n\x01e")) == {"metadata": {"name": "e"}}


def test_the_last_of_two_values_counts_and_two_messages_are_one() -> None:
    raw = b"\n\x03\n\x01a" + b"\n\x03\x1a\x01n" + b"\n\x02\n\x00"
    assert decode(config_map(raw)) == {"metadata": {"namespace": "n"}}


def test_a_custom_object_cannot_be_protobuf() -> None:
    with pytest.raises(StatusError) as caught:
        decoding.decode(BODIES["Namespace"], protobuf.MEDIA_TYPE, kind="Widget", is_custom=True)
    assert caught.value.code == 415


def test_endless_nesting_is_refused() -> None:
    raw = b""
    # A schema's "not" again and again, then the way to it from a CustomResourceDefinition.
    for tag in [b"\xe2\x01"] * 3000 + [b"\n", b"\x22", b"\x3a", b"\x12"]:
        size = len(raw)
        raw = tag + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + raw
    envelope = protobuf.Envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw)
    with pytest.raises(protobuf.WireError, match="depth"):
        protobuf.read(envelope, kind="")


@given(st.sampled_from(sorted(BODIES)), st.data())
def test_broken_bodies_are_refused_or_read_and_nothing_else(name: str, data: st.DataObject) -> None:
    body = bytearray(BODIES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(bytes(body), name) in {200, 400}


@given(st.binary(max_size=200))
@example(b"\n\x02\n\x00")
def test_random_bytes_are_refused_or_read_and_nothing_else(raw: bytes) -> None:
    for kind in (b"Pod", b"Event"):
        head = b"k8s\0\n\x0b\n\x02v1\x12" if kind == b"Event" else b"k8s\0\n\x09\n\x02v1\x12"
        size = bytes([len(raw) & 0x7F | 0x80, len(raw) >> 7])
        body = head + bytes([len(kind)]) + kind + b"\x12" + size + raw
        assert outcome(body, "ConfigMap") in {200, 400}

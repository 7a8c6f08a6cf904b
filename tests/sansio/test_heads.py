"""The head of an object: what is read of it, and what is said of one that cannot be read."""

from __future__ import annotations

import gc

import pytest

from kinform.errors import DecodeError
from kinform.meta import ObjectMeta
from kinform.sansio.wire.heads import Body, Head, decode_error, read_head, salvage, try_head

POD = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop","uid":"u",'
    b'"resourceVersion":"7","labels":{"app":"web"}},"spec":{"x":[1,{"y":null}]}}'
)
DEEP = b"[" * 1_000_000 + b"]" * 1_000_000  # Python 3.14 reads 100,000


def test_head_holds_kind_and_metadata() -> None:
    head = read_head(POD)
    assert (head.api_version, head.kind) == ("v1", "Pod")
    assert str(head.metadata.key) == "shop/web-0"
    assert head.metadata.labels == {"app": "web"}
    assert Body(POD, head).head is head


def test_empty_object_has_an_empty_head() -> None:
    assert read_head(b"{}") == Head("", "", ObjectMeta())


def test_head_adds_nothing_for_the_garbage_collector() -> None:
    assert not gc.is_tracked(read_head(POD))


def annotated(annotations: bytes) -> Head:
    return read_head(POD.replace(b'{"app":"web"}', b'{"app":"web"},"annotations":' + annotations))


def test_annotations_are_read_when_somebody_looks() -> None:
    assert annotated(b'{"a":"1","b":"\\u00e9"}').metadata.annotations == {"a": "1", "b": "é"}
    assert annotated(b"null").metadata.annotations == {}
    assert annotated(b"{}").metadata == read_head(POD).metadata


@pytest.mark.parametrize(
    "annotations, message, path",
    [
        (b'{"a":5}', "Expected `str`, got `int`", "$.metadata.annotations[...]"),
        (b"[]", "Expected `object | null`, got `array`", "$.metadata.annotations"),
    ],
)
def test_annotations_that_are_none_cost_nothing_else(
    annotations: bytes, message: str, path: str
) -> None:
    head = annotated(annotations)
    assert head.metadata.labels == {"app": "web"}
    with pytest.raises(DecodeError) as caught:
        _ = head.metadata.annotations
    assert (caught.value.message, caught.value.path) == (message, path)
    assert caught.value.key == "shop/web-0"


def poisoned(spec: bytes) -> bytes:
    return POD.replace(b'{"x":[1,{"y":null}]}', spec)


@pytest.mark.parametrize(
    "raw, message, path",
    [
        (poisoned(DEEP), "the object nests deeper than this Python can read", ""),
        (poisoned(b'"\xff"'), "invalid UTF-8 at byte 142", ""),
        (POD.replace(b'"web"', b'"\xed\xa0\x80"'), "invalid UTF-8 at byte 127", ""),
        (POD.replace(b'"web"', b"1"), "Expected `str`, got `int`", "$.metadata.labels[...]"),
        (poisoned(b"NaN"), "JSON is malformed: invalid character (byte 141)", ""),
    ],
    ids=["deep", "utf-8 skipped", "utf-8 read", "type", "syntax"],
)
def test_unreadable_object_is_named_but_not_quoted(raw: bytes, message: str, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_head(raw)
    assert (caught.value.message, caught.value.path) == (message, path)
    assert caught.value.key == "shop/web-0"


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{", b"{}{}", b"<html>"], ids=repr)
def test_what_is_no_object_has_neither_head_nor_key(raw: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        read_head(raw)
    assert caught.value.key == ""


def test_returned_error_keeps_nothing_alive() -> None:
    error = try_head(poisoned(DEEP))
    assert isinstance(error, DecodeError)
    assert error.__traceback__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    "metadata, expected",
    [
        (b'{"name":"a","namespace":"b","labels":7}', ("a", "b")),
        (b'{"name":5,"namespace":"b"}', ("", "b")),
        (b'{"name":"\xff"}', ("", "")),
        (b'{"name":"a","namespace":"\xff"}', ("", "")),
        (b'{"name":"a","namespace":7}', ("", "")),
        (b'{"name":"a","names\xfface":"b"}', ("", "")),
        (b'{"name":"a","namespace":"b","la\xffels":{}}', ("a", "b")),
        (b'{"name":"a","namespace":null}', ("a", "")),
        (b'{"name":"a","namespace":""}', ("a", "")),
        (b'{"name":"\\u0061"}', ("a", "")),
        (b'{"name"', ("", "")),
        (b"7", ("", "")),
    ],
)
def test_salvage_reads_each_field_by_itself(metadata: bytes, expected: tuple[str, str]) -> None:
    saved = salvage(b'{"metadata":' + metadata + b"}")
    assert (saved.name, saved.namespace) == expected


def test_salvage_gives_what_a_watch_needs_to_go_on() -> None:
    saved = salvage(poisoned(DEEP))
    assert (saved.uid, saved.resource_version) == ("u", "7")
    assert salvage(b"{}") == ObjectMeta()


def test_namespace_without_a_name_is_no_key() -> None:
    error = try_head(b'{"metadata":{"namespace":"shop","name":1}}')
    assert isinstance(error, DecodeError)
    assert error.key == ""


def test_depth_of_other_documents_is_explained_too() -> None:
    assert "deeper" in decode_error(RecursionError()).message

"""The structural scanner: where a JSON value ends, whatever pieces it arrives in."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.sansio.wire.scan import Cursor, Scanner, members, skip_whitespace
from tests.support.growth import assert_linear

VALUES = [
    b"{}",
    b"[]",
    b'""',
    b'"a{b"',
    b'"\\""',
    b'"\\\\"',
    b'"a\\u0022b\\\\\\""',
    b'{"a":[{"b":"}"},[[]],{"c":"\\"]}"}],"d":"{"}',
    b'[1,-2.5e3,true,null,"x"]',
    '{"é":"\u0085\u2028🜁"}'.encode(),
]

texts = st.text(alphabet=st.sampled_from('{}[]":,\\ aé\n\u0085\u2028🜁'), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def scan_pieces(pieces: list[bytes]) -> int:
    """Return the end as an offset into all the pieces, -1 if they do not hold it."""
    scanner = Scanner()
    before = 0
    for piece in pieces:
        end = scanner.scan(piece)
        if end >= 0:
            return before + end
        before += len(piece)
    return -1


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_end_is_found_at_every_split(value: bytes) -> None:
    text = value + b',"next'
    for cut in range(len(text) + 1):
        assert scan_pieces([text[:cut], text[cut:]]) == len(value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_end_is_found_byte_by_byte(value: bytes) -> None:
    assert scan_pieces([value[i : i + 1] for i in range(len(value))]) == len(value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_no_proper_prefix_has_an_end(value: bytes) -> None:
    for cut in range(len(value)):
        assert scan_pieces([value[:cut]]) == -1


@pytest.mark.slow
@given(value=values, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]), data=st.data())
def test_any_json_value_ends_where_the_encoder_ended_it(
    value: object, ascii_only: bool, indent: int | None, data: st.DataObject
) -> None:
    encoded = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    text = encoded + b" ]"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert scan_pieces(pieces) == len(encoded)


@pytest.mark.parametrize("scalar", [b"0", b"-12.5e3", b"true", b"null"])
@pytest.mark.parametrize("after", [b",", b"}", b"]", b" ", b"\n", b":", b'"'])
def test_scalar_ends_only_when_the_byte_after_it_is_seen(scalar: bytes, after: bytes) -> None:
    scanner = Scanner()
    assert scanner.scan(scalar) == -1
    assert scanner.scan(after) == 0
    scanner.reset()
    assert scanner.scan(scalar + after) == len(scalar)


@pytest.mark.parametrize("byte", [b"}", b"]", b",", b":"])
def test_what_cannot_start_a_value_ends_where_it_starts(byte: bytes) -> None:
    assert Scanner().scan(b"  " + byte, 2) == 2


def test_nothing_to_scan_changes_nothing() -> None:
    scanner = Scanner()
    assert scanner.scan(b"") == -1
    assert scanner.scan(b"ab", 2) == -1
    assert scanner.scan(b"[") == -1
    assert scanner.scan(b"") == -1
    assert scanner.scan(b"]") == 1


def test_escape_whose_partner_is_late_survives_an_empty_piece() -> None:
    assert scan_pieces([b'["\\', b"", b'"', b'"', b"]"]) == 6


def test_depth_is_no_limit() -> None:
    depth = 200_000
    text = b"[" * depth + b"]" * depth
    assert Scanner().scan(text) == len(text)


def test_string_of_escapes_needs_no_memory() -> None:
    text = b'["' + b'\\"' * 500_000 + b'"]'
    tracemalloc.start()
    try:
        assert Scanner().scan(text) == len(text)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [b'{"a":"b"},', b'"' + b"x" * 900 + b'",', b'"' + b'\\"' * 500],
    ids=["flat", "long", "open"],
)
def test_time_is_linear(unit: bytes) -> None:
    def scanning(size: int) -> Callable[[], object]:
        text = b"[" + unit * (size // len(unit))
        pieces = [text[i : i + 4096] for i in range(0, len(text), 4096)]
        return lambda: scan_pieces(pieces)

    assert_linear(scanning, 40_000)


@pytest.mark.parametrize("text", [b"", b" \t\r\n"])
def test_whitespace_may_be_everything(text: bytes) -> None:
    assert skip_whitespace(text) == len(text)


def test_whitespace_of_other_alphabets_is_not_skipped() -> None:
    for space in ("\u0085", "\u00a0", "\u2028", "\x0b", "\x0c"):
        assert skip_whitespace(b" " + space.encode()) == 1


def test_members_gives_the_span_of_each_value() -> None:
    text = b' { "a" : [1, {"a": 2}] , "b":"x","c\\"":null,"d": 5} \n'
    spans = members(text)
    assert {key: text[a:b] for key, (a, b) in spans.items()} == {
        b"a": b'[1, {"a": 2}]',
        b"b": b'"x"',
        b'c\\"': b"null",
        b"d": b"5",
    }


@pytest.mark.parametrize("text", [b"{}", b" { } "])
def test_members_of_nothing_are_none(text: bytes) -> None:
    assert members(text) == {}


def test_last_of_two_equal_keys_counts() -> None:
    assert members(b'{"a":1,"a":22}') == {b"a": (11, 13)}


@pytest.mark.parametrize(
    "text",
    [
        *[
            b"",
            b" ",
            b"[]",
            b"1",
            b"{",
            b'{"a',
            b'{"a"',
            b'{"a":',
            b'{"a":1',
            b'{"a":1,',
            b'{"a":1,}',
        ],
        *[
            b"{1:2}",
            b'{"a" 1}',
            b'{"a":}',
            b'{"a":1 2}',
            b'{"a":1}}',
            b'{"a":1} x',
            b"{,}",
            b"{a:1}",
        ],
    ],
    ids=repr,
)
def test_members_refuses_what_is_no_object(text: bytes) -> None:
    with pytest.raises(ValueError):
        members(text)


def test_cursor_reads_values_as_they_arrive() -> None:
    cursor = Cursor()
    assert cursor.peek() == -1
    cursor.data += b'  {"a":'
    assert cursor.peek() == ord("{")
    assert cursor.left == 5
    assert cursor.value_end() == -1
    cursor.compact()
    assert bytes(cursor.data) == b'{"a":'
    assert cursor.value_end() == -1
    cursor.data += b"1} [2]"
    assert cursor.take(cursor.value_end()) == b'{"a":1}'
    assert cursor.peek() == ord("[")
    assert cursor.take(cursor.value_end()) == b"[2]"
    cursor.compact()
    assert cursor.left == 0


def test_moving_on_forgets_the_value_at_hand() -> None:
    cursor = Cursor()
    cursor.data += b'"ab'
    assert cursor.value_end() == -1
    cursor.data += b"[1]"
    cursor.move(3)
    assert cursor.value_end() == 6

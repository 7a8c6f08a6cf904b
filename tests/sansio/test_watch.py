"""Watch frames: the same for every split of the bytes, and nothing lost around what is broken."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinform.errors import DecodeError, ResourceExpiredError, api_error
from kinform.sansio.wire.heads import Head
from kinform.sansio.wire.watch import EventType, Frame, WatchDecoder
from tests.support.growth import assert_linear

DEEP = b'{"metadata":{"name":"deep","namespace":"ns"},"spec":' + b"[" * 10**6 + b"]" * 10**6 + b"}"
GONE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}'
)


def pod(name: str, **more: object) -> bytes:
    metadata = {"name": name, "namespace": "shop", "resourceVersion": "7"}
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **more}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def event(raw: bytes, event_type: str = "MODIFIED") -> bytes:
    return b'{"type":"%b","object":%b}' % (event_type.encode(), raw)


def frames_of(*pieces: bytes) -> list[Frame]:
    """Return all frames of a stream that must be sound."""
    decoder = WatchDecoder()
    frames = [frame for piece in pieces for frame in decoder.feed(piece)]
    frames += decoder.finish()
    assert decoder.failure is None
    assert decoder.truncated == 0
    return frames


def raws(*pieces: bytes) -> list[bytes]:
    return [frame.raw for frame in frames_of(*pieces)]


# --- events as servers write them --------------------------------------------------------------


@pytest.mark.parametrize("event_type", EventType)
def test_frame_has_type_bytes_and_head(event_type: EventType) -> None:
    (frame,) = frames_of(event(pod("a"), event_type) + b"\n")
    assert frame.type is event_type
    assert frame.raw == pod("a")
    assert frame.error is None
    assert isinstance(frame.head, Head)
    assert (frame.head.kind, str(frame.head.metadata.key)) == ("Pod", "shop/a")


def test_types_may_change_from_event_to_event() -> None:
    types = ["ADDED", "MODIFIED", "MODIFIED", "BOOKMARK", "DELETED", "ADDED", "ERROR"]
    frames = frames_of(b"".join(event(b"{}", name) + b"\n" for name in types))
    assert [frame.type for frame in frames] == types


@pytest.mark.parametrize(
    "line",
    [
        b'{"object":%b,"type":"MODIFIED"}',
        b'{"type": "MODIFIED", "object": %b}',
        b' { "type" : "MODIFIED" , "object" : %b } ',
        b'{"type":"MODIFIED","object":%b }',
        b'{"type":"MODIFIED","object":%b,"extra":{"object":{}}}',
        b'{"apiVersion":"v1","type":"MODIFIED","object":%b}',
        b'{"\\u0074ype":"MODI\\u0046IED","object":%b}',
        b'{"type":"ADDED","object":{"a":1},"object":%b,"type":"MODIFIED"}',
    ],
)
def test_envelope_may_be_laid_out_in_any_way(line: bytes) -> None:
    raw = pod("a", note='{"type":"ADDED","object":{}}')
    for text in (line % raw + b"\n", line % raw):
        assert [(EventType.MODIFIED, raw)] == [(f.type, f.raw) for f in frames_of(text)]


def test_what_else_an_envelope_holds_need_not_be_readable() -> None:
    for extra in (b"NaN", DEEP):
        (frame,) = frames_of(event(pod("a"))[:-1] + b',"extra":' + extra + b"}\n")
        assert (frame.raw, frame.error) == (pod("a"), None)


@pytest.mark.parametrize(
    "end", [b"\n", b"", b"\r\n", b"\n\n \r\n", b" ", b"\t\n", b"\n\r"], ids=repr
)
def test_events_may_be_separated_in_any_way(end: bytes) -> None:
    expected = [pod("a"), pod("b"), pod("c")]
    assert raws(b"".join(event(raw) + end for raw in expected)) == expected


@pytest.mark.parametrize("lead", [b" ", b"\n", b"\r\n\r\n", b"\t"], ids=repr)
def test_space_before_an_event_is_skipped(lead: bytes) -> None:
    assert raws(lead + event(pod("a"))) == [pod("a")]
    assert raws(lead, event(pod("a"))) == [pod("a")]


@pytest.mark.parametrize("blank", [b"", b"\n", b" ", b"\r\n", b" \n \t\r\n"], ids=repr)
def test_blank_stream_has_no_frames_and_no_complaint(blank: bytes) -> None:
    assert frames_of(blank) == []
    assert frames_of(blank, blank) == []


LINE_ENDS = ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\ufeff", "🜁"]


@pytest.mark.parametrize("char", LINE_ENDS, ids=ascii)
def test_only_the_byte_0a_is_a_line_end(char: str) -> None:
    """F-R25: tenants put such characters into annotations."""
    raw = pod("a", note=f"x{char}y")
    stream = event(raw) + b"\n"
    for cut in range(len(stream)):
        assert raws(stream[:cut], stream[cut:]) == [raw]


def test_newline_inside_a_string_is_escaped_and_so_no_line_end() -> None:
    assert raws(event(pod("a", note="x\ny")) + b"\n") == [pod("a", note="x\ny")]


# --- promptness and memory ---------------------------------------------------------------------


def test_complete_event_is_not_held_back_for_its_newline() -> None:
    decoder = WatchDecoder()
    text = event(pod("a"))
    assert decoder.feed(text[:-1]) == []
    assert len(decoder.feed(text[-1:])) == 1
    assert decoder.feed(b"\n") == []
    assert len(decoder.feed(text + b"\r")) == 1


def test_server_without_newlines_is_served_as_promptly() -> None:
    decoder = WatchDecoder()
    a, b = event(pod("a")), event(pod("b"))
    assert len(decoder.feed(a + b)) == 2
    assert len(decoder.feed(a + b[:20])) == 1
    assert len(decoder.feed(b[20:])) == 1


def test_frames_do_not_keep_the_input_alive() -> None:
    piece = event(pod("a")) + b"\n" + event(DEEP) + b"\n" + event(pod("b"))[:50]
    decoder = WatchDecoder()
    before = sys.getrefcount(piece)
    assert len(decoder.feed(piece)) == 2
    assert sys.getrefcount(piece) == before


def test_repr_shows_no_payload() -> None:
    (frame,) = frames_of(event(pod("a", data="s3cret")))
    assert repr(frame) == f"<Frame MODIFIED shop/a {len(frame.raw)} bytes>"
    (poison,) = frames_of(event(pod("a", data="s3cret") + b" ").replace(b'"7"', b"7"))
    assert "s3cret" not in repr(poison)
    assert "shop/a" in repr(poison)


# --- ERROR events ------------------------------------------------------------------------------


def test_error_frame_carries_the_servers_status() -> None:
    (frame,) = frames_of(event(GONE, "ERROR") + b"\n")
    assert isinstance(api_error(frame.status()), ResourceExpiredError)


@pytest.mark.parametrize(
    "raw", [pod("a"), b"{}", GONE.replace(b"410", b'"410"'), GONE.replace(b"{}", b"7")], ids=repr
)
def test_error_frame_without_a_status_says_so(raw: bytes) -> None:
    (frame,) = frames_of(event(raw, "ERROR") + b"\n")
    with pytest.raises(DecodeError):
        frame.status()


# --- poison objects (F-R27) --------------------------------------------------------------------

POISON = {
    "deep": DEEP,
    "utf-8": pod("deep").replace(b'"7"', b'"7","x":"\xff\xfe"'),
    "surrogates": pod("deep").replace(b'"7"', b'"7","x":"\xed\xa0\x80"'),
    "types": pod("deep").replace(b'"7"', b"7"),
    "labels": pod("deep").replace(b'"7"', b'"7","labels":[]'),
    "NaN": pod("deep").replace(b'"7"', b'"7","x":NaN'),
    "raw control character": pod("deep").replace(b'"7"', b'"7","x":"\x01"'),
    "brackets that do not match": pod("deep").replace(b'"7"', b'"7","x":[}'),
}


@pytest.mark.parametrize("raw", POISON.values(), ids=POISON)
@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline", "no newline"])
def test_poison_object_is_a_frame_and_the_stream_goes_on(raw: bytes, end: bytes) -> None:
    before, poison, after = frames_of(end.join([event(pod("a")), event(raw), event(pod("b")), b""]))
    assert (before.raw, after.raw) == (pod("a"), pod("b"))
    assert (poison.type, poison.raw, poison.head) == (EventType.MODIFIED, raw, None)
    assert isinstance(poison.error, DecodeError)
    assert poison.error.key in {"shop/deep", "ns/deep"}
    assert poison.error.__traceback__ is None


@pytest.mark.parametrize("raw", [b'{"metadata":{"name":null,"uid":7}}', b'{"x":NaN}'])
def test_poison_object_without_a_name_has_no_key(raw: bytes) -> None:
    (poison,) = frames_of(event(raw) + b"\n")
    assert poison.error is not None
    assert poison.error.key == ""


# --- broken streams ----------------------------------------------------------------------------

BROKEN = {
    "html": (b"<html><body>Log in</body></html>", "not a JSON object"),
    "array": (b"[]", "not a JSON object"),
    "number": (b"5", "not a JSON object"),
    "byte order mark": (b"\xef\xbb\xbf" + event(b"{}"), "not a JSON object"),
    "closing brace": (b"}", "not a JSON object"),
    "cut line": (b'{"type":"ADDED","object":{"a"', "malformed"),
    "newline in a string": (b'{"type":"ADDED","object":{"a":"x\ny"}}', "malformed"),
    "brackets that do not match": (b'{"type":"ADDED","object":{"a":[}', "malformed"),
    "two commas": (b'{"type":"ADDED","object":{"a":1,,', "malformed"),
    "unknown type": (event(b"{}", "SYNC"), "unknown type"),
    "lower case type": (event(b"{}", "added"), "unknown type"),
    "no type": (b'{"object":{}}', "unknown type"),
    "type of another type": (b'{"type":1,"object":{}}', "unknown type"),
    "no object": (b'{"type":"ADDED"}', "without an object"),
    "null object": (b'{"type":"ADDED","object":null}', "without an object"),
    "array object": (b'{"type":"ADDED","object":[]}', "without an object"),
    "empty": (b"{}", "malformed"),
    "a Status by itself": (GONE, "unknown type"),
    "no colon": (b'{"type" "ADDED"}', "malformed"),
}


@pytest.mark.parametrize("text, message", BROKEN.values(), ids=BROKEN)
def test_broken_stream_fails_behind_its_last_good_frame(text: bytes, message: str) -> None:
    decoder = WatchDecoder()
    stream = (
        event(pod("a")) + b"\n" + event(pod("b")) + b"\n" + text + b"\n" + event(pod("c")) + b"\n"
    )
    assert [frame.raw for frame in decoder.feed(stream)] == [pod("a"), pod("b")]
    assert decoder.failure is not None
    assert message in str(decoder.failure)
    with pytest.raises(DecodeError, match=message):
        decoder.feed(event(pod("d")))
    with pytest.raises(DecodeError, match=message):
        decoder.finish()


def test_what_is_no_event_fails_without_waiting_for_a_newline() -> None:
    decoder = WatchDecoder()
    assert decoder.feed(b"  <!DOCTYPE html>") == []
    assert decoder.failure is not None


def has_failed(decoder: WatchDecoder) -> bool:
    return decoder.failure is not None


def test_broken_line_fails_at_its_newline_unless_more_lines_could_complete_it() -> None:
    decoder = WatchDecoder()
    assert decoder.feed(b'{"type":"ADDED","object":{"a":"x') == []
    assert not has_failed(decoder)
    assert decoder.feed(b"\n") == []
    assert has_failed(decoder)
    decoder = WatchDecoder()
    assert decoder.feed(b'{"type":"ADDED","object":{"a":[\n') == []
    assert not has_failed(decoder)
    # The next event could still be an element of that array, the one after it could not.
    assert decoder.feed(event(pod("a")) + b"\n") == []
    assert not has_failed(decoder)
    assert decoder.feed(event(pod("b")) + b"\n") == []
    assert has_failed(decoder)


def test_failure_holds_no_payload() -> None:
    decoder = WatchDecoder()
    decoder.feed(b'{"type":"s3cret","object":{"s3cret":1}}\n')
    assert "s3cret" not in f"{decoder.failure!s} {decoder.failure!r}"


def test_failure_at_the_very_end_comes_with_the_frames_before_it() -> None:
    decoder = WatchDecoder()
    assert decoder.feed(event(pod("a")) + b"{ ") == []
    frames = decoder.finish()
    assert [frame.raw for frame in frames] == [pod("a")]
    assert decoder.truncated == 2
    decoder = WatchDecoder()
    assert decoder.feed(event(pod("a")) + b"nonsense") == []
    assert len(decoder.finish()) == 1
    assert decoder.failure is not None


# --- the frame limit ---------------------------------------------------------------------------


def test_frame_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    text = event(pod("a"))
    for end in (b"\n", b"", b"     \r\n"):
        assert len(WatchDecoder(max_frame=len(text)).feed(text + end)) == 1
        decoder = WatchDecoder(max_frame=len(text) - 1)
        assert decoder.feed(text + end) == []
        assert f"larger than {len(text) - 1} bytes" in str(decoder.failure)


def test_limit_strikes_as_soon_as_it_is_passed() -> None:
    decoder = WatchDecoder(max_frame=1000)
    decoder.feed(b'{"type":"ADDED","object":{"a":"')
    fed = 31
    while decoder.failure is None:
        decoder.feed(b"x" * 10)
        fed += 10
    assert 1000 < fed <= 1010


def test_limit_is_of_one_event_not_of_a_line_of_many() -> None:
    text = event(pod("a"))
    for end in (b"", b"\n"):
        decoder = WatchDecoder(max_frame=len(text) + 5)
        assert len(decoder.feed(text * 10 + end)) == 10
        assert len(decoder.feed(text * 10 + b" {")) == 10
        assert decoder.failure is None


# --- every split gives the same ----------------------------------------------------------------

Outcome = tuple[list[tuple[EventType, bytes, str, "Head | None"]], str, int]


def outcome(pieces: Iterable[bytes], max_frame: int = 1 << 26) -> Outcome:
    """Return all there is to see of a stream, to its end or its failure."""
    decoder = WatchDecoder(max_frame=max_frame)
    frames: list[Frame] = []
    for piece in pieces:
        frames += decoder.feed(piece)
        if decoder.failure:
            break
    if not decoder.failure:
        frames += decoder.finish()
    seen = [(frame.type, frame.raw, str(frame.error), frame.head) for frame in frames]
    return seen, str(decoder.failure), decoder.truncated


def split(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


THREE = [
    event(pod("a", note='}{"\\', other="é\u2028🜁"), "ADDED"),
    b'{"object": %b, "type": "DELETED"}' % pod("b"),
    event(GONE, "ERROR"),
]


@pytest.mark.parametrize("end", [b"\n", b"", b"\r\n"], ids=repr)
def test_stream_of_three_cut_at_every_byte(end: bytes) -> None:
    """F-R23: what arrived whole is delivered, what did not is counted, and nothing else."""
    stream = b"".join(text + end for text in THREE)
    ends = list(itertools.accumulate(len(text + end) for text in THREE))
    whole = outcome([stream])
    assert [raw for _, raw, _, _ in whole[0]] == [
        pod("a", note='}{"\\', other="é\u2028🜁"),
        pod("b"),
        GONE,
    ]
    for cut in range(len(stream) + 1):
        assert outcome([stream[:cut], stream[cut:]]) == whole
        frames, failure, truncated = outcome([stream[:cut]])
        count = sum(cut >= start - len(end) for start in ends)
        assert (frames, failure) == (whole[0][:count], "None")
        assert truncated == max(0, cut - (ends[count - 1] if count else 0))


def test_stream_of_three_byte_by_byte() -> None:
    stream = b"\n".join(THREE)
    assert outcome(stream[i : i + 1] for i in range(len(stream))) == outcome([stream])


texts = st.text(alphabet=st.sampled_from('{}[]":,\\ aé\n\r\u0085\u2028🜁'), max_size=8)
payloads = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.builds(lambda name, payload: pod(name, spec=payload), texts, payloads)
layouts = st.sampled_from(
    [
        b'{"type":"ADDED","object":%b}',
        b'{"type":"BOOKMARK","object":%b}',
        b'{"type":"MODIFIED","object": %b }',
        b'{ "object":%b, "type":"DELETED", "x":[{}] }',
    ]
)
events = st.builds(lambda layout, raw: bytes(layout % raw), layouts, objects)
odd = st.sampled_from(
    [*(event(raw) for name, raw in POISON.items() if name != "deep"), event(DEEP[:60] + b"]]}")]
    + [text for text, _ in BROKEN.values()]
    + [b"{", b"}", b'"', b"\\", b"\xff", b'{"type":"', b"{}{", b"}}", b"[{", b"null"]
)
ends = st.sampled_from([b"\n", b"", b"\r\n", b" ", b"\n\n", b" \n", b"\r"])
streams = st.lists(st.tuples(events | odd, ends), max_size=6).map(
    lambda parts: b"".join(itertools.chain.from_iterable(parts))
)


@pytest.mark.slow
@given(parts=st.lists(st.tuples(objects, layouts, ends), max_size=6), data=st.data())
def test_every_split_gives_every_object(
    parts: list[tuple[bytes, bytes, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(layout % raw + end for raw, layout, end in parts)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert raws(*split(stream, cuts)) == [raw for raw, _, _ in parts]


@pytest.mark.slow
@given(stream=streams, limit=st.sampled_from([40, 120, 1 << 26]), data=st.data())
@example(stream=b"{" + b" " * 50 + b"\n", limit=40, data=None)
@example(stream=b'{"a"' + b" " * 35 + b"\n", limit=40, data=None)
@example(stream=b"{}" + b" " * 50 + b"{}" + b" " * 50, limit=40, data=None)
def test_every_split_of_any_bytes_gives_the_same(
    stream: bytes, limit: int, data: st.DataObject | None
) -> None:
    """Frames, failure and truncation are a function of the bytes alone, sound or not."""
    whole = outcome([stream], limit)
    assert outcome([stream[i : i + 1] for i in range(len(stream))], limit) == whole
    if data is not None:
        end = data.draw(st.integers(0, len(stream)))
        cuts = data.draw(st.lists(st.integers(0, end), max_size=8))
        assert outcome(split(stream[:end], cuts), limit) == outcome([stream[:end]], limit)


# --- events over several lines ------------------------------------------------------------------

spaces = st.text(alphabet=" \t\r\n", max_size=3)


def laid_out(value: object, draw: Callable[[], str]) -> str:
    """Write JSON with any whitespace between any two tokens."""
    if isinstance(value, dict):
        members = [
            f"{draw()}{json.dumps(name)}{draw()}:{laid_out(member, draw)}"
            for name, member in value.items()
        ]
        return f"{draw()}{{{','.join(members) or draw()}}}{draw()}"
    if isinstance(value, list):
        elements = [laid_out(element, draw) for element in value]
        return f"{draw()}[{','.join(elements) or draw()}]{draw()}"
    return f"{draw()}{json.dumps(value, ensure_ascii=False)}{draw()}"


def read_frames(pieces: Iterable[bytes]) -> list[tuple[str, object]]:
    return [(frame.type, json.loads(frame.raw)) for frame in frames_of(*pieces)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"", b"\n\n"], ids=repr)
def test_pretty_printed_events_are_read_at_every_cut(end: bytes) -> None:
    bodies = [json.loads(text) for text in (*THREE, event(b"{}", "BOOKMARK"))]
    stream = b"".join(json.dumps(body, indent=2).encode() + end for body in bodies)
    expected = [(body["type"], body["object"]) for body in bodies]
    for cut in range(len(stream) + 1):
        assert read_frames([stream[:cut], stream[cut:]]) == expected


def test_pretty_printed_event_is_returned_with_its_last_brace() -> None:
    text = json.dumps(json.loads(event(pod("a"))), indent=2).encode()
    decoder = WatchDecoder()
    assert decoder.feed(text[:-1]) == []
    assert [frame.type for frame in decoder.feed(text[-1:])] == ["MODIFIED"]
    assert [frame.raw for frame in decoder.feed(b"\n" + event(pod("b")) + b"\n")] == [pod("b")]


@pytest.mark.slow
@given(parts=st.lists(st.tuples(objects, st.sampled_from(EventType)), max_size=4), data=st.data())
def test_any_whitespace_and_any_split_give_the_same_events(
    parts: list[tuple[bytes, EventType]], data: st.DataObject
) -> None:
    values = [{"type": kind, "object": json.loads(raw)} for raw, kind in parts]
    stream = "".join(laid_out(value, lambda: data.draw(spaces)) for value in values).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    expected = [(kind, json.loads(raw)) for raw, kind in parts]
    assert read_frames(split(stream, cuts)) == expected
    assert read_frames(stream[i : i + 1] for i in range(len(stream))) == expected


def test_limit_holds_for_an_event_over_several_lines() -> None:
    text = json.dumps(json.loads(event(pod("a"))), indent=1).encode()
    for pieces in ([text + b"\n"], [text[i : i + 1] for i in range(len(text))]):
        assert len(outcome(pieces, len(text))[0]) == 1
        frames, failure, _ = outcome(pieces, len(text) - 1)
        assert (frames, f"larger than {len(text) - 1} bytes" in failure) == ([], True)


def test_null_in_metadata_is_read_in_every_layout() -> None:
    raw = pod("a").replace(b'"7"', b'"7","generation":null,"labels":{"x":null}')
    for text in (event(raw), json.dumps(json.loads(event(raw)), indent=2).encode()):
        (frame,) = frames_of(text + b"\n")
        assert frame.head is not None
        assert (frame.head.metadata.generation, frame.head.metadata.labels) == (0, {"x": ""})


# --- linear time (F-R24) -----------------------------------------------------------------------


def reading(pieces: Sequence[bytes]) -> Callable[[], object]:
    """Return the work to read one event that arrives in ``pieces``."""

    def work() -> None:
        decoder = WatchDecoder()
        assert sum(len(decoder.feed(piece)) for piece in pieces) == 1

    return work


def big(length: int, *, size: int) -> list[bytes]:
    text = event(b'{"metadata":{"name":"a"},"data":"%b"}' % (b"x" * length)) + b"\n"
    return [text[i : i + size] for i in range(0, len(text), size)]


@pytest.mark.slow
def test_long_line_in_small_pieces_is_linear() -> None:
    assert_linear(lambda n: reading(big(n, size=16 * 1024)), 1 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 4_096])
def test_event_of_many_lines_is_linear(size: int) -> None:
    def pieces(count: int) -> list[bytes]:
        text = b'{"type":"ADDED",\n"object":{"a":[{}\n%b]}}\n' % (b',{"b":\n"c"}\n' * count)
        return [text[i : i + size] for i in range(0, len(text), size)]

    assert_linear(lambda n: reading(pieces(n)), 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 500, 65_536])
def test_piece_size_does_not_change_the_order_of_growth(size: int) -> None:
    assert_linear(lambda n: reading(big(n, size=size)), 8_000)


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline", "no newline"])
def test_pieces_that_all_end_with_a_brace_are_linear(end: bytes) -> None:
    """Each of them might complete the event, so each wakes the scanner."""

    def pieces(count: int) -> list[bytes]:
        return [b'{"type":"ADDED","object":{"a":[{}', *[b',{"b":"c"}'] * count, b"]}}" + end]

    assert_linear(lambda n: reading(pieces(n)), 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"", b"\n"], ids=["nothing", "newline"])
def test_many_small_events_in_one_feed_are_linear(end: bytes) -> None:
    def splitting(count: int) -> Callable[[], object]:
        stream = event(b"{}") * count + end
        assert stream.count(b"\n") <= 1
        return lambda: WatchDecoder().feed(stream)

    assert_linear(splitting, 1_000)

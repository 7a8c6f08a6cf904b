"""List bodies: items cut as bytes arrive, the same for every split; no list from what is none."""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinform.errors import DecodeError, ForbiddenError, api_error
from kinform.meta import ListMeta, Status
from kinform.objects.packed import Packed
from kinform.sansio.wire.heads import read_head
from kinform.sansio.wire.list import Item, ListDecoder, ListHead
from tests.support.growth import assert_linear

HEAD = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},"items":['
POD_LIST = ListHead("v1", "PodList", ListMeta(resource_version="42"))
KIND = b'"kind":"Pod","apiVersion":"v1",'
DEEP = b"[" * 1_000_000 + b"]" * 1_000_000  # Python 3.14 reads 100,000


def dumps(value: object, *, spaced: bool = False) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps(value, separators=separators, ensure_ascii=False).encode()


def pod(name: str, **more: object) -> bytes:
    """Return a pod as a typed list holds it: without kind and apiVersion."""
    return dumps({"metadata": {"name": name, "namespace": "shop"}, **more})


def widget(name: str, **more: object) -> bytes:
    """Return a custom resource as its list holds it: keys sorted."""
    meta = {"name": name, "namespace": "shop"}
    return dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, **more})


def typed(raw: bytes) -> bytes:
    """Return the pod as a watch would send it."""
    return b"{" + KIND + raw[1:]


def pod_list(items: Iterable[bytes], *, glue: bytes = b",") -> bytes:
    return HEAD + glue.join(items) + b"]}\n"


def widget_list(items: Iterable[bytes]) -> bytes:
    body = b'{"apiVersion":"example.com/v1","items":[%b],"kind":"WidgetList",' % b",".join(items)
    return body + b'"metadata":{"continue":"","resourceVersion":"42"}}\n'


def read(*pieces: bytes, max_item: int = 1 << 26) -> tuple[list[Item], ListHead | Status]:
    decoder = ListDecoder(max_item=max_item)
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return items, decoder.finish()


def raws(*pieces: bytes) -> list[bytes]:
    items, _ = read(*pieces)
    for item in items:  # what is promised of every readable item
        assert item.error is None
        assert item.head == read_head(item.raw)
    return [item.raw for item in items]


def failure(*pieces: bytes, max_item: int = 1 << 26) -> DecodeError:
    """Return the failure of a body, which every way of reading it must give."""
    with pytest.raises(DecodeError) as caught:
        read(*pieces, max_item=max_item)
    return caught.value


# --- lists as servers write them ---------------------------------------------------------------


def test_typed_list() -> None:
    expected = [pod(name, spec={"n": name}) for name in "abc"]
    items, head = read(pod_list(expected))
    assert head == POD_LIST
    assert [item.raw for item in items] == [typed(raw) for raw in expected]
    assert [str(item.head.metadata.key) for item in items if item.head] == [
        "shop/a",
        "shop/b",
        "shop/c",
    ]


def test_list_of_custom_resources_names_itself_after_its_items() -> None:
    expected = [widget(name) for name in "abc"]
    items, head = read(widget_list(expected))
    assert head == ListHead("example.com/v1", "WidgetList", ListMeta(resource_version="42"))
    assert [item.raw for item in items] == expected


@pytest.mark.parametrize("count", range(5))
def test_any_number_of_items(count: int) -> None:
    expected = [pod(str(n)) for n in range(count)]
    assert raws(pod_list(expected)) == [typed(raw) for raw in expected]


def test_members_may_come_in_any_order() -> None:
    parts = [b'"kind":"WidgetList"', b'"apiVersion":"example.com/v1"', b'"x":{"items":[]}']
    parts += [b'"metadata":{"resourceVersion":"42"}', b'"items":[%b]' % widget("a")]
    for order in itertools.permutations(parts):
        items, head = read(b"{" + b",".join(order) + b"}")
        assert [item.raw for item in items] == [widget("a")]
        assert head == ListHead("example.com/v1", "WidgetList", ListMeta(resource_version="42"))


@pytest.mark.parametrize("items", [b"null", b"[]", b" [ ] "], ids=repr)
def test_empty_list(items: bytes) -> None:
    assert read(HEAD[:-1] + items + b"}") == ([], POD_LIST)


@pytest.mark.parametrize("metadata", [b"{}", b"null"])
def test_list_need_not_have_a_version(metadata: bytes) -> None:
    _, head = read(b'{"kind":"PodList","metadata":%b,"items":[]}' % metadata)
    assert head == ListHead("", "PodList", ListMeta())
    assert read(b'{"kind":"PodList","items":[]}') == ([], head)


def test_page_carries_its_token() -> None:
    meta = b'{"resourceVersion":"42","continue":"abc","remainingItemCount":7}'
    _, head = read(b'{"kind":"List","apiVersion":"v1","metadata":%b,"items":[]}' % meta)
    assert head == ListHead("v1", "List", ListMeta("42", "abc", 7))


@pytest.mark.parametrize("indent", [0, 1, 2, 40])
def test_indented_list(indent: int) -> None:
    objects = [json.loads(pod(str(n), spec=[{}])) for n in range(20)]
    body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": objects}
    items = raws(json.dumps(body, indent=indent).encode())
    kinds = {"kind": "Pod", "apiVersion": "v1"}
    assert [json.loads(raw) for raw in items] == [kinds | obj for obj in objects]


def test_spaces_between_items_are_in_no_item() -> None:
    assert (
        raws(pod_list([pod("a"), pod("b")] * 3, glue=b" ,\n\t"))
        == [typed(pod("a")), typed(pod("b"))] * 3
    )


# --- kind and apiVersion of the items ----------------------------------------------------------


@pytest.mark.parametrize("raw", [b"{}", b"{ }", b"{\n}"], ids=repr)
def test_kind_is_put_into_an_empty_object_too(raw: bytes) -> None:
    assert raws(pod_list([raw, pod("a"), raw])) == [
        b'{"kind":"Pod","apiVersion":"v1"}',
        typed(pod("a")),
        b'{"kind":"Pod","apiVersion":"v1"}',
    ]


def test_space_before_the_first_key_stays() -> None:
    assert raws(pod_list([b'{ "a":1}'])) == [b"{" + KIND + b' "a":1}']


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_annotations_are_read_from_the_item_and_not_from_its_page(size: int) -> None:
    """A window into the page would keep all of it alive."""
    items = [dumps({"metadata": {"name": name, "annotations": {"a": name}}}) for name in "xyz"]
    body = pod_list(items)
    found, _ = read(*[body[at : at + size] for at in range(0, len(body), size)])
    for item, name in zip(found, "xyz", strict=True):
        assert item.head is not None
        metadata = item.head.metadata
        assert metadata.raw_annotations == Packed(None, item.raw)
        assert metadata.annotations == {"a": name}


def test_item_that_names_its_kind_keeps_it() -> None:
    own = [b'{"metadata":{},"kind":"Own"}', b'{"apiVersion":"own/v1","metadata":{}}', widget("a")]
    assert raws(pod_list(own)) == own


def test_plain_list_adds_no_kind() -> None:
    body = b'{"kind":"List","apiVersion":"v1","items":[%b,{}]}' % widget("a")
    assert raws(body) == [widget("a"), b"{}"]


def test_list_that_names_itself_too_late_adds_no_kind() -> None:
    assert raws(b'{"apiVersion":"v1","items":[{}],"kind":"PodList"}') == [b"{}"]
    assert raws(b'{"kind":"PodList","items":[{}],"apiVersion":"v1"}') == [b"{}"]


def test_kind_is_escaped_as_json_wants() -> None:
    (raw,) = raws(b'{"kind":"A\\"\xc3\xa9List","apiVersion":"a\\\\/v1","items":[{}]}')
    assert json.loads(raw) == {"kind": 'A"é', "apiVersion": "a\\/v1"}


# --- guesses that are wrong --------------------------------------------------------------------

LOOKALIKES = [
    {"template": [{"metadata": {"name": "x"}}, {"metadata": {"name": "y"}}]},
    {"text": '},{"metadata":{"name":"x"}}'},
    {"text": "},{"},
    {"a": [[{"b": {}}, {"metadata": 5}, {"metadata": {"name": 5}}]]},
]


@pytest.mark.parametrize(
    "spec", LOOKALIKES, ids=["nested", "in a string", "in a string 2", "types"]
)
def test_separator_inside_an_item_does_not_cut_it(spec: object) -> None:
    expected = [pod("a", spec=spec), pod("b"), pod("c", spec=spec), pod("d", spec=spec)]
    body = pod_list(expected)
    for size in (1, 7, 100, len(body)):
        pieces = [body[i : i + size] for i in range(0, len(body), size)]
        assert raws(*pieces) == [typed(raw) for raw in expected]


def test_items_that_start_in_different_ways() -> None:
    expected = [
        *(pod("a"), b'{"x":1,"metadata":{}}', pod("b"), b'{"data":{"a":1},"metadata":{}}'),
        *(
            b"{}",
            b'{"a":[%b]}' % b"1,".join([b""] * 300)[:-1],
            b'{"%b":1}' % (b"k" * 300),
            pod("c"),
        ),
        *(b'{"a":"%b"}' % (b"x" * 300_000), pod("d"), pod("e")),
    ]
    body = pod_list(expected * 2)
    for size in (1000, 65_536, len(body)):
        pieces = [body[i : i + size] for i in range(0, len(body), size)]
        assert (
            raws(*pieces)
            == [typed(raw) if raw != b"{}" else b"{" + KIND[:-1] + b"}" for raw in expected] * 2
        )


# --- poison objects (F-R27) --------------------------------------------------------------------

POISON = {
    "deep": pod("bad")[:-1] + b',"spec":' + DEEP + b"}",
    "utf-8": pod("bad", spec="?").replace(b"?", b"\xff"),
    "utf-8 in metadata": pod("bad").replace(b"}}", b',"x":"\xff"}}'),
    "utf-8 in labels": pod("bad").replace(b"}}", b',"labels":{"a":"\xff"}}}'),
    "types": pod("bad").replace(b"}}", b',"labels":[]}}'),
    "types, and a lookalike": pod("bad").replace(b"}}", b',"uid":1},"x":[{},{"metadata":{}}]}'),
    "NaN": pod("bad", spec="?").replace(b'"?"', b"NaN"),
}


@pytest.mark.parametrize("raw", POISON.values(), ids=POISON)
@pytest.mark.parametrize("size", [64, 1 << 20], ids=["small reads", "one read"])
def test_poison_item_does_not_hurt_the_others(raw: bytes, size: int) -> None:
    body = pod_list([pod("a"), raw, raw, pod("b"), raw])
    items, head = read(*(body[i : i + size] for i in range(0, len(body), size)))
    assert head == POD_LIST
    assert [item.raw for item in items] == [typed(r) for r in (pod("a"), raw, raw, pod("b"), raw)]
    for item in items:
        assert (item.head is None) == (item.error is not None)
    errors = [item.error for item in items if item.error is not None]
    assert [error.key for error in errors] == ["shop/bad"] * 3
    assert [error.__traceback__ for error in errors] == [None] * 3


def test_poison_item_that_names_its_kind_keeps_its_bytes() -> None:
    raw = widget("bad", metadata={"uid": 5})
    items, _ = read(pod_list([raw, b'{"a" "b"}']))
    assert [item.raw for item in items] == [raw, b'{"a" "b"}']
    assert [item.head for item in items] == [None, None]


# --- what is no list, or not a whole one -------------------------------------------------------

ITEMS = b'"items":[]'
BROKEN = {
    "empty": (b"", "empty"),
    "blank": (b" \r\n", "empty"),
    "html": (b"<!DOCTYPE html><html></html>", "not a JSON object"),
    "array": (b"[]", "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "table": (b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}', "got kind 'Table'"),
    "table, late": (b'{"rows":[],"items":[],"kind":"Table"}', "got kind 'Table'"),
    "single object": (b'{"kind":"Pod","apiVersion":"v1","metadata":{}}', "got kind 'Pod'"),
    "no kind": (b"{" + ITEMS + b"}", "got kind ''"),
    "null kind": (b'{"kind":null,"items":[]}', "got kind ''"),
    "kind of another type": (b'{"kind":5,"items":[]}', "Expected `str`, got `int` at $.kind"),
    "kind that is not UTF-8": (b'{"kind":"\xff"}', "invalid UTF-8 at byte 0 at $.kind"),
    "no members": (b"{}", "got kind ''"),
    "no items": (b'{"kind":"PodList","apiVersion":"v1","metadata":{}}', "no items"),
    "object for items": (HEAD[:-1] + b"{}}", "not an array at $.items"),
    "string for items": (HEAD[:-1] + b'"[]"}', "not an array at $.items"),
    "number in items": (HEAD + b"1]}", "not an object"),
    "null in items": (HEAD + b"{},null]}", "not an object"),
    "array in items": (HEAD + b"[{}]]}", "not an object"),
    "comma behind the last item": (HEAD + b"{},]}", "not an object"),
    "no comma between items": (HEAD + b"{}{}]}", "malformed"),
    "no colon": (b'{"kind" "PodList"}', "malformed"),
    "no value": (b'{"kind":,"items":[]}', "malformed"),
    "no key": (b'{"kind":"PodList",5:6}', "malformed"),
    "comma behind the last member": (b'{"kind":"PodList","items":[],}', "malformed"),
    "garbage between members": (b'{"kind":"PodList" x "items":[]}', "malformed"),
    "garbage behind": (pod_list([pod("a")]) + b"x", "followed by something"),
    "second list behind": (pod_list([]) + pod_list([]), "followed by something"),
    "items twice": (b'{"kind":"PodList","items":[],"items":[]}', "repeats a key at $.items"),
    "kind twice": (b'{"kind":"PodList","kind":"Table","items":[]}', "repeats a key at $.kind"),
    "metadata of another type": (b'{"kind":"PodList","metadata":[],"items":[]}', "at $.metadata"),
    "version of another type": (
        b'{"kind":"PodList","metadata":{"resourceVersion":1},"items":[]}',
        "at $.metadata.resourceVersion",
    ),
    "apiVersion of another type": (b'{"kind":"PodList","apiVersion":1,"items":[]}', "$.apiVersion"),
}


@pytest.mark.parametrize("body, message", BROKEN.values(), ids=BROKEN)
def test_what_is_no_list_is_never_taken_for_one(body: bytes, message: str) -> None:
    """F-R28: a relist from it would delete everything."""
    assert message in str(failure(body))
    assert message in str(failure(*(body[i : i + 1] for i in range(len(body)))))


def test_failure_is_known_at_once_and_raised_from_then_on() -> None:
    decoder = ListDecoder()
    assert decoder.feed(b'{"kind":"Table",') == []
    assert decoder.failure is not None
    with pytest.raises(DecodeError, match="Table"):
        decoder.feed(b'"rows":[]}')
    with pytest.raises(DecodeError, match="Table"):
        decoder.finish()


def test_failure_holds_no_payload() -> None:
    error = failure(HEAD + pod("a", data="s3cret") + b'"s3cret"')
    assert "s3cret" not in f"{error!s} {error!r}"


@pytest.mark.parametrize("make", [pod_list, widget_list])
def test_body_cut_at_any_byte_is_truncated(make: Callable[[list[bytes]], bytes]) -> None:
    body = make([pod("a"), widget("b", spec={"a": [{}]}), pod("c")]).rstrip()
    for cut in range(1, len(body)):
        assert "truncated" in str(failure(body[:cut]))


def test_status_in_the_place_of_a_list_is_returned() -> None:
    status: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
    }
    status |= {"message": "no", "reason": "Forbidden", "details": {"kind": "pods"}, "code": 403}
    for fields in (status, dict(reversed(status.items()))):
        items, answer = read(dumps(fields))
        assert items == []
        assert isinstance(answer, Status)
        assert isinstance(api_error(answer), ForbiddenError)
        assert (answer.message, answer.details and answer.details.kind) == ("no", "pods")


def test_unreadable_status_is_an_error() -> None:
    assert "$.code" in str(failure(b'{"kind":"Status","code":"403"}'))
    assert "deeper" in str(failure(b'{"kind":"Status","details":{"x":%b}}' % DEEP))


def test_repr_shows_no_payload() -> None:
    (item, bad), _ = read(pod_list([pod("a", data="s3cret"), POISON["NaN"]]))
    assert repr(item) == f"<Item shop/a {len(item.raw)} bytes>"
    assert "shop/bad" in repr(bad)


# --- the item limit ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_item_of_exactly_the_limit_passes_and_one_more_byte_does_not(size: int) -> None:
    large = pod("a", data="x" * 400)
    body = pod_list([pod("b"), large, large, pod("c"), large])
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    assert len(read(*pieces, max_item=len(large))[0]) == 5
    error = failure(*pieces, max_item=len(large) - 1)
    assert f"larger than {len(large) - 1} bytes" in str(error)


def test_limit_strikes_as_soon_as_it_is_passed() -> None:
    for start in (HEAD + b'{"a":"', b'{"kind":"', b'{"'):
        decoder = ListDecoder(max_item=1000)
        decoder.feed(start)
        fed = 0
        while decoder.failure is None:
            decoder.feed(b"x" * 10)
            fed += 10
        assert 980 < fed <= 1010


def test_many_small_items_are_within_any_limit() -> None:
    body = pod_list([pod("a"), b'{"x":1}'] * 500)
    assert len(read(body, max_item=100)[0]) == 1000


# --- every split gives the same ----------------------------------------------------------------

Outcome = tuple[list[tuple[bytes, str, object]], object, str]


def outcome(pieces: Iterable[bytes], max_item: int = 1 << 26) -> Outcome:
    """Return all there is to see of a body."""
    decoder = ListDecoder(max_item=max_item)
    items: list[Item] = []
    head: object = None
    try:
        for piece in pieces:
            items += decoder.feed(piece)
        head = decoder.finish()
        message = ""
    except DecodeError as exc:
        message = str(exc)
    return [(item.raw, str(item.error), item.head) for item in items], head, message


def split(text: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("make", [pod_list, widget_list])
def test_list_of_three_cut_at_every_byte(make: Callable[[list[bytes]], bytes]) -> None:
    body = make([pod("a", s="}{é"), widget("b", s=['"\\', {}, {"metadata": {}}]), pod("c")])
    whole = outcome([body])
    assert whole[2] == ""
    for cut in range(len(body) + 1):
        assert outcome([body[:cut], body[cut:]]) == whole
    assert outcome(body[i : i + 1] for i in range(len(body))) == whole


texts = st.text(alphabet=st.sampled_from('{}[]":,\\ aé\n\r\u0085\u2028🜁'), max_size=8)
payloads = st.recursive(
    st.none() | st.integers() | texts | st.just('},{"metadata":'),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts | st.just("metadata"), inner, max_size=3)
    ),
    max_leaves=6,
)
objects = st.builds(
    lambda make, name, payload: make(name, spec=payload),
    st.sampled_from([pod, widget]),
    texts,
    payloads,
)
odd_items = st.sampled_from(
    [raw for name, raw in POISON.items() if name != "deep"]
) | st.sampled_from(
    [b"{}", b"{ }", b'{"x":1}', b"1", b"null", b"", b"[", b"}", b'"', b"{}{}", b"\\", b"\xff"]
)
glues = st.sampled_from([b",", b" , ", b",\n  "])


@pytest.mark.slow
@given(raws_=st.lists(objects, max_size=6), glue=glues, data=st.data())
def test_every_split_gives_every_item(raws_: list[bytes], glue: bytes, data: st.DataObject) -> None:
    body = pod_list(raws_, glue=glue)
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=8))
    expected = [typed(raw) if raw.startswith(b'{"metadata"') else raw for raw in raws_]
    assert raws(*split(body, cuts)) == expected


bodies = st.builds(
    lambda make, items, tail: make(items) + tail,
    st.sampled_from([pod_list, widget_list]),
    st.lists(objects | odd_items, max_size=5),
    st.sampled_from([b"", b" ", b"x", b"}", b"{}"]),
) | st.sampled_from([body for body, _ in BROKEN.values()])


@pytest.mark.slow
@given(body=bodies, limit=st.sampled_from([30, 90, 1 << 26]), data=st.data())
@example(body=HEAD + b"{}" + b" " * 50 + b",{}]}", limit=80, data=None)
@example(body=b" " * 100 + pod_list([pod("a")]), limit=90, data=None)
def test_every_split_of_any_bytes_gives_the_same(
    body: bytes, limit: int, data: st.DataObject | None
) -> None:
    """The result is a function of the bytes alone; before a failure, items may be fewer."""

    def check(pieces: list[bytes]) -> None:
        items, head, message = outcome(pieces, limit)
        assert (head, message) == canonical[1:]
        assert items == canonical[0][: len(items)]
        assert message or items == canonical[0]

    # Byte by byte is the reference: it returns as many items as can be returned.
    canonical = outcome([body[i : i + 1] for i in range(len(body))], limit)
    check([body])
    if data is not None:
        end = data.draw(st.integers(0, len(body)))
        cuts = data.draw(st.lists(st.integers(0, end), max_size=8))
        canonical = outcome([body[i : i + 1] for i in range(end)], limit)
        check(split(body[:end], cuts))


# --- time and memory ---------------------------------------------------------------------------


def decoding(body: bytes, *, size: int) -> Callable[[], object]:
    def work() -> None:
        decoder = ListDecoder()
        for i in range(0, len(body), size):
            decoder.feed(body[i : i + size])
        decoder.finish()

    return work


def lookalikes(count: int) -> bytes:
    """Return one item with ``count`` places that look like its end, and one behind it."""
    nested = b",".join([b'{"metadata":{"name":"x"}}'] * count)
    return pod_list([b'{"metadata":{},"spec":[%b]}' % nested, pod("b")])


def alternating(count: int) -> bytes:
    """Return items of which none starts like the one before."""
    return pod_list(b'{"k%d":{"metadata":{}}}' % n for n in range(count))


def unlike_the_rest(count: int) -> bytes:
    """Return small items and, far behind, one that starts as the first did."""
    return pod_list([pod("a"), *[b'{"x":{"y":1}}'] * count, pod("b")])


def long(count: int) -> bytes:
    return pod_list([pod("a", data="x" * count * 100), pod("b")])


@pytest.mark.slow
@pytest.mark.parametrize(
    "make, count",
    [(lookalikes, 2_500), (alternating, 250), (unlike_the_rest, 500), (long, 5_000)],
)
@pytest.mark.parametrize("size", [4096, 1 << 30], ids=["small reads", "one read"])
def test_time_is_linear(make: Callable[[int], bytes], count: int, size: int) -> None:
    assert_linear(lambda n: decoding(make(n), size=size), count)


@pytest.mark.slow
def test_bytes_that_come_one_by_one_are_linear() -> None:
    assert_linear(lambda n: decoding(lookalikes(n), size=1), 40)


def endless(megabytes: int) -> Iterator[bytes]:
    """Yield the body of a large list in reads of 64 KB."""
    item = pod("a", spec={"text": ["x" * 100] * 50, "template": [{"metadata": {}}]}) + b","
    block = item * (65_536 // len(item) + 1)
    yield HEAD
    for _ in range(megabytes * 16):
        yield from (block[:-100], block[-100:])
    yield b"{}]}"


@pytest.mark.slow
def test_body_never_stands_whole_in_memory() -> None:
    decoder = ListDecoder()
    tracemalloc.start()
    try:
        count = sum(len(decoder.feed(piece)) for piece in endless(30))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decoder.finish() == POD_LIST
    assert count > 5_000
    assert peak < 1_000_000


def test_items_do_not_keep_the_input_alive() -> None:
    body = pod_list([pod("a"), POISON["types"], pod("b", data="x" * 1000)])
    decoder = ListDecoder()
    before = sys.getrefcount(body)
    assert len(decoder.feed(body)) == 3
    assert sys.getrefcount(body) == before

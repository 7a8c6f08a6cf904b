"""Plain lists: which version and how many pages they ask for, and that each is one whole."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from typing import Any, Final

import pytest

from kinform.cache.listwatch import ListWatch
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import DecodeError, ResourceExpiredError, api_error
from kinform.meta import Entry, ListMeta, ObjectMeta, Status, StatusCause, StatusDetails
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_reflector import (
    FOREVER,
    PLAIN,
    REFUSED,
    Script,
    Told,
    assert_in_budget,
    config,
    entry,
    listed,
    names,
    running,
    said,
    seen_until,
    shown,
    there,
    turns,
    until,
)

DEVIATIONS: Final = {
    "CG-R24": 'the first list requests the most recent state, unless first_version="0"',
    "CG-R25": "as CG-R24; and the list after an expired one waits, as every request after a "
    "failure",
    "CG-R26": "as CG-R24",
    "CG-R27": "as CG-R24 and CG-R25",
}
ANY: Final = ReflectorOptions(stream_lists=False, first_version="0")
EXPIRES: Final = (2.0, said(410))


def versions(source: Script) -> list[str]:
    return [options.resource_version for options in source.asked("list")]


# --- Versions and limits


@in_virtual_time
async def test_the_callers_page_size_goes_with_every_page() -> None:
    """CG-R21: also of a list not older than a known version."""
    source, store = FakeListWatch(), Store[Any]()
    for number in range(10):
        source.add(config(f"c{number}"))
    options = ReflectorOptions(stream_lists=False, page_size=4)
    async with running(Reflector(source, store, options=options)):
        await source.wait_for_watches()
        source.compact()
        source.advance()
        source.close_watches(said(410))
        await source.wait_for_requests(6, verb="list")
        await source.wait_for_watches()
    asked = [one.options for one in source.requests if one.verb == "list"]
    assert [one.limit for one in asked] == [4] * 6
    assert [bool(one.continue_token) for one in asked] == [False, True, True] * 2
    assert [one.resource_version for one in asked] == ["", "", "", "11", "", ""]
    assert len(store) == 10


@in_virtual_time
async def test_a_list_at_a_known_version_asks_for_everything_at_once() -> None:
    """CG-R22."""
    source = Script(lists=[listed(10)], watches=[EXPIRES, (FOREVER,)])
    async with running(Reflector(source, Store(), options=PLAIN)):
        await until(lambda: source.open and source.closed)
    again = source.asked("list")[1]
    assert (again.resource_version, again.limit) == ("10", None)
    assert again.resource_version_match == "NotOlderThan"


@in_virtual_time
async def test_a_server_without_watch_cache_is_listed_in_pages_ever_after() -> None:
    """CG-R23: one that gave a list of any version in pages."""
    source = Script(
        lists=[listed(10, entry("a", 1), token="more"), listed(10, entry("b", 2)), listed(11)],
        watches=[EXPIRES, (FOREVER,)],
    )
    async with running(Reflector(source, Store(), options=ANY)):
        await until(lambda: source.open and source.closed)
    asked = source.asked("list")
    assert [(one.resource_version, one.limit) for one in asked] == [
        ("0", 500),
        ("", 500),
        ("10", 500),
    ]


@pytest.mark.parametrize(("options", "first"), [(ANY, "0"), (PLAIN, "")])
@in_virtual_time
async def test_a_second_round_asks_for_nothing_older_than_the_first_saw(
    options: ReflectorOptions, first: str
) -> None:
    """CG-R24."""
    four = [entry(f"c{n}", 1) for n in range(4)]
    eight = [entry(f"c{n}", 1) for n in range(8)]
    source = Script(lists=[listed(10, *four), listed(20, *eight)], watches=[EXPIRES])
    store = Store[Any]()
    reflector = Reflector(source, store, options=options)
    await reflector.list_and_watch()
    assert len(store) == 4
    await reflector.list_and_watch()
    assert len(store) == 8
    assert versions(source) == [first, "10"]


@in_virtual_time
async def test_a_list_whose_version_has_expired_asks_for_the_newest_state() -> None:
    """CG-R25."""
    source = Script(lists=[listed(10), said(410), listed(11)], watches=[EXPIRES, (FOREVER,)])
    async with running(Reflector(source, Store(), options=ANY)):
        await until(lambda: source.open and source.closed)
    assert versions(source) == ["0", "10", ""]


@in_virtual_time
async def test_a_page_that_has_expired_makes_it_be_asked_for_in_one_piece() -> None:
    """CG-R26."""
    options = ReflectorOptions(stream_lists=False, first_version="0", page_size=1)
    source = Script(
        lists=[
            listed(10),
            listed(11, entry("a", 1), token="more"),
            said(410),
            listed(12, entry("b", 2), entry("c", 3)),
        ],
        watches=[EXPIRES, (FOREVER,)],
    )
    store = Store[Any]()
    reflector = Reflector(source, store, options=options)
    async with running(reflector):
        await until(lambda: source.open and source.closed)
    assert versions(source) == ["0", "10", "", "10"]
    assert [one.limit for one in source.asked("list")] == [1, 1, 1, None]
    assert names(store) == {"b", "c"}
    assert reflector.last_sync_resource_version == "12"


TOO_LARGE = "Too large resource version: 40, current: 30"
FORMS = [
    Status(
        code=504,
        reason="Timeout",
        details=StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),)),
    ),
    Status(
        code=504,
        reason="Timeout",
        details=StatusDetails(causes=(StatusCause(message="Too large resource version"),)),
    ),
    Status(code=504, reason="Timeout", message=TOO_LARGE),
]


@in_virtual_time
async def test_a_version_the_server_has_not_reached_is_not_used_again() -> None:
    """CG-R27: F-R06, in each of the forms that servers said so."""
    first, second, third = (api_error(form) for form in FORMS)
    source = Script(
        lists=[listed(20), first, listed(30), second, listed(40), third, listed(50)],
        watches=[EXPIRES, EXPIRES, EXPIRES, (FOREVER,)],
    )
    async with running(Reflector(source, Store(), options=ANY)):
        await until(lambda: source.open and source.closed == 3, within=300)
    assert versions(source) == ["0", "20", "", "30", "", "40", ""]


@pytest.mark.parametrize(
    ("kind", "group", "fits"),
    [
        ("Table", "meta.k8s.io/v1", False),
        ("Table", "meta.k8s.io/v1beta1", False),
        ("Table", "furniture.example.com/v1", True),
        ("PodList", "v1", True),
    ],
)
@in_virtual_time
async def test_a_table_for_people_is_no_list(kind: str, group: str, fits: bool) -> None:
    """CG-R35."""
    answer = listed(10, entry("a", 1), kind=kind, api_version=group)
    store, told = Store[Any](), Told()
    source = Script(lists=[answer])
    async with running(Reflector(source, store, watch_error_handler=told)):
        await turns()
    assert len(store) == fits
    assert told.kinds == ([] if fits else ["DecodeError"])


@in_virtual_time
async def test_a_source_may_ask_not_to_be_listed_in_pages() -> None:
    source = FakeListWatch()
    lw = ListWatch(list=source.list, watch=source.watch, disable_chunking=True)
    async with running(Reflector(lw, Store(), options=PLAIN)):
        await source.wait_for_watches()
    assert source.requests[0].options.limit is None


# --- One whole


@pytest.mark.parametrize("after", range(1, 6))
@in_virtual_time
async def test_a_list_is_one_state_whenever_its_past_is_forgotten(after: int) -> None:
    """F-R14: between any two of its pages."""
    source, store = FakeListWatch(), Store[Any]()
    for number in range(10):
        source.add(config(f"c{number}"))
    replaced: list[dict[str, Any]] = []

    class Recording(Store[Any]):
        def replace(self, entries: Any, resource_version: str, *, afresh: bool = False) -> Any:
            replaced.append({str(key): held.object.to_dict() for key, held in entries.items()})
            return super().replace(entries, resource_version, afresh=afresh)

    async def list_and_forget(options: ListOptions) -> ListResult[Any]:
        page = await source.list(options)
        if len(source.requests) == after:
            source.delete("default/c0")
            source.modify(config("c9", "blue"))
            source.add(config("new"))
            source.compact()
        return page

    store = Recording()
    lw = ListWatch(list=list_and_forget, watch=source.watch)
    options = ReflectorOptions(stream_lists=False, page_size=2)
    async with running(Reflector(lw, store, options=options)):
        await until(lambda: shown(store) == there(source))
    first = replaced[0]
    if after < 5:
        assert first == there(source)
    else:
        assert "default/c0" in first
        assert "default/new" not in first
    assert_in_budget(source.requests)


@in_virtual_time
async def test_a_server_that_forgets_every_second_page_is_not_asked_in_a_hot_loop() -> None:
    """Not even one that gives pages where nobody asked for any."""

    class Forgetful(Script):
        async def list(self, options: ListOptions) -> ListResult[Any]:
            await super().list(options)
            if options.continue_token:
                raise said(410)
            return listed(10, entry("a", 1), token="more")

    source, told = Forgetful(lists=[listed(1)]), Told()
    async with running(Reflector(source, Store(), options=PLAIN, watch_error_handler=told)):
        await asyncio.sleep(60)
    assert_in_budget(source.requests)
    assert set(told.kinds) == {"ResourceExpiredError"}
    assert [one.limit for one in source.asked("list")].count(500) == 2, "the first page and token"


@pytest.mark.parametrize("empty", [True, False])
@in_virtual_time
async def test_a_list_without_end_is_given_up(empty: bool) -> None:
    """Ever new tokens, and nothing new behind them."""

    class Endless(Script):
        async def list(self, options: ListOptions) -> ListResult[Any]:
            await super().list(options)
            entries = [] if empty else [entry("a", 1)]
            return listed(10, *entries, token=f"t{len(self.requests)}")

    source = Endless(lists=[listed(1)])
    with pytest.raises(DecodeError, match="nothing new"):
        await Reflector(source, Store(), options=PLAIN).list_and_watch()
    assert len(source.requests) < 1_100
    assert busiest_second(source) <= 35, "the first pages at once, then 10 a second"
    assert asyncio.get_running_loop().time() >= 90


def busiest_second(source: Script) -> int:
    counts = Counter(int(one.at) for one in source.requests)
    return max(counts.values())


@pytest.mark.parametrize("promised", [100, None])
@in_virtual_time(max_turns=2_000_000)
async def test_a_list_that_goes_on_beyond_what_the_server_promised_is_paced(
    promised: int | None,
) -> None:
    """Ever new tokens, and ever new objects: 1 in each page."""

    class Endless(Script):
        async def list(self, options: ListOptions) -> ListResult[Any]:
            await super().list(options)
            number = len(self.requests)
            metadata = ListMeta(
                resource_version="9", continue_token=f"t{number}", remaining_item_count=promised
            )
            return ListResult([entry(f"c{number}", 1)], metadata=metadata, kind="PodList")

    source = Endless(lists=[listed(1)])
    async with running(Reflector(source, Store(), options=PLAIN)):
        await asyncio.sleep(30)
    at_once = 4_000 if promised is None else 100
    assert at_once <= len(source.requests) <= at_once + 30 + 30 * 10


@pytest.mark.slow
@pytest.mark.parametrize("counts", [True, False], ids=["remainingItemCount", "a selector"])
@in_virtual_time(max_turns=2_000_000)
async def test_a_list_of_2000_pages_does_not_wait_between_them(counts: bool) -> None:
    """As one of a million objects in pages of 500."""

    class Large(Script):
        async def list(self, options: ListOptions) -> ListResult[Any]:
            await super().list(options)
            number = int(options.continue_token or 0) + 1
            metadata = ListMeta(
                resource_version="9",
                continue_token=str(number) if number < 2000 else "",
                remaining_item_count=2000 - number if counts else None,
            )
            return ListResult([entry(f"c{number}", 1)], metadata=metadata, kind="PodList")

    source, store = Large(lists=[listed(1)]), Store[Any]()
    async with running(Reflector(source, store, options=PLAIN)):
        await asyncio.sleep(0.1)
        assert len(store) == 2000


@in_virtual_time
async def test_tokens_that_lead_in_a_circle_are_noticed() -> None:
    pages = [listed(1, entry(f"c{n}", n), token="ab"[n % 2]) for n in range(10)]
    source = Script(lists=pages)
    with pytest.raises(DecodeError, match="leads back"):
        await Reflector(source, Store(), options=PLAIN).list_and_watch()
    assert len(source.requests) <= 4


@in_virtual_time
async def test_empty_pages_with_a_token_are_no_end() -> None:
    """F-R14: a server may filter after it has paged."""
    pages = [listed(5, token="a"), listed(5, token="b"), listed(5, entry("x", 1))]
    store = Store[Any]()
    async with running(Reflector(Script(lists=pages), store, options=PLAIN)):
        await turns(50)
    assert names(store) == {"x"}


@in_virtual_time
async def test_pages_of_several_versions_are_watched_from_the_first() -> None:
    """A server without snapshots: what changed meanwhile comes again, and nothing is lost."""
    pages = [listed(5, entry("a", 1), token="b"), listed(9, entry("b", 8))]
    source = Script(lists=pages)
    async with running(Reflector(source, Store(), options=PLAIN)):
        await until(lambda: source.open)
    assert source.asked("watch")[0].resource_version == "5"


@in_virtual_time
async def test_a_list_that_fails_half_way_leaves_the_store_as_it_was() -> None:
    source = Script(
        lists=[
            listed(1, entry("a", 1)),
            listed(2, entry("b", 2), token="more"),
            said(503),
            listed(3, entry("c", 3)),
        ],
        watches=[EXPIRES, (FOREVER,)],
    )
    store = Store[Any]()
    async with running(Reflector(source, store, options=PLAIN)):
        seen = await seen_until(lambda: names(store), {"c"})
    assert {frozenset(one) for one in seen[1:]} == {frozenset("a"), frozenset("c")}


# --- Memory


class Thing:
    """Something that can be seen to be gone."""


def things(prefix: str, version: int, *, token: str = "") -> ListResult[Thing]:
    entries = [
        Entry(ObjectMeta(name=f"{prefix}{n}", uid=f"{prefix}{n}", resource_version="1"), Thing())
        for n in range(10)
    ]
    metadata = ListMeta(resource_version=str(version), continue_token=token)
    return ListResult(entries, metadata=metadata)


class Pages:
    """Lists in three pages of its own making, of which it keeps nothing but weak references."""

    def __init__(self, *, then: Exception | None = None) -> None:
        self.refs: list[weakref.ref[Thing]] = []
        self.then = then
        self.watching = Script(lists=[listed(1)])
        self.watch = self.watching.watch

    async def list(self, options: ListOptions) -> ListResult[Thing]:
        await asyncio.sleep(0)
        token = options.continue_token
        if token == "c" and self.then is not None:
            raise self.then
        page = things(token or "a", 10, token={"": "b", "b": "c"}.get(token, ""))
        self.refs += [weakref.ref(thing) for thing in page]
        return page

    @property
    def alive(self) -> int:
        gc.collect()
        return sum(ref() is not None for ref in self.refs)


@in_virtual_time
async def test_an_object_that_is_kept_does_not_keep_its_page_alive() -> None:
    """CG-R32."""
    source, store = Pages(), Store[Thing]()
    async with running(Reflector(source, store, options=PLAIN)):
        await turns(50)
        assert source.alive == 30
        for key in store.list_keys():
            if not key.name.endswith("5"):
                store.delete(key)
        assert source.alive == 3


@pytest.mark.parametrize("then", [said(503), REFUSED, said(500)], ids=str)
@in_virtual_time
async def test_of_a_list_that_failed_nothing_is_kept(then: Exception) -> None:
    """Neither while it waits, nor by the error that it remembers."""
    source = Pages(then=then)
    reflector = Reflector(source, Store[Thing](), options=PLAIN)
    async with running(reflector):
        await turns(50)
        assert reflector.statistics().phase == "wait"
        assert len(source.refs) == 20
        assert source.alive == 0


@in_virtual_time
async def test_a_relist_keeps_what_did_not_change_instead_of_a_copy() -> None:
    source, store = FakeListWatch(), Store[Any]()
    for name in "abc":
        source.add(config(name))
    options = ReflectorOptions(stream_lists=False)
    reflector = Reflector(source, store, options=options, known=store.entries)
    async with running(reflector):
        await source.wait_for_watches()
        before = {key: store.get(key) for key in store.list_keys()}
        source.modify(config("b", "blue"), drop=True)
        source.compact()
        source.close_watches(said(410))
        await until(lambda: shown(store) == there(source))
    same = {key.name for key, held in before.items() if store.get(key) is held}
    assert same == {"a", "c"}


@in_virtual_time
async def test_after_going_back_in_time_nothing_is_taken_over_by_its_version() -> None:
    """F-R07: a restored server gives the same versions to other states."""
    source, store = FakeListWatch(), Store[Any]()
    source.add(config("a"))
    reflector = Reflector(source, store, options=PLAIN, known=store.entries)
    async with running(reflector):
        await source.wait_for_watches()
        source.modify(config("a", "blue"))
        source.advance(10)
        source.bookmark()
        await source.wait_delivered()
        source.restore("2")
        source.modify(config("a", "green"))  # the same uid, the same version
        source.close_watches(REFUSED)
        await until(lambda: shown(store) == there(source))
    assert reflector.statistics().regressions == 1


@in_virtual_time
async def test_an_expired_first_list_is_no_reason_to_stop() -> None:
    told = Told()
    source = Script(lists=[said(410), said(410), listed(1)])
    async with running(Reflector(source, Store(), options=PLAIN, watch_error_handler=told)):
        await until(lambda: source.open)
    assert all(isinstance(error, ResourceExpiredError) for error in told.errors)
    assert versions(source) == ["", "", ""]

"""Lists in pages (client-go: TestListPager_List, TestListPager_EachListItem)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import Final

import pytest

from kinform.errors import DecodeError, ResourceExpiredError, api_error, status_of_code
from kinform.meta import Entry, ListMeta, ObjectMeta
from kinform.rest.options import ListOptions
from kinform.rest.pager import MAX_BARREN_PAGES, ListPager
from kinform.rest.results import ListResult, Unreadable
from kinform.testing import in_virtual_time

DEVIATIONS: Final = {
    "CG-P01": "a list does not say whether it was paged: use pages() to see the pages",
    "CG-P02": "as CG-P01",
    "CG-P03": "as CG-P01",
}

GONE = api_error(status_of_code(410, method="GET", message="too old"))


class Source:
    """A server with ``count`` objects, whose tokens expire from page ``expires`` on."""

    def __init__(self, count: int, *, expires: int | None = None) -> None:
        self.count = count
        self.expires = expires
        self.asked: list[ListOptions] = []

    async def fetch(self, options: ListOptions) -> ListResult[int]:
        self.asked.append(options)
        start = int(options.continue_token or 0)
        if options.continue_token and self.expires is not None and len(self.asked) >= self.expires:
            raise GONE
        end = min(self.count, start + options.limit if options.limit else self.count)
        entries = [Entry(ObjectMeta(name=str(n)), n) for n in range(start, end)]
        token = str(end) if end < self.count else ""
        version = f"rv{len(self.asked)}"
        return ListResult(entries, metadata=ListMeta(version, token), kind="NumberList")


@pytest.mark.parametrize("count", [0, 9, 10])
@in_virtual_time
async def test_what_fits_one_page_is_one_request(count: int) -> None:
    """CG-P01."""
    source = Source(count)
    result = await ListPager(source.fetch, page_size=10).list(ListOptions())
    assert list(result) == list(range(count))
    assert (result.resource_version, result.kind) == ("rv1", "NumberList")
    assert source.asked == [ListOptions(limit=10)]


@pytest.mark.parametrize(("count", "pages"), [(11, 2), (21, 3)])
@in_virtual_time
async def test_several_pages_are_one_list_with_the_version_of_the_first(
    count: int, pages: int
) -> None:
    """CG-P02."""
    source = Source(count)
    result = await ListPager(source.fetch, page_size=10).list(ListOptions())
    assert list(result) == list(range(count))
    assert (result.resource_version, result.continue_token) == ("rv1", "")
    assert result.kind == "NumberList"
    assert len(source.asked) == pages


@in_virtual_time
async def test_an_expired_token_is_an_error_if_asked_for() -> None:
    """CG-P03."""
    source = Source(21, expires=2)
    with pytest.raises(ResourceExpiredError):
        await ListPager(source.fetch, page_size=10, full_list_if_expired=False).list(ListOptions())
    assert len(source.asked) == 2


@pytest.mark.parametrize(
    "options",
    [ListOptions(), ListOptions(resource_version="5", resource_version_match="Exact")],
    ids=["newest", "exactly 5"],
)
@pytest.mark.parametrize("page", [2, 3])
@in_virtual_time
async def test_an_expired_token_leads_to_one_list_of_everything(
    page: int, options: ListOptions
) -> None:
    """CG-P04: never a picture glued from two versions; what was asked for first counts."""
    source = Source(21, expires=page)
    result = await ListPager(source.fetch, page_size=10).list(options)
    assert list(result) == list(range(21))
    assert result.resource_version == f"rv{page + 1}"
    assert source.asked[page:] == [options]


@in_virtual_time
async def test_expired_on_the_first_page_is_the_callers_to_deal_with() -> None:
    """The version it asked for is gone, and it may want another."""
    asked: list[ListOptions] = []

    async def fetch(options: ListOptions) -> ListResult[int]:
        asked.append(options)
        raise GONE

    with pytest.raises(ResourceExpiredError):
        await ListPager(fetch).list(ListOptions(resource_version="5"))
    assert len(asked) == 1


@in_virtual_time
async def test_what_could_not_be_read_is_gathered_from_all_pages() -> None:
    source = Source(25)

    async def fetch(options: ListOptions) -> ListResult[int]:
        page = await source.fetch(options)
        bad = Unreadable(ObjectMeta(name=options.continue_token or "0"), DecodeError("no"))
        return ListResult([*page.entries()], metadata=page.metadata, unreadable=[bad])

    listed = await ListPager(fetch, page_size=10).list(ListOptions())
    assert [bad.metadata.name for bad in listed.unreadable] == ["0", "10", "20"]


@in_virtual_time
async def test_a_version_is_not_sent_beside_a_continue_token() -> None:
    """CG-P05."""
    source = Source(21)
    options = ListOptions(resource_version="5", resource_version_match="Exact")
    await ListPager(source.fetch, page_size=10).list(options)
    sent = [(o.resource_version, o.resource_version_match) for o in source.asked]
    assert sent == [("5", "Exact"), ("", None), ("", None)]


@pytest.mark.parametrize("version", ["5", "0"])
@in_virtual_time
async def test_a_version_without_exact_match_is_asked_for_in_one_piece(version: str) -> None:
    source = Source(21)
    options = ListOptions(resource_version=version, resource_version_match="NotOlderThan")
    assert len(await ListPager(source.fetch, page_size=10).list(options)) == 21
    assert source.asked == [options]


@in_virtual_time
async def test_a_token_that_leads_nowhere_is_not_followed_for_ever() -> None:
    async def fetch(options: ListOptions) -> ListResult[int]:
        return ListResult([], metadata=ListMeta("1", "same"))

    with pytest.raises(DecodeError, match="same page"):
        await ListPager(fetch).list(ListOptions())
    with pytest.raises(DecodeError, match="same page"):
        async for _page in ListPager(fetch).pages(ListOptions()):
            pass


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"]], ids=["empty", "one", "two"])
@in_virtual_time
async def test_a_list_whose_tokens_are_ever_new_comes_to_an_end(names: list[str]) -> None:
    """Each page brings nothing, or the objects of the page before it."""
    asked = 0

    async def fetch(options: ListOptions) -> ListResult[int]:
        nonlocal asked
        asked += 1
        entries = [Entry(ObjectMeta(name=name), asked) for name in names]
        return ListResult(entries, metadata=ListMeta("1", f"token-{asked}"))

    pager = ListPager(fetch)
    for way in (pager.list(ListOptions()), exhaust(pager)):
        asked = 0
        with pytest.raises(DecodeError, match="1001 pages in a row have brought nothing new"):
            await way
        assert asked <= MAX_BARREN_PAGES + 3


async def exhaust(pager: ListPager[int]) -> None:
    async with contextlib.aclosing(pager.pages(ListOptions())) as pages:
        async for _page in pages:
            pass


@in_virtual_time
async def test_some_empty_pages_are_no_reason_to_give_up() -> None:
    """A server that filters after it has read may send empty pages."""
    asked = 0

    async def fetch(options: ListOptions) -> ListResult[int]:
        nonlocal asked
        asked += 1
        found = asked % 900 == 0
        entries = [Entry(ObjectMeta(name=str(asked)), asked)] if found else []
        return ListResult(entries, metadata=ListMeta("1", f"{asked}" if asked < 2700 else ""))

    assert list(await ListPager(fetch).list(ListOptions())) == [900, 1800, 2700]


@in_virtual_time
async def test_no_page_size_means_one_request() -> None:
    source = Source(1000)
    assert len(await ListPager(source.fetch, page_size=None).list(ListOptions())) == 1000
    assert len(source.asked) == 1


@in_virtual_time
async def test_the_callers_limit_wins_over_the_page_size() -> None:
    source = Source(21)
    await ListPager(source.fetch, page_size=10).list(ListOptions(limit=7))
    assert [o.limit for o in source.asked] == [7, 7, 7]


@in_virtual_time
async def test_five_hundred_is_the_default() -> None:
    source = Source(1201)
    assert len(await ListPager(source.fetch).list(ListOptions())) == 1201
    assert [o.limit for o in source.asked] == [500, 500, 500]


@pytest.mark.parametrize("count", [0, 9, 10, 11, 21])
@in_virtual_time
async def test_each_visits_all(count: int) -> None:
    """CG-P06."""
    source = Source(count)
    pager = ListPager(source.fetch, page_size=10)
    assert [n async for n in pager.each(ListOptions())] == list(range(count))


@in_virtual_time
async def test_each_tells_of_an_expired_token_after_the_page_it_has() -> None:
    """CG-P06: the first page is visited, then the error."""
    seen: list[int] = []
    with pytest.raises(ResourceExpiredError):
        async for n in ListPager(Source(21, expires=2).fetch, page_size=10).each(ListOptions()):
            seen.append(n)  # noqa: PERF401 - what came before the error counts
    assert seen == list(range(10))


@pytest.mark.parametrize(
    ("pages", "buffer", "taken", "asked"),
    [
        (1, 0, 1, 1),
        (5, 0, 1, 2),
        (5, 0, 2, 3),
        (5, 0, 5, 5),
        (5, 1, 1, 3),
        (5, 1, 5, 5),
        (5, 10, 1, 5),
        (20, None, 1, 12),
    ],
)
@in_virtual_time
async def test_pages_are_fetched_ahead_up_to_a_bound(
    pages: int, buffer: int | None, taken: int, asked: int
) -> None:
    """CG-P08: the page in work, the one on its way, and as many as the buffer holds."""
    source = Source(pages * 10)
    pager = ListPager(source.fetch, page_size=10)
    if buffer is not None:
        pager = ListPager(source.fetch, page_size=10, page_buffer_size=buffer)
    async with contextlib.aclosing(pager.pages(ListOptions())) as listed:
        for _ in range(taken):
            await anext(listed)
        await asyncio.sleep(1000)
        assert len(source.asked) == asked


@pytest.mark.parametrize("buffer", [0, 1, 10])
@in_virtual_time
async def test_what_was_fetched_ahead_comes_in_order_and_before_the_error(buffer: int) -> None:
    source = Source(100, expires=6)
    pager = ListPager(source.fetch, page_size=10, page_buffer_size=buffer)
    seen: list[int] = []
    with pytest.raises(ResourceExpiredError):
        async for page in pager.pages(ListOptions()):
            seen += page
            await asyncio.sleep(10)
    assert seen == list(range(50))


@in_virtual_time
async def test_pages_that_were_read_are_not_kept_alive() -> None:
    """Not by a pager that waits for its reader: a page may be megabytes."""

    class Payload:
        pass

    source = Source(50)

    async def fetch(options: ListOptions) -> ListResult[Payload]:
        page = await source.fetch(options)
        entries = [Entry(entry.metadata, Payload()) for entry in page.entries()]
        return ListResult(entries, metadata=page.metadata)

    read: list[weakref.ref[Payload]] = []
    alive: list[int] = []
    async for page in ListPager(fetch, page_size=10, page_buffer_size=0).pages(ListOptions()):
        await asyncio.sleep(10)
        gc.collect()
        alive.append(sum(payload() is not None for payload in read))
        read.append(weakref.ref(page[0]))
    assert alive == [0, 0, 0, 0, 0]


def test_a_buffer_of_less_than_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="page_buffer_size must not be negative, got -1"):
        ListPager(Source(1).fetch, page_buffer_size=-1)


@pytest.mark.parametrize("exact", [True, False])
@in_virtual_time
async def test_each_sends_the_version_with_the_first_page_alone(exact: bool) -> None:
    """CG-P05. Deviation (8.3, finding 4): client-go sends it with every page of an iteration,
    which the server refuses.
    """
    source = Source(21)
    options = ListOptions(
        resource_version="5", resource_version_match="Exact" if exact else "NotOlderThan", limit=10
    )
    assert len([n async for n in ListPager(source.fetch).each(options)]) == 21
    sent = [(o.resource_version, o.resource_version_match) for o in source.asked]
    assert sent == [("5", options.resource_version_match), ("", None), ("", None)]
    assert [o.limit for o in source.asked] == [10, 10, 10]


@in_virtual_time
async def test_an_error_in_the_loops_body_ends_it_there() -> None:
    """CG-P07: and nothing goes on behind it."""
    source = Source(30)
    seen: list[int] = []
    with pytest.raises(ArithmeticError):
        async with contextlib.aclosing(
            ListPager(source.fetch, page_size=10, page_buffer_size=0).each(ListOptions())
        ) as numbers:
            async for n in numbers:
                seen.append(n)
                if len(seen) == 3:
                    raise ArithmeticError
    asked = len(source.asked)
    await asyncio.sleep(1000)
    assert seen == [0, 1, 2]
    assert asked == len(source.asked) == 1


@pytest.mark.parametrize("fetched", ["in time", "ahead"])
@in_virtual_time
async def test_a_reader_that_is_cancelled_finishes_its_page_and_no_more(fetched: str) -> None:
    """CG-P07: even if its loop's body never waits and the next pages are there already."""
    source = Source(30)
    seen: list[int] = []

    async def read() -> None:
        async with contextlib.aclosing(
            ListPager(source.fetch, page_size=10).each(ListOptions())
        ) as numbers:
            async for n in numbers:
                seen.append(n)
                if n == 0 and fetched == "ahead":
                    await asyncio.sleep(10)
                if len(seen) == 3:
                    task.cancel()

    task = asyncio.get_running_loop().create_task(read())
    await asyncio.wait([task])
    assert task.cancelled()
    assert seen == list(range(10))


@in_virtual_time
async def test_leaving_early_stops_the_fetch_under_way() -> None:
    """A task left behind would fail this test."""
    stopped: list[bool] = []
    source = Source(30)

    async def fetch(options: ListOptions) -> ListResult[int]:
        if options.continue_token:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                stopped.append(True)
                raise
        return await source.fetch(options)

    pages = ListPager(fetch, page_size=10).pages(ListOptions())
    await anext(pages)
    await asyncio.sleep(1)
    await pages.aclose()
    assert stopped == [True]

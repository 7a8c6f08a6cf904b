"""Lists in pages (client-go: TestListPager_List, TestListPager_EachListItem)."""

from __future__ import annotations

import asyncio

import pytest

from kinform.errors import DecodeError, ResourceExpiredError, api_error, status_of_code
from kinform.meta import Entry, ListMeta, ObjectMeta
from kinform.rest.options import ListOptions
from kinform.rest.pager import ListPager
from kinform.rest.results import ListResult
from kinform.testing import in_virtual_time

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
    assert len(source.asked) == 1


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


@pytest.mark.parametrize("page", [2, 3])
@in_virtual_time
async def test_an_expired_token_leads_to_one_list_of_everything(page: int) -> None:
    """CG-P04: never a picture glued from two versions."""
    source = Source(21, expires=page)
    result = await ListPager(source.fetch, page_size=10).list(ListOptions())
    assert list(result) == list(range(21))
    assert result.resource_version == f"rv{page + 1}"
    assert source.asked[-1] == ListOptions()


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


@in_virtual_time
async def test_the_next_page_is_fetched_while_this_one_is_worked_on() -> None:
    source = Source(30)
    pages = ListPager(source.fetch, page_size=10).pages(ListOptions())
    await anext(pages)
    await asyncio.sleep(1)
    assert len(source.asked) == 2
    await pages.aclose()


@in_virtual_time
async def test_leaving_early_stops_the_fetch_under_way() -> None:
    """CG-P07. A task left behind would fail this test."""
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

"""A plain list, page by page into an `Intake`: of one version, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple, TypeVar

from kinform.cache.intake import Intake
from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.errors import DecodeError, ResourceExpiredError, SourceError
from kinform.rest.options import ListOptions
from kinform.rest.pager import MAX_BARREN_PAGES, ListPager
from kinform.rest.results import ListResult, list_too_large

__all__ = ["Taken", "take_list"]

T = TypeVar("T")


class Taken(NamedTuple):
    """A list that is in the intake, all of it."""

    resource_version: str
    """The version of the first page, which is that of all."""
    pages: int


async def take_list(
    lw: ListerWatcher[T],
    intake: Intake[T],
    options: ListOptions,
    *,
    on_page: Callable[[ListResult[T]], object],
) -> Taken | None:
    """List everything into ``intake``, as ``options`` say; call ``on_page`` after each page.

    ``None``: what the first page showed has expired, so that the others cannot be had. That does
    not happen to a list without a limit.

    Raises:
        ResourceExpiredError: the version has expired.
        DecodeError: an answer is no list of our kind, or the list has no end, or is larger than
            ``lw`` says that one may be.
        SourceError: ``lw`` gives something else.
    """
    version, count, barren, size = "", 0, 0, 0
    most = source_options(lw).max_list_size
    intake.begin_list(reuse=True)
    try:
        async with contextlib.aclosing(_pages(lw, options)) as pages:
            async for page in pages:
                count += 1
                size += page.size
                if most is not None and size > most:
                    raise list_too_large(most)
                version = page.resource_version if count == 1 else version
                listed = intake.listed
                for _ in intake.add_page(page):
                    await asyncio.sleep(0)
                barren = 0 if intake.listed > listed else barren + 1
                if barren > MAX_BARREN_PAGES:
                    raise DecodeError(f"{barren} pages in a row have brought nothing new")
                on_page(page)
    except ResourceExpiredError:
        if not count or options.limit is None:
            raise
        return None
    return Taken(version, count)


async def _pages(lw: ListerWatcher[T], options: ListOptions) -> AsyncGenerator[ListResult[T]]:
    tokens: set[str] = set()

    async def fetch(options: ListOptions) -> ListResult[T]:
        page = await lw.list(options)
        if not isinstance(page, ListResult):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            raise SourceError(f"list() gave a {type(page).__name__} instead of a ListResult")
        if page.continue_token and page.continue_token in tokens:
            raise DecodeError("the server's continue token leads back to a page it has given")
        tokens.add(page.continue_token)
        return page

    async with contextlib.aclosing(ListPager(fetch, page_size=None).pages(options)) as pages:
        async for page in pages:
            yield page

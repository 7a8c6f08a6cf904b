"""A plain list, page by page into an `Intake`: of one version, or not at all.

A server can keep a list going for ever, with ever-new continue tokens. Two bounds end such a list
(pages that bring nothing new, and the size), and `_PagePace` keeps it slow until then. A list of a
million objects in pages of 500 is not slowed down.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final, NamedTuple, TypeVar, final

from kinform.cache._reflector.intake import Intake
from kinform.cache.listwatch import ListerWatcher, source_options
from kinform.errors import DecodeError, ResourceExpiredError, SourceError
from kinform.rest.options import ListOptions
from kinform.rest.pager import MAX_BARREN_PAGES, ListPager
from kinform.rest.results import ListResult, list_too_large

__all__ = ["Taken", "take_list"]

T = TypeVar("T")

BARREN_AT_ONCE: Final = 10
"""Pages in a row without a new object after which the next ones are paced."""
PAGES_AT_ONCE: Final = 4_000
"""Pages after which a list is paced: two million objects in pages of 500."""
SURPLUS_PAGES: Final = 10
"""Pages that may follow after as many objects as ``remainingItemCount`` promised: the server may
not count exactly."""
PACED_PAGE: Final = 0.1
"""The wait before a page that is paced."""


@final
class _PagePace:
    """Decides how long the next page of a list waits."""

    def __init__(self) -> None:
        self._promised: int | None = None  # objects, by the first page
        self._surplus = 0  # pages since there were that many
        self.pages: int = 0
        self.barren: int = 0  # pages in a row without a new object

    def note(self, page: ListResult[T], *, listed: int, is_new: bool) -> None:
        """Count a page; ``listed`` objects came so far, ``is_new``: one of them with this page."""
        self.pages += 1
        self.barren = 0 if is_new else self.barren + 1
        remaining = page.metadata.remaining_item_count
        # Only the first page: a server could raise its promise with every page.
        if self.pages == 1 and remaining is not None:
            self._promised = listed + remaining
        if self._promised is not None and listed >= self._promised:
            self._surplus += 1

    def wait(self) -> float:
        """Return the wait before the next page in seconds."""
        is_paced = (
            self.barren > BARREN_AT_ONCE
            or self.pages > PAGES_AT_ONCE
            or self._surplus > SURPLUS_PAGES
        )
        return PACED_PAGE if is_paced else 0.0


class Taken(NamedTuple):
    """A complete list in the intake."""

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

    ``None``: the continue token has expired, so the remaining pages are not available. That does
    not happen to a list without a limit.

    Raises:
        ResourceExpiredError: the version has expired.
        DecodeError: an answer is not a list of the expected kind, or the list is endless or larger
            than its ``max_list_size``.
        SourceError: ``lw`` returns something else than a list.
    """
    version, size, pace = "", 0, _PagePace()
    most = source_options(lw).max_list_size
    intake.begin_list(reuse=True)
    try:
        async with contextlib.aclosing(_pages(lw, options, pace)) as pages:
            async for page in pages:
                # Checked before the objects are taken in: the bound is for memory.
                size += page.size
                if most is not None and size > most:
                    raise list_too_large(most)
                # Of the first page: a server that reads later pages from a newer state would
                # otherwise let the watch begin behind changes of the first one.
                version = version if pace.pages else page.resource_version
                listed = intake.listed
                for _ in intake.add_page(page):
                    await asyncio.sleep(0)
                pace.note(page, listed=intake.listed, is_new=intake.listed > listed)
                if pace.barren > MAX_BARREN_PAGES:
                    raise DecodeError(f"{pace.barren} pages in a row have brought nothing new")
                on_page(page)
    # Only between pages. A first page that has expired concerns the version, and the decisions
    # handle it.
    except ResourceExpiredError:
        if not pace.pages or options.limit is None:
            raise
        return None
    return Taken(version, pace.pages)


async def _pages(
    lw: ListerWatcher[T], options: ListOptions, pace: _PagePace
) -> AsyncGenerator[ListResult[T]]:
    tokens: set[str] = set()

    async def fetch(options: ListOptions) -> ListResult[T]:
        if wait := pace.wait():
            await asyncio.sleep(wait)
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

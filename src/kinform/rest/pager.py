"""`ListPager`: lists in pages of one consistent state (client-go: tools/pager)."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar, final

from kinform.errors import DecodeError, ResourceExpiredError
from kinform.meta import Entry
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult, list_too_large
from kinform.tasks import background

__all__ = ["MAX_BARREN_PAGES", "PAGE_BUFFER_SIZE", "PAGE_SIZE", "ListPager", "PageProgress"]

T = TypeVar("T")

PAGE_SIZE: Final = 500
"""Default number of objects per request, as in kubectl and client-go."""

PAGE_BUFFER_SIZE: Final = 10
"""Default number of pages buffered for a slow reader, as in client-go."""

MAX_BARREN_PAGES: Final = 1_000
"""Limit of consecutive pages without new objects. A server that filters may send empty pages."""


@final
class PageProgress:
    """Detects an endless list: new continue tokens, but no new objects."""

    def __init__(self) -> None:
        self._barren = 0
        self._last: object = None

    def note(self, page: Sequence[object], mark: object = None) -> None:
        """Count a page; two pages with the same ``mark`` hold the same objects.

        Raises:
            DecodeError: more than `MAX_BARREN_PAGES` in a row were empty, or repeated the page
                before them.
        """
        is_new = bool(page) and (mark is None or mark != self._last)
        self._barren = 0 if is_new else self._barren + 1
        self._last = mark
        if self._barren > MAX_BARREN_PAGES:
            raise DecodeError(f"{self._barren} pages in a row have brought nothing new")


@final
class ListPager(Generic[T]):
    """Turns one list into as many requests as it has pages.

    All pages show the version of the first one. ``page_size=None`` asks for everything at once;
    so does a ``resource_version`` without an exact match, because the server would read ``limit``
    with it as "exactly this version".

    Args:
        fetch: asks for one page.
        page_size: objects per request; a ``limit`` in the options wins over it.
        page_buffer_size: the number of pages that `pages` and `each` keep ready besides the one
            being fetched. Reading ahead keeps the token from expiring while a slow reader works. At
            most that many pages and one are held. With 0 only the next page is fetched while the
            caller works on this one.
        full_list_if_expired: whether `list` starts again when its token expires.
        max_size: the size limit of all pages of a `list` together, in bytes. `pages` and `each`
            keep no pages, so they have no such limit.

    Raises:
        ValueError: if ``page_buffer_size`` is negative.
    """

    def __init__(
        self,
        fetch: Callable[[ListOptions], Awaitable[ListResult[T]]],
        *,
        page_size: int | None = PAGE_SIZE,
        page_buffer_size: int = PAGE_BUFFER_SIZE,
        full_list_if_expired: bool = True,
        max_size: int | None = None,
    ) -> None:
        if page_buffer_size < 0:
            raise ValueError(f"page_buffer_size must not be negative, got {page_buffer_size!r}")
        self._fetch = fetch
        self._page_size = page_size
        self._page_buffer_size = page_buffer_size
        self._full_list_if_expired = full_list_if_expired
        self._max_size = max_size

    async def list(self, options: ListOptions) -> ListResult[T]:
        """Return all objects as one list with the resourceVersion of the first page.

        If the continue token expires on the way, the pages are dropped and the list is requested
        again, in one piece: the result is always one consistent state.

        Raises:
            ResourceExpiredError: on the first page, or later with ``full_list_if_expired`` off.
            DecodeError: it is larger than ``max_size``, or has no end (see `PageProgress`).
        """
        first = page = await self._fetch(self._first(options))
        if not first.continue_token:
            return first
        entries: list[Entry[T]] = list(first.entries())
        unreadable = list(first.unreadable)
        size, progress = first.size, PageProgress()
        while page.continue_token:
            try:
                page = await self._follow(options, page.continue_token)
            except ResourceExpiredError:
                if not self._full_list_if_expired:
                    raise
                return await self._fetch(dataclasses.replace(options, limit=None))
            _note(progress, page)
            entries.extend(page.entries())
            unreadable.extend(page.unreadable)
            size += page.size
            if self._max_size is not None and size > self._max_size:
                raise list_too_large(self._max_size)
        metadata = type(first.metadata)(resource_version=first.resource_version)
        return ListResult(
            entries,
            metadata=metadata,
            kind=first.kind,
            api_version=first.api_version,
            unreadable=unreadable,
            size=size,
        )

    async def pages(self, options: ListOptions) -> AsyncGenerator[ListResult[T]]:
        """Yield page after page; the next ones are fetched while the caller works on this one.

        Closing it (leave the loop inside `contextlib.aclosing`) cancels the request in flight and
        waits for its end. A cancelled caller notices at the end of its page at the latest, even if
        all other pages are in the buffer already.

        Raises:
            ResourceExpiredError: the token expired. It is raised after all pages that were read by
                then; they stay valid, but the rest of that state is lost: list again.
            DecodeError: the list has no end (see `PageProgress`).
        """
        first = await self._fetch(self._first(options))
        if not first.continue_token:
            yield first
            return
        ready: asyncio.Queue[ListResult[T] | None] = asyncio.Queue()  # bounded by ``room``
        # Acquired before a page is requested, so that the one being fetched counts too.
        room = asyncio.Semaphore(self._page_buffer_size + 1)
        ahead = self._read_ahead(options, first.continue_token, ready=ready, room=room)
        page: ListResult[T] | None = first
        del first  # a page that was read is not kept alive
        async with background(ahead) as task:
            while page is not None:
                yield page
                # With a full buffer and a loop body without await, other tasks would starve.
                await asyncio.sleep(0)
                page = await ready.get()
                room.release()
            await task  # raises what ended it, if that was not the last page

    async def _read_ahead(
        self,
        options: ListOptions,
        token: str,
        *,
        ready: asyncio.Queue[ListResult[T] | None],
        room: asyncio.Semaphore,
    ) -> None:
        """Put the pages behind ``token`` into ``ready``, as capacity allows, then None."""
        progress = PageProgress()
        try:
            while token:
                await room.acquire()
                page = await self._follow(options, token)
                _note(progress, page)
                token = page.continue_token
                ready.put_nowait(page)
        finally:
            ready.put_nowait(None)

    async def each(self, options: ListOptions) -> AsyncGenerator[T]:
        """Yield object after object; otherwise as `pages`."""
        async with contextlib.aclosing(self.pages(options)) as pages:
            async for page in pages:
                for item in page:
                    yield item

    def _first(self, options: ListOptions) -> ListOptions:
        if options.limit is not None or self._page_size is None:
            return options
        if options.resource_version and options.resource_version_match != "Exact":
            return options
        return dataclasses.replace(options, limit=self._page_size)

    async def _follow(self, options: ListOptions, token: str) -> ListResult[T]:
        """Fetch the page behind ``token``."""
        # The API forbids a version beside a continue token: the token carries it.
        following = dataclasses.replace(
            self._first(options),
            continue_token=token,
            resource_version="",
            resource_version_match=None,
        )
        page = await self._fetch(following)
        if page.continue_token == token:
            raise DecodeError("the server's continue token leads to the same page again")
        return page


def _note(progress: PageProgress, page: ListResult[T]) -> None:
    first = next(page.entries(), None)
    mark = None if first is None else (len(page), first.metadata.key)
    progress.note([first] if first is not None else page.unreadable, mark=mark)

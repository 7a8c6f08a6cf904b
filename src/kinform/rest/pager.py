"""Lists in pages: 500 at a time, one consistent picture (client-go: tools/pager)."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, Generic, TypeVar, final

from kinform.errors import DecodeError, ResourceExpiredError
from kinform.meta import Entry
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.tasks import background

__all__ = ["PAGE_SIZE", "ListPager"]

T = TypeVar("T")

PAGE_SIZE: Final = 500
"""Objects per request, unless told otherwise; kubectl's and client-go's figure."""


@final
class ListPager(Generic[T]):
    """Turns one list into as many requests as it has pages.

    All pages show the version of the first one. ``page_size=None`` asks for everything at once;
    so does a ``resource_version`` without an exact match, because the server would read ``limit``
    with it as "exactly this version".
    """

    def __init__(
        self,
        fetch: Callable[[ListOptions], Awaitable[ListResult[T]]],
        *,
        page_size: int | None = PAGE_SIZE,
        full_list_if_expired: bool = True,
    ) -> None:
        self._fetch = fetch
        self._page_size = page_size
        self._full_list_if_expired = full_list_if_expired

    async def list(self, options: ListOptions) -> ListResult[T]:
        """Return all objects as one list with the resourceVersion of the first page.

        If the continue token expires on the way, what was read is dropped and everything is
        asked for once more, in one piece: the result is always one consistent picture.

        Raises:
            ResourceExpiredError: on the first page, or later with ``full_list_if_expired`` off.
        """
        first = page = await self._fetch(self._first(options))
        if not first.continue_token:
            return first
        entries: list[Entry[T]] = list(first.entries())
        unreadable = list(first.unreadable)
        while page.continue_token:
            try:
                page = await self._follow(options, page.continue_token)
            except ResourceExpiredError:
                if not self._full_list_if_expired:
                    raise
                return await self._fetch(dataclasses.replace(options, limit=None))
            entries.extend(page.entries())
            unreadable.extend(page.unreadable)
        metadata = type(first.metadata)(resource_version=first.resource_version)
        return ListResult(
            entries,
            metadata=metadata,
            kind=first.kind,
            api_version=first.api_version,
            unreadable=unreadable,
        )

    async def pages(self, options: ListOptions) -> AsyncGenerator[ListResult[T]]:
        """Yield page after page; the next one is fetched while the caller works on this one.

        Raises:
            ResourceExpiredError: the token expired. Pages already yielded stay valid, but the
                rest of that picture is gone: begin again.
        """
        page = await self._fetch(self._first(options))
        while page.continue_token:
            async with background(self._follow(options, page.continue_token)) as task:
                yield page
                page = await task
        yield page

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

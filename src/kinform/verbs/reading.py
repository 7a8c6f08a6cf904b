"""The verbs that read: get, list, watch, logs, and informers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar, Unpack

from kinform.cache._informer.argument_checks import check_keywords
from kinform.cache.listwatch import ListWatch
from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.meta import ObjectName
from kinform.resource import body_reader
from kinform.rest.logs import LogStream
from kinform.rest.options import ListOptions, ResourceVersionMatch
from kinform.rest.pager import PAGE_SIZE, ListPager
from kinform.rest.request import Request, watch_deadline
from kinform.rest.results import ListResult
from kinform.rest.transport import HttpResponse
from kinform.rest.watch import Receiving, Watch, WatchResponse
from kinform.selectors import FieldSelector, FieldSelectorLike, LabelSelectorLike
from kinform.verbs.base import Name, ResourceBase, again_if_moved, selecting

__all__ = ["Gets", "Lists", "ReadsLogs", "Watches"]

T = TypeVar("T")


class Gets(ResourceBase[T]):
    """Can read one object."""

    @again_if_moved
    async def get(self, name: Name, *, resource_version: str = "") -> T:
        """Return one object.

        Raises:
            NotFoundError: the object does not exist.
        """
        request = await self._request("GET", name)
        request.params({"resourceVersion": resource_version or None})
        return await request.into(self._model)


class Lists(ResourceBase[T]):
    """Can read all objects."""

    async def list(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        resource_version: str = "",
        resource_version_match: ResourceVersionMatch | None = None,
        limit: int | None = None,
        continue_token: str = "",
        page_size: int | None = PAGE_SIZE,
        timeout: float | None = None,
    ) -> ListResult[T]:
        """Return all objects that match, as one consistent list.

        It is fetched in pages of ``page_size`` (``None``: in one piece). With ``limit`` at most
        that many are returned, by one request, and ``continue_token`` leads to the next ones.
        A ``resource_version`` requests a state not older than that, or with the match ``"Exact"``
        that one.
        """
        options = selecting(
            label_selector,
            field_selector,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            timeout=timeout,
        )
        if limit is not None or continue_token:
            one = dataclasses.replace(options, limit=limit, continue_token=continue_token)
            return await self._fetch(one)
        most = self._connection.max_list_size
        return await ListPager(self._fetch, page_size=page_size, max_size=most).list(options)

    async def iterate(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        page_size: int | None = PAGE_SIZE,
    ) -> AsyncGenerator[T]:
        """Yield object after object, fetching the next pages in the background.

        Raises:
            ResourceExpiredError: reading took longer than the server keeps the version.
        """
        options = selecting(label_selector, field_selector)
        pager = ListPager(self._fetch, page_size=page_size)
        async with contextlib.aclosing(pager.each(options)) as items:
            async for item in items:
                yield item


class Watches(ResourceBase[T]):
    """Can follow objects: as a stream of events, or as an informer's cache."""

    def watch(
        self,
        *,
        resource_version: str = "",
        name: Name | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        timeout: float | None = None,
        send_initial_events: bool | None = None,
    ) -> Watch[T]:
        """Return a watch of the changes after ``resource_version``.

        Without a version it begins with an ADDED event for each existing object. With
        ``send_initial_events`` these show one consistent state and end with a bookmark
        (`Watch.with_bookmarks`). The server closes the watch after ``timeout`` seconds.
        """
        place = None
        if name is not None:
            place = self._place(name)
            field_selector = _named(name, field_selector)
        options = selecting(
            label_selector,
            field_selector,
            resource_version=resource_version,
            timeout=timeout,
            watch=True,
            allow_watch_bookmarks=True,
            send_initial_events=send_initial_events,
            resource_version_match=None if send_initial_events is None else "NotOlderThan",
        )

        @contextlib.asynccontextmanager
        async def connect() -> AsyncGenerator[WatchResponse]:
            async with contextlib.AsyncExitStack() as stack:
                yield await self._opened(stack, options, place)

        return Watch(
            connect,
            body_reader(self._model),
            resource_version=resource_version,
            deadline=watch_deadline(options.timeout),
            max_frame=self._connection.max_object_size,
        )

    @again_if_moved
    async def _opened(
        self, stack: contextlib.AsyncExitStack, options: ListOptions, namespace: str | None
    ) -> WatchResponse:
        """Open a watch, to be closed by ``stack``."""
        request = await self._request("GET", namespace=namespace)
        return await stack.enter_async_context(request.params(options).open_watch())

    def list_watch(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
    ) -> ListWatch[T]:
        """Return the source from which a `Reflector` or an informer reads these objects.

        It sends each request once: a reflector has its own backoff. After a 404 discovery runs: if
        it does not list the resource either, the error is `UnknownResourceError`.

        Raises:
            SelectorError: a selector is not valid.
        """
        chosen = selecting(label_selector, field_selector)

        async def request(options: ListOptions, *, listing: bool) -> Request:
            made = await self._request("GET", listing=listing)
            query = dataclasses.replace(
                options,
                label_selector=chosen.label_selector,
                field_selector=chosen.field_selector,
            )
            return made.params(query).max_retries(0)

        async def fetch(options: ListOptions) -> ListResult[T]:
            async with self._find.checked_if_not_found():
                return await (await request(options, listing=True)).list(self._model, isolate=True)

        @contextlib.asynccontextmanager
        async def watch(options: ListOptions) -> AsyncGenerator[Receiving[T]]:
            query = dataclasses.replace(options, watch=True)
            async with self._find.checked_if_not_found():
                stack = contextlib.AsyncExitStack()
                opened = (await request(query, listing=False)).watch(self._model)
                events = await stack.enter_async_context(opened)
            async with stack:
                yield events.with_bookmarks()

        connection = self._connection
        return ListWatch(
            list=fetch,
            watch=watch,
            reconnects=connection.reconnects,
            max_list_size=connection.max_list_size,
            probed_resource=lambda: self._find.known,
            namespaced=lambda: self._find.namespaced,
        )

    def informer(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]:
        """Return an informer of these objects; the other keywords are those of `SharedInformer`.

        Nothing is sent before it is started. The kind need not exist yet.

        Raises:
            SelectorError: a selector is not valid.
            UsageError: the value of an option is not valid.
            TypeError: a keyword is unknown.
        """
        check_keywords(options, InformerOptions.__annotations__, caller="informer()")
        source = self.list_watch(label_selector=label_selector, field_selector=field_selector)
        options.setdefault("name", self._label)
        return SharedInformer(source, model=self._model, **options)


class ReadsLogs(ResourceBase[T]):
    """Can read the logs of containers, for pods."""

    def logs(
        self,
        name: Name,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        since: float | None = None,
        tail_lines: int | None = None,
        limit_bytes: int | None = None,
    ) -> LogStream:
        """Return the log of a pod's container; ``since`` is seconds back from now."""
        params: Mapping[str, object] = {
            "container": container,
            "follow": follow or None,
            "previous": previous or None,
            "timestamps": timestamps or None,
            "sinceSeconds": None if since is None else max(1, round(since)),
            "tailLines": tail_lines,
            "limitBytes": limit_bytes,
        }

        @contextlib.asynccontextmanager
        async def connect() -> AsyncGenerator[HttpResponse]:
            request = await self._request("GET", name, subresource="log")
            async with request.header("Accept", "*/*").params(params).stream() as response:
                yield response

        return LogStream(connect)


def _named(name: Name, fields: FieldSelectorLike) -> str:
    """Return the field selector for one object by its name, and ``fields`` besides."""
    wanted = name.name if isinstance(name, ObjectName) else name
    both = (FieldSelector.of(fields), FieldSelector.from_fields({"metadata.name": wanted}))
    return ",".join(filter(None, map(str, both)))

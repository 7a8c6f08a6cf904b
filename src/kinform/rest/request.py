"""The chained builder of the seeds' RESTClient: say what to ask, then ask.

.. code-block:: python

    await rest.get().namespace("default").resource("daemonsets").name("demo").into(DaemonSet)

Setters return the request itself. The first mistake is kept and raised by the call that sends;
setters after it do nothing (client-go: request.go).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, final, overload

from kinform.errors import DecodeError, UsageError, api_error
from kinform.meta import Entry, Status
from kinform.objects import Object
from kinform.resource import body_reader, encode
from kinform.rest import responses
from kinform.rest.connection import MAX_RETRIES, Call, Connection
from kinform.rest.decoding import decode_answer, model_or_object
from kinform.rest.limits import RateLimiter
from kinform.rest.options import Params, query_pairs
from kinform.rest.paths import RequestPath
from kinform.rest.results import ListResult, Unreadable, list_too_large
from kinform.rest.transport import Body, HttpResponse
from kinform.rest.warnings import WarningHandler
from kinform.rest.watch import OpenWatch, Watch
from kinform.sansio import heads
from kinform.sansio.list import Item, ListDecoder
from kinform.sansio.retry import Purpose

__all__ = ["Answer", "Getter", "Request", "watch_deadline"]

T = TypeVar("T")

WATCH_GRACE: Final = 10.0
"""How long after its time-out a watch may take to end before we end it."""


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer, read whole (client-go: Result)."""

    code: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    method: str
    url: str

    def into(self, model: type[T]) -> T:
        """Decode the body as ``model``.

        Raises:
            DecodeError: the body is empty, no JSON, or does not fit the model.
        """
        responses.check_json(self.headers, method=self.method, url=self.url)
        if not self.body:
            raise DecodeError("the answer is empty", method=self.method, url=self.url)
        with responses.naming_request(method=self.method, url=self.url):
            return decode_answer(model, self.body)


class Getter(Protocol):
    """Anything that can begin a GET: a `RESTClient`, or a stand-in for one."""

    def get(self) -> Request:
        """Return a new GET request."""
        ...


@final
class Request:
    """One request being put together. Made by a `RESTClient`; sent once.

    The path is ``prefix/namespaces/NS/resource/name/subresource/suffix``; what is not set is
    left out. Segments are checked and escaped: no name can leave its place in the path.
    """

    def __init__(
        self,
        connection: Connection,
        method: str,
        *,
        prefix: str = "",
        content_type: str = "application/json",
        limiter: RateLimiter | None = None,
        warning_handler: WarningHandler | None = None,
    ) -> None:
        self._connection = connection
        self._method: Final = method.upper()
        self._path = RequestPath(prefix)
        self._content_type = content_type
        self._limiter = limiter
        self._is_urgent = False
        self._warning_handler = warning_handler
        self._error: UsageError | None = None
        self._params: list[tuple[str, str]] = []
        self._headers: dict[str, str] = {}
        self._body: Body = None
        self._timeout: float | None = None
        self._max_retries = MAX_RETRIES

    # What to ask.

    def namespace(self, namespace: str) -> Request:
        """Ask within ``namespace``; an empty one is an error where a name or a POST needs one."""
        return self._set("namespace", namespace)

    def namespace_if_scoped(self, namespace: str, *, scoped: bool) -> Request:
        """Ask within ``namespace`` if the resource has namespaces at all."""
        return self._set("namespace", namespace) if scoped else self

    def resource(self, resource: str) -> Request:
        """Ask for this resource: plural, lower case (``pods``)."""
        return self._set("resource", resource)

    def name(self, name: str) -> Request:
        """Ask for one object."""
        return self._set("name", name)

    def subresource(self, *segments: str) -> Request:
        """Ask for a part of the object, for example ``status``."""
        return self._set("subresource", *segments)

    def prefix(self, *segments: str) -> Request:
        """Put segments before the namespace."""
        return self._set("prefix", *segments)

    def suffix(self, *segments: str) -> Request:
        """Put segments at the end."""
        return self._set("suffix", *segments)

    def abs_path(self, *segments: str) -> Request:
        """Replace the API version's path; the server's own URL prefix stays in front."""
        return self._set("abs_path", *segments)

    def params(self, options: Params) -> Request:
        """Add query parameters, from an options value or by their names on the wire."""
        values = options if isinstance(options, Mapping) else options.query()
        self._params.extend(query_pairs(values))
        return self

    def header(self, name: str, value: str) -> Request:
        """Set a header; it wins over what kinform would send by that name."""
        if any(char in name + value for char in "\r\n\0") or not name:
            return self._fail(f"header {name!r} holds a line break or has no name")
        self._headers[name] = value
        return self

    def body(self, body: object) -> Request:
        """Send ``body``: bytes as they are, a stream of bytes once, anything else as JSON.

        A streamed body cannot be sent twice, so such a request is never retried.
        """
        if isinstance(body, bytes) or body is None:
            self._body = body
        elif isinstance(body, AsyncIterable):
            self._body = body  # pyright: ignore[reportUnknownMemberType]
        else:
            try:
                self._body = encode(body)
            except UsageError as exc:
                self._error = self._error or exc
        return self

    # How to ask.

    def timeout(self, timeout: float) -> Request:
        """Give up after ``timeout`` seconds, all attempts together; the server is told too.

        Waiting for the rate limiter does not count.
        """
        if not timeout > 0:
            return self._fail(f"timeout must be positive, got {timeout!r}")
        self._timeout = timeout
        return self

    def max_retries(self, max_retries: int) -> Request:
        """Send at most ``max_retries`` more times after a failure that allows it."""
        self._max_retries = max(0, max_retries)
        return self

    def rate_limiter(self, limiter: RateLimiter) -> Request:
        """Wait for ``limiter`` instead of the client's."""
        self._limiter = limiter
        return self

    def urgent(self) -> Request:
        """Wait neither for the rate limiter nor for a place among the requests under way.

        For the few requests on which everything else depends, such as the renewal of a lease.
        """
        self._is_urgent = True
        return self

    def warning_handler(self, handler: WarningHandler) -> Request:
        """Tell ``handler`` of the server's warnings instead of the client's."""
        self._warning_handler = handler
        return self

    # Ask.

    @property
    def url(self) -> str:
        """The whole URL this request will be sent to.

        Raises:
            UsageError: if the request is not well put together.
        """
        return self._url(self._call(Purpose.CALL))

    async def do(self) -> Answer:
        """Send the request and read the whole answer.

        Raises:
            UsageError: the request is not well put together; nothing was sent.
            ApiError: the server refused, or answered 2xx with a failed ``Status``.
            TransportError: no answer.
        """
        call = self._call(Purpose.CALL)
        url = self._url(call)

        async def consume(response: HttpResponse) -> Answer:
            body = await response.read(self._connection.max_object_size)
            return Answer(response.status, response.headers, body, call.method, url)

        answer = await self._connection.call(call, consume)
        if error := responses.error_of_status(answer.body, method=call.method, url=url):
            raise error
        return answer

    async def into(self, model: type[T]) -> T:
        """Send the request and decode the answer as ``model``; raises as `do`, or `DecodeError`."""
        return (await self.do()).into(model)

    async def raw(self) -> bytes:
        """Send the request and return the body's bytes; raises as `do`."""
        return (await self.do()).body

    def stream(self) -> AbstractAsyncContextManager[HttpResponse]:
        """Send the request and hand out the answer while its body flows; never retried midway.

        .. code-block:: python

            async with rest.get().abs_path("/api/v1/watch/pods").stream() as response:
                async for data, chunk_ends in response.iter_chunks(): ...
        """
        return self._connection.open(self._call(Purpose.STREAM))

    @overload
    async def list(self, *, isolate: bool = False) -> ListResult[Object]: ...
    @overload
    async def list(self, model: type[T], *, isolate: bool = False) -> ListResult[T]: ...
    async def list(self, model: type[T] | None = None, *, isolate: bool = False) -> ListResult[T]:
        """Send the request and decode the items of the list as they arrive.

        With ``isolate`` an item that cannot be read does not spoil the list: it is set apart, in
        `ListResult.unreadable`.

        Raises:
            DecodeError: the answer is no list, breaks off, is larger than ``Config.max_list_size``,
                or an item cannot be read.
        """
        call = self._call(Purpose.CALL)
        url = self._url(call)
        read = body_reader(model_or_object(model))

        async def consume(response: HttpResponse) -> ListResult[T]:
            responses.check_json(response.headers, method=call.method, url=url)
            decoder = ListDecoder(max_item=self._connection.max_object_size)
            most = self._connection.max_list_size
            return await _read_list(response, decoder, read, isolate=isolate, most=most)

        with responses.naming_request(method=call.method, url=url):
            return await self._connection.call(call, consume)

    @overload
    def watch(self) -> Watch[Object]: ...
    @overload
    def watch(self, model: type[T]) -> Watch[T]: ...
    def watch(self, model: type[T] | None = None) -> Watch[T]:
        """Return the watch this request opens; ``watch=true`` is up to its parameters.

        Opening is retried where that is safe; `Watch` tells the rest.
        """
        params = dict(self._params)
        return Watch(
            self.open_watch,
            body_reader(model_or_object(model)),
            resource_version=params.get("resourceVersion", ""),
            deadline=watch_deadline(params.get("timeoutSeconds")),
            max_frame=self._connection.max_object_size,
            is_list=params.get("sendInitialEvents") == "true",
            max_list=self._connection.max_list_size,
        )

    @contextlib.asynccontextmanager
    async def open_watch(self) -> AsyncGenerator[OpenWatch]:
        """Send the request as a watch and hand out the answer while it flows."""
        call = self._call(Purpose.WATCH)
        async with self._connection.open(call) as response:
            yield OpenWatch(response, self._url(call))

    def _set(self, part: str, *values: str) -> Request:
        if self._error is None:
            try:
                self._path.set(part, *values)
            except UsageError as exc:
                self._error = exc
        return self

    def _fail(self, message: str) -> Request:
        self._error = self._error or UsageError(message)
        return self

    def _url(self, call: Call) -> str:
        return self._connection.base_url + call.path

    def _call(self, purpose: Purpose) -> Call:
        if self._error is not None:
            raise self._error
        params = [*self._params]
        if self._timeout is not None:
            params.append(("timeout", f"{self._timeout:.3f}".rstrip("0").rstrip(".") + "s"))
        return Call(
            method=self._method,
            path=self._path.render(self._method, params),
            headers=self._all_headers(purpose),
            body=self._body,
            purpose=purpose,
            timeout=self._timeout,
            read_timeout=self._connection.read_timeout if purpose is Purpose.CALL else None,
            max_retries=self._max_retries,
            limiter=self._limiter,
            is_urgent=self._is_urgent,
            warning_handler=self._warning_handler,
        )

    def _all_headers(self, purpose: Purpose) -> dict[str, str]:
        packed = self._connection.compression and purpose is Purpose.CALL
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip" if packed and self._method == "GET" else "identity",
        }
        if self._body is not None:
            headers["Content-Type"] = self._content_type
        return headers | self._headers


def watch_deadline(timeout: str | float | None) -> float | None:
    """Return after how many seconds we end a watch that should have ended by itself."""
    return None if timeout is None else float(timeout) + WATCH_GRACE


async def _read_list(
    response: HttpResponse,
    decoder: ListDecoder,
    read: Callable[[heads.Body], T],
    *,
    isolate: bool,
    most: int | None,
) -> ListResult[T]:
    entries: list[Entry[T]] = []
    unreadable: list[Unreadable] = []
    size = 0
    while piece := await response.read_some():
        size += len(piece)
        if most is not None and size > most:
            raise list_too_large(most)
        for item in decoder.feed(piece):
            try:
                entries.append(_entry(item, read))
            except DecodeError as exc:
                if not isolate:
                    raise
                metadata = item.head.metadata if item.head else heads.salvage(item.raw)
                unreadable.append(Unreadable(metadata, heads.detached(exc)))
        if decoder.failure is not None:
            raise decoder.failure  # at once: nobody needs the rest of a login page
    head = decoder.finish()
    if isinstance(head, Status):
        raise api_error(head)
    return ListResult(
        entries,
        metadata=head.metadata,
        kind=head.kind,
        api_version=head.api_version,
        unreadable=unreadable,
        size=size,
    )


def _entry(item: Item, read: Callable[[heads.Body], T]) -> Entry[T]:
    if item.head is None:
        raise item.error or DecodeError("an object of the list cannot be read")
    return Entry(item.head.metadata, read(heads.Body(item.raw, item.head)))

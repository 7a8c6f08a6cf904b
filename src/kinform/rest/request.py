"""`Request`: a chained builder for one API request (client-go: rest/request.go).

.. code-block:: python

    await rest.get().namespace("default").resource("daemonsets").name("demo").into(DaemonSet)

Setters return the request itself. The first mistake is kept and raised by the call that sends;
setters after it do nothing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar, cast, final, overload
from urllib.parse import quote, urlencode

from kinform.errors import DecodeError, UsageError, api_error
from kinform.meta import Entry, GroupVersion, Status
from kinform.objects import models
from kinform.objects.object import Object
from kinform.resource import body_reader, decode_answer, model_or_object
from kinform.rest import _responses
from kinform.rest.connection import MAX_RETRIES, Call, Connection
from kinform.rest.options import Params, query_pairs
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.results import ListResult, Unreadable, list_too_large
from kinform.rest.transport import Body, HttpResponse
from kinform.rest.warnings import WarningHandler
from kinform.rest.watch import Watch, WatchResponse
from kinform.sansio.retry import Purpose
from kinform.sansio.wire import heads
from kinform.sansio.wire.list import Item, ListDecoder

__all__ = ["Answer", "Getter", "Request", "api_prefix", "check_segment", "watch_deadline"]

T = TypeVar("T")

WATCH_GRACE: Final = 10.0
"""Seconds after its timeout in which the server may end a watch before we do."""

_SAFE: Final = "-._~!$&'()*+,;=:@"  # what RFC 3986 allows in a segment, all but the escapes
_FORBIDDEN: Final = re.compile("[/%\x00-\x1f\x7f\ud800-\udfff]")
_is_segment: Final = re.compile(rf"(?!\.\.?\Z)[^{_FORBIDDEN.pattern[1:]}+").fullmatch


def check_segment(part: str, value: str) -> str:
    """Return ``value`` if it is valid as one segment of a path.

    Raises:
        UsageError: it is empty, ``.`` or ``..``, or holds ``/``, ``%`` or a control character.
    """
    if isinstance(cast("object", value), str) and _is_segment(value):
        return value
    raise _bad_segment(part, value)


def _bad_segment(part: str, value: object) -> UsageError:
    """Return the error for a ``value`` that is not a segment; it says why."""
    if not isinstance(value, str):
        return UsageError(f"{part} must be a text, got {type(value).__name__}")
    if found := _FORBIDDEN.search(value):
        return UsageError(f"{part} {value!r} must not hold {found[0]!r}")
    return UsageError(f"{part} must not be {repr(value) if value else 'empty'}")


def api_prefix(api_version: GroupVersion) -> str:
    """Return the path of an API version: ``/api/v1`` or ``/apis/apps/v1``.

    Raises:
        UsageError: a part of it is not valid in a path.
    """
    for part in filter(None, api_version):
        if quote(check_segment("API version", part), safe="") != part:
            raise UsageError(f"{str(api_version)!r} is not an API version like 'v1' or 'apps/v1'")
    return api_version.path


def _join(part: str, values: Sequence[str]) -> str:
    """Write free segments, which may themselves hold slashes."""
    pieces = [piece for value in values for piece in value.split("/") if piece]
    return "".join(f"/{quote(check_segment(part, piece), safe=_SAFE)}" for piece in pieces)


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response, read whole (client-go: Result)."""

    code: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    method: str
    url: str

    def into(self, model: type[T]) -> T:
        """Decode the body as ``model``.

        Raises:
            DecodeError: the body is empty, is not JSON, or does not match the model.
        """
        _responses.check_json(self.headers, method=self.method, url=self.url)
        if not self.body:
            raise DecodeError("the answer is empty", method=self.method, url=self.url)
        try:
            return decode_answer(model, self.body)
        except DecodeError as exc:
            exc.method, exc.url = exc.method or self.method, exc.url or self.url
            raise


class Getter(Protocol):
    """Anything that can begin a GET: a `RESTClient`, or a fake of one."""

    def get(self) -> Request:
        """Return a new GET request."""
        ...


@final
class Request:
    """One request under construction. Made by a `RESTClient`; sent once.

    The path is ``prefix/namespaces/NS/resource/name/subresource/suffix``; parts that are not set
    are left out. Segments are checked and escaped, so that no name can change the path's structure.
    """

    def __init__(
        self,
        connection: Connection,
        method: str,
        *,
        prefix: str = "",
        resource: str | None = None,
        content_type: str = "application/json",
        limiter: RateLimiter | None = None,
        warning_handler: WarningHandler | None = None,
    ) -> None:
        """Begin a request; ``prefix`` and ``resource`` must have been checked by the caller."""
        self._connection = connection
        self._method: Final = method.upper()
        self._prefix = prefix.rstrip("/")
        self._namespace: str | None = None
        self._resource = resource
        self._name: str | None = None
        self._subresource: tuple[str, ...] = ()
        self._suffix = ""
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

    # The resource and the body.

    def namespace(self, namespace: str) -> Request:
        """Set the namespace; an empty one is an error where a name or a POST needs one."""
        if not namespace and self._namespace is None:
            self._namespace = ""
        elif self._accepts("namespace", namespace, before=self._namespace):
            self._namespace = namespace
        return self

    def namespace_if_scoped(self, namespace: str, *, scoped: bool) -> Request:
        """Set the namespace if the resource is namespaced."""
        return self.namespace(namespace) if scoped else self

    def resource(self, resource: str) -> Request:
        """Set the resource: plural, lower case (``pods``)."""
        if self._accepts("resource", resource, before=self._resource):
            self._resource = resource.lower()
        return self

    def name(self, name: str) -> Request:
        """Set the name of one object."""
        if self._accepts("name", name, before=self._name):
            self._name = name
        return self

    def subresource(self, *segments: str) -> Request:
        """Set the part of the object, for example ``status``."""
        before = self._subresource or None
        if all(self._accepts("subresource", segment, before=before) for segment in segments):
            self._subresource = segments
        return self

    def prefix(self, *segments: str) -> Request:
        """Add segments before the namespace."""
        self._prefix += self._joined("prefix", segments)
        return self

    def suffix(self, *segments: str) -> Request:
        """Add segments at the end."""
        self._suffix += self._joined("suffix", segments)
        return self

    def abs_path(self, *segments: str) -> Request:
        """Replace the API version's path; the server's own URL prefix stays in front."""
        joined = self._joined("abs_path", segments)
        self._prefix = joined + ("/" if segments and segments[-1].endswith("/") else "")
        return self

    def params(self, options: Params) -> Request:
        """Add query parameters, from an options value or by their names on the wire."""
        if isinstance(options, Mapping):
            self._params += query_pairs(options)
        else:
            self._params += options.query().items()
        return self

    def header(self, name: str, value: str) -> Request:
        """Set a header; it overrides the one kinform would send by that name."""
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
                self._body = body.raw if isinstance(body, Object) else models.encode(body)
            except UsageError as exc:
                self._error = self._error or exc
        return self

    # How it is sent.

    def timeout(self, timeout: float) -> Request:
        """Give up after ``timeout`` seconds, all attempts together; the server gets it too.

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
        """Wait neither for the rate limiter nor for a slot of the request pool.

        For the few requests on which everything else depends, such as the renewal of a lease.
        """
        self._is_urgent = True
        return self

    def warning_handler(self, handler: WarningHandler) -> Request:
        """Pass the server's warnings to ``handler`` instead of the client's handler."""
        self._warning_handler = handler
        return self

    # Sending.

    @property
    def url(self) -> str:
        """The whole URL this request will be sent to.

        Raises:
            UsageError: if the request is not valid.
        """
        return self._connection.base_url + self._call(Purpose.CALL).path

    async def do(self) -> Answer:
        """Send the request and read the whole response.

        Raises:
            UsageError: the request is not valid; nothing was sent.
            ApiError: the server refused, or responded 2xx with a failed ``Status``.
            TransportError: no response.
        """
        call = self._call(Purpose.CALL)
        url = self._connection.base_url + call.path

        async def consume(response: HttpResponse) -> Answer:
            body = await response.read(self._connection.max_object_size)
            return Answer(response.status, response.headers, body, call.method, url)

        answer = await self._connection.call(call, consume)
        if error := _responses.error_of_status(answer.body, method=call.method, url=url):
            raise error
        return answer

    async def into(self, model: type[T]) -> T:
        """Send the request and decode the body as ``model``; raises as `do`, or `DecodeError`."""
        return (await self.do()).into(model)

    async def raw(self) -> bytes:
        """Send the request and return the body's bytes; raises as `do`."""
        return (await self.do()).body

    def stream(self) -> AbstractAsyncContextManager[HttpResponse]:
        """Send the request and return the response while its body arrives; never retried midway.

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

        With ``isolate`` an item that cannot be decoded does not fail the list: it is put into
        `ListResult.unreadable`.

        Raises:
            DecodeError: the body is not a list, is cut off, is larger than
                ``Config.max_list_size``, or an item cannot be decoded.
        """
        call = self._call(Purpose.CALL)
        url = self._connection.base_url + call.path
        read = body_reader(model_or_object(model))

        async def consume(response: HttpResponse) -> ListResult[T]:
            _responses.check_json(response.headers, method=call.method, url=url)
            decoder = ListDecoder(max_item=self._connection.max_object_size)
            most = self._connection.max_list_size
            return await _read_list(response, decoder, read, isolate=isolate, most=most)

        with _responses.naming_request(method=call.method, url=url):
            return await self._connection.call(call, consume)

    @overload
    def watch(self) -> Watch[Object]: ...
    @overload
    def watch(self, model: type[T]) -> Watch[T]: ...
    def watch(self, model: type[T] | None = None) -> Watch[T]:
        """Return the watch this request opens; the caller sets ``watch=true`` in its parameters.

        Opening is retried where that is safe; see `Watch`.
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
    async def open_watch(self) -> AsyncGenerator[WatchResponse]:
        """Send the request as a watch and return the response while its body arrives."""
        call = self._call(Purpose.WATCH)
        async with self._connection.open(call) as response:
            yield WatchResponse(response, self._connection.base_url + call.path)

    def _accepts(self, part: str, value: str, *, before: object) -> bool:
        """Return whether ``value`` can be set; a mistake is kept for the call that sends."""
        if self._error is not None:
            return False
        if before is not None:
            self._error = UsageError(f"{part} is set already, to {before!r}")
        elif not isinstance(cast("object", value), str) or not _is_segment(value):
            self._error = _bad_segment(part, value)
        return self._error is None

    def _joined(self, part: str, segments: Sequence[str]) -> str:
        if self._error is None:
            try:
                return _join(part, segments)
            except UsageError as exc:
                self._error = exc
        return ""

    def _fail(self, message: str) -> Request:
        self._error = self._error or UsageError(message)
        return self

    def _call(self, purpose: Purpose) -> Call:
        if self._error is not None:
            raise self._error
        packed = self._connection.compression and purpose is Purpose.CALL
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip" if packed and self._method == "GET" else "identity",
        }
        if self._body is not None:
            headers["Content-Type"] = self._content_type
        return Call(
            method=self._method,
            path=self._path(),
            headers=headers | self._headers,
            body=self._body,
            purpose=purpose,
            timeout=self._timeout,
            read_timeout=self._connection.read_timeout if purpose is Purpose.CALL else None,
            max_retries=self._max_retries,
            limiter=self._limiter,
            is_urgent=self._is_urgent,
            warning_handler=self._warning_handler,
        )

    def _path(self) -> str:
        """Return the escaped path with its query.

        Raises:
            UsageError: a namespace is needed and empty.
        """
        if self._namespace == "":
            if self._method == "POST":
                raise UsageError("a namespace must be set to create in it")
            if self._name is not None and self._method in {"GET", "PUT", "PATCH", "DELETE"}:
                raise UsageError("a namespace must be set to reach an object by name")
        tail = f"/namespaces/{quote(self._namespace, safe=_SAFE)}" if self._namespace else ""
        for segment in (self._resource, self._name, *self._subresource):
            if segment is not None:
                tail += f"/{quote(segment, safe=_SAFE)}"
        tail += self._suffix
        path = self._prefix.rstrip("/") + tail if tail else self._prefix or "/"
        params = self._params
        if self._timeout is not None:
            timeout = f"{self._timeout:.3f}".rstrip("0").rstrip(".") + "s"
            params = [*params, ("timeout", timeout)]
        try:
            return f"{path}?{urlencode(params)}" if params else path
        except UnicodeEncodeError as exc:
            raise UsageError(f"a parameter cannot be sent: {exc.reason}") from None


def watch_deadline(timeout: str | float | None) -> float | None:
    """Return the seconds after which we end a watch that the server should have ended."""
    return None if timeout is None else float(timeout) + WATCH_GRACE


async def _read_list(
    response: HttpResponse,
    decoder: ListDecoder,
    read: Callable[[bytes, heads.Head], T],
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
            raise decoder.failure  # at once: the rest, perhaps of a login page, is useless
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


def _entry(item: Item, read: Callable[[bytes, heads.Head], T]) -> Entry[T]:
    if item.head is None:
        raise item.error or DecodeError("an object of the list cannot be read")
    return Entry(item.head.metadata, read(item.raw, item.head))

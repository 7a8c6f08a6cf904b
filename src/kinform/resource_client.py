"""`ResourceClient`: everything one can do with one kind of object, typed.

Reads give ``T``. Writes take what can be JSON; what the server answers is ``T`` again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack, final, overload

from kinform import writes
from kinform.cache.informer import InformerOptions, SharedInformer
from kinform.cache.listwatch import ListWatch
from kinform.errors import ConflictError, InvalidError, UsageError
from kinform.finder import Finder
from kinform.meta import GroupVersion, ObjectName
from kinform.objects import Object
from kinform.resource import body_reader
from kinform.rest import responses
from kinform.rest.client import RESTClient
from kinform.rest.conflict import retry_on_conflict
from kinform.rest.connection import Connection
from kinform.rest.logs import LogStream
from kinform.rest.options import ListOptions, ResourceVersionMatch
from kinform.rest.pager import PAGE_SIZE, ListPager
from kinform.rest.patch import PatchType
from kinform.rest.request import Answer, Request, watch_deadline
from kinform.rest.results import ListResult
from kinform.rest.transport import HttpResponse
from kinform.rest.watch import OpenWatch, Receiving, Watch
from kinform.selectors import (
    FieldSelector,
    FieldSelectorLike,
    LabelSelectorLike,
    field_selector,
    label_selector,
)
from kinform.writes import FieldValidation, Propagation, WriteOptions

__all__ = ["ALL_NAMESPACES", "ResourceClient"]

T = TypeVar("T")
M = TypeVar("M")

ALL_NAMESPACES: Final = ""
"""Say this as ``namespace`` to list and watch across all of them."""

Name: TypeAlias = str | ObjectName
"""An object's name within the client's namespace, or its full name."""


@final
class ResourceClient(Generic[T]):
    """One kind of object in one namespace (or all). Made by `Client.resource`; costs nothing.

    Nothing is sent before the first ``await``, which also looks the kind up. Any name may be
    given as an `ObjectName`, whose namespace then counts.

    Every method raises `ApiError` when the server refuses, `TransportError` when it does not
    answer, `DecodeError` when its answer cannot be read, and `UsageError` for calls that cannot
    work; these are not repeated below.
    """

    def __init__(
        self,
        connection: Connection,
        find: Finder,
        model: type[T],
        *,
        namespace: str,
        subresource: str | None = None,
        partial: str | None = None,
        label: str = "",
    ) -> None:
        self._connection = connection
        self._find = find
        self._model = model
        self._namespace = namespace
        self._subresource = subresource
        self._partial = partial
        self._label = label or model.__name__

    def __repr__(self) -> str:
        place = f"in {self._namespace!r}" if self._namespace else "in all namespaces"
        return f"<ResourceClient of {self._label} {place}>"

    # Other views of the same kind.

    def in_namespace(self, namespace: str) -> ResourceClient[T]:
        """Return the same client for another namespace."""
        return self._copy(self._model, namespace=namespace)

    def subresource(self, name: str) -> ResourceClient[Object]:
        """Return a client for a part of the objects, for example ``eviction``."""
        return self._copy(Object, subresource=name)

    @property
    def status(self) -> ResourceClient[T]:
        """The ``status`` part: ``await pods.status.patch("web-0", {"status": {...}})``."""
        return self._copy(self._model, subresource="status")

    @property
    def scale(self) -> ResourceClient[Object]:
        """The ``scale`` part, an ``autoscaling/v1`` Scale."""
        return self.subresource("scale")

    @property
    def metadata_only(self) -> ResourceClient[Object]:
        """Read only metadata (``PartialObjectMetadata``): far less to send and to keep."""
        return self._copy(Object, partial="PartialObjectMetadata")

    # Reads.

    async def get(self, name: Name, *, resource_version: str = "") -> T:
        """Return one object.

        Raises:
            NotFoundError: there is no such object.
        """
        request = await self._request("GET", name)
        request.params({"resourceVersion": resource_version or None})
        return await request.into(self._model)

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
        A ``resource_version`` asks for a state not older than that, unless ``"Exact"`` is said.
        """
        options = _selecting(
            label_selector,
            field_selector,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            timeout=timeout,
        )
        if limit is not None or continue_token:
            one = dataclasses.replace(options, limit=limit, continue_token=continue_token)
            return await self._fetch(one)
        return await ListPager(self._fetch, page_size=page_size).list(options)

    async def iterate(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        page_size: int | None = PAGE_SIZE,
    ) -> AsyncGenerator[T]:
        """Yield object after object, fetching the next pages meanwhile.

        Raises:
            ResourceExpiredError: reading took longer than the server keeps the version.
        """
        options = _selecting(label_selector, field_selector)
        pager = ListPager(self._fetch, page_size=page_size)
        async with contextlib.aclosing(pager.each(options)) as items:
            async for item in items:
                yield item

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
        """Return a watch of what happens after ``resource_version``.

        Without a version it begins with an ADDED event for everything there is. With
        ``send_initial_events`` these come from one consistent state and end with a bookmark
        (`Watch.with_bookmarks`). ``timeout`` is how long the server keeps it open.
        """
        place = None
        if name is not None:
            place = self._place(name)
            field_selector = _named(name, field_selector)
        options = _selecting(
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
        async def connect() -> AsyncGenerator[OpenWatch]:
            request = await self._request("GET", namespace=place)
            async with request.params(options).open_watch() as opened:
                yield opened

        return Watch(
            connect,
            body_reader(self._model),
            resource_version=resource_version,
            deadline=watch_deadline(options.timeout),
            max_frame=self._connection.max_object_size,
        )

    def list_watch(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
    ) -> ListWatch[T]:
        """Return what a `Reflector` or an informer needs to follow these objects.

        It sends each request once: who lists and watches has a back-off of its own. A kind that
        is not found is looked up anew the next time.

        Raises:
            SelectorError: a selector cannot be read.
        """
        chosen = _selecting(label_selector, field_selector)

        async def request(options: ListOptions, *, listing: bool) -> Request:
            made = await self._request("GET", listing=listing)
            query = dataclasses.replace(
                options,
                label_selector=chosen.label_selector,
                field_selector=chosen.field_selector,
            )
            return made.params(query).max_retries(0)

        async def fetch(options: ListOptions) -> ListResult[T]:
            with self._find.doubted_if_not_found():
                return await (await request(options, listing=True)).list(self._model, isolate=True)

        @contextlib.asynccontextmanager
        async def watch(options: ListOptions) -> AsyncGenerator[Receiving[T]]:
            query = dataclasses.replace(options, watch=True)
            with self._find.doubted_if_not_found():
                stack = contextlib.AsyncExitStack()
                opened = (await request(query, listing=False)).watch(self._model)
                events = await stack.enter_async_context(opened)
            async with stack:
                yield events.with_bookmarks()

        return ListWatch(list=fetch, watch=watch, reconnects=self._connection.reconnects)

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
            SelectorError: a selector cannot be read.
            UsageError: an option makes no sense.
        """
        source = self.list_watch(label_selector=label_selector, field_selector=field_selector)
        options.setdefault("name", self._label)
        return SharedInformer(source, model=self._model, **options)

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

    # Writes.

    async def create(
        self,
        body: object,
        *,
        name: Name | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Create an object from a dict, an `Object` or a model; return it as stored.

        ``apiVersion`` and ``kind`` are filled in where they are missing. ``name`` is for
        subresources only (``pods.subresource("eviction").create({...}, name="web-0")``).

        Raises:
            AlreadyExistsError: there is an object of that name.
            InvalidError: the server finds faults with it; ``causes`` lists them.
        """
        resource = await self._find()
        content = writes.content_of(body)
        if self._subresource is None:
            content = writes.with_kind(content, resource)
        target = self._namespace if name is None else self._place(name)
        namespace = writes.namespace_of(content, target) if resource.namespaced else target
        request = await self._request("POST", name, namespace=namespace)
        options = WriteOptions(field_manager, field_validation, dry_run)
        return await request.params(options).body(content).into(self._model)

    async def replace(
        self,
        body: Mapping[str, object] | Object,
        *,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Replace the object named in ``body`` (PUT); with a resourceVersion, only that version.

        Takes a dict or an `Object`, never a model: a model declares part of an object, and
        what it does not declare would be gone. Use `update` for these.

        Raises:
            ConflictError: the object changed since it was read.
        """
        content = writes.whole_object(body)
        resource = await self._find()
        content = writes.with_kind(content, resource) if self._subresource is None else content
        name = writes.name_of(content, self._namespace)
        request = await self._request("PUT", name)
        options = WriteOptions(field_manager, field_validation, dry_run)
        return await request.params(options).body(content).into(self._model)

    @overload
    async def update(
        self: ResourceClient[Object],
        name: Name,
        change: Callable[[dict[str, object]], Mapping[str, object] | None],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object: ...
    @overload
    async def update(
        self,
        name: Name,
        change: Callable[[T], T | None],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> T: ...
    async def update(
        self,
        name: Name,
        change: Callable[..., object],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> T | Object:
        """Read an object, let ``change`` work on a copy of it, and write only the difference.

        For `Object` (and ``dict``) the copy is a plain dict, to be changed in place or answered
        with a whole new one; a frozen model is answered with a new model. What the model does not
        declare is left alone. The write is refused if somebody else wrote in between; then all of
        it is done again, at most five times, so ``change`` must have no other effects. No
        difference: no write.

        Raises:
            NotFoundError: there is no such object.
            ConflictError: others kept writing.
        """

        async def attempt() -> T:
            current = await self._read(name)
            with responses.naming_request(method=current.method, url=current.url):
                operations = writes.guarded_patch(current.body, self._model, change)
                version = writes.version_of(current.body)
            if not operations:
                return current.into(self._model)
            try:
                return await self.patch(
                    name, operations, field_manager=field_manager, dry_run=dry_run
                )
            except InvalidError as exc:
                # The server applies a patch before it compares versions: one that no longer fits
                # is a conflict like any other if the object has changed.
                if writes.version_of((await self._read(name)).body) == version:
                    raise
                raise ConflictError(exc.status, method=exc.method, url=exc.url) from exc

        return await retry_on_conflict(attempt)

    async def patch(
        self,
        name: Name,
        patch: object,
        *,
        patch_type: PatchType | Literal["json", "merge", "strategic"] | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change part of an object: a list is a JSON patch, anything else a merge patch.

        ``patch_type="strategic"`` merges lists by key (built-in kinds only).
        """
        if patch_type is not None and patch_type not in {"json", "merge", "strategic"}:
            raise UsageError(
                f"patch_type must be 'json', 'merge' or 'strategic', got {str(patch_type)!r}; "
                "server-side apply is apply()"
            )
        kind = PatchType(patch_type) if patch_type else _patch_type(patch)
        options = WriteOptions(field_manager, field_validation, dry_run)
        return await self._patch(name, patch, patch_type=kind, options=options)

    async def apply(
        self,
        body: object,
        *,
        field_manager: str,
        force: bool = False,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Apply ``body`` on the server: create the object, or own and set the fields it names.

        Raises:
            ConflictError: another manager owns a field, and ``force`` is off.
            UsageError: ``body`` has no name, or holds ``managedFields``.
        """
        resource, content = await self._find(), writes.content_of(body)
        content = writes.with_kind(content, resource) if self._subresource is None else content
        writes.refuse_managed_fields(content)
        name = writes.name_of(content, self._namespace)
        options = WriteOptions(field_manager, field_validation, dry_run, force=force)
        return await self._patch(name, content, patch_type=PatchType.APPLY, options=options)

    async def delete(
        self,
        name: Name,
        *,
        grace_period: float | None = None,
        propagation: Propagation | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T | None:
        """Delete one object; return it if it lingers (finalizers, grace period), else ``None``.

        One that lingers has a ``deletion_timestamp``.

        ``uid`` and ``resource_version`` make sure that it is the one you mean.

        Raises:
            NotFoundError: there is no such object.
            ConflictError: it is not the one you mean.
        """
        request = await self._request("DELETE", name)
        request.body(
            writes.delete_options(
                grace_period=grace_period,
                propagation=propagation,
                uid=uid,
                resource_version=resource_version,
                dry_run=dry_run,
            )
        )
        answer = await request.do()
        responses.check_json(answer.headers, method=answer.method, url=answer.url)
        with responses.naming_request(method=answer.method, url=answer.url):
            return None if writes.is_gone(answer.body) else answer.into(self._model)

    async def delete_collection(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        grace_period: float | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete every object of the namespace that matches. Without selectors: all of them."""
        if self._namespace == ALL_NAMESPACES and (await self._find()).namespaced:
            raise UsageError("delete_collection works in one namespace: in_namespace(...) first")
        request = await self._request("DELETE", listing=True)
        request.params(_selecting(label_selector, field_selector))
        request.body(
            writes.delete_options(
                grace_period=grace_period, propagation=propagation, dry_run=dry_run
            )
        )
        answer = await request.do()
        responses.check_json(answer.headers, method=answer.method, url=answer.url)

    # Inside.

    def _copy(
        self,
        model: type[M],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        partial: str | None = None,
    ) -> ResourceClient[M]:
        return ResourceClient(
            self._connection,
            self._find,
            model,
            namespace=self._namespace if namespace is None else namespace,
            subresource=subresource or self._subresource,
            partial=partial or self._partial,
            label=f"{self._label}/{subresource}" if subresource else self._label,
        )

    async def _read(self, name: Name) -> Answer:
        answer = await (await self._request("GET", name)).do()
        responses.check_json(answer.headers, method=answer.method, url=answer.url)
        return answer

    async def _fetch(self, options: ListOptions) -> ListResult[T]:
        if options.resource_version and not options.resource_version_match:
            # Without a match the server would read limit + version as "exactly".
            options = dataclasses.replace(options, resource_version_match="NotOlderThan")
        request = (await self._request("GET", listing=True)).params(options)
        if options.timeout is not None:
            request.timeout(options.timeout)
        return await request.list(self._model)

    async def _request(
        self,
        method: str,
        name: Name | None = None,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        listing: bool = False,
        patch_type: PatchType | None = None,
    ) -> Request:
        resource = await self._find()
        rest = RESTClient(self._connection, GroupVersion(*resource.gvr[:2]))
        request = rest.patch(patch_type) if patch_type else rest.verb(method)
        if namespace is None:
            namespace = self._namespace if name is None else self._place(name)
        request.namespace_if_scoped(namespace, scoped=resource.namespaced)
        request.resource(resource.gvr.resource)
        if name is not None:
            request.name(name.name if isinstance(name, ObjectName) else name)
        if part := subresource or self._subresource:
            request.subresource(part)
        if self._partial is not None:
            kind = self._partial + ("List" if listing else "")
            request.header("Accept", f"application/json;as={kind};g=meta.k8s.io;v=v1")
        return request

    def _place(self, name: Name) -> str:
        return name.namespace if isinstance(name, ObjectName) else self._namespace

    async def _patch(
        self, name: Name, patch: object, *, patch_type: PatchType, options: WriteOptions
    ) -> T:
        request = await self._request("PATCH", name, patch_type=patch_type)
        return await request.params(options).body(patch).into(self._model)


def _patch_type(patch: object) -> PatchType:
    return PatchType.JSON if isinstance(patch, list | tuple) else PatchType.MERGE


def _named(name: Name, fields: FieldSelectorLike) -> str:
    """Return the field selector for one object by its name, and ``fields`` besides."""
    wanted = name.name if isinstance(name, ObjectName) else name
    both = (FieldSelector.of(fields), FieldSelector.from_fields({"metadata.name": wanted}))
    return ",".join(filter(None, map(str, both)))


def _selecting(
    labels: LabelSelectorLike, fields: FieldSelectorLike, **others: Unpack[_Others]
) -> ListOptions:
    """Return the options with these selectors, checked and in their canonical form."""
    return ListOptions(
        label_selector=label_selector(labels), field_selector=field_selector(fields), **others
    )


class _Others(TypedDict, total=False):
    resource_version: str
    resource_version_match: ResourceVersionMatch | None
    timeout: float | None
    watch: bool
    allow_watch_bookmarks: bool
    send_initial_events: bool | None

"""The application: from a `ServerRequest` to a `ServerResponse`, without sockets.

Every error of a request becomes a Status here. After each request the controllers run that react to
its writes (see `kinform.apiserver.gc`).
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping
from typing import Final, final

import msgspec

from kinform.apiserver import _recorded
from kinform.apiserver._cluster import Cluster
from kinform.apiserver.authz import escalation, reviews
from kinform.apiserver.endpoints import request_paths, status, work_budget
from kinform.apiserver.endpoints.access import PREFIX, Access
from kinform.apiserver.endpoints.discovery import DiscoveryDocuments, document
from kinform.apiserver.endpoints.list_options import ListQuery, boolean, list_options, version
from kinform.apiserver.endpoints.lists import Page, page
from kinform.apiserver.endpoints.messages import BODY_LIMIT, Broken, ServerRequest, ServerResponse
from kinform.apiserver.endpoints.request_paths import NoSuchPath, Route, route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.endpoints.watches import CATCH_UP, ServerWatch
from kinform.apiserver.endpoints.writes import Writing, Written
from kinform.apiserver.faults._injection import FaultInjector
from kinform.apiserver.faults.kinds import Subject
from kinform.apiserver.faults.plan import FaultPlan
from kinform.apiserver.gc import GarbageCollector
from kinform.apiserver.openapi.v3 import OpenApi
from kinform.apiserver.registry import system_objects
from kinform.apiserver.registry.deletion import Deletion, delete_options
from kinform.apiserver.registry.objects import ObjectRegistry
from kinform.apiserver.registry.subresources import Subresources
from kinform.apiserver.serializer import encoding
from kinform.apiserver.serializer.encoding import Form, Renderer, negotiate
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.storage.replica import READS
from kinform.apiserver.storage.selection_predicate import SelectionPredicate, Term
from kinform.apiserver.storage.versioned_store import Future, Unsaved
from kinform.clock import offload

__all__ = ["Application"]

log: Final = logging.getLogger("kinform.apiserver")

_OF_ONE: Final = frozenset({"get", "update", "patch", "delete"})
_COMPRESSED: Final = 128 * 1024
"""Bodies from this size on are compressed for clients that accept it."""
_JSON: Final = {"Content-Type": "application/json"}
_PLAIN: Final = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
_TEXT: Final = {**_PLAIN, "Cache-Control": "no-cache, private"}


@final
class Application:
    """One API server, without its sockets.

    Args:
        cluster: Its state.
        token: The bearer token that allows everything; None: every client may do everything.
        rbac: Other users are accepted too, with the rights that roles and bindings give them.
        address: The address of the server for clients, ``host:port``.
        faults: The faults to inject.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        token: str | None = None,
        rbac: bool = False,
        address: str = "127.0.0.1:0",
        faults: FaultPlan | None = None,
    ) -> None:
        self.cluster: Cluster = cluster
        self.address: str = address
        self.access: Access = Access(cluster, token=token, has_rbac=rbac)
        self.objects: ObjectRegistry = ObjectRegistry(cluster)
        self.deletion: Deletion = Deletion(cluster, self.objects)
        self.collector: GarbageCollector = GarbageCollector(cluster, self.objects, self.deletion)
        self.writing: Writing = Writing(
            cluster, self.objects, self.deletion, authorize=self.access.check_create
        )
        self._subresources = Subresources(
            cluster, objects=self.objects, deletion=self.deletion, writing=self.writing
        )
        self._writes: Mapping[str, Callable[[ServerRequest, Route], Written]] = {
            "create": self.writing.create,
            "update": self.writing.put,
            "patch": self.writing.patch,
        }
        self._discovery = DiscoveryDocuments(cluster.kinds)
        self._openapi = OpenApi(cluster.kinds)
        system_objects.follow_definitions(cluster)
        self.plan: FaultPlan = FaultPlan() if faults is None else faults
        self._faults = FaultInjector(
            self.plan, cluster, answer=self._handled, subject=self._subject, reload=self.reload
        )

    def start(self) -> None:
        """Create what every cluster has: its first namespaces."""
        system_objects.create_first_objects(self.objects, self.cluster)
        if self.access.has_rbac:
            system_objects.create_first_roles(self.objects, self.cluster)
        self.collector.settle()
        self._faults.floor = self.cluster.storage.revision
        self.plan.start()

    def reload(self) -> None:
        """Rebuild the state that is derived from the storage, after it was loaded or restored."""
        system_objects.load_definitions(self.cluster)
        self.collector.rebuild()

    async def handle(self, request: ServerRequest) -> ServerResponse:
        """Answer one request. An error is answered, too.

        Raises:
            Broken: there is to be no answer; the connection ends.
        """
        if self.cluster.gate.is_shut:
            await self.cluster.gate.passed()
        if self.plan.active:
            return await self._faults.answer(request)
        return await self._handled(request)

    def _subject(self, request: ServerRequest) -> Subject:
        """Return the subject of a request; empty if it is not about objects."""
        try:
            where = route(self.cluster.kinds, _without_token(request.path))
        except (StatusError, NoSuchPath, request_paths.UnreadablePath):
            return Subject()
        kind = where.kind
        return Subject(_verb(request, where) or "", kind.plural, kind.group, where.namespace)

    async def _handled(self, request: ServerRequest) -> ServerResponse:
        try:
            response = await self._answered(request)
        except StatusError as exc:
            response = _refusal(request, exc)
        except request_paths.UnreadablePath:
            response = _unreadable(request)
        except NoSuchPath:
            response = ServerResponse(status=404, headers=dict(_TEXT), body=b"404 page not found\n")
        except Broken:
            raise
        except work_budget.Exhausted as exc:
            response = _refusal(request, StatusError(422, "Invalid", str(exc), details={}))
        except RecursionError:
            response = _refusal(request, status.bad_request("the body is nested too deeply"))
        except Exception as exc:
            path = _without_token(request.path)
            log.exception(
                "request failed: %s %s",
                request.method,
                path,
                extra={"method": request.method, "path": path},
            )
            response = _refusal(request, status.internal(f"{type(exc).__name__}: see the log"))
        self.collector.settle()
        if self.cluster.storage.journal is not None:
            try:  # a write that a crash could undo is not answered
                await self.cluster.storage.journal.saved()
            except Unsaved as exc:
                response = _refusal(request, status.internal(str(exc)))
        if isinstance(response.body, bytes) and len(response.body) >= _COMPRESSED:
            await _compress(request, response, response.body)
        return response

    async def _answered(self, request: ServerRequest) -> ServerResponse:
        request = self.access.admit(request)
        work_budget.begin()
        if len(request.body) > BODY_LIMIT:
            raise status.too_large()
        path = request.path.rstrip("/") or "/"
        if path.count("/") <= 3 or not path.startswith("/api"):
            found = await self._of_system(request, path)
            if found is not None:
                return found
        where = route(self.cluster.kinds, request.path)
        try:
            if where.subresource is not None and where.subresource.name != "status":
                answer = self._subresources.answer(request, where)
                response = self._written(request, where, answer)
            else:
                response = await self._of_resource(request, where)
        except StatusError as exc:
            response = _refusal(request, exc)
        if where.kind.deprecation:
            response.warnings.insert(0, where.kind.deprecation)
        return response

    async def _of_system(self, request: ServerRequest, path: str) -> ServerResponse | None:
        """Answer a request about the server itself: health, version, discovery, OpenAPI."""
        if (plain := system_objects.health(path, request)) is not None:
            return plain
        if path == "/version":
            _check_reads(request)
            body = _document(system_objects.version(), Form(is_pretty=True))
            return ServerResponse(headers=dict(_JSON), body=body)
        if path == "/":
            return ServerResponse(
                headers=dict(_JSON), body=encoding.encode(system_objects.paths(self.cluster))
            )
        if path.startswith("/openapi"):
            await offload(_recorded.documents)  # from a file, the first time
            await offload(_recorded.custom_template)
            return self._openapi.answer(request)
        if not path.startswith("/api"):
            return None
        found = self._discovery.answer(request)
        if found is not None:
            return found
        legacy = document(self.cluster.kinds, path.strip("/"), address=self.address)
        if legacy is None:
            self._check_version(path)
            return None
        if path != "/apis":
            _check_reads(request)
        return ServerResponse(headers=dict(_JSON), body=encoding.encode(legacy))

    def _check_version(self, path: str) -> None:
        """Refuse a version of a group that has others."""
        root, *parts = path.strip("/").split("/")
        is_core = root == "api" and len(parts) == 1
        is_group = root == "apis" and len(parts) == 2
        if is_core or (is_group and any(it.group == parts[0] for it in self.cluster.kinds.all())):
            raise status.path_not_found()

    # --- resources

    async def _of_resource(self, request: ServerRequest, where: Route) -> ServerResponse:
        verb = _verb(request, where)
        if verb is None:
            raise _impossible(request, where)
        if verb == "watch":
            return self._watch(request, where)
        if verb == "list":
            return await self._list(request, where)
        if verb == "get":
            return await self._get(request, where)
        if verb == "delete":
            return self._delete(request, where)
        if verb == "deletecollection":
            options = delete_options(request)
            listing = list_options(request, where.kind)
            found = self.writing.delete_all(where, options, listing)
            return self._page(request, where, found)
        if where.kind.storage == "bindings":
            answer = self._subresources.bind_by_name(request, where)
            return self._written(request, where, answer)
        if where.kind.storage in reviews.REVIEWS:
            answer = reviews.review(request, where, self.cluster)
            reviews.judge(self.access, request, answer.obj)
            return self._written(request, where, answer)
        write = self._writes[verb]
        if self.access.has_rbac:
            escalation.check(
                self.access,
                self.cluster,
                request=request,
                where=where,
                read=self.writing.read,
                write=write,
            )
        return self._written(request, where, write(request, where))

    @property
    def _reads(self) -> Cluster:
        """The cluster that answers reads: a replica, or the server's own."""
        return READS.get() or self.cluster

    async def _get(self, request: ServerRequest, where: Route) -> ServerResponse:
        renderer, form = self._renderer(request, where)
        await self._catch_up(request)
        if form.is_partial_list:
            raise _mismatch("PartialObjectMetadataList", "not a list", where)
        reads = await self._consistent(request)
        stored = reads.storage.table(where.kind.storage).get(where.key)
        if stored is None:
            raise status.not_found(where.kind, where.name)
        return _of(form, renderer.stored(stored.raw))

    async def _catch_up(self, request: ServerRequest) -> None:
        try:
            asked = version(request.option("resourceVersion"))
        except ValueError as exc:
            raise StatusError(500, "", str(exc)) from exc
        reads = self._reads
        if not await reads.reached(asked, within=CATCH_UP):
            raise status.too_large_version(asked, reads.storage.revision)

    async def _consistent(self, request: ServerRequest) -> Cluster:
        """Return what answers a get or a list.

        A read without a version is a consistent one: a replica waits until it has all that was
        there when the read arrived, and after three seconds the storage itself is asked. So are
        further pages, as kube-apiserver asks etcd for them.
        """
        reads = self._reads
        if reads is self.cluster or request.option("resourceVersion"):
            return reads
        if request.option("continue"):
            return self.cluster
        is_fresh = await reads.reached(reads.newest(), within=CATCH_UP)
        return reads if is_fresh else self.cluster

    async def _list(self, request: ServerRequest, where: Route) -> ServerResponse:
        options = list_options(request, where.kind)
        self._renderer(request, where)  # what cannot be shown is refused before it is looked for
        reads = await self._consistent(request)
        while True:
            try:
                found = page(reads.storage, where.kind.storage, where.prefix, options=options)
            except Future as exc:
                if not await reads.reached(exc.revision, within=CATCH_UP):
                    current = reads.storage.revision
                    raise status.too_large_version(exc.revision, current) from exc
            else:
                return self._page(request, where, found)

    def _page(self, request: ServerRequest, where: Route, found: Page) -> ServerResponse:
        renderer, form = self._renderer(request, where)
        if form.is_partial and not form.is_partial_list:
            raise _mismatch("PartialObjectMetadata", "a list", where, suffix="List")
        raws = [stored.raw for stored in found.items]
        return _of(form, renderer.list(raws, found.metadata()))

    def _watch(self, request: ServerRequest, where: Route) -> ServerResponse:
        renderer, form = self._renderer(request, where, is_watch=True)
        options = list_options(request, where.kind, is_watch=True)
        if where.name:
            options = _of_one(options, where)
        watch = ServerWatch(self._reads, where, options, renderer=renderer)
        return ServerResponse(headers={"Content-Type": form.content_type}, body=watch.chunks())

    def _delete(self, request: ServerRequest, where: Route) -> ServerResponse:
        renderer, form = self._renderer(request, where)
        options = delete_options(request)
        deleted = self.writing.delete(where, options)
        answer = deleted.answer(where.kind)
        is_status = answer["kind"] == "Status" and deleted.is_gone and not deleted.is_returned
        body = renderer.document(answer) if is_status else renderer.object(answer)
        code = 202 if options.is_cascading and not deleted.is_gone else 200
        return _of(form, body, code=code)

    def _written(self, request: ServerRequest, where: Route, written: Written) -> ServerResponse:
        renderer, form = self._renderer(request, where)
        is_own = written.obj.get("kind") == where.kind.kind
        body = renderer.object(written.obj) if is_own else renderer.document(written.obj)
        response = _of(form, body, code=201 if written.is_new else 200)
        response.warnings += written.warnings
        return response

    def _renderer(
        self, request: ServerRequest, where: Route, *, is_watch: bool = False
    ) -> tuple[Renderer, Form]:
        can_watch = where.is_watch or (request.method == "GET" and not where.name)
        form = negotiate(request, is_watch=is_watch, can_watch=can_watch)
        include = request.option("includeObject")
        return Renderer(where.kind, form, include=include, now=self.cluster.now), form


def _without_token(path: str) -> str:
    """Return a path as it may be logged."""
    return "/" + path.removeprefix(PREFIX).partition("/")[2] if path.startswith(PREFIX) else path


def _verb(request: ServerRequest, where: Route) -> str | None:
    """Return what a request does, None if it can do no such thing."""
    verb: str | None = None
    is_one, method = bool(where.name), request.method
    if method == "GET":
        verb = "get" if is_one else "list"
        if where.is_watch or (not is_one and boolean(request, "watch")):
            verb = "watch"
    elif where.is_watch:
        return None
    elif is_one:
        verb = {"PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method)
    elif method == "POST" and bool(where.namespace) == where.kind.namespaced:
        verb = "create"
    elif method == "DELETE" and bool(where.namespace) == where.kind.namespaced:
        verb = "deletecollection"
    verbs = where.subresource.verbs if where.subresource is not None else where.kind.verbs
    return verb if verb in verbs else None


def _mismatch(asked: str, what: str, where: Route, *, suffix: str = "") -> StatusError:
    """Refuse to show an object as a list, or a list as an object."""
    kind = where.kind
    package = kind.group.partition(".")[0] or "core"
    name = f"{package}.{kind.kind}" if kind.custom is None else "unstructured.Unstructured"
    message = f"you requested {asked}, but the requested object is {what} (*{name}{suffix})"
    return StatusError(406, "NotAcceptable", message)


def _impossible(request: ServerRequest, where: Route) -> StatusError:
    if where.name and not where.subresource and not _OF_ONE.intersection(where.kind.verbs):
        return status.path_not_found()
    error = status.method_not_allowed()
    can_list = "list" in where.kind.verbs
    if request.method == "GET" and not where.name and boolean(request, "watch") and can_list:
        plural = where.kind.plural
        error.message = f'watch is not supported on resources of kind "{plural}"'
        error.details = dict[str, object](kind=plural)
    return error


def _of_one(options: ListQuery, where: Route) -> ListQuery:
    """Return the options of a watch that sees one object only."""
    term = Term("metadata.name", where.name, is_equal=True)
    selection = SelectionPredicate(options.selection.labels, (*options.selection.fields, term))
    return msgspec.structs.replace(options, selection=selection)


def _of(form: Form, body: bytes, *, code: int = 200) -> ServerResponse:
    return ServerResponse(status=code, headers={"Content-Type": form.content_type}, body=body)


def _refusal(request: ServerRequest, error: StatusError) -> ServerResponse:
    try:
        form = negotiate(request)
    except StatusError:
        form = Form(is_pretty=not request.headers["accept"].startswith("application/*"))
    is_pretty = form.is_pretty or form.is_table or form.is_partial
    form = Form(is_yaml=form.is_yaml, is_pretty=is_pretty)
    headers = {"Content-Type": form.content_type}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    body = _document(error.to_dict(), form)
    return ServerResponse(
        status=error.code, headers=headers, body=body, warnings=list(error.warnings)
    )


def _check_reads(request: ServerRequest) -> None:
    if request.method not in {"GET", "HEAD"}:
        raise status.method_not_allowed()


def _document(value: Json, form: Form) -> bytes:
    return encoding.document(value, form)


async def _compress(request: ServerRequest, response: ServerResponse, body: bytes) -> None:
    """Compress a large body for a client that accepts gzip."""
    accepted = request.headers.get("accept-encoding", "").split(",")
    if request.method != "GET" or "gzip" not in (it.strip() for it in accepted):
        return
    packer = zlib.compressobj(level=1, wbits=31)
    response.body = await offload(lambda: packer.compress(body) + packer.flush())
    response.headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}


def _unreadable(request: ServerRequest) -> ServerResponse:
    target = request.target
    text = (
        f'Internal Server Error: "{target}": failed to create RequestInfo: '
        f"unable to determine kind and namespace from url, {target}\n"
    )
    return ServerResponse(status=500, headers=dict(_PLAIN), body=text.encode())

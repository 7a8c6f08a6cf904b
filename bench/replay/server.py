"""The server: one thread for each connection, which reads requests and answers them.

On a watch, that thread waits for the client to go away or to send its next request; the events
are sent by those who cause them.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final, final

from bench.replay import discovery, frames, http
from bench.replay.http import Connection, GoneError, Request
from bench.replay.json_wire import JsonWire, compact
from bench.replay.pods import Cluster, Pods
from bench.replay.watches import Watch, Watches
from bench.replay.wire import Failure

__all__ = ["Server"]

_PODS: Final = re.compile(r"/api/v1/(?:namespaces/(?P<namespace>[^/]+)/)?pods")
_TRUE: Final = {"true", "1"}
_SELECTORS: Final = ("labelSelector", "fieldSelector")
_END_TIMEOUT: Final = 5.0


@dataclass(slots=True)
class _Counts:
    lists: int = 0
    watches: int = 0
    streams: int = 0
    bytes: int = 0


class _RefusedError(Exception):
    """A request is answered with a ``Status``."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(code, reason, message)


@final
class Server:
    """Serves a cluster, which may be replaced at any time, until it is closed."""

    def __init__(self, pods: Pods, *, proto_pods: Pods | None = None) -> None:
        self.cluster = Cluster(0)
        self.watches = Watches()
        self.encodings: list[Pods] = [pods] if proto_pods is None else [pods, proto_pods]
        """The pods in JSON, and in protobuf if it is served."""
        self._counts = _Counts()
        self._lock = threading.Lock()  # for the counts and the connections
        self._connections: dict[Connection, threading.Thread] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def port(self) -> int:
        """The port, which the kernel chose."""
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        """Begin to accept connections."""
        self._accepting.start()

    def statistics(self) -> dict[str, int]:
        """Return how often what was asked for, how many bytes were sent, and what is open."""
        with self._lock:
            return {**asdict(self._counts), "open": len(self.watches)}

    def close(self) -> None:
        """Close all connections and wait for their threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._accepting.join(_END_TIMEOUT)
        self._listener.close()
        with self._lock:
            connections = dict(self._connections)
        for connection in connections:
            connection.interrupt()
        for thread in connections.values():
            thread.join(_END_TIMEOUT)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            connection = Connection(sock, count=self._count_bytes)
            thread = threading.Thread(target=self._converse, args=(connection,), daemon=True)
            with self._lock:
                self._connections[connection] = thread
            thread.start()

    def _count_bytes(self, size: int) -> None:
        with self._lock:
            self._counts.bytes += size

    def _count(self, *, lists: int = 0, watches: int = 0, streams: int = 0) -> None:
        with self._lock:
            self._counts.lists += lists
            self._counts.watches += watches
            self._counts.streams += streams

    # --- a connection's thread ----------------------------------------------------------------

    def _converse(self, connection: Connection) -> None:
        try:
            self._answer_all(connection)
        except GoneError:
            pass  # the sender of events reports it
        except ValueError as exc:
            failure = Failure(400, "BadRequest", str(exc))
            with contextlib.suppress(GoneError):
                connection.send(_refusal(self.encodings[0], failure))
        finally:
            connection.close()
            with self._lock:
                del self._connections[connection]

    def _answer_all(self, connection: Connection) -> None:
        is_open = True
        while is_open and (request := connection.request()) is not None:
            pods = self._encoding(request)
            try:
                is_open = self._answer(connection, request, pods=pods)
            except _RefusedError as exc:
                connection.send(_refusal(pods, exc.failure))
            is_open = is_open and not request.is_last

    def _encoding(self, request: Request) -> Pods:
        types = {pods.wire.list_type: pods for pods in self.encodings}
        return types[http.preferred(request.headers.get("accept", "*/*"), list(types))]

    def _answer(self, connection: Connection, request: Request, *, pods: Pods) -> bool:
        """Answer a request; tell whether there may be another."""
        cluster = self.cluster
        if request.method != "GET":
            raise _RefusedError(405, "MethodNotAllowed", f"{request.method} is not served here")
        is_watch = request.query.get("watch", "").lower() in _TRUE
        if (found := _PODS.fullmatch(request.path)) is None:
            return self._answer_other(connection, request.path, is_watch=is_watch)
        namespace = found["namespace"] or ""
        if (numbers := cluster.numbers(namespace)) is None:
            raise _RefusedError(404, "NotFound", f"no namespace {namespace!r} is served here")
        if any(request.query.get(name) for name in _SELECTORS):
            raise _RefusedError(400, "BadRequest", "selectors are not served here")
        if is_watch:
            wants_bookmarks = request.query.get("allowWatchBookmarks") in {"true", "1"}
            watch = Watch(connection, pods, namespace, wants_bookmarks)
            return self._watch(watch, self._initial_events(request, watch, numbers))
        self._count(lists=1)
        limit = 0
        if cluster.lists != "whole":
            limit = int(request.query.get("limit") or 0)
        token = request.query.get("continue", "")
        shown, version = frames.page(numbers, limit=limit, token=token, version=cluster.version)
        body = frames.list_body(
            cluster, pods, shown, namespace=namespace, version=version, last=numbers.stop
        )
        _send_all(connection, http.head(200, pods.wire.list_type), body)
        return True

    def _answer_other(self, connection: Connection, path: str, *, is_watch: bool) -> bool:
        namespaces = [f"bench-{number}" for number in range(self.cluster.namespaces)]
        value = discovery.answer(
            path, namespaces=namespaces or ["default"], version=self.cluster.version
        )
        if value is None:
            raise _RefusedError(404, "NotFound", f"{path} is not served here")
        if is_watch and discovery.is_watchable(path):
            connection.send(http.head(200, JsonWire.watch_type))
            connection.wait()  # until the client goes
            return False
        body = compact(value)
        connection.send(http.head(200, JsonWire.list_type, size=len(body)) + body)
        return True

    def _initial_events(self, request: Request, watch: Watch, numbers: range) -> Iterator[bytes]:
        """Return a streamed list if the request wants one and may have it, else nothing."""
        self._count(watches=1)
        cluster, pods = self.cluster, watch.pods
        if request.query.get("sendInitialEvents", "").lower() not in _TRUE:
            return iter(())
        if cluster.lists != "stream":
            message = "sendInitialEvents is forbidden for watch: the server does not stream lists"
            raise _RefusedError(422, "Invalid", message)
        if request.query.get("resourceVersionMatch") != "NotOlderThan":
            message = "sendInitialEvents requires resourceVersionMatch=NotOlderThan"
            raise _RefusedError(422, "Invalid", message)
        self._count(streams=1)
        return _streamed_list(cluster, pods, numbers, namespace=watch.namespace)

    def _watch(self, watch: Watch, initial: Iterable[bytes]) -> bool:
        """Open a watch and wait for its end; tell whether there may be another request."""
        connection = watch.connection
        _send_all(connection, http.head(200, watch.pods.wire.watch_type), initial)
        self.watches.add(watch)
        try:
            has_more = connection.wait()
        finally:
            self.watches.discard(watch)
        return has_more and watch.ended.is_set()


def _streamed_list(
    cluster: Cluster, pods: Pods, numbers: range, *, namespace: str
) -> Iterator[bytes]:
    version = cluster.version
    made = (cluster.pod(pods, number, namespace=namespace) for number in numbers)
    yield from frames.blocks(frames.pod_event(pods, frames.ADDED, pod) for pod in made)
    yield frames.chunk(pods.wire.bookmark(version, ends_list=True))


def _refusal(pods: Pods, failure: Failure) -> bytes:
    body = pods.wire.status(failure)
    return http.head(failure.code, pods.wire.list_type, size=len(body)) + body


def _send_all(connection: Connection, head: bytes, body: Iterable[bytes]) -> None:
    connection.send(head)
    for block in body:
        connection.send(block)

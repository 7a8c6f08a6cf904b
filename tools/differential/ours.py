"""Our side: plays scripts to kinform's informer in virtual time.

    PYTHONPATH=SOURCE:ROOT python -m tools.differential.ours < scripts > outcomes

One line of JSON each way per script. The kinform that is imported is the one under test, so this
runs in a process of its own; the rest of the harness imports none.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import random
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, cast, final
from urllib.parse import urlsplit

import msgspec
from multidict import CIMultiDict

import kinform
from kinform import Config, TransportError, TransportFailure
from kinform.testing import VirtualTimeLoop
from tools.differential.outcome import Note, Outcome
from tools.differential.script import TEXT, Script
from tools.differential.server import Plan, Server

if TYPE_CHECKING:
    from kinform.rest.transport import Chunk, HttpRequest
    from kinform.sansio.wire.gzip import GzipDecoder

_FAILURES = {
    "refused": TransportFailure.REFUSED,
    "reset": TransportFailure.RESET,
    "eof": TransportFailure.RESET,
    "cut": TransportFailure.TRUNCATED,
    "silence": TransportFailure.TIMEOUT,
}
MAX_REQUESTS = 3000


def _gzip_decoder() -> GzipDecoder:
    """Return the decoder of the kinform under test, which may be of an older commit."""
    is_moved = importlib.util.find_spec("kinform.sansio.wire") is not None
    name = "kinform.sansio.wire.gzip" if is_moved else "kinform.sansio.gzip"
    return cast("GzipDecoder", importlib.import_module(name).GzipDecoder())


def _error(request: HttpRequest, name: str) -> TransportError:
    failure = _FAILURES[name]
    return TransportError(name, failure=failure, method=request.method, url=request.url)


@final
class _Transport:
    """A `kinform.Transport` that plays the plans of a `Server`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.is_hot = asyncio.Event()
        self.open: set[_Exchange] = set()
        self.broken = ""

    def send(self, request: HttpRequest) -> _Exchange:
        return _Exchange(self, request)

    async def answer(self, request: HttpRequest) -> _Response:
        loop = asyncio.get_running_loop()
        if len(self.server.asked) >= MAX_REQUESTS:
            self.is_hot.set()
            await loop.create_future()
        parts = urlsplit(request.url)
        accept = dict(request.headers).get("Accept", "")
        target = f"{parts.path}?{parts.query}"
        plan = self.server.answer(target, loop.time(), accept=accept)
        silent = plan.fails == "silence"
        try:
            async with asyncio.timeout(request.read_timeout):
                await (loop.create_future() if silent else asyncio.sleep(plan.delay))
        except TimeoutError:
            raise _error(request, "silence") from None
        if plan.fails:
            raise _error(request, plan.fails)
        return _Response(request, plan)

    async def aclose(self) -> None:
        """Note what was left open."""
        if self.open:
            self.broken = self.broken or "an answer is left open at the end"


@final
class _Exchange:
    """One request and its answer; only leaving the block closes it, not the garbage collector."""

    def __init__(self, transport: _Transport, request: HttpRequest) -> None:
        self._transport = transport
        self._request = request
        self.is_watch = "watch=true" in request.url

    async def __aenter__(self) -> _Response:
        opened = self._transport.open
        if self.is_watch and any(one.is_watch for one in opened):
            self._transport.broken = self._transport.broken or "a watch is opened beside another"
        response = await self._transport.answer(self._request)
        opened.add(self)
        return response

    async def __aexit__(self, *_: object) -> None:
        self._transport.open.discard(self)


@final
class _Response:
    """Chunks at their times; see `kinform.rest.transport.HttpResponse`."""

    def __init__(self, request: HttpRequest, plan: Plan) -> None:
        self.status: int = plan.status
        self.headers: Mapping[str, str] = CIMultiDict(plan.headers())
        self._request = request
        self._plan = plan
        self._decoder = _gzip_decoder() if plan.encoding else None
        self._began = asyncio.get_running_loop().time()
        self._next = 0

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        plan = self._plan
        is_last = self._next >= len(plan.chunks)
        at = plan.ends if is_last else plan.chunks[self._next][0]
        left = max(self._began + at - asyncio.get_running_loop().time(), gather)
        if left > 0 or is_last:
            await self._wait(left, forever=is_last and plan.end == "silence")
        if is_last and plan.end != "eof":
            raise _error(self._request, plan.end)
        self._next += 1
        data = b"" if is_last else plan.chunks[self._next - 1][1]
        if self._decoder is None or is_last:
            return data
        return b"".join(self._decoder.feed(data)) or await self.read_some()

    async def _wait(self, seconds: float, *, forever: bool) -> None:
        try:
            async with asyncio.timeout(self._request.read_timeout):
                await asyncio.sleep(max(0.0, seconds))
                if forever:
                    await asyncio.get_running_loop().create_future()
        except TimeoutError:
            raise _error(self._request, "silence") from None

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        async for piece in self.iter_bytes():
            yield piece, True

    async def read(self, limit: int | None = None) -> bytes:
        body = b"".join([piece async for piece in self.iter_bytes()])
        if limit is not None and len(body) > limit:
            failure = TransportFailure.PROTOCOL
            raise TransportError("too long", failure=failure, method="GET", url=self._request.url)
        return body


def _state(obj: Any) -> str:
    metadata = obj.metadata
    wrong = "" if obj["spec"]["text"] == TEXT else "/wrong text"
    return f"{metadata.uid}/{obj.resource_version}/{obj['spec']['n']}{wrong}"


async def _fail() -> None:
    raise OSError("a child that fails, as the script says")


async def _user_code(mode: str) -> None:
    """Do what handlers do, of which nothing may matter to us."""
    match mode:
        case "taskgroup":
            with contextlib.suppress(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_fail())
            cancelled = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled  # by another part of the user's program: no cancellation of ours
        case "timeout":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.sleep(1)
        case "thread":
            await asyncio.to_thread(len, "a thread")  # noqa: TID251 - as users do
        case _:
            pass


def _listen(informer: Any, notes: list[Note], mode: str) -> None:
    loop = asyncio.get_running_loop()

    def add(e: Any) -> None:
        notes.append(Note(loop.time(), "add", str(e.key), _state(e.obj)))

    def update(e: Any) -> None:
        notes.append(Note(loop.time(), "update", str(e.key), _state(e.new), _state(e.old)))

    def delete(e: Any) -> None:
        unknown = e.final_state_unknown
        notes.append(Note(loop.time(), "delete", str(e.key), _state(e.obj), unknown=unknown))

    def asynchronous(note: Any) -> Any:
        async def call(e: Any) -> None:
            note(e)
            await _user_code(mode)

        return call

    callbacks = {"on_add": add, "on_update": update, "on_delete": delete}
    if mode != "plain":
        callbacks = {name: asynchronous(note) for name, note in callbacks.items()}
    informer.add_event_handler(**callbacks)


async def _play(script: Script) -> Outcome:
    server = Server(script)
    transport = _Transport(server)
    notes: list[Note] = []
    synced: float | None = None
    error, cache = "", dict[str, str]()
    loop = asyncio.get_running_loop()
    async with kinform.connect(Config(server="http://api.test"), transport=transport) as client:
        informer = client.informer(script.name, indexers={"last digit": _last_digit})
        _listen(informer, notes, script.handler)
        async with informer:
            with contextlib.suppress(TimeoutError, kinform.KinformError):
                async with asyncio.timeout_at(script.duration):
                    await informer.wait_synced()
                    synced = loop.time()
            while loop.time() < script.duration and not transport.is_hot.is_set():
                transport.broken = transport.broken or _index_error(informer)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(loop.time() + 20, script.duration)):
                        await transport.is_hot.wait()
            error = "hot" if transport.is_hot.is_set() else ""
            error = "the informer has ended" if informer.is_stopped else error
            ends = getattr(informer.statistics(), "unexpected_ends", 0)
            transport.broken = transport.broken or (f"{ends} parts ended" if ends else "")
            cache = {str(name): _state(obj) for name, obj in _items(informer)}
    return Outcome(
        notes=notes,
        cache=cache,
        synced=synced,
        error=error,
        asked=server.asked,
        broken=transport.broken,
    )


def _last_digit(obj: Any) -> list[str]:
    return [obj["spec"]["n"][-1]]


def _index_error(informer: Any) -> str:
    """Return how the index differs from what it is computed from: the objects in the cache."""
    expected: dict[str, list[str]] = {digit: [] for digit in "0123456789"}
    for key, obj in _items(informer):
        expected[_last_digit(obj)[0]].append(key)
    for digit, keys in expected.items():
        found = [str(key) for key in informer.indexer.index_keys("last digit", digit)]
        if sorted(found) != sorted(keys):
            return f"index: {found} under {digit}, cached {keys}"
    return ""


def _items(informer: Any) -> list[tuple[str, Any]]:
    objects = informer.lister.list()
    return [(f"{one.metadata.namespace}/{one.metadata.name}", one) for one in objects]


def _run(script: Script) -> Outcome:
    random.seed(script.seed)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_play(script))


def play(script: Script) -> Outcome:
    """Play one script; if the harness itself fails, that is an outcome too."""
    try:
        outcome = _run(script)
        if script.handler == "plain":
            return outcome
        plain = _run(msgspec.structs.replace(script, handler="plain"))
        unlike = [
            name
            for name in ("notes", "cache", "synced", "error")
            if getattr(outcome, name) != getattr(plain, name)
        ]
        return msgspec.structs.replace(outcome, unlike_plain=", ".join(unlike))
    except BaseException as exc:  # Deadlock and Livelock, and what ends an informer
        if isinstance(exc, KeyboardInterrupt):
            raise
        return Outcome(error=f"{type(exc).__name__}: {exc}"[:300])


def main() -> None:
    """Play what comes on stdin."""
    logging.disable(logging.CRITICAL)
    _run(Script(seed=0, theme="calm", duration=1.0))  # a source that cannot be used ends here
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        script = msgspec.json.decode(line, type=Script)
        sys.stdout.buffer.write(msgspec.json.encode(play(script)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

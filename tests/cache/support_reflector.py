"""Reflectors under test: running one, scripting its source, and looking at what it asked for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from kinform.cache.listwatch import SourceOptions
from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import ApiError, KinformError, TransportError, TransportFailure, api_error
from kinform.errors import status_of_code as status_of
from kinform.meta import Entry, ListMeta, Status
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, ListResult, Received, Unreadable, WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.tasks import background
from kinform.testing import FakeListWatch

T = TypeVar("T")
R = TypeVar("R", bound=Any)

PLAIN: Final = ReflectorOptions(stream_lists=False)
REFUSED: Final = TransportError("nobody there", failure=TransportFailure.REFUSED)
CUT: Final = TransportError("cut", failure=TransportFailure.TRUNCATED)
FOREVER: Final = float("inf")


def said(code: int, reason: str | None = None, *, retry_after: float | None = None) -> ApiError:
    """Return the error of an answer with this code."""
    status = status_of(code, method="GET", message="no")
    if reason is not None:
        status = Status(status="Failure", code=code, reason=reason, message="no")
    return api_error(status, retry_after=retry_after)


# --- objects


def config(name: str, colour: str = "red") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"colour": colour}}


def entry(name: str, version: int | str, *, uid: str | None = None, kind: str = "Pod") -> Any:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version)}
    uid = f"uid-{name}" if uid is None else uid
    obj = Object.from_dict(
        {"kind": kind, "metadata": {**metadata, **({"uid": uid} if uid else {})}}
    )
    return Entry(obj.metadata, obj)


def listed(
    version: int | str, *entries: Entry[Any], token: str = "", **more: Any
) -> ListResult[Any]:
    metadata = ListMeta(resource_version=str(version), continue_token=token)
    return ListResult(entries, metadata=metadata, **{"kind": "PodList", **more})


def event(what: str, name: str, version: int | str, **more: Any) -> WatchEvent[Any]:
    made = entry(name, version, **more)
    return WatchEvent(EventType(what), made.object, made.metadata)


def end(version: int | str) -> Bookmark:
    return Bookmark(str(version), initial_events_end=True)


# --- a source that does as it is told

Step: TypeAlias = "Received[Any] | Unreadable | Exception | float | Callable[[], object]"


@dataclass(frozen=True)
class Asked:
    """One request; ``at`` is the loop's time."""

    verb: str
    options: ListOptions
    at: float


class Script:
    """A `ListerWatcher` that gives its answers in order, the last one for ever.

    Who asks for one object of the newest state, to see its version, is told the newest of all.
    A watch is a sequence of steps: what is received, an error that ends it, seconds that pass
    (`FOREVER`: until it is closed), or a function to be called. An exception in place of a watch
    refuses it.
    """

    def __init__(
        self,
        *,
        lists: Sequence[ListResult[Any] | Exception] = (),
        watches: Sequence[Sequence[Step] | Exception] = ((FOREVER,),),
        supports_watch_list: bool = False,
    ) -> None:
        self._lists = deque(lists)
        self._newest = 0
        self._watches = deque(watches)
        self.source_options = SourceOptions(supports_watch_list=supports_watch_list)
        self.requests: list[Asked] = []
        self.reads = 0
        self.open = 0
        self.closed = 0

    async def list(self, options: ListOptions) -> ListResult[Any]:
        self._note("list", options)
        await asyncio.sleep(0)
        if is_probe(options) and self._newest:
            return listed(self._newest)
        answer = self._lists.popleft() if len(self._lists) > 1 else self._lists[0]
        if isinstance(answer, Exception):
            raise answer
        self._see(answer.resource_version)
        return answer

    @contextlib.asynccontextmanager
    async def watch(self, options: ListOptions) -> AsyncGenerator[AsyncGenerator[Received[Any]]]:
        self._note("watch", options)
        await asyncio.sleep(0)
        answer = self._watches.popleft() if len(self._watches) > 1 else self._watches[0]
        if isinstance(answer, Exception):
            raise answer
        self.open += 1
        try:
            yield self._play(answer)
        finally:
            self.open -= 1
            self.closed += 1

    async def _play(self, steps: Sequence[Step]) -> AsyncGenerator[Received[Any]]:
        self.reads += 1
        for step in steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, int | float):
                await asyncio.sleep(step if step < FOREVER else 1e9)
            elif isinstance(step, WatchEvent | Bookmark | Unreadable):
                told = step if isinstance(step, Bookmark) else step.metadata
                self._see(told.resource_version)
                yield step  # type: ignore[misc] # an Unreadable is what batches may hold
            else:
                step()

    def _see(self, version: str) -> None:
        self._newest = max(self._newest, int(version) if version.isdigit() else 0)

    def _note(self, verb: str, options: ListOptions) -> None:
        self.requests.append(Asked(verb, options, asyncio.get_running_loop().time()))

    def asked(self, verb: str) -> Sequence[ListOptions]:
        return [request.options for request in self.requests if request.verb == verb]


def is_probe(options: ListOptions) -> bool:
    return options.limit == 1 and not (options.resource_version or options.continue_token)


def without_probes(requests: Sequence[R]) -> list[R]:
    """Leave out the looks at the server's version."""
    return [one for one in requests if one.verb != "list" or not is_probe(one.options)]


# --- running and looking


@contextlib.asynccontextmanager
async def running(reflector: Reflector[Any]) -> AsyncGenerator[asyncio.Task[None]]:
    """Run ``reflector`` beside the block; fail if it has ended by itself."""
    async with background(reflector.run()) as task:
        yield task
        if task.done() and not task.cancelled():
            task.result()


async def turns(count: int = 20) -> None:
    """Let everything happen that needs no time."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], within: float = 60.0) -> None:
    """Let virtual time pass until ``condition`` holds, looking at it every now and then."""
    pause = min(max(within / 400, 0.05), 0.5)
    for _ in range(round(within / pause)):
        if condition():
            return
        await asyncio.sleep(pause)
    raise AssertionError(f"not so within {within:g} s")


async def seen_until(look: Callable[[], T], wanted: T, within: float = 60.0) -> list[T]:
    """Look until what is ``wanted`` is seen; return all that was."""
    seen: list[T] = []

    def is_there() -> bool:
        seen.append(look())
        return seen[-1] == wanted

    await until(is_there, within)
    return seen


def shown(store: Store[Object]) -> dict[str, Any]:
    """Return what is in a store, all of it."""
    return {str(held.metadata.key): held.object.to_dict() for held in store.entries.list()}


def there(source: FakeListWatch[Object]) -> dict[str, Any]:
    """Return what is on the server, all of it."""
    return {str(key): held.object.to_dict() for key, held in source.entries.items()}


def names(store: Store[Any]) -> set[str]:
    return {key.name for key in store.list_keys()}


def most_in_a_minute(times: Sequence[float]) -> int:
    """Return how many of ``times`` lie in the busiest minute."""
    return max((sum(at <= one < at + 60.0 for one in times) for at in times), default=0)


def assert_in_budget(requests: Sequence[Any], since: float = 0.0) -> None:
    """Check that there are at most 8 lists and 8 watches in any minute; pages count once."""
    for verb in ("list", "watch"):
        times = [
            request.at
            for request in requests
            if request.verb == verb and request.at >= since and not request.options.continue_token
        ]
        assert most_in_a_minute(times) <= 8, f"too many of {verb}: {times}"


class Told:
    """A watch error handler that remembers."""

    def __init__(self) -> None:
        self.errors: list[KinformError] = []

    def __call__(self, error: KinformError) -> None:
        self.errors.append(error)

    @property
    def kinds(self) -> list[str]:
        return [type(error).__name__ for error in self.errors]


class Front:
    """What stands between a reflector and a `FakeListWatch`: a proxy that may misbehave.

    ``ends`` ends every watch right after it was opened: in good order (``True``) or by an error.
    ``breaks`` refuses every list and watch.
    """

    def __init__(
        self,
        source: FakeListWatch[Object],
        *,
        breaks: Exception | None = None,
        list: Any = None,  # noqa: A002 - the verb's own name
        **options: Any,
    ) -> None:
        self.source = source
        self.ends: Exception | bool = False
        self.breaks = breaks
        self.source_options = SourceOptions(**options)
        if list is not None:
            setattr(self, "list", list)  # noqa: B010 - a method of the class

    async def list(self, options: ListOptions) -> ListResult[Object]:
        if self.breaks is not None:
            self.source.fail_lists(self.breaks)
        return await self.source.list(options)

    @contextlib.asynccontextmanager
    async def watch(self, options: ListOptions) -> AsyncGenerator[Any]:
        if self.breaks is not None:
            self.source.fail_watches(self.breaks)
        async with self.source.watch(options) as stream:
            yield self._end() if self.ends else stream

    async def _end(self) -> AsyncGenerator[Received[Object]]:
        if isinstance(self.ends, Exception):
            raise self.ends
        nothing: list[Received[Object]] = []
        for received in nothing:
            yield received


@contextlib.asynccontextmanager
async def following(
    source: FakeListWatch[Object],
    lw: Any = None,
    *,
    store: Store[Object] | None = None,
    within: float = 70.0,
    **more: Any,
) -> AsyncGenerator[Reflector[Object]]:
    """Run a reflector that is in sync when the block begins, and soon after it.

    All the while it stays within its budget, and afterwards nothing is open.
    """
    store = Store() if store is None else store
    reflector: Reflector[Object] = Reflector(lw or source, store, **more)
    async with running(reflector):
        await until(lambda: reflector.statistics().is_connected and shown(store) == there(source))
        yield reflector
        await until(lambda: shown(store) == there(source), within)
        await until(lambda: reflector.statistics().is_connected, within)
    assert source.open_watches == 0
    assert_in_budget(source.requests)

"""The paths that the gate looks at, each small enough to be counted instruction by instruction."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from bench import measure, pods
from bench.gate import informing
from kinform import Object, ObjectName, WorkQueue
from kinform.meta import ObjectMeta
from kinform.sansio.wire.list import ListDecoder

__all__ = ["PATHS", "Path"]

PODS: Final = 400
"""The number of pods."""
PODS_PER_NODE: Final = 20
"""The number of pods on one node."""
LOOKUPS: Final = 10 * PODS
"""The repetitions of a path that takes less than a microsecond."""

AsyncJob: TypeAlias = Callable[[], Coroutine[Any, Any, object]]
Informer: TypeAlias = Callable[[], AbstractAsyncContextManager[informing.Following[Any]]]


@dataclass(frozen=True, slots=True)
class Path:
    """One way through kinform."""

    name: str
    opened: Callable[[], AbstractAsyncContextManager[AsyncJob]]
    """Has all ready, yields what is measured, once, and clears up."""
    units: int
    """The number of events, objects or lookups in one run."""
    reference: measure.Job
    """Work of the same kind that is not ours: what it is compared with in time."""
    keeps: bool = False
    """True if the memory held afterwards is measured."""


# --- what arrives

_NODE: Final = re.compile(rb'"nodeName":"[^"]+"')
_PODS: Final = [
    _NODE.sub(b'"nodeName":"node-%d"' % (number // PODS_PER_NODE), pod)
    for number, pod in enumerate(pods.pods(PODS))
]
_ADDED: Final = [b'{"type":"ADDED","object":%b}\n' % pod for pod in _PODS]
_UPDATED: Final = [
    b'{"type":"MODIFIED","object":%b}\n'
    % pod.replace(b'"resourceVersion":"1', b'"resourceVersion":"2', 1)
    for pod in _PODS
]
_LISTED: Final = 1_500_000
_RELISTED: Final = 1_600_000
_LIST: Final = informing.reads(*_ADDED, informing.list_end(_LISTED))
_RELIST: Final = informing.reads(*_ADDED, informing.list_end(_RELISTED))
_EMPTY: Final = informing.reads(informing.list_end(1))
_NEWS: Final = informing.reads(*_ADDED)
_UPDATES: Final = informing.reads(*_UPDATED)
_BODY: Final = informing.reads(*pods.list_body(PODS))


class _Head(msgspec.Struct, gc=False):
    metadata: ObjectMeta = ObjectMeta()


class _Line(msgspec.Struct, gc=False):
    type: str
    object: _Head


class _Spec(msgspec.Struct, frozen=True, gc=False):
    node_name: str = msgspec.field(name="nodeName", default="")


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")


class _Pod(msgspec.Struct, frozen=True, gc=False):
    """A projection: what is kept of a pod."""

    spec: _Spec
    status: _Status


def _raw(
    storage: str = "raw", *, awaits: bool = False
) -> AbstractAsyncContextManager[informing.Following[Object]]:
    def phase(pod: Object) -> object:
        return pod.at("status", "phase")

    def node(pod: Object) -> str:
        return str(pod.at("spec", "nodeName"))

    return informing.following(phase, node=node, storage=storage, awaits=awaits)


def _typed() -> AbstractAsyncContextManager[informing.Following[_Pod]]:
    def phase(pod: _Pod) -> object:
        return pod.status.phase

    def node(pod: _Pod) -> str:
        return pod.spec.node_name

    return informing.following(phase, node=node, model=_Pod)


# --- writing to the cache


@contextlib.asynccontextmanager
async def _taking(
    source: Informer, before: Iterable[bytes] | None, then: Iterable[bytes], *, known: int = 0
) -> AsyncGenerator[AsyncJob]:
    async with source() as following:
        if before is not None:
            await following.take(before, delivered=known)
        yield lambda: following.take(then, delivered=PODS)


@contextlib.asynccontextmanager
async def _relisting() -> AsyncGenerator[AsyncJob]:
    async with _raw() as following:
        await following.take(_LIST, delivered=PODS)
        yield lambda: following.relist(_RELIST, version=_RELISTED)


@contextlib.asynccontextmanager
async def _packing() -> AsyncGenerator[AsyncJob]:
    async with _raw("zstd") as following:

        async def job() -> None:
            await following.take(_LIST, delivered=PODS)
            await following.pack(PODS)

        yield job


@contextlib.asynccontextmanager
async def _decoding() -> AsyncGenerator[AsyncJob]:
    async def job() -> object:
        decoder = ListDecoder()
        items = [decoder.feed(read) for read in _BODY]
        return items, decoder.finish()

    yield job


# --- reading from the cache


@contextlib.asynccontextmanager
async def _looking(
    look: Callable[[informing.Following[Any]], Callable[[], object]], storage: str = "raw"
) -> AsyncGenerator[AsyncJob]:
    async with _raw(storage) as following:
        await following.take(_LIST, delivered=PODS)
        if storage == "zstd":
            await following.pack(PODS)
        look_up = look(following)

        async def job() -> object:
            return look_up()

        yield job


def _by_key(following: informing.Following[Any]) -> Callable[[], object]:
    lister = following.informer.lister
    keys = [ObjectName(pod.namespace, pod.name) for pod in lister.list()]
    rounds = LOOKUPS // PODS
    return lambda: [lister.get(key) for _ in range(rounds) for key in keys]


def _by_index(following: informing.Following[Any]) -> Callable[[], object]:
    indexer = following.informer.indexer
    nodes = indexer.list_index_values("node")
    rounds = LOOKUPS // len(nodes) // 4
    return lambda: [indexer.by_index("node", node) for _ in range(rounds) for node in nodes]


def _by_selector(following: informing.Following[Any]) -> Callable[[], object]:
    lister = following.informer.lister
    return lambda: [lister.list("tier=backend") for _ in range(10)]


def _by_path(following: informing.Following[Any]) -> Callable[[], object]:
    found = following.informer.lister.list()
    return lambda: [pod.at("status", "podIP") for pod in found]


# --- working


@contextlib.asynccontextmanager
async def _queueing() -> AsyncGenerator[AsyncJob]:
    keys = [ObjectName(f"ns-{number % 20}", f"pod-{number}") for number in range(LOOKUPS)]
    queue: WorkQueue[ObjectName] = WorkQueue()

    async def job() -> None:
        for key in keys:
            queue.add(key)
        for _ in keys:
            queue.done(await queue.get())

    yield job


# --- what is not ours


def _metadata() -> object:
    decode = msgspec.json.Decoder(_Line).decode
    return [decode(line) for line in _ADDED]


_TABLE: Final = {(f"ns-{number % 20}", f"pod-{number}"): number for number in range(LOOKUPS)}
_KEYS: Final = [*_TABLE]


def _gets() -> object:
    get = _TABLE.get
    return [get(key) for _ in range(10) for key in _KEYS]


PATHS: Final = (
    Path("first list", partial(_taking, _raw, None, _LIST), PODS, _metadata, keeps=True),
    Path("unchanged relist", _relisting, PODS, _metadata),
    Path("new objects", partial(_taking, _raw, _EMPTY, _NEWS), PODS, _metadata, keeps=True),
    Path(
        "updates", partial(_taking, _raw, _LIST, _UPDATES, known=PODS), PODS, _metadata, keeps=True
    ),
    Path(
        "async handler",
        partial(_taking, partial(_raw, awaits=True), _LIST, _UPDATES, known=PODS),
        PODS,
        _metadata,
    ),
    Path("list decoding", _decoding, PODS, _metadata, keeps=True),
    Path(
        "typed updates",
        partial(_taking, _typed, _LIST, _UPDATES, known=PODS),
        PODS,
        _metadata,
        keeps=True,
    ),
    Path("zstd first list", _packing, PODS, _metadata, keeps=True),
    Path("zstd read", partial(_looking, _by_path, "zstd"), PODS, _metadata),
    Path("get by key", partial(_looking, _by_key), LOOKUPS, _gets),
    Path("index of 20", partial(_looking, _by_index), LOOKUPS // 4, _gets),
    Path("list, selector", partial(_looking, _by_selector), 10 * PODS, _gets),
    Path("work queue", _queueing, LOOKUPS, _gets),
    Path(
        "reconcile",
        partial(_taking, informing.controlling, _LIST, _UPDATES, known=PODS),
        PODS,
        _metadata,
    ),
)

"""Events on the open watches: all at once, or one by one at a rate."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, final

from bench.replay import frames
from bench.replay.http import GoneError
from bench.replay.pods import Cluster, Pods
from bench.replay.watches import Watch

__all__ = ["NotSentError", "Prepared", "Sent", "blast", "pace"]


class NotSentError(Exception):
    """A client did not take its events."""


class Sent(NamedTuple):
    """The number of events and their time in Unix nanoseconds."""

    sent: int
    began: int
    ended: int


@final
class Prepared:
    """The next events of a cluster, ready to be sent.

    A watch of all pods gets all of them, a watch of a namespace those of its pods.
    """

    def __init__(self, cluster: Cluster, count: int, *, encodings: Sequence[Pods]) -> None:
        self.cluster = cluster
        self.count = count
        self.first = cluster.events
        self._blocks: dict[tuple[Pods, str], list[bytes]] = {}
        for pods in encodings:
            self._make(pods, "", list(cluster.upcoming(count)))
            if cluster.namespaces:
                self._make_by_namespace(pods)

    def _make_by_namespace(self, pods: Pods) -> None:
        by_namespace: dict[str, list[int]] = {}
        for event in self.cluster.upcoming(self.count):
            namespace = self.cluster.namespace_of(event % self.cluster.objects)
            by_namespace.setdefault(namespace, []).append(event)
        by_namespace.pop("", None)
        for namespace, events in by_namespace.items():
            self._make(pods, namespace, events)

    def _make(self, pods: Pods, namespace: str, events: Sequence[int]) -> None:
        changed = (self.cluster.changed(pods, event, namespace=namespace) for event in events)
        chunks = (frames.pod_event(pods, frames.MODIFIED, pod) for pod in changed)
        self._blocks[pods, namespace] = list(frames.blocks(chunks))

    @property
    def is_due(self) -> bool:
        """True if these are still the next events."""
        return self.first == self.cluster.events

    def blocks(self, watch: Watch) -> Sequence[bytes]:
        """Return what a watch gets."""
        return self._blocks.get((watch.pods, watch.namespace), ())


def blast(prepared: Prepared, watches: Sequence[Watch]) -> Sent:
    """Send the events on all watches, as fast as each takes them.

    Raises:
        NotSentError: a client went away; the others got theirs.
    """

    def send(watch: Watch) -> str:
        for number, block in enumerate(blocks := prepared.blocks(watch)):
            try:
                watch.connection.send(block)
            except GoneError as exc:
                return f"{exc}, after {number} of {len(blocks)} blocks of events"
        return ""

    prepared.cluster.happened(prepared.count)
    began = time.time_ns()
    if len(watches) == 1:
        failures = [send(watches[0])]
    else:
        with ThreadPoolExecutor(len(watches)) as threads:
            failures = list(threads.map(send, watches))
    ended = time.time_ns()
    if failed := [failure for failure in failures if failure]:
        raise NotSentError(f"{len(failed)} of {len(watches)} watches failed: {failed[0]}")
    return Sent(prepared.count, began, ended)


def pace(cluster: Cluster, watches: Sequence[Watch], *, count: int, per_second: float) -> Sent:
    """Send the next events one by one, each with the time at which it is sent in it.

    An event that is late is sent at once, the next one when it is due.

    Raises:
        NotSentError: a client went away.
    """
    began = ended = time.time_ns()
    due = _clock(per_second)
    for done, event in enumerate(cluster.upcoming(count)):
        concerned = _concerned(cluster, watches, event)
        made = [(watch, *_frame(cluster, watch, event)) for watch in concerned]
        due()
        sent = b"%019d" % time.time_ns()
        try:
            for watch, frame, place in made:
                sent = b"%019d" % time.time_ns()
                frame[place : place + 19] = sent
                watch.connection.send(frame)
        except GoneError as exc:
            raise NotSentError(f"{exc}, after {done} of {count} events") from exc
        finally:
            cluster.happened(1, sent=sent)
        ended = time.time_ns()
    return Sent(count, began, ended)


def _clock(per_second: float) -> Callable[[], None]:
    """Return a function that returns at a rate."""
    began = time.monotonic()
    times: Iterator[float] = (began + number / per_second for number in itertools.count())

    def due() -> None:
        left = next(times) - time.monotonic()
        if left > 0:
            time.sleep(left)

    return due


def _concerned(cluster: Cluster, watches: Sequence[Watch], event: int) -> list[Watch]:
    namespaces = {"", cluster.namespace_of(event % cluster.objects)}
    return [watch for watch in watches if watch.namespace in namespaces]


def _frame(cluster: Cluster, watch: Watch, event: int) -> tuple[bytearray, int]:
    """Return an event, and where in it the time at which it was sent is."""
    pods = watch.pods
    pod = cluster.changed(pods, event, namespace=watch.namespace)
    frame = bytearray(b"".join(frames.pod_event(pods, frames.MODIFIED, pod)))
    return frame, frame.index(pods.wire.sent_mark) + len(pods.wire.sent_mark)

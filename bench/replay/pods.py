"""The pods of a file in one encoding, and what becomes of them.

`Pods` knows the bytes: any pod in any state is a record of the file with a few bytes overwritten.
`Cluster` knows the state: which pods there are, and what the events so far made of them. Event k
changes pod k modulo their number, so all of it follows from how many events there were.
"""

from __future__ import annotations

import itertools
import mmap
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

from bench import corpus
from bench.replay.wire import Buffer, Places, Wire

__all__ = ["PODS_PER_NAMESPACE", "Cluster", "Lists", "Pods"]

Lists: TypeAlias = Literal["whole", "pages", "stream"]

PODS_PER_NAMESPACE: Final = 20
_FIELDS: Final = len(Places._fields)


@final
class Pods:
    """The pods of a file, and as many more as are asked for: the file's again, renamed."""

    def __init__(self, file: Path, wire: Wire) -> None:
        """Read a file.

        Raises:
            OSError: it cannot be read.
            ValueError: it is none of `bench.corpus`, or empty.
        """
        self.wire = wire
        with file.open("rb") as source:
            data = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = memoryview(data)
        self._starts = array("Q")
        self._sizes = array("I")
        self._places = array("I")
        position = 0
        while position < len(data):
            start = position + 4
            position = start + int.from_bytes(data[position:start], "big")
            if position > len(data):
                raise ValueError(f"{file} ends within a record")
            self._starts.append(start)
            self._sizes.append(position - start)
            self._places.extend(wire.places(data, start, position))
        heads = (size + len(wire.item_head(size, is_first=False)) for size in self._sizes)
        self._items = array("Q", itertools.accumulate(heads, initial=0))

    def __len__(self) -> int:
        return len(self._starts)

    def items_size(self, first: int, last: int) -> int:
        """Return the size of some pods as items of a list, their heads included."""
        return self._items_until(last) - self._items_until(first)

    def _items_until(self, number: int) -> int:
        repeats, rest = divmod(number, len(self))
        return repeats * self._items[-1] + self._items[rest]

    def pod(
        self, number: int, *, version: int, changes: int = 0, sent: bytes = b"", namespace: str = ""
    ) -> Buffer:
        """Return a pod; it is a view of the file if it is as it was written there.

        ``changes`` is added to the first container's restartCount, of which one digit is kept;
        ``sent`` is the time of its last event, 19 digits.
        """
        repeat, record = divmod(number, len(self))
        start = self._starts[record]
        view = self._bytes[start : start + self._sizes[record]]
        if not (repeat or changes or namespace):
            return view
        places = Places(*self._places[record * _FIELDS : (record + 1) * _FIELDS])
        pod = bytearray(view)
        pod[places.version : places.version + 10] = b"%d" % version
        if repeat:
            pod[places.name : places.name + 5] = corpus.name_suffix(number)
            pod[places.uid : places.uid + 12] = corpus.uid_tail(number)
            pod[places.node : places.node + 3] = b"%03d" % repeat
        if changes:
            zero = self.wire.zero
            pod[places.restarts] = (pod[places.restarts] - zero + changes) % 10 + zero
        if sent:
            pod[places.sent : places.sent + 19] = sent
        if namespace:
            return self.wire.moved(pod, places, namespace=namespace.encode())
        return pod


@final
class Cluster:
    """The served state: the first ``objects`` pods, after ``events`` events.

    With ``namespaces``, the first pods are in namespaces of their own as well, 20 in each.
    """

    def __init__(self, objects: int, *, lists: Lists = "whole", namespaces: int = 0) -> None:
        """Raises ValueError if there are too few pods for the namespaces."""
        if objects < PODS_PER_NAMESPACE * namespaces:
            wanted = PODS_PER_NAMESPACE * namespaces
            raise ValueError(f"{namespaces} namespaces need {wanted} objects, not {objects}")
        self.objects = objects
        self.lists: Lists = lists
        self.namespaces = namespaces
        self.events = 0
        self._sent: dict[int, bytes] = {}

    @property
    def version(self) -> int:
        """The version of the last event, or of the last pod before any event."""
        return corpus.FIRST_VERSION + self.objects - 1 + self.events

    def numbers(self, namespace: str) -> range | None:
        """Return the pods of a namespace, all for ``""``; None if it is not served."""
        if not namespace:
            return range(self.objects)
        name, _, number = namespace.partition("-")
        if name == "bench" and number.isdecimal() and int(number) < self.namespaces:
            first = int(number) * PODS_PER_NAMESPACE
            return range(first, first + PODS_PER_NAMESPACE)
        return None

    def namespace_of(self, number: int) -> str:
        """Return the namespace of its own that a pod is in as well, ``""`` if there is none."""
        which = number // PODS_PER_NAMESPACE
        return f"bench-{which}" if which < self.namespaces else ""

    def pod(self, pods: Pods, number: int, *, namespace: str = "") -> Buffer:
        """Return a pod as the events so far left it."""
        changes = -(-(self.events - number) // self.objects) if number < self.events else 0
        version = corpus.FIRST_VERSION + changes * self.objects + number
        sent = self._sent.get(number, b"")
        return pods.pod(number, version=version, changes=changes, sent=sent, namespace=namespace)

    def upcoming(self, count: int) -> Iterator[int]:
        """Yield the numbers of the next ``count`` events."""
        return iter(range(self.events, self.events + count))

    def changed(self, pods: Pods, event: int, *, namespace: str = "") -> Buffer:
        """Return the pod that an event changes, as it is right after it."""
        rounds, number = divmod(event, self.objects)
        version = corpus.FIRST_VERSION + self.objects + event
        return pods.pod(number, version=version, changes=rounds + 1, namespace=namespace)

    def happened(self, count: int, *, sent: bytes = b"") -> None:
        """Make the next ``count`` events part of the state."""
        if sent or self._sent:
            for event in self.upcoming(count):
                self._sent[event % self.objects] = sent
        self.events += count

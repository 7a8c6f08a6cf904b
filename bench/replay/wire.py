"""The common parts of the two encodings, and the positions of a pod's changing fields."""

from __future__ import annotations

import mmap
from typing import Final, NamedTuple, Protocol, TypeAlias

__all__ = ["INITIAL_EVENTS_END", "Buffer", "Failure", "Places", "Wire"]

Buffer: TypeAlias = bytes | bytearray | memoryview

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a streamed list."""


class Places(NamedTuple):
    """The positions of the changing fields in a pod, counted from its start."""

    name: int
    """The last five letters of the name."""
    namespace: int
    uid: int
    """The last twelve digits of the uid."""
    version: int
    sent: int
    node: int
    """The three digits of the node's name that tell how often the file was repeated."""
    restarts: int
    """The first container's restartCount, one digit."""


class Failure(NamedTuple):
    """A refusal: what a ``Status`` says."""

    code: int
    reason: str
    message: str


class Wire(Protocol):
    """An encoding.

    A list is ``list_head``, each pod behind an ``item_head``, and ``list_tail``. An event is
    ``event_head``, a pod without its first ``skipped`` bytes, and ``event_tail``.
    """

    list_type: str
    """The Content-Type of lists."""
    watch_type: str
    list_tail: bytes
    event_tail: bytes
    skipped: int
    zero: int
    """The byte that is the digit 0 of restartCount."""
    sent_mark: bytes
    """The bytes right before the time at which an event was sent."""

    def places(self, data: mmap.mmap | bytes, start: int, end: int) -> Places:
        """Find the fields of the pod that is at ``data[start:end]``."""
        ...

    def moved(self, pod: Buffer, places: Places, *, namespace: bytes) -> bytes:
        """Return the pod in another namespace."""
        ...

    def list_head(self, *, version: int, token: str, remaining: int, size: int) -> bytes:
        """Begin a list whose items have ``size`` bytes, with their heads."""
        ...

    def item_head(self, size: int, *, is_first: bool) -> bytes:
        """Begin an item, a pod of ``size`` bytes."""
        ...

    def event_head(self, kind: bytes, size: int) -> bytes:
        """Begin an event with a pod of ``size`` bytes."""
        ...

    def bookmark(self, version: int, *, ends_list: bool = False) -> bytes:
        """Return a whole BOOKMARK event."""
        ...

    def status(self, failure: Failure) -> bytes:
        """Return the body of a refusal."""
        ...

    def error(self, failure: Failure) -> bytes:
        """Return a whole ERROR event."""
        ...

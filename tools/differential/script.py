"""A script: what a server has at which time, and how it answers. Plain data, from one seed.

Two clients ask at different times and in different ways, so a script holds no list of answers.
It holds the revision history of the objects in virtual time, and faults that match requests by
verb, time window and count; `tools.differential.server` makes answers of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = [
    "FOREVER",
    "KIND",
    "PATH",
    "TEXT",
    "Change",
    "Fault",
    "Handler",
    "Script",
    "Style",
    "Verb",
    "damaged_key",
    "held",
    "history",
]

Verb: TypeAlias = Literal["list", "stream", "watch", "discovery"]
Handler: TypeAlias = Literal["plain", "taskgroup", "timeout", "thread"]
TEXT = 'é\u2028\u0085\u20ac \\" {}[]'
"""In every object: characters that are more than one byte, or look like JSON or ends of lines."""
PATH = "/apis/example.dev/v1/widgets"
KIND = "Widget"
FOREVER = 1e9


class Change(Struct, frozen=True):
    """A write to the server's storage; ``restore`` takes the storage back to revision ``rv``."""

    at: float
    rv: int
    op: Literal["ADDED", "MODIFIED", "DELETED", "restore"]
    key: str = ""
    uid: str = ""
    n: int = 0
    """The content: different for each write."""

    @property
    def state(self) -> str:
        """What a client can know of the object after this change; empty after a deletion."""
        return "" if self.op == "DELETED" else f"{self.uid}/{self.rv}/{self.n}"


class Style(Struct, frozen=True):
    """How documents are written: all of these are valid, and mean the same."""

    nulls: bool = False
    pretty: bool = False
    reordered: bool = False
    unknown_fields: bool = False
    pieces: int = 0
    """Bodies arrive in pieces of so many bytes; 0: document by document."""
    gzip: int = 0
    """Lists are compressed, as so many gzip members; 0: they are not."""


class Fault(Struct, frozen=True):
    """What happens to the requests that it matches; the first fault that matches acts alone."""

    what: str
    verbs: Sequence[Verb]
    since: float = 0.0
    until: float = FOREVER
    skip: int = 0
    """So many matching requests pass first."""
    times: int = 1_000_000
    code: int = 0
    reason: str = ""
    retry_after: int = 0
    after: float = 0.0
    """Seconds after the head of the answer, for what happens inside a watch."""
    size: int = 0
    """Bytes of the body, for what happens at a byte."""


class Script(Struct, frozen=True):
    """Everything about one run, the same for both clients."""

    seed: int
    theme: str
    duration: float
    changes: Sequence[Change] = ()
    faults: Sequence[Fault] = ()
    style: Style = Style()
    compactions: Sequence[tuple[float, int]] = ()
    """From that time on, watches from an older revision have expired."""
    drops: Sequence[float] = ()
    """When all open watches end cleanly, as in a restart of the server."""
    lags: Sequence[tuple[float, float]] = ()
    """From when until when the server's watch cache receives nothing from the storage."""
    served: Sequence[tuple[float, Sequence[str]]] = ((0.0, ("v1", "v2")),)
    """From that time on, the API versions that are served."""
    spread: float = 0.0
    """Seconds in which the objects of a streamed list are sent."""
    page: int = 0
    """Lists with a limit have so many objects per page; 0: all."""
    aggregated: bool = True
    """Whether the server knows aggregated discovery."""
    name: str = "example.dev/v1/widgets"
    """How our client is asked for the resource; client-go never uses discovery."""
    handler: Handler = "plain"
    """What our handlers do besides; it must make no difference."""

    def cached(self, now: float) -> float:
        """Return the time whose state the watch cache has at ``now``."""
        return next((since for since, until in self.lags if since <= now < until), now)

    def visible(self, at: float) -> float:
        """Return when the watch cache receives what is written at ``at``."""
        return next((until for since, until in self.lags if since < at < until), at)

    def versions(self, now: float) -> Sequence[str]:
        """Return the API versions that are served at ``now``."""
        return [names for at, names in self.served if at <= now][-1]


def damaged_key(script: Script, fault: Fault) -> str:
    """Return the object whose events a fault damages; ``""``: there are no objects."""
    keys = sorted({change.key for change in script.changes if change.key})
    return keys[fault.size % len(keys)] if keys else ""


def history(script: Script, now: float) -> list[Change]:
    """Return the writes that the storage has at ``now``."""
    kept: list[Change] = []
    for change in script.changes:
        if change.at > now:
            break
        if change.op == "restore":
            kept = [one for one in kept if one.rv <= change.rv]
        else:
            kept.append(change)
    return kept


def held(changes: Sequence[Change]) -> dict[str, Change]:
    """Return the newest write of each object that exists after ``changes``."""
    objects: dict[str, Change] = {}
    for change in changes:
        objects.pop(change.key, None)
        if change.op != "DELETED":
            objects[change.key] = change
    return objects

"""Outcome: the notifications, the cache and the requests of a client after a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tools.differential.server import Asked

__all__ = ["Note", "Outcome"]


class Note(Struct, frozen=True):
    """A notification."""

    at: float
    what: Literal["add", "update", "delete"]
    key: str
    state: str
    """As `Change.state` has it; of a deletion, the last state."""
    old: str = ""
    """Of an update, the state before."""
    unknown: bool = False
    """Of a deletion: only a relist showed it, so the final state is unknown."""


class Outcome(Struct, frozen=True, kw_only=True):
    """Everything that is compared."""

    notes: Sequence[Note] | None = ()
    cache: Mapping[str, str] = {}
    """By key, the states in the cache at the end."""
    synced: float | None = None
    """When the client called itself synced."""
    error: str = ""
    """Why the script was not played to its end; ``hot``: too many requests."""
    asked: Sequence[Asked] = ()
    broken: str = ""
    """Of our client: an invariant that did not hold while it ran, such as an index that is not
    what the cache has, or a watch that was left open."""
    unlike_plain: str = ""
    """Of our client: what differs if its handlers do nothing but note."""

"""What becomes of a cache in a forked child: reading it is an error there.

The tasks that fill a cache run in the parent alone. In the child the cache would be frozen as it
was at the fork, and nothing would show that. So a fork takes the content of every cache that is
being filled away from the child; reads cost nothing for it.
"""

from __future__ import annotations

import os
import weakref
from typing import Final, NoReturn, Protocol, final

from kinform.errors import UsageError

__all__ = ["Forkable", "Forked", "filled", "no_longer_filled"]


class Forkable(Protocol):
    """A cache whose content can be taken away: a `ThreadSafeStore`."""

    def abandon(self, message: str) -> None:
        """Refuse every read from now on."""
        ...


@final
class Forked:
    """In the place of a store's state: whatever is read from it raises `UsageError`."""

    __slots__ = ("_message",)

    def __init__(self, message: str) -> None:
        self._message = message

    def __getattr__(self, name: str) -> NoReturn:
        raise UsageError(self._message)


_filled: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()
"""The caches that are being filled in this process."""


def filled(cache: Forkable) -> None:
    """Note that ``cache`` is being filled: a child that reads it gets an error."""
    _filled.add(cache)


def no_longer_filled(cache: Forkable) -> None:
    """Note that ``cache`` stays as it is, in this process and in any child."""
    _filled.discard(cache)


def _in_child() -> None:
    message = (
        f"this cache belongs to process {os.getppid()} and is not kept up to date after a fork: "
        "open a client and an informer of its own in the child"
    )
    for cache in tuple(_filled):
        cache.abandon(message)
    _filled.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_in_child)

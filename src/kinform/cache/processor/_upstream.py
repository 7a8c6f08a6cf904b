"""Upstream: the state of an informer, for the handlers and streams that wait for its events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from kinform.errors import KinformError
from kinform.sansio.queue.interface import no_op

__all__ = ["Upstream"]


def _nothing() -> None:
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The reasons why no event arrives, for waiters; by default there is no reason."""

    refuse_if_idle: Callable[[], None] = no_op
    """Raises `UsageError` if the informer was not started, so that no event will arrive."""
    trouble: Callable[[], KinformError | None] = _nothing
    """Returns the current failure of its reflector."""
    failure: Callable[[], BaseException | None] = _nothing
    """Returns the error that ended it."""

"""Upstream: what handlers and streams can know of the informer they wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from kinform.errors import KinformError
from kinform.sansio.queue import no_op

__all__ = ["Upstream"]


def _nothing() -> None:
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Why nothing comes, asked when somebody waits; the defaults know of no reason."""

    refuse_if_idle: Callable[[], None] = no_op
    """Raises `UsageError` if nothing will ever come: it was not started."""
    trouble: Callable[[], KinformError | None] = _nothing
    """Returns what goes wrong at the moment."""
    failure: Callable[[], BaseException | None] = _nothing
    """Returns what it has died of."""

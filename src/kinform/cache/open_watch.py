"""One watch, while it is open: its deadline, its silence, and what ended it."""

from __future__ import annotations

import asyncio
from typing import Final, final

from kinform.errors import KinformError, TransportError, TransportFailure
from kinform.sansio import relist

__all__ = ["OpenWatch"]

DEADLINE_GRACE: Final = 10.0
"""How long after its time-out a watch may take to end before we end it."""


@final
class OpenWatch:
    """A watch from its opening to its end. ``limit`` ends it, whoever has a reason to.

    Attributes:
        is_list: whether it is still the first part of a streamed list, up to its end bookmark.
        is_open: whether the server has accepted it.
        heard: when something last came.
        decision: what follows, where that was decided while it was open.
    """

    def __init__(self, resource_version: str, *, is_list: bool, timeout: float) -> None:
        self.resource_version: Final = resource_version
        self.timeout: Final = timeout
        self.started: Final = asyncio.get_running_loop().time()
        self.deadline: Final = self.started + timeout + DEADLINE_GRACE
        self.limit: Final = asyncio.timeout_at(self.deadline)
        self.is_list: bool = is_list
        self.is_open: bool = False
        self.heard: float = self.started
        self.decision: relist.Decision | None = None
        self._reason: KinformError | None = None
        self._idle: float | None = None

    def arm(self, idle: float | None) -> None:
        """From now on, end it when nothing comes for ``idle`` seconds."""
        self._idle = idle
        self.watch_silence()

    def watch_silence(self) -> None:
        """Count the silence from when something was last heard."""
        if self._idle is not None:
            self._reschedule(min(self.deadline, self.heard + self._idle))

    def pause(self) -> None:
        """Let it be as long as we ourselves do not read."""
        self._reschedule(None)

    def resume(self) -> None:
        """Undo `pause`; the time until now was not the server's silence."""
        self.heard = asyncio.get_running_loop().time()
        self._reschedule(self.deadline)
        self.watch_silence()

    def end(
        self, *, reason: KinformError | None = None, decision: relist.Decision | None = None
    ) -> None:
        """End it: for ``reason``, or because ``decision`` says what follows."""
        self._reason, self.decision = reason, decision
        self._reschedule(self.started)

    def failure(self) -> KinformError:
        """Return why the limit ended it."""
        if self._reason is not None:
            return self._reason
        now = asyncio.get_running_loop().time()
        if now >= self.deadline:
            text = f"the watch did not end {self.deadline - self.started:g} s after its start"
        else:
            text = f"the watch was silent for {now - self.heard:g} s"
        return TransportError(text, failure=TransportFailure.TIMEOUT)

    def lived(self) -> float:
        """Return for how long it has been there."""
        return asyncio.get_running_loop().time() - self.started

    def _reschedule(self, when: float | None) -> None:
        if not self.limit.expired():
            self.limit.reschedule(when)

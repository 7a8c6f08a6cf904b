"""A blocking call: a coroutine on the loop thread, and a thread that waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from typing import Final, Generic, Protocol, TypeVar, final

from kinform.errors import UsageError

__all__ = ["SCOPE", "BlockingCall", "Scope", "too_late"]

R = TypeVar("R")

_LOOK_AROUND: Final = 0.25
"""Seconds between two checks for Ctrl-C in a thread that waits.

On Windows nothing interrupts a thread that waits for a lock. Elsewhere a signal does, but not one
that comes after Python last checked for signals and before the system puts the thread to sleep.
"""


@final
class BlockingCall(Generic[R]):
    """One coroutine, from the thread that needs its result to the loop and back.

    All but `begin` may be called from any thread.

    Rule: the loop never waits for a lock that the other thread takes. A Ctrl-C there could leave
    it taken, as it can those of `concurrent.futures.Future`, and the shared loop would block for
    all threads.
    """

    __slots__ = (
        "_ended",
        "_failure",
        "_is_cancelled",
        "_is_mute",
        "_is_over",
        "_loop",
        "_make",
        "_result",
        "_task",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make: Callable[[], Coroutine[object, object, R]],
        *,
        is_mute: Callable[[], bool] = bool,
    ) -> None:
        self._loop = loop
        self._make = make
        self._is_mute = is_mute  # called at the end; true: do not deliver the result
        self._ended = threading.Lock()  # given back by the loop, once, when all is known
        self._ended.acquire()
        self._is_over = False
        self._result: R
        self._failure: BaseException | None = None
        self._task: asyncio.Task[R] | None = None
        self._is_cancelled = False

    def run(self, timeout: float | None = None) -> R:
        """Run the coroutine on the loop; return its result, or raise its error.

        Interrupted at any point, as by Ctrl-C, it cancels the coroutine and does not wait for
        that.

        Raises:
            CancelledError: the call was cancelled.
            TimeoutError: it takes longer than ``timeout``.
            UsageError: the loop is closed.
        """
        # One block for both steps: between two, a Ctrl-C would leave the coroutine running.
        try:
            self._submit()
            self._wait(timeout)
            if self._failure is not None:
                raise self._failure
            return self._result
        except BaseException:
            self.cancel()
            raise
        finally:
            del self  # otherwise the traceback of the error refers to it: a reference cycle

    def begin(self) -> None:
        """Start the coroutine, unless the call was cancelled before. For the loop's thread."""
        if self._is_cancelled:
            self._fail(_cancelled())
            return
        try:
            self._task = self._loop.create_task(self._make())
        except BaseException as exc:  # noqa: BLE001 - raised again in the thread that waits
            self._fail(exc)
        else:
            self._task.add_done_callback(self._end)

    def cancel(self) -> None:
        """Cancel the coroutine. Of no effect on one that has ended."""
        if not self._is_over:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def _submit(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self.begin)  # copies the context
        except RuntimeError:
            raise too_late() from None

    def _wait(self, timeout: float | None) -> None:
        if timeout is not None:
            if not self._ended.acquire(timeout=timeout):
                raise TimeoutError
            return
        is_main = threading.current_thread() is threading.main_thread()  # the one with signals
        while not self._ended.acquire(timeout=_LOOK_AROUND if is_main else -1):
            pass

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[R]) -> None:
        failure = _cancelled() if task.cancelled() else task.exception()
        if self._is_mute():
            return
        if failure is not None:
            self._fail(failure)
        else:
            self._result = task.result()
            self._tell()

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._tell()

    def _tell(self) -> None:
        self._is_over = True
        self._ended.release()


class _Cancellable(Protocol):
    def cancel(self) -> None: ...


@final
class Scope:
    """The blocking calls that one callback makes: they can be cancelled, and forbidden.

    A thread cannot be ended. But a thread that waits for one of these calls can be released.
    """

    __slots__ = ("_calls", "_is_over")

    def __init__(self) -> None:
        self._calls: set[_Cancellable] = set()
        self._is_over = False

    def cancel(self) -> None:
        """End the calls under way, and refuse those to come."""
        self._is_over = True
        for call in tuple(self._calls):
            call.cancel()

    @contextlib.contextmanager
    def holding(self, call: _Cancellable) -> Generator[None]:
        """Register ``call`` for cancellation with the others while the block runs.

        Raises:
            CancelledError: they were ended already.
        """
        self._calls.add(call)
        try:
            if self._is_over:
                raise _cancelled()
            yield
        finally:
            self._calls.discard(call)


SCOPE: Final = contextvars.ContextVar[Scope | None]("kinform_sync_scope", default=None)
"""The callback whose call this is; none outside of handlers."""


def too_late() -> UsageError:
    """Return the error for calls that are made after the loop has ended."""
    return UsageError("the interpreter is exiting: nothing can be asked of a cluster any more")


def _cancelled() -> CancelledError:
    return CancelledError("the call was cancelled: its informer, or the program, is being stopped")

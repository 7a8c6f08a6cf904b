"""Running a command: signals, the end of a pipe, errors in one line, exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

import click

from kinform.cli import problems

__all__ = ["CommandState", "Interrupted", "asynchronously", "emit", "run", "warn"]

R = TypeVar("R")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@final
@dataclass(slots=True)
class CommandState:
    """The context of one run of the command: click's ``obj``."""

    debug: bool = False
    lacks_token: bool = False
    """A server is named, and no token for it."""


class Interrupted(Exception):
    """A signal has ended the work, after everything was closed."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.exit_code: Final = 128 + signum


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; never raises, says errors in one line."""
    from kinform.cli.app import cli

    state = CommandState(debug=bool(os.environ.get("KINFORM_DEBUG")))
    logging.getLogger().addHandler(logging.NullHandler())  # what matters is said by us
    try:
        result = cli.main(
            list(args) if args is not None else None,
            prog_name="kinform",
            standalone_mode=False,
            obj=state,
        )
        sys.stdout.flush()
    except Interrupted as exc:
        return exc.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        _forget_stdout()
        return problems.OK
    except Exception as exc:  # noqa: BLE001 - the boundary of the process: nothing may escape
        return _fail(exc, state)
    return result if isinstance(result, int) else problems.OK


def asynchronously(main: Callable[[], Coroutine[object, object, R]]) -> R:
    """Run ``main`` on an event loop; SIGINT and SIGTERM cancel it, so that all is closed.

    Raises:
        Interrupted: a signal came.
        BrokenPipeError: the reader of the output has closed the pipe.
    """
    with asyncio.Runner() as runner:
        return runner.run(_guarded(main()))


def emit(text: str) -> None:
    """Write to stdout and flush, so that the reader of a pipe gets it at once.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
    """
    sys.stdout.write(text)
    sys.stdout.flush()


def warn(text: str) -> None:
    """Print a message to stderr, in one line."""
    click.echo(f"kinform: {problems.one_line(text)}", err=True)


async def _guarded(main: Coroutine[object, object, R]) -> R:
    task = asyncio.current_task()
    assert task is not None
    reasons: list[Exception] = []

    def end(reason: Exception) -> None:
        reasons.append(reason)
        task.cancel()

    loop = asyncio.get_running_loop()
    for signum in _SIGNALS:
        if signal.getsignal(signum) is not signal.SIG_IGN:  # a background job of a shell
            with contextlib.suppress(NotImplementedError):  # Windows: asyncio.Runner does SIGINT
                loop.add_signal_handler(signum, end, Interrupted(signum))
    with _noticing_closed_pipe(loop, lambda: end(BrokenPipeError())):
        try:
            return await main
        except asyncio.CancelledError:
            if not reasons:
                raise
            raise reasons[0] from None


@contextlib.contextmanager
def _noticing_closed_pipe(
    loop: asyncio.AbstractEventLoop, on_closed: Callable[[], None]
) -> Generator[None]:
    """Notice that the reader of our pipe is gone before there is something to write to it."""
    try:
        descriptor = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except (OSError, ValueError, AttributeError):
        descriptor, is_pipe = -1, False
    if not is_pipe:
        yield
        return
    loop.add_reader(descriptor, on_closed)  # nothing can be read from it but its end
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


def _fail(error: Exception, state: CommandState) -> int:
    message = problems.explain(error, lacks_token=state.lacks_token)
    if message is None:
        message = f"internal error: {type(error).__name__}: {error}; --debug shows where"
    if state.debug:
        traceback.print_exception(error)
    click.echo(f"error: {problems.one_line(message)}", err=True)
    return problems.exit_code(error)


def _forget_stdout() -> None:
    """Redirect stdout to the null device, so that the last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)

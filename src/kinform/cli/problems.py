"""Error messages: an exception as one line, with a hint. Pure."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import click

from kinform.errors import (
    ApiError,
    ConfigError,
    ForbiddenError,
    KinformError,
    TransportError,
    TransportFailure,
    UnauthorizedError,
    UnknownResourceError,
)

__all__ = [
    "FAILED",
    "OK",
    "TOKEN",
    "USAGE",
    "CommandProblem",
    "exit_code",
    "explain",
    "one_line",
    "without_secrets",
]

OK: Final = 0
FAILED: Final = 1
"""The cluster, the network or a condition: the command failed."""
USAGE: Final = 2
"""The command line is invalid."""

TOKEN: Final = "KINFORM_TOKEN"  # noqa: S105 - a variable's name
"""The environment variable with the bearer token for ``--server``. Never an argument: others on
the machine can read those."""
_TOKEN_IN_URL: Final = re.compile(r"/~[^/\s?]+")
_UNREACHABLE: Final = frozenset(
    {TransportFailure.REFUSED, TransportFailure.CONNECT, TransportFailure.CONNECT_TIMEOUT}
)


@final
class CommandProblem(click.ClickException):
    """An error of the command itself, shown as one line."""

    exit_code = FAILED


def explain(error: Exception, *, lacks_token: bool = False) -> str | None:
    """Return the one-line message for an expected error; None for a bug.

    Args:
        lacks_token: The request was sent without a token.
    """
    if lacks_token and isinstance(error, UnauthorizedError | ForbiddenError):
        return f"the server requires credentials ({error.message or error}); set {TOKEN}"
    for kind, words in _EXPLANATIONS:
        if isinstance(error, kind):
            return words(error)
    return None


def exit_code(error: Exception) -> int:
    """Return the exit code that goes with an error."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    # A kind the server does not have is the server's word; a selector that cannot be read is not.
    is_usage = isinstance(error, ValueError) and isinstance(error, KinformError)
    return USAGE if is_usage else FAILED


def one_line(text: str) -> str:
    """Return ``text`` in one line without control characters, to be shown on any terminal."""
    shown = without_secrets(" ".join(text.split()))
    return "".join(char if char.isprintable() else " " for char in shown)


def without_secrets(text: str) -> str:
    """Return ``text`` without the tokens that the URLs of embedded servers hold.

    >>> without_secrets("GET http://127.0.0.1:1/~0123456789abcdef/api")
    'GET http://127.0.0.1:1/~.../api'
    """
    return _TOKEN_IN_URL.sub("/~...", text)


def _usage(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx else "kinform"
    return f"{error.format_message()} (see: {command} --help)"


def _refusal(error: ApiError) -> str:
    said = error.message or str(error)
    if isinstance(error, UnauthorizedError):
        return f"the server does not accept the credentials ({said}); log in again"
    if isinstance(error, ForbiddenError):
        return f"{said}; ask for the right, or take another --context or --namespace"
    return said if error.reason in {"NotFound", "BadRequest", "Invalid"} else str(error)


def _unreachable(error: TransportError) -> str:
    if error.failure in _UNREACHABLE:
        return f"{error}; is the server up, and is it the right one (--context, --server)?"
    return str(error)


def _configuration(error: ConfigError) -> str:
    return str(error) if error.source else f"{error}; or try: kinform watch --demo"


def _system(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{error.strerror or 'the port is in use'}; choose another --port, or leave it out"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _unknown(error: UnknownResourceError) -> str:
    return f"{error} (kinform api-resources lists all)"


def _data_file(error: sqlite3.DatabaseError) -> str:
    return f"the data file cannot be used: {error}; it was left as it is"


_EXPLANATIONS: Final[Sequence[tuple[type[Exception], Callable[[Any], str]]]] = (
    (click.UsageError, _usage),
    (click.ClickException, click.ClickException.format_message),
    (ApiError, _refusal),
    (UnknownResourceError, _unknown),
    (TransportError, _unreachable),
    (ConfigError, _configuration),
    (KinformError, str),
    (OSError, _system),
    (sqlite3.DatabaseError, _data_file),
)
"""The explanations by type of error, the most specific types first."""

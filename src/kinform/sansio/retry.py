"""Retries of failed requests: which failures are retried, and after which delay.

There is one rule for each failure (client-go: with_retry.go), and two more: a ``Retry-After`` may
be a date, and every delay has jitter, so that clients that all received ``Retry-After: 1`` do not
retry together.

==================  ========================================================================
failure             retried
==================  ========================================================================
429 or 5xx          only with a usable ``Retry-After``; any method, for the server asked for it
server timeout      as 5xx, but POST and PATCH never: they may have been executed
reset, truncated    only safe methods (GET, HEAD), after a second; a stream never
version too large   never: the server has waited for it already; the caller tries another one
timeout             only a watch that was not answered
anything else       never: refused, DNS, TLS and redirects are left to the caller
==================  ========================================================================
"""

from __future__ import annotations

import enum
from email.utils import parsedate_to_datetime

from kinform.errors import (
    ApiError,
    KinformError,
    ServerTimeoutError,
    TransportError,
    TransportFailure,
)

__all__ = ["MAX_RETRY_AFTER", "Purpose", "retry_after", "retry_delay"]

MAX_RETRY_AFTER = 120.0
"""A server that asks for a longer wait is not waited for: the caller gets the error."""

# As client-go, which waits one second after a network error.
_NETWORK_DELAY = 1.0
_BROKEN = frozenset({TransportFailure.RESET, TransportFailure.TRUNCATED})


class Purpose(enum.Enum):
    """The use of the answer; it decides which network failures are retried."""

    CALL = "call"
    """One answer, read whole."""
    STREAM = "stream"
    """Passed to the caller byte by byte, so a retry would repeat bytes."""
    WATCH = "watch"
    """A watch being opened."""


def retry_after(value: str | None, *, wall: float) -> float | None:
    """Read a ``Retry-After`` header: seconds, or an HTTP date. ``None`` if it cannot be used.

    ``wall`` is the wall-clock time that a date is compared with. A date in the past means now.
    """
    if value is None:
        return None
    text = value.strip()
    # ``isdigit`` alone accepts digits of other scripts, and ``float`` alone accepts "inf" and
    # "1e9".
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        # kopf fails on such a date: it expects a number.
        return max(0.0, parsedate_to_datetime(text).timestamp() - wall)
    except (ValueError, TypeError, OverflowError):
        return None


def retry_delay(error: KinformError, *, method: str, purpose: Purpose, rand: float) -> float | None:
    """Return the seconds to wait before sending the request again, or ``None``: do not.

    The wait is never shorter than the server asked for and at most a quarter longer (or a
    tenth of a second, for very short ones); ``rand`` in [0, 1) chooses within that.
    """
    base = _base_delay(error, method=method, purpose=purpose)
    return None if base is None else base + rand * max(0.1, base / 4)


def _base_delay(error: KinformError, *, method: str, purpose: Purpose) -> float | None:
    match error:
        # First: it is a server timeout with a Retry-After too, which the cases below would repeat
        # in vain (kubernetes#107133).
        case ApiError(is_resource_version_too_large=True):
            return None
        case ServerTimeoutError() if method in {"POST", "PATCH"}:
            return None
        case ApiError(code=code, retry_after=float(wait)) if code == 429 or code >= 500:
            # Never sooner than the server asked for, so a wait that is too long cannot be
            # shortened.
            return wait if wait <= MAX_RETRY_AFTER else None
        case TransportError(failure=failure) if failure in _BROKEN:
            repeatable = method in {"GET", "HEAD"} and purpose is not Purpose.STREAM
            return _NETWORK_DELAY if repeatable else None
        # Other timeouts are the caller's deadline. The opening of a watch has only the limit of its
        # head.
        case TransportError(failure=TransportFailure.TIMEOUT) if purpose is Purpose.WATCH:
            return _NETWORK_DELAY
        case _:
            return None

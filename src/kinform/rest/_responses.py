"""Interpretation of responses: API errors and content types.

Pure: bytes and headers in, values or errors out.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Mapping
from typing import Final

import msgspec

from kinform.errors import ApiError, DecodeError, api_error, status_of_code
from kinform.meta import Status
from kinform.sansio.retry import retry_after

__all__ = [
    "MAX_ERROR_BODY",
    "check_json",
    "error_of_answer",
    "error_of_status",
    "is_json",
    "naming_request",
]

MAX_ERROR_BODY: Final = 1 << 20
"""No real ``Status`` is longer; the rest of a longer body is not read."""

_MESSAGE_LIMIT: Final = 2048


class _KindOnly(msgspec.Struct):
    kind: str | None = None


_kind: Final = msgspec.json.Decoder(_KindOnly)
_status: Final = msgspec.json.Decoder(Status)


_is_json: Final = re.compile(r"\s*(application/json|[^;]*\+json)?\s*(;|$)", re.IGNORECASE).match
"""Matches a content type of JSON; a missing one counts as JSON, as in client-go."""


def is_json(headers: Mapping[str, str]) -> bool:
    """Return whether the content type is JSON or missing."""
    return _is_json(headers.get("Content-Type", "")) is not None


def error_of_answer(
    code: int, headers: Mapping[str, str], body: bytes, *, method: str, url: str, wall: float
) -> ApiError:
    """Return the error for a response whose code is not 2xx.

    It is made from the ``Status`` in the body; without one, from the code and from a body of plain
    text (at most 2 KiB, without control characters; a page of HTML is mentioned, not quoted).
    """
    wait = retry_after(headers.get("Retry-After"), wall=wall)
    status = _read_status(body) if is_json(headers) else None
    if status is None or not (status.code or status.reason):
        status = status_of_code(code, method=method, message=_text_message(code, headers, body))
    elif not status.code:
        status = msgspec.structs.replace(status, code=code)
    return api_error(status, method=method, url=url, retry_after=wait)


def error_of_status(body: bytes, *, method: str, url: str) -> ApiError | None:
    """Return the error of a 2xx response whose body is a failed ``Status``, else ``None``."""
    if b'"Failure"' not in body:
        return None
    status = _read_status(body)
    if status is None or status.status != "Failure":
        return None
    return api_error(status, method=method, url=url)


@contextlib.contextmanager
def naming_request(*, method: str, url: str) -> Generator[None]:
    """Add the request to errors raised in the block that do not name one themselves."""
    try:
        yield
    except (ApiError, DecodeError) as exc:
        exc.method, exc.url = exc.method or method, exc.url or url
        raise


def check_json(headers: Mapping[str, str], *, method: str, url: str) -> None:
    """Refuse a 2xx response that is not JSON: a login page must never look like data.

    Raises:
        DecodeError: naming the content type.
    """
    kind = headers.get("Content-Type", "")
    if not _is_json(kind):
        raise DecodeError(
            f"the server answered with {kind!r} instead of JSON; "
            "is a proxy or a login page in between?",
            method=method,
            url=url,
        )


def _read_status(body: bytes) -> Status | None:
    try:
        if _kind.decode(body).kind != "Status":
            return None
        return _status.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _text_message(code: int, headers: Mapping[str, str], body: bytes) -> str:
    kind = headers.get("Content-Type", "text/plain").partition(";")[0].strip().lower()
    if kind in {"text/html", "application/xhtml+xml"} or body[:64].lstrip()[:1] == b"<":
        return "the answer is a web page, not the API server's; is a proxy in between?"
    if not kind.startswith("text/") or not body.strip():
        return f"the server answered {code} without saying why"
    text = body[:_MESSAGE_LIMIT].decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in text).strip()

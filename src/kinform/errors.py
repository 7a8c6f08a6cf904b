"""Every exception of kinform, grouped by the origin of the failure.

.. code-block:: text

    KinformError
    ├── ApiError                    the server refused (status, reason, details, causes)
    │   ├── UnauthorizedError       401: missing or invalid credentials
    │   ├── ForbiddenError          403: not allowed
    │   ├── NotFoundError           404
    │   ├── AlreadyExistsError      409 on create
    │   ├── ConflictError           409: the object has changed; read again, then write
    │   ├── ResourceExpiredError    410: the version or continue token is too old; list again
    │   ├── InvalidError            422 or 400: the request is not valid
    │   ├── TooManyRequestsError    429: wait ``retry_after``
    │   ├── ServerTimeoutError      504, or the server gave up waiting
    │   └── UnavailableError        503, 502: the server cannot answer now
    ├── TransportError              no response: connect, TLS, read, timeout (see ``failure``)
    ├── DecodeError                 the response cannot be decoded (see ``path``)
    ├── ResourceVersionRegressed    the server's version went back: restored from a backup
    ├── SourceError                 a list or watch function of yours failed
    ├── ConfigError                 kubeconfig or environment; names the file and the key
    ├── QueueShutDown               a work queue is shut down and empty: the worker can end
    ├── TerminalError               raised by a reconcile: do not retry
    ├── LeadershipLost              another process holds the lease, or may hold it
    └── UsageError                  the call itself is wrong
        ├── UnknownResourceError    no API resource has that name
        └── AmbiguousResourceError  several have it; ``candidates`` lists them

Exceptions of aiohttp, ssl, yaml and msgspec are mapped to these, with the original as
``__cause__``. No message holds a token or an object's payload.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, final

import msgspec

from kinform.meta import Status, StatusCause, StatusDetails

__all__ = [
    "AlreadyExistsError",
    "AmbiguousResourceError",
    "ApiError",
    "ConfigError",
    "ConflictError",
    "DecodeError",
    "ForbiddenError",
    "InvalidError",
    "KinformError",
    "LeadershipLost",
    "NotFoundError",
    "QueueShutDown",
    "ResourceExpiredError",
    "ResourceVersionRegressed",
    "ServerTimeoutError",
    "SourceError",
    "TerminalError",
    "TooManyRequestsError",
    "TransportError",
    "TransportFailure",
    "UnauthorizedError",
    "UnavailableError",
    "UnknownResourceError",
    "UsageError",
]


class KinformError(Exception):
    """Root of every error kinform raises on purpose. Can be copied and sent to other processes."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args), self.__dict__


class ApiError(KinformError):
    """The server refused the request.

    Which subclass is raised follows the ``reason`` of the server's ``Status``, or the HTTP
    code where there is none (a proxy's HTML page, an empty body). ``code`` and ``reason``
    are always set; ``details`` and ``causes`` only if the server gave any.

    Retry: only after `TooManyRequestsError`, `ServerTimeoutError` and `UnavailableError` may the
    same request succeed later.
    """

    status: Status
    """The server's own ``Status``, or one made from the HTTP code."""
    method: str
    """The HTTP method of the request, in capitals."""
    url: str
    """The URL of the request, without credentials."""
    retry_after: float | None
    """Seconds the server asked us to wait, from the header or from ``details``."""

    def __init__(
        self, status: Status, *, method: str = "", url: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(status, method, url)
        self.status = status
        self.method = method
        self.url = url
        seconds = status.details.retry_after_seconds if status.details else None
        if retry_after is None and seconds is not None and seconds > 0:
            retry_after = float(min(seconds, _LONGEST_WAIT))
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code or 0

    @property
    def reason(self) -> str:
        """Kubernetes' one-word reason, for example ``NotFound``."""
        return self.status.reason or ""

    @property
    def message(self) -> str:
        """The server's message."""
        return self.status.message or ""

    @property
    def details(self) -> StatusDetails | None:
        """The kind and name of the object, and the causes."""
        return self.status.details

    @property
    def causes(self) -> Sequence[StatusCause]:
        """The single errors, for example one per invalid field."""
        return (self.status.details.causes or ()) if self.status.details else ()

    @property
    def is_resource_version_too_large(self) -> bool:
        """True if the server has not reached the requested resourceVersion yet."""
        if any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes):
            return True
        texts = [self.message, *(cause.message or "" for cause in self.causes)]
        return any("Too large resource version" in text for text in texts)

    @property
    def is_namespace_terminating(self) -> bool:
        """True if the namespace is being deleted, so that nothing can be created in it."""
        if self.code != 403:
            return False
        reasons = {cause.reason for cause in self.causes}
        said = "unable to create new content in namespace" in self.message  # before causes were
        return "NamespaceTerminating" in reasons or said

    def __str__(self) -> str:
        request = f"{self.method} {self.url}".strip()
        said = " ".join(part for part in (str(self.code or ""), self.reason) if part)
        return ": ".join(part for part in (request, said, self.message) if part)


class UnauthorizedError(ApiError):
    """401: the credentials are missing, wrong or expired."""


class ForbiddenError(ApiError):
    """403: the user is authenticated but not authorized."""


class NotFoundError(ApiError):
    """404: the object or the API does not exist."""


class AlreadyExistsError(ApiError):
    """409 on create: an object of that name exists."""


class ConflictError(ApiError):
    """409: the object changed since it was read. Read again, then write."""


class ResourceExpiredError(ApiError):
    """410: the resourceVersion or continue token is too old. List again."""


class InvalidError(ApiError):
    """422 or 400: the request is not valid, a retry is useless; ``causes`` names the fields."""


class TooManyRequestsError(ApiError):
    """429: the server is overloaded; ``retry_after`` is the wait it asks for, if any."""


class ServerTimeoutError(ApiError):
    """504, or reason ``Timeout`` or ``ServerTimeout``; a write may have been done."""


class UnavailableError(ApiError):
    """503 or 502: the server, or a proxy before it, cannot answer now."""


class TransportFailure(enum.StrEnum):
    """The reason for a missing response. Retry decisions use this, never a message."""

    DNS = "dns"
    """The host name has no address."""
    REFUSED = "refused"
    """The port is closed. Nothing was sent."""
    CONNECT = "connect"
    """No connection, for another reason. Nothing was sent."""
    TLS = "tls"
    """Handshake or certificate check failed. Nothing was sent."""
    PROXY = "proxy"
    """The proxy refused. Nothing reached the server."""
    CONNECT_TIMEOUT = "connect timeout"
    """No connection within the deadline. Nothing was sent."""
    TIMEOUT = "timeout"
    """Connected, then silence beyond the deadline."""
    RESET = "reset"
    """The connection was reset, broken or closed before the response."""
    TRUNCATED = "truncated"
    """The response was cut off."""
    REDIRECT = "redirect"
    """The server sent a redirect, which is never followed."""
    PROTOCOL = "protocol"
    """The response is not HTTP."""
    CLOSED = "closed"
    """Our own client is closed."""


class TransportError(KinformError):
    """No response: connect, TLS, read or timeout. ``__cause__`` holds the original.

    ``failure`` is the reason. Only a request that certainly did not arrive, or that changes
    nothing, is safe to send again.
    """

    def __init__(
        self, message: str, *, failure: TransportFailure, method: str = "", url: str = ""
    ) -> None:
        super().__init__(message, failure, method, url)
        self.message = message
        self.failure = failure
        self.method = method
        self.url = url

    def __str__(self) -> str:
        request = f"{self.method} {self.url}".strip()
        return ": ".join(part for part in (request, self.message) if part)


class DecodeError(KinformError):
    """The server sent bytes that cannot be decoded. The message holds no payload.

    ``path`` is the position in the JSON (``$.metadata.name``), if known; ``key`` the object's
    ``namespace/name``, if known. ``is_damaged``: the bytes are not JSON at all, so they were
    probably corrupted on the way; a new request may return them intact.
    """

    is_damaged: bool = False

    def __init__(
        self, message: str, *, path: str = "", key: str = "", method: str = "", url: str = ""
    ) -> None:
        super().__init__(message, path, key, method, url)
        self.message = message
        self.path = path
        self.key = key
        self.method = method
        self.url = url

    def __str__(self) -> str:
        request = f"{self.method} {self.url}".strip()
        where = f"{self.message} at {self.path}" if self.path else self.message
        key = self.key if self.key.isprintable() else repr(self.key)[1:-1]
        return ": ".join(part for part in (request, key, where) if part)


@final
class ResourceVersionRegressed(KinformError):
    """The server's version went back: its etcd was restored, or another server answered.

    Everything is listed again. ``before`` is the version we had, ``now`` the server's.
    """

    def __init__(self, before: str, now: str) -> None:
        super().__init__(before, now)
        self.before = before
        self.now = now

    def __str__(self) -> str:
        return (
            f"the server went back from version {self.before} to {self.now}; "
            "was its etcd restored? Everything is listed anew"
        )


@final
class SourceError(KinformError):
    """A list, watch or store function of the user failed: see ``__cause__``."""


class ConfigError(KinformError):
    """The kubeconfig or the environment is not valid. ``source`` names the file or variable."""

    def __init__(self, message: str, *, source: str = "", key: str = "") -> None:
        super().__init__(message, source, key)
        self.message = message
        self.source = source
        self.key = key

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.key, self.message) if part)


@final
class QueueShutDown(KinformError):
    """A work queue was shut down and is empty. Workers end with it."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"work queue {self.name!r} was shut down" if self.name else "the queue was shut down"


class TerminalError(KinformError):
    """Raised by a reconcile that would fail again: no retry until the object changes.

    ``raise TerminalError("spec.replicas is negative") from error``
    """


@final
class LeadershipLost(KinformError):
    """This process is not the leader, or cannot be sure to be: it must not write."""

    def __init__(self, message: str, *, lease: str = "") -> None:
        super().__init__(message, lease)
        self.message = message
        self.lease = lease

    def __str__(self) -> str:
        return f"lease {self.lease}: {self.message}" if self.lease else self.message


class UsageError(KinformError, RuntimeError):
    """A call that cannot work: a bug of the calling program, not a failure of the cluster."""


@final
class UnknownResourceError(UsageError):
    """No API resource of the cluster has that name.

    Attributes:
        nearest: similar names that exist.
        served_in: full names under which other versions of its API group serve the resource.
        is_gone: whether discovery of its API group was fresh and complete, and lists the resource
            in no version. While false, discovery may be incomplete.
    """

    def __init__(
        self,
        name: str,
        *,
        nearest: Sequence[str] = (),
        served_in: Sequence[str] = (),
        is_gone: bool = False,
    ) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest: tuple[str, ...] = tuple(nearest)
        self.served_in: tuple[str, ...] = tuple(served_in)
        self.is_gone: bool = is_gone

    def __str__(self) -> str:
        if self.served_in:
            return (
                f"the server does not serve {self.name!r} in this version; "
                f"it serves {' and '.join(self.served_in)}"
            )
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"the server has no resource named {self.name!r}{hint}"


@final
class AmbiguousResourceError(UsageError):
    """Several API resources have that name. ``candidates`` lists the full names to choose from."""

    def __init__(self, name: str, *, candidates: Sequence[str]) -> None:
        super().__init__(name, candidates)
        self.name = name
        self.candidates: tuple[str, ...] = tuple(candidates)

    def __str__(self) -> str:
        return f"{self.name!r} is ambiguous; use one of {', '.join(self.candidates)}"


def _rebuild(kind: type[KinformError], args: tuple[object, ...]) -> KinformError:
    """Recreate an error without its ``__init__``, whose arguments are keywords."""
    error = kind.__new__(kind, *args)
    error.args = args
    return error


_BY_REASON: Final[dict[str, type[ApiError]]] = {
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Gone": ResourceExpiredError,
    "Expired": ResourceExpiredError,
    "Invalid": InvalidError,
    "BadRequest": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "Timeout": ServerTimeoutError,
    "ServerTimeout": ServerTimeoutError,
    "ServiceUnavailable": UnavailableError,
}
_BY_CODE: Final[dict[int, type[ApiError]]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ResourceExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: ServerTimeoutError,
}
_LONGEST_MESSAGE: Final = 16_384
_LONGEST_REASON: Final = 256
_LONGEST_WAIT: Final = 2**31 - 1
"""The largest ``retryAfterSeconds``: an int32 on the server."""
_REASON_OF_CODE: Final[dict[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    502: "ServiceUnavailable",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def api_error(
    status: Status, *, method: str = "", url: str = "", retry_after: float | None = None
) -> ApiError:
    """Return ``status`` as an `ApiError` of its class.

    The reason of the status selects the class; if the reason is unknown, its code does. A 429 is
    always a `TooManyRequestsError`, as in client-go.
    """
    status = _printable(status)
    code = status.code or 0
    kind = _BY_REASON.get(status.reason or "") or _BY_CODE.get(code, ApiError)
    if code == 429:
        kind = TooManyRequestsError
    return kind(status, method=method, url=url, retry_after=retry_after)


def _printable(status: Status) -> Status:
    """Return ``status`` with printable texts: no control characters, of limited length."""
    message, reason = status.message or "", status.reason or ""
    if _is_showable(message, _LONGEST_MESSAGE) and _is_showable(reason, _LONGEST_REASON):
        return status
    return msgspec.structs.replace(
        status,
        message=_shown(message, _LONGEST_MESSAGE),
        reason=_shown(reason, _LONGEST_REASON),
    )


def _is_showable(text: str, longest: int) -> bool:
    return len(text) <= longest and text.isprintable()


def _shown(text: str, longest: int) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:longest])


def status_of_code(code: int, *, method: str, message: str) -> Status:
    """Return the `Status` for a response without one, from its HTTP code alone."""
    reason = _REASON_OF_CODE.get(code) or ("InternalError" if code >= 500 else "Unknown")
    if code == 409 and method == "POST":
        reason = "AlreadyExists"
    return Status(status="Failure", code=code, reason=reason, message=message)

"""Every exception kinform raises. Whose fault it is decides the branch.

.. code-block:: text

    KinformError
    ├── ApiError                    the server said no (status, reason, details, causes)
    │   ├── UnauthorizedError       401: who are you?
    │   ├── ForbiddenError          403: you may not
    │   ├── NotFoundError           404
    │   ├── AlreadyExistsError      409 on create
    │   ├── ConflictError           409: somebody else wrote first; read again, then write
    │   ├── ResourceExpiredError    410: the version or continue token is too old; list again
    │   ├── InvalidError            422 or 400: the request itself is wrong
    │   ├── TooManyRequestsError    429: wait ``retry_after``
    │   ├── ServerTimeoutError      504, or the server gave up waiting
    │   └── UnavailableError        503, 502: nobody there to answer
    ├── TransportError              no answer at all: connect, TLS, read, time-out (see ``failure``)
    ├── DecodeError                 the server said something we cannot read (see ``path``)
    ├── ResourceVersionRegressed    the server went back in time: restored from a backup
    ├── SourceError                 a list or watch function of yours failed
    ├── ConfigError                 kubeconfig or environment; names the file and the key
    ├── QueueShutDown               a work queue has nothing more to give: the worker can end
    ├── TerminalError               raised by a reconcile: do not try this again
    ├── LeadershipLost              the lease is somebody else's, or may be by now
    └── UsageError                  you called it wrong
        ├── UnknownResourceError    no API resource has that name
        └── AmbiguousResourceError  several have it; ``candidates`` lists them

Nothing foreign escapes: what aiohttp, ssl, yaml or msgspec raise is mapped once, with the
original as ``__cause__``. No message ever holds a token or an object's payload.
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
    """The server answered, and the answer is no.

    Which subclass is raised follows the ``reason`` of the server's ``Status``, or the HTTP
    code where there is none (a proxy's HTML page, an empty body). ``code`` and ``reason``
    are always set; ``details`` and ``causes`` only if the server gave any.

    Retry: only `TooManyRequestsError`, `ServerTimeoutError` and `UnavailableError` are
    worth a second try with the same request.
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
        """The server's sentence for people."""
        return self.status.message or ""

    @property
    def details(self) -> StatusDetails | None:
        """What the error is about: kind, name, causes."""
        return self.status.details

    @property
    def causes(self) -> Sequence[StatusCause]:
        """The single complaints, for example one per invalid field."""
        return (self.status.details.causes or ()) if self.status.details else ()

    @property
    def is_resource_version_too_large(self) -> bool:
        """Whether the server has not yet seen the resourceVersion we asked for."""
        if any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes):
            return True
        texts = [self.message, *(cause.message or "" for cause in self.causes)]
        return any("Too large resource version" in text for text in texts)

    @property
    def is_namespace_terminating(self) -> bool:
        """Whether nothing can be made in that namespace any more, because it is being deleted."""
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
    """403: the user is known and may not do this."""


class NotFoundError(ApiError):
    """404: no such object, or no such API."""


class AlreadyExistsError(ApiError):
    """409 on create: an object of that name is there."""


class ConflictError(ApiError):
    """409: the object changed since it was read. Read again, then write."""


class ResourceExpiredError(ApiError):
    """410: the resourceVersion or continue token is too old. List again."""


class InvalidError(ApiError):
    """422 or 400: the request is wrong and will be wrong again; ``causes`` names the fields."""


class TooManyRequestsError(ApiError):
    """429: the server asks for patience; ``retry_after`` says how much, if it knows."""


class ServerTimeoutError(ApiError):
    """504, or reason ``Timeout`` or ``ServerTimeout``: it gave up; a write may have been done."""


class UnavailableError(ApiError):
    """503 or 502: the server, or what stands before it, cannot answer now."""


class TransportFailure(enum.StrEnum):
    """Why there was no answer. Retry decisions rest on this, never on a message."""

    DNS = "dns"
    """The host name has no address."""
    REFUSED = "refused"
    """Nobody listens there. Nothing was sent."""
    CONNECT = "connect"
    """No connection, for another reason. Nothing was sent."""
    TLS = "tls"
    """Handshake or certificate check failed. Nothing was sent."""
    PROXY = "proxy"
    """The proxy said no. Nothing reached the server."""
    CONNECT_TIMEOUT = "connect timeout"
    """No connection within the deadline. Nothing was sent."""
    TIMEOUT = "timeout"
    """Connected, then silence beyond the deadline."""
    RESET = "reset"
    """The connection was reset, broken or closed before the answer."""
    TRUNCATED = "truncated"
    """The answer began and stopped before its end."""
    REDIRECT = "redirect"
    """The server sent us elsewhere. We never follow."""
    PROTOCOL = "protocol"
    """What came back is not HTTP."""
    CLOSED = "closed"
    """Our own client is closed."""


class TransportError(KinformError):
    """No answer: connect, TLS, read or time-out. ``__cause__`` holds the original.

    ``failure`` tells what happened. Only a request that certainly did not arrive, or that
    changes nothing, is safe to send again.
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
    """The server sent bytes we cannot read. The message holds no payload.

    ``path`` is where in the JSON (``$.metadata.name``), if known; ``key`` the object's
    ``namespace/name``, if known. ``is_damaged``: the bytes are no JSON at all, so that they are
    hardly what the server has; asked again, it may send them whole.
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

    Everything is listed anew. ``before`` is what we had, ``now`` what the server has.
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
    """A function that lists, watches or stores failed in a way of its own: see ``__cause__``."""


class ConfigError(KinformError):
    """The kubeconfig or the environment is wrong. ``source`` names the file or variable."""

    def __init__(self, message: str, *, source: str = "", key: str = "") -> None:
        super().__init__(message, source, key)
        self.message = message
        self.source = source
        self.key = key

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.key, self.message) if part)


@final
class QueueShutDown(KinformError):
    """A work queue was shut down and has nothing more to give. Workers end with it."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"work queue {self.name!r} was shut down" if self.name else "the queue was shut down"


class TerminalError(KinformError):
    """Raised by a reconcile that would fail again: it is not tried again before something changes.

    ``raise TerminalError("spec.replicas is negative") from error``
    """


@final
class LeadershipLost(KinformError):
    """This process does not lead, or cannot be sure of it any more: it must not write."""

    def __init__(self, message: str, *, lease: str = "") -> None:
        super().__init__(message, lease)
        self.message = message
        self.lease = lease

    def __str__(self) -> str:
        return f"lease {self.lease}: {self.message}" if self.lease else self.message


class UsageError(KinformError, RuntimeError):
    """A call that cannot work: a fault in the calling program, not in the cluster."""


@final
class UnknownResourceError(UsageError):
    """No API resource of the cluster has that name.

    Attributes:
        nearest: similar names that exist.
        served_in: full names under which other versions of its API group serve the resource.
        is_gone: whether discovery of its API group was fresh and complete, and lists the resource
            in no version. While false, the server may only be unable to tell.
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
    """Make an error anew without its ``__init__``, whose arguments have names."""
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
"""What ``retryAfterSeconds`` can be at most: an int32 on the server."""
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
    """Return the `ApiError` of the class that ``status`` calls for.

    The reason decides; the code where the reason is unknown; 429 always by its code, as
    client-go does.
    """
    status = _printable(status)
    code = status.code or 0
    kind = _BY_REASON.get(status.reason or "") or _BY_CODE.get(code, ApiError)
    if code == 429:
        kind = TooManyRequestsError
    return kind(status, method=method, url=url, retry_after=retry_after)


def _printable(status: Status) -> Status:
    """Return ``status`` with texts that may be shown: no control characters, not endless."""
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
    """Return the `Status` for an answer that carries none, from its HTTP code alone."""
    reason = _REASON_OF_CODE.get(code) or ("InternalError" if code >= 500 else "Unknown")
    if code == 409 and method == "POST":
        reason = "AlreadyExists"
    return Status(status="Failure", code=code, reason=reason, message=message)

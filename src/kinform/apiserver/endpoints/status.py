"""Errors of the API: refusals of a request, as a Kubernetes ``Status``.

Code that finds a request invalid raises a `StatusError`; only the application turns it into an
answer. The texts are those of kube-apiserver, because clients and people match on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from kinform.apiserver.scheme.field_errors import FieldError, aggregate
from kinform.apiserver.scheme.kind_registry import Kind

__all__ = [
    "StatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal",
    "invalid",
    "method_not_allowed",
    "not_acceptable",
    "not_found",
    "not_implemented",
    "path_not_found",
    "too_large",
    "too_large_version",
    "unauthorized",
    "unsupported_media_type",
]


@final
class StatusError(Exception):
    """The request is refused, or failed.

    ``details`` is the ``details`` of the Status as it is sent: name, group, kind, causes.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, object] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        """Seconds for a ``Retry-After`` header."""
        self.warnings: Sequence[str] = ()
        """The warnings that were found before the request was refused."""
        self.continue_token = ""
        """A token with which the list can continue, from the current state: not consistent."""

    def to_dict(self) -> dict[str, object]:
        """Return the Status, as a JSON body or as the object of an ERROR event."""
        body: dict[str, object] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _details(kind: Kind, name: str, called: str = "") -> dict[str, object]:
    """Return name, group and kind, without the empty ones, in the server's order.

    The ``kind`` of a Status' details is the resource's plural, unless it is ``called`` otherwise.
    """
    named = (("name", name), ("group", kind.group), ("kind", called or kind.plural))
    return {field: value for field, value in named if value}


def not_found(kind: Kind, name: str) -> StatusError:
    """Return the 404 of an object."""
    message = f'{kind.qualified} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_details(kind, name))


def path_not_found() -> StatusError:
    """Return the 404 of a path, which the server answers in plain text."""
    return StatusError(
        404, "NotFound", "the server could not find the requested resource", details={}
    )


def already_exists(kind: Kind, name: str) -> StatusError:
    """Return the 409 of a create whose name is taken."""
    message = f'{kind.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> StatusError:
    """Return the 409 of a write with an outdated precondition."""
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(kind, name))


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the 422 of an object with invalid fields."""
    if kind.group == "events.k8s.io":  # judged as what it is stored as, an event of the core group
        kind = msgspec.structs.replace(kind, group="")
    details = _details(kind, name, kind.kind)
    details["causes"] = [
        {"reason": str(error.problem), "message": error.text, "field": error.field}
        for error in errors
    ]
    message = f'{kind.qualified_kind} "{name}" is invalid: {aggregate(errors)}'
    return StatusError(422, "Invalid", message, details=details)


def bad_request(message: str) -> StatusError:
    """Return the 400 of an invalid request."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """Return the 401 of a request without a valid token."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str) -> StatusError:
    """Return the 403 of a write that is not allowed."""
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    message = f"{subject} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, details=_details(kind, name))


def method_not_allowed() -> StatusError:
    """Return the 405 of a verb that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def not_acceptable(accepted: str) -> StatusError:
    """None of the forms that the client accepts can be made."""
    message = f"only the following media types are accepted: {accepted}"
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: str) -> StatusError:
    """The body has a form that cannot be read."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {accepted}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(message: str = "limit is 3145728") -> StatusError:
    """The body is longer than any object may be."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def expired(message: str) -> StatusError:
    """That version, or that continue token, is forgotten."""
    return StatusError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> StatusError:
    """That version is not there yet; to ask again in a second may help."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        retry_after=1,
    )


def timeout(message: str) -> StatusError:
    """The request took too long."""
    return StatusError(504, "Timeout", f"Timeout: {message}", details={})


def not_implemented(message: str) -> StatusError:
    """This server is honest about what it is not."""
    return StatusError(501, "NotImplemented", message)


def internal(message: str) -> StatusError:
    """A fault of the server's own."""
    details: dict[str, object] = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details=details)

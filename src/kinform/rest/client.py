"""`RESTClient`: makes `Request` objects for one API version (client-go: rest.Interface)."""

from __future__ import annotations

from typing import Final, final

from kinform.errors import UsageError
from kinform.meta import GroupVersion
from kinform.rest.connection import Connection
from kinform.rest.options import PatchType
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.reconnects import Reconnects
from kinform.rest.request import Request, api_prefix
from kinform.rest.warnings import WarningHandler

__all__ = ["RESTClient"]


@final
class RESTClient:
    """Requests to one API version.

    Cheap to create; all of one client share connection, credentials and limits.

    Raises:
        UsageError: ``api_version`` does not have the form ``v1`` or ``apps/v1``.
    """

    def __init__(
        self,
        connection: Connection,
        api_version: str | GroupVersion = "v1",
        *,
        rate_limiter: RateLimiter | None = None,
        warning_handler: WarningHandler | None = None,
    ) -> None:
        self.connection: Final = connection
        try:
            version = (
                GroupVersion.parse(api_version) if isinstance(api_version, str) else api_version
            )
        except ValueError as exc:
            raise UsageError(str(exc)) from None
        self.api_version: Final[GroupVersion] = version
        """The group and version whose resources this client reaches."""
        self._prefix = api_prefix(version)
        self._rate_limiter = rate_limiter
        self._warning_handler = warning_handler

    @property
    def rate_limiter(self) -> RateLimiter | None:
        """The rate limiter of its requests; ``None``: they do not wait."""
        return self._rate_limiter or self.connection.rate_limiter

    @property
    def reconnects(self) -> Reconnects:
        """The limiter for watches that reconnect after a failure."""
        return self.connection.reconnects

    def verb(self, method: str) -> Request:
        """Begin a request with any HTTP method."""
        return self._request(method)

    def get(self) -> Request:
        """Begin a GET: one object, a list or a watch."""
        return self._request("GET")

    def post(self) -> Request:
        """Begin a POST: create."""
        return self._request("POST")

    def put(self) -> Request:
        """Begin a PUT: replace."""
        return self._request("PUT")

    def patch(self, patch_type: PatchType) -> Request:
        """Begin a PATCH of the given type."""
        return self._request("PATCH", content_type=patch_type.content_type)

    def delete(self) -> Request:
        """Begin a DELETE: one object or a collection."""
        return self._request("DELETE")

    def _request(self, method: str, *, content_type: str = "application/json") -> Request:
        return Request(
            self.connection,
            method,
            prefix=self._prefix,
            content_type=content_type,
            limiter=self._rate_limiter,
            warning_handler=self._warning_handler,
        )

"""The few HTTP requests the control plane needs for its own life.

Blocking, one connection per request, nothing but the standard library: a fault in kinform's own
client must not break the harness that finds it.
"""

# ruff: noqa: TID251 (http.client is for this file alone, for the reason above)

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias, cast, final

from kinform.testing.controlplane._ports import LOOPBACK
from kinform.testing.errors import ControlPlaneError

__all__ = ["Json", "RawApi", "RawResponse", "text_at"]

Json: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class RawResponse:
    """The response of the server."""

    status: int
    body: bytes

    def json(self) -> Json:
        """Return the body as a JSON object."""
        value: Json = json.loads(self.body)
        return value

    def refusal(self) -> str:
        """Return in words why the answer is no."""
        try:
            message = text_at(self.json(), "message")
        except ValueError:
            message = ""
        return f"{self.status}: {message or self.body[:200].decode(errors='replace')}"


def text_at(value: object, *path: str) -> str:
    """Return the string at ``path`` in a JSON value, empty if there is none."""
    for key in path:
        value = cast("Json", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


@final
class RawApi:
    """One server on loopback: over TLS where a context is given, in the clear otherwise.

    ``timeout`` is the longest silence it bears, in seconds.
    """

    def __init__(
        self, port: int, *, context: ssl.SSLContext | None = None, timeout: float = 15.0
    ) -> None:
        self._port = port
        self._context = context
        self._timeout = timeout

    def request(
        self, method: str, path: str, *, body: object = None, token: str | None = None
    ) -> RawResponse:
        """Send one request and return the response, with any status.

        Raises:
            ControlPlaneError: The server did not respond.
        """
        with self._exchange(method, path, body=body, token=token) as response:
            return RawResponse(response.status, response.read())

    def is_ok(self, path: str) -> bool:
        """Ask whether a GET of ``path`` is answered with 200 at this moment."""
        try:
            return self.request("GET", path).status == HTTPStatus.OK
        except ControlPlaneError:
            return False

    def call(self, method: str, path: str, *, body: object = None) -> Json:
        """Send one request that must succeed; return its JSON.

        Raises:
            ControlPlaneError: The server cannot be reached, or refuses.
        """
        answer = self.request(method, path, body=body)
        if answer.status >= 300:
            raise ControlPlaneError(f"{method} {path}: {answer.refusal()}")
        return answer.json()

    def lines(self, method: str, path: str, *, body: object = None) -> Iterator[bytes]:
        """Send one request and yield its answer line by line, however long it is.

        Raises:
            ControlPlaneError: The server cannot be reached, refuses, or breaks off.
        """
        with self._exchange(method, path, body=body, token=None) as response:
            if response.status >= 300:
                answer = RawResponse(response.status, response.read())
                raise ControlPlaneError(f"{method} {path}: {answer.refusal()}")
            yield from response

    @contextmanager
    def _exchange(
        self, method: str, path: str, *, body: object, token: str | None
    ) -> Generator[http.client.HTTPResponse]:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with closing(self._connection()) as connection:
                connection.request(method, path, data, headers)
                with connection.getresponse() as response:
                    yield response
        except (OSError, http.client.HTTPException) as error:
            raise ControlPlaneError(f"{method} {path}: {error!r}") from error

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(LOOPBACK, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(
            LOOPBACK, self._port, timeout=self._timeout, context=self._context
        )

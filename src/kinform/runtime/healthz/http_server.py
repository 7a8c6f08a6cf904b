"""The HTTP server for probes and Prometheus: ``/livez``, ``/readyz`` and ``/metrics``.

Any client that reaches the port may read it, so no client may hold up the program: every answer
ends its connection, no connection lives longer than ``CONNECTION_LIFETIME``, and if there are too
many the oldest is closed. Browsers are refused by ``Host``: see `kinform.sansio.hosts`.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeAlias, final

from aiohttp import web

from kinform._listening import Connections, start_serving, stop_serving
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.runtime.healthz.checks import Checks
from kinform.sansio.hosts import is_known_host
from kinform.tasks import finish

__all__ = ["Address", "Exposition", "StatusServer"]

log: Final = logging.getLogger(__name__)

_clients: Final = logging.getLogger(f"{__name__}.clients")
"""aiohttp's messages about malformed requests. A client causes them, not the operator of the
program: by default they are not logged."""
_clients.setLevel(logging.CRITICAL)

Exposition: TypeAlias = Callable[[str], tuple[str, bytes]]
"""Makes the answer of ``/metrics`` from an ``Accept`` header: a content type, and the body."""

_Handler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

CONNECTION_LIFETIME: Final = 10.0
"""Seconds that a connection may last, from its start to the last byte of the answer."""
MAX_CONNECTIONS: Final = 64
"""The limit of open connections."""
_GRACE: Final = 0.25
"""Seconds that open connections get to finish when the server stops."""
_LOOPBACK: Final = "127.0.0.1"
_TEXT: Final = "text/plain; charset=utf-8"
_UNKNOWN_HOST: Final = (
    "its Host is a name that could belong to a web page; use an address, or name the host in "
    "health_hosts="
)


@final
@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def answers_to(self, header: str, hosts: Collection[str] = ()) -> bool:
        """Return whether a request with this ``Host`` is answered; ``hosts`` are allowed too."""
        known = (self.host, *hosts)
        return is_known_host(header, in_cluster=not self._is_loopback, known=known)

    @property
    def _is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    @classmethod
    def parse(cls, address: str | int) -> Address:
        """Read ``"127.0.0.1:8081"``, ``"[::1]:8081"``, or a port of the loopback interface.

        Raises:
            UsageError: it is something else, or does not say on which interface.
        """
        if isinstance(address, bool):
            raise UsageError(f"address {address!r}; expected 'host:port', or a port")
        if isinstance(address, int):
            return cls(_LOOPBACK, _port(str(int(address)), address))
        host, colon, port = address.rpartition(":")
        if not colon:
            raise UsageError(f"address {address!r}; expected 'host:port', for example {_example()}")
        if not host:
            raise UsageError(
                f"address {address!r} names no host; '0.0.0.0:{port}' is every interface, "
                f"'{_LOOPBACK}:{port}' this machine only"
            )
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise UsageError(f"address {address!r}; an IPv6 host stands in brackets: '[::1]:8081'")
        return cls(host, _port(port, address))


def _example() -> str:
    return f"'{_LOOPBACK}:8081'"


def _port(text: str, address: str | int) -> int:
    if text.isascii() and text.isdigit() and int(text) <= 65535:
        return int(text)
    raise UsageError(f"address {address!r} has no port from 0 to 65535, as in {_example()}")


@final
class StatusServer:
    """Serves liveness, readiness and metrics over HTTP.

    ================================ ====================================================
    path
    ================================ ====================================================
    ``/livez``, ``/healthz``         the checks of ``live``
    ``/readyz``                      the checks of ``ready``
    ``/livez/name``, ``/readyz/…``   one of them
    ``/metrics``                     what ``metrics`` makes
    ================================ ====================================================

    As kube-apiserver's: 200 with ``ok``, or 500 with a line for each check; ``?verbose`` has the
    lines in any case, ``?exclude=name`` leaves a check out.

    Args:
        address: ``"127.0.0.1:8081"``, or a port of the loopback interface; port 0 is a free one.
            Other interfaces must be named: ``"0.0.0.0:8081"`` is all of them.
        live: for ``/livez`` and ``/healthz``; None: no such path. The same for the others.
        metrics: is called in a thread, so that a large answer does not hold up the event loop.
        hosts: names that requests may have in ``Host``, besides addresses, loopback names, the
            host of ``address``, and, unless that is loopback, names of Services. Any other name
            is answered with 421, because a web page could have made it lead here.
        patience: how long a connection may last.

    Raises:
        UsageError: the address is none.
    """

    def __init__(
        self,
        address: str | int,
        *,
        live: Checks | None = None,
        ready: Checks | None = None,
        metrics: Exposition | None = None,
        hosts: Collection[str] = (),
        patience: float = CONNECTION_LIFETIME,
    ) -> None:
        self._address = Address.parse(address)
        self._hosts = tuple(hosts)
        self._has_warned = False
        checks = {"livez": live, "healthz": live, "readyz": ready}
        self._checks = {path: one for path, one in checks.items() if one is not None}
        self._metrics = metrics
        self._patience = patience
        self._server: _Server | None = None
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; `stop` must follow, unless this fails or is cancelled.

        Raises:
            UsageError: the address is in use or not permitted, or the server was started before.
        """
        if self._server is not None:
            raise UsageError("the status server was started already")
        self._server = server = _Server(self._answer, patience=self._patience)
        try:
            listener = await asyncio.get_running_loop().create_server(
                server, self._address.host, self._address.port, start_serving=False
            )
            await start_serving(listener)
        except BaseException as exc:
            self._server = None
            if isinstance(exc, OSError):
                raise UsageError(self._why_not(exc)) from exc
            raise
        self._listener = listener

    def _why_not(self, exc: OSError) -> str:
        if exc.errno == errno.EADDRINUSE:
            return f"{self._address} is in use; choose another port, or 0 for a free one"
        known = exc.errno is not None and exc.errno in errno.errorcode
        reason = os.strerror(exc.errno) if known and exc.errno is not None else str(exc)
        return f"cannot listen on {self._address}: {reason}"

    async def stop(self) -> None:
        """Stop listening, and close open connections: within a second. A second call does nothing.

        Cancelled meanwhile, it waits for that all the same.
        """
        listener, server = self._listener, self._server
        if listener is not None and server is not None:
            self._listener = self._server = None
            await finish(_end(listener, server))

    async def __aenter__(self) -> StatusServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """The URL of the server, with its actual port: ``http://127.0.0.1:8081``.

        Raises:
            UsageError: it does not listen.
        """
        if self._listener is None:
            raise UsageError("the status server does not listen; call start() first")
        port: int = self._listener.sockets[0].getsockname()[1]
        return f"http://{Address(self._address.host, port)}"

    # --- answers

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            answer = _text(405, f"{request.method[:16]} is not possible here, only GET and HEAD\n")
            answer.headers["Allow"] = "GET, HEAD"
        elif not all(
            self._address.answers_to(host, self._hosts)
            for host in request.headers.getall("Host", [])
        ):
            self._warn_of_host()
            answer = _text(421, f"{_UNKNOWN_HOST}\n")
        else:
            answer = await self._look_up(request)
        answer.headers["Server"] = "kinform"  # aiohttp's default names its version and Python's
        answer.headers["Cache-Control"] = "no-cache, private"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.force_close()  # probes do not come back, and Prometheus much later
        return answer

    def _warn_of_host(self) -> None:
        """Log the first refusal, so that a failing probe can be explained; never log the name."""
        if not self._has_warned:
            self._has_warned = True
            log.warning("a request was refused: %s", _UNKNOWN_HOST)

    async def _look_up(self, request: web.BaseRequest) -> web.Response:
        endpoint, slash, name = request.path.removeprefix("/").partition("/")
        checks = self._checks.get(endpoint)
        if checks is not None and not slash:
            query = request.query
            report = checks.report(exclude=query.getall("exclude", []))
            text = report.text(endpoint, verbose="verbose" in query)
            return _text(200 if report.ok else 500, text)
        if checks is not None and name in checks.names:
            wrong = checks.ask(name)
            return _text(200, "ok") if wrong is None else _text(500, f"{wrong}\n")
        if endpoint == "metrics" and not slash and self._metrics is not None:
            return await _expose(self._metrics, request.headers.get("Accept", ""))
        return _text(404, "\n".join(["there is nothing here; try", *self._paths(), ""]))

    def _paths(self) -> list[str]:
        paths = list[str]()
        for endpoint, checks in self._checks.items():
            paths += [f"/{endpoint}", *(f"/{endpoint}/{name}" for name in checks.names)]
        return [*paths, "/metrics"] if self._metrics is not None else paths


async def _end(listener: asyncio.Server, server: _Server) -> None:
    await stop_serving(listener)
    server.abort()
    await server.shutdown(_GRACE)


async def _expose(metrics: Exposition, accept: str) -> web.Response:
    try:
        content_type, body = await offload(metrics, accept)
    except Exception:
        log.exception("the metrics could not be made")
        return _text(500, "the metrics could not be made; see the log\n")
    return web.Response(body=body, headers={"Content-Type": content_type})


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, body=text.encode(), headers={"Content-Type": _TEXT})


class _Server(web.Server):
    """Aiohttp's server, with a time limit for every connection, also for silent clients."""

    def __init__(self, handler: _Handler, *, patience: float) -> None:
        super().__init__(
            handler,
            handler_cancellation=True,
            access_log=None,
            logger=_clients,
            keepalive_timeout=0,
            lingering_time=0,
            max_line_size=2048,
            max_field_size=4096,
        )
        self._patience = patience
        self._open = Connections(MAX_CONNECTIONS)
        self._timers: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._open.admit(handler, transport)
        loop = asyncio.get_running_loop()
        self._timers[handler] = loop.call_later(self._patience, transport.abort)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        self._open.forget(handler)
        if (timer := self._timers.pop(handler, None)) is not None:
            timer.cancel()
        super().connection_lost(handler, exc)

    def abort(self) -> None:
        """End all connections now."""
        for timer in self._timers.values():
            timer.cancel()
        self._open.abort()

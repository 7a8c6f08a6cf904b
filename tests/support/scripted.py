"""A transport without sockets that gives prepared answers: a fake at the Transport seam."""

from __future__ import annotations

import asyncio
import contextlib
import json as jsonlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from kinform.errors import TransportError, TransportFailure
from kinform.rest.connection import Connection
from kinform.rest.transport import Chunk, Headers, HttpRequest, HttpResponse

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A prepared answer; ``error`` is raised after its pieces, as a cut connection would."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pieces: Sequence[bytes] = ()
    error: TransportError | None = None
    stalls: bool = False
    given: list[bytes] = field(default_factory=list[bytes])
    gathered: list[float] = field(default_factory=list[float])
    """The ``gather`` argument of each read."""

    async def read_some(self, *, gather: float = 0.0) -> bytes:
        self.gathered.append(gather)
        if len(self.given) < len(self.pieces):
            self.given.append(self.pieces[len(self.given)])
            return self.given[-1]
        if self.error is not None:
            raise self.error
        if self.stalls:
            await asyncio.get_running_loop().create_future()
        return b""

    async def iter_bytes(self) -> AsyncGenerator[bytes]:
        while piece := await self.read_some():
            yield piece

    async def iter_chunks(self) -> AsyncGenerator[Chunk]:
        async for piece in self.iter_bytes():
            yield piece, True

    async def read(self, limit: int | None = None) -> bytes:
        return b"".join([piece async for piece in self.iter_bytes()])


Step: TypeAlias = Answer | TransportError | Callable[[HttpRequest], Answer]


def answer(
    status: int = 200,
    json: object = None,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Prepare an answer, with ``json`` encoded if given."""
    data = body if json is None else jsonlib.dumps(json, separators=(",", ":")).encode()
    typed = JSON if json is not None else {}
    return Answer(
        status, Headers(list({**typed, **(headers or {})}.items())), [data] if data else []
    )


def failed(failure: TransportFailure, message: str = "scripted") -> TransportError:
    """Prepare a failure."""
    return TransportError(message, failure=failure)


class ScriptedTransport:
    """Gives its steps in order, the last one for ever; remembers requests and their times."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.requests: list[HttpRequest] = []
        self.times: list[float] = []
        self.open = 0
        self.closed = False

    @contextlib.asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, TransportError):
            raise step
        self.open += 1
        try:
            reply = step if isinstance(step, Answer) else step(request)
            yield replace(reply, given=[])
        finally:
            self.open -= 1

    async def aclose(self) -> None:
        self.closed = True


def connection(*steps: Step) -> tuple[Connection, ScriptedTransport]:
    """Return a connection over a scripted transport."""
    transport = ScriptedTransport(*steps)
    return Connection("https://api.test", transport), transport

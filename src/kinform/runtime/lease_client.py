"""The three requests of an election: read, create, replace one Lease. Each is sent once, in time.

They pass by the client's rate limiter and the line before its connections: whoever waits there
behind its own writes would lose the lease because of it. There are few: one in two seconds.
"""

from __future__ import annotations

from typing import final

from kinform.client import Client
from kinform.errors import KinformError, NotFoundError, UsageError
from kinform.rest.request import Request
from kinform.sansio.election_signals import Create, Failed, Get, Got, Signal, Update, Wrote
from kinform.sansio.leases import Lease, read_lease

__all__ = ["LeaseClient"]


@final
class LeaseClient:
    """Does what the table of decisions asks for, and tells what came of it."""

    def __init__(self, client: Client, *, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    async def perform(self, action: Get | Create | Update) -> Signal:
        """Send one request. A failure is a signal like any other.

        Raises:
            UsageError: the client is not open, or is closed: no try will ever go well.
        """
        try:
            return await self._perform(action)
        except UsageError:
            raise
        except KinformError as exc:
            return Failed(exc)

    async def _perform(self, action: Get | Create | Update) -> Signal:
        rest = self._client.rest("coordination.k8s.io/v1")
        match action:
            case Get(timeout):
                try:
                    return Got(await self._read(rest.get().namespace(self._namespace), timeout))
                except NotFoundError:
                    return Got(None)
            case Create(body, timeout):
                request = rest.post().namespace(self._namespace).body(body)
                return Wrote(await _answer(request, timeout))
            case Update(body, timeout):
                request = rest.put().namespace(self._namespace).body(body)
                return Wrote(await self._read(request, timeout))

    async def _read(self, request: Request, timeout: float) -> Lease:
        return await _answer(request, timeout, name=self._name)


async def _answer(request: Request, timeout: float, *, name: str = "") -> Lease:
    request = request.resource("leases").timeout(timeout).max_retries(0).urgent()
    content = await (request.name(name) if name else request).into(dict[str, object])
    return read_lease(content)

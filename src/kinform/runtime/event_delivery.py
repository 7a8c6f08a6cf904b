"""One event to the server: a create or a patch, and whether a failure is worth another try.

Twelve tries at most, ten seconds apart (client-go: tools/record/event.go). Unlike client-go we
also try again where the server itself asks for it: 429, 5xx and time-outs.
"""

from __future__ import annotations

from typing import Final, final

from kinform.client import Client
from kinform.errors import (
    AlreadyExistsError,
    ApiError,
    ConfigError,
    ConflictError,
    LeadershipLost,
    NotFoundError,
    TooManyRequestsError,
    TransportError,
    TransportFailure,
)
from kinform.rest.options import PatchType
from kinform.rest.request import Request
from kinform.runtime.event_bodies import FORMATS, EventAPI, Reporter
from kinform.sansio.event_correlation import EventRecord

__all__ = ["EventSink", "is_expected", "retry_wait"]

MAX_TRIES: Final = 12
RETRY_INTERVAL: Final = 10.0
TRY_TIMEOUT: Final = 30.0
"""How long one try may take: a server that says nothing holds up the events behind it."""
MAX_RETRY_AFTER: Final = 120.0


@final
class EventSink:
    """Writes events to one server.

    Every failure of its methods is that of the request; `retry_wait` judges it. Sending the same
    record again is safe: its name is its own, and counts are absolute.
    """

    def __init__(self, client: Client, api: EventAPI, reporter: Reporter) -> None:
        self._client = client
        self._api: Final[EventAPI] = api
        self._format = FORMATS[api]
        self._reporter = reporter
        self.created: int = 0
        """How many events were created."""
        self.patched: int = 0
        """How many events were changed."""

    async def send(self, record: EventRecord) -> None:
        """Have the server know all of ``record``.

        Raises:
            AlreadyExistsError: somebody else has an event of its name: it needs another one.
        """
        if record.exists:
            try:
                return await self._patch(record)
            except NotFoundError:
                record.vanish()
        return await self._create(record)

    async def _create(self, record: EventRecord) -> None:
        record.attempts += 1
        count, body = record.count, self._format.body(record, self._reporter)
        request = self._client.rest(self._api).post()
        try:
            await self._ready(request, record).body(body).do()
        except AlreadyExistsError:
            if record.attempts == 1:
                record.vanish()
                raise
            # An earlier try of ours had arrived; what was counted since then, it did not tell.
            self.created += 1
            record.settle(1)
            return None if record.is_settled else await self._patch(record)
        self.created += 1
        return record.settle(count)

    async def _patch(self, record: EventRecord) -> None:
        count, patch = record.count, self._format.patch(record)
        request = self._client.rest(self._api).patch(PatchType.MERGE)
        await self._ready(request, record).name(record.name).body(patch).do()
        self.patched += 1
        record.settle(count)

    def _ready(self, request: Request, record: EventRecord) -> Request:
        # No discovery: every server has events, and one that is silent need not be asked twice.
        return (
            request.namespace(record.namespace)
            .resource("events")
            .timeout(TRY_TIMEOUT)
            .max_retries(0)
        )


def retry_wait(error: Exception, *, tries: int, rand: float) -> float | None:
    """Return the seconds until the next try after ``tries`` of them, or None: give up.

    The first wait is spread out by ``rand`` in [0, 1), so that many recorders do not come back to
    a server together.
    """
    if tries >= MAX_TRIES or not _may_pass(error):
        return None
    wait = RETRY_INTERVAL * rand if tries == 1 else RETRY_INTERVAL
    asked = error.retry_after if isinstance(error, ApiError) else None
    return max(wait, min(asked or 0.0, MAX_RETRY_AFTER))


def is_expected(error: Exception) -> bool:
    """Whether nobody needs to hear of a failure: the event's place is gone, or our turn is over."""
    if isinstance(error, ApiError) and error.is_namespace_terminating:
        return True
    return isinstance(error, NotFoundError | LeadershipLost)


def _may_pass(error: Exception) -> bool:
    match error:
        case TransportError(failure=failure):
            return failure is not TransportFailure.CLOSED
        case TooManyRequestsError() | ConflictError() | ConfigError():
            return True
        case AlreadyExistsError():
            return True  # by another name
        case ApiError(code=code):
            return code >= 500
        case _:
            return False

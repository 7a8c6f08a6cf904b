"""`EventRecorder`: publishes a controller's actions as Kubernetes Events.

`EventRecorder.event` decides in memory which Event an occurrence belongs to
(`kinform.sansio.events.correlation`, or `kinform.sansio.events.series` for the newer API) and puts
that into the outbox. One task sends the events of the outbox, one after the other.

Rule: a record is in the outbox unless it is being sent, and returns there if the attempt ends in
any way but success. So a cancellation loses nothing, and the next sender continues there.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import math
import platform
import random
from collections import OrderedDict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self, final

from kinform import clock
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
    UsageError,
)
from kinform.rest.options import PatchType
from kinform.rest.request import Request
from kinform.runtime.events._event_objects import (
    FORMATS,
    EventAPI,
    Regarding,
    Reporter,
    occurrence_of,
    reporter_of,
)
from kinform.sansio.events.correlation import (
    EventCorrelator,
    EventRecord,
    EventType,
    ObjectReference,
    Occurrence,
)
from kinform.sansio.events.series import EventSeries
from kinform.tasks import end_in_time

__all__ = [
    "EventAPI",
    "EventRecorder",
    "EventType",
    "ObjectReference",
    "RecorderStatistics",
]


class Correlating(Protocol):
    """Assigns occurrences to events: `EventCorrelator` or `EventSeries`."""

    def observe(self, occurrence: Occurrence, *, now: float, wall: float) -> Sequence[EventRecord]:
        """Count an occurrence; return the events to write because of it."""
        ...

    def allows(self, record: EventRecord, now: float) -> bool:
        """Return whether one more write is allowed; if so, count it."""
        ...

    def rename(self, record: EventRecord, *, wall: float) -> None:
        """Give an event another name."""
        ...

    def next_due(self) -> float | None:
        """Return when to call `due`."""
        ...

    def due(self, now: float) -> Sequence[EventRecord]:
        """Return the events to write because time has passed."""
        ...

    def flush(self) -> Sequence[EventRecord]:
        """Return the events to write before the end."""
        ...


class Put(enum.Enum):
    """The result of adding an event to the outbox."""

    WAITING = "waiting"
    MERGED = "merged"
    """It waits already, and will be written with its current count."""
    FULL = "full"
    SPAM = "spam"


@final
class EventOutbox:
    """Events in the order in which they are to be written, at most ``capacity`` of them.

    An event that changes while it waits keeps its place and is written once. So a server that is
    away for long costs memory for its different events, not for each time they happened.
    """

    def __init__(self, correlating: Correlating, capacity: int) -> None:
        self._correlating = correlating
        self.capacity: Final = capacity
        self._waiting: OrderedDict[EventRecord, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, record: EventRecord, now: float) -> Put:
        """Queue ``record`` for writing, unless the queue is full or the rate limit is reached."""
        if record in self._waiting:
            return Put.MERGED
        if len(self._waiting) >= self.capacity:
            return Put.FULL
        if not self._correlating.allows(record, now):
            return Put.SPAM
        self._waiting[record] = None
        return Put.WAITING

    def take(self) -> EventRecord | None:
        """Take out the next one."""
        return self._waiting.popitem(last=False)[0] if self._waiting else None

    def put_back(self, record: EventRecord) -> None:
        """Make ``record``, which was taken and not written, the next one again."""
        self._waiting[record] = None
        self._waiting.move_to_end(record, last=False)


MAX_TRIES: Final = 12
RETRY_INTERVAL: Final = 10.0
TRY_TIMEOUT: Final = 30.0
"""Seconds that one attempt may take: a silent server delays the events behind it."""
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
        """The number of events that were created."""
        self.patched: int = 0
        """The number of events that were updated."""

    async def send(self, record: EventRecord) -> None:
        """Create or update the Event of ``record`` on the server.

        Raises:
            AlreadyExistsError: another program has an event of this name: it needs another name.
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
            # An earlier attempt of ours had succeeded, with a smaller count.
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
    """Return whether a failure need not be logged: its namespace is gone, or a lease was lost."""
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


log: Final = logging.getLogger(__name__)

GRACE: Final = 5.0
"""Seconds that leaving the block may take to send waiting events."""
QUEUE_SIZE: Final = 1000
_LOG_INTERVAL: Final = 60.0
_SHORTEST_WAIT: Final = 0.1  # two clocks that disagree must not cause a busy loop


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStatistics:
    """Statistics of an `EventRecorder`, since it was created."""

    recorded: int
    """Calls of ``event``."""
    sent: int
    """Events that were created."""
    patched: int
    """Events that were given a new count."""
    dropped_full: int
    """Events that were not written because too many waited. They stay counted."""
    dropped_spam: int
    """Events that were not written because there were too many of one object; as well."""
    dropped_late: int
    """Calls of ``event`` after the recorder was stopped."""
    failed: int
    """Events that the server refused, or that were tried too often."""
    waiting: int
    """Events that wait to be written, or are being written."""


@final
class EventRecorder:
    """Reports what happens to objects, as Events that ``kubectl describe`` shows.

    .. code-block:: python

        async with EventRecorder(client, "website-operator") as recorder:
            recorder.event(website, "Normal", "Created", "Created deployment web")

    Events are best effort: nothing waits for them, and nothing fails with them. Repeated
    occurrences are counted in one Event. A write that fails is retried for two minutes, and then
    dropped. The Events of one object are created in the order in which they happened.

    Either use it as a block, which may be entered and left in different tasks; or `run` it in a
    task of yours, and `drain` it at the end. Events recorded before either wait.

    Args:
        client: writes the events. Events that a guarded client may not write are dropped.
        component: who reports: ``website-operator``.
        instance: which process of it; by default the host's name.
        api: ``"v1"``: similar events are combined, and each object has 25 writes and one more
            every five minutes. ``"events.k8s.io/v1"``: repetitions are a series, whose count is
            written at its end and every half hour.
        capacity: how many events may wait to be written.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        api: EventAPI = "v1",
        capacity: int = QUEUE_SIZE,
    ) -> None:
        if api not in FORMATS:
            raise UsageError(f"api is {api!r}; expected one of {', '.join(map(repr, FORMATS))}")
        if capacity < 1:
            raise UsageError(f"capacity is {capacity!r}; expected 1 or more")
        reporter = reporter_of(component, instance, host=platform.node())
        self._correlating: Correlating = EventCorrelator() if api == "v1" else EventSeries()
        self._outbox = EventOutbox(self._correlating, capacity)
        self._sink = EventSink(client, api, reporter)
        self._recorded = self._late = self._failed = 0
        self._dropped = dict.fromkeys(Put, 0)
        self._logged_at = dict[str, float]()  # when we last complained of what
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_sending = False  # one sender at a time
        self._in_flight = 0  # events being sent: 0 or 1
        self._is_stopped = False
        self._work = asyncio.Event()
        self._idle = asyncio.Event()  # nothing waits, nothing is being sent
        self._hurry = asyncio.Event()  # do not wait before the next try

    # --- recording ----------------------------------------------------------------------------

    def event(  # noqa: PLR0917 - client-go's order of arguments
        self,
        regarding: Regarding,
        type_: EventType,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Regarding | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Report what happened. Returns at once; once it runs, from any thread.

        Args:
            regarding: the object: an `Object`, an `ObjectReference`, or one of them as a dict.
                Only its name, kind and identity are sent.
            type_: ``"Normal"``, or ``"Warning"`` if a person should look into it.
            reason: the cause, as one machine-readable word: ``FailedCreate``.
            message: for people; it is cut after 1,024 bytes.
            action: the action taken: ``Create``. By default the reason (newer API only).
            related: another object that has to do with it.
            annotations: of the Event.

        Raises:
            UsageError: an argument is invalid.
        """
        occurrence = occurrence_of(
            regarding,
            type_=type_,
            reason=reason,
            message=message,
            action=action,
            related=related,
            annotations=annotations,
        )
        if self._loop is None or _running_loop() is self._loop:
            self._record(occurrence)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: no sender runs any more
            self._loop.call_soon_threadsafe(self._record, occurrence)

    def statistics(self) -> RecorderStatistics:
        """Return the current statistics."""
        return RecorderStatistics(
            recorded=self._recorded,
            sent=self._sink.created,
            patched=self._sink.patched,
            dropped_full=self._dropped[Put.FULL],
            dropped_spam=self._dropped[Put.SPAM],
            dropped_late=self._late,
            failed=self._failed,
            waiting=self._unsent,
        )

    def _record(self, occurrence: Occurrence) -> None:
        self._recorded += 1
        if self._is_stopped:
            self._late += 1
            return
        now, wall = clock.current().boot(), clock.current().wall()
        self._put(self._correlating.observe(occurrence, now=now, wall=wall), now)
        self._work.set()  # even if nothing is to be written: a series may have begun

    def _put(self, records: Iterable[EventRecord], now: float) -> None:
        for record in records:
            put = self._outbox.put(record, now)
            self._dropped[put] += 1
            if put is Put.FULL:
                self._complain(
                    "full",
                    "%d events wait to be written, and more are dropped: is the server away?",
                    self._outbox.capacity,
                )
            self._idle.clear()

    # --- its life -----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def start(self) -> None:
        """Start sending, where ``async with`` does not fit; `stop` must follow.

        Raises:
            UsageError: it was started before, or another task runs it.
        """
        if self._is_stopped or self._task is not None or self._is_sending:
            raise UsageError("this event recorder was started before; make a new one")
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self.run(), name="kinform event recorder")

    async def run(self) -> None:
        """Send events until cancelled. Unsent events wait for the next `run` or `drain`.

        Raises:
            UsageError: it runs already.
        """
        with self._sole_sender():
            while True:
                await self._send_waiting()
                self._work.clear()
                await _set_within(self._work, self._time_until_due())
                now = clock.current().boot()
                self._put(self._correlating.due(now), now)

    async def drain(self, timeout: float) -> int:
        """Send waiting events, and the counts of series that have not ended.

        Returns:
            the number of events that are unsent after ``timeout`` seconds; 0 if all were sent.

        Raises:
            ValueError: if ``timeout`` is negative or not a number.
        """
        if not 0 <= timeout < math.inf:
            raise ValueError(f"timeout is {timeout!r}; expected a number of seconds")
        unsent = self._correlating.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._all_sent()
                while unsent:  # by and by: there may be more of them than may wait
                    batch, unsent = unsent[: self._outbox.capacity], unsent[self._outbox.capacity :]
                    self._put(batch, clock.current().boot())
                    await self._all_sent()
        return self._unsent + len(unsent)

    async def stop(self, grace: float = GRACE) -> None:
        """Accept no more events, and send waiting ones for at most ``grace`` seconds.

        Calling it again does nothing. Cancelled, it ends at once. A `run` of yours is yours to
        cancel.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        try:
            left = await self.drain(grace)
            if left:
                log.warning(
                    "event recorder stopped: %d events not sent", left, extra={"events": left}
                )
        finally:
            if self._task is not None:
                await end_in_time(self._task, timeout=None)  # it has nothing to clean up

    async def _all_sent(self) -> None:
        """Wait until the outbox is empty; if no task sends, send here."""
        if self._is_sending or self._task is not None:
            self._work.set()
            self._hurry.set()
            await self._idle.wait()
        else:
            with self._sole_sender():
                await self._send_waiting()

    @property
    def _unsent(self) -> int:
        return len(self._outbox) + self._in_flight

    @contextlib.contextmanager
    def _sole_sender(self) -> Generator[None]:
        if self._is_sending:
            raise UsageError("this event recorder runs already")
        self._is_sending, self._loop = True, asyncio.get_running_loop()
        try:
            yield
        finally:
            self._is_sending = False

    # --- sending ------------------------------------------------------------------------------

    async def _send_waiting(self) -> None:
        """Send until nothing waits."""
        tries = 0
        while (record := self._outbox.take()) is not None:
            if record.is_settled:  # sent already, together with an earlier occurrence
                continue
            tries += 1
            wait = await self._try(record, tries)
            if wait is None:
                tries = 0
                continue
            await _set_within(self._hurry, wait)
            self._hurry.clear()
        self._idle.set()

    async def _try(self, record: EventRecord, tries: int) -> float | None:
        """Send ``record``; return how long to wait for another try, or None: done with it."""
        self._in_flight = 1
        try:
            await self._sink.send(record)
        except Exception as error:  # noqa: BLE001 - a guard of the user's may raise anything
            if isinstance(error, AlreadyExistsError):
                self._correlating.rename(record, wall=clock.current().wall())
            wait = retry_wait(error, tries=tries, rand=random.random())
            if wait is None:
                self._give_up(record, error)
            else:
                self._outbox.put_back(record)
            return wait
        except BaseException:
            self._outbox.put_back(record)
            raise
        finally:
            self._in_flight = 0
        return None

    def _give_up(self, record: EventRecord, error: Exception) -> None:
        self._failed += 1
        if is_expected(error):
            log.debug("event dropped in namespace %s: %s", record.namespace, error)
        else:
            kind = type(error).__name__
            self._complain(kind, "events cannot be written, and are dropped: %s: %s", kind, error)

    def _complain(self, about: str, message: str, *args: object) -> None:
        """Log a warning, at most one a minute about the same thing."""
        now = clock.current().boot()
        if now - self._logged_at.get(about, -math.inf) >= _LOG_INTERVAL:
            self._logged_at[about] = now
            log.warning(message, *args)

    def _time_until_due(self) -> float | None:
        due = self._correlating.next_due()
        return None if due is None else max(_SHORTEST_WAIT, due - clock.current().boot())


async def _set_within(event: asyncio.Event, timeout: float | None) -> None:
    """Wait until ``event`` is set, or for ``timeout`` seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await event.wait()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

"""Leader election on Leases: of several replicas, one acts.

`kinform.sansio.election.step` decides and says why no two lead at once; here are the clock, the
dice, the requests, and the task that runs while one leads.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
import secrets
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Final, TypeVar, final

from kinform import clock
from kinform.client import Client
from kinform.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    KinformError,
    LeadershipLost,
    NotFoundError,
    TransportError,
    UsageError,
)
from kinform.rest.request import Request
from kinform.sansio.election.config import LeaderElection
from kinform.sansio.election.leases import Lease, read_lease
from kinform.sansio.election.signals import (
    Action,
    Create,
    Delay,
    DelayEnded,
    End,
    Get,
    Got,
    Moment,
    RequestFailed,
    Signal,
    Update,
    Wrote,
)
from kinform.sansio.election.step import Election, Phase
from kinform.tasks import background

__all__ = [
    "ElectionStatistics",
    "LeaderElection",
    "LeaderElector",
]


@final
class LeaseClient:
    """Sends the requests that the decision table returns, and returns their results."""

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
            return RequestFailed(exc)

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


log: Final = logging.getLogger("kinform.runtime.leader_election")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionStatistics:
    """The state of an elector, and its counters."""

    lease: str
    """``namespace/name``."""
    identity: str
    is_leader: bool
    holder: str
    """The holder of the lease when it was last read; ``""``: none, or not known."""
    transitions: int
    """The number of leader changes that the lease recorded when it was last read."""
    acquisitions: int
    """How many times this candidate became leader."""
    renewals: int
    failures: int
    """Requests that failed."""
    slow_paths: int
    """Renewals that had to read the lease first, because the last one had failed."""
    last_error: str
    """Why the last request failed; ``""`` if it did not."""


@final
class ElectionReporter:
    """Logs changes, each once: a server that is down for a day causes one line.

    Raises:
        UsageError: ``on_new_leader`` is an async function, which is never awaited.
    """

    def __init__(
        self, lease: str, identity: str, on_new_leader: Callable[[str], object] | None
    ) -> None:
        if on_new_leader is not None and inspect.iscoroutinefunction(on_new_leader):
            raise UsageError("on_new_leader is an async function; expected one that cannot wait")
        self._lease = lease
        self._identity = identity
        self._on_new_leader = on_new_leader
        self._leader = ""
        self._failures: set[tuple[object, ...]] = set()  # kinds, since a try last went well

    def acquired(self, fencing_number: str) -> None:
        """Log that this candidate leads now."""
        self._log(logging.INFO, "this replica leads, with fencing number %s", fencing_number)

    def lost(self, reason: str) -> None:
        """Log that this candidate lost the lease."""
        self._log(logging.WARNING, "leadership lost: %s", reason)

    def released(self, reason: str) -> None:
        """Log the result of releasing the lease."""
        self._log(logging.INFO, "lease released: %s", reason)

    def request(self, failure: KinformError | None, *, holder: str, complete: bool) -> None:
        """Log the result of a request, if it changed.

        ``complete``: it was the last one of a try.
        """
        if failure is not None:
            self._failed(failure)
            return
        if complete:  # else it is too early: perhaps we may read, and not write
            self._failures.clear()
        self._seen(holder)

    def _seen(self, holder: str) -> None:
        if not holder or holder == self._leader:
            return  # a lease without a holder is not logged
        self._leader = holder
        if holder != self._identity:
            self._log(logging.INFO, "new leader: %s", holder)
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(holder)
            except Exception:
                # The callback failed; the leadership is not affected.
                log.exception("on_new_leader failed", extra={"lease": self._lease})

    def _failed(self, error: KinformError) -> None:
        kind = _kind(error)
        is_usual = isinstance(
            error, ConflictError | AlreadyExistsError
        )  # another candidate was faster
        level = logging.DEBUG if is_usual or kind in self._failures else logging.WARNING
        self._failures.add(kind)
        self._log(level, "request failed: %s", error)

    def _log(self, level: int, message: str, *details: object) -> None:
        extra = {"lease": self._lease, "identity": self._identity}
        log.log(level, f"lease %s: {message}", self._lease, *details, extra=extra)  # noqa: G004 - ours


def _kind(error: KinformError) -> tuple[object, ...]:
    match error:
        case ApiError():
            return (type(error), error.code)
        case TransportError():
            return (type(error), error.failure)
        case _:
            return (type(error),)


R = TypeVar("R")


@final
class LeaderElector:
    """One candidate for one Lease.

    .. code-block:: python

        elector = LeaderElector(client, LeaderElection(lease="widgets", namespace="ops"))
        await elector.run(lead)  # lead() runs here, or in another replica, never in both

    **Promised**: no two candidates believe that they lead at one true instant, as long as their
    clocks' rates differ by less than `LeaderElection.rate_tolerance` (1.5), no process is stopped,
    and no other program edits the Lease. Belief is a deadline on the boot clock, which counts the
    time a machine sleeps and does not jump: it expires even if this process does not run. A process
    that was stopped (SIGSTOP, suspend, a blocked loop) detects that by `check` before its next
    write: let the leader write through `Client.guarded` with it.

    **Not promised**: that a write which is on its way arrives before another candidate leads. Where
    that matters, let the other side compare `fencing_number`.

    `check`, `is_leader`, `deadline` and `fencing_number` may be read from any thread; all else
    belongs to one event loop.

    Args:
        client: reads and writes the Lease; open. It may get, create and update leases.
        election: which lease, and by which times.
        on_new_leader: called with the identity of each new leader, this one included. It is not to
            wait; its errors are logged.

    Raises:
        UsageError: the client is not open, or ``on_new_leader`` is an async function.
    """

    def __init__(
        self,
        client: Client,
        election: LeaderElection,
        *,
        on_new_leader: Callable[[str], object] | None = None,
    ) -> None:
        namespace = election.namespace or client.config.namespace
        identity = election.identity or _new_identity()
        self.identity: Final = identity
        """The identity of this candidate, as the Lease names it."""
        self.lease: Final = f"{namespace}/{election.lease}"
        """The Lease: ``namespace/name``."""
        self._config: Final = replace(election, namespace=namespace, identity=identity)
        self._election = Election(self._config)
        self._requests = LeaseClient(client, namespace=namespace, name=election.lease)
        self._report = ElectionReporter(self.lease, identity, on_new_leader)
        self._clock = clock.SYSTEM
        self._is_running = False
        self._is_led = False  # lead() runs
        self._last_deadline = 0.0  # the last there was, even if it has passed

    def __repr__(self) -> str:
        state = "leading" if self.is_leader else "not leading"
        return f"<LeaderElector {self.lease} {self.identity} {state}>"

    # --- who leads ----------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads, at this instant."""
        deadline = self._election.deadline  # before the clock: the other order could be too late
        return deadline is not None and self._clock.boot() < deadline

    @property
    def deadline(self) -> float | None:
        """Until when, by the boot clock, this one leads unless it renews; None: it does not."""
        return self._election.deadline

    def check(self) -> None:
        """Do nothing if this one leads at this instant; for `Client.guarded`.

        Raises:
            LeadershipLost: it does not, or cannot be sure of it.
        """
        if not self.is_leader:
            raise LeadershipLost(
                "this replica does not lead, or has not renewed in time; nothing was sent",
                lease=self.lease,
            )

    @property
    def fencing_number(self) -> str:
        """The resourceVersion of the write that made this candidate leader; ``""``: it is not.

        A later leader has a larger one. Writes to other systems can carry it, and such a system can
        refuse a number smaller than the largest it has seen.
        """
        return self._election.fencing_number if self.is_leader else ""

    @property
    def holder(self) -> str:
        """The holder of the lease when it was last read; ``""``: none, or not known."""
        return self._election.holder

    def healthy(self, tolerance: float) -> bool:
        """Return false if ``lead()`` still runs although the lease has expired.

        That is so when ``lead()`` has not ended ``tolerance`` seconds after another candidate may
        have taken over: it ignores its cancellation, or blocks the loop. A candidate that does not
        lead is healthy.
        """
        if not self._is_led:
            return True
        spare = self._config.lease_duration - self._config.renew_deadline
        return self._clock.boot() <= self._last_deadline + spare + tolerance

    def statistics(self) -> ElectionStatistics:
        """Return the current statistics."""
        election, counts = self._election, self._election.counts
        return ElectionStatistics(
            lease=self.lease,
            identity=self.identity,
            is_leader=self.is_leader,
            holder=election.holder,
            transitions=election.record.transitions if election.record is not None else 0,
            acquisitions=counts.acquisitions,
            renewals=counts.renewals,
            failures=counts.failures,
            slow_paths=counts.slow_paths,
            last_error="" if election.failure is None else str(election.failure),
        )

    # --- to lead ------------------------------------------------------------------------------

    async def run(
        self,
        lead: Callable[[], Coroutine[object, object, R]],
        *,
        release_within: Callable[[], float | None] | None = None,
    ) -> R:
        """Wait until this candidate leads, then run ``lead()``, and return its result.

        While it runs, the lease is renewed. However it ends, the lease is released after it has
        ended (unless ``release_on_exit`` is false), so that the next one leads soon. The same if
        this call is cancelled: then ``lead()`` is cancelled first, and renewing goes on until it
        has ended. Cancelled a second time, it waits no more.

        It may be called again after it has ended.

        Args:
            lead: the work that only the leader may do.
            release_within: called at the end, returns how many seconds the release may take;
                ``None``: no release, for example because a part of ``lead()`` still runs.

        Raises:
            LeadershipLost: this candidate led, and does not any more. ``lead()`` was cancelled
                and has ended; its error, if any, is the cause.
            UsageError: it runs already, or the client is closed.
        """
        if self._is_running or self._is_led:
            raise UsageError(f"this elector of {self.lease} runs already; make one for each task")
        self._is_running = True
        self._clock = clock.current()
        try:
            action = await self._acquire()
            return await self._while_renewing(lead, action)
        finally:
            try:
                await self._release(release_within)
            finally:
                self._election.abandon()
                self._is_running = False

    async def _acquire(self) -> Action:
        """Try until this candidate leads; return the next action."""
        action = self._election.begin(self._moment())
        while self._election.phase is not Phase.LEADING:
            action = await self._do(action)
        self._report.acquired(self._election.fencing_number)
        return action

    async def _while_renewing(
        self, lead: Callable[[], Coroutine[object, object, R]], action: Action
    ) -> R:
        # However the block is left, lead() is stopped and waited for first, and only then the
        # renewal: lead() is still the leader while it cleans up. Cancelled twice, this does not
        # wait for a lead() that does not end.
        async with (
            background(self._renew(action)) as renewal,
            background(self._led(lead), patience=2) as work,
        ):
            await asyncio.wait([work, renewal], return_when=asyncio.FIRST_COMPLETED)
            is_lost = not work.done()
        if not is_lost:
            return work.result()
        cause = None if work.cancelled() else work.exception()
        if isinstance(cause, LeadershipLost):
            cause = None  # it says the same, and knows less
        raise LeadershipLost(renewal.result(), lease=self.lease) from cause

    async def _led(self, lead: Callable[[], Coroutine[object, object, R]]) -> R:
        self._is_led = True
        try:
            return await lead()
        finally:
            self._is_led = False

    async def _renew(self, action: Action) -> str:
        """Renew until leadership is lost; return why."""
        while not isinstance(action, End):
            action = await self._do(action)
        self._report.lost(action.reason)
        return action.reason

    async def _release(self, within: Callable[[], float | None] | None) -> None:
        """End the belief, and release the lease if it may be ours and ``lead()`` has ended."""
        election = self._election
        wanted = self._config.release_on_exit and not self._is_led
        if not wanted or election.phase is Phase.ENDED or not election.may_hold:
            return
        seconds = self._config.renew_deadline if within is None else within()
        if seconds is None:
            return
        action = election.release(self._moment(), seconds)
        # If the client is closed, or the server silent, it runs out by itself.
        with contextlib.suppress(UsageError, TimeoutError):
            async with asyncio.timeout(seconds):
                while not isinstance(action, End):
                    action = await self._do(action)
                self._report.released(action.reason)

    async def _do(self, action: Action) -> Action:
        """Perform an action, and return the next one."""
        match action:
            case End():
                return action
            case Delay(seconds):
                await asyncio.sleep(seconds)
                return self._step(DelayEnded())
            case Get() | Create() | Update():
                action = self._step(await self._requests.perform(action))
                self._report.request(
                    self._election.failure,
                    holder=self._election.holder,
                    complete=isinstance(action, Delay | End),
                )
                return action

    def _step(self, signal: Signal) -> Action:
        action = self._election.step(signal, self._moment())
        if self._election.deadline is not None:
            self._last_deadline = self._election.deadline
        return action

    def _moment(self) -> Moment:
        return Moment(self._clock.boot(), self._clock.wall(), random.random())


def _new_identity() -> str:
    return f"{socket.gethostname()}_{secrets.token_hex(5)}"

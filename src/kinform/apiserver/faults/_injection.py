"""Fault injection between a request and its answer.

Before the answer, faults wait, change the server's state, or put themselves in its place; behind
it, they change the body. See `kinform.apiserver.faults` for what each of them means.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from email.utils import format_datetime
from typing import Final, TypeAlias, final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints.list_options import invalid_options
from kinform.apiserver.endpoints.messages import (
    Broken,
    Chunks,
    Ending,
    ServerRequest,
    ServerResponse,
    apart,
)
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.faults import _streams as streams
from kinform.apiserver.faults import kinds
from kinform.apiserver.faults.kinds import Fault, Subject
from kinform.apiserver.faults.plan import FaultPlan
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.serializer import encoding
from kinform.apiserver.storage.replica import READS, Replica
from kinform.apiserver.storage.versioned_store import Change

__all__ = ["FaultInjector"]

Answer: TypeAlias = Callable[[ServerRequest], Awaitable[ServerResponse]]

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_READS: Final = frozenset({"get", "list", "watch"})
_ENDINGS: Final[dict[type[object], Ending]] = {
    kinds.Reset: Ending.RESET,
    kinds.Close: Ending.CLOSED,
    kinds.HalfOpen: Ending.SILENT,
}


@final
class FaultInjector:
    """Injects the faults of a plan into one application.

    Args:
        plan: The faults.
        cluster: The state that they may change.
        answer: Answers a request without faults.
        subject: Returns the subject of a request.
        reload: Called after the storage was restored.
    """

    def __init__(
        self,
        plan: FaultPlan,
        cluster: Cluster,
        *,
        answer: Answer,
        subject: Callable[[ServerRequest], Subject],
        reload: Callable[[], None],
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._answer = answer
        self._subject = subject
        self._reload = reload
        self._replicas: dict[Fault, Replica] = {}
        self._is_observing = False
        self.floor: int = 1
        """No restore goes back further."""

    async def answer(self, request: ServerRequest) -> ServerResponse:
        """Answer a request, with the effects of the faults that hit it.

        Raises:
            Broken: the connection ends without an answer.
        """
        if self._plan.is_refusing:
            raise Broken(Ending.REFUSED)
        subject = self._subject(request)
        struck = self._plan.struck(subject)
        for fault in struck:
            instead = await self._before(fault, request, subject)
            if instead is not None:
                return self._dated(instead)
        reads = [fault for fault in struck if _is_behind(fault.effect, request)]
        if not reads or subject.verb not in _READS:
            response = await self._answer(request)
        else:
            token = READS.set(self._replica(reads[-1]).cluster)
            try:
                response = await self._answer(request)
            finally:
                READS.reset(token)
        self._spoil(response, struck)
        return self._dated(response)

    # --- before the answer

    async def _before(
        self, fault: Fault, request: ServerRequest, subject: Subject
    ) -> ServerResponse | None:
        """Do what a fault does before the answer; return what it puts in its place."""
        match fault.effect:
            case kinds.Latency(seconds=seconds, jitter=jitter):
                await asyncio.sleep(seconds + self._plan.random.uniform(0, jitter))
            case kinds.Stall(duration=duration):
                await self._plan.wait_removed(fault, within=duration)
            case kinds.Refuse() as effect:
                self._plan.refuse(fault, effect)
                raise Broken(Ending.REFUSED)
            case kinds.Reset(after_events=None, after_bytes=None):
                raise Broken(Ending.RESET)
            case kinds.Close(after_events=None, after_bytes=None):
                raise Broken(Ending.CLOSED)
            case kinds.Status() as effect:
                return _refusal(effect)
            case kinds.NoWatchList() if subject.verb == "watch":
                return _without_watch_list(request)
            case effect:
                self._change(fault, effect)
        return None

    def _change(self, fault: Fault, effect: kinds.Effect) -> None:
        """Do to the state what a fault does to it, if anything."""
        storage = self._cluster.storage
        match effect:
            case kinds.Compact():
                storage.compact()
            case kinds.Restore(revision=revision, by=by):
                asked = storage.revision - (by or 0) if revision is None else revision
                oldest = [storage.table(resource).forgotten for resource in storage.resources()]
                storage.restore(min(max([asked, self.floor, *oldest]), storage.revision))
                self._reload()
            case kinds.ClockOffset(seconds=seconds) if self._cluster.clock_offset != seconds:
                self._cluster.clock_offset = seconds
                self._plan.when_removed(fault, self._set_clock_right)
            case _:
                pass

    def _set_clock_right(self) -> None:
        self._cluster.clock_offset = 0.0

    def _dated(self, response: ServerResponse) -> ServerResponse:
        if self._cluster.clock_offset:
            response.headers["Date"] = format_datetime(self._cluster.now(), usegmt=True)
        return response

    # --- replicas

    def _replica(self, fault: Fault) -> Replica:
        effect = fault.effect
        assert isinstance(effect, kinds.Stale | kinds.StaleCache)
        replica = self._replicas.get(fault)
        if replica is not None and not replica.is_over:
            return replica
        if not self._is_observing:
            self._is_observing = True
            self._cluster.storage.observe(self._note)
        made = Replica(self._cluster, revisions=effect.revisions, delay=effect.seconds)
        self._replicas[fault] = made
        if replica is None:
            self._plan.when_removed(fault, functools.partial(self._retire, fault))
        return made

    def _retire(self, fault: Fault) -> None:
        self._replicas.pop(fault).close()

    def _note(self, resource: str, change: Change) -> None:
        for replica in self._replicas.values():
            replica.note(resource, change)

    # --- bodies

    def _spoil(self, response: ServerResponse, struck: Sequence[Fault]) -> None:
        effects = [fault.effect for fault in struck]
        is_stream = not isinstance(response.body, bytes)
        for effect in effects:
            if is_stream:
                self._spoil_events(response, effect)
            elif isinstance(effect, kinds.Corrupt) and isinstance(response.body, bytes):
                response.body = streams.damaged(response.body)
        packings = [effect for effect in effects if isinstance(effect, kinds.Gzip)]
        if packings:
            _pack(response, together=all(packing.together for packing in packings))
        for effect in effects:
            self._spoil_bytes(response, effect)

    def _spoil_events(self, response: ServerResponse, effect: kinds.Effect) -> None:
        if effect == kinds.Gzip(together=True):
            return  # events that are sent together stay together
        chunks = _chunks(response)
        match effect:
            case kinds.DuplicateEvents():
                chunks = streams.duplicated(chunks)
            case kinds.OlderEvents():
                chunks = streams.with_older(chunks)
            case kinds.StrayBookmarks(revisions=revisions):
                chunks = streams.with_bookmarks(chunks, revisions)
            case kinds.NoBookmarks(initial_end=initial_end):
                chunks = streams.without_bookmarks(chunks, initial_end=initial_end)
            case kinds.TruncateFrame(event=event):
                chunks = streams.truncated(chunks, event)
            case kinds.Corrupt(event=event):
                chunks = streams.corrupted(chunks, event)
            case kinds.ErrorEvent(after_events=count):
                chunks = streams.failing(chunks, count, error=_error_event(effect))
            case kinds.EndWatch(after_events=count):
                chunks = streams.ended(chunks, count)
            case kinds.Reset() | kinds.Close() | kinds.HalfOpen() if (
                effect.after_events is not None
            ):
                stop = self._stop(effect)
                chunks = streams.cut_after_events(chunks, effect.after_events, stop=stop)
            case _:
                pass
        response.body = chunks

    def _spoil_bytes(self, response: ServerResponse, effect: kinds.Effect) -> None:
        if isinstance(effect, kinds.Drip):
            response.body = streams.dripping(_chunks(response), effect.size, every=effect.every)
        elif isinstance(effect, kinds.Reset | kinds.Close | kinds.HalfOpen):
            count = effect.after_bytes
            if count is None and effect.after_events is None:
                count = 0
            if count is not None:
                stop = self._stop(effect)
                response.body = streams.cut_after_bytes(_chunks(response), count, stop=stop)

    def _stop(self, effect: kinds.Effect) -> streams.Stop:
        return functools.partial(self._end, _ENDINGS[type(effect)])

    async def _end(self, ending: Ending) -> None:
        if ending is Ending.SILENT:  # until the client goes, or the server stops
            await self._plan.is_over.wait()
            ending = Ending.CLOSED
        raise Broken(ending)


def _is_behind(effect: kinds.Effect, request: ServerRequest) -> bool:
    """Return whether a replica that is behind answers a read."""
    if isinstance(effect, kinds.StaleCache):
        return bool(request.option("resourceVersion"))
    return isinstance(effect, kinds.Stale)


def _chunks(response: ServerResponse) -> Chunks:
    body = response.body
    return streams.whole(body) if isinstance(body, bytes) else apart(body)


def _pack(response: ServerResponse, *, together: bool) -> None:
    if response.headers.get("Content-Encoding"):
        return
    response.headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    body = response.body
    if isinstance(body, bytes) or not together:
        body = _chunks(response)
    response.body = streams.packed(body)


def _refusal(effect: kinds.Status) -> ServerResponse:
    headers = {} if effect.retry_after is None else {"Retry-After": str(effect.retry_after)}
    if effect.text is not None:
        headers["Content-Type"] = "text/plain; charset=utf-8"
        return ServerResponse(status=effect.code, headers=headers, body=effect.text.encode())
    headers["Content-Type"] = "application/json"
    details = None if effect.retry_after is None else {"retryAfterSeconds": effect.retry_after}
    return _answered(_status(effect, details), headers)


def _status(
    effect: kinds.Status | kinds.ErrorEvent, details: dict[str, int] | None = None
) -> StatusError:
    code = effect.code
    reason = _REASONS.get(code, "") if effect.reason is None else effect.reason
    message = effect.message
    if message is None:
        message = f"the server answers {code}: injected by fault plan"
    return StatusError(code, reason, message, details=dict(details) if details else None)


def _error_event(effect: kinds.ErrorEvent) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % encoding.encode(_status(effect).to_dict())


def _without_watch_list(request: ServerRequest) -> ServerResponse | None:
    if "sendInitialEvents" not in request.query:
        return None
    text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    error = field_errors.forbidden("sendInitialEvents", text)
    refusal = invalid_options("ListOptions", [error])
    return _answered(refusal, {"Content-Type": "application/json"})


def _answered(error: StatusError, headers: dict[str, str]) -> ServerResponse:
    body = encoding.encode(error.to_dict()) + b"\n"
    return ServerResponse(status=error.code, headers=headers, body=body)

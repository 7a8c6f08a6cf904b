"""Fault injection: errors between a client and its API server, on request.

.. code-block:: python

    server.faults.add(faults.close(verb="watch", resource="pods", after_events=3, nth=2))

Every function also takes the keywords that select the requests to hit: ``verb``, ``resource``,
``namespace``, ``nth`` and ``times``; see `Match`. Several faults may hit one request. They take
effect in the order in which they were added; the first one that sends an answer of its own or ends
the connection is the last to take effect.

In a file the same faults are a list, in YAML:

.. code-block:: yaml

    - close: {verb: watch, resource: pods, after_events: 3, nth: 2}
    - status: {verb: list, code: 429, retry_after: 2, times: 3}
    - gzip:
"""

from __future__ import annotations

from typing import Unpack

from kinform.apiserver.faults import kinds
from kinform.apiserver.faults.files import dump, load
from kinform.apiserver.faults.kinds import Fault, Match, MatchOptions, Verb
from kinform.apiserver.faults.plan import FaultPlan, random_plan

__all__ = [
    "Fault",
    "FaultPlan",
    "Match",
    "MatchOptions",
    "Verb",
    "clock_offset",
    "close",
    "close_watch",
    "compact",
    "corrupt",
    "drip",
    "dump",
    "duplicate_events",
    "end_watch",
    "error_event",
    "gzip",
    "half_open",
    "latency",
    "load",
    "no_bookmarks",
    "no_watch_list",
    "older_events",
    "random_plan",
    "refuse",
    "reset",
    "restore",
    "stale",
    "stale_cache",
    "stall",
    "status",
    "stray_bookmarks",
    "truncate_frame",
]

# --- connections


def refuse(*, duration: float | None = None, **match: Unpack[MatchOptions]) -> Fault:
    """The server does not listen: connections are refused, for ``duration`` or until removal.

    With keywords of `Match` it begins with the first matching request, whose connection is reset,
    and happens once unless ``times`` is given. Without them it begins when it is added. While it
    lasts, new connections are refused, and a request on an open connection resets it. Answers that
    are being sent continue.
    """
    return Fault(kinds.Refuse(duration=duration), Match(**match))


def reset(
    *,
    after_events: int | None = None,
    after_bytes: int | None = None,
    **match: Unpack[MatchOptions],
) -> Fault:
    """The connection is reset: before the answer, or after this many events or bytes of it."""
    effect = kinds.Reset(after_events=after_events, after_bytes=after_bytes)
    return Fault(effect, Match(**match))


def close(
    *,
    after_events: int | None = None,
    after_bytes: int | None = None,
    **match: Unpack[MatchOptions],
) -> Fault:
    """The connection is closed cleanly, but too early.

    Before the answer, or after this many events or bytes of its body. The final chunk is missing,
    so a client can detect the truncation.
    """
    effect = kinds.Close(after_events=after_events, after_bytes=after_bytes)
    return Fault(effect, Match(**match))


def close_watch(
    *,
    after_events: int | None = None,
    after_bytes: int | None = None,
    **match: Unpack[MatchOptions],
) -> Fault:
    """The same as `close`, for watches only."""
    match["verb"] = "watch"
    return close(after_events=after_events, after_bytes=after_bytes, **match)


def half_open(
    *,
    after_events: int | None = None,
    after_bytes: int | None = None,
    **match: Unpack[MatchOptions],
) -> Fault:
    """The answer begins, then nothing more is sent, and the connection stays open.

    After this many events or bytes of its body; without either, only the headers are sent.
    Removing the fault does not resume the answer.
    """
    effect = kinds.HalfOpen(after_events=after_events, after_bytes=after_bytes)
    return Fault(effect, Match(**match))


def stall(*, duration: float | None = None, **match: Unpack[MatchOptions]) -> Fault:
    """No answer for ``duration``, or until the fault is removed; then the request is handled."""
    return Fault(kinds.Stall(duration=duration), Match(**match))


def latency(seconds: float, *, jitter: float = 0.0, **match: Unpack[MatchOptions]) -> Fault:
    """Every answer comes ``seconds`` later, and up to ``jitter`` more, at random."""
    return Fault(kinds.Latency(seconds=seconds, jitter=jitter), Match(**match))


def drip(*, size: int = 16, every: float = 0.1, **match: Unpack[MatchOptions]) -> Fault:
    """Bodies come slowly: ``size`` bytes, each time after ``every`` seconds, as one chunk."""
    return Fault(kinds.Drip(size=size, every=every), Match(**match))


def gzip(*, together: bool = False, **match: Unpack[MatchOptions]) -> Fault:
    """All bodies are compressed, watches as well, even if the client does not accept it.

    Some proxies do that; kube-apiserver compresses only what the client accepts. Each event of a
    watch is a gzip member of its own. With ``together``, simultaneous events are sent in one chunk
    of several members.
    """
    return Fault(kinds.Gzip(together=together), Match(**match))


# --- content


def truncate_frame(*, event: int = 1, **match: Unpack[MatchOptions]) -> Fault:
    """The watch ends cleanly in the middle of event number ``event``: half of it was sent."""
    return Fault(kinds.TruncateFrame(event=event), Match(**match))


def corrupt(*, event: int = 1, **match: Unpack[MatchOptions]) -> Fault:
    """The byte in the middle of a body, or of a watch's event number ``event``, becomes 0xff.

    The body is then not UTF-8.
    """
    return Fault(kinds.Corrupt(event=event), Match(**match))


def duplicate_events(**match: Unpack[MatchOptions]) -> Fault:
    """Watches send every event twice, except for bookmarks and errors."""
    return Fault(kinds.DuplicateEvents(), Match(**match))


def older_events(**match: Unpack[MatchOptions]) -> Fault:
    """Watches repeat, after every event of an object, the previous event of that object.

    So an older state comes after a newer one, as from a server that begins a watch too early.
    """
    return Fault(kinds.OlderEvents(), Match(**match))


def stray_bookmarks(*, revisions: int = 1, **match: Unpack[MatchOptions]) -> Fault:
    """Watches send a bookmark after every event, ``revisions`` older than the event.

    Also among the initial events, where it does not mark their end.
    """
    return Fault(kinds.StrayBookmarks(revisions=revisions), Match(**match))


def no_bookmarks(*, initial_end: bool = False, **match: Unpack[MatchOptions]) -> Fault:
    """Watches send no bookmarks; with ``initial_end``, not even that after the initial events."""
    return Fault(kinds.NoBookmarks(initial_end=initial_end), Match(**match))


def no_watch_list(**match: Unpack[MatchOptions]) -> Fault:
    """Watches with ``sendInitialEvents`` get a 422, as from a server without the feature."""
    return Fault(kinds.NoWatchList(), Match(**match))


# --- answers


def status(
    code: int,
    *,
    reason: str | None = None,
    message: str | None = None,
    retry_after: int | None = None,
    text: str | None = None,
    **match: Unpack[MatchOptions],
) -> Fault:
    """The request is refused with an error, and not handled.

    Args:
        code: The HTTP status.
        reason: The reason of the Status; by default the usual one of the code.
        message: The message of the Status.
        retry_after: Seconds for a ``Retry-After`` header and the details of the Status.
        text: The body, as plain text and instead of a Status, as proxies send it.
    """
    effect = kinds.Status(
        code=code, reason=reason, message=message, retry_after=retry_after, text=text
    )
    return Fault(effect, Match(**match))


def error_event(
    code: int = 410,
    *,
    after_events: int = 0,
    reason: str | None = None,
    message: str | None = None,
    **match: Unpack[MatchOptions],
) -> Fault:
    """After this many events a watch sends an ERROR event with a Status of this code, and ends."""
    effect = kinds.ErrorEvent(code=code, after_events=after_events, reason=reason, message=message)
    return Fault(effect, Match(**match))


def end_watch(*, after_events: int = 0, **match: Unpack[MatchOptions]) -> Fault:
    """After this many events a watch ends cleanly, as at its timeout."""
    return Fault(kinds.EndWatch(after_events=after_events), Match(**match))


# --- state


def stale(*, revisions: int = 0, seconds: float = 0.0, **match: Unpack[MatchOptions]) -> Fault:
    """Reads are answered by a replica that is behind by this many revisions or seconds.

    Watches, and reads that take any version (``resourceVersion=0``), show what the replica has.
    A read without a version is consistent, as with kube-apiserver: the replica waits until it has
    caught up, three seconds at most, then the storage itself is asked; a streamed list without a
    version is refused after three seconds ("Too large resource version"), and so is a read of a
    version that the replica has not seen. Removing the fault closes the replica, and its watches.
    """
    return Fault(kinds.Stale(revisions=revisions, seconds=seconds), Match(**match))


def stale_cache(
    *, revisions: int = 0, seconds: float = 0.0, **match: Unpack[MatchOptions]
) -> Fault:
    """The same as `stale`, but a read without a version does not wait.

    It gets the newest state at once, as from a server without consistent reads from its cache.
    """
    return Fault(kinds.StaleCache(revisions=revisions, seconds=seconds), Match(**match))


def compact(**match: Unpack[MatchOptions]) -> Fault:
    """Before the request is handled, the history is compacted: older versions get a 410. Once."""
    return Fault(kinds.Compact(), Match(**match))


def restore(
    *, revision: int | None = None, by: int | None = None, **match: Unpack[MatchOptions]
) -> Fault:
    """Before the request is handled, the storage goes back to ``revision``, or by ``by`` revisions.

    As after an etcd restore; watches end. Once. Never further back than the start of the server or
    the last compaction, and never ahead.
    """
    return Fault(kinds.Restore(revision=revision, by=by), Match(**match))


def clock_offset(seconds: float, **match: Unpack[MatchOptions]) -> Fault:
    """From the first matching request on, the server's clock is ahead, or behind if negative.

    It shows in timestamps, ages and ``Date`` headers, until the fault is removed.
    """
    return Fault(kinds.ClockOffset(seconds=seconds), Match(**match))

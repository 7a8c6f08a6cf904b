"""The answers of a server to a list or a watch with given options, from a `FakeHistory`. Pure.

Rule 1: a request that kube-apiserver refuses is refused, for the same reason and with the same
code; the wording is ours.
Rule 2: a list shows one state of the whole collection, also over many pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from kinform.errors import ApiError
from kinform.meta import ObjectName
from kinform.rest.options import ListOptions
from kinform.rest.results import Bookmark, Received, WatchEvent
from kinform.sansio.wire.watch import EventType
from kinform.testing.fakes._history import (
    FakeHistory,
    FakeSelection,
    Revision,
    expired,
    invalid,
    too_large,
)

__all__ = ["FakePage", "Start", "check_watch", "page", "start"]

T = TypeVar("T")


class FakePage(NamedTuple, Generic[T]):
    """A list, or a part of one."""

    version: int
    items: Sequence[Revision[T]]
    continue_token: str = ""
    remaining: int | None = None


class Start(NamedTuple, Generic[T]):
    """The start of a watch: the events it delivers at once, and the version it continues from."""

    version: int
    received: Sequence[Received[T]] = ()
    error: ApiError | None = None
    """The error that ends it before the first event."""


def page(history: FakeHistory[T], options: ListOptions, *, has_watch_cache: bool) -> FakePage[T]:
    """Return the list that ``options`` ask for.

    Raises:
        ResourceExpiredError: an exact version, or a token, that is forgotten.
        ServerTimeoutError: a version that is not there yet.
        InvalidError: options that contradict each other, or cannot be read.
    """
    _check_list(options)
    selection = FakeSelection.of(options)
    version, after = _position(history, options)
    items = [revision for revision in history.at(version) if selection.matches(revision)]
    if after is not None:
        items = [revision for revision in items if _key(revision) > after]
    limit = options.limit or 0
    if has_watch_cache and options.resource_version == "0":
        limit = 0  # the watch cache gives everything, or nothing
    if not limit or len(items) <= limit:
        return FakePage(version, items)
    selects_all = not (options.label_selector or options.field_selector)
    token = f"{version}:{_key(items[limit - 1])}"
    return FakePage(version, items[:limit], token, len(items) - limit if selects_all else None)


def start(history: FakeHistory[T], options: ListOptions, *, ends_initial_events: bool) -> Start[T]:
    """Return how a watch with these ``options`` begins.

    Raises:
        InvalidError: a selector cannot be read.
        ApiError: nor can the version, which is where a real server stumbles (500).
    """
    selection = FakeSelection.of(options)
    asked = _number(options.resource_version or "0", code=500)
    wants_state = options.send_initial_events
    if wants_state is None:
        wants_state = asked == 0
    if wants_state:
        if asked > history.version:
            return Start(asked, error=too_large(asked, history.version))
        received: list[Received[T]] = [
            WatchEvent(EventType.ADDED, revision.entry.object, revision.entry.metadata)
            for revision in history.now()
            if selection.matches(revision)
        ]
        if options.send_initial_events and options.allow_watch_bookmarks and ends_initial_events:
            received.append(Bookmark(str(history.version), initial_events_end=True))
        return Start(history.version, received)
    if asked == 0:
        return Start(history.version)
    if asked < history.oldest:
        return Start(asked, error=expired(asked, history.oldest))
    events = map(selection.event, history.since(asked))
    # A future version is accepted; no event is delivered until that version has passed.
    return Start(max(asked, history.version), [event for event in events if event is not None])


def check_watch(options: ListOptions, *, supports_watch_list: bool) -> None:
    """Refuse a watch whose options contradict each other.

    Raises:
        InvalidError: they do, or a streamed list is requested from a server without them.
    """
    match = options.resource_version_match
    streams = options.send_initial_events is not None
    if streams and not supports_watch_list:
        raise invalid("sendInitialEvents: Forbidden: this server streams no lists")
    if streams and match != "NotOlderThan":
        raise invalid("resourceVersionMatch: with sendInitialEvents it must be NotOlderThan")
    if match and not streams:
        raise invalid("resourceVersionMatch: Forbidden: not for a watch without sendInitialEvents")


def _check_list(options: ListOptions) -> None:
    version, match = options.resource_version, options.resource_version_match
    if options.send_initial_events is not None:
        raise invalid("sendInitialEvents: Forbidden: not for a list")
    if match and not version:
        raise invalid("resourceVersionMatch: Forbidden: not without resourceVersion")
    if match == "Exact" and version == "0":
        raise invalid("resourceVersionMatch: Forbidden: no state is exactly version 0")
    if options.continue_token and version:
        raise invalid("the version stands in the continue token; ask for none", code=400)


def _position(history: FakeHistory[T], options: ListOptions) -> tuple[int, ObjectName | None]:
    """Return which version is shown, and the key behind which it begins."""
    if options.continue_token:
        version, after = _token(options.continue_token)
        return _known(history, version), after
    asked = _number(options.resource_version or "0", code=400)
    if asked > history.version:
        raise too_large(asked, history.version)
    match = options.resource_version_match
    # A limit beside a version means, for historical reasons, that version and no other.
    is_exact = match == "Exact" or (match is None and asked > 0 and bool(options.limit))
    return (_known(history, asked) if is_exact else history.version), None


def _known(history: FakeHistory[T], version: int) -> int:
    if version < history.oldest:
        raise expired(version, history.oldest)
    if version > history.version:  # versions went back since
        raise too_large(version, history.version)
    return version


def _token(text: str) -> tuple[int, ObjectName]:
    version, _, key = text.partition(":")
    try:
        return int(version), ObjectName.parse(key)
    except ValueError as exc:
        raise invalid("the continue token is none of this server's", code=400) from exc


def _number(version: str, *, code: int) -> int:
    if not (version.isascii() and version.isdigit()):
        raise invalid(f"resourceVersion: {version!r} is not a number", code=code)
    return int(version)


def _key(revision: Revision[T]) -> ObjectName:
    return revision.entry.metadata.key

"""Faults: the requests that they match, and their effects. Pure data.

The effects are what the file format and the constructors of `kinform.apiserver.faults` have in
common: the name of a class in small letters with underscores is the name of the fault.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, TypedDict, final, get_args

import msgspec

from kinform.errors import UsageError

__all__ = [
    "EFFECTS",
    "VERBS",
    "Effect",
    "Fault",
    "Match",
    "MatchOptions",
    "Subject",
    "Verb",
    "about_verb",
    "described",
    "hint",
]

Verb: TypeAlias = Literal[
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
]
VERBS: Final[tuple[str, ...]] = get_args(Verb)


@final
class Subject(msgspec.Struct, frozen=True, gc=False):
    """The subject of a request. Empty for requests without objects: discovery, health."""

    verb: str = ""
    plural: str = ""
    group: str = ""
    namespace: str = ""
    """Empty also for all namespaces."""


class MatchOptions(TypedDict, total=False):
    """The keywords of every fault: see `Match`."""

    verb: Verb | None
    resource: str | None
    namespace: str | None
    nth: int | None
    times: int | None


@final
class Match(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The requests that a fault applies to."""

    verb: Verb | None = None
    """None: all verbs, and requests without objects too."""
    resource: str | None = None
    """``pods`` or ``deployments.apps``; without a group it matches any group. None: all."""
    namespace: str | None = None
    """None: any; requests over all namespaces are in none."""
    nth: int | None = None
    """Counting from 1, the first request of these that is hit; those before it are spared."""
    times: int | msgspec.UnsetType | None = msgspec.UNSET
    """The number of requests to hit; None: all. Not given: one if ``nth`` is given, else all."""

    @property
    def is_everything(self) -> bool:
        """Every request is meant, from the first one on."""
        return all(it is None for it in (self.verb, self.resource, self.namespace, self.nth))

    @property
    def count(self) -> int | None:
        """The number of requests to hit; None: no limit."""
        if isinstance(self.times, msgspec.UnsetType):
            return None if self.nth is None else 1
        return self.times

    def covers(self, subject: Subject) -> bool:
        """Return whether a request is one of those that are counted."""
        if self.verb is not None and self.verb != subject.verb:
            return False
        if self.namespace is not None and self.namespace != subject.namespace:
            return False
        if self.resource is None:
            return True
        plural, _, group = self.resource.partition(".")
        return plural == subject.plural and group in {"", subject.group}

    def hits(self, number: int) -> bool:
        """Return whether the request of this number, among those covered, is hit."""
        first, count = self.nth or 1, self.count
        return number >= first and (count is None or number < first + count)


# --- effects; `kinform.apiserver.faults` has the functions that make them, and what they mean


@final
class Refuse(msgspec.Struct, frozen=True, kw_only=True):
    duration: float | None = None


@final
class Reset(msgspec.Struct, frozen=True, kw_only=True):
    after_events: int | None = None
    after_bytes: int | None = None


@final
class Close(msgspec.Struct, frozen=True, kw_only=True):
    after_events: int | None = None
    after_bytes: int | None = None


@final
class HalfOpen(msgspec.Struct, frozen=True, kw_only=True):
    after_events: int | None = None
    after_bytes: int | None = None


@final
class Stall(msgspec.Struct, frozen=True, kw_only=True):
    duration: float | None = None


@final
class TruncateFrame(msgspec.Struct, frozen=True, kw_only=True):
    event: int = 1


@final
class Corrupt(msgspec.Struct, frozen=True, kw_only=True):
    event: int = 1


@final
class Status(msgspec.Struct, frozen=True, kw_only=True):
    code: int
    reason: str | None = None
    message: str | None = None
    retry_after: int | None = None
    text: str | None = None


@final
class ErrorEvent(msgspec.Struct, frozen=True, kw_only=True):
    code: int = 410
    after_events: int = 0
    reason: str | None = None
    message: str | None = None


@final
class EndWatch(msgspec.Struct, frozen=True, kw_only=True):
    after_events: int = 0


@final
class Drip(msgspec.Struct, frozen=True, kw_only=True):
    size: int = 16
    every: float = 0.1


@final
class DuplicateEvents(msgspec.Struct, frozen=True, kw_only=True):
    pass


@final
class OlderEvents(msgspec.Struct, frozen=True, kw_only=True):
    pass


@final
class StrayBookmarks(msgspec.Struct, frozen=True, kw_only=True):
    revisions: int = 1


@final
class NoBookmarks(msgspec.Struct, frozen=True, kw_only=True):
    initial_end: bool = False


@final
class NoWatchList(msgspec.Struct, frozen=True, kw_only=True):
    pass


@final
class Gzip(msgspec.Struct, frozen=True, kw_only=True):
    together: bool = False


@final
class Latency(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    jitter: float = 0.0


@final
class Stale(msgspec.Struct, frozen=True, kw_only=True):
    revisions: int = 0
    seconds: float = 0.0


@final
class StaleCache(msgspec.Struct, frozen=True, kw_only=True):
    revisions: int = 0
    seconds: float = 0.0


@final
class Compact(msgspec.Struct, frozen=True, kw_only=True):
    pass


@final
class Restore(msgspec.Struct, frozen=True, kw_only=True):
    revision: int | None = None
    by: int | None = None


@final
class ClockOffset(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float


Effect: TypeAlias = (
    Refuse
    | Reset
    | Close
    | HalfOpen
    | Stall
    | TruncateFrame
    | Corrupt
    | Status
    | ErrorEvent
    | EndWatch
    | Drip
    | DuplicateEvents
    | OlderEvents
    | StrayBookmarks
    | NoBookmarks
    | NoWatchList
    | Gzip
    | Latency
    | Stale
    | StaleCache
    | Compact
    | Restore
    | ClockOffset
)


def _name(effect: type[Effect]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", effect.__name__).lower()


_ALL: Final[tuple[type[Effect], ...]] = (
    Refuse,
    Reset,
    Close,
    HalfOpen,
    Stall,
    TruncateFrame,
    Corrupt,
    Status,
    ErrorEvent,
    EndWatch,
    Drip,
    DuplicateEvents,
    OlderEvents,
    StrayBookmarks,
    NoBookmarks,
    NoWatchList,
    Gzip,
    Latency,
    Stale,
    StaleCache,
    Compact,
    Restore,
    ClockOffset,
)
EFFECTS: Final[dict[str, type[Effect]]] = {_name(effect): effect for effect in _ALL}
"""All effects by the names they have in files."""

_OF_WATCHES: Final = (
    TruncateFrame,
    ErrorEvent,
    EndWatch,
    DuplicateEvents,
    OlderEvents,
    StrayBookmarks,
    NoBookmarks,
    NoWatchList,
)
_ONCE: Final = (Compact, Restore, Refuse)
_LEAST: Final = {
    "nth": 1,
    "times": 1,
    "duration": 0,
    "after_events": 0,
    "after_bytes": 0,
    "event": 1,
    "size": 1,
    "every": 0,
    "jitter": 0,
    "revisions": 0,
    "revision": 1,
    "by": 0,
    "retry_after": 0,
}


@final
class Fault:
    """One fault: an effect, on some requests. Made by the functions of `kinform.apiserver.faults`.

    Two of them are never equal: each counts for itself.

    Raises:
        UsageError: an argument is invalid.
    """

    __slots__ = ("effect", "hits", "match", "seen")

    def __init__(self, effect: Effect, match: Match | None = None) -> None:
        match = match or Match()
        self.effect: Final = effect
        name = self.name
        _check(name, effect, match)
        if match.verb is None and _is_of_watches(effect):
            match = msgspec.structs.replace(match, verb="watch")
        if isinstance(effect, _ONCE) and match.times is msgspec.UNSET:
            match = msgspec.structs.replace(match, times=1)
        self.match: Final = match
        self.seen: int = 0
        """The number of requests that matched so far."""
        self.hits: int = 0
        """The number of requests that were hit so far."""

    @property
    def name(self) -> str:
        """The name of the fault in a file."""
        return _name(type(self.effect))

    def strikes(self, subject: Subject) -> bool:
        """Count a request; tell whether it is hit."""
        if not self.match.covers(subject):
            return False
        self.seen += 1
        if not self.match.hits(self.seen):
            return False
        self.hits += 1
        return True

    def options(self) -> dict[str, object]:
        """Return all that is not as it is without saying, as in a file."""
        found: dict[str, object] = {}
        for part in (self.match, self.effect):
            for field in msgspec.structs.fields(type(part)):
                value = getattr(part, field.name)
                if value is not msgspec.UNSET and value != field.default:
                    found[field.name] = value
        if self.match.times is None:
            found["times"] = None
        return found

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"faults.{self.name}({options})"


def _is_of_watches(effect: Effect) -> bool:
    counts_events = isinstance(effect, Reset | Close | HalfOpen) and effect.after_events is not None
    return counts_events or isinstance(effect, _OF_WATCHES)


def _check_types(name: str, part: Effect | Match) -> None:
    """Refuse what no annotation allows: a fault from a file and one from a program are alike."""
    given = {
        key: value
        for key, value in msgspec.structs.asdict(part).items()
        if value is not msgspec.UNSET
    }
    try:
        msgspec.convert(given, type(part))
    except msgspec.ValidationError as exc:
        raise UsageError(f"{name}: {described(exc)}") from exc


def _check(name: str, effect: Effect, match: Match) -> None:
    if problem := about_verb(match.verb, VERBS):
        raise UsageError(f"{name}: {problem}")
    _check_types(name, match)
    _check_types(name, effect)
    for part in (match, effect):
        for field in part.__struct_fields__:
            value = getattr(part, field)
            least = _LEAST.get(field)
            if isinstance(value, int | float) and least is not None and not value >= least:
                raise UsageError(f"{name}: {field}: must be at least {least}, got {value!r}")
    if isinstance(effect, Status | ErrorEvent) and not 400 <= effect.code <= 599:
        raise UsageError(f"{name}: code: must be 400 to 599, got {effect.code!r}")
    if isinstance(effect, Restore) and (effect.revision is None) == (effect.by is None):
        raise UsageError(f"{name}: give either `revision` or `by`")
    if isinstance(effect, Stale | StaleCache) and bool(effect.revisions) == bool(effect.seconds):
        raise UsageError(f"{name}: give either `revisions` or `seconds`")
    if isinstance(effect, Reset | Close | HalfOpen) and None not in {
        effect.after_events,
        effect.after_bytes,
    }:
        raise UsageError(f"{name}: give `after_events` or `after_bytes`, not both")


# --- messages about faults that cannot be used

_PATH: Final = re.compile(r"^(?P<why>.*?)(?: - at `\$\.?(?P<key>[^`]*)`)?$")


def hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about a name that is unknown: the nearest one, or all.

    >>> hint("clos", ["close", "gzip"])
    "; did you mean 'close'?"
    >>> hint("xyz", ["close", "gzip"])
    '; expected one of close, gzip'
    """
    nearest = difflib.get_close_matches(name, known, n=1)
    if nearest:
        return f"; did you mean {nearest[0]!r}?"
    return f"; expected one of {', '.join(sorted(known))}"


def about_verb(verb: object, known: Iterable[str]) -> str | None:
    """Return the errors of a verb, with all there are; None: nothing.

    >>> about_verb("lst", ["get", "list"])
    "verb: there is no 'lst', did you mean 'list'? There are get, list"
    """
    known = list(known)
    if verb is None or verb in known:
        return None
    nearest = difflib.get_close_matches(str(verb), known, n=1)
    guess = f", did you mean {nearest[0]!r}? There" if nearest else "; there"
    return f"verb: there is no {verb!r}{guess} are {', '.join(known)}"


def described(error: msgspec.ValidationError) -> str:
    """Return what is wrong, with the key in front."""
    found = _PATH.match(str(error))
    if found is None:
        return str(error)
    why = found["why"].replace("Expected", "expected", 1).replace("Object missing", "missing")
    return f"{found['key']}: {why}" if found["key"] else why

"""The history: every state that every object was ever in, as the server itself has it.

What clients say is held against it. A restore adds to it: what is so again is so anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, final

import msgspec

from kinform.apiserver.serializer.json_values import at
from kinform.apiserver.storage.versioned_store import Change, Storage, Stored
from kinform.objects.object import Object

__all__ = ["History", "ObjectState", "Sees", "StateSince", "everything"]


@final
class ObjectState(msgspec.Struct, frozen=True, gc=False):
    """One state of one object, with the fields that distinguish it from all other states."""

    uid: str
    version: str
    team: str = ""
    value: str = ""

    def __str__(self) -> str:
        return f"{self.uid[:8]} rv={self.version} team={self.team} value={self.value}"


@final
class StateSince(msgspec.Struct, frozen=True, gc=False):
    """From here on an object was in this state, or deleted. ``final`` is its last state."""

    at: float
    state: ObjectState | None
    final: ObjectState | None = None


Sees: TypeAlias = Callable[[ObjectState], bool]
"""A selector, as a predicate on states."""


def everything(state: ObjectState) -> bool:  # noqa: ARG001 - a Sees
    """See all states."""
    return True


@final
class History:
    """Records one resource of a storage, whose objects have a value at ``value_at``."""

    def __init__(
        self,
        storage: Storage,
        resource: str,
        *,
        value_at: Sequence[str],
        time: Callable[[], float],
    ) -> None:
        self._table = storage.table(resource)
        self._resource = resource
        self._value_at = value_at
        self._time = time
        self._moments: defaultdict[str, list[StateSince]] = defaultdict(list)
        self.restores: int = 0
        """The number of restores of the server."""
        self.restored_at: float = float("-inf")
        for stored in self._table.now():
            self._moments[stored.key].append(StateSince(time(), self._state(stored)))
        storage.observe(self._note)

    def time(self) -> float:
        """Return what time it is."""
        return self._time()

    @property
    def keys(self) -> Sequence[str]:
        """All keys there ever were."""
        return tuple(self._moments)

    def moments(self, key: str) -> Sequence[StateSince]:
        """Return the history of one object, and of others of its name."""
        return self._moments.get(key, ())

    def since(self, key: str, at: float) -> Sequence[ObjectState | None]:
        """Return the state an object had at some time, and all later ones; None: not there."""
        moments = self.moments(key)
        before = [moment.state for moment in moments if moment.at <= at]
        later = [moment.state for moment in moments if moment.at > at]
        return [before[-1] if before else None, *later]

    def now(self, sees: Sees = everything) -> Mapping[str, ObjectState]:
        """Return the current states."""
        last = {key: moments[-1].state for key, moments in self._moments.items()}
        return {key: state for key, state in last.items() if state is not None and sees(state)}

    def state_of(self, obj: Object) -> ObjectState:
        """Return the state that a client has."""
        value = obj.at(*self._value_at, default="")
        return ObjectState(obj.uid, obj.resource_version, obj.labels.get("team", ""), str(value))

    def note_restore(self) -> None:
        """Learn that the storage is as it was before."""
        self.restores += 1
        self.restored_at = self._time()
        now = {stored.key: self._state(stored) for stored in self._table.now()}
        for key in {**self._moments, **now}:
            state, moments = now.get(key), self._moments[key]
            if not moments or moments[-1].state != state:
                moments.append(
                    StateSince(self._time(), state, moments[-1].state if moments else None)
                )

    def _note(self, resource: str, change: Change) -> None:
        if resource != self._resource:
            return
        now, state = self._time(), self._state(change.new)
        moment = StateSince(now, None, state) if change.is_delete else StateSince(now, state)
        self._moments[change.key].append(moment)

    def _state(self, stored: Stored) -> ObjectState:
        value = at(msgspec.json.decode(stored.raw), *self._value_at)
        team = stored.labels.get("team", "")
        return ObjectState(
            stored.uid, str(stored.revision), team, "" if value is None else str(value)
        )

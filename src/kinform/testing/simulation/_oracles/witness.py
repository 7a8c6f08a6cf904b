"""A witness: an event handler that checks each event against the history."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar, final

from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.cache.shared_informer import SharedInformer
from kinform.errors import DecodeError
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.sansio.queue import coalesce
from kinform.testing.simulation._world.history import History, ObjectState, Sees, everything

__all__ = ["Divergence", "Witness"]

E = TypeVar("E", Added[Object], Updated[Object], Deleted[Object])


class Divergence(AssertionError):
    """A broken promise. ``oracle`` names the promise, in one word."""

    def __init__(self, oracle: str, message: str) -> None:
        super().__init__(f"{oracle}: {message}")
        self.oracle = oracle


@final
class Witness:
    """Checks the events of one informer.

    Promises checked: delivered states existed, in this order (``order``); an object is added once,
    before it is updated or deleted (``pairing``); another object of the same name is never an
    update (``identity``); once it has synced, all objects that existed since the start were
    delivered (``sync``); and at the end the delivered state, the cache and the server are equal
    (``equality``).

    Args:
        informer: The informer to check; it is not started yet.
        history: The true states.
        report: Called with each divergence.
        sees: The informer's selector.
        damages: Whether objects may become unreadable on their way.
        garbles: Whether anything may; otherwise all bytes can be read (``reading``).
        lags: Whether a list of any version may show an old state, of before the informer's start.
        resyncs: Whether objects are delivered again unchanged.
        before: Awaited before each event is checked.
        pauses: Seconds that handling an event takes; one of these, at random.
        name: The name of the witness, for messages.
    """

    def __init__(
        self,
        informer: SharedInformer[Object],
        *,
        history: History,
        report: Callable[[Divergence], None],
        sees: Sees = everything,
        damages: bool = False,
        garbles: bool = False,
        lags: bool = False,
        resyncs: bool = False,
        before: Callable[[], Awaitable[None]] | None = None,
        pauses: Sequence[float] = (0.0,),
        dice: random.Random | None = None,
        name: str,
    ) -> None:
        self.informer = informer
        self.name = name
        self._history = history
        self._report = report
        self._sees = sees
        self._believed: dict[str, ObjectState] = {}
        self._place: dict[str, int] = {}
        self._version = 0
        self._backwards = 0  # how often the cache went back
        self._noticed = history.restores  # how many restores the cache may have noticed
        self._damages = damages
        self._garbles = damages or garbles
        self._lags = lags
        self._resyncs = resyncs
        self._began = history.time()
        self._delivered: set[str] = set()
        self._has_synced = False
        self._before = before
        self._pauses = pauses
        self._dice = dice or random.Random(0)
        self._registration = informer.add_event_handler(
            on_add=self._minded(self._added),
            on_update=self._minded(self._updated),
            on_delete=self._minded(self._deleted),
            name="witness",
        )

    @property
    def believed(self) -> Mapping[str, ObjectState]:
        """The current objects according to the delivered events."""
        return self._believed

    # --- its event handler

    def _minded(self, handle: Callable[[E], Awaitable[None]]) -> Callable[[E], Awaitable[None]]:
        """Return ``handle``; an error in it is a divergence, where an informer would log it."""

        async def minded(event: E) -> None:
            try:
                await handle(event)
            except Exception as exc:
                self._fail("witness", f"{type(exc).__name__} at {event.key}: {exc}")
                raise

        return minded

    async def _added(self, event: Added[Object]) -> None:
        await self._pause()
        key, state = str(event.key), self._history.state_of(event.obj)
        if key in self._believed:
            self._fail("pairing", f"{key} was added twice: {state}, after {self._believed[key]}")
        self._delivered.add(key)
        self._advance(key, state)

    async def _updated(self, event: Updated[Object]) -> None:
        await self._pause()
        state_of = self._history.state_of
        key, old, new = str(event.key), state_of(event.old), state_of(event.new)
        had = self._believed.get(key)
        if had is None:
            self._fail("pairing", f"{key} was updated before it was added: {new}")
        elif old != had:
            self._fail("pairing", f"{key} was updated from {old}, but was last delivered as {had}")
        if old.uid != new.uid:
            self._fail(
                "identity",
                f"{key} is another object, delivered as an update: {old}, {new}",
            )
        # An object that could not be read for a while, and went and came unseen, is as it was.
        may_be_same = self._history.restores or self._damages or self._resyncs
        if old == new and not may_be_same:
            self._fail("pairing", f"{key} was updated without a change: {new}")
        self._advance(key, new)

    async def _deleted(self, event: Deleted[Object]) -> None:
        await self._pause()
        key, state = str(event.key), self._history.state_of(event.obj)
        had = self._believed.pop(key, None)
        if had is None:
            self._fail("pairing", f"{key} was deleted before it was added: {state}")
            return
        if had.uid != state.uid:
            self._fail("identity", f"{key}: {state} was deleted, but {had} was delivered last")
        if self._damages and event.final_state_unknown:
            return  # quarantined: it existed, and may be delivered again in that state
        moments, place = self._history.moments(key), self._place.get(key, 0)
        for number in range(place, len(moments)):
            now = moments[number].state
            if now is None or now.uid != had.uid or not self._sees(now):
                self._place[key] = number
                break
        else:
            self._fail("order", f"{key} was delivered as deleted, but exists: {had}")
            return
        if self._sees is not everything:
            return  # an object that left the selection is shown in its last selected state
        # A coalesced state may lie between the last delivered state and the final one.
        if state != had and all(state not in {m.state, m.final} for m in moments[place:]):
            self._fail("order", f"{key} was last delivered as {had}, and deleted as {state}")

    def hurry(self) -> None:
        """Do not pause in the handler any more."""
        self._pauses = (0.0,)

    async def _pause(self) -> None:
        if self._before is not None:
            await self._before()
        if seconds := self._dice.choice(self._pauses):
            await asyncio.sleep(seconds)

    def _advance(self, key: str, state: ObjectState) -> None:
        self._believed[key] = state
        moments, place = self._history.moments(key), self._place.get(key, 0)
        for number in range(place, len(moments)):
            if moments[number].state == state:
                self._place[key] = number
                break
        else:
            is_past = any(moment.state == state for moment in moments[:place])
            reason = "is older than a delivered state" if is_past else "never existed"
            self._fail("order", f"{key} was delivered as {state}, which {reason}")
        if not self._sees(state):
            self._fail("selection", f"{key} is not selected: {state}")

    # --- checks

    def look(self) -> None:
        """Check the promises that hold at every moment."""
        informer = self.informer
        statistics = informer.statistics()
        version = int(informer.last_sync_resource_version or 0)
        if version < self._version:
            went = f"the cache went back from {self._version} to {version}"
            self._backwards += 1
            if self._noticed == self._history.restores:
                self._fail("version", went)
            elif self._backwards > statistics.reflector.regressions:
                self._fail("version", f"{went} without counting a regression")
            self._noticed = self._history.restores
        self._version = version
        error = statistics.reflector.last_error
        if isinstance(error, DecodeError) and not self._garbles:
            self._fail("reading", f"an intact response could not be read: {error}")
        if statistics.unexpected_ends:
            self._fail("parts", "a reflector, pump or handler ended though nothing stopped it")
        bound = coalesce.HIGH_WATER + 4 * len(self._history.keys)
        for handler in statistics.handlers:
            if handler.pending > bound:
                self._fail("buffers", f"{handler.name} has {handler.pending} events waiting")
        if self._registration.has_synced and not self._has_synced:
            self._has_synced = True
            self._check_sync()
        there: dict[str | None, set[ObjectName]] = {"red": set(), "blue": set()}
        for one in informer.lister.list():
            there.setdefault(one.labels.get("team"), set()).add(one.key)
        for team in ("red", "blue"):
            filed = {one.key for one in informer.indexer.by_index("team", team)}
            if filed != there[team]:
                known, found = sorted(map(str, there[team])), sorted(map(str, filed))
                self._fail("index", f"team {team} has {known}, the index {found}")

    def _check_sync(self) -> None:
        if self._lags or self._damages or self._history.restored_at >= self._began:
            return  # the list may have shown another state
        for key in self._history.keys:
            states = self._history.since(key, self._began)
            was_there = all(state is not None and self._sees(state) for state in states)
            if was_there and key not in self._delivered:
                self._fail("sync", f"{key} existed all the time, but was not delivered")

    def difference(self) -> str:
        """Return a difference between server, cache and delivered events; ``""`` if none."""
        if apart := self.informer.unreadable:  # a corrupted object must be read again
            return f"{self.name}: {', '.join(map(str, apart))} cannot be read"
        server = self._history.now(self._sees)
        cache = {str(one.key): self._history.state_of(one) for one in self.informer.lister.list()}
        for name, found in (("the cache", cache), ("the delivered events", self._believed)):
            for key in sorted({*server, *found}):
                if server.get(key) != found.get(key):
                    return (
                        f"{self.name}: {key} is {server.get(key)} on the server, "
                        f"{found.get(key)} in {name}"
                    )
        return ""

    def _fail(self, oracle: str, message: str) -> None:
        self._report(Divergence(oracle, f"{self.name}: {message}"))

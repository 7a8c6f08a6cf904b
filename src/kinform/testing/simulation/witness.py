"""A witness: a handler that checks all it is told against the history, while it is told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar, final

from kinform.cache.events import Added, Deleted, Updated
from kinform.cache.informer import SharedInformer
from kinform.errors import DecodeError
from kinform.meta import ObjectName
from kinform.objects import Object
from kinform.sansio import coalesce
from kinform.testing.simulation.history import History, Sees, State, everything

__all__ = ["Divergence", "Witness"]

E = TypeVar("E", Added[Object], Updated[Object], Deleted[Object])


class Divergence(AssertionError):
    """Something was not as promised. ``oracle`` is the promise, in one word."""

    def __init__(self, oracle: str, message: str) -> None:
        super().__init__(f"{oracle}: {message}")
        self.oracle = oracle


@final
class Witness:
    """Follows one informer.

    Promises checked: what is told was so, in the order in which it was so (``order``); an object
    comes before it changes or goes, once (``pairing``); another object of the same name is never an
    update (``identity``); once it is said to have synced, it was told of all that was there at the
    start and ever since (``sync``); and at the end what was told, the cache and the server are the
    same (``equality``).

    Args:
        informer: Whose handler this is; it is not started yet.
        history: What was so.
        report: Told what is wrong.
        sees: What the informer's selector lets through.
        damages: Whether objects may become unreadable on their way.
        garbles: Whether anything may; else all that comes can be read (``reading``).
        lags: Whether a list of any version may show an old state, of before the informer's start.
        resyncs: Whether objects are told again as they were.
        before: Awaited before each event is looked at.
        pauses: How many seconds it may take to be told something; one of these, at random.
        name: Who this is, for messages.
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
        self._believed: dict[str, State] = {}
        self._place: dict[str, int] = {}
        self._version = 0
        self._backwards = 0  # how often the cache went back
        self._noticed = history.restores  # how many restores the cache may have noticed
        self._damages = damages
        self._garbles = damages or garbles
        self._lags = lags
        self._resyncs = resyncs
        self._began = history.time()
        self._told: set[str] = set()
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
    def believed(self) -> Mapping[str, State]:
        """What is there, by all that was told."""
        return self._believed

    # --- what it is told

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
        self._told.add(key)
        self._advance(key, state)

    async def _updated(self, event: Updated[Object]) -> None:
        await self._pause()
        state_of = self._history.state_of
        key, old, new = str(event.key), state_of(event.old), state_of(event.new)
        had = self._believed.get(key)
        if had is None:
            self._fail("pairing", f"{key} was updated before it was added: {new}")
        elif old != had:
            self._fail("pairing", f"{key} was updated from {old}, and had been {had}")
        if old.uid != new.uid:
            self._fail("identity", f"{key} is another object, and that was an update: {old}, {new}")
        # An object that could not be read for a while, and went and came unseen, is as it was.
        may_be_same = self._history.restores or self._damages or self._resyncs
        if old == new and not may_be_same:
            self._fail("pairing", f"{key} was updated, and is as it was: {new}")
        self._advance(key, new)

    async def _deleted(self, event: Deleted[Object]) -> None:
        await self._pause()
        key, state = str(event.key), self._history.state_of(event.obj)
        had = self._believed.pop(key, None)
        if had is None:
            self._fail("pairing", f"{key} was deleted before it was added: {state}")
            return
        if had.uid != state.uid:
            self._fail("identity", f"{key}: {state} was deleted, and {had} was there")
        if self._damages and event.final_state_unknown:
            return  # set apart, it seems: it was there, and may be told again as it was then
        moments, place = self._history.moments(key), self._place.get(key, 0)
        for number in range(place, len(moments)):
            now = moments[number].state
            if now is None or now.uid != had.uid or not self._sees(now):
                self._place[key] = number
                break
        else:
            self._fail("order", f"{key} was told to be deleted, and is there: {had}")
            return
        if self._sees is not everything:
            return  # what left the selection is shown as it was, in the version in which it left
        # What was merged away may lie between what was told last and how it ended.
        if state != had and all(state not in {m.state, m.final} for m in moments[place:]):
            self._fail("order", f"{key} was last told as {had}, and deleted as {state}")

    def hurry(self) -> None:
        """Take no time any more."""
        self._pauses = (0.0,)

    async def _pause(self) -> None:
        if self._before is not None:
            await self._before()
        if seconds := self._dice.choice(self._pauses):
            await asyncio.sleep(seconds)

    def _advance(self, key: str, state: State) -> None:
        self._believed[key] = state
        moments, place = self._history.moments(key), self._place.get(key, 0)
        for number in range(place, len(moments)):
            if moments[number].state == state:
                self._place[key] = number
                break
        else:
            is_past = any(moment.state == state for moment in moments[:place])
            told = "is of the past" if is_past else "never was"
            self._fail("order", f"{key} was told as {state}, which {told}")
        if not self._sees(state):
            self._fail("selection", f"{key} is not selected: {state}")

    # --- what can be looked at

    def look(self) -> None:
        """Check what holds at every moment."""
        informer = self.informer
        statistics = informer.statistics()
        version = int(informer.last_sync_resource_version or 0)
        if version < self._version:
            went = f"the cache went back from {self._version} to {version}"
            self._backwards += 1
            if self._noticed == self._history.restores:
                self._fail("version", went)
            elif self._backwards > statistics.reflector.regressions:
                self._fail("version", f"{went}, and did not say so")
            self._noticed = self._history.restores
        self._version = version
        error = statistics.reflector.last_error
        if isinstance(error, DecodeError) and not self._garbles:
            self._fail("reading", f"what came whole could not be read: {error}")
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
            return  # what it was shown may have been something else
        for key in self._history.keys:
            states = self._history.since(key, self._began)
            was_there = all(state is not None and self._sees(state) for state in states)
            if was_there and key not in self._told:
                self._fail("sync", f"{key} was there all the time, and has not been told")

    def difference(self) -> str:
        """Return what is not equal: the server, the cache and what was told; ``""`` if all is."""
        if apart := self.informer.unreadable:  # what was damaged on its way is to be asked for
            return f"{self.name}: {', '.join(map(str, apart))} cannot be read"
        server = self._history.now(self._sees)
        cache = {str(one.key): self._history.state_of(one) for one in self.informer.lister.list()}
        for name, found in (("the cache", cache), ("what was told", self._believed)):
            for key in sorted({*server, *found}):
                if server.get(key) != found.get(key):
                    return (
                        f"{self.name}: {key} is {server.get(key)} on the server, "
                        f"{found.get(key)} in {name}"
                    )
        return ""

    def _fail(self, oracle: str, message: str) -> None:
        self._report(Divergence(oracle, f"{self.name}: {message}"))

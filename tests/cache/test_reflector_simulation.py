"""Any mix of faults, then quiet: the store equals the server, and nobody was asked too often."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.reflector import Reflector
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.store.store import Store
from kinform.errors import DecodeError, ResourceVersionRegressed, SourceError
from kinform.meta import ObjectMeta
from kinform.rest.results import Unreadable
from kinform.sansio.versions import is_older
from kinform.sansio.wire.watch import EventType
from kinform.testing import FakeListWatch
from kinform.testing.virtual_time import run
from tests.cache.support_reflector import (
    CUT,
    REFUSED,
    Front,
    Told,
    assert_in_budget,
    config,
    running,
    said,
    shown,
    there,
    turns,
    until,
)

ERRORS = [
    *(said(code) for code in (400, 401, 403, 404, 405, 410, 422, 429, 500, 502, 503, 504)),
    CUT,
    REFUSED,
    DecodeError("rubbish"),
    SourceError("odd"),
    ValueError("odd"),
]


class World:
    """A server, what stands before it, and what may befall both."""

    def __init__(self) -> None:
        self.source = FakeListWatch()
        self.front = Front(self.source)
        self.count = 0

    def names(self) -> list[str]:
        return [key.name for key in self.source.entries]

    def one(self, number: int) -> str | None:
        there = self.names()
        return there[number % len(there)] if there else None

    # Writes.

    def add(self, number: int) -> None:
        self.count += 1
        self.source.add(config(f"c{self.count}", str(number)))

    def modify(self, number: int) -> None:
        if (name := self.one(number)) is not None:
            self.count += 1
            self.source.modify(config(name, str(self.count)))

    def delete(self, number: int) -> None:
        if (name := self.one(number)) is not None:
            self.source.delete(f"default/{name}")

    def recreate(self, number: int) -> None:
        if (name := self.one(number)) is not None:
            self.source.delete(f"default/{name}")
            self.source.add(config(name, "anew"))

    # What the network and the server do.

    def bookmark(self, number: int) -> None:
        self.source.bookmark()

    def close(self, number: int) -> None:
        self.source.close_watches()

    def fail(self, number: int) -> None:
        self.source.close_watches(ERRORS[number % len(ERRORS)])

    def refuse_lists(self, number: int) -> None:
        self.source.fail_lists(*[ERRORS[number % len(ERRORS)]] * (number % 3 + 1))

    def refuse_watches(self, number: int) -> None:
        self.source.fail_watches(*[ERRORS[number % len(ERRORS)]] * (number % 3 + 1))

    def refuse_all(self, number: int) -> None:
        self.front.breaks = ERRORS[number % len(ERRORS)]
        self.source.close_watches(CUT)

    def end_at_once(self, number: int) -> None:
        self.front.ends = ERRORS[number % len(ERRORS)] if number % 2 else True
        self.source.close_watches()

    def hang(self, number: int) -> None:
        self.source.hang_lists() if number % 2 else self.source.hang_watches()

    def freeze(self, number: int) -> None:
        self.source.freeze_watches()

    def compact(self, number: int) -> None:
        self.source.compact()

    def no_streams(self, number: int) -> None:
        self.source.supports_watch_list = not self.source.supports_watch_list

    def no_end_bookmarks(self, number: int) -> None:
        self.source.ends_initial_events = not self.source.ends_initial_events

    def expire_at_start(self, number: int) -> None:
        self.source.expires_at_start = not self.source.expires_at_start

    def lose(self, number: int) -> None:
        """Change something while nobody looks, for longer than the server remembers."""
        if (name := self.one(number)) is not None:
            self.source.modify(config(name, "unseen"), drop=True)
            self.source.compact()
            self.source.close_watches(CUT)

    def poison(self, number: int) -> None:
        """Let an object be unreadable for one version; without a name, nobody knows which."""
        if (name := self.one(number)) is not None:
            self.source.advance()
            named = ObjectMeta(
                name=name if number % 3 else "",
                namespace="default",
                resource_version=self.source.resource_version,
            )
            self.source.send(Unreadable(named, DecodeError("too deep"), EventType.MODIFIED))
            self.source.modify(config(name, "well again"))

    def heal(self, number: int) -> None:
        self.source.heal()
        self.front.ends, self.front.breaks = False, None

    async def restore(self, reflector: Reflector[Any]) -> None:
        """Go back by thousands of versions, seen by a reflector that was up to date."""
        if self.source.open_watches and reflector.statistics().phase == "watch":
            before = self.source.resource_version
            self.source.advance(5_000)
            self.source.modify(config(self.one(0) or "none", "lost")) if self.names() else None
            self.source.bookmark()
            await turns()
            if reflector.last_sync_resource_version == self.source.resource_version:
                self.source.restore(before)
                self.source.close_watches(REFUSED)


OPERATIONS: list[Callable[[World, int], None]] = [
    World.add,
    World.add,
    World.modify,
    World.modify,
    World.delete,
    World.recreate,
    World.bookmark,
    World.close,
    World.fail,
    World.fail,
    World.refuse_lists,
    World.refuse_watches,
    World.refuse_all,
    World.end_at_once,
    World.hang,
    World.freeze,
    World.compact,
    World.no_streams,
    World.no_end_bookmarks,
    World.expire_at_start,
    World.lose,
    World.poison,
    World.heal,
]
steps = st.lists(
    st.tuples(
        st.sampled_from([*OPERATIONS, World.restore]),
        st.integers(0, 60),
        st.sampled_from([0.0, 0.0, 0.1, 0.9, 3.0, 20.0, 70.0, 400.0]),
    ),
    max_size=25,
)


async def simulate(
    schedule: list[tuple[Any, int, float]],
    options: ReflectorOptions,
    *,
    rand: float,
    reuses: bool,
) -> None:
    world, store, told = World(), Store[Any](), Told()
    for number in range(3):
        world.add(number)
    reflector = Reflector(
        world.front,
        store,
        options=options,
        rand=lambda: rand,
        known=store.entries if reuses else None,
        watch_error_handler=told,
    )
    versions: list[str] = []
    async with running(reflector):
        for operation, number, pause in schedule:
            if operation is World.restore:
                await world.restore(reflector)
            else:
                operation(world, number)
            await asyncio.sleep(pause)
            versions.append(reflector.last_sync_resource_version)
        world.heal(0)
        world.source.supports_watch_list = world.source.ends_initial_events = True
        # The longest way: a frozen watch, a back-off, an unfinished stream, a back-off.
        await until(lambda: shown(store) == there(world.source), within=1500)
        await asyncio.sleep(100)
        assert shown(store) == there(world.source)
        versions.append(reflector.last_sync_resource_version)
    assert world.source.open_watches == 0
    assert not reflector.unreadable or all(not key.name for key in reflector.unreadable)
    assert_in_budget(world.source.requests)
    went_back = [(a, b) for a, b in itertools.pairwise(versions) if is_older(b, a)]
    regressed = [error for error in told.errors if isinstance(error, ResourceVersionRegressed)]
    assert len(went_back) <= len(regressed), "versions go back only if somebody is told"


@pytest.mark.slow
@given(
    schedule=steps,
    streams=st.booleans(),
    page_size=st.sampled_from([None, 1, 2]),
    rand=st.sampled_from([0.0, 0.5, 0.99]),
    reuses=st.booleans(),
)
def test_whatever_happens_the_store_equals_the_server_when_it_is_quiet_again(
    schedule: list[tuple[Any, int, float]],
    streams: bool,
    page_size: int | None,
    rand: float,
    reuses: bool,
) -> None:
    """F-I7, F-I8, F-I11, F-I12."""
    options = ReflectorOptions(stream_lists=streams, page_size=page_size)
    run(simulate(schedule, options, rand=rand, reuses=reuses))

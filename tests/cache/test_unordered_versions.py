"""Aggregated servers whose versions are numbers without an order: the last event counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.reflector import Reflector
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.store import Store
from kinform.sansio.versions import is_complete
from kinform.testing import in_virtual_time
from tests.cache.support_reflector import (
    FOREVER,
    PLAIN,
    Script,
    end,
    entry,
    event,
    listed,
    running,
    until,
)


def held(informer: SharedInformer[Any]) -> dict[str, str]:
    return {one.name: one.resource_version for one in informer.lister.list()}


@pytest.mark.parametrize("version", ["5", "", "0"])
@in_virtual_time
async def test_events_with_smaller_versions_are_applied_where_versions_have_no_order(
    version: str,
) -> None:
    """A list that is older than its objects was not numbered by Kubernetes' storage."""
    source = Script(
        lists=[listed(version, entry("a", 900), entry("b", 3))],
        watches=[
            (
                event("MODIFIED", "a", 20),
                event("MODIFIED", "a", 7),
                event("DELETED", "b", 1),
                event("ADDED", "b", 1, uid="another"),
                FOREVER,
            )
        ],
    )
    async with SharedInformer(source, options=PLAIN) as informer:
        await until(lambda: held(informer) == {"a": "7", "b": "1"})


@in_virtual_time
async def test_a_watch_resumes_from_the_last_event_where_versions_have_no_order() -> None:
    source = Script(
        lists=[listed(5, entry("a", 900))],
        watches=[(event("MODIFIED", "a", 20), event("MODIFIED", "a", 7), 10.0), (FOREVER,)],
    )
    async with running(Reflector(source, Store[Any](), options=PLAIN)):
        await until(lambda: len(source.asked("watch")) == 2, within=130)
    assert [one.resource_version for one in source.asked("watch")] == ["5", "7"]


@pytest.mark.parametrize("options", [PLAIN, None], ids=["plain", "streamed"])
@in_virtual_time
async def test_events_with_smaller_versions_are_replays_where_versions_have_an_order(
    options: Any,
) -> None:
    """F-R22: Kubernetes' own versions."""
    replays = (event("MODIFIED", "a", 20), event("MODIFIED", "a", 7), FOREVER)
    source = Script(
        lists=[listed(9, entry("a", 5))],
        watches=[replays if options else (event("ADDED", "a", 5), end(9), *replays)],
        supports_watch_list=options is None,
    )
    async with SharedInformer(source, options=options) as informer:
        await until(lambda: informer.statistics().reflector.events == 2)
        assert held(informer) == {"a": "20"}
        assert informer.last_sync_resource_version == "20"


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_a_list_shows_nothing_newer_than_itself(version: int, newest: int) -> None:
    assert is_complete(str(version), str(newest)) == (newest <= version)

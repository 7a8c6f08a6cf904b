"""The first sync of 5,000 objects, by every way a server has to offer: always the same cache."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from typing import NamedTuple

import pytest
import pytest_asyncio

from kinform import Object, ReflectorOptions, SharedInformer
from kinform.testing import ControlPlane, Snapshot
from kinform.testing.plugin import ControlPlaneFactory
from tests.e2e.support_informer import Heard, State, States, shown
from tests.e2e.support_informer_ways import Front, Recording, connect, port_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

OBJECTS = 5_000
STREAMED = ReflectorOptions()
PLAIN = ReflectorOptions(stream_lists=False)
ANY_VERSION = ReflectorOptions(stream_lists=False, first_version="0")
SMALL_PAGES = ReflectorOptions(stream_lists=False, page_size=2_000)


class Filled(NamedTuple):
    """A control plane with many objects, and what the server answered to who made them."""

    plane: ControlPlane
    snapshot: Snapshot
    states: States


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(kinform_control_plane_factory: ControlPlaneFactory) -> AsyncGenerator[Filled]:
    async with kinform_control_plane_factory() as plane:
        states: States = {}
        async with plane.connect() as client:
            maps = client.resource("v1/configmaps", namespace="default")
            numbers = iter(range(OBJECTS))

            async def create() -> None:
                for number in numbers:
                    body = {"metadata": {"name": f"n-{number:04}"}, "data": {"n": str(number)}}
                    made = await maps.create(body)
                    states[str(made.key)] = State.of(made)

            async with asyncio.TaskGroup() as group:
                for _ in range(32):
                    group.create_task(create())
        yield Filled(plane, await plane.snapshot(), states)


def requests(transport: Recording) -> Counter[str]:
    """Count streamed lists and pages by their size."""
    queries = [asked.query for asked in transport.asked]
    streamed = sum("sendInitialEvents" in query for query in queries)
    lists = [query for query in queries if "watch" not in query]
    pages = Counter(f"page of {query.get('limit', 'all')}" for query in lists)
    return pages + Counter({"streamed list": streamed})


async def synced(plane: ControlPlane, options: ReflectorOptions) -> tuple[States, Counter[str]]:
    """Return what an informer shows right after its first sync, and how it came to it."""
    transport = Recording(plane)
    async with connect(plane, transport=transport) as client:
        informer = client.informer("v1/configmaps", namespace="default", options=options)
        async with informer:
            await informer.wait_synced(60)
            return shown(informer), requests(transport)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(STREAMED, {"streamed list": 1}, id="streamed"),
        pytest.param(PLAIN, {"page of 500": 10}, id="pages"),
        pytest.param(ANY_VERSION, {"page of 500": 1}, id="any version: in one piece"),
        pytest.param(SMALL_PAGES, {"page of 2000": 3}, id="pages of another size"),
    ],
)
async def test_a_server_that_can_stream_lists(
    filled: Filled, options: ReflectorOptions, expected: dict[str, int]
) -> None:
    states, asked = await synced(filled.plane, options)
    assert asked == expected
    assert states == filled.states


async def test_a_sync_that_is_cut_off_in_the_middle_leaves_nothing_behind(filled: Filled) -> None:
    """Two streams and a plain list are cut off; no handler receives their objects."""
    heard, sizes = Heard(), list[int]()
    transport = Recording(filled.plane)
    async with (
        Front(port_of(filled.plane)) as front,
        connect(filled.plane, port=front.port, transport=transport) as client,
    ):
        informer: SharedInformer[Object] = client.informer(
            "v1/configmaps",
            namespace="default",
            watch_error_handler=lambda _: sizes.append(len(informer.indexer) + heard.events),
        )
        heard.listen(informer)
        await client.find("v1/configmaps")
        front.cuts = [400_000, 800_000, 50_000]
        async with informer:
            await informer.wait_synced(60)
            await heard.wait_believes(filled.states)
    # A page that is cut off before its first byte is sent for again, and the plain list goes on;
    # after that byte the list has failed, and the next one is streamed.
    asked = requests(transport)
    assert (asked["streamed list"], asked["page of 500"] >= 10) in {(2, True), (3, False)}
    assert set(sizes) == {0}
    assert heard.complaints == []
    assert heard.events == OBJECTS


async def test_a_server_that_cannot_stream_lists(
    filled: Filled, kinform_control_plane_factory: ControlPlaneFactory
) -> None:
    async with kinform_control_plane_factory(feature_gates={"WatchList": False}) as plane:
        await plane.restore(filled.snapshot)
        states, asked = await synced(plane, STREAMED)
    assert asked == {"streamed list": 1, "page of 500": 10}
    assert states == filled.states


async def test_a_server_without_a_watch_cache(
    filled: Filled, kinform_control_plane_factory: ControlPlaneFactory
) -> None:
    async with kinform_control_plane_factory(apiserver_flags=["--watch-cache=false"]) as plane:
        await plane.restore(filled.snapshot)
        for options, expected in (
            (STREAMED, {"streamed list": 1}),
            (PLAIN, {"page of 500": 10}),
            (ANY_VERSION, {"page of 500": 10}),
        ):
            states, asked = await synced(plane, options)
            assert asked == expected
            assert states == filled.states
        await follow(plane)


async def follow(plane: ControlPlane) -> None:
    """See that a watch straight from etcd brings what happens after the sync."""
    async with connect(plane) as client:
        maps = client.resource("v1/configmaps", namespace="default")
        async with client.informer("v1/configmaps", namespace="default") as informer:
            await informer.wait_synced(60)
            changed = await maps.patch("n-0001", {"data": {"n": "changed"}})
            await informer.wait_until(changed.resource_version, 30)
            assert shown(informer)["default/n-0001"] == State.of(changed)
            await maps.delete("n-0002")
            await informer.wait_for(lambda lister: lister.get("default/n-0002") is None, 30)
            assert len(informer.indexer) == OBJECTS - 1

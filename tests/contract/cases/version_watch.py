"""resourceVersion of a watch, and sendInitialEvents with every match."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS
from tests.contract.cases.version_list import versions
from tests.contract.session import Session

MATCHES: Final = {
    "no_match": None,
    "exact": "Exact",
    "not_older_than": "NotOlderThan",
    "garbage_match": "Newest",
}


@each(
    "version",
    "a watch from a version",
    {
        name: {"version": name}
        for name in ("unset", "zero", "past", "current", "future", "garbage", "negative")
    },
)
async def watch_from(s: Session, *, version: str) -> None:
    asked = (await versions(s))[version]
    await s.watched(CONFIGMAPS, watch="true", timeoutSeconds=1, resourceVersion=asked)


@each(
    "version",
    "a watch takes no match without sendInitialEvents",
    {
        f"{version}_{match}": {"version": version, "match": MATCHES[match]}
        for version, match in product(("unset", "current"), MATCHES)
        if match != "no_match"
    },
)
async def watch_match(s: Session, *, version: str, match: str) -> None:
    asked = (await versions(s))[version]
    await s.watched(
        CONFIGMAPS,
        watch="true",
        timeoutSeconds=1,
        resourceVersion=asked,
        resourceVersionMatch=match,
    )


def initial() -> dict[str, dict[str, Any]]:
    """Return sendInitialEvents with every match, and some of the versions."""
    chosen = [
        *product(("true", "false"), ("unset", "zero", "past"), MATCHES),
        ("true", "current", "not_older_than"),
        ("true", "future", "not_older_than"),
        ("true", "garbage", "not_older_than"),
        ("true", "negative", "not_older_than"),
        ("false", "current", "not_older_than"),
        ("garbage", "unset", "not_older_than"),
    ]
    return {
        f"{send}_{version}_{match}": {"send": send, "version": version, "match": MATCHES[match]}
        for send, version, match in chosen
    }


@each("version", "a watch with sendInitialEvents", initial())
async def watch_initial(s: Session, *, send: str, version: str, match: str | None) -> None:
    asked = (await versions(s))[version]
    async with s.watch(
        CONFIGMAPS,
        watch="true",
        timeoutSeconds=2,
        allowWatchBookmarks="true",
        sendInitialEvents=send,
        resourceVersion=asked,
        resourceVersionMatch=match,
    ) as watch:
        await watch.until("BOOKMARK")


@case("version", "sendInitialEvents without allowWatchBookmarks")
async def watch_initial_without_bookmarks(s: Session) -> None:
    await s.configmap("a")
    await s.watched(
        CONFIGMAPS,
        watch="true",
        timeoutSeconds=1,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    )


@case("version", "sendInitialEvents of a list is refused")
async def list_with_initial_events(s: Session) -> None:
    for send in ("true", "false"):
        await s.get(CONFIGMAPS, sendInitialEvents=send)
        await s.get(CONFIGMAPS, sendInitialEvents=send, resourceVersionMatch="NotOlderThan")


@case("version", "after the closing bookmark a watch goes on with what changes")
async def watch_initial_goes_on(s: Session) -> None:
    await s.configmap("a")
    async with s.watch(
        CONFIGMAPS,
        watch="true",
        allowWatchBookmarks="true",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    ) as watch:
        await watch.until("BOOKMARK")
        await s.configmap("b")
        await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
        await s.remove(f"{CONFIGMAPS}/b")
        await watch.take(3)


@case("version", "the closing bookmark's version is one to watch from")
async def watch_from_bookmark(s: Session) -> None:
    await s.configmap("a")
    async with s.watch(
        CONFIGMAPS,
        watch="true",
        allowWatchBookmarks="true",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    ) as watch:
        bookmark = await watch.until("BOOKMARK")
    await s.configmap("b")
    version = bookmark["object"]["metadata"]["resourceVersion"]
    await s.watched(CONFIGMAPS, watch="true", timeoutSeconds=1, resourceVersion=version)


@case("version", "a watch from the version of a list misses nothing and repeats nothing")
async def watch_from_list(s: Session) -> None:
    await s.configmap("a")
    page = await s.get(CONFIGMAPS)
    await s.configmap("b")
    await s.remove(f"{CONFIGMAPS}/a")
    await s.watched(CONFIGMAPS, watch="true", timeoutSeconds=1, resourceVersion=page.rv)


@case("version", "a watch from an object's own version does not bring it again")
async def watch_from_object(s: Session) -> None:
    asked = (await versions(s))["current"]
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=asked) as watch:
        await s.configmap("c")
        await watch.take(1)

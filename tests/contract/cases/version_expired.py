"""Versions and tokens after the history was compacted."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, rv
from tests.contract.session import Session


async def history(s: Session) -> str:
    """Write some versions; return the first of them."""
    first = await s.configmap("a")
    for name in ("b", "c", "d"):
        await s.configmap(name)
    return rv(first)


@each(
    "version",
    "lists of an expired version",
    {
        "exact": {"query": {"resourceVersionMatch": "Exact"}},
        "limited": {"query": {"limit": 2}},
        "not_older_than": {"query": {"resourceVersionMatch": "NotOlderThan"}},
        "unspecified": {"query": {}},
    },
    compacts=True,
)
async def expired_list(s: Session, *, query: dict[str, object]) -> None:
    first = await history(s)
    await s.compact()
    await s.get(CONFIGMAPS, resourceVersion=first, **query)


@case("version", "a get of an expired version is a get", compacts=True)
async def expired_get(s: Session) -> None:
    first = await history(s)
    await s.compact()
    await s.get(f"{CONFIGMAPS}/a", resourceVersion=first)


@case("watch", "a watch from an expired version", compacts=True)
async def expired(s: Session) -> None:
    first = await history(s)
    await s.compact()
    await s.watched(CONFIGMAPS, watch="true", resourceVersion=first, timeoutSeconds=1)
    await s.watched(
        CONFIGMAPS,
        watch="true",
        resourceVersion=first,
        timeoutSeconds=1,
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )
    await s.watched(
        CONFIGMAPS,
        5,
        watch="true",
        resourceVersion=first,
        sendInitialEvents="true",
        allowWatchBookmarks="true",
        resourceVersionMatch="NotOlderThan",
    )


@case("paging", "an expired token offers one that goes on inconsistently", compacts=True)
async def expired_token(s: Session) -> None:
    await history(s)
    page = await s.get(CONFIGMAPS, limit=1)
    await s.remove(f"{CONFIGMAPS}/b")
    await s.configmap("e")
    await s.compact()
    refused = await s.get(CONFIGMAPS, limit=1, continue_=page.token)
    page = await s.get(CONFIGMAPS, limit=2, continue_=refused.token)
    await s.get(CONFIGMAPS, limit=2, continue_=page.token)


@case("paging", "an expired token without a limit, and of a Table", compacts=True)
async def expired_token_forms(s: Session) -> None:
    await history(s)
    page = await s.get(CONFIGMAPS, limit=2)
    await s.configmap("e")
    await s.compact()
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    await s.get(CONFIGMAPS, limit=1, continue_=page.token, headers=headers)
    refused = await s.get(CONFIGMAPS, continue_=page.token)
    await s.get(CONFIGMAPS, continue_=refused.token)


@case("paging", "an expired token with a selector", compacts=True)
async def expired_token_selected(s: Session) -> None:
    for name in ("a", "b", "c"):
        await s.configmap(name, x="1")
    page = await s.get(CONFIGMAPS, limit=1, labelSelector="x=1")
    await s.configmap("d", x="1")
    await s.compact()
    refused = await s.get(CONFIGMAPS, limit=1, labelSelector="x=1", continue_=page.token)
    await s.get(CONFIGMAPS, limit=1, labelSelector="x=1", continue_=refused.token)

"""resourceVersion, resourceVersionMatch and limit of a list, in every combination."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, EVERYWHERE, rv
from tests.contract.session import Session

VERSIONS: Final = ("unset", "zero", "past", "current", "future", "garbage", "negative")
MATCHES: Final = {
    "no_match": None,
    "exact": "Exact",
    "not_older_than": "NotOlderThan",
    "garbage_match": "Newest",
}
LIMITS: Final = {"": None, "_limited": 1}


def combinations() -> dict[str, dict[str, Any]]:
    """Return every version with every match, with and without a limit."""
    return {
        f"{version}_{match}{limit}": {
            "version": version,
            "match": MATCHES[match],
            "limit": LIMITS[limit],
        }
        for version, match, limit in product(VERSIONS, MATCHES, LIMITS)
    }


async def versions(s: Session) -> dict[str, str | None]:
    """Write a history of three versions; return what a request may ask for."""
    past = rv(await s.configmap("a", step="1"))
    await s.configmap("b")
    current = rv(await s.change(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"step": "2"}}}))
    await s.settle(CONFIGMAPS, current)
    return {
        "unset": None,
        "zero": "0",
        "past": past,
        "current": current,
        "future": s.later(current),
        "garbage": "abc",
        "negative": "-1",
    }


@each("version", "a list at a version", combinations())
async def list_at(s: Session, *, version: str, match: str | None, limit: int | None) -> None:
    asked = (await versions(s))[version]
    await s.get(CONFIGMAPS, resourceVersion=asked, resourceVersionMatch=match, limit=limit)


@case("version", "an empty version and an empty match are as if they were not there")
async def list_empty_texts(s: Session) -> None:
    await s.configmap("a")
    await s.get(CONFIGMAPS, resourceVersion="", resourceVersionMatch="")


@case("version", "an empty version with a match is a match without a version")
async def list_empty_version_with_match(s: Session) -> None:
    await s.get(CONFIGMAPS, resourceVersion="", resourceVersionMatch="Exact")


@each(
    "version",
    "odd versions of a list",
    {
        "leading_zero": {"asked": "007"},
        "spaced": {"asked": " 7"},
        "decimal": {"asked": "1.5"},
        "plus": {"asked": "+1"},
        "beyond_64_bits": {"asked": "18446744073709551616"},
        "zeros": {"asked": "00"},
    },
)
async def list_odd(s: Session, *, asked: str) -> None:
    await s.get(CONFIGMAPS, resourceVersion=asked, limit=1, resourceVersionMatch="NotOlderThan")


@case("version", "a list at a version after a deletion still has the object")
async def list_before_deletion(s: Session) -> None:
    before = rv(await s.configmap("a"))
    await s.remove(f"{CONFIGMAPS}/a")
    await s.get(CONFIGMAPS, resourceVersion=before, resourceVersionMatch="Exact")
    await s.get(CONFIGMAPS, resourceVersion=before, resourceVersionMatch="NotOlderThan")
    await s.get(CONFIGMAPS)


@case("version", "an exact version holds for selectors too: the labels of then")
async def list_exact_selected(s: Session) -> None:
    before = rv(await s.configmap("a", step="1"))
    await s.change(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"step": "2"}}})
    for step in ("1", "2"):
        await s.get(
            CONFIGMAPS,
            resourceVersion=before,
            resourceVersionMatch="Exact",
            labelSelector=f"step={step}",
        )


@case("version", "a list's version can be asked for exactly, and gives the same list")
async def list_again(s: Session) -> None:
    await s.configmap("a")
    page = await s.get(CONFIGMAPS)
    await s.configmap("b")
    await s.get(CONFIGMAPS, resourceVersion=page.rv, resourceVersionMatch="Exact")


@case("version", "an exact version across namespaces")
async def list_everywhere_exact(s: Session) -> None:
    other = await s.namespace("other")
    before = rv(await s.configmap("a", case=s.ident))
    await s.configmap("a", ns=other, case=s.ident)
    selector = f"case={s.ident}"
    await s.get(
        EVERYWHERE,
        resourceVersion=before,
        resourceVersionMatch="Exact",
        labelSelector=selector,
    )
    await s.get(EVERYWHERE, labelSelector=selector)


@case("version", "versions count writes of all kinds: one counter for everything")
async def one_counter(s: Session) -> None:
    first = await s.configmap("a")
    await s.make("/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "a"}})
    between = rv(await s.look("/api/v1/namespaces/{ns}/secrets/a"))
    await s.configmap("b")
    assert int(between) > int(rv(first))
    await s.get(CONFIGMAPS, resourceVersion=between, resourceVersionMatch="Exact")


@case("version", "a version of a custom resource's list")
async def list_custom(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget"}
    first = await s.make(path, {**widget, "metadata": {"name": "a"}})
    await s.settle(path, rv(await s.make(path, {**widget, "metadata": {"name": "b"}})))
    await s.get(path, resourceVersion=rv(first), resourceVersionMatch="Exact")
    await s.get(path, resourceVersion="0")
    await s.get(path, resourceVersion="abc")
    await s.get(path, resourceVersionMatch="Exact")


@case("version", "a match without a list: deletecollection takes both, and checks them")
async def deletecollection_versions(s: Session) -> None:
    past = rv(await s.configmap("a"))
    await s.configmap("b")
    await s.delete(CONFIGMAPS, resourceVersionMatch="Exact")
    await s.delete(CONFIGMAPS, resourceVersion=past, resourceVersionMatch="Exact")
    await s.get(CONFIGMAPS)

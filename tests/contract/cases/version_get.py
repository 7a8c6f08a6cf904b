"""resourceVersion of a get, and versions in writes and deletions."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, rv
from tests.contract.cases.version_list import versions
from tests.contract.session import Session


@each(
    "version",
    "a get at a version",
    {
        name: {"version": name}
        for name in ("unset", "zero", "past", "current", "future", "garbage", "negative")
    },
)
async def get_at(s: Session, *, version: str) -> None:
    asked = (await versions(s))[version]
    await s.get(f"{CONFIGMAPS}/a", resourceVersion=asked)


@case("version", "a get ignores resourceVersionMatch")
async def get_match(s: Session) -> None:
    past = (await versions(s))["past"]
    await s.get(f"{CONFIGMAPS}/a", resourceVersion=past, resourceVersionMatch="Exact")
    await s.get(f"{CONFIGMAPS}/a", resourceVersionMatch="Newest")


@case("version", "a get of a missing object, at no version, at any and at a known one")
async def get_missing(s: Session) -> None:
    current = (await versions(s))["current"]
    for asked in (None, "0", current):
        await s.get(f"{CONFIGMAPS}/missing", resourceVersion=asked)


@case("version", "a get of a deleted object from the cache")
async def get_deleted(s: Session) -> None:
    await s.configmap("a")
    await s.remove(f"{CONFIGMAPS}/a")
    current = rv(await s.configmap("b"))
    await s.get(f"{CONFIGMAPS}/a", resourceVersion=current)


@case("version", "a write that changes nothing keeps the version")
async def unchanged(s: Session) -> None:
    made = await s.configmap("a", step="1")
    await s.put(f"{CONFIGMAPS}/a", {**made, "kind": "ConfigMap", "apiVersion": "v1"})
    await s.patch(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"step": "1"}}})
    await s.get(f"{CONFIGMAPS}/a")


@case("version", "an update at a stale version is a conflict, without one it wins")
async def stale_update(s: Session) -> None:
    made = await s.configmap("a")
    await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "1"}})
    await s.put(f"{CONFIGMAPS}/a", {"metadata": made["metadata"], "data": {"k": "2"}})
    await s.put(f"{CONFIGMAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "3"}})


@case("version", "a patch that names a stale version is a conflict")
async def stale_patch(s: Session) -> None:
    past = rv(await s.configmap("a"))
    await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "1"}})
    stale = {"metadata": {"resourceVersion": past}, "data": {"k": "2"}}
    for kind in ("merge", "strategic-merge"):
        await s.patch(f"{CONFIGMAPS}/a", stale, kind=kind)


@case("version", "a create must not have a version")
async def create_with_version(s: Session) -> None:
    await s.post(CONFIGMAPS, {"metadata": {"name": "a", "resourceVersion": "5"}})
    await s.post(CONFIGMAPS, {"metadata": {"name": "a", "resourceVersion": "0"}})
    await s.post(CONFIGMAPS, {"metadata": {"name": "b", "resourceVersion": ""}})


@case("version", "an update at a version that is no number")
async def garbage_update(s: Session) -> None:
    await s.configmap("a")
    for version in ("abc", "0", "-1"):
        body = {"metadata": {"name": "a", "resourceVersion": version}, "data": {"k": "v"}}
        await s.put(f"{CONFIGMAPS}/a", body)


@case("version", "a deletion with a version as its precondition")
async def delete_precondition(s: Session) -> None:
    past = rv(await s.configmap("a"))
    current = rv(await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "1"}}))
    for version in (past, current):
        options = {"preconditions": {"resourceVersion": version}}
        await s.delete(f"{CONFIGMAPS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", **options})
    await s.get(f"{CONFIGMAPS}/a")

"""Owners and what is owned: the garbage collector's work, seen from outside."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, SECRETS
from tests.contract.cases.kinds_bodies import (
    DEPLOYMENTS,
    REPLICASETS,
    Body,
    deployment,
    named,
    only,
    replicaset,
    seen,
)
from tests.contract.exchange import Answer
from tests.contract.session import Session

META = only("kind", "metadata")


def owned(*owners: Body, block: bool | None = None, kind: str = "ConfigMap") -> Body:
    """Return metadata of what these ConfigMaps own."""
    references = [
        {
            "apiVersion": "v1" if kind == "ConfigMap" else "apps/v1",
            "kind": kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({} if block is None else {"blockOwnerDeletion": block}),
        }
        for owner in owners
    ]
    return {"ownerReferences": references}


def gone(answer: Answer) -> bool:
    return answer.status == 404


def orphaned(answer: Answer) -> bool:
    return answer.status == 200 and "ownerReferences" not in answer.meta


@each(
    "owners",
    "what is owned goes after its owner",
    {
        "default": {"policy": None},
        "background": {"policy": "Background"},
        "foreground": {"policy": "Foreground"},
    },
)
async def cascade(s: Session, *, policy: str | None) -> None:
    owner = await s.configmap("owner")
    await s.make(SECRETS, named("a", metadata=owned(owner)))
    await s.delete(f"{CONFIGMAPS}/owner", propagationPolicy=policy)
    await s.eventually(f"{SECRETS}/a", gone)
    await s.eventually(f"{CONFIGMAPS}/owner", gone)


@case("owners", "an orphan stays and forgets its owner")
async def orphan(s: Session) -> None:
    owner = await s.configmap("owner")
    await s.make(SECRETS, named("a", metadata=owned(owner)))
    await s.delete(f"{CONFIGMAPS}/owner", propagationPolicy="Orphan", view=META)
    await s.eventually(f"{CONFIGMAPS}/owner", gone)
    await s.eventually(f"{SECRETS}/a", orphaned, view=only("kind"))


@case("owners", "orphanDependents is the old word for it")
async def orphan_dependents(s: Session) -> None:
    owner = await s.configmap("owner")
    await s.make(SECRETS, named("a", metadata=owned(owner)))
    await s.delete(f"{CONFIGMAPS}/owner", {"orphanDependents": True}, view=META)
    await s.eventually(f"{CONFIGMAPS}/owner", gone)
    await s.eventually(f"{SECRETS}/a", orphaned, view=only("kind"))


@case("owners", "foreground deletion waits for what blocks it")
async def foreground_waits(s: Session) -> None:
    owner = await s.configmap("owner")
    metadata = {**owned(owner, block=True), "finalizers": ["example.com/hold"]}
    await s.make(SECRETS, named("a", metadata=metadata))
    await s.delete(f"{CONFIGMAPS}/owner", propagationPolicy="Foreground", view=META)
    await s.eventually(
        f"{SECRETS}/a", lambda answer: "deletionTimestamp" in answer.meta, view=only("kind")
    )
    await s.get(f"{CONFIGMAPS}/owner", view=META)
    await s.change(f"{SECRETS}/a", {"metadata": {"finalizers": None}})
    await s.eventually(f"{CONFIGMAPS}/owner", gone)


@case("owners", "foreground deletion does not wait for what does not block it")
async def foreground_passes(s: Session) -> None:
    owner = await s.configmap("owner")
    metadata = {**owned(owner), "finalizers": ["example.com/hold"]}
    await s.make(SECRETS, named("a", metadata=metadata))
    await s.delete(f"{CONFIGMAPS}/owner", propagationPolicy="Foreground", view=META)
    await s.eventually(f"{CONFIGMAPS}/owner", gone)
    await s.eventually(
        f"{SECRETS}/a", lambda answer: "deletionTimestamp" in answer.meta, view=only("kind")
    )
    await s.change(f"{SECRETS}/a", {"metadata": {"finalizers": None}})


@case("owners", "what has another owner stays and forgets the one that went")
async def two_owners(s: Session) -> None:
    one, two = await s.configmap("one"), await s.configmap("two")
    await s.make(SECRETS, named("a", metadata=owned(one, two)))
    await s.delete(f"{CONFIGMAPS}/one", quiet=True)
    await s.eventually(
        f"{SECRETS}/a",
        lambda answer: len(answer.meta["ownerReferences"]) == 1,
        view=seen(lambda body: body["metadata"]["ownerReferences"]),
    )
    await s.delete(f"{CONFIGMAPS}/two", quiet=True)
    await s.eventually(f"{SECRETS}/a", gone)


@case("owners", "an owner that never was is found to be gone")
async def never_there(s: Session) -> None:
    ghost = {"metadata": {"name": "ghost", "uid": "11111111-1111-1111-1111-111111111111"}}
    await s.make(SECRETS, named("a", metadata=owned(ghost)))
    await s.eventually(f"{SECRETS}/a", gone)


@case("owners", "a chain of owners goes to its end")
async def chain(s: Session) -> None:
    first = await s.make(DEPLOYMENTS, deployment("first"))
    second = {**replicaset(), "metadata": {"name": "second", **owned(first, kind="Deployment")}}
    middle = await s.make(REPLICASETS, second)
    await s.make(SECRETS, named("third", metadata=owned(middle, kind="ReplicaSet")))
    await s.delete(f"{DEPLOYMENTS}/first")
    await s.eventually(f"{REPLICASETS}/second", gone)
    await s.eventually(f"{SECRETS}/third", gone)


@case("owners", "a foreground finalizer that somebody asks for by hand works the same")
async def by_hand(s: Session) -> None:
    owner = await s.make(
        CONFIGMAPS, named("owner", metadata={"finalizers": ["foregroundDeletion"]})
    )
    await s.make(SECRETS, named("a", metadata=owned(owner, block=True)))
    await s.delete(f"{CONFIGMAPS}/owner", view=META)
    await s.eventually(f"{SECRETS}/a", gone)
    await s.eventually(f"{CONFIGMAPS}/owner", gone)


@case("owners", "a collection is deleted with what its items own")
async def collection(s: Session) -> None:
    for name in "ab":
        owner = await s.configmap(name, app="x")
        await s.make(SECRETS, named(name, metadata=owned(owner)))
    await s.delete(CONFIGMAPS, labelSelector="app=x", view=only("kind"))
    for name in "ab":
        await s.eventually(f"{SECRETS}/{name}", gone)

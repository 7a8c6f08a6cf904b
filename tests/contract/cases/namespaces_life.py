"""The life of a namespace."""

from __future__ import annotations

from tests.contract.case import case
from tests.contract.cases import NAMESPACES
from tests.contract.cases.kinds_bodies import named, only, pod, seen
from tests.contract.exchange import Answer
from tests.contract.session import Session

META = only("kind", "metadata", "spec")


def gone(answer: Answer) -> bool:
    return answer.status == 404


@case("namespaces", "a namespace has a finalizer, a phase and a label of its name")
async def created(s: Session) -> None:
    await s.post(NAMESPACES, named(s.unique("a"), metadata={"labels": {"x": "y"}}))
    await s.patch(f"{NAMESPACES}/{s.unique('a')}", {"metadata": {"labels": None}})
    wrong = {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}}
    await s.patch(f"{NAMESPACES}/{s.unique('a')}", wrong)


@case("namespaces", "a deletion answers with the namespace as it terminates")
async def deletion(s: Session) -> None:
    name = await s.namespace("a")
    view = seen(lambda body: {**body, "metadata": sorted(body["metadata"])})
    await s.delete(f"{NAMESPACES}/{name}", view=view)
    await s.eventually(f"{NAMESPACES}/{name}", gone)
    await s.delete(f"{NAMESPACES}/{name}")


@case("namespaces", "what is in a namespace goes with it")
async def contents(s: Session) -> None:
    name = await s.namespace("a")
    await s.configmap("c", ns=name)
    await s.make(f"/api/v1/namespaces/{name}/pods", pod())
    await s.remove(f"{NAMESPACES}/{name}")
    await s.eventually(f"{NAMESPACES}/{name}", gone)
    items = seen(lambda body: [each["metadata"]["name"] for each in body["items"]])
    await s.get(f"/api/v1/namespaces/{name}/configmaps", view=items)
    await s.get(f"/api/v1/namespaces/{name}/pods", view=items)


@case("namespaces", "nothing can be created in a namespace that terminates or is not there")
async def terminating(s: Session) -> None:
    name = await s.namespace("a")
    held = named("held", metadata={"finalizers": ["example.com/hold"]})
    path = f"/api/v1/namespaces/{name}/configmaps"
    await s.make(path, held)
    await s.remove(f"{NAMESPACES}/{name}")
    await s.post(path, named("late"))
    await s.post(f"/api/v1/namespaces/{s.unique('none')}/configmaps", named("a"))
    await s.patch(f"{path}/held", {"data": {"k": "v"}}, view=only("data"))
    await s.eventually(
        f"{path}/held", lambda answer: "deletionTimestamp" in answer.meta, view=only("kind")
    )
    await s.change(f"{path}/held", {"metadata": {"finalizers": None}})


@case("namespaces", "a terminating namespace says in its conditions what it waits for")
async def conditions(s: Session) -> None:
    name = await s.namespace("a")
    path = f"/api/v1/namespaces/{name}/configmaps"
    await s.make(path, named("held", metadata={"finalizers": ["example.com/hold"]}))
    await s.remove(f"{NAMESPACES}/{name}")
    await s.eventually(
        f"{NAMESPACES}/{name}",
        lambda answer: bool(answer["status"].get("conditions")),
        view=seen(
            lambda body: [
                body["status"]["phase"],
                sorted([each["type"], each["status"]] for each in body["status"]["conditions"]),
            ]
        ),
    )
    await s.change(f"{path}/held", {"metadata": {"finalizers": None}})


@case("namespaces", "a finalizer of a namespace's metadata keeps it when it is empty")
async def metadata_finalizer(s: Session) -> None:
    name = s.unique("a")
    await s.make(NAMESPACES, named(name, metadata={"finalizers": ["example.com/hold"]}))
    await s.remove(f"{NAMESPACES}/{name}")
    await s.eventually(f"{NAMESPACES}/{name}", lambda answer: not answer["spec"], view=only("spec"))
    await s.change(f"{NAMESPACES}/{name}", {"metadata": {"finalizers": None}})
    await s.eventually(f"{NAMESPACES}/{name}", gone)


@case("namespaces", "the finalize subresource sets the finalizers of the spec")
async def finalize(s: Session) -> None:
    name = await s.namespace("a")
    body = named(name, spec={"finalizers": ["kubernetes", "example.com/more"]})
    await s.put(f"{NAMESPACES}/{name}/finalize", body, view=META)
    await s.patch(f"{NAMESPACES}/{name}", {"spec": {"finalizers": []}}, view=META)
    await s.patch(f"{NAMESPACES}/{name}/finalize", {"spec": {"finalizers": []}}, view=META)
    await s.put(
        f"{NAMESPACES}/{name}/finalize", named(name, spec={"finalizers": ["kubernetes"]}), view=META
    )


@case("namespaces", "namespaces are not deleted as a collection")
async def collection(s: Session) -> None:
    await s.delete(NAMESPACES, labelSelector=f"case={s.ident}")


@case("namespaces", "a namespace's status is a subresource")
async def status(s: Session) -> None:
    name = await s.namespace("a")
    condition = {"type": "Nice", "status": "True", "reason": "Asked", "message": "yes"}
    body = {"status": {"conditions": [condition]}}
    await s.patch(f"{NAMESPACES}/{name}/status", body, view=only("status"))
    await s.patch(f"{NAMESPACES}/{name}", {"status": {"phase": "Terminating"}}, view=only("status"))


@case("namespaces", "default and kube-system are there, and cannot be deleted")
async def system(s: Session) -> None:
    await s.get(f"{NAMESPACES}/default", view=only("spec", "status"))
    await s.delete(f"{NAMESPACES}/default", dryRun="All")
    await s.delete(f"{NAMESPACES}/kube-system", dryRun="All")

"""Deletion: options, preconditions, what is answered, finalizers, collections."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, SECRETS, SERVICES, rv
from tests.contract.cases.kinds_bodies import (
    CLAIMS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    RELEASE,
    REPLICASETS,
    SERVICEACCOUNTS,
    STATEFULSETS,
    Body,
    deployment,
    job,
    named,
    only,
    pod,
    seen,
    service,
    statefulset,
)
from tests.contract.session import Session

META = only("kind", "metadata")
HOLD = {"finalizers": ["example.com/hold"]}
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OTHER_UID = "11111111-1111-1111-1111-111111111111"


@each(
    "delete",
    "what the deletion of a kind answers",
    {
        "configmap": {"path": CONFIGMAPS, "body": named("a")},
        "secret": {"path": SECRETS, "body": named("a")},
        "service": {"path": SERVICES, "body": service()},
        "service_account": {"path": SERVICEACCOUNTS, "body": named("a")},
        "pod": {"path": PODS, "body": pod()},
        "deployment": {"path": DEPLOYMENTS, "body": deployment()},
        "replicaset": {"path": REPLICASETS, "body": deployment()},
        "statefulset": {"path": STATEFULSETS, "body": statefulset()},
        "daemonset": {"path": DAEMONSETS, "body": deployment()},
        "job": {"path": JOBS, "body": job()},
        "lease": {"path": LEASES, "body": named("a")},
        "role": {"path": ROLES, "body": named("a")},
        "claim": {"path": CLAIMS, "body": named("a", spec=CLAIM)},
        "event": {
            "path": "/api/v1/namespaces/{ns}/events",
            "body": named("a", involvedObject={"namespace": "{ns}"}),
        },
        "quota": {"path": "/api/v1/namespaces/{ns}/resourcequotas", "body": named("a")},
        "pod_template": {"path": "/api/v1/namespaces/{ns}/podtemplates", "body": {}},
    },
)
async def answer(s: Session, *, path: str, body: Body) -> None:
    if "involvedObject" in body:
        body = {**body, "involvedObject": {"namespace": s.ns}}
    made = await s.post(path, body or named("a", template=deployment()["spec"]["template"]))
    s.exchanges[-1].is_quiet = made.status == 201
    await s.delete(f"{path}/a", propagationPolicy="Background")
    await s.get(f"{path}/a", view=META)
    if path == CLAIMS:
        await s.change(f"{path}/a", RELEASE)


@case("delete", "what the deletion of a custom object answers")
async def answer_custom(s: Session) -> None:
    path = f"/apis/{await s.crd()}/v1/namespaces/{{ns}}/widgets"
    group = path.split("/")[2]
    await s.make(path, {"apiVersion": f"{group}/v1", "kind": "Widget", **named("a")})
    await s.delete(f"{path}/a")
    await s.delete(f"{path}/a")


@case("delete", "what is not there cannot be deleted")
async def missing(s: Session) -> None:
    await s.delete(f"{CONFIGMAPS}/a")
    await s.delete(f"{DEPLOYMENTS}/a")
    await s.delete(f"{CONFIGMAPS}/a", dryRun="All")


@each(
    "delete",
    "options in the body",
    {
        "empty": {"options": {}},
        "kind": {"options": {"apiVersion": "v1", "kind": "DeleteOptions"}},
        "meta_kind": {"options": {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"}},
        "other_kind": {"options": {"apiVersion": "v1", "kind": "Pod"}},
        "other_version": {"options": {"apiVersion": "x/v1", "kind": "DeleteOptions"}},
        "unknown_field": {"options": {"colour": "red"}},
        "policy": {"options": {"propagationPolicy": "Background"}},
        "policy_unknown": {"options": {"propagationPolicy": "Sideways"}},
        "policy_and_orphan": {
            "options": {"propagationPolicy": "Background", "orphanDependents": True}
        },
        "orphan_false": {"options": {"orphanDependents": False}},
        "grace_negative": {"options": {"gracePeriodSeconds": -1}},
        "grace_text": {"options": {"gracePeriodSeconds": "5"}},
        "dry_run_unknown": {"options": {"dryRun": ["Some"]}},
        "broken": {"options": "{"},
        "list": {"options": []},
        "text": {"options": '"x"'},
        "uid": {"options": {"preconditions": {"uid": OTHER_UID}}},
        "version": {"options": {"preconditions": {"resourceVersion": "1"}}},
    },
)
async def body(s: Session, *, options: object) -> None:
    await s.configmap("a")
    await s.delete(f"{CONFIGMAPS}/a", options)
    await s.get(f"{CONFIGMAPS}/a", view=only("kind"))


@each(
    "delete",
    "options in the query",
    {
        "policy": {"query": {"propagationPolicy": "Background"}},
        "policy_unknown": {"query": {"propagationPolicy": "Sideways"}},
        "grace": {"query": {"gracePeriodSeconds": 0}},
        "grace_garbage": {"query": {"gracePeriodSeconds": "soon"}},
        "orphan": {"query": {"orphanDependents": "false"}},
        "unknown": {"query": {"colour": "red"}},
    },
)
async def query(s: Session, *, query: dict[str, str]) -> None:
    await s.configmap("a")
    await s.delete(f"{CONFIGMAPS}/a", **query)
    await s.get(f"{CONFIGMAPS}/a", view=only("kind"))


@case("delete", "the right preconditions let a deletion pass")
async def preconditions(s: Session) -> None:
    made = await s.configmap("a")
    uid = {"uid": made["metadata"]["uid"], "resourceVersion": rv(made)}
    await s.change(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
    await s.delete(f"{CONFIGMAPS}/a", {"preconditions": uid})
    uid["resourceVersion"] = rv(await s.look(f"{CONFIGMAPS}/a"))
    await s.delete(f"{CONFIGMAPS}/a", {"preconditions": uid})


@each(
    "delete",
    "the grace of a pod",
    {
        "unscheduled": {"node": None, "grace": None},
        "unscheduled_five": {"node": None, "grace": 5},
        "scheduled": {"node": "n", "grace": None},
        "scheduled_five": {"node": "n", "grace": 5},
        "scheduled_zero": {"node": "n", "grace": 0},
        "scheduled_negative": {"node": "n", "grace": -1},
        "scheduled_long": {"node": "n", "grace": 3600},
    },
)
async def grace(s: Session, *, node: str | None, grace: int | None) -> None:
    await s.make(PODS, pod(nodeName=node) if node else pod())
    await s.delete(f"{PODS}/a", gracePeriodSeconds=grace, view=META)
    await s.get(f"{PODS}/a", view=META)
    await s.delete(f"{PODS}/a", gracePeriodSeconds=0, quiet=True)


@case("delete", "a second deletion may shorten the grace, never lengthen it")
async def grace_again(s: Session) -> None:
    await s.make(PODS, pod(nodeName="n"))
    for seconds in (20, 40, 10, None):
        await s.delete(f"{PODS}/a", gracePeriodSeconds=seconds, view=META)
    await s.delete(f"{PODS}/a", gracePeriodSeconds=0, view=META)
    await s.get(f"{PODS}/a")


@case("delete", "the grace of a pod is its spec's, and it is seen by watches")
async def grace_of_spec(s: Session) -> None:
    made = await s.make(PODS, pod(nodeName="n", terminationGracePeriodSeconds=7))
    async with s.watch(PODS, watch="true", resourceVersion=rv(made)) as watch:
        await s.delete(f"{PODS}/a", view=META)
        await watch.take(1)
        await s.delete(f"{PODS}/a", gracePeriodSeconds=0, view=META)
        await watch.take(1)


@case("delete", "a finalizer keeps an object until it is removed")
async def finalizer(s: Session) -> None:
    made = await s.make(CONFIGMAPS, named("a", metadata=HOLD))
    async with s.watch(CONFIGMAPS, watch="true", resourceVersion=rv(made)) as watch:
        await s.delete(f"{CONFIGMAPS}/a")
        await s.get(f"{CONFIGMAPS}/a")
        await watch.take(1)
        await s.patch(f"{CONFIGMAPS}/a", RELEASE)
        await watch.take(1)
    await s.get(f"{CONFIGMAPS}/a")


@case("delete", "no finalizer can be added to what is being deleted")
async def finalizer_added(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", metadata=HOLD))
    await s.remove(f"{CONFIGMAPS}/a")
    both = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    await s.patch(f"{CONFIGMAPS}/a", both)
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "v"}})
    await s.change(f"{CONFIGMAPS}/a", RELEASE)


@case("delete", "what waits for its finalizers can be deleted again and not be created again")
async def finalizer_again(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", metadata=HOLD))
    await s.remove(f"{CONFIGMAPS}/a")
    await s.delete(f"{CONFIGMAPS}/a")
    await s.post(CONFIGMAPS, named("a"))
    await s.change(f"{CONFIGMAPS}/a", RELEASE)
    await s.post(CONFIGMAPS, named("a"))


@case("delete", "an update that removes the last finalizer completes the deletion")
async def finalizer_update(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", metadata=HOLD))
    await s.remove(f"{CONFIGMAPS}/a")
    await s.put(f"{CONFIGMAPS}/a", named("a", data={"last": "words"}))
    await s.get(f"{CONFIGMAPS}/a")


@case("delete", "a deletionTimestamp raises the generation of what has one")
async def finalizer_generation(s: Session) -> None:
    await s.make(DEPLOYMENTS, {**deployment(), "metadata": {"name": "a", **HOLD}})
    await s.delete(f"{DEPLOYMENTS}/a", propagationPolicy="Background", view=META)
    await s.change(f"{DEPLOYMENTS}/a", RELEASE)


@case("delete", "finalizers of a pod outlast its grace")
async def finalizer_pod(s: Session) -> None:
    await s.make(PODS, {**pod(nodeName="n"), "metadata": {"name": "a", **HOLD}})
    await s.delete(f"{PODS}/a", view=META)
    await s.delete(f"{PODS}/a", gracePeriodSeconds=0, view=META)
    await s.patch(f"{PODS}/a", RELEASE, view=META)
    await s.get(f"{PODS}/a")


@case("delete", "a dry run of a deletion shows what would be, with a finalizer")
async def finalizer_dry(s: Session) -> None:
    await s.make(CONFIGMAPS, named("a", metadata=HOLD))
    await s.delete(f"{CONFIGMAPS}/a", dryRun="All")
    await s.get(f"{CONFIGMAPS}/a")
    await s.change(f"{CONFIGMAPS}/a", RELEASE)


@each(
    "delete",
    "a collection",
    {
        "labels": {"query": {"labelSelector": "app=a"}},
        "labels_none": {"query": {"labelSelector": "app=z"}},
        "fields": {"query": {"fieldSelector": "metadata.name=b"}},
        "garbage": {"query": {"labelSelector": "app in"}},
        "limit": {"query": {"limit": 1, "labelSelector": "app"}},
        "dry_run": {"query": {"dryRun": "All", "labelSelector": "app"}},
        "policy": {"query": {"propagationPolicy": "Sideways", "labelSelector": "app"}},
    },
)
async def collection(s: Session, *, query: dict[str, str]) -> None:
    await s.configmap("a", app="a")
    await s.configmap("b", app="b")
    await s.configmap("c", app="a")
    await s.delete(CONFIGMAPS, **query)
    names = seen(lambda body: [each["metadata"]["name"] for each in body["items"]])
    await s.get(CONFIGMAPS, labelSelector="app", view=names)


@case("delete", "a collection of pods, some with grace, some with finalizers")
async def collection_pods(s: Session) -> None:
    await s.make(PODS, pod("a"))
    await s.make(PODS, pod("b", nodeName="n"))
    await s.make(PODS, {**pod(), "metadata": {"name": "c", **HOLD}})
    metadata = seen(lambda body: [each["metadata"] for each in body["items"]])
    await s.delete(PODS, view=metadata)
    await s.get(PODS, view=metadata)
    await s.delete(PODS, gracePeriodSeconds=0, quiet=True)
    await s.change(f"{PODS}/c", RELEASE)


@case("delete", "services cannot be deleted as a collection of all namespaces")
async def collection_everywhere(s: Session) -> None:
    await s.delete("/api/v1/configmaps", labelSelector=f"case={s.ident}")
    await s.make(SERVICES, service())
    await s.delete(SERVICES, view=only("kind"))
    await s.get(f"{SERVICES}/a")

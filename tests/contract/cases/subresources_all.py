"""Subresources: status, scale, binding, eviction, and those that are not there."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, rv
from tests.contract.cases.kinds_bodies import (
    DEPLOYMENTS,
    JOBS,
    REPLICASETS,
    STATEFULSETS,
    Body,
    custom,
    deployment,
    job,
    named,
    only,
    pod,
    quoted,
    seen,
    statefulset,
    whole,
)
from tests.contract.session import Session

BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
SHOWN = only("metadata", "spec", "status")
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}


@case("subresources", "a creation ignores the status of a kind that has one")
async def status_on_create(s: Session) -> None:
    await s.post(DEPLOYMENTS, {**deployment(), "status": {"replicas": 7}}, view=only("status"))
    await s.post(PODS, {**pod(), "status": {"phase": "Running"}}, view=only("status"))


@case("subresources", "an update of the status changes the status only")
async def status_update(s: Session) -> None:
    made = await s.make(DEPLOYMENTS, deployment())
    changed = deployment(replicas=9)
    changed["metadata"]["labels"] = {"x": "y"}
    changed["status"] = {"replicas": 3, "observedGeneration": 1}
    await s.put(f"{DEPLOYMENTS}/a/status", changed, view=SHOWN)
    await s.get(f"{DEPLOYMENTS}/a/status", view=only("kind", "status"))
    stale = {**changed, "metadata": {"name": "a", "resourceVersion": rv(made)}}
    await s.put(f"{DEPLOYMENTS}/a/status", stale)
    await s.put(f"{DEPLOYMENTS}/b/status", deployment("b"))


@each(
    "subresources",
    "a status that cannot be",
    {
        "deployment_negative": {
            "path": DEPLOYMENTS,
            "body": deployment(),
            "status": {"replicas": -1},
        },
        "deployment_more_ready": {
            "path": DEPLOYMENTS,
            "body": deployment(),
            "status": {"replicas": 1, "readyReplicas": 2},
        },
        "replicaset_more_available": {
            "path": REPLICASETS,
            "body": deployment(),
            "status": {"replicas": 1, "availableReplicas": 2},
        },
        "job_negative": {"path": JOBS, "body": job(), "status": {"active": -1}},
        "job_complete": {
            "path": JOBS,
            "body": job(),
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        },
        "pod_conditions": {
            "path": PODS,
            "body": pod(),
            "status": {"conditions": [{"type": "Ready", "status": "Yes"}]},
        },
        "pod_container": {
            "path": PODS,
            "body": pod(),
            "status": {
                "phase": "Running",
                "podIP": "10.1.2.3",
                "podIPs": [{"ip": "10.1.2.3"}],
                "containerStatuses": [
                    {
                        "name": "c",
                        "image": "i",
                        "imageID": "",
                        "ready": True,
                        "restartCount": 2,
                        "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
                    }
                ],
            },
        },
        "wrong_type": {"path": DEPLOYMENTS, "body": deployment(), "status": {"replicas": "1"}},
    },
)
async def status_patch(s: Session, *, path: str, body: Body, status: Body) -> None:
    await s.make(path, body)
    await s.patch(f"{path}/a/status", {"status": status}, view=quoted(only("status")))


@case("subresources", "metadata written through the status: annotations and finalizers")
async def status_metadata(s: Session) -> None:
    await s.make(PODS, pod())
    metadata = {"annotations": {"a": "b"}, "labels": {"c": "d"}, "finalizers": ["example.com/x"]}
    await s.patch(f"{PODS}/a/status", {"metadata": metadata}, view=only("metadata"))
    await s.change(f"{PODS}/a", {"metadata": {"finalizers": None}})


@each(
    "subresources",
    "the scale of a workload",
    {
        "deployments": {"path": DEPLOYMENTS, "body": deployment(replicas=2)},
        "replicasets": {"path": REPLICASETS, "body": deployment(replicas=2)},
        "statefulsets": {"path": STATEFULSETS, "body": statefulset(replicas=2)},
    },
)
async def scale(s: Session, *, path: str, body: Body) -> None:
    await s.make(path, body)
    await s.get(f"{path}/a/scale")
    await s.patch(f"{path}/a/scale", {"spec": {"replicas": 5}})
    await s.put(f"{path}/a/scale", named("a", spec={"replicas": 6}))
    await s.get(f"{path}/a", view=only("metadata"))


@case("subresources", "a scale that cannot be")
async def scale_errors(s: Session) -> None:
    made = await s.make(DEPLOYMENTS, deployment())
    path = f"{DEPLOYMENTS}/a/scale"
    await s.change(f"{DEPLOYMENTS}/a", {"metadata": {"labels": {"x": "y"}}})
    await s.patch(path, {"spec": {"replicas": -1}})
    await s.patch(path, {"spec": {"replicas": "many"}}, view=quoted(whole))
    stale = named("a", spec={"replicas": 3}, metadata={"resourceVersion": rv(made)})
    await s.put(path, stale)
    await s.put(path, named("b", spec={"replicas": 3}))
    await s.put(path, named("a"))
    await s.put(path, {"apiVersion": "v1", "kind": "Pod", **named("a")})
    await s.get(f"{DEPLOYMENTS}/b/scale")
    await s.patch(f"{DEPLOYMENTS}/b/scale", {"spec": {"replicas": 1}})


@case("subresources", "scaling with a dry run, and with apply")
async def scale_options(s: Session) -> None:
    await s.make(DEPLOYMENTS, deployment())
    path = f"{DEPLOYMENTS}/a/scale"
    await s.patch(path, {"spec": {"replicas": 4}}, dryRun="All", view=only("spec"))
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", **named("a", spec={"replicas": 5})}
    await s.patch(path, body, kind="apply", fieldManager="m")
    await s.get(f"{DEPLOYMENTS}/a", view=only("metadata"))


@case("subresources", "the scale of a custom object follows the paths of its definition")
async def scale_custom(s: Session) -> None:
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": free},
        "subresources": {"status": {}, "scale": scale},
    }
    group = await s.crd(versions=[version])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.make(path, custom(group, spec={"size": 2}))
    await s.get(f"{path}/a/scale")
    await s.patch(f"{path}/a/status", {"status": {"size": 1, "selector": "a=b"}}, quiet=True)
    await s.patch(f"{path}/a/scale", {"spec": {"replicas": 5}})
    await s.get(f"{path}/a", view=only("spec", "status", "metadata"))
    await s.patch(f"{path}/a/scale", {"spec": {"replicas": -1}})
    await s.make(path, custom(group, "b"))
    await s.get(f"{path}/b/scale")


@case("subresources", "a binding gives a pod its node, once")
async def binding(s: Session) -> None:
    await s.make(PODS, pod())
    body = named("a", target={"kind": "Node", "name": "n"})
    await s.post(f"{PODS}/a/binding", body)
    await s.get(f"{PODS}/a", view=only("spec", "status"))
    await s.post(f"{PODS}/a/binding", named("a", target={"kind": "Node", "name": "m"}))
    await s.post(f"{PODS}/b/binding", named("b", target={"kind": "Node", "name": "n"}))


@case("subresources", "a binding by the collection of bindings, and wrong ones")
async def bindings(s: Session) -> None:
    await s.make(PODS, pod())
    path = "/api/v1/namespaces/{ns}/bindings"
    await s.post(path, named("a", target={"kind": "Pod", "name": "n"}))
    await s.post(path, named("a", target={"kind": "Node"}))
    await s.post(path, named("a", target={"name": "n"}, metadata={"annotations": {"x": "y"}}))
    await s.get(f"{PODS}/a", view=only("metadata"))
    await s.get(path)


@case("subresources", "an eviction deletes a pod")
async def eviction(s: Session) -> None:
    await s.make(PODS, pod(nodeName="n"))
    await s.post(f"{PODS}/a/eviction", {**EVICTION, "deleteOptions": {"dryRun": ["All"]}})
    await s.post(f"{PODS}/a/eviction", EVICTION)
    await s.get(f"{PODS}/a", view=only("metadata"))
    options = {"gracePeriodSeconds": 0}
    await s.post(f"{PODS}/a/eviction", {**EVICTION, "deleteOptions": options})
    await s.post(f"{PODS}/a/eviction", EVICTION)


@case("subresources", "an eviction must be one, of the pod of its path")
async def eviction_wrong(s: Session) -> None:
    await s.make(PODS, pod())
    await s.post(f"{PODS}/a/eviction", {**EVICTION, "metadata": {"name": "b"}})
    await s.post(f"{PODS}/a/eviction", {**EVICTION, "kind": "Pod"})
    await s.post(f"{PODS}/a/eviction", named("a"))


@case("subresources", "a disruption budget forbids an eviction that it cannot afford")
async def eviction_budget(s: Session) -> None:
    labels = {"labels": {"app": "a"}}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await s.make(PODS, {**pod(nodeName="n"), "metadata": {"name": "a", **labels}})
    await s.patch(f"{PODS}/a/status", {"status": ready}, kind="strategic-merge", quiet=True)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await s.make(BUDGETS, named("b", spec=spec))
    status = {
        "observedGeneration": 1,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "disruptionsAllowed": 0,
    }
    await s.patch(f"{BUDGETS}/b/status", {"status": status}, quiet=True)
    await s.post(f"{PODS}/a/eviction", EVICTION)
    await s.patch(f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 1}}, quiet=True)
    await s.post(f"{PODS}/a/eviction", EVICTION)
    disrupted = seen(
        lambda body: [body["status"]["disruptionsAllowed"], *body["status"]["disruptedPods"]]
    )
    await s.get(f"{BUDGETS}/b", view=disrupted)


@case("subresources", "a subresource that is not there is not found")
async def unknown(s: Session) -> None:
    await s.configmap("a")
    await s.get(f"{CONFIGMAPS}/a/status")
    await s.get(f"{CONFIGMAPS}/a/scale")
    await s.get(f"{CONFIGMAPS}/a/colour")
    await s.get(f"{CONFIGMAPS}/a/status/deep")
    await s.make(DEPLOYMENTS, deployment())
    await s.delete(f"{DEPLOYMENTS}/a/status")
    await s.post(f"{DEPLOYMENTS}/a/status", deployment())
    await s.delete(f"{DEPLOYMENTS}/a/scale")


@case("subresources", "custom objects have the subresources of their definition")
async def custom_without(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.make(path, custom(group, status={"phase": "Kept"}))
    await s.get(f"{path}/a", view=only("status", "metadata"))
    await s.get(f"{path}/a/status")
    await s.get(f"{path}/a/scale")
    await s.patch(f"{path}/a", {"status": {"phase": "Changed"}}, view=only("status", "metadata"))


@case("subresources", "ephemeral containers are added through their subresource")
async def ephemeral(s: Session) -> None:
    await s.make(PODS, pod(nodeName="n"))
    debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "example.com/d"}]}}
    path = f"{PODS}/a/ephemeralcontainers"
    await s.patch(path, debug, kind="strategic-merge", view=only("spec"))
    await s.patch(f"{PODS}/a", debug, kind="strategic-merge", view=only("metadata"))


@case("subresources", "the token of a service account")
async def token(s: Session) -> None:
    path = "/api/v1/namespaces/{ns}/serviceaccounts"
    await s.make(path, named("robot"))
    body = {"spec": {"audiences": ["here"], "expirationSeconds": 600}}
    view = seen(lambda body: [body["kind"], body["spec"], sorted(body["status"])])
    await s.post(f"{path}/robot/token", body, view=view)
    await s.post(f"{path}/robot/token", {"spec": {"expirationSeconds": 5}})
    await s.post(f"{path}/none/token", body)

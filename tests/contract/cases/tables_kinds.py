"""Tables: what kubectl prints, for each main kind, with and without a status."""

from __future__ import annotations

from typing import Any

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, NAMESPACES, PODS, SECRETS, SERVICES
from tests.contract.cases.kinds_bodies import (
    BATCH,
    CLAIMS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NODES,
    RELEASE,
    REPLICASETS,
    SERVICEACCOUNTS,
    STATEFULSETS,
    Body,
    deployment,
    job,
    named,
    pod,
    service,
    statefulset,
)
from tests.contract.session import Session

META = "v=v1;g=meta.k8s.io"
TABLE = f"application/json;as=Table;{META}"
PARTIAL = f"application/json;as=PartialObjectMetadata;{META}"
PARTIAL_LIST = f"application/json;as=PartialObjectMetadataList;{META}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
PAST = "2020-01-01T00:00:00Z"


def state(**more: Any) -> Body:
    """Return the status of the container c."""
    return {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, **more}


def ready(phase: str = "Running", **container: Any) -> Body:
    """Return the status of a pod of one container."""
    return {"phase": phase, "containerStatuses": [state(**container)]}


@each(
    "tables",
    "a pod in a state",
    {
        "pending": {"status": {}},
        "running": {
            "status": {
                **ready(ready=True, restartCount=2, state={"running": {"startedAt": PAST}}),
                "podIP": "10.1.2.3",
                "podIPs": [{"ip": "10.1.2.3"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        },
        "restarted": {
            "status": ready(
                restartCount=3,
                state={"running": {"startedAt": PAST}},
                lastState={"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": PAST}},
            )
        },
        "crash_loop": {
            "status": ready(
                restartCount=5, state={"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}
            )
        },
        "pull_error": {"status": ready("Pending", state={"waiting": {"reason": "ErrImagePull"}})},
        "completed": {
            "status": ready(
                "Succeeded", state={"terminated": {"exitCode": 0, "reason": "Completed"}}
            )
        },
        "exit_code": {"status": ready("Failed", state={"terminated": {"exitCode": 3}})},
        "signal": {"status": ready("Failed", state={"terminated": {"exitCode": 137, "signal": 9}})},
        "evicted": {"status": {"phase": "Failed", "reason": "Evicted"}},
        "gates": {
            "status": {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ]
            }
        },
        "unknown_phase": {"status": {"phase": "Unknown", "reason": "NodeLost"}},
    },
)
async def pods(s: Session, *, status: Body) -> None:
    await s.make(PODS, pod(nodeName="n"))
    await s.patch(f"{PODS}/a/status", {"status": status}, quiet=True)
    await s.get(f"{PODS}/a", headers={"Accept": TABLE}, includeObject="None")


@case("tables", "a pod that terminates")
async def pod_terminating(s: Session) -> None:
    await s.make(PODS, pod(nodeName="n"))
    await s.patch(f"{PODS}/a/status", {"status": ready(ready=True)}, quiet=True)
    await s.delete(f"{PODS}/a", quiet=True)
    await s.get(f"{PODS}/a", headers={"Accept": TABLE}, includeObject="None")


@case("tables", "a pod with init containers")
async def pod_init(s: Session) -> None:
    containers = [{"name": name, "image": "i"} for name in ("i", "j")]
    await s.make(PODS, pod(initContainers=containers, readinessGates=[{"conditionType": "x"}]))
    waiting = {"state": {"waiting": {"reason": "PodInitializing"}}}
    first = {**state(state={"terminated": {"exitCode": 0}}), "name": "i"}
    seconds: list[Body] = [{"running": {}}, {"waiting": {"reason": "CrashLoopBackOff"}}]
    for second in seconds:
        init = [first, {**state(state=second), "name": "j"}]
        status = {"initContainerStatuses": init, "containerStatuses": [state(**waiting)]}
        await s.patch(f"{PODS}/a/status", {"status": status}, quiet=True)
        await s.get(f"{PODS}/a", headers={"Accept": TABLE}, includeObject="None")


COUNTS = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3}


@each(
    "tables",
    "a kind with its status filled",
    {
        "deployments": {"path": DEPLOYMENTS, "body": deployment(replicas=3), "status": COUNTS},
        "replicasets": {
            "path": REPLICASETS,
            "body": deployment(replicas=3),
            "status": {"replicas": 3, "readyReplicas": 2},
        },
        "statefulsets": {
            "path": STATEFULSETS,
            "body": statefulset(replicas=3),
            "status": {"replicas": 3, "readyReplicas": 2},
        },
        "daemonsets": {
            "path": DAEMONSETS,
            "body": deployment(),
            "status": {
                "desiredNumberScheduled": 4,
                "currentNumberScheduled": 3,
                "numberReady": 2,
                "updatedNumberScheduled": 3,
                "numberAvailable": 1,
                "numberMisscheduled": 0,
            },
        },
        "jobs": {
            "path": JOBS,
            "body": job(completions=3),
            "status": {"active": 1, "succeeded": 1, "startTime": PAST},
        },
        "jobs_plain": {"path": JOBS, "body": job(), "status": {}},
        "cronjobs": {
            "path": f"{BATCH}/cronjobs",
            "body": named("a", spec={"schedule": "@daily", "jobTemplate": {"spec": job()["spec"]}}),
            "status": {"lastScheduleTime": PAST},
        },
        "services": {"path": SERVICES, "body": service(clusterIP="None"), "status": None},
        "services_external": {
            "path": SERVICES,
            "body": named("a", spec={"type": "ExternalName", "externalName": "example.com"}),
            "status": None,
        },
        "services_balanced": {
            "path": SERVICES,
            "body": service(
                type="LoadBalancer", ports=[{"port": 80, "nodePort": 30081}], clusterIP="10.0.0.11"
            ),
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "x"}]}},
        },
        "configmaps": {
            "path": CONFIGMAPS,
            "body": named("a", data={"k": "v"}, binaryData={"b": "aGk="}),
            "status": None,
        },
        "secrets": {"path": SECRETS, "body": named("a", stringData={"k": "v"}), "status": None},
        "leases": {
            "path": LEASES,
            "body": named("a", spec={"holderIdentity": "me"}),
            "status": None,
        },
        "service_accounts": {"path": SERVICEACCOUNTS, "body": named("a"), "status": None},
        "roles": {"path": f"{RBAC}/namespaces/{{ns}}/roles", "body": named("a"), "status": None},
        "role_bindings": {
            "path": f"{RBAC}/namespaces/{{ns}}/rolebindings",
            "body": named(
                "a",
                roleRef={"kind": "Role", "name": "r", "apiGroup": GROUP},
                subjects=[
                    {"kind": "User", "name": "u"},
                    {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
                ],
            ),
            "status": None,
        },
        "endpoint_slices": {
            "path": "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
            "body": named(
                "a",
                addressType="IPv4",
                endpoints=[{"addresses": [f"10.1.2.{i}"]} for i in range(5)],
                ports=[{"port": 80}, {"name": "x", "port": 81}],
            ),
            "status": None,
        },
        "claims": {
            "path": CLAIMS,
            "body": named(
                "a",
                spec={
                    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "volumeName": "v",
                    "storageClassName": "fast",
                },
            ),
            "status": {
                "phase": "Bound",
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "2Gi"},
            },
        },
        "budgets": {
            "path": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            "body": named("a", spec={"minAvailable": 1, "selector": {}}),
            "status": None,
        },
    },
)
async def kinds(s: Session, *, path: str, body: Body, status: Body | None) -> None:
    await s.make(path, body)
    if status is not None:
        await s.patch(f"{path}/a/status", {"status": status}, quiet=True)
    await s.get(f"{path}/a", headers={"Accept": TABLE}, includeObject="None")
    if path == CLAIMS:
        await s.change(f"{path}/a", RELEASE)


@case("tables", "an event, with who said it and of what")
async def events(s: Session) -> None:
    path = "/api/v1/namespaces/{ns}/events"
    body = named(
        "a",
        involvedObject={"kind": "Pod", "name": "p", "namespace": s.ns},
        reason="Started",
        message="it has started ",
        type="Normal",
        count=3,
        firstTimestamp=PAST,
        lastTimestamp=PAST,
        source={"component": "kubelet", "host": "n"},
    )
    await s.make(path, body)
    await s.get(f"{path}/a", headers={"Accept": TABLE}, includeObject="None")


@case("tables", "a node, ready and cordoned")
async def nodes(s: Session) -> None:
    name = s.unique("node")
    labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "extra"}
    await s.make(NODES, named(name, metadata={"labels": labels}, spec={"unschedulable": True}))
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.0",
            "osImage": "Linux",
            "kernelVersion": "6",
            "containerRuntimeVersion": "containerd://2",
        },
    }
    await s.get(f"{NODES}/{name}", headers={"Accept": TABLE}, includeObject="None")
    await s.patch(f"{NODES}/{name}/status", {"status": status}, quiet=True)
    await s.get(f"{NODES}/{name}", headers={"Accept": TABLE}, includeObject="None")


@case("tables", "cluster-scoped kinds")
async def cluster(s: Session) -> None:
    name = await s.namespace("a")
    await s.get(f"{NAMESPACES}/{name}", headers={"Accept": TABLE}, includeObject="None")
    role = s.unique("role")
    await s.make(f"{RBAC}/clusterroles", named(role))
    await s.get(f"{RBAC}/clusterroles/{role}", headers={"Accept": TABLE}, includeObject="None")
    reference = {"kind": "ClusterRole", "name": "r", "apiGroup": GROUP}
    await s.make(f"{RBAC}/clusterrolebindings", named(role, roleRef=reference))
    path = f"{RBAC}/clusterrolebindings/{role}"
    await s.get(path, headers={"Accept": TABLE}, includeObject="None")


@each(
    "tables",
    "what a row includes of its object",
    {
        each.lower() or "empty": {"include": each}
        for each in ("None", "Metadata", "Object", "X", "")
    },
)
async def include(s: Session, *, include: str) -> None:
    await s.make(CONFIGMAPS, named("a", data={"k": "v"}))
    await s.get(f"{CONFIGMAPS}/a", headers={"Accept": TABLE}, includeObject=include)


@case("tables", "only the metadata of an object, of a list, and of what was written")
async def metadata(s: Session) -> None:
    await s.configmap("a", x="y")
    await s.get(f"{CONFIGMAPS}/a", headers={"Accept": PARTIAL})
    await s.get(CONFIGMAPS, headers={"Accept": PARTIAL_LIST}, labelSelector="x=y")
    await s.get(f"{CONFIGMAPS}/a", headers={"Accept": PARTIAL_LIST})
    await s.post(CONFIGMAPS, named("b"), headers={"Accept": PARTIAL})
    await s.patch(f"{CONFIGMAPS}/a", {"data": {"k": "v"}}, headers={"Accept": PARTIAL})


@case("tables", "what was written as a Table, and a deletion")
async def written(s: Session) -> None:
    await s.post(CONFIGMAPS, named("a"), headers={"Accept": TABLE})
    await s.put(f"{CONFIGMAPS}/a", named("a", data={"k": "v"}), headers={"Accept": TABLE})
    await s.delete(f"{CONFIGMAPS}/a", headers={"Accept": TABLE})
    await s.get(f"{CONFIGMAPS}/a", headers={"Accept": TABLE})


@case("tables", "kinds without columns of their own have a name and an age")
async def plain(s: Session) -> None:
    path = "/api/v1/namespaces/{ns}/limitranges"
    await s.make(path, named("a", spec={"limits": []}))
    await s.get(path, headers={"Accept": TABLE}, includeObject="None")

"""Immutable fields."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, PODS, SECRETS, SERVICES
from tests.contract.cases.kinds_bodies import (
    CLAIMS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    RELEASE,
    REPLICASETS,
    STATEFULSETS,
    Body,
    deployment,
    job,
    named,
    only,
    pod,
    replicaset,
    seen,
    service,
    statefulset,
)
from tests.contract.session import Session

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings"
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
OTHER = {"matchLabels": {"app": "b"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@each(
    "objects",
    "a field that cannot be changed",
    {
        "configmap_data": {
            "path": CONFIGMAPS,
            "body": named("a", immutable=True, data={"k": "v"}),
            "patch": {"data": {"k": "w"}},
        },
        "configmap_immutable": {
            "path": CONFIGMAPS,
            "body": named("a", immutable=True),
            "patch": {"immutable": None},
        },
        "configmap_labels_can": {
            "path": CONFIGMAPS,
            "body": named("a", immutable=True),
            "patch": {"metadata": {"labels": {"a": "b"}}},
        },
        "secret_data": {
            "path": SECRETS,
            "body": named("a", immutable=True, stringData={"k": "v"}),
            "patch": {"stringData": {"k": "w"}},
        },
        "secret_type": {
            "path": SECRETS,
            "body": named("a", type="Opaque"),
            "patch": {"type": "other"},
        },
        "service_cluster_ip": {
            "path": SERVICES,
            "body": service(),
            "patch": {"spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]}},
        },
        "service_headless": {
            "path": SERVICES,
            "body": service(clusterIP="None"),
            "patch": {"spec": {"clusterIP": "10.0.0.8"}},
        },
        "deployment_selector": {
            "path": DEPLOYMENTS,
            "body": deployment(),
            "patch": {"spec": {"selector": OTHER}},
        },
        "replicaset_selector": {
            "path": REPLICASETS,
            "body": replicaset(),
            "patch": {
                "spec": {"selector": OTHER, "template": {"metadata": {"labels": {"app": "b"}}}}
            },
        },
        "daemonset_selector": {
            "path": DAEMONSETS,
            "body": deployment(),
            "patch": {
                "spec": {"selector": OTHER, "template": {"metadata": {"labels": {"app": "b"}}}}
            },
        },
        "statefulset_service": {
            "path": STATEFULSETS,
            "body": statefulset(),
            "patch": {"spec": {"serviceName": "t"}},
        },
        "statefulset_replicas_can": {
            "path": STATEFULSETS,
            "body": statefulset(),
            "patch": {"spec": {"replicas": 5}},
        },
        "job_template": {
            "path": JOBS,
            "body": job(),
            "patch": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
        },
        "job_completions": {
            "path": JOBS,
            "body": job(completions=2),
            "patch": {"spec": {"completions": 3}},
        },
        "job_selector": {
            "path": JOBS,
            "body": job(),
            "patch": {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
        },
        "job_parallelism_can": {
            "path": JOBS,
            "body": job(),
            "patch": {"spec": {"parallelism": 3}},
        },
        "pod_node": {
            "path": PODS,
            "body": pod(nodeName="n"),
            "patch": {"spec": {"nodeName": "m"}},
        },
        "pod_service_account": {
            "path": PODS,
            "body": pod(),
            "patch": {"spec": {"serviceAccountName": "other"}},
        },
        "pod_grace": {
            "path": PODS,
            "body": pod(),
            "patch": {"spec": {"terminationGracePeriodSeconds": 5}},
        },
        "pod_deadline_can": {
            "path": PODS,
            "body": pod(),
            "patch": {"spec": {"activeDeadlineSeconds": 5}},
        },
        "pod_tolerations_removed": {
            "path": PODS,
            "body": pod(tolerations=[{"key": "k", "operator": "Exists"}]),
            "patch": {"spec": {"tolerations": []}},
        },
        "claim_modes": {
            "path": CLAIMS,
            "body": named("a", spec=CLAIM),
            "patch": {"spec": {"accessModes": ["ReadWriteMany"]}},
        },
        "role_reference": {
            "path": ROLES,
            "body": named("a", roleRef=ROLE),
            "patch": {"roleRef": {"name": "b"}},
        },
        "endpoint_slice_address_type": {
            "path": SLICES,
            "body": named("a", addressType="IPv4", endpoints=[]),
            "patch": {"addressType": "IPv6"},
        },
        "name": {
            "path": CONFIGMAPS,
            "body": named("a"),
            "patch": {"metadata": {"name": "b"}},
        },
        "namespace": {
            "path": CONFIGMAPS,
            "body": named("a"),
            "patch": {"metadata": {"namespace": "default"}},
        },
        "uid": {
            "path": CONFIGMAPS,
            "body": named("a"),
            "patch": {"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}},
        },
        "creation_time": {
            "path": CONFIGMAPS,
            "body": named("a"),
            "patch": {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}},
        },
    },
)
async def immutable(s: Session, *, path: str, body: Body, patch: Body) -> None:
    await s.make(path, body)
    await s.patch(f"{path}/a", patch)
    if path == CLAIMS:
        await s.change(f"{path}/a", RELEASE)


@case("objects", "of a pod the images can be changed, more containers cannot be added")
async def pod_containers(s: Session) -> None:
    await s.make(PODS, pod())
    image = {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}
    more = {"spec": {"containers": [{"name": "d", "image": "example.com/d:1"}]}}
    await s.patch(f"{PODS}/a", image, kind="strategic-merge", view=only("metadata", "spec"))
    await s.patch(f"{PODS}/a", more, kind="strategic-merge")


@case("objects", "an address of a service comes back with an update that leaves it out")
async def service_address_kept(s: Session) -> None:
    made = await s.make(SERVICES, service())
    metadata = {"resourceVersion": made["metadata"]["resourceVersion"]}
    body = {**service(), "metadata": {"name": "a", **metadata}}
    await s.put(f"{SERVICES}/a", {**body, "spec": {**body["spec"], "sessionAffinity": "ClientIP"}})
    answer = await s.get(f"{SERVICES}/a", view=seen(lambda body: body["spec"]["sessionAffinity"]))
    assert answer["spec"]["clusterIP"] == made["spec"]["clusterIP"]


@case("objects", "a service can become external and come back")
async def service_type(s: Session) -> None:
    await s.make(SERVICES, service())
    external = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    await s.patch(f"{SERVICES}/a", external)
    back = {"spec": {"type": "ClusterIP", "externalName": None}}
    types = seen(lambda body: [body["spec"]["type"], bool(body["spec"]["clusterIP"])])
    await s.patch(f"{SERVICES}/a", back, view=types)
    await s.patch(f"{SERVICES}/a", {"spec": {"type": "Nonsense"}})

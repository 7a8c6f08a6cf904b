"""An object of each main kind as it is created: defaults, status, generation, managed fields."""

from __future__ import annotations

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
    replicaset,
    service,
    statefulset,
    template,
)
from tests.contract.session import Session

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
GROUP = "rbac.authorization.k8s.io"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
NETWORKING = "/apis/networking.k8s.io/v1/namespaces/{ns}"

NAMESPACED: dict[str, dict[str, object]] = {
    "pod": {"path": PODS, "body": pod()},
    "deployment": {"path": DEPLOYMENTS, "body": deployment()},
    "replicaset": {"path": REPLICASETS, "body": replicaset()},
    "statefulset": {"path": STATEFULSETS, "body": statefulset()},
    "statefulset_claims": {
        "path": STATEFULSETS,
        "body": statefulset(volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": CLAIM}]),
    },
    "daemonset": {"path": DAEMONSETS, "body": deployment()},
    "job": {"path": JOBS, "body": job()},
    "job_indexed": {
        "path": JOBS,
        "body": job(completions=3, parallelism=2, completionMode="Indexed"),
    },
    "cronjob": {
        "path": f"{BATCH}/cronjobs",
        "body": named(
            "a", spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": job()["spec"]}}
        ),
    },
    "service": {"path": SERVICES, "body": service()},
    "service_headless": {"path": SERVICES, "body": service(clusterIP="None")},
    "service_headless_no_selector": {
        "path": SERVICES,
        "body": named("a", spec={"clusterIP": "None", "ports": [{"port": 80}]}),
    },
    "service_node_port": {"path": SERVICES, "body": service(type="NodePort")},
    "service_load_balancer": {"path": SERVICES, "body": service(type="LoadBalancer")},
    "service_external": {
        "path": SERVICES,
        "body": named("a", spec={"type": "ExternalName", "externalName": "example.com"}),
    },
    "service_ports": {
        "path": SERVICES,
        "body": service(
            ports=[
                {"name": "a", "port": 80, "targetPort": "http"},
                {"name": "b", "port": 53, "protocol": "UDP", "appProtocol": "dns"},
            ],
            sessionAffinity="ClientIP",
        ),
    },
    "configmap": {
        "path": CONFIGMAPS,
        "body": named("a", data={"k": "v"}, binaryData={"b": "aGk="}),
    },
    "secret": {"path": SECRETS, "body": named("a", data={"k": "dg=="}, stringData={"l": "w"})},
    "secret_overlap": {
        "path": SECRETS,
        "body": named("a", data={"k": "dg=="}, stringData={"k": "w"}),
    },
    "secret_basic_auth": {
        "path": SECRETS,
        "body": named("a", type="kubernetes.io/basic-auth", stringData={"username": "u"}),
    },
    "secret_tls": {
        "path": SECRETS,
        "body": named("a", type="kubernetes.io/tls", stringData={"tls.crt": "c", "tls.key": "k"}),
    },
    "lease": {
        "path": LEASES,
        "body": named(
            "a",
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "renewTime": "2026-01-02T03:04:05.678901Z",
                "leaseTransitions": 2,
            },
        ),
    },
    "event": {
        "path": "/api/v1/namespaces/{ns}/events",
        "body": named(
            "a",
            involvedObject={"kind": "Pod", "name": "p", "namespace": "{ns}"},
            reason="Started",
            message="it has started",
            type="Normal",
            count=3,
            firstTimestamp="2026-01-02T03:04:05Z",
            lastTimestamp="2026-01-02T03:04:06Z",
            source={"component": "kubelet", "host": "n"},
        ),
    },
    "new_event": {
        "path": "/apis/events.k8s.io/v1/namespaces/{ns}/events",
        "body": named(
            "a",
            regarding={"kind": "Pod", "name": "p", "namespace": "{ns}"},
            reason="Started",
            note="it has started",
            action="Starting",
            type="Normal",
            eventTime="2026-01-02T03:04:05.678901Z",
            reportingController="example.com/c",
            reportingInstance="c-1",
        ),
    },
    "endpoint_slice": {
        "path": "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
        "body": named(
            "a",
            addressType="IPv4",
            endpoints=[{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}],
            ports=[{"port": 80}],
        ),
    },
    "endpoints": {
        "path": "/api/v1/namespaces/{ns}/endpoints",
        "body": named("a", subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]),
    },
    "service_account": {"path": SERVICEACCOUNTS, "body": named("a")},
    "role": {"path": f"{RBAC}/namespaces/{{ns}}/roles", "body": named("a", rules=[RULE])},
    "role_binding": {
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
    },
    "claim": {"path": CLAIMS, "body": named("a", spec=CLAIM)},
    "ingress": {
        "path": f"{NETWORKING}/ingresses",
        "body": named(
            "a",
            spec={
                "rules": [
                    {
                        "host": "example.com",
                        "http": {
                            "paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]
                        },
                    }
                ]
            },
        ),
    },
    "network_policy": {
        "path": f"{NETWORKING}/networkpolicies",
        "body": named("a", spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}),
    },
    "autoscaler": {
        "path": "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        "body": named("a", spec={"scaleTargetRef": SCALED, "maxReplicas": 5}),
    },
    "disruption_budget": {
        "path": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        "body": named("a", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}),
    },
    "quota": {
        "path": "/api/v1/namespaces/{ns}/resourcequotas",
        "body": named("a", spec={"hard": {"pods": "5", "requests.cpu": "1500m"}}),
    },
    "limit_range": {
        "path": "/api/v1/namespaces/{ns}/limitranges",
        "body": named("a", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}}]}),
    },
    "controller_revision": {
        "path": "/apis/apps/v1/namespaces/{ns}/controllerrevisions",
        "body": named("a", revision=1, data={"any": {"thing": [1, 2]}}),
    },
    "pod_template": {
        "path": "/api/v1/namespaces/{ns}/podtemplates",
        "body": named("a", template=template()),
    },
    "replication_controller": {
        "path": "/api/v1/namespaces/{ns}/replicationcontrollers",
        "body": named("a", spec={"template": template()}),
    },
}

CLUSTER: dict[str, dict[str, object]] = {
    "namespace": {"path": NAMESPACES, "body": {}},
    "node": {"path": NODES, "body": {}},
    "node_taints": {
        "path": NODES,
        "body": {
            "spec": {
                "podCIDR": "10.1.0.0/24",
                "unschedulable": True,
                "taints": [{"key": "k", "effect": "NoSchedule"}],
            }
        },
    },
    "cluster_role": {"path": f"{RBAC}/clusterroles", "body": {"rules": [RULE]}},
    "cluster_role_aggregated": {
        "path": f"{RBAC}/clusterroles",
        "body": {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}},
    },
    "cluster_role_binding": {
        "path": f"{RBAC}/clusterrolebindings",
        "body": {
            "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": GROUP},
            "subjects": [{"kind": "User", "name": "u", "apiGroup": GROUP}],
        },
    },
    "volume": {
        "path": "/api/v1/persistentvolumes",
        "body": {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"},
            }
        },
    },
    "storage_class": {
        "path": "/apis/storage.k8s.io/v1/storageclasses",
        "body": {"provisioner": "example.com/p"},
    },
    "priority_class": {
        "path": "/apis/scheduling.k8s.io/v1/priorityclasses",
        "body": {"value": 1000},
    },
    "ingress_class": {
        "path": "/apis/networking.k8s.io/v1/ingressclasses",
        "body": {"spec": {"controller": "example.com/c"}},
    },
    "runtime_class": {
        "path": "/apis/node.k8s.io/v1/runtimeclasses",
        "body": {"handler": "x"},
    },
}


@each("kinds", "a small object with its defaults", NAMESPACED)
async def small(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, _here(s, body))
    if path == CLAIMS:
        await s.change(f"{path}/a", RELEASE)


@each("kinds", "a small cluster-scoped object with its defaults", CLUSTER)
async def small_cluster(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, named(s.unique("a"), **body))
    if path.endswith("/persistentvolumes"):
        await s.change(f"{path}/{s.unique('a')}", RELEASE)


@case("kinds", "an event of one version is read as the other")
async def event_versions(s: Session) -> None:
    old = NAMESPACED["event"]
    await s.make(str(old["path"]), _here(s, old["body"]))
    await s.get("/apis/events.k8s.io/v1/namespaces/{ns}/events/a")
    new = NAMESPACED["new_event"]
    assert isinstance(new["body"], dict)
    await s.make(str(new["path"]), {**_here(s, new["body"]), "metadata": {"name": "b"}})
    await s.get("/api/v1/namespaces/{ns}/events/b")


@case("kinds", "an autoscaler of version 2 is read as version 1")
async def autoscaler_versions(s: Session) -> None:
    body = NAMESPACED["autoscaler"]
    await s.make(str(body["path"]), body["body"])
    await s.get("/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers/a")


def _here(s: Session, body: object) -> Body:
    """Return a body in which {ns} is the namespace of the case."""
    if isinstance(body, dict):
        return {key: _here(s, each) for key, each in body.items()}
    if isinstance(body, list):
        return [_here(s, each) for each in body]  # type: ignore[return-value]
    return s.ns if body == "{ns}" else body  # type: ignore[return-value]

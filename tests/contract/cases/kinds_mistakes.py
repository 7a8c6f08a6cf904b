"""The most common mistakes in objects of each main kind but pods."""

from __future__ import annotations

from tests.contract.case import each
from tests.contract.cases import CONFIGMAPS, SECRETS, SERVICES
from tests.contract.cases.kinds_bodies import (
    BATCH,
    CLAIMS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NODES,
    REPLICASETS,
    STATEFULSETS,
    Body,
    deployment,
    job,
    named,
    pod,
    service,
    statefulset,
    template,
)
from tests.contract.session import Session

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
CRONJOBS = f"{BATCH}/cronjobs"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
NETWORKING = "/apis/networking.k8s.io/v1/namespaces/{ns}"
JOB = {"spec": job()["spec"]}


def binding(**more: object) -> Body:
    """Return a RoleBinding."""
    return named("a", roleRef={"kind": "Role", "name": "r", "apiGroup": GROUP}, **more)


@each(
    "kinds",
    "a mistake in a workload",
    {
        "no_spec": {"path": DEPLOYMENTS, "body": named("a")},
        "no_selector": {"path": DEPLOYMENTS, "body": named("a", spec={"template": template()})},
        "empty_selector": {"path": DEPLOYMENTS, "body": deployment(selector={})},
        "other_labels": {
            "path": DEPLOYMENTS,
            "body": deployment(selector={"matchLabels": {"app": "b"}}),
        },
        "no_template": {
            "path": DEPLOYMENTS,
            "body": named("a", spec={"selector": {"matchLabels": {"app": "a"}}}),
        },
        "negative_replicas": {"path": DEPLOYMENTS, "body": deployment(replicas=-1)},
        "restart_policy": {
            "path": DEPLOYMENTS,
            "body": deployment(template=template(restartPolicy="Never")),
        },
        "strategy": {"path": DEPLOYMENTS, "body": deployment(strategy={"type": "Fast"})},
        "recreate_rolling": {
            "path": DEPLOYMENTS,
            "body": deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
        },
        "both_zero": {
            "path": DEPLOYMENTS,
            "body": deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
        },
        "bad_percent": {
            "path": DEPLOYMENTS,
            "body": deployment(strategy={"rollingUpdate": {"maxSurge": "many"}}),
        },
        "progress_deadline": {
            "path": DEPLOYMENTS,
            "body": deployment(minReadySeconds=700, progressDeadlineSeconds=600),
        },
        "selector_operator": {
            "path": DEPLOYMENTS,
            "body": deployment(selector={"matchExpressions": [{"key": "app", "operator": "Is"}]}),
        },
        "selector_values": {
            "path": REPLICASETS,
            "body": deployment(selector={"matchExpressions": [{"key": "app", "operator": "In"}]}),
        },
        "replicaset_labels": {
            "path": REPLICASETS,
            "body": deployment(selector={"matchLabels": {"app": "b"}}),
        },
        "stateful_policy": {
            "path": STATEFULSETS,
            "body": statefulset(podManagementPolicy="Any", updateStrategy={"type": "Fast"}),
        },
        "stateful_no_selector": {
            "path": STATEFULSETS,
            "body": named("a", spec={"serviceName": "s", "template": template()}),
        },
        "daemon_strategy": {
            "path": DAEMONSETS,
            "body": deployment(updateStrategy={"type": "Fast"}),
        },
        "daemon_labels": {
            "path": DAEMONSETS,
            "body": deployment(selector={"matchLabels": {"app": "b"}}),
        },
        "job_restart_always": {
            "path": JOBS,
            "body": named("a", spec={"template": {"spec": pod()["spec"]}}),
        },
        "job_negative": {"path": JOBS, "body": job(parallelism=-1, completions=-1)},
        "job_backoff": {"path": JOBS, "body": job(backoffLimit=-1, activeDeadlineSeconds=-1)},
        "job_indexed": {"path": JOBS, "body": job(completionMode="Indexed")},
        "job_mode": {"path": JOBS, "body": job(completionMode="Other")},
        "job_selector": {"path": JOBS, "body": job(selector={"matchLabels": {"a": "b"}})},
        "cron_schedule": {
            "path": CRONJOBS,
            "body": named("a", spec={"schedule": "every day", "jobTemplate": JOB}),
        },
        "cron_none": {"path": CRONJOBS, "body": named("a", spec={"jobTemplate": JOB})},
        "cron_zone": {
            "path": CRONJOBS,
            "body": named(
                "a",
                spec={"schedule": "@daily", "timeZone": "Moon/Base", "jobTemplate": JOB},
            ),
        },
        "cron_policy": {
            "path": CRONJOBS,
            "body": named(
                "a",
                spec={"schedule": "@daily", "concurrencyPolicy": "Maybe", "jobTemplate": JOB},
            ),
        },
        "cron_long_name": {
            "path": CRONJOBS,
            "body": named("a" * 53, spec={"schedule": "@daily", "jobTemplate": JOB}),
        },
    },
)
async def mistake_workload(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, body)


@each(
    "kinds",
    "a mistake in a service",
    {
        "no_ports": {"body": service(ports=[])},
        "no_spec": {"body": named("a")},
        "port_zero": {"body": service(ports=[{"port": 0}])},
        "port_range": {"body": service(ports=[{"port": 99999}])},
        "port_names": {"body": service(ports=[{"port": 1}, {"port": 2}])},
        "port_names_same": {
            "body": service(ports=[{"name": "a", "port": 1}, {"name": "a", "port": 2}])
        },
        "port_twice": {"body": service(ports=[{"name": "a", "port": 1}, {"name": "b", "port": 1}])},
        "protocol": {"body": service(ports=[{"port": 1, "protocol": "HTTP"}])},
        "target": {"body": service(ports=[{"port": 1, "targetPort": "a_b"}])},
        "type": {"body": service(type="Internal")},
        "affinity": {"body": service(sessionAffinity="Sticky")},
        "cluster_ip": {"body": service(clusterIP="somewhere")},
        "cluster_ip_range": {"body": service(clusterIP="192.168.77.1")},
        "external_none": {"body": named("a", spec={"type": "ExternalName"})},
        "external_bad": {"body": named("a", spec={"type": "ExternalName", "externalName": "A_b!"})},
        "node_port_range": {"body": service(type="NodePort", ports=[{"port": 80, "nodePort": 5}])},
        "node_port_unused": {"body": service(ports=[{"port": 80, "nodePort": 30001}])},
        "headless_node_port": {"body": service(type="NodePort", clusterIP="None")},
        "selector": {"body": service(selector={"a b": "c"})},
        "traffic_policy": {"body": service(externalTrafficPolicy="Local")},
    },
)
async def mistake_service(s: Session, *, body: Body) -> None:
    await s.post(SERVICES, body)


@each(
    "kinds",
    "a mistake in an object of another kind",
    {
        "configmap_key": {"path": CONFIGMAPS, "body": named("a", data={"a b": "x"})},
        "configmap_key_dots": {"path": CONFIGMAPS, "body": named("a", data={"..": "x"})},
        "configmap_both": {
            "path": CONFIGMAPS,
            "body": named("a", data={"k": "x"}, binaryData={"k": "aGk="}),
        },
        "secret_base64": {"path": SECRETS, "body": named("a", data={"k": "not base64"})},
        "secret_key": {"path": SECRETS, "body": named("a", stringData={"a/b": "x"})},
        "secret_tls": {"path": SECRETS, "body": named("a", type="kubernetes.io/tls")},
        "secret_docker": {
            "path": SECRETS,
            "body": named(
                "a",
                type="kubernetes.io/dockerconfigjson",
                stringData={".dockerconfigjson": "no json"},
            ),
        },
        "secret_ssh": {"path": SECRETS, "body": named("a", type="kubernetes.io/ssh-auth")},
        "secret_basic": {"path": SECRETS, "body": named("a", type="kubernetes.io/basic-auth")},
        "secret_token": {
            "path": SECRETS,
            "body": named("a", type="kubernetes.io/service-account-token"),
        },
        "node_taint": {
            "path": NODES,
            "body": named("a", spec={"taints": [{"key": "a b", "effect": "Maybe"}]}),
        },
        "node_cidr": {"path": NODES, "body": named("a", spec={"podCIDR": "10.1"})},
        "lease_duration": {
            "path": LEASES,
            "body": named("a", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
        },
        "lease_time": {"path": LEASES, "body": named("a", spec={"renewTime": "now"})},
        "event_namespace": {
            "path": "/api/v1/namespaces/{ns}/events",
            "body": named("a", involvedObject={"kind": "Pod", "name": "p", "namespace": "other"}),
        },
        "new_event": {
            "path": "/apis/events.k8s.io/v1/namespaces/{ns}/events",
            "body": named("a", regarding={"kind": "Node", "name": "n"}),
        },
        "new_event_lengths": {
            "path": "/apis/events.k8s.io/v1/namespaces/{ns}/events",
            "body": named(
                "a",
                regarding={"kind": "Node", "name": "n"},
                eventTime="2026-01-01T00:00:00.000000Z",
                type="Normal",
                action="A",
                reason="ö" * 100,  # 200 bytes
                note="ö" * 513,
                reportingController="example.com/c",
                reportingInstance="i",
            ),
        },
        "slice_type": {"path": SLICES, "body": named("a", endpoints=[])},
        "slice_unknown_type": {"path": SLICES, "body": named("a", addressType="IPv5")},
        "slice_address": {
            "path": SLICES,
            "body": named("a", addressType="IPv4", endpoints=[{"addresses": ["::1"]}]),
        },
        "slice_no_address": {
            "path": SLICES,
            "body": named("a", addressType="IPv4", endpoints=[{"addresses": []}]),
        },
        "role_no_verbs": {
            "path": f"{RBAC}/namespaces/{{ns}}/roles",
            "body": named("a", rules=[{"apiGroups": [""], "resources": ["pods"]}]),
        },
        "role_url": {
            "path": f"{RBAC}/namespaces/{{ns}}/roles",
            "body": named("a", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
        },
        "role_no_groups": {
            "path": f"{RBAC}/namespaces/{{ns}}/roles",
            "body": named("a", rules=[{"resources": ["pods"], "verbs": ["get"]}]),
        },
        "binding_no_role": {"path": f"{RBAC}/namespaces/{{ns}}/rolebindings", "body": named("a")},
        "binding_kind": {
            "path": f"{RBAC}/namespaces/{{ns}}/rolebindings",
            "body": named("a", roleRef={"kind": "Pod", "name": "r", "apiGroup": GROUP}),
        },
        "binding_subject": {
            "path": f"{RBAC}/namespaces/{{ns}}/rolebindings",
            "body": binding(subjects=[{"kind": "Robot", "name": "r"}]),
        },
        "binding_account": {
            "path": f"{RBAC}/namespaces/{{ns}}/rolebindings",
            "body": binding(subjects=[{"kind": "ServiceAccount", "name": "r"}]),
        },
        "cluster_binding_role": {
            "path": f"{RBAC}/clusterrolebindings",
            "body": named("a-mistake", roleRef={"kind": "Role", "name": "r", "apiGroup": GROUP}),
        },
        "claim_empty": {"path": CLAIMS, "body": named("a", spec={})},
        "claim_mode": {
            "path": CLAIMS,
            "body": named(
                "a",
                spec={
                    "accessModes": ["Always"],
                    "resources": {"requests": {"storage": "0"}},
                },
            ),
        },
        "budget_both": {
            "path": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            "body": named("a", spec={"minAvailable": 1, "maxUnavailable": 1}),
        },
        "autoscaler": {
            "path": "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
            "body": named("a", spec={"minReplicas": 5, "maxReplicas": 3}),
        },
        "ingress_empty": {"path": f"{NETWORKING}/ingresses", "body": named("a", spec={})},
        "network_policy_type": {
            "path": f"{NETWORKING}/networkpolicies",
            "body": named("a", spec={"podSelector": {}, "policyTypes": ["Sideways"]}),
        },
        "quota_value": {
            "path": "/api/v1/namespaces/{ns}/resourcequotas",
            "body": named("a", spec={"hard": {"pods": "-1"}}),
        },
    },
)
async def mistake_other(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, body)

"""Objects with many fields: what is defaulted deep inside."""

from __future__ import annotations

from tests.contract.case import case, each
from tests.contract.cases import PODS
from tests.contract.cases.kinds_bodies import (
    BATCH,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    STATEFULSETS,
    Body,
    deployment,
    job,
    named,
    only,
    pod,
    statefulset,
)
from tests.contract.session import Session

SHOWN = only("spec", "status")


def container(**more: object) -> Body:
    """Return a pod whose container has these fields."""
    return pod(containers=[{"name": "c", "image": "example.com/c", **more}])


@each(
    "kinds",
    "a pod's defaults",
    {
        "tag": {"body": pod(containers=[{"name": "c", "image": "example.com/c:1.2"}])},
        "latest": {"body": pod(containers=[{"name": "c", "image": "example.com/c:latest"}])},
        "digest": {
            "body": pod(containers=[{"name": "c", "image": "example.com/c@sha256:" + "a" * 64}])
        },
        "ports": {"body": container(ports=[{"containerPort": 80}])},
        "host_network": {
            "body": pod(
                hostNetwork=True,
                containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}],
            )
        },
        "http_probe": {"body": container(livenessProbe={"httpGet": {"port": 80}})},
        "exec_probe": {
            "body": container(readinessProbe={"exec": {"command": ["x"]}, "periodSeconds": 3})
        },
        "grpc_probe": {"body": container(startupProbe={"grpc": {"port": 9000}})},
        "limits": {
            "body": container(resources={"limits": {"cpu": "1500m", "memory": "0.5Gi"}}),
        },
        "requests": {
            "body": container(
                resources={"requests": {"cpu": "0.1"}, "limits": {"cpu": "1", "memory": "1e3"}}
            )
        },
        "env": {
            "body": container(
                env=[
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
                    {"name": "C"},
                ]
            )
        },
        "volumes": {
            "body": pod(
                volumes=[
                    {"name": "none"},
                    {"name": "host", "hostPath": {"path": "/x"}},
                    {"name": "map", "configMap": {"name": "m"}},
                    {"name": "secret", "secret": {"secretName": "s"}},
                    {"name": "down", "downwardAPI": {"items": []}},
                    {
                        "name": "projected",
                        "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                    },
                    {
                        "name": "ephemeral",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}},
                                }
                            }
                        },
                    },
                ]
            )
        },
        "init_containers": {
            "body": pod(
                initContainers=[
                    {"name": "i", "image": "example.com/i", "restartPolicy": "Always"},
                    {"name": "j", "image": "example.com/j"},
                ]
            )
        },
        "lifecycle": {
            "body": container(
                lifecycle={"preStop": {"httpGet": {"port": "web"}}},
                securityContext={"runAsUser": 0, "capabilities": {"drop": ["ALL"]}},
            )
        },
        "scheduling": {
            "body": pod(
                nodeSelector={"a": "b"},
                topologySpreadConstraints=[
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"a": "b"}},
                    }
                ],
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchLabels": {"a": "b"}},
                            }
                        ]
                    }
                },
            )
        },
        "service_account": {"body": pod(serviceAccountName="robot")},
        "tolerations": {
            "body": pod(
                tolerations=[
                    {"key": "a", "value": "b"},
                    {
                        "key": "node.kubernetes.io/not-ready",
                        "operator": "Exists",
                        "effect": "NoExecute",
                    },
                ]
            )
        },
        "priority": {"body": pod(priorityClassName="system-node-critical")},
        "node": {"body": pod(nodeName="n")},
    },
)
async def pod_defaults(s: Session, *, body: Body) -> None:
    await s.post(PODS, body, view=SHOWN)


@case("kinds", "a pod whose priority class is unknown is refused")
async def pod_priority_unknown(s: Session) -> None:
    await s.post(PODS, pod(priorityClassName="no-such-class"))


@case("kinds", "a pod takes the priority of its class")
async def pod_priority(s: Session) -> None:
    name = s.unique("high")
    await s.make(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named(name, value=77, preemptionPolicy="Never"),
    )
    await s.post(PODS, pod(priorityClassName=name), view=SHOWN)


@each(
    "kinds",
    "strategies and policies of workloads",
    {
        "recreate": {"path": DEPLOYMENTS, "body": deployment(strategy={"type": "Recreate"})},
        "rolling": {
            "path": DEPLOYMENTS,
            "body": deployment(strategy={"rollingUpdate": {"maxSurge": 2}}),
        },
        "zero_replicas": {"path": DEPLOYMENTS, "body": deployment(replicas=0, paused=True)},
        "stateful_on_delete": {
            "path": STATEFULSETS,
            "body": statefulset(updateStrategy={"type": "OnDelete"}),
        },
        "stateful_partition": {
            "path": STATEFULSETS,
            "body": statefulset(
                updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
                podManagementPolicy="Parallel",
            ),
        },
        "daemon_on_delete": {
            "path": DAEMONSETS,
            "body": deployment(updateStrategy={"type": "OnDelete"}),
        },
        "job_policy": {
            "path": JOBS,
            "body": job(
                backoffLimit=0,
                ttlSecondsAfterFinished=5,
                podFailurePolicy={
                    "rules": [
                        {
                            "action": "Ignore",
                            "onPodConditions": [{"type": "DisruptionTarget"}],
                        }
                    ]
                },
            ),
        },
        "job_manual_selector": {
            "path": JOBS,
            "body": named(
                "a",
                spec={
                    "manualSelector": True,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": pod(restartPolicy="Never")["spec"],
                    },
                },
            ),
        },
        "cronjob_suspended": {
            "path": f"{BATCH}/cronjobs",
            "body": named(
                "a",
                spec={
                    "schedule": "@daily",
                    "timeZone": "Etc/UTC",
                    "suspend": True,
                    "concurrencyPolicy": "Forbid",
                    "jobTemplate": {"spec": job()["spec"]},
                },
            ),
        },
    },
)
async def workload(s: Session, *, path: str, body: Body) -> None:
    await s.post(path, body, view=SHOWN)


@case("kinds", "quantities are answered in their canonical form")
async def quantities(s: Session) -> None:
    hard = {
        "pods": "1e1",
        "requests.cpu": "0.1",
        "limits.cpu": "1000m",
        "requests.memory": "1024Mi",
        "limits.memory": "1.5Gi",
        "requests.storage": "1000000",
        "count/a": "0",
    }
    body = named("a", spec={"hard": hard})
    await s.post("/api/v1/namespaces/{ns}/resourcequotas", body, view=only("spec"))


@case("kinds", "a node's status is filled through its subresource")
async def node_status(s: Session) -> None:
    name = s.unique("node")
    await s.make("/api/v1/nodes", named(name))
    status = {
        "capacity": {"cpu": "4", "memory": "8Gi"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
        "nodeInfo": {"kubeletVersion": "v1.36.0"},
    }
    await s.patch(f"/api/v1/nodes/{name}/status", {"status": status}, view=SHOWN)

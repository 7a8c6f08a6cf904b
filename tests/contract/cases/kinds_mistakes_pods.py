"""The most common mistakes in pods."""

from __future__ import annotations

from tests.contract.case import each
from tests.contract.cases import PODS
from tests.contract.cases.kinds_bodies import Body, named, pod
from tests.contract.session import Session


def container(**more: object) -> Body:
    """Return a pod whose container has these fields."""
    return pod(containers=[{"name": "c", "image": "example.com/c", **more}])


@each(
    "kinds",
    "a mistake in a pod",
    {
        "no_spec": {"body": named("a")},
        "no_containers": {"body": pod(containers=[])},
        "no_image": {"body": pod(containers=[{"name": "c"}])},
        "no_name": {"body": pod(containers=[{"image": "i"}])},
        "name_upper": {"body": pod(containers=[{"name": "C", "image": "i"}])},
        "name_twice": {"body": pod(containers=[{"name": "c", "image": "i"}] * 2)},
        "image_space": {"body": pod(containers=[{"name": "c", "image": " i "}])},
        "restart_policy": {"body": pod(restartPolicy="Sometimes")},
        "dns_policy": {"body": pod(dnsPolicy="Mine")},
        "pull_policy": {"body": container(imagePullPolicy="Never again")},
        "port_range": {"body": container(ports=[{"containerPort": 70000}])},
        "port_missing": {"body": container(ports=[{"name": "http"}])},
        "port_protocol": {"body": container(ports=[{"containerPort": 1, "protocol": "HTTP"}])},
        "port_name": {"body": container(ports=[{"containerPort": 1, "name": "a_name_too_long"}])},
        "env_name": {"body": container(env=[{"name": "a=b", "value": "x"}])},
        "env_both": {
            "body": container(
                env=[
                    {
                        "name": "A",
                        "value": "x",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                    }
                ]
            )
        },
        "env_field": {
            "body": container(
                env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.colour"}}}]
            )
        },
        "mount_unknown": {"body": container(volumeMounts=[{"name": "v", "mountPath": "/v"}])},
        "mount_twice": {
            "body": pod(
                volumes=[{"name": "v", "emptyDir": {}}],
                containers=[
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}] * 2,
                    }
                ],
            )
        },
        "volume_twice": {"body": pod(volumes=[{"name": "v"}, {"name": "v"}])},
        "volume_two_sources": {
            "body": pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}])
        },
        "volume_secret_name": {"body": pod(volumes=[{"name": "v", "secret": {}}])},
        "requests_over_limits": {
            "body": container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})
        },
        "resource_negative": {"body": container(resources={"limits": {"cpu": "-1"}})},
        "resource_name": {"body": container(resources={"limits": {"colour": "1"}})},
        "probe_two": {
            "body": container(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}})
        },
        "probe_none": {"body": container(livenessProbe={})},
        "probe_negative": {
            "body": container(livenessProbe={"tcpSocket": {"port": 1}, "periodSeconds": -1})
        },
        "grace_negative": {"body": pod(terminationGracePeriodSeconds=-5)},
        "deadline_zero": {"body": pod(activeDeadlineSeconds=0)},
        "toleration_operator": {
            "body": pod(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}])
        },
        "host_ports": {
            "body": pod(
                containers=[
                    {"name": n, "image": "i", "ports": [{"containerPort": 1, "hostPort": 80}]}
                    for n in "cd"
                ]
            )
        },
        "host_network_port": {
            "body": pod(
                hostNetwork=True,
                containers=[
                    {"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}
                ],
            )
        },
        "node_name": {"body": pod(nodeName="a b")},
        "hostname": {"body": pod(hostname="A.b", subdomain="x_y")},
        "node_selector": {"body": pod(nodeSelector={"a b": "c d"})},
        "service_account": {"body": pod(serviceAccountName="a b")},
    },
)
async def mistake_pod(s: Session, *, body: Body) -> None:
    await s.post(PODS, body)

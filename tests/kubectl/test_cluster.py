"""kubectl's commands about the server itself, its kinds, its nodes, and the user."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kubectl.support_kubectl import Kubectl, pod

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    name = f"node-of-{kubectl.namespace}"
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "nodeInfo": {"kubeletVersion": "v1.36.0"},
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    }
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    kubectl("create", "-f", "-", given=made)
    args = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    kubectl("patch", "node", name, *args)
    yield name
    kubectl("delete", "node", name)


def test_the_server_is_of_kubectls_version(kubectl: Kubectl) -> None:
    versions = json.loads(kubectl("version", "-o", "json"))
    assert (versions["serverVersion"]["major"], versions["serverVersion"]["minor"]) == ("1", "36")
    assert "clientVersion" in versions


def test_the_control_plane_has_an_address(kubectl: Kubectl) -> None:
    assert "Kubernetes control plane" in kubectl("cluster-info")


def test_all_kinds_are_listed_with_short_names(kubectl: Kubectl) -> None:
    listed = kubectl.rows("api-resources")
    assert ["configmaps", "cm", "v1", "true", "ConfigMap"] in listed
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in listed
    assert ["namespaces", "ns", "v1", "false", "Namespace"] in listed
    assert len(listed) > 50
    names = kubectl("api-resources", "--api-group=apps", "-o", "name").split()
    assert "statefulsets.apps" in names
    assert "pods" not in names
    roaming = kubectl("api-resources", "--namespaced=false", "-o", "name").split()
    assert "nodes" in roaming
    assert "pods" not in roaming
    assert "configmaps" in kubectl("api-resources", "--verbs=list,watch", "-o", "name").split()
    assert "bindings" not in kubectl("api-resources", "--verbs=list,watch", "-o", "name").split()
    assert "pods" in kubectl("api-resources", "--categories=all", "-o", "name").split()


def test_all_versions_are_listed(kubectl: Kubectl) -> None:
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"} <= set(
        kubectl("api-versions").split()
    )


def test_kinds_and_fields_are_explained(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployments")
    assert "GROUP:      apps" in text
    assert "KIND:       Deployment" in text
    assert "spec\t<DeploymentSpec>" in text
    text = kubectl("explain", "pod.spec.containers.imagePullPolicy")
    assert "FIELD: imagePullPolicy <string>" in text
    assert '`"IfNotPresent"`' in text
    text = kubectl("explain", "pod.spec", "--recursive")
    assert "containers\t<[]Container> -required-" in text
    assert "containerPort\t<integer> -required-" in text
    assert "KIND:       Job" in kubectl("explain", "jobs", "--api-version=batch/v1")
    assert 'field "colour" does not exist' in kubectl.refused("explain", "pod.spec.colour")


def test_nodes_are_cordoned_tainted_and_described(kubectl: Kubectl, node: str) -> None:
    assert kubectl.rows("get", "node", node)[0][1] == "Ready"
    kubectl("cordon", node)
    assert kubectl.rows("get", "node", node)[0][1] == "Ready,SchedulingDisabled"
    kubectl("uncordon", node)
    kubectl("taint", "node", node, "heat=high:NoSchedule")
    kubectl("label", "node", node, "node-role.kubernetes.io/worker=")
    assert kubectl.rows("get", "node", node)[0][1:3] == ["Ready", "worker"]
    text = kubectl("describe", "node", node)
    assert "heat=high:NoSchedule" in text
    assert "Unschedulable:      false" in text
    kubectl("taint", "node", node, "heat-")
    assert "heat" not in kubectl.value("node", node, ".spec.taints")


def test_a_drained_node_loses_its_pods(kubectl: Kubectl, node: str) -> None:
    here = pod("here", app="web")
    here["spec"] |= {"nodeName": node, "terminationGracePeriodSeconds": 0}
    kubectl("create", "-f", "-", given=[here, pod("elsewhere")])
    text = kubectl("drain", node, "--force", "--timeout=20s")
    assert "pod/here evicted" in text
    assert kubectl("get", "pods", "-o", "name") == "pod/elsewhere\n"
    assert kubectl.value("node", node, ".spec.unschedulable") == "true"


def test_one_may_ask_what_one_may_do(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "system:masters" in kubectl("auth", "whoami")


def test_rights_are_made_from_the_command_line(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--user=ann", "--group=staff")
    kubectl("create", "serviceaccount", "robot")
    (core, apps) = kubectl.object("role", "reader")["rules"]
    assert (core["apiGroups"], core["resources"], core["verbs"]) == (
        [""],
        ["pods"],
        ["get", "list"],
    )
    assert (apps["apiGroups"], apps["resources"]) == (["apps"], ["deployments"])
    assert kubectl.rows("get", "rolebinding", "readers")[0][:2] == ["readers", "Role/reader"]
    assert "ann" in kubectl("describe", "rolebinding", "readers")
    reconciled = kubectl.object("role", "reader")
    reconciled["rules"][0]["verbs"] = ["get", "list", "watch"]
    kubectl("auth", "reconcile", "-f", "-", given=reconciled)
    assert "watch" in kubectl.value("role", "reader", ".rules[*].verbs")

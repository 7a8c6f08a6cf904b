"""kubectl's commands for workloads: run, scale, rollout, expose; without controllers."""

from __future__ import annotations

import json

import pytest

from tests.kubectl.support_kubectl import Kubectl, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """A deployment ``web`` of two replicas."""
    kubectl("create", "-f", "-", given=deployment("web"))
    return kubectl


def roll(kubectl: Kubectl) -> None:
    """Set the status that the deployment's controller would set."""
    found = kubectl.object("deploy", "web")
    replicas = found["spec"]["replicas"]
    status = {
        "observedGeneration": found["metadata"]["generation"],
        **dict.fromkeys(
            ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas
        ),
        "conditions": [{"type": "Progressing", "status": "True", "reason": "Done"}],
    }
    args = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    kubectl("patch", "deploy", "web", *args)


def test_a_pod_is_run(kubectl: Kubectl) -> None:
    out = kubectl("run", "one", "--image=nginx", "--port=80", "--env=A=1", "--labels=app=web")
    assert out == "pod/one created\n"
    found = kubectl.object("pod", "one")
    (main,) = found["spec"]["containers"]
    assert (main["name"], main["image"], main["env"]) == (
        "one",
        "nginx",
        [{"name": "A", "value": "1"}],
    )
    assert found["metadata"]["labels"] == {"app": "web"}


def test_a_deployment_is_scaled(web: Kubectl) -> None:
    assert web("scale", "deployment/web", "--replicas=4") == "deployment.apps/web scaled\n"
    assert web.value("deploy", "web", ".spec.replicas") == "4"
    assert web.value("deploy", "web", ".metadata.generation") == "2"
    said = web.refused("scale", "deployment/web", "--replicas=1", "--current-replicas=9")
    assert "Expected replicas to be 9, was 4" in said
    scale = json.loads(web("get", "deploy", "web", "--subresource=scale", "-o", "json"))
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 4)
    assert scale["status"]["selector"] == "app=web"


def test_a_rollout_is_followed_to_its_end(web: Kubectl) -> None:
    with web.started("rollout", "status", "deployment/web", "--timeout=20s") as status:
        status.line("Waiting for deployment")
        roll(web)
        status.line('deployment "web" successfully rolled out')
        assert status.end()[0] == 0
    assert "deployment.apps/web" in web("rollout", "history", "deployment/web")


def test_a_rollout_is_restarted_paused_and_resumed(web: Kubectl) -> None:
    assert web("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    template = web.object("deploy", "web")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    web("rollout", "pause", "deployment/web")
    assert web.value("deploy", "web", ".spec.paused") == "true"
    web("rollout", "resume", "deployment/web")
    assert web.value("deploy", "web", ".spec.paused") == ""


def test_images_variables_and_resources_are_set(web: Kubectl) -> None:
    assert web("set", "image", "deployment/web", "main=nginx:2") == (
        "deployment.apps/web image updated\n"
    )
    web("set", "env", "deployment/web", "A=1", "B=2")
    web("set", "env", "deployment/web", "A-")
    web("set", "resources", "deployment/web", "--limits=cpu=200m", "--requests=cpu=100m")
    web("set", "serviceaccount", "deployment/web", "default")
    spec = web.object("deploy", "web")["spec"]["template"]["spec"]
    (main,) = spec["containers"]
    assert main["image"] == "nginx:2"
    assert main["env"] == [{"name": "B", "value": "2"}]
    assert main["resources"] == {"limits": {"cpu": "200m"}, "requests": {"cpu": "100m"}}
    assert spec["serviceAccountName"] == "default"
    assert main["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_a_deployment_is_exposed(web: Kubectl) -> None:
    assert web("expose", "deployment", "web", "--type=NodePort") == "service/web exposed\n"
    spec = web.object("service", "web")["spec"]
    assert spec["selector"] == {"app": "web"}
    (port,) = spec["ports"]
    assert (port["port"], port["targetPort"]) == (80, 80)
    assert 30000 <= port["nodePort"] <= 32767
    name, kind, *_ = web.rows("get", "service", "web")[0]
    assert (name, kind) == ("web", "NodePort")
    web("set", "selector", "service", "web", "app=other")
    assert web.value("service", "web", ".spec.selector.app") == "other"


def test_a_deployment_is_autoscaled(web: Kubectl) -> None:
    web("autoscale", "deployment", "web", "--min=2", "--max=5", "--cpu=80%")
    found = web.object("hpa", "web")["spec"]
    assert (found["minReplicas"], found["maxReplicas"]) == (2, 5)
    assert found["scaleTargetRef"]["name"] == "web"
    assert web.rows("get", "hpa", "web")[0][:2] == ["web", "Deployment/web"]

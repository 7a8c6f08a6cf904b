"""Controllers that react to writes: definitions, namespaces, budgets, addresses, versions."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.storage.versioned_store import ObjectDraft

NAMESPACES = "/api/v1/namespaces"
CONFIGMAPS = f"{NAMESPACES}/default/configmaps"
PODS = f"{NAMESPACES}/default/pods"
SERVICES = f"{NAMESPACES}/default/services"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
HELD = ["example.com/hold"]
MERGE = "application/merge-patch+json"


class Client:
    """Talks to an application without a socket."""

    def __init__(self) -> None:
        self.app = Application(Cluster(seed=1))
        self.app.start()

    async def send(
        self, method: str, target: str, body: object = None, kind: str = "application/json"
    ) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        request = ServerRequest.of(method, target, headers={"Content-Type": kind}, body=content)
        response = await self.app.handle(request)
        assert isinstance(response.body, bytes)
        return json.loads(response.body)

    async def post(self, target: str, name: str, **fields: object) -> Any:
        body = {"metadata": {"name": name}, **fields}
        made = await self.send("POST", target, body)
        assert made["kind"] != "Status" or made["status"] == "Success", made
        return made

    async def change(self, target: str, body: object) -> Any:
        return await self.send("PATCH", target, body, MERGE)


@pytest.fixture
def client() -> Client:
    return Client()


def definition() -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names}
    return {**spec, "versions": [{**version, "schema": schema}]}


async def test_a_definition_waits_for_its_objects_and_takes_no_new_ones(client: Client) -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget"}
    name = "widgets.example.com"
    await client.post(DEFINITIONS, name, spec=definition())
    held = {"name": "a", "finalizers": HELD}
    await client.send("POST", WIDGETS, {**widget, "metadata": held})

    going = await client.send("DELETE", f"{DEFINITIONS}/{name}")
    late = await client.send("POST", WIDGETS, {**widget, "metadata": {"name": "b"}})
    shown = await client.send("GET", "/apis/example.com/v1")

    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert going["metadata"]["generation"] == 1
    assert going["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    assert late["message"] == (
        'widgets.example.com "b" is forbidden: '
        "create not allowed while custom resource definition is terminating"
    )
    assert "create" not in shown["resources"][0]["verbs"]
    await client.change(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    assert (await client.send("GET", f"{DEFINITIONS}/{name}"))["code"] == 404


async def test_a_namespace_tells_what_it_waits_for_and_goes_after_it(client: Client) -> None:
    await client.post(NAMESPACES, "a")
    configmaps = f"{NAMESPACES}/a/configmaps"
    await client.send("POST", configmaps, {"metadata": {"name": "c", "finalizers": HELD}})

    await client.send("DELETE", f"{NAMESPACES}/a")

    going = await client.send("GET", f"{NAMESPACES}/a")
    messages = {it["type"]: it["message"] for it in going["status"]["conditions"]}
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert messages["NamespaceFinalizersRemaining"].endswith(
        "example.com/hold in 1 resource instances"
    )
    await client.change(f"{configmaps}/c", {"metadata": {"finalizers": None}})
    assert (await client.send("GET", f"{NAMESPACES}/a"))["code"] == 404


async def test_what_a_controller_cannot_do_is_logged_and_the_client_gets_its_answer(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    unreadable = ObjectDraft(lambda _: b'{"metadata":{"deletionTimestamp"', uid="u")
    client.app.cluster.storage.create("configmaps", "default/broken", unreadable)

    with caplog.at_level(logging.ERROR, logger="kinform.apiserver"):
        made = await client.post(NAMESPACES, "a")

    assert made["kind"] == "Namespace"
    assert "controller failed to handle a change of configmaps default/broken" in caplog.text
    assert (await client.send("GET", f"{NAMESPACES}/a/serviceaccounts/default"))["kind"] != "Status"


async def test_a_restored_orphan_is_collected_as_by_a_controller_that_begins_anew(
    client: Client,
) -> None:
    """Found by simulation: the backup was made after the owner's end and before the orphan's."""
    owner = await client.post(CONFIGMAPS, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    await client.send("POST", CONFIGMAPS, owned)
    storage = client.app.cluster.storage
    await client.send("DELETE", f"{CONFIGMAPS}/owner")
    storage.restore(storage.revision - 1)
    client.app.reload()
    assert storage.table("configmaps").get("default/owned") is not None
    await client.send("GET", CONFIGMAPS)
    assert storage.table("configmaps").get("default/owned") is None


async def test_every_service_gets_an_address_of_its_own(client: Client) -> None:
    spec = {"ports": [{"port": 80}]}

    given = [
        (await client.post(SERVICES, f"s{number}", spec=spec))["spec"]["clusterIP"]
        for number in range(300)
    ]

    assert len({*given, "10.0.0.1"}) == 301


async def test_the_port_of_a_service_that_is_gone_can_be_given_again(client: Client) -> None:
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}
    await client.post(SERVICES, "a", spec=spec)
    body = {"metadata": {"name": "b"}, "spec": spec}

    refused = await client.send("POST", SERVICES, body)
    await client.send("DELETE", f"{SERVICES}/a")

    assert "provided port is already allocated" in refused["message"]
    assert (await client.send("POST", SERVICES, body))["kind"] == "Service"


async def test_an_eviction_costs_a_budget_one_disruption(client: Client) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec}
    await client.send("POST", PODS, pod)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.change(f"{PODS}/p/status", {"status": ready})
    await client.post(BUDGETS, "b", spec={"minAvailable": 1, "selector": {}})
    eviction = {"metadata": {"name": "p"}}

    early = await client.send("POST", f"{PODS}/p/eviction", eviction)
    await client.change(
        f"{BUDGETS}/b/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 1}}
    )
    evicted = await client.send("POST", f"{PODS}/p/eviction", eviction)
    budget = await client.send("GET", f"{BUDGETS}/b")

    assert early["code"] == 429
    assert early["details"]["retryAfterSeconds"] == 10
    assert evicted["status"] == "Success"
    assert budget["status"]["disruptionsAllowed"] == 0
    assert list(budget["status"]["disruptedPods"]) == ["p"]


async def test_a_pod_takes_the_priority_of_the_class_that_is_everybodys(client: Client) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await client.post(classes, "usual", value=7, globalDefault=True)

    made = await client.post(PODS, "p", spec={"containers": [{"name": "c", "image": "i"}]})

    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("usual", 7)


async def test_an_autoscaler_survives_the_way_through_the_older_version(client: Client) -> None:
    second = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    first = second.replace("/v2/", "/v1/")
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    pods = {"metric": {"name": "x"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    metrics = [{"type": "Resource", "resource": cpu}, {"type": "Pods", "pods": pods}]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 30}}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "metrics": metrics, "behavior": behavior}
    made = await client.post(second, "h", spec=spec)

    old = await client.send("GET", f"{first}/h")
    await client.change(f"{first}/h", {"spec": {"maxReplicas": 4}})
    again = await client.send("GET", f"{second}/h")

    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    assert (
        '"metricName":"x"'
        in old["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]
    )
    assert again["spec"] == {**made["spec"], "maxReplicas": 4}
    assert "annotations" not in again["metadata"]

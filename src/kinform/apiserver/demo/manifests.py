"""The first objects of the demo cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kinform.apiserver.serializer.json_values import Json

__all__ = ["IMAGE", "NODES", "REPLICAS", "SHOPS", "everything", "image"]

NODES: Final = ("node-a", "node-b", "node-c")
SHOPS: Final = "shops.demo.kinform.dev"
REPLICAS: Final = "demo.kinform.dev/replicas"
"""The annotation of how many replicas the demo has set."""
IMAGE: Final = "demo.kinform.dev/image"
"""The annotation of which image the demo has set."""
_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "64Gi"}
_NAMESPACE: Final = "shop"


def everything() -> Iterator[Json]:
    """Yield all objects, each after those that it needs."""
    yield _object("v1", "Namespace", _NAMESPACE)
    for number, name in enumerate(NODES, 1):
        yield _node(name, number)
        yield _lease(name)
    yield _definition()
    yield _shop("corner", "Main Street 1")
    yield _shop("market", "Harbour Square 12")
    yield _deployment("web", replicas=3, image="registry.example/web:1.0")
    yield _deployment("cart", replicas=2, image="registry.example/cart:1.0")
    dns = _deployment("coredns", replicas=2, image="registry.example/coredns:1.0")
    dns["metadata"]["namespace"] = "kube-system"
    yield dns
    yield _service()
    yield _cron_job()


def image(repository: str, version: int) -> str:
    """Return the image of a version."""
    return f"{repository}:1.{version}"


def _object(api_version: str, kind: str, name: str, *, namespace: str = "") -> Json:
    meta: Json = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def _node(name: str, number: int) -> Json:
    node = _object("v1", "Node", name)
    node["metadata"]["labels"] = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number}",
    }
    node["spec"] = {"podCIDR": f"10.244.{number}.0/24"}
    node["status"] = {
        "capacity": dict(_CAPACITY),
        "allocatable": dict(_CAPACITY),
        "addresses": [
            {"type": "InternalIP", "address": f"192.168.0.{number}"},
            {"type": "Hostname", "address": name},
        ],
        "nodeInfo": {
            "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "",
            "containerRuntimeVersion": "demo://1.0",
            "osImage": "kinform demo",
            "operatingSystem": "linux",
            "architecture": "amd64",
            "kernelVersion": "6.12.0",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
        },
    }
    return node


def _lease(node: str) -> Json:
    lease = _object("coordination.k8s.io/v1", "Lease", node, namespace="kube-node-lease")
    lease["spec"] = {"holderIdentity": node, "leaseDurationSeconds": 40}
    return lease


def _deployment(name: str, *, replicas: int, image: str) -> Json:
    labels = {"app": name}
    deployment = _object("apps/v1", "Deployment", name, namespace=_NAMESPACE)
    deployment["metadata"]["labels"] = labels
    deployment["metadata"]["annotations"] = {REPLICAS: str(replicas), IMAGE: image}
    requests = {"cpu": "100m", "memory": "64Mi"}
    container: Json = {"name": name, "image": image, "resources": {"requests": requests}}
    container["ports"] = [{"name": "http", "containerPort": 8080}]
    deployment["spec"] = {
        "replicas": replicas,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return deployment


def _service() -> Json:
    service = _object("v1", "Service", "web", namespace=_NAMESPACE)
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    service["spec"] = {"selector": {"app": "web"}, "ports": ports}
    return service


def _cron_job() -> Json:
    cron = _object("batch/v1", "CronJob", "report", namespace=_NAMESPACE)
    container = {"name": "report", "image": "registry.example/report:1.0"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    cron["spec"] = {
        "schedule": "* * * * *",
        "successfulJobsHistoryLimit": 2,
        "jobTemplate": {"spec": {"template": {"spec": pod}}},
    }
    return cron


def _definition() -> Json:
    definition = _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", SHOPS)
    text, number = {"type": "string"}, {"type": "integer", "minimum": 0}
    spec = {"type": "object", "properties": {"address": text}, "required": ["address"]}
    state = {"type": "object", "properties": {"phase": text, "customers": number, "sales": number}}
    schema = {"type": "object", "properties": {"spec": spec, "status": state}}
    columns = [
        {"name": "Address", "type": "string", "jsonPath": ".spec.address"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Customers", "type": "integer", "jsonPath": ".status.customers"},
        {"name": "Sales", "type": "integer", "jsonPath": ".status.sales"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version: Json = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    version["subresources"] = {"status": {}}
    version["additionalPrinterColumns"] = columns
    definition["spec"] = {
        "group": "demo.kinform.dev",
        "scope": "Namespaced",
        "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"},
        "versions": [version],
    }
    return definition


def _shop(name: str, address: str) -> Json:
    shop = _object("demo.kinform.dev/v1", "Shop", name, namespace=_NAMESPACE)
    shop["spec"] = {"address": address}
    shop["status"] = {"phase": "Closed", "customers": 0, "sales": 0}
    return shop

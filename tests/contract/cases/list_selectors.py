"""Label and field selectors of lists."""

from __future__ import annotations

from typing import Any, Final

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, NAMESPACES, PODS, SECRETS, SERVICES
from tests.contract.exchange import Json
from tests.contract.session import Session


def names(body: dict[str, Any]) -> object:
    """Reduce a list to the names in it; a refusal stays whole."""
    if "items" not in body:
        return body
    return [item["metadata"]["name"] for item in body["items"]]


LABELS: Final = {
    "equals": "tier=web",
    "double_equals": "tier==web",
    "not_equals": "tier!=web",
    "exists": "tier",
    "exists_not": "!tier",
    "within": "tier in (web,db)",
    "notin": "tier notin (web)",
    "and_": "tier in (web,db),size=2",
    "greater": "size>1",
    "less": "size<2",
    "greater_than_words": "size>big",
    "empty_value": "tier=",
    "within_empty": "tier in (,web)",
    "within_nothing": "tier in ()",
    "spaces": "  tier  =  web , size = 1 ",
    "prefixed_key": "example.com/kind=a",
    "same_key_twice": "tier=web,tier=db",
    "empty": "",
    "only_comma": ",",
    "trailing_comma": "tier=web,",
    "no_operator_value": "tier web",
    "bad_key": "-tier=web",
    "bad_value": "tier=-web",
    "long_value": f"tier={'x' * 64}",
    "long_key": f"{'k' * 64}=web",
    "bad_prefix": "Example_com/kind=a",
    "unclosed": "tier in (web",
    "unknown_operator": "tier like web",
    "equals_set": "tier=(web)",
    "exclamation_inside": "tier!web",
    "several_errors": "-a=b,c=-d",
}


@each("list", "a label selector", {name: {"selector": text} for name, text in LABELS.items()})
async def labels(s: Session, *, selector: str) -> None:
    await s.configmap("web1", tier="web", size="1")
    await s.configmap("web2", tier="web", size="2")
    await s.configmap("db2", tier="db", size="2")
    await s.configmap("bare")
    await s.configmap("blank", tier="")
    labels = {"labels": {"example.com/kind": "a"}}
    await s.make(CONFIGMAPS, {"metadata": {"name": "prefixed", **labels}})
    await s.get(CONFIGMAPS, labelSelector=selector, view=names)


FIELDS: Final = {
    "name": "metadata.name=a",
    "name_double": "metadata.name==a",
    "name_not": "metadata.name!=a",
    "namespace": "metadata.namespace=elsewhere",
    "name_missing": "metadata.name=zzz",
    "both_names": "metadata.name=a,metadata.name=b",
    "empty": "",
    "unknown": "data.k=v",
    "label": "metadata.labels.x=y",
    "no_operator": "metadata.name",
    "set_operator": "metadata.name in (a,b)",
    "empty_value": "metadata.name=",
    "escaped": "metadata.name=a\\,b",
    "bad_escape": "metadata.name=a\\b",
    "uid": "metadata.uid=1",
    "spaces": "metadata.name = a",
    "comma": ",",
    "trailing_comma": "metadata.name=a,",
}


@each("list", "a field selector", {name: {"selector": text} for name, text in FIELDS.items()})
async def fields(s: Session, *, selector: str) -> None:
    for name in ("a", "b"):
        await s.configmap(name)
    await s.get(CONFIGMAPS, fieldSelector=selector, view=names)


POD: Final = {"containers": [{"name": "c", "image": "example.com/c"}]}


@each(
    "list",
    "fields of pods",
    {
        "node": {"selector": "spec.nodeName=n1"},
        "no_node": {"selector": "spec.nodeName="},
        "phase": {"selector": "status.phase=Pending"},
        "phase_not": {"selector": "status.phase!=Pending"},
        "restart_policy": {"selector": "spec.restartPolicy=Never"},
        "scheduler": {"selector": "spec.schedulerName=default-scheduler"},
        "account": {"selector": "spec.serviceAccountName=robot"},
        "host_network": {"selector": "spec.hostNetwork=true"},
        "ip": {"selector": "status.podIP=10.0.0.1"},
        "nominated": {"selector": "status.nominatedNodeName="},
        "unknown": {"selector": "spec.hostname=h"},
        "several": {"selector": "spec.nodeName=n1,status.phase=Pending"},
    },
)
async def pod_fields(s: Session, *, selector: str) -> None:
    await s.make(PODS, {"metadata": {"name": "on"}, "spec": {**POD, "nodeName": "n1"}})
    never = {**POD, "restartPolicy": "Never", "serviceAccountName": "robot"}
    await s.make(PODS, {"metadata": {"name": "off"}, "spec": never})
    await s.get(PODS, fieldSelector=selector, view=names)


@case("list", "fields of secrets")
async def secret_fields(s: Session) -> None:
    await s.make(SECRETS, {"metadata": {"name": "plain"}})
    await s.make(SECRETS, {"metadata": {"name": "other"}, "type": "example.com/other"})
    for selector in ("type=Opaque", "type!=Opaque", "data=x"):
        await s.get(SECRETS, fieldSelector=selector, view=names)


@case("list", "fields of services")
async def service_fields(s: Session) -> None:
    spec = {"clusterIP": "None", "ports": [{"port": 80}]}
    await s.make(SERVICES, {"metadata": {"name": "headless"}, "spec": spec})
    await s.make(SERVICES, {"metadata": {"name": "usual"}, "spec": {"ports": [{"port": 80}]}})
    for selector in (
        "spec.clusterIP=None",
        "spec.type=ClusterIP",
        "spec.type=NodePort",
        "spec.x=y",
    ):
        await s.get(SERVICES, fieldSelector=selector, view=names)


@case("list", "fields of namespaces")
async def namespace_fields(s: Session) -> None:
    for selector in (f"metadata.name={s.ns}", f"metadata.name={s.ns},status.phase=Active"):
        await s.get(NAMESPACES, fieldSelector=selector, view=names)
    await s.get(NAMESPACES, fieldSelector="spec.finalizers=kubernetes")


@case("list", "fields of events, of both groups")
async def event_fields(s: Session) -> None:
    path = "/api/v1/namespaces/{ns}/events"
    about = {"kind": "Pod", "name": "p", "namespace": s.ns, "uid": "u"}
    body = {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "reason": "Tested",
        "type": "Normal",
    }
    await s.make(path, body)
    for selector in (
        "involvedObject.kind=Pod",
        "involvedObject.name=p,involvedObject.uid=u",
        "involvedObject.name=q",
        "reason=Tested",
        "type=Warning",
        "source=x",
        "reportingComponent=",
        "message=x",
    ):
        await s.get(path, fieldSelector=selector, view=names)
    newer = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
    for selector in ("regarding.kind=Pod", "involvedObject.kind=Pod", "reason=Tested"):
        await s.get(newer, fieldSelector=selector, view=names)


@each(
    "list",
    "fields of other kinds",
    {
        "deployments": {"path": "/apis/apps/v1/namespaces/{ns}/deployments", "field": "spec.x=1"},
        "replicasets": {
            "path": "/apis/apps/v1/namespaces/{ns}/replicasets",
            "field": "status.replicas=0",
        },
        "jobs": {"path": "/apis/batch/v1/namespaces/{ns}/jobs", "field": "status.successful=1"},
        "jobs_unknown": {"path": "/apis/batch/v1/namespaces/{ns}/jobs", "field": "spec.x=1"},
        "nodes": {"path": "/api/v1/nodes", "field": "spec.unschedulable=true"},
        "nodes_unknown": {"path": "/api/v1/nodes", "field": "spec.x=1"},
        "leases": {
            "path": "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            "field": "spec.holderIdentity=me",
        },
    },
)
async def other_fields(s: Session, *, path: str, field: str) -> None:
    await s.get(path, fieldSelector=f"{field},metadata.name={s.unique('none')}")


@case("list", "fields of custom resources: the name, the namespace, and those that are declared")
async def custom_fields(s: Session) -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"colour": {"type": "string"}, "size": {"type": "integer"}},
            }
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": ".spec.colour"}, {"jsonPath": ".spec.size"}],
    }
    group = await s.crd(versions=[version])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    for name, spec in {"a": {"colour": "red", "size": 1}, "b": {"colour": "blue"}, "c": {}}.items():
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}}
        await s.make(path, {**body, "spec": spec})
    for selector in (
        "metadata.name=a",
        f"metadata.namespace={s.ns}",
        "spec.colour=red",
        "spec.colour!=red",
        "spec.colour=",
        "spec.size=1",
        "spec.weight=1",
    ):
        await s.get(path, fieldSelector=selector, view=names)


@case("list", "both selectors at once")
async def both(s: Session) -> None:
    await s.configmap("a", x="1")
    await s.configmap("b", x="1")
    await s.configmap("c", x="2")
    query: Json = {"labelSelector": "x=1", "fieldSelector": "metadata.name!=a"}
    await s.get(CONFIGMAPS, **query, view=names)


@case("list", "both selectors bad: which complaint comes first")
async def both_bad(s: Session) -> None:
    await s.get(CONFIGMAPS, labelSelector="-x=1", fieldSelector="data.k=v")


@case("list", "a field selector for an unknown kind of field in an unknown namespace")
async def field_elsewhere(s: Session) -> None:
    path = f"/api/v1/namespaces/{s.unique('none')}/configmaps"
    await s.get(path, fieldSelector="data.k=v")

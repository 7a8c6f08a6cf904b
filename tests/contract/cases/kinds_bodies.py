"""Bodies and paths that the cases on objects share; no cases of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

__all__ = [
    "APPS",
    "BATCH",
    "CLAIMS",
    "DAEMONSETS",
    "DEFINITIONS",
    "DEPLOYMENTS",
    "JOBS",
    "LEASES",
    "NODES",
    "RELEASE",
    "REPLICASETS",
    "SERVICEACCOUNTS",
    "STATEFULSETS",
    "Body",
    "custom",
    "definition",
    "deployment",
    "job",
    "named",
    "only",
    "pod",
    "quoted",
    "replicaset",
    "seen",
    "service",
    "statefulset",
    "template",
    "whole",
]

Body: TypeAlias = dict[str, Any]

APPS: Final = "/apis/apps/v1/namespaces/{ns}"
BATCH: Final = "/apis/batch/v1/namespaces/{ns}"
DEPLOYMENTS: Final = f"{APPS}/deployments"
REPLICASETS: Final = f"{APPS}/replicasets"
STATEFULSETS: Final = f"{APPS}/statefulsets"
DAEMONSETS: Final = f"{APPS}/daemonsets"
JOBS: Final = f"{BATCH}/jobs"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
SERVICEACCOUNTS: Final = "/api/v1/namespaces/{ns}/serviceaccounts"
CLAIMS: Final = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
NODES: Final = "/api/v1/nodes"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

QUOTED: Final = re.compile(
    r"""((?:\\*"(resourceVersion|creationTimestamp|time)\\*"):\\*")[0-9TZ:-]+"""
)


RELEASE: Final[Body] = {"metadata": {"finalizers": None}}
"""A patch: volumes and claims have a finalizer, and no controller here would remove it."""


def named(name: str, **more: Any) -> Body:
    """Return a body of this name; ``metadata`` in ``more`` is merged into its metadata."""
    return {**more, "metadata": {"name": name, **more.get("metadata", {})}}


def pod(name: str = "a", **spec: Any) -> Body:
    """Return a Pod of one container."""
    return named(name, spec={"containers": [{"name": "c", "image": "example.com/c:1"}], **spec})


def template(**spec: Any) -> Body:
    """Return a pod template with the label app=a."""
    containers = [{"name": "c", "image": "example.com/c:1"}]
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, **spec}}


def deployment(name: str = "a", **spec: Any) -> Body:
    """Return a Deployment."""
    selector = {"matchLabels": {"app": "a"}}
    return named(name, spec={"selector": selector, "template": template(), **spec})


def replicaset(name: str = "a", **spec: Any) -> Body:
    """Return a ReplicaSet."""
    return deployment(name, **spec)


def statefulset(name: str = "a", **spec: Any) -> Body:
    """Return a StatefulSet."""
    return deployment(name, **{"serviceName": "s", **spec})


def job(name: str = "a", **spec: Any) -> Body:
    """Return a Job."""
    return named(name, spec={"template": {"spec": pod(restartPolicy="Never")["spec"]}, **spec})


def service(name: str = "a", **spec: Any) -> Body:
    """Return a Service of one port."""
    return named(name, spec={"ports": [{"port": 80}], "selector": {"app": "a"}, **spec})


def definition(group: str, *versions: Body, **spec: Any) -> Body:
    """Return the definition of widgets of a group."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    whole = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions)}
    return named(f"widgets.{group}", spec={**whole, **spec})


def custom(group: str, name: str = "a", **more: Any) -> Body:
    """Return a widget of a group."""
    return {"apiVersion": f"{group}/v1", "kind": "Widget", **named(name, **more)}


def only(*keys: str) -> Any:
    """Return a view that keeps these keys of a body; a Status stays whole.

    Entries of managedFields are put in the order of their managers: the server has them by
    time, in seconds, so their order depends on when a second ends.
    """

    def view(body: Any) -> object:
        if not isinstance(body, dict) or body.get("kind") == "Status":
            return body
        return _ordered({key: body[key] for key in keys if key in body})

    return view


def whole(body: Any) -> object:
    """Show all of a body, with the entries of managedFields in the order of their managers."""
    return _ordered(body) if isinstance(body, dict) else body


def _ordered(body: Body) -> Body:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return body
    entries = sorted(
        metadata["managedFields"],
        key=lambda each: [
            str(each.get(key, "")) for key in ("operation", "manager", "subresource")
        ],
    )
    return {**body, "metadata": {**metadata, "managedFields": entries}}


def quoted(view: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a view in which the versions and times of objects that a message quotes are gone."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(each) for key, each in value.items()}
        if isinstance(value, list):
            return [without(each) for each in value]
        return QUOTED.sub(r"\1<\2>", value) if isinstance(value, str) else value

    return lambda body: without(view(body))


def seen(part: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a view of a part of a body; a body without that part stays whole."""

    def view(body: Any) -> object:
        try:
            return part(body)
        except (KeyError, TypeError, IndexError, AttributeError):
            return body

    return view

"""Defaults of pods and of the templates that pods are made of."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from kinform.apiserver.defaults.pods_omitted import omit_empty, section
from kinform.apiserver.defaults.pods_volumes import (
    default_field_refs,
    default_volume,
    pull_policy,
)
from kinform.apiserver.scheme.resource_quantities import parse, rounded
from kinform.apiserver.serializer.json_values import Json, as_dict

__all__ = [
    "default_owned_pod",
    "default_pod",
    "default_template",
    "prepare_pod",
    "prepare_pod_update",
    "qos_class",
]

_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PRIORITIES: Final = {
    "": 0,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_POD_LEVEL: Final = frozenset({"cpu", "memory"})


def prepare_pod(pod: Json) -> None:
    """Make a pod that a client sent a new one: its status is the server's affair."""
    omit_empty(section(pod, "spec"))
    pod["metadata"]["generation"] = 1
    pod["status"] = {"phase": "Pending", "qosClass": ""}


def prepare_pod_update(new: Json, old: Json) -> None:
    """Keep the status, and count a changed spec."""
    omit_empty(section(new, "spec"))
    default_pod(new)
    new["status"] = old.get("status") or {}
    generation = old["metadata"].get("generation") or 0
    if new["spec"] != old.get("spec"):
        generation += 1
    new["metadata"]["generation"] = generation


def default_pod(pod: Json) -> None:
    """Fill in all that a pod gets, what admission adds included: tolerations and priority."""
    default_owned_pod(pod)
    spec: Json = pod["spec"]
    _default_tolerations(spec)
    if (value := _PRIORITIES.get(spec.get("priorityClassName") or "")) is not None:
        spec.setdefault("priority", value)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    status: Json = section(pod, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not status.get("qosClass"):
        status["qosClass"] = qos_class(spec)


def default_owned_pod(pod: Json) -> None:
    """Fill in the defaults that the writer of a pod owns: all but those of admission."""
    spec: Json = section(pod, "spec")
    omit_empty(spec)  # empty fields are not stored, so they have no owner
    for container in _containers(spec):
        _default_requests(container)
    _default_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    _default_pod_resources(spec)
    if spec.get("hostNetwork"):
        for container in _containers(spec):
            for port in container.get("ports") or ():
                port.setdefault("hostPort", port.get("containerPort"))


def default_template(template: Json) -> None:
    """Fill in the defaults of a template, in which less is said than in a pod."""
    omit_empty(template)
    section(template, "metadata")
    _default_spec(section(template, "spec"))


def qos_class(spec: Json) -> str:
    """Return how safe a pod is from eviction, by what its containers ask for and may have."""
    asked: list[Json] = (
        [spec["resources"]]
        if "resources" in spec
        else [as_dict(one.get("resources")) for one in _containers(spec)]
    )
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    is_guaranteed = True
    for resources in asked:
        limited = _add_amounts(resources.get("limits"), limits)
        _add_amounts(resources.get("requests"), requests)
        is_guaranteed = is_guaranteed and limited >= _POD_LEVEL
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add_amounts(amounts: Json | None, total: dict[str, Fraction]) -> set[str]:
    """Add what counts, and return the names of it."""
    counted: set[str] = set()
    for name, text in as_dict(amounts).items():
        if name in _POD_LEVEL and (amount := parse(text)):
            total[name] = total[name] + amount if name in total else amount
            counted.add(name)
    return counted


def _containers(spec: Json) -> Iterator[Json]:
    if "initContainers" in spec:
        yield from spec["initContainers"] or ()
    yield from spec.get("containers") or ()


def _default_requests(container: Json) -> None:
    """Default the requests of a container to its limits."""
    resources: Json | None = container.get("resources")
    if not resources or not resources.get("limits"):
        return
    requests: Json = resources.setdefault("requests", {})
    for name, amount in resources["limits"].items():
        requests.setdefault(name, amount)


def _default_pod_resources(spec: Json) -> None:
    """Fill in the requests of a pod as a whole, from its containers or else its limits."""
    resources: Json | None = spec.get("resources")
    if not resources:
        return
    _respell(resources)
    limits: Json = resources.get("limits") or {}
    requests: Json = resources.get("requests") or {}
    for name, text in _asked_by_containers(spec).items():
        requests.setdefault(name, text)
    for name, amount in limits.items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def _asked_by_containers(spec: Json) -> dict[str, str]:
    """Return the sum over containers, or what an init container asks for if that is more."""
    total: dict[str, Fraction] = {}
    spelled: dict[str, str] = {}
    for container in spec.get("containers") or ():
        for name, text in as_dict(as_dict(container.get("resources")).get("requests")).items():
            if name in _POD_LEVEL:
                spelled[name] = text if name not in total else ""
                total[name] = total.get(name, Fraction(0)) + parse(text)
    for container in spec.get("initContainers") or ():
        for name, text in as_dict(as_dict(container.get("resources")).get("requests")).items():
            if name in _POD_LEVEL and parse(text) > total.get(name, Fraction(0)):
                total[name], spelled[name] = parse(text), text
    return {name: text or _spell(total[name]) for name, text in spelled.items()}


def _spell(amount: Fraction) -> str:
    milli = amount * 1000
    return rounded(f"{-(-milli.numerator // milli.denominator)}m")


def _default_tolerations(spec: Json) -> None:
    """Tolerate a lost node for five minutes, unless the pod has its own tolerations for it."""
    tolerations: list[Json] = spec.setdefault("tolerations", [])
    missing = [
        taint
        for taint in _TAINTS
        if not any(
            (one.get("key") or taint) == taint and one.get("effect", "") in {"", "NoExecute"}
            for one in tolerations
        )
    ]
    tolerations += [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for taint in missing
    ]


def _default_spec(spec: Json) -> None:
    if "volumes" in spec:
        for volume in spec["volumes"] or ():
            default_volume(volume)
    for container in _containers(spec):
        _default_container(container)
    for container in spec.get("ephemeralContainers") or ():
        _default_container(container)
    put = spec.setdefault
    put("restartPolicy", "Always")
    if put("terminationGracePeriodSeconds", 30) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    put("dnsPolicy", "ClusterFirst")
    put("securityContext", {})
    put("schedulerName", "default-scheduler")
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if "overhead" in spec:
        spec["overhead"] = {name: rounded(value) for name, value in spec["overhead"].items()}


def _default_container(container: Json) -> None:
    put = container.setdefault
    _respell(put("resources", {}))
    put("terminationMessagePath", "/dev/termination-log")
    put("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if "valueFrom" in variable:
            default_field_refs([variable["valueFrom"]])
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _default_probe(container[name])
    if lifecycle := container.get("lifecycle"):
        for handler in map(as_dict, lifecycle.values()):
            if "httpGet" in handler:
                _default_http_get(handler["httpGet"])


def _respell(resources: Json) -> None:
    for kind in ("limits", "requests"):
        amounts: Json | None = resources.get(kind)
        if amounts:
            for name, amount in amounts.items():
                amounts[name] = rounded(amount)


def _default_probe(probe: Json) -> None:
    put = probe.setdefault
    put("timeoutSeconds", 1)
    put("periodSeconds", 10)
    put("successThreshold", 1)
    put("failureThreshold", 3)
    if "httpGet" in probe:
        _default_http_get(probe["httpGet"])
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")


def _default_http_get(action: Json) -> None:
    if not action.get("path"):
        action["path"] = "/"
    action.setdefault("scheme", "HTTP")

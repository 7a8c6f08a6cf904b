"""The ``eviction`` subresource: deletion of a pod within its disruption budgets."""

from __future__ import annotations

from typing import Final, final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import WriteQuery, write_options
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.registry import subresource_bodies
from kinform.apiserver.registry.deletion import DeleteOptions, Deletion
from kinform.apiserver.registry.objects import ObjectRegistry
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at, text
from kinform.selectors.labels import LabelSelector

__all__ = ["Evicting"]

_SERVER: Final = WriteQuery(manager="kube-apiserver")
_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_UNDISTURBED: Final = frozenset({"Succeeded", "Failed", "Pending"})
"""Phases in which a pod does no work that could be disrupted."""
_RETRY: Final = 10


@final
class Evicting:
    """Evicts the pods of one cluster."""

    def __init__(self, cluster: Cluster, objects: ObjectRegistry, deletion: Deletion) -> None:
        self._cluster = cluster
        self._objects = objects
        self._deletion = deletion

    def evict(self, request: ServerRequest, route: Route) -> None:
        """Delete a pod, if its budget allows it, which has one disruption less then.

        Raises:
            StatusError: the pod does not exist, the body is invalid, or a budget forbids it.
        """
        body = subresource_bodies.body(request, subresource_bodies.EVICTION)
        given_options = write_options(request, "CreateOptions")
        if text(body, "metadata", "name") != route.name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        given = as_dict(body.get("deleteOptions"))
        options = DeleteOptions(
            grace=given.get("gracePeriodSeconds"),
            policy=given.get("propagationPolicy") or "",
            uid=text(given, "preconditions", "uid"),
            version=text(given, "preconditions", "resourceVersion"),
            is_dry=bool(given.get("dryRun")) or given_options.is_dry,
        )
        pod = self._objects.load(route.kind, route.key)
        budgets = self._budgets(route, pod)
        if len(budgets) > 1:
            raise StatusError(500, "", _SEVERAL)
        for kind, budget in budgets:
            if not _is_spared(pod, budget):
                self._count(kind, budget, route.name, is_dry=options.is_dry)
        self._deletion.delete(route.kind, route.key, options)

    def _budgets(self, route: Route, pod: Json) -> list[tuple[Kind, Json]]:
        """Return the budgets that a pod counts in."""
        if at(pod, "status", "phase") in _UNDISTURBED or pod["metadata"].get("deletionTimestamp"):
            return []
        kind = self._cluster.kinds.find("policy", "v1", "poddisruptionbudgets")
        assert kind is not None
        labels = as_dict(pod["metadata"].get("labels"))
        found: list[tuple[Kind, Json]] = []
        for stored in self._cluster.storage.table(kind.storage).now(route.prefix):
            budget = self._objects.load(kind, stored.key)
            selector = at(budget, "spec", "selector")
            if selector is not None and LabelSelector.from_dict(as_dict(selector)).matches(labels):
                found.append((kind, budget))
        return found

    def _count(self, kind: Kind, budget: Json, pod: str, *, is_dry: bool) -> None:
        meta, state = budget["metadata"], as_dict(budget.get("status"))
        name = meta["name"]
        if state.get("observedGeneration", 0) < meta.get("generation", 0):
            why = f"The disruption budget {name} is still being processed by the server."
            raise _violation(why, retry_after=_RETRY)
        if not state.get("disruptionsAllowed"):
            needed, healthy = state.get("desiredHealthy", 0), state.get("currentHealthy", 0)
            raise _violation(
                f"The disruption budget {name} needs {needed} healthy pods "
                f"and has {healthy} currently"
            )
        if is_dry:
            return

        def change(obj: Json) -> Json:
            status = obj["status"]
            status["disruptionsAllowed"] -= 1
            disrupted = as_dict(status.get("disruptedPods"))
            status["disruptedPods"] = {**disrupted, pod: self._cluster.timestamp()}
            return obj

        key = f"{meta['namespace']}/{name}"
        self._objects.update(kind, key, change, options=_SERVER, subresource="status")


def _is_spared(pod: Json, budget: Json) -> bool:
    """Return whether a pod can go without being counted: it is not healthy anyway."""
    conditions = map(as_dict, as_list(at(pod, "status", "conditions")))
    if any(it.get("type") == "Ready" and it.get("status") == "True" for it in conditions):
        return False
    if at(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    state = as_dict(budget.get("status"))
    needed: int = state.get("desiredHealthy", 0)
    healthy: int = state.get("currentHealthy", 0)
    return 0 < needed <= healthy


def _violation(why: str, *, retry_after: int | None = None) -> StatusError:
    details: dict[str, object] = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
    return StatusError(429, "TooManyRequests", _VIOLATION, details=details, retry_after=retry_after)

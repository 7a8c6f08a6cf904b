"""What can be done below an object, beside its status: scale, binding, eviction and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from kinform.apiserver import decoding, json_patch, merge_patch, metadata, status
from kinform.apiserver.cluster import Cluster
from kinform.apiserver.crd import scale
from kinform.apiserver.deletion import DeleteOptions, Deletion
from kinform.apiserver.json import Json, as_dict, as_list, text
from kinform.apiserver.kind import Kind
from kinform.apiserver.objects import Objects
from kinform.apiserver.paths import Route
from kinform.apiserver.status import StatusError
from kinform.apiserver.wire import Request
from kinform.apiserver.write_options import intent
from kinform.apiserver.writing import Writing, Written
from kinform.selectors.labels import LabelSelector

__all__ = ["Subresources"]

_SUCCESS: Final[Json] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_NOT_HERE: Final = frozenset({"exec", "attach", "portforward", "proxy", "log"})


@final
class Subresources:
    """The subresources of one cluster's objects."""

    def __init__(
        self, cluster: Cluster, *, objects: Objects, deletion: Deletion, writing: Writing
    ) -> None:
        self._cluster = cluster
        self._objects = objects
        self._deletion = deletion
        self._writing = writing
        self._answers: dict[str, Callable[[Request, Route], Written]] = {
            "scale": self._scale,
            "binding": self._bind,
            "eviction": self._evict,
            "finalize": self._finalize,
            "token": self._token,
        }

    def answer(self, request: Request, route: Route) -> Written:
        """Answer a request for a subresource.

        Raises:
            StatusError: there is none of that name, or it has no such verb.
        """
        subresource = route.subresource
        assert subresource is not None
        if subresource.name in _NOT_HERE:
            raise status.not_implemented(
                f"{route.kind.plural}/{subresource.name} needs a kubelet, "
                "and this server has no nodes that run"
            )
        verb = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}.get(
            request.method, ""
        )
        if verb not in subresource.verbs:
            raise status.method_not_allowed()
        handler = self._answers.get(subresource.name, self._part)
        return handler(request, route)

    def bind_by_name(self, request: Request, route: Route) -> Written:
        """POST to ``bindings``: the pod's name is in the body."""
        pods = self._cluster.kinds.find("", "v1", "pods")
        assert pods is not None
        body, _ = decoding.decode(request.body, _content_type(request))
        name = text(body, "metadata", "name")
        return self._bind(request, Route(pods, route.namespace, name, None, is_watch=False))

    def _part(self, request: Request, route: Route) -> Written:
        """Answer for a subresource that is a part of the object itself."""
        if request.method == "GET":
            return Written(self._objects.load(route.kind, route.key))
        if request.method == "PUT":
            return self._writing.put(request, route)
        return self._writing.patch(request, route)

    # --- scale

    def _scale(self, request: Request, route: Route) -> Written:
        kind = route.kind
        current = self._objects.load(kind, route.key)
        shown = scale.scale_of(kind, current)
        if request.method == "GET":
            return Written(shown)
        options = "UpdateOptions" if request.method == "PUT" else "PatchOptions"
        wish = intent(request, options)
        wanted = self._wanted_scale(request, shown)
        _check_version(kind, wanted, current)

        def change(obj: Json) -> Json:
            scale.set_scale(kind, obj, wanted)
            return obj

        changed = self._objects.update(kind, route.key, change, intent=wish, subresource="scale")
        return Written(scale.scale_of(kind, changed))

    def _wanted_scale(self, request: Request, shown: Json) -> Json:
        content_type = _content_type(request)
        if request.method == "PUT":
            return decoding.decode(request.body, content_type)[0]
        patch, _ = decoding.decode_patch(request.body, content_type)
        if content_type == "application/json-patch+json":
            return as_dict(json_patch.apply(shown, patch))
        return merge_patch.apply(shown, patch)

    # --- pods

    def _bind(self, request: Request, route: Route) -> Written:
        body, _ = decoding.decode(request.body, _content_type(request))
        if text(body, "metadata", "name") != route.name:
            raise status.bad_request("name in URL does not match name in Binding object")
        node = text(body, "target", "name")
        wish = intent(request, "CreateOptions")

        def change(pod: Json) -> Json:
            held = text(pod, "spec", "nodeName")
            if held:
                raise _already_bound(route, held)
            pod["spec"]["nodeName"] = node
            meta = metadata.metadata_of(pod)
            given = as_dict(as_dict(body.get("metadata")).get("annotations"))
            if given:
                meta["annotations"] = {**as_dict(meta.get("annotations")), **given}
            state = as_dict(pod.get("status"))
            scheduled: Json = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            scheduled["lastTransitionTime"] = self._cluster.timestamp()
            others = [it for it in as_list(state.get("conditions")) if it["type"] != "PodScheduled"]
            pod["status"] = {**state, "conditions": [*others, scheduled]}
            return pod

        self._objects.update(route.kind, route.key, change, intent=wish, subresource="binding")
        return Written(dict(_SUCCESS), is_new=True)

    def _evict(self, request: Request, route: Route) -> Written:
        body, _ = decoding.decode(request.body, _content_type(request))
        if text(body, "metadata", "name") != route.name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        options = as_dict(body.get("deleteOptions"))
        grace = options.get("gracePeriodSeconds")
        is_dry = bool(options.get("dryRun")) or bool(request.query.get("dryRun"))
        self._check_budgets(route)
        self._deletion.delete(route.kind, route.key, DeleteOptions(grace=grace, is_dry=is_dry))
        return Written(dict(_SUCCESS), is_new=True)

    def _check_budgets(self, route: Route) -> None:
        """Refuse an eviction that a PodDisruptionBudget does not allow."""
        held = self._objects.held(route.kind, route.key)
        kind = self._cluster.kinds.find("policy", "v1", "poddisruptionbudgets")
        assert kind is not None
        for stored in self._cluster.storage.table(kind.storage).now(route.prefix):
            budget = self._objects.load(kind, stored.key)
            selector = LabelSelector.from_dict(as_dict(as_dict(budget.get("spec")).get("selector")))
            allowed = as_dict(budget.get("status")).get("disruptionsAllowed", 0)
            if selector.matches(held.labels) and not allowed:
                raise _disruption(budget)

    # --- others

    def _finalize(self, request: Request, route: Route) -> Written:
        wish = intent(request, "UpdateOptions")
        body, warnings = self._writing.body(request, route.kind, wish)
        metadata.names_match(route.kind, body, namespace="", name=route.name)
        finalizers = as_list(as_dict(body.get("spec")).get("finalizers"))

        def change(obj: Json) -> Json:
            obj["spec"] = {**as_dict(obj.get("spec")), "finalizers": finalizers}
            return obj

        changed = self._objects.update(
            route.kind, route.key, change, intent=wish, subresource="finalize"
        )
        return Written(changed, warnings=warnings)

    def _token(self, request: Request, route: Route) -> Written:
        raise status.not_implemented(
            f"{request.path}: {route.kind.plural} get no tokens here, the server knows its own only"
        )


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "application/json").partition(";")[0].strip()


def _check_version(kind: Kind, scale: Json, current: Json) -> None:
    asked = text(scale, "metadata", "resourceVersion")
    if asked and asked != current["metadata"]["resourceVersion"]:
        raise status.conflict(
            kind,
            current["metadata"]["name"],
            "the object has been modified; please apply your changes to the latest version "
            "and try again",
        )


def _already_bound(route: Route, node: str) -> StatusError:
    message = (
        f'Operation cannot be fulfilled on pods/binding "{route.name}": '
        f'pod {route.name} is already assigned to node "{node}"'
    )
    details: dict[str, object] = {"name": route.name, "kind": "pods/binding"}
    return StatusError(409, "Conflict", message, details=details)


def _disruption(budget: Json) -> StatusError:
    name = budget["metadata"]["name"]
    state = as_dict(budget.get("status"))
    needed, healthy = state.get("desiredHealthy", 0), state.get("currentHealthy", 0)
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {name} needs {needed} healthy pods "
        f"and has {healthy} currently",
    }
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return StatusError(429, "TooManyRequests", message, details={"causes": [cause]})

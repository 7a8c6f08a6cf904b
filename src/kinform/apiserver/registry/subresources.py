"""The subresources of an object other than its status: scale, binding, eviction and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.authn import service_account_tokens
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import write_options
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.endpoints.writes import Writing, Written
from kinform.apiserver.registry import object_metadata, subresource_bodies
from kinform.apiserver.registry.deletion import Deletion
from kinform.apiserver.registry.eviction import Evicting
from kinform.apiserver.registry.objects import ObjectRegistry
from kinform.apiserver.registry.scale_subresource import Scaling
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError, Problem
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text

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
        self, cluster: Cluster, *, objects: ObjectRegistry, deletion: Deletion, writing: Writing
    ) -> None:
        self._cluster = cluster
        self._objects = objects
        self._deletion = deletion
        self._writing = writing
        self._evicting = Evicting(cluster, objects, deletion)
        self._answers: dict[str, Callable[[ServerRequest, Route], Written]] = {
            "scale": Scaling(cluster, objects).answer,
            "binding": self._bind,
            "eviction": self._evict,
            "finalize": self._finalize,
            "token": self._token,
        }

    def answer(self, request: ServerRequest, route: Route) -> Written:
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

    def bind_by_name(self, request: ServerRequest, route: Route) -> Written:
        """POST to ``bindings``: the pod's name is in the body."""
        pods = self._cluster.kinds.find("", "v1", "pods")
        assert pods is not None
        name = text(
            subresource_bodies.body(request, subresource_bodies.BINDING), "metadata", "name"
        )
        if not name:
            raise status.bad_request("Name parameter required.")
        return self._bind(
            request,
            Route(
                pods, route.namespace, name, None, is_watch=False, key=f"{route.namespace}/{name}"
            ),
        )

    def _part(self, request: ServerRequest, route: Route) -> Written:
        """Answer for a subresource that is a part of the object itself."""
        if request.method == "GET":
            return Written(self._objects.load(route.kind, route.key))
        if request.method == "PUT":
            return self._writing.put(request, route)
        return self._writing.patch(request, route)

    # --- pods

    def _bind(self, request: ServerRequest, route: Route) -> Written:
        body = subresource_bodies.body(request, subresource_bodies.BINDING)
        options = write_options(request, "CreateOptions")
        if text(body, "metadata", "name") != route.name:
            raise status.bad_request("name in URL does not match name in Binding object")
        if errors := _target_problems(as_dict(body.get("target"))):
            raise StatusError(500, "", field_errors.aggregate(errors))
        uid = text(body, "metadata", "uid")

        def change(pod: Json) -> Json:
            self._assign_node(pod, body, route)
            return pod

        held = self._objects.held(route.kind, route.key)
        if uid and uid != held.uid:
            raise _other_pod(route, uid, held.uid)
        self._objects.update(route.kind, route.key, change, options=options, subresource="binding")
        return Written(dict(_SUCCESS), is_new=True)

    def _assign_node(self, pod: Json, body: Json, route: Route) -> None:
        if held := text(pod, "spec", "nodeName"):
            raise _already_bound(route, held)
        pod["spec"]["nodeName"] = text(body, "target", "name")
        meta = object_metadata.metadata_of(pod)
        given = as_dict(as_dict(body.get("metadata")).get("annotations"))
        if given:
            meta["annotations"] = {**as_dict(meta.get("annotations")), **given}
        state = as_dict(pod.get("status"))
        scheduled: Json = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        scheduled["lastTransitionTime"] = self._cluster.timestamp()
        others = [it for it in as_list(state.get("conditions")) if it["type"] != "PodScheduled"]
        pod["status"] = {**state, "conditions": [*others, scheduled]}

    def _evict(self, request: ServerRequest, route: Route) -> Written:
        self._evicting.evict(request, route)
        return Written(dict(_SUCCESS), is_new=True)

    # --- others

    def _finalize(self, request: ServerRequest, route: Route) -> Written:
        options = write_options(request, "UpdateOptions")
        body, warnings = self._writing.body(request, route.kind, options)
        object_metadata.names_match(route.kind, body, namespace="", name=route.name)
        finalizers = as_list(as_dict(body.get("spec")).get("finalizers"))

        def change(obj: Json) -> Json:
            obj["spec"] = {**as_dict(obj.get("spec")), "finalizers": finalizers}
            return obj

        changed = self._objects.update(
            route.kind, route.key, change, options=options, subresource="finalize"
        )
        return Written(changed, warnings=warnings)

    def _token(self, request: ServerRequest, route: Route) -> Written:
        body = subresource_bodies.body(request, subresource_bodies.TOKEN)
        held = self._objects.held(route.kind, route.key)
        return Written(
            service_account_tokens.issue(self._cluster, route, body, uid=held.uid), is_new=True
        )


def _target_problems(target: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = target.get("kind") or ""
    if kind not in {"", "Node"}:
        words = 'supported values: "Node", "<empty>"'
        errors.append(FieldError(Problem.NOT_SUPPORTED, "target.kind", words, kind))
    if not target.get("name"):
        errors.append(field_errors.required("target.name"))
    return errors


def _other_pod(route: Route, given: str, uid: str) -> StatusError:
    return status.conflict(
        route.kind,
        route.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{route.key}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: "
        f"{given}, UID in object meta: {uid}",
    )


def _already_bound(route: Route, node: str) -> StatusError:
    message = (
        f'Operation cannot be fulfilled on pods/binding "{route.name}": '
        f'pod {route.name} is already assigned to node "{node}"'
    )
    details: dict[str, object] = {"name": route.name, "kind": "pods/binding"}
    return StatusError(409, "Conflict", message, details=details)

"""The ``scale`` subresource: reading and writing the number of replicas."""

from __future__ import annotations

from typing import Final, final

import msgspec

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions import scale
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import WriteQuery, write_options
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.endpoints.writes import APPLY, Written
from kinform.apiserver.fieldmanager import apply
from kinform.apiserver.patch import json_patch, merge_patch, strategic_merge
from kinform.apiserver.registry import object_metadata, subresource_bodies
from kinform.apiserver.registry.objects import ObjectRegistry
from kinform.apiserver.scheme.kind_registry import Kind, schema_of
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at, text

__all__ = ["Scaling"]

_MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@final
class Scaling:
    """The scales of one cluster's objects."""

    def __init__(self, cluster: Cluster, objects: ObjectRegistry) -> None:
        self._cluster = cluster
        self._objects = objects

    def answer(self, request: ServerRequest, route: Route) -> Written:
        """GET, PUT or PATCH a scale.

        Raises:
            StatusError: there is none, or it cannot be so.
        """
        kind = route.kind
        current = self._objects.load(kind, route.key)
        if request.method == "GET":
            return Written(scale.scale_of(kind, current))
        media = subresource_bodies.content_type(request)
        is_apply = request.method == "PATCH" and media in APPLY
        form = "UpdateOptions" if request.method == "PUT" else "PatchOptions"
        options = write_options(request, form, is_apply=is_apply)
        if is_apply:
            changed = self._apply(request, route, current, options=options)
        else:
            changed = self._update(request, route, current, options=options)
        return Written(scale.scale_of(kind, changed))

    def _update(
        self, request: ServerRequest, route: Route, current: Json, *, options: WriteQuery
    ) -> Json:
        kind = route.kind
        if request.method == "PUT":
            wanted = subresource_bodies.body(request, subresource_bodies.SCALE)
        else:
            wanted = _patched(request, kind, current)
        object_metadata.names_match(
            subresource_bodies.SCALE, wanted, namespace=route.namespace, name=route.name
        )
        asked = text(wanted, "metadata", "resourceVersion")
        if asked and asked != current["metadata"]["resourceVersion"]:
            raise status.conflict(kind, route.name, _MODIFIED)

        def change(obj: Json) -> Json:
            scale.set_scale(kind, obj, wanted)
            return obj

        return self._objects.update(kind, route.key, change, options=options, subresource="scale")

    def _apply(
        self, request: ServerRequest, route: Route, current: Json, *, options: WriteQuery
    ) -> Json:
        """Apply a Scale to the object that it scales; error messages name the Scale."""
        kind = route.kind
        wanted, _ = decoding.decode(request.body, "application/yaml", kind="Scale")
        decoding.check(
            subresource_bodies.SCALE, subresource_bodies.schema(subresource_bodies.SCALE), wanted
        )
        object_metadata.names_match(
            subresource_bodies.SCALE, wanted, namespace=route.namespace, name=route.name
        )
        applied: Json = {"apiVersion": kind.api_version, "kind": kind.kind}
        applied["metadata"] = {"name": route.name, "namespace": route.namespace}
        if at(wanted, "spec", "replicas") is not None:
            scale.set_scale(kind, applied, wanted)
        try:
            merged = apply.apply(
                kind,
                schema_of(kind),
                applied,
                live=current,
                manager=options.manager,
                force=options.force,
                now=self._cluster.timestamp(),
                subresource="scale",
            )
        except StatusError as exc:
            raise _of_scale(exc, kind) from exc
        return self._objects.update(
            kind,
            route.key,
            lambda _: merged,
            options=options,
            subresource="scale",
            applied=True,
        )


def _patched(request: ServerRequest, kind: Kind, current: Json) -> Json:
    """Return the scale as a patch makes it."""
    shown = scale.patchable(kind, current)
    if owners := _owners(kind, current):
        shown["metadata"]["managedFields"] = owners
    media = subresource_bodies.content_type(request)
    patch, _ = decoding.decode_patch(request.body, media)
    is_strategic = media == "application/strategic-merge-patch+json"
    if media == "application/json-patch+json":
        result = json_patch.apply(shown, patch)
    elif is_strategic:
        result = strategic_merge.apply(
            shown, patch, subresource_bodies.schema(subresource_bodies.SCALE)
        )
    else:
        result = merge_patch.apply(shown, patch)
    scale.check_patched(kind, current, result)
    raw = msgspec.json.encode(patch if is_strategic else result)
    patched = decoding.Patched(raw, is_strategic=is_strategic)
    decoding.check(
        subresource_bodies.SCALE,
        subresource_bodies.schema(subresource_bodies.SCALE),
        result,
        patched=patched,
    )
    return result


def _owners(kind: Kind, obj: Json) -> list[Json]:
    """Return the ``managedFields`` of the replicas' owners, in the form of a Scale."""
    path = scale.replicas_path(kind)
    found: list[Json] = []
    for entry in map(as_dict, as_list(obj["metadata"].get("managedFields"))):
        if at(entry, "fieldsV1", *(f"f:{name}" for name in path)) is not None:
            owned: Json = {"f:spec": {"f:replicas": {}}}
            found.append(
                {**entry, "apiVersion": subresource_bodies.SCALE.api_version, "fieldsV1": owned}
            )
    return found


def _of_scale(error: StatusError, kind: Kind) -> StatusError:
    own, named = f"using {kind.api_version}", f"using {subresource_bodies.SCALE.api_version}"
    path = "." + ".".join(scale.replicas_path(kind))

    def reworded(words: str) -> str:
        return words.replace(own, named).replace(path, ".spec.replicas")

    error.message = reworded(error.message)
    for cause in map(as_dict, as_list((error.details or {}).get("causes"))):
        for key in ("message", "field"):
            if key in cause:
                cause[key] = reworded(cause[key])
    return error

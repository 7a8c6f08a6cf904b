"""The write verbs: create, update, patch and delete, down to `ObjectRegistry` and `Deletion`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions import custom_objects
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import ListQuery, WriteQuery, write_options
from kinform.apiserver.endpoints.lists import Page, page
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.fieldmanager import apply
from kinform.apiserver.patch import duplicate_fields, json_patch, merge_patch, strategic_merge
from kinform.apiserver.registry import object_metadata
from kinform.apiserver.registry.deletion import DeleteOptions, Deletion, DeletionResult
from kinform.apiserver.registry.objects import ObjectRegistry, check_version
from kinform.apiserver.scheme.field_errors import FieldError, Problem
from kinform.apiserver.scheme.kind_registry import Kind, schema_of
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.json_values import Json, as_dict, text

__all__ = ["Writing", "Written"]

APPLY: Final = ("application/apply-patch+yaml", "application/apply-patch+cbor")
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_CUSTOM_PATCHES: Final = (_JSON_PATCH, _MERGE_PATCH, APPLY[0])
"""The patch types of custom resources, as their refusals list them."""


class Written(NamedTuple):
    """The result of a write."""

    obj: Json
    is_new: bool = False
    warnings: Sequence[str] = ()


@final
class Writing:
    """The verbs that write, on main resources and on their ``status``."""

    def __init__(
        self,
        cluster: Cluster,
        objects: ObjectRegistry,
        deletion: Deletion,
        *,
        authorize: Callable[[Route], None],
    ) -> None:
        self._cluster = cluster
        self._objects = objects
        self._deletion = deletion
        self._authorize: Final = authorize
        """Raises a `StatusError` unless the user of this request may create this object."""

    def create(self, request: ServerRequest, route: Route) -> Written:
        """POST to a collection."""
        options = write_options(request, "CreateOptions")
        obj, warnings = self.body(request, route.kind, options)
        try:
            created = self._objects.create(route.kind, obj, options, namespace=route.namespace)
        except StatusError as exc:
            exc.warnings = warnings
            raise
        return Written(created, is_new=True, warnings=warnings + _advice(route.kind, created))

    def put(self, request: ServerRequest, route: Route) -> Written:
        """PUT to an object, or to its status."""
        options = write_options(request, "UpdateOptions")
        obj, warnings = self.body(request, route.kind, options)
        try:
            changed, is_new = self._put(obj, route, options)
        except StatusError as exc:
            exc.warnings = warnings
            raise
        advice = _advice(route.kind, changed)
        return Written(changed, is_new=is_new, warnings=warnings + advice)

    def _put(self, obj: Json, route: Route, options: WriteQuery) -> tuple[Json, bool]:
        object_metadata.names_match(route.kind, obj, namespace=route.namespace, name=route.name)
        kind, objects = route.kind, self._objects
        if self._is_absent(route) and not route.subresource and objects.creates_by_update(kind):
            _check_uid(kind, obj, "")
            check_version(obj["metadata"].pop("resourceVersion", None) or "")
            return self._created(obj, route, options), True
        held = objects.held(kind, route.key)
        _check_uid(kind, obj, held.uid)
        if kind.custom is not None and not obj["metadata"].get("resourceVersion"):
            raise _unconditional(kind, route.name)
        return self._updated(lambda _: obj, route, options), False

    def _updated(
        self,
        change: Callable[[Json], Json],
        route: Route,
        options: WriteQuery,
        *,
        applied: bool = False,
    ) -> Json:
        return self._objects.update(
            route.kind,
            route.key,
            change,
            options=options,
            subresource=route.subresource.name if route.subresource is not None else "",
            applied=applied,
        )

    def patch(self, request: ServerRequest, route: Route) -> Written:
        """PATCH of an object, or of its status."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip()
        options = write_options(request, "PatchOptions", is_apply=content_type in APPLY)
        if content_type in APPLY:
            return self._apply(request, route, options)
        kind = route.kind
        if kind.custom is not None and content_type not in _CUSTOM_PATCHES:
            raise status.unsupported_media_type(", ".join(_CUSTOM_PATCHES))
        if content_type not in (_JSON_PATCH, _MERGE_PATCH, _STRATEGIC):
            raise StatusError(
                415, "UnsupportedMediaType", "415: Unsupported Media Type", details={}
            )
        warnings: list[str] = []

        def change(base: Json) -> Json:
            patched, found = _patched(request.body, content_type, kind, base=base, options=options)
            warnings.extend(found)
            object_metadata.names_match(kind, patched, namespace=route.namespace, name=route.name)
            return patched

        try:
            changed = self._updated(change, route, options)
        except StatusError as exc:
            exc.warnings = warnings
            raise
        return Written(changed, warnings=warnings + _advice(kind, changed))

    def _apply(self, request: ServerRequest, route: Route, options: WriteQuery) -> Written:
        kind, objects = route.kind, self._objects
        is_new = self._is_absent(route)
        if is_new and route.subresource:
            raise status.not_found(kind, route.name)
        applied, complaints = decoding.decode_apply(request.body)
        decoding.check_size(applied)
        _check_identity(kind, applied)
        live = None if is_new else objects.load(kind, route.key)
        merged = apply.apply(
            kind,
            schema_of(kind),
            applied,
            live=live,
            manager=options.manager,
            force=options.force,
            now=self._cluster.timestamp(),
            subresource=route.subresource.name if route.subresource is not None else "",
        )
        decoding.check_size(merged)
        decoding.convert(kind, schema_of(kind), merged)
        warnings = _complained(complaints, options)
        try:
            changed = self._applied(merged, route, options, is_new=is_new)
        except StatusError as exc:
            exc.warnings = warnings
            raise
        advice = _advice(kind, changed)
        return Written(changed, is_new=is_new, warnings=warnings + advice)

    def _applied(self, merged: Json, route: Route, options: WriteQuery, *, is_new: bool) -> Json:
        kind = route.kind
        uid = object_metadata.metadata_of(merged).get("uid")
        if is_new and uid:
            raise status.conflict(
                kind,
                route.name,
                f"uid mismatch: the provided object specified uid {uid}, and no existing object "
                "was found",
            )
        object_metadata.names_match(kind, merged, namespace=route.namespace, name=route.name)
        if not is_new:
            return self._updated(lambda _: merged, route, options, applied=True)
        check_version(merged["metadata"].pop("resourceVersion", None) or "")
        return self._created(merged, route, options, applied=True)

    def _created(
        self, obj: Json, route: Route, options: WriteQuery, *, applied: bool = False
    ) -> Json:
        """Create the object that an update or an apply names, if the user may also create it."""
        return self._objects.create(
            route.kind,
            obj,
            options,
            namespace=route.namespace,
            applied=applied,
            authorize=lambda: self._authorize(route),
        )

    def delete(self, route: Route, options: DeleteOptions) -> DeletionResult:
        """DELETE of an object."""
        return self._deletion.delete(route.kind, route.key, options)

    def delete_all(self, route: Route, options: DeleteOptions, listing: ListQuery) -> Page:
        """DELETE of a collection; return it as it was."""
        found = page(self._cluster.storage, route.kind.storage, route.prefix, options=listing)
        table = self._cluster.storage.table(route.kind.storage)
        for stored in found.items:
            if table.get(stored.key) is not None:
                self._deletion.delete(route.kind, stored.key, options)
        return found

    # --- the steps

    def body(
        self, request: ServerRequest, kind: Kind, options: WriteQuery
    ) -> tuple[Json, list[str]]:
        """Read an object from a request, with what there is to complain about it.

        Raises:
            StatusError: there is none in it.
        """
        content_type = request.headers.get("content-type", "")
        return _checked(request.body, content_type, kind, options=options)

    def read(self, request: ServerRequest, kind: Kind) -> Json:
        """Return the object in a request, in the form in which it would be stored.

        Raises:
            StatusError: the body holds no such object.
        """
        content_type = request.headers.get("content-type", "")
        return _checked(
            request.body, content_type, kind, options=WriteQuery(field_validation="Ignore")
        )[0]

    def _is_absent(self, route: Route) -> bool:
        return self._cluster.storage.table(route.kind.storage).get(route.key) is None


def _advice(kind: Kind, obj: Json) -> list[str]:
    """Return the warnings about an object that was stored."""
    return custom_objects.advice(kind, obj) if kind.storage in custom_objects.ADVISED else []


def _checked(
    body: bytes, content_type: str, kind: Kind, *, options: WriteQuery
) -> tuple[Json, list[str]]:
    is_custom = kind.custom is not None
    obj, duplicates = decoding.decode(
        body, content_type, kind=kind.kind, api_version=kind.api_version, is_custom=is_custom
    )
    decoding.check_size(obj)
    checked = decoding.check(kind, schema_of(kind), obj, duplicates=duplicates)
    return obj, decoding.complain(options.field_validation, checked.complaints, kind)


def _check_identity(kind: Kind, applied: Json) -> None:
    """Check that an applied configuration names its kind and version."""
    api_version, given = text(applied, "apiVersion"), text(applied, "kind")
    if api_version != kind.api_version or given != kind.kind:
        group_version = api_version if "/" in api_version else f"/{api_version}"
        raise status.bad_request(f"invalid object type: {group_version}, Kind={given}")


def _complained(complaints: list[str], options: WriteQuery) -> list[str]:
    """Return what is to be warned of a configuration, unless that is a reason to refuse it."""
    if not complaints or options.field_validation == "Ignore":
        return []
    if options.field_validation != "Strict":
        return complaints
    problems = "\n  ".join(("yaml: unmarshal errors:", *complaints))
    raise status.bad_request(
        f"error strict decoding YAML: error converting YAML to JSON: {problems}"
    )


def _patched(
    body: bytes, content_type: str, kind: Kind, *, base: Json, options: WriteQuery
) -> tuple[Json, list[str]]:
    """Return an object as a patch makes it, with what there is to complain about it."""
    patch, complaints = decoding.decode_patch(body, content_type)
    raw = decoding.check_size(patch)
    is_strategic = content_type == _STRATEGIC
    written, duplicates = "", list[str]()
    if content_type == _JSON_PATCH:
        result = json_patch.apply(base, patch)
        if complaints:
            written, duplicates, result = _read_repeats(result)
    elif is_strategic:
        result = strategic_merge.apply(base, patch, schema_of(kind))
    else:
        result = merge_patch.apply(base, patch)
    made = decoding.check_size(result)
    shown = decoding.Patched(
        raw if is_strategic else made, is_strategic, kind.custom is not None, written
    )
    checked = decoding.check(kind, schema_of(kind), result, duplicates=duplicates, patched=shown)
    found = [*complaints, *checked.complaints]
    if found:
        found = decoding.complain(options.field_validation, found, kind, patched=shown)
    return result, found


def _read_repeats(result: Json) -> tuple[str, list[str], Json]:
    """Return how a result is written, what is in it twice, and what it is without that."""
    paths = list(duplicate_fields.found(result))
    if not paths:
        return "", [], result
    written = duplicate_fields.text({name: result[name] for name in sorted(result)})
    return (
        written,
        [decoding.duplicate(path) for path in paths],
        as_dict(duplicate_fields.plain(result)),
    )


def _check_uid(kind: Kind, obj: Json, uid: str) -> None:
    given = obj["metadata"].get("uid")
    if given and given != uid:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        key = "/".join(it for it in ("/registry", kind.plural, namespace, name) if it)
        raise status.conflict(
            kind,
            name,
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, "
            f"UID in object meta: {uid}",
        )


def _unconditional(kind: Kind, name: str) -> StatusError:
    error = FieldError(
        Problem.INVALID, "metadata.resourceVersion", "must be specified for an update", 0
    )
    return status.invalid(msgspec.structs.replace(kind, kind=kind.plural), name, [error])

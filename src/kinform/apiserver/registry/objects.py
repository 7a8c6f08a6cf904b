"""The registry's strategy: creating and updating objects, from a decoded body to the storage.

The order of things is kube-apiserver's. Create: names, what the server alone sets, defaults,
validation, ownership of fields, storage. Update: the same, with what may not change carried over
from the object as it was; an update that changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from kinform.apiserver import defaults, validation
from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions import custom_objects
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import WriteQuery
from kinform.apiserver.fieldmanager import managed_fields
from kinform.apiserver.registry import admission, conversion, object_metadata
from kinform.apiserver.registry.service_addresses import Addresses
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind, schema_of
from kinform.apiserver.serializer import encoding
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text
from kinform.apiserver.storage import selection_predicate
from kinform.apiserver.storage.versioned_store import Exists, ObjectDraft, Stored

__all__ = ["ObjectRegistry", "check_version", "keep_all_but_ephemeral"]

_MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_CREATED_BY_UPDATE: Final = frozenset(
    "leases.coordination.k8s.io events endpoints endpointslices.discovery.k8s.io "
    "roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io "
    "rolebindings.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io "
    "services".split()
)
_SERVICES: Final = "services"
_BINDING: Final = "binding"
"""The only way to change the node of a pod, which is immutable otherwise."""
_ATTEMPTS: Final = 8
"""The most names that are generated for one object, if they are taken."""
_DIGITS: Final = 20
"""No version has more."""
_NAME_LIMIT: Final = 58
"""The length to which a generateName is cut, so that its suffix fits."""


def key_of(kind: Kind, namespace: str, name: str) -> str:
    """Return the key of an object in the storage."""
    return f"{namespace}/{name}" if kind.namespaced else name


@final
class ObjectRegistry:
    """Reads, creates and changes the objects of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self.addresses: Final = Addresses(cluster)

    # --- reading

    def held(self, kind: Kind, key: str) -> Stored:
        """Return an object as it is stored.

        Raises:
            StatusError: there is none.
        """
        stored = self._storage.get(kind.storage, key)
        if stored is None:
            raise status.not_found(kind, key.rpartition("/")[2])
        return stored

    def load(self, kind: Kind, key: str) -> Json:
        """Return an object as a copy of the caller's own.

        Raises:
            StatusError: there is none.
        """
        return encoding.decode(kind, self.held(kind, key).raw)

    # --- writing

    def create(
        self,
        kind: Kind,
        obj: Json,
        options: WriteQuery,
        *,
        namespace: str,
        applied: bool = False,
        authorize: Callable[[], None] | None = None,
    ) -> Json:
        """Store a new object and return it.

        Args:
            applied: It comes from an apply, which has set its managedFields.
            authorize: Raises if the user may not create; called after validation, as
                kube-apiserver does for a PUT or an apply that creates.

        Raises:
            StatusError: it cannot be.
        """
        object_metadata.names_match(kind, obj, namespace=namespace)
        self._check_namespace(kind, obj, namespace)
        meta = object_metadata.metadata_of(obj)
        if _revision(meta.pop("resourceVersion", None) or ""):
            message = "resourceVersion should not be set on objects to be created"
            raise status.StatusError(500, "", message)
        object_metadata.wipe(meta)
        self._complete(kind, obj)
        if not applied:
            managed_fields.on_create(
                kind, schema_of(kind), obj, manager=options.manager, now=self._cluster.timestamp()
            )
        admission.admit(self._cluster, kind, obj)
        self._stamp(kind, meta)
        self._prepare_create(kind, obj)
        if errors := self._validate(kind, obj):
            raise status.invalid(kind, text(meta, "name"), errors)
        if authorize is not None:
            authorize()
        key = key_of(kind, namespace, meta["name"])
        if options.is_dry:
            if self._storage.table(kind.storage).get(key) is not None:
                raise status.already_exists(kind, meta["name"])
            return obj
        return self._create(kind, key, obj)

    def _create(self, kind: Kind, key: str, obj: Json) -> Json:
        try:
            stored = self._storage.create(kind.storage, key, self.draft(kind, obj))
        except Exists as exc:
            raise _existing(kind, obj, self._storage.table(kind.storage).get(key)) from exc
        return encoding.decode(kind, stored.raw)

    def update(
        self,
        kind: Kind,
        key: str,
        change: Callable[[Json], Json],
        *,
        options: WriteQuery,
        subresource: str = "",
        applied: bool = False,
    ) -> Json:
        """Change an object by a function of it, and return what it has become.

        ``change`` gets a copy and returns the new object, which may be the same one. A version
        or uid in it that is not the object's own is a conflict.

        Raises:
            StatusError: the object does not exist, or cannot be changed so.
        """
        held = self.held(kind, key)
        old = encoding.decode(kind, held.raw)
        new = change(encoding.decode(kind, held.raw))
        self._check_preconditions(kind, new, old)
        object_metadata.drop_empty(new["metadata"])
        self._complete(kind, new)
        is_binding = subresource == _BINDING
        if not applied and not is_binding:
            managed_fields.on_update(
                kind,
                schema_of(kind),
                new,
                old=old,
                manager=options.manager,
                now=self._cluster.timestamp(),
                subresource=subresource,
            )
        object_metadata.inherit(new["metadata"], old["metadata"])
        self._prepare_update(kind, new, old, subresource=subresource)
        if not is_binding:
            if errors := self._validate_update(kind, new, old, subresource=subresource):
                raise status.invalid(kind, old["metadata"]["name"], errors)
            self._count(kind, new, old)
        managed_fields.restore_times(new, old)
        return self.replace(kind, held, new, old=old, is_dry=options.is_dry)

    def replace(
        self, kind: Kind, held: Stored, new: Json, *, old: Json, is_dry: bool = False
    ) -> Json:
        """Store a new state of an object, if it is one; return it.

        An object that is being deleted goes when nothing holds it any more.
        """
        meta = new["metadata"]
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        is_going = meta.get("deletionTimestamp") and not meta.get("finalizers")
        has_grace = meta.get("deletionGracePeriodSeconds")
        if is_going and not has_grace and not spec_finalizers(new):
            if not is_dry:
                self.remove(kind, held)
            return new
        if object_metadata.is_unchanged(new, old):
            return old
        if is_dry:
            return new
        stored = self._storage.update(
            kind.storage, held.key, self.draft(kind, new), expected=held.revision
        )
        return encoding.decode(kind, stored.raw)

    def remove(self, kind: Kind, held: Stored) -> Json:
        """Take an object out of the storage; return its last state, in a version of its own."""

        def encode(version: str) -> bytes:
            return encoding.in_version(held, int(version))

        draft = ObjectDraft(encode, held.labels, held.fields, held.uid, held.owners)
        stored = self._storage.delete(kind.storage, held.key, draft, expected=held.revision)
        return encoding.decode(kind, stored.raw)

    def draft(self, kind: Kind, obj: Json) -> ObjectDraft:
        """Return an object as the storage takes it."""
        if kind.is_converted:
            obj = conversion.to_stored(kind, obj)
        # The version is set when it is known; the order of the metadata stays.
        meta = object_metadata.ordered({**obj["metadata"], "resourceVersion": "0"})
        body = {"metadata": meta, **obj}
        body["metadata"] = meta
        body.pop("kind", None)
        body.pop("apiVersion", None)

        def encode(version: str) -> bytes:
            meta["resourceVersion"] = version
            return encoding.encode(body)

        owners: tuple[str, ...] = ()
        if references := meta.get("ownerReferences"):
            owners = tuple(text(as_dict(it), "uid") for it in as_list(references))
        labels: Mapping[str, str] = meta.get("labels") or {}
        return ObjectDraft(
            encode, labels, selection_predicate.fields(kind, obj), meta["uid"], owners
        )

    def creates_by_update(self, kind: Kind) -> bool:
        """Return whether a PUT to a name that does not exist creates the object."""
        return kind.storage in _CREATED_BY_UPDATE

    # --- the steps

    def _check_namespace(self, kind: Kind, obj: Json, namespace: str) -> None:
        if not kind.namespaced:
            return
        held = self._storage.table("namespaces").get(namespace)
        if held is None:
            found = self._cluster.kinds.find("", "v1", "namespaces")
            assert found is not None
            raise status.not_found(found, namespace)
        if held.fields.get("status.phase") == "Terminating":
            name = text(obj, "metadata", "name")
            error = status.forbidden(
                kind,
                name,
                f"unable to create new content in namespace {namespace} "
                "because it is being terminated",
            )
            error.details = {
                **(error.details or {}),
                "causes": [
                    {
                        "reason": "NamespaceTerminating",
                        "message": f"namespace {namespace} is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            }
            raise error

    def _stamp(self, kind: Kind, meta: Json) -> None:
        """Set what the server alone sets."""
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generated_name(kind, meta)
        meta["uid"] = self._cluster.uid()
        meta["creationTimestamp"] = self._cluster.timestamp()
        if object_metadata.has_generation(kind):
            meta["generation"] = 1

    def _generated_name(self, kind: Kind, meta: Json) -> str:
        """Return a name with a new suffix; a taken one is replaced, up to a number of attempts."""
        table, name = self._storage.table(kind.storage), ""
        for _ in range(_ATTEMPTS):
            name = meta["generateName"][:_NAME_LIMIT] + self._cluster.suffix()
            if table.get(key_of(kind, meta.get("namespace", ""), name)) is None:
                break
        return name

    def _complete(self, kind: Kind, obj: Json) -> None:
        """Fill in the defaults that are the writer's."""
        if kind.custom is not None:
            custom_objects.complete(kind, obj)
        elif kind.storage == custom_objects.DEFINITIONS:
            custom_objects.default_definition(obj)
        else:
            defaults.default_owned(kind, obj)

    def _prepare_create(self, kind: Kind, obj: Json) -> None:
        """Take out what a client may not set, and put in what the server sets."""
        if kind.custom is not None:
            if kind.custom.has_status:
                obj.pop("status", None)
            return
        defaults.prepare_create(kind, obj)
        defaults.default(kind, obj)
        if kind.storage == custom_objects.DEFINITIONS:
            custom_objects.prepare_definition(obj, None)

    def _prepare_update(self, kind: Kind, new: Json, old: Json, *, subresource: str) -> None:
        if kind.custom is not None:
            _prepare_custom(kind, new, old, subresource=subresource)
        elif subresource == "status":
            _keep_all_but_status(new, old)
            _keep_metadata(kind, new["metadata"], old["metadata"])
            defaults.default(kind, new)
        elif subresource == "ephemeralcontainers":
            keep_all_but_ephemeral(new, old)
            defaults.default(kind, new)
        elif not subresource:
            defaults.prepare_update(kind, new, old)
            defaults.default(kind, new)
            if kind.storage == custom_objects.DEFINITIONS:
                custom_objects.prepare_definition(new, old)

    def _validate(self, kind: Kind, obj: Json) -> list[FieldError]:
        errors = validation.validate(kind, obj)
        if kind.custom is not None:
            errors += custom_objects.validate(kind, obj)
        elif kind.storage == custom_objects.DEFINITIONS:
            errors += custom_objects.validate_definition(obj)
        elif kind.storage == _SERVICES and not errors:
            errors += self._assign(kind, obj)
        return errors

    def _validate_update(
        self, kind: Kind, new: Json, old: Json, *, subresource: str
    ) -> list[FieldError]:
        errors = validation.validate_update(kind, new, old, subresource=subresource)
        if kind.custom is not None:
            errors += custom_objects.validate_update(kind, new, old)
        elif kind.storage == custom_objects.DEFINITIONS:
            errors += custom_objects.validate_definition_update(new, old)
        elif kind.storage == _SERVICES and not errors:
            errors += self._assign(kind, new)
        return errors

    def _assign(self, kind: Kind, obj: Json) -> list[FieldError]:
        meta = obj["metadata"]
        return self.addresses.assign(obj, key_of(kind, meta["namespace"], meta["name"]))

    def _check_preconditions(self, kind: Kind, new: Json, old: Json) -> None:
        was = old["metadata"]
        version = new["metadata"].get("resourceVersion") or ""
        if version not in {"", "0"} and version != was["resourceVersion"]:
            check_version(version)
            raise status.conflict(kind, was["name"], _MODIFIED)

    def _count(self, kind: Kind, new: Json, old: Json) -> None:
        if not object_metadata.has_generation(kind):
            return
        has_changed = object_metadata.has_changed(kind, new, old)
        if kind.custom is not None and not kind.custom.has_status:
            has_changed = has_changed or new.get("status") != old.get("status")
        if has_changed:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def check_version(version: str) -> None:
    """Make sure that a version is one.

    Raises:
        StatusError: it is not.
    """
    if version and not (version.isascii() and version.isdigit()):
        message = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        raise status.StatusError(500, "", message)


def _revision(version: str) -> int:
    """Return the number that a version is; 0 for anything else."""
    is_number = version.isascii() and version.isdigit() and len(version) <= _DIGITS
    return int(version) if is_number else 0


def _existing(kind: Kind, obj: Json, held: Stored | None) -> status.StatusError:
    error = status.already_exists(kind, obj["metadata"]["name"])
    if held is not None and b'"deletionTimestamp"' in held.raw:
        error.message = f"object is being deleted: {error.message}"
    return error


def spec_finalizers(obj: Json) -> list[str]:
    """Return the finalizers of a namespace's spec: they hold it as its metadata's do."""
    return as_list(as_dict(obj.get("spec")).get("finalizers")) if obj["kind"] == "Namespace" else []


def _keep_all_but_status(new: Json, old: Json) -> None:
    """Leave of an update of ``/status`` the status and the metadata."""
    state = new.get("status")
    for key in [key for key in new if key not in {"kind", "apiVersion", "metadata"}]:
        del new[key]
    new.update({k: v for k, v in old.items() if k not in {"kind", "apiVersion", "metadata"}})
    if state is None:
        new.pop("status", None)
    else:
        new["status"] = state


def _keep_metadata(kind: Kind, new: Json, old: Json) -> None:
    """Take back what an update of ``/status`` changed of the metadata, if it may not do that."""
    kept = managed_fields.ignored(kind, "status").get("f:metadata")
    if kept is None:
        return
    names = {name[2:] for name in kept} or (new.keys() | old.keys()) - {"managedFields"}
    for name in names:
        if name in old:
            new[name] = old[name]
        else:
            new.pop(name, None)


def _prepare_custom(kind: Kind, new: Json, old: Json, *, subresource: str) -> None:
    custom = kind.custom
    assert custom is not None
    if subresource == "status":
        managed = new["metadata"].get("managedFields")
        _keep_all_but_status(new, old)
        new["metadata"] = {**old["metadata"], "managedFields": managed}
    elif custom.has_status:
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)


def keep_all_but_ephemeral(new: Json, old: Json) -> None:
    """Revert all changes of a pod but those of its ephemeral containers, in place."""
    containers = as_dict(new.get("spec")).get("ephemeralContainers")
    spec = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
    if containers:
        spec["ephemeralContainers"] = containers
    new["spec"] = spec
    if "status" in old:
        new["status"] = old["status"]

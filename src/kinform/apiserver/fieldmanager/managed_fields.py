"""Field ownership: ``metadata.managedFields`` of plain writes.

All functions work on decoded objects and change nothing but ``metadata.managedFields`` of the
object to be stored. The order of calls matters, because a writer owns exactly the fields that
differ when these functions are called:

* **create**: decode, default, `on_create`, then admission and what the server sets itself (uid,
  status, allocated addresses: these have no owner), validate, store.
* **update** and every **patch** but apply: decode or patch, default, `on_update` with the stored
  object, then what the server sets or takes back (generation, a status that came with the main
  resource), validate, `restore_times`, and store if there is something to store.
* **apply**: `kinform.apiserver.fieldmanager.apply.apply`, *then* default (defaults have no
  owner), then as an update or a create, but without `on_update` or `on_create`.

An entry belongs to a manager, an operation, a version (for updates) and a subresource; there are
at most ten of plain writes, older ones are merged into ``ancient-changes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, cast

from kinform.apiserver.fieldmanager import field_sets
from kinform.apiserver.fieldmanager.field_sets import FieldSet, is_list
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at

__all__ = [
    "ManagerEntry",
    "Owner",
    "Owners",
    "decode",
    "encode",
    "ignored",
    "on_create",
    "on_update",
    "restore_times",
]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

_MOST_UPDATERS: Final = 10
_ANCIENT: Final = "ancient-changes"
_BEFORE: Final = "before-first-apply"

UNOWNED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:clusterName": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}
"""The type, and what only the server sets: these fields are in no manager's set."""


class Owner(NamedTuple):
    """The identity of an entry of ``managedFields``."""

    manager: str
    operation: str
    """``Apply`` or ``Update``."""
    api_version: str
    """Empty for ``Apply``: a manager has one set for all versions that it applies."""
    subresource: str


class ManagerEntry(NamedTuple):
    """The fields of an owner, the version of its last write, and the time of its last change."""

    fields: FieldSet
    api_version: str
    time: str | None


Owners: TypeAlias = dict[Owner, ManagerEntry]


def on_create(kind: Kind, schema: Schema, obj: Json, *, manager: str, now: str) -> None:
    """Make ``manager`` the owner of all fields of a new, defaulted object.

    A client may bring ``managedFields`` of its own; what they say stays.
    """
    on_update(kind, schema, obj, old=None, manager=manager, now=now)


def on_update(
    kind: Kind,
    schema: Schema,
    new: Json,
    *,
    old: Json | None,
    manager: str,
    now: str,
    subresource: str = "",
) -> None:
    """Move the fields that differ between ``old`` and ``new`` to ``manager``.

    Sets ``managedFields`` of ``new``; ``old`` is what is stored and stays as it is. A client that
    sends no ``managedFields``, or such as cannot be read, does not change those that are there;
    one that sends an empty list, or a list with an empty entry, resets them. On a subresource
    only the stored ones count. Without ``old`` the object is new.
    """
    shape = field_sets.shape_of(schema, is_typed=kind.custom is None)
    owners = _starting(old, new, is_subresource=bool(subresource))
    if old is not None and not owners:
        # The fields of an object without owners stay unowned until the first apply.
        set_entries(new, owners)
        return
    found = _changes(shape, (old, new), ignored(kind, subresource))
    gained = field_sets.union(found.added, found.modified)
    if owners:
        owners = take(owners, field_sets.union(gained, found.removed))
    gained = field_sets.difference(gained, UNOWNED)
    if gained:
        owner = Owner(manager, UPDATE, kind.api_version, subresource)
        previous = owners.get(owner)
        fields = field_sets.union(previous.fields, gained) if previous else gained
        # The server keeps no times for what is set by a scale.
        time = None if subresource == "scale" else now
        owners[owner] = ManagerEntry(fields, kind.api_version, time)
        if len(owners) > _MOST_UPDATERS:
            _merge_oldest(owners)
    set_entries(new, owners)


def owned_before(kind: Kind, schema: Schema, live: Json, *, now: str) -> Owners:
    """Return the owners of an object's fields at the first apply, if it had none until then."""
    shadow: Json = live | {"metadata": dict(as_dict(live.get("metadata")))}
    on_create(kind, schema, shadow, manager=_BEFORE, now=now)
    return decode(at(shadow, "metadata", "managedFields")) or {}


def _changes(
    shape: field_sets.Shape, objects: tuple[Json | None, Json], passed_by: FieldSet
) -> field_sets.FieldChanges:
    """Return what a write changes, but for what it cannot change."""
    old, new = objects
    if old is None:
        old = dict(shape.implied)
    if not passed_by:
        return field_sets.changes(shape, old, new)
    whole = {name[2:] for name, below in passed_by.items() if not below}
    found = field_sets.changes(shape, _but(old, whole), _but(new, whole))
    if len(whole) == len(passed_by):
        return found
    return field_sets.FieldChanges(*(field_sets.without(part, passed_by) for part in found))


def _but(obj: Json, names: set[str]) -> Json:
    return {name: value for name, value in obj.items() if name not in names}


def set_entries(obj: Json, owners: Owners) -> None:
    """Write ``managedFields`` into an object, or remove them if it has no owners."""
    metadata: Json | None = obj.get("metadata")
    if not isinstance(metadata, dict):
        metadata = obj["metadata"] = {}
    if owners:
        metadata["managedFields"] = encode(owners)
    else:
        metadata.pop("managedFields", None)


def take(owners: Owners, lost: FieldSet) -> Owners:
    """Return the owners without those fields, and without owners that have nothing left."""
    left: Owners = {}
    for owner, entry in owners.items():
        fields = field_sets.difference(entry.fields, lost)
        if fields:
            left[owner] = entry._replace(fields=fields)
    return left


def _starting(old: Json | None, new: Json, *, is_subresource: bool) -> Owners:
    """Return the owners before a write: those that the client sends, or the stored ones."""
    stored = old["metadata"].get("managedFields") if old is not None else None
    if not is_subresource:
        metadata: JsonValue = new.get("metadata")
        sent = cast("Json", metadata).get("managedFields") if isinstance(metadata, dict) else None
        if sent in ([], [{}]):
            return {}
        if sent and sent != stored:
            owners = decode(sent)
            if owners and all(field_sets.is_valid(entry.fields) for entry in owners.values()):
                # Who owns fields of a version that does not exist owns nothing.
                return {who: entry for who, entry in owners.items() if entry.api_version}
    return decode(stored) or {}


def decode(entries: JsonValue) -> Owners | None:
    """Return ``managedFields`` by owner, None if they are invalid."""
    owners: Owners = {}
    if not is_list(entries):
        return owners
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        given = cast("Json", entry)
        operation, fields = given.get("operation"), given.get("fieldsV1")
        if operation not in {APPLY, UPDATE} or given.get("fieldsType") != "FieldsV1":
            return None
        version = given.get("apiVersion", "")
        owner = Owner(
            given.get("manager", ""),
            operation,
            "" if operation == APPLY else version,
            given.get("subresource", ""),
        )
        found = cast("FieldSet", fields) if isinstance(fields, dict) else {}
        owners[owner] = ManagerEntry(found, version, given.get("time"))
    return owners


def encode(owners: Mapping[Owner, ManagerEntry]) -> list[Json]:
    """Return ``managedFields``: those who apply first, then by time, then by name."""
    entries: list[Json] = []
    for owner, entry in sorted(owners.items(), key=_sorting):
        encoded: Json = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": entry.api_version,
        }
        if entry.time is not None:
            encoded["time"] = entry.time
        encoded["fieldsType"] = "FieldsV1"
        encoded["fieldsV1"] = field_sets.ordered(entry.fields)
        if owner.subresource:
            encoded["subresource"] = owner.subresource
        entries.append(encoded)
    return entries


def _sorting(item: tuple[Owner, ManagerEntry]) -> tuple[str, str, str, str, str]:
    owner, entry = item
    return (owner.operation, entry.time or "", owner.manager, entry.api_version, owner.subresource)


def _merge_oldest(owners: Owners) -> None:
    """Merge the oldest plain writers, version by version, until there are ten."""
    updaters = [owner for owner in owners if owner.operation == UPDATE]
    excess = len(updaters) - _MOST_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda owner: (owners[owner].time or "", owner))
    first: dict[str, Owner] = {}
    for owner in updaters:
        if excess <= 0:
            return
        entry = owners[owner]
        oldest = first.setdefault(entry.api_version, owner)
        if oldest is owner:
            continue
        bucket = Owner(_ANCIENT, UPDATE, entry.api_version, "")
        if bucket not in owners:
            owners[bucket] = owners.pop(oldest)
        fields = field_sets.union(owners[bucket].fields, entry.fields)
        del owners[owner]
        owners[bucket] = ManagerEntry(fields, entry.api_version, entry.time)
        excess -= 1


def restore_times(new: Json, old: Json) -> bool:
    """Return whether a write changed nothing, and if so put the stored times back.

    To be called last: an object that differs from the stored one in nothing but the times of
    ``managedFields`` (and ``resourceVersion``, which the client may have left out) is the stored
    one, and is not to be stored again.
    """
    if not _is_same(old, new, but=_METADATA):
        return False
    before, after = as_dict(old.get("metadata")), as_dict(new.get("metadata"))
    if not _is_same(before, after, but=_WRITE):
        return False
    stored, made = (as_list(before.get("managedFields")), as_list(after.get("managedFields")))
    if len(stored) != len(made):
        return False
    if not all(_is_same(*pair, but=_TIME) for pair in zip(stored, made, strict=True)):
        return False
    if stored:
        after["managedFields"] = stored
    return True


_METADATA: Final = frozenset({"metadata"})
_WRITE: Final = frozenset({"managedFields", "resourceVersion"})
_TIME: Final = frozenset({"time"})


def _is_same(one: Json, other: Json, *, but: frozenset[str]) -> bool:
    return all(one.get(name) == other.get(name) for name in (one.keys() | other.keys()) - but)


_ALL_METADATA: Final = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "resourceclaims.resource.k8s.io",
        "servicecidrs.networking.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Built-in resources whose status endpoint cannot change metadata. Custom ones are like them."""

_SOME_METADATA: Final[Mapping[str, FieldSet]] = {
    "deployments.apps": {"f:metadata": {"f:labels": {}}, "f:spec": {}},
    "pods": {"f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}, "f:spec": {}},
}
_SPEC: Final[FieldSet] = {"f:spec": {}}


def ignored(kind: Kind, subresource: str) -> FieldSet:
    """Return the fields that writes to this endpoint cannot change, and therefore never own."""
    if not subresource:
        return {"f:status": {}} if "status" in kind.subresources else {}
    if subresource != "status":
        return {}
    qualified = kind.qualified
    if kind.custom is not None or qualified in _ALL_METADATA:
        return {"f:metadata": {}, "f:spec": {}}
    return _SOME_METADATA.get(qualified, _SPEC)

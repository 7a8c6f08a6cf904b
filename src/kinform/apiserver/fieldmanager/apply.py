"""Server-side apply: a manager applies its configuration, the server tracks field ownership.

`apply` is the whole of it. The order of calls around it is in
`kinform.apiserver.fieldmanager.managed_fields`: defaults come *after* it, so that defaulted fields
have no owner.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kinform.apiserver.endpoints.status import StatusError, bad_request
from kinform.apiserver.fieldmanager import field_sets, managed_fields, merge
from kinform.apiserver.fieldmanager.field_sets import FieldSet, is_dict
from kinform.apiserver.fieldmanager.managed_fields import APPLY, UPDATE, ManagerEntry, Owner, Owners
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json, as_dict, at, text

__all__ = ["apply"]

_KUBECTL: Final = "kubectl"
"""The manager whose earlier, client-side applies are taken for its own."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_Conflicts = dict[Owner, FieldSet]


def apply(
    kind: Kind,
    schema: Schema,
    applied: Json,
    *,
    live: Json | None,
    manager: str,
    force: bool,
    now: str,
    subresource: str = "",
) -> Json:
    """Return the object that results from applying a configuration.

    ``live`` is the stored object, None if the apply creates it. Fields that the manager applied
    before and does not apply any more are removed, unless another manager owns them. The result has
    its ``managedFields``, but neither defaults nor what the server sets at creation; the caller
    adds them, and finds with `kinform.apiserver.fieldmanager.managed_fields.restore_times` whether
    anything changed. Arguments stay as they are, the result shares with them.

    Raises:
        StatusError: 409, the configuration sets fields that others own to other values and
            ``force`` is not set; 400, it has ``managedFields``; 500, it does not fit the schema.
    """
    shape = field_sets.shape_of(schema, is_typed=kind.custom is None)
    _check(kind, shape, applied)
    start = {"apiVersion": kind.api_version, "kind": kind.kind} if live is None else live
    owner = Owner(manager, APPLY, "", subresource)
    owners = managed_fields.decode(at(start, "metadata", "managedFields")) or {}
    if not owners and live is not None:
        owners = managed_fields.owned_before(kind, schema, live, now=now)
    last = owners.get(owner)
    passed_by = managed_fields.ignored(kind, subresource)
    stated = field_sets.without(field_sets.applied(shape, applied), passed_by)
    owners[owner] = ManagerEntry(stated, kind.api_version, now)
    merged = as_dict(merge.merge(shape, start, applied))
    if last is not None:
        merged = _pruned(shape, merged, (owners, owner, last.fields))
    found = field_sets.changes(shape, start, merged)
    found = field_sets.FieldChanges(*(field_sets.without(part, passed_by) for part in found))
    changed = field_sets.union(found.added, found.modified)
    conflicts = _conflicts(owners, owner, changed)
    if conflicts and not force:
        allowed = _allowed(shape, start) if manager == _KUBECTL else {}
        refused = {who: field_sets.difference(what, allowed) for who, what in conflicts.items()}
        refused = {who: what for who, what in refused.items() if what}
        if refused:
            raise _refusal(refused)
    del owners[owner]
    owners = managed_fields.take(owners, field_sets.union(changed, found.removed))
    stated = field_sets.difference(stated, managed_fields.UNOWNED)
    if stated:
        is_same = merged == live
        # To own what is as it is already is nothing that happened at a time.
        time = (last.time if last else None) if is_same else now
        owners[owner] = ManagerEntry(stated, kind.api_version, time)
    return _finished(merged, owners, applied if manager == _KUBECTL else None)


def _check(kind: Kind, shape: field_sets.Shape, applied: Json) -> None:
    if at(applied, "metadata", "managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    wrong = merge.mistakes(shape, applied)
    if not wrong:
        return
    problem = wrong[0] if len(wrong) == 1 else "errors:\n  " + "\n  ".join(wrong)
    name = f"{text(applied, 'metadata', 'namespace')}/{text(applied, 'metadata', 'name')}"
    called = f"{name}; {kind.group}/{kind.version}, Kind={kind.kind}"
    raise StatusError(500, "", f"failed to create typed patch object ({called}): {problem}")


def _pruned(shape: field_sets.Shape, merged: Json, owning: tuple[Owners, Owner, FieldSet]) -> Json:
    """Remove the fields that the manager does not apply any more and no other manager owns.

    A structure is removed with its last field, unless another manager owns a field in it or it
    holds fields that the manager did not apply.
    """
    owners, owner, last = owning
    if not field_sets.difference(last, owners[owner].fields):
        return merged
    owned: FieldSet = {}
    for entry in owners.values():
        owned = field_sets.union(owned, entry.fields)
    last = field_sets.named(shape, last)
    everything = field_sets.named(shape, field_sets.applied(shape, merged))
    left = _fields_of(shape, merge.remove(shape, merged, last))
    kept = field_sets.union(left, field_sets.named(shape, owned))
    left = _fields_of(shape, merge.remove(shape, merged, field_sets.difference(everything, kept)))
    gone = field_sets.intersection(field_sets.difference(everything, left), last)
    return as_dict(merge.remove(shape, merged, gone))


def _fields_of(shape: field_sets.Shape, value: object) -> FieldSet:
    return field_sets.named(shape, field_sets.applied(shape, as_dict(value)))


def _conflicts(owners: Owners, owner: Owner, changed: FieldSet) -> _Conflicts:
    """Return what would change of what others own."""
    found: _Conflicts = {}
    for other, entry in owners.items():
        if other != owner:
            both = field_sets.intersection(entry.fields, changed)
            if both:
                found[other] = both
    return found


def _allowed(shape: field_sets.Shape, live: Json) -> FieldSet:
    """Return the fields that kubectl's client-side apply set and that were not changed since.

    A server-side apply by kubectl may take these fields from their owners.
    """
    annotation = text(live, "metadata", "annotations", _LAST_APPLIED)
    try:
        before = msgspec.json.decode(annotation or "null")
    except msgspec.DecodeError:
        return {}
    if not is_dict(before):
        return {}
    fields = field_sets.applied(shape, as_dict(before))
    for part in field_sets.changes(shape, as_dict(before), live):
        fields = field_sets.difference(fields, part)
    return fields


def _refusal(conflicts: _Conflicts) -> StatusError:
    found = [
        (_called(owner), path)
        for owner, fields in sorted(conflicts.items(), key=lambda item: _sorting(item[0]))
        for path in field_sets.paths(fields)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, path in found
    ]
    if len(found) == 1:
        who, path = found[0]
        message = f"Apply failed with 1 conflict: conflict with {who}: {path}"
    else:
        lines: list[str] = []
        for who in dict.fromkeys(who for who, _ in found):
            lines.append(f"conflicts with {who}:")
            lines.extend(f"- {path}" for name, path in found if name == who)
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, details={"causes": causes})


def _sorting(owner: Owner) -> str:
    """Return the text that the server identifies an owner by, and sorts by."""
    named = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owner.api_version,
        "subresource": owner.subresource,
    }
    return msgspec.json.encode({key: value for key, value in named.items() if value}).decode()


def _called(owner: Owner) -> str:
    name = msgspec.json.encode(owner.manager).decode()
    if owner.subresource:
        name += f' with subresource "{owner.subresource}"'
    return f"{name} using {owner.api_version}" if owner.operation == UPDATE else name


def _finished(merged: Json, owners: Owners, by_kubectl: Json | None) -> Json:
    """Write the owners into an object of its own, and what kubectl's client side will look for."""
    result = dict(merged)
    metadata = result["metadata"] = dict(as_dict(merged.get("metadata")))
    managed_fields.set_entries(result, owners)
    annotations = as_dict(metadata.get("annotations"))
    if by_kubectl is not None and _LAST_APPLIED in annotations:
        metadata["annotations"] = annotations | {_LAST_APPLIED: _last_applied(by_kubectl)}
    return result


def _last_applied(applied: Json) -> str:
    config = dict(applied)
    metadata = dict(as_dict(config.get("metadata")))
    annotations = dict(as_dict(metadata.get("annotations")))
    annotations.pop(_LAST_APPLIED, None)
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    config["metadata"] = metadata
    return msgspec.json.encode(config, order="sorted").decode() + "\n"

"""The status of a definition: its accepted names, and whether its kinds are served.

In kube-apiserver controllers do this just after a write; here it is part of the write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at, text

__all__ = [
    "FINALIZER", "establish", "is_established", "is_terminating", "mark_deleting",
    "mark_terminating", "prepare_for_create", "prepare_for_update",
]  # fmt: skip

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its last object is deleted."""


def prepare_for_create(obj: Json) -> None:
    """Give a new definition the status it is created with: what it stores, and nothing accepted."""
    obj["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": _storing(obj)[:1],
    }


def prepare_for_update(new: Json, old: Json) -> None:
    """Give ``new`` the status of ``old``: it is not the client's. Note a new storage version."""
    status = dict(as_dict(old.get("status")))
    stored = list(as_list(status.get("storedVersions")))
    stored += [name for name in _storing(new)[:1] if name not in stored]
    new["status"] = {**status, "storedVersions": stored}


def _storing(obj: Json) -> list[str]:
    versions = (as_dict(one) for one in as_list(at(obj, "spec", "versions")))
    return [text(one, "name") for one in versions if one.get("storage") is True]


def is_established(obj: Json) -> bool:
    """Return whether a definition's kinds are served."""
    return _condition(obj, "Established").get("status") == "True"


def is_terminating(obj: Json) -> bool:
    """Return whether a definition is being deleted: its objects cannot be written any more."""
    return _condition(obj, "Terminating").get("status") == "True"


def _condition(obj: Json, kind: str) -> Json:
    conditions = (as_dict(one) for one in as_list(at(obj, "status", "conditions")))
    found = [one for one in conditions if one.get("type") == kind]
    return found[0] if found else {}


def _set_condition(
    obj: Json, kind: str, state: str, *, now: str, reason: str, message: str
) -> None:
    """Put a condition in its place; its time is that of the last change of its status."""
    status = obj["status"]
    conditions = as_list(status.get("conditions"))
    old = _condition(obj, kind)
    new = {
        "type": kind,
        "status": state,
        "lastTransitionTime": old.get("lastTransitionTime", now)
        if old.get("status") == state
        else now,
        "reason": reason,
        "message": message,
    }
    status["conditions"] = [new if one is old else one for one in conditions]
    if not old:
        status["conditions"].append(new)


def establish(obj: Json, others: Iterable[Json], now: str) -> None:
    """Accept the names of a definition as far as no other has them, and say if it is served.

    Args:
        obj: A valid definition, with the status that `prepare_for_create` or
            `prepare_for_update` gave it. Changed in place.
        others: The other definitions; those of other groups are passed over.
        now: The time as objects carry it, such as ``2026-01-31T12:00:00Z``.
    """
    accepted, reason, message = _accept(obj, others)
    obj["status"]["acceptedNames"] = accepted
    state = "False" if reason else "True"
    reason, message = reason or "NoConflicts", message or "no conflicts found"
    _set_condition(obj, "NamesAccepted", state, now=now, reason=reason, message=message)
    if is_established(obj):
        return  # an established definition keeps its names, even if the spec changes them
    if state == "True":
        reason, message = "InitialNamesAccepted", "the initial names have been accepted"
    else:
        reason, message = "NotAccepted", "not all names are accepted"
    _set_condition(obj, "Established", state, now=now, reason=reason, message=message)


def _accept(obj: Json, others: Iterable[Json]) -> tuple[Json, str, str]:
    """Return the accepted names, with the last conflict's reason and message."""
    resources, kinds = _taken(obj, others)
    wanted = as_dict(at(obj, "spec", "names"))
    accepted = dict(as_dict(at(obj, "status", "acceptedNames")))
    conflicts: list[tuple[str, str]] = []
    for name, taken, called in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        value = wanted.get(name)
        listed: list[str] = as_list(value) if name == "shortNames" else [value] if value else []
        clashes = [f'"{one}" is already in use' for one in listed if one in taken]
        if clashes:
            listing = clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]"
            conflicts.append((called, listing))
        else:
            _put(accepted, name, value)
    _put(accepted, "categories", wanted.get("categories"))
    reason, message = conflicts[-1] if conflicts else ("", "")
    return accepted, reason, message


def _put(names: Json, name: str, value: object) -> None:
    if value:
        names[name] = value
    else:
        names.pop(name, None)


def _taken(obj: Json, others: Iterable[Json]) -> tuple[set[str], set[str]]:
    """Return the names of resources and of kinds that others in the same group were given."""
    resources: set[str] = set()
    kinds: set[str] = set()
    group = at(obj, "spec", "group")
    name = at(obj, "metadata", "name")
    for other in others:
        if at(other, "spec", "group") != group or at(other, "metadata", "name") == name:
            continue
        given = as_dict(at(other, "status", "acceptedNames"))
        resources |= {text(given, "plural"), text(given, "singular")}
        resources.update(as_list(given.get("shortNames")))
        kinds |= {text(given, "kind"), text(given, "listKind")}
    return resources - {""}, kinds - {""}


# --- the end ----------------------------------------------------------------------------------


def mark_deleting(obj: Json, now: str) -> None:
    """Note that the definition is to be deleted: its finalizer, and that objects are to go.

    The first step of a deletion, in one write with the ``deletionTimestamp``. It is for a
    definition that is not marked yet; generation does not change.
    """
    meta = obj["metadata"]
    finalizers = as_list(meta.get("finalizers"))
    if FINALIZER not in finalizers:
        meta["finalizers"] = [*finalizers, FINALIZER]
    message = (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    )
    _terminating(obj, now, reason="InstanceDeletionPending", message=message)


def mark_terminating(obj: Json, now: str) -> None:
    """Note that the objects are being deleted: the second step, a write of the status."""
    message = "CustomResource deletion is in progress"
    _terminating(obj, now, reason="InstanceDeletionInProgress", message=message)


def _terminating(obj: Json, now: str, *, reason: str, message: str) -> None:
    _set_condition(obj, "Terminating", "True", now=now, reason=reason, message=message)

"""Object metadata: the fields that the server sets, and their order."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, as_dict

__all__ = [
    "content",
    "drop_empty",
    "has_changed",
    "has_generation",
    "inherit",
    "is_unchanged",
    "metadata_of",
    "names_match",
    "ordered",
    "wipe",
]

_ORDER: Final = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_INHERITED: Final = ("creationTimestamp", "generation")
_WIPED: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_GENERATION: Final = frozenset(
    """
    pods replicationcontrollers deployments.apps replicasets.apps statefulsets.apps
    daemonsets.apps jobs.batch cronjobs.batch ingresses.networking.k8s.io
    networkpolicies.networking.k8s.io poddisruptionbudgets.policy
    customresourcedefinitions.apiextensions.k8s.io flowschemas.flowcontrol.apiserver.k8s.io
    prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
    validatingwebhookconfigurations.admissionregistration.k8s.io
    mutatingwebhookconfigurations.admissionregistration.k8s.io
    validatingadmissionpolicies.admissionregistration.k8s.io
    validatingadmissionpolicybindings.admissionregistration.k8s.io
    mutatingadmissionpolicies.admissionregistration.k8s.io
    mutatingadmissionpolicybindings.admissionregistration.k8s.io
    podtemplates endpointslices.discovery.k8s.io ingressclasses.networking.k8s.io
    priorityclasses.scheduling.k8s.io deviceclasses.resource.k8s.io resourceslices.resource.k8s.io
    """.split()
)


def has_generation(kind: Kind) -> bool:
    """Return whether the server counts the changes of a kind's content."""
    return kind.custom is not None or kind.storage in _GENERATION


def has_changed(kind: Kind, new: Json, old: Json) -> bool:
    """Return whether an update changes what a kind's generation counts."""
    if kind.storage == "priorityclasses.scheduling.k8s.io":
        return False
    if kind.storage == "endpointslices.discovery.k8s.io" and (
        as_dict(new["metadata"].get("labels")) != as_dict(old["metadata"].get("labels"))
    ):
        return True
    return content(new) != content(old)


def metadata_of(obj: Json) -> Json:
    """Return the metadata of an object; one that has none gets some."""
    metadata = as_dict(obj.get("metadata"))
    obj["metadata"] = metadata
    return metadata


def ordered(metadata: Json) -> Json:
    """Return metadata in the server's order, without what is empty or unknown.

    The version stands before all that a client may write.
    """
    found: Json = {}
    for key in _ORDER:
        value = metadata.get(key)
        if value not in _EMPTY:
            found[key] = value
    return found


_EMPTY: Final[tuple[object, ...]] = (None, "", {}, [])


def content(obj: Json) -> Json:
    """Return an object without what is not its content: kind, version, metadata and status."""
    return {
        key: value
        for key, value in obj.items()
        if key not in {"kind", "apiVersion", "metadata", "status"}
    }


def is_unchanged(new: Json, old: Json) -> bool:
    """Return whether an update changes nothing that is stored."""
    if new.keys() != old.keys():
        return False
    for name, value in new.items():
        if name != "metadata" and value != old[name]:
            return False
    meta, was = new["metadata"], old["metadata"]
    if ordered(meta) != ordered(was):
        return False
    return {**meta, "managedFields": None} == {**was, "managedFields": None}


def wipe(metadata: Json) -> None:
    """Take away what only the server sets."""
    for key in _WIPED:
        metadata.pop(key, None)
    drop_empty(metadata)


def drop_empty(metadata: Json) -> None:
    """Remove empty maps and lists: they have no owner and are not stored.

    Only ``managedFields`` say something even then.
    """
    for key in tuple(metadata):
        if key != "managedFields" and metadata[key] in ({}, []):
            del metadata[key]


def inherit(new: Json, old: Json) -> None:
    """Take over from the old metadata what an update leaves out or cannot change.

    The rest that cannot be changed is for the validation to find.
    """
    for key in _INHERITED:
        if key in old:
            new[key] = old[key]
        else:
            new.pop(key, None)
    if "deletionTimestamp" in old:
        new["deletionTimestamp"] = old["deletionTimestamp"]
    for key in ("uid", "deletionGracePeriodSeconds"):
        if key in old and new.get(key) in (None, ""):
            new[key] = old[key]


def names_match(kind: Kind, obj: Json, *, namespace: str, name: str = "") -> None:
    """Check that an object is what the URL says, and fill in its namespace.

    Raises:
        StatusError: it is another one.
    """
    metadata: Json | None = obj.get("metadata")
    if not isinstance(metadata, dict):
        metadata = obj["metadata"] = {}
    if kind.namespaced:
        if metadata.get("namespace") not in {None, "", namespace}:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if not name:
        return
    given = metadata.get("name") or ""
    if not given:
        raise status.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if given != name:
        raise status.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )

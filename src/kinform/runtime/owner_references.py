"""Owner references, as the garbage collector and controllers read them.

controller-runtime: ``controllerutil.SetControllerReference`` and its siblings. An owner is known
by its uid: a new object of the old name is another owner. One thing to know of the server: with
``blockOwnerDeletion`` it may ask for the permission to change the owner's finalizers.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Final, TypeAlias, cast, final

from kinform.errors import UsageError
from kinform.runtime.map_functions import AnyObject, described, metadata_of, type_of

__all__ = [
    "AlreadyOwnedError",
    "is_controlled_by",
    "owner_reference",
    "remove_owner_reference",
    "set_controller_reference",
    "set_owner_reference",
]

Reference: TypeAlias = dict[str, object]

_NEEDED: Final = ("name", "namespace", "uid")


@final
class AlreadyOwnedError(UsageError):
    """Another controller owns the object already, and there can be only one.

    ``owner`` is its reference.
    """

    def __init__(self, what: str, owner: Mapping[str, object]) -> None:
        super().__init__(what, dict(owner))
        self.what = what
        self.owner: Mapping[str, object] = dict(owner)

    def __str__(self) -> str:
        kind, name, uid = (self.owner.get(key, "") for key in ("kind", "name", "uid"))
        return (
            f"{self.what} is controlled by {kind} {name!r} (uid {uid}) already; "
            "leave it alone, or use another name"
        )


def owner_reference(
    owner: AnyObject,
    *,
    controller: bool = True,
    block_deletion: bool = True,
    kind: str = "",
    api_version: str = "",
) -> Reference:
    """Return the entry for ``metadata.ownerReferences`` that makes ``owner`` the owner.

    ``owner`` is an `Object`, a dict, or a model that declares its metadata. Objects from kinform's
    lists, watches and informers know their kind, and so do generated models. Some do not: those
    read with ``metadata_only``, or from a list whose server does not say; and models of your own
    that declare no kind. For these, give ``kind`` and ``api_version``.

    Args:
        controller: whether ``owner`` controls it; an object has at most one controller.
        block_deletion: in a foreground deletion, the owner waits until this object is deleted.

    Raises:
        UsageError: ``owner`` does not know its kind, or never was on a server.
    """
    known_version, known_kind = type_of(owner)
    kind, api_version = kind or known_kind, api_version or known_version
    if not kind or not api_version:
        raise UsageError(
            f"{described(owner)} does not say its kind; "
            "give kind='Deployment', api_version='apps/v1'"
        )
    metadata = metadata_of(owner, *_NEEDED)
    if not metadata.uid or not metadata.name:
        raise UsageError(
            f"{described(owner)} has no uid: create it first, and own with what the server sent"
        )
    reference: Reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
    }
    flags = {"controller": controller, "blockOwnerDeletion": block_deletion}
    return reference | {flag: True for flag, is_set in flags.items() if is_set}


def set_controller_reference(
    body: MutableMapping[str, object],
    owner: AnyObject,
    *,
    block_deletion: bool = True,
    kind: str = "",
    api_version: str = "",
) -> None:
    """Make ``owner`` the controller of ``body``, in place: deleted with it, and mapped to it.

    Other owners stay. What ``owner`` was before is replaced.

    Raises:
        AlreadyOwnedError: another controller owns it. So does the predecessor of an owner that was
            created again: the objects it owned are about to be collected.
        UsageError: ``owner`` is in another namespace, or in one where ``body`` is in none; or it
            does not know its kind; or the existing owner references are malformed; or ``body`` is
            not a dict: ``apply`` takes any model, and an ``owner=`` for it.
    """
    reference = owner_reference(
        owner, block_deletion=block_deletion, kind=kind, api_version=api_version
    )
    _check_changeable(body)
    _check_namespace(body, owner)
    references, uid = _references(body), reference["uid"]
    for other in references:
        if other.get("controller") is True and other.get("uid") != uid:
            raise AlreadyOwnedError(_name(body), other)
    _put(body, [*_without(references, uid), reference])


def set_owner_reference(
    body: MutableMapping[str, object],
    owner: AnyObject,
    *,
    block_deletion: bool = False,
    kind: str = "",
    api_version: str = "",
) -> None:
    """Make ``owner`` one of the owners of ``body``, in place: it lives as long as one does.

    Raises:
        UsageError: as for `set_controller_reference`; another controller does not matter.
    """
    reference = owner_reference(
        owner,
        controller=False,
        block_deletion=block_deletion,
        kind=kind,
        api_version=api_version,
    )
    _check_changeable(body)
    _check_namespace(body, owner)
    references = _references(body)
    if not any(
        each.get("uid") == reference["uid"] for each in references
    ):  # its controller stays that
        _put(body, [*references, reference])


def remove_owner_reference(body: MutableMapping[str, object], owner: AnyObject) -> bool:
    """Remove ``owner`` from the owners of ``body``, in place; return whether it was one.

    Raises:
        UsageError: ``owner`` has no uid, or the existing owner references are malformed.
    """
    uid = metadata_of(owner, "uid").uid
    if not uid:
        raise UsageError(f"{described(owner)} has no uid: it owns nothing")
    _check_changeable(body)
    references = _references(body)
    left = _without(references, uid)
    if len(left) == len(references):
        return False
    _put(body, left)
    return True


def is_controlled_by(obj: AnyObject, owner: AnyObject) -> bool:
    """Return whether ``owner`` is the controller of ``obj``, by uid.

    Both are `Object`, dict, or a model that declares its metadata.

    Raises:
        UsageError: a model does not declare it.
    """
    controller = metadata_of(obj, "ownerReferences").controller
    uid = metadata_of(owner, "uid").uid
    return controller is not None and bool(uid) and controller.uid == uid


def _check_changeable(body: object) -> None:
    if not isinstance(body, dict | MutableMapping):
        raise UsageError(
            f"{type(body).__name__} cannot be changed in place; give a dict, or the model to "
            "apply(..., owner=...)"
        )


def _check_namespace(body: Mapping[str, object], owner: AnyObject) -> None:
    namespace = metadata_of(owner, *_NEEDED).namespace
    if not namespace:
        return  # owns in every namespace
    place = _metadata(body).get("namespace")
    if not place:
        raise UsageError(
            f"{described(owner)} is in a namespace and cannot own {_name(body)}, which is in none; "
            f"set metadata.namespace to {namespace!r}, unless its kind has none: then only "
            "an owner without a namespace will do"
        )
    if place != namespace:
        raise UsageError(
            f"{described(owner)} cannot own {_name(body)}: owner and owned must be in one namespace"
        )


def _name(body: Mapping[str, object]) -> str:
    metadata = _metadata(body)
    name = metadata.get("name") or metadata.get("generateName") or "without a name"
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{body.get('kind') or 'the object'} {place}{name}"


def _metadata(body: Mapping[str, object]) -> Mapping[str, object]:
    metadata = body.get("metadata")
    return cast("Mapping[str, object]", metadata) if isinstance(metadata, Mapping) else {}


def _references(body: Mapping[str, object]) -> list[Reference]:
    """Return copies of the references that are there.

    Raises:
        UsageError: there is something else in their place.
    """
    found = _metadata(body).get("ownerReferences")
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):  # pyright: ignore[reportUnknownVariableType]
        raise UsageError(f"metadata.ownerReferences of {_name(body)} is not a list of references")
    return [{**each} for each in cast("list[Mapping[str, object]]", found)]


def _without(references: list[Reference], uid: object) -> list[Reference]:
    return [each for each in references if each.get("uid") != uid]


def _put(body: MutableMapping[str, object], references: list[Reference]) -> None:
    """Write the references into ``body``. Its metadata is replaced: it may be shared."""
    metadata = {**_metadata(body)}
    metadata.pop("ownerReferences", None)
    body["metadata"] = metadata | ({"ownerReferences": references} if references else {})

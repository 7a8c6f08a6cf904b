"""Defaults: the values that the server fills in for fields that the client left out.

`default_owned` comes first: the writer owns these fields. Then follow `prepare_create` or
`prepare_update`, then `default`, then validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kinform.apiserver.defaults import core, others, pods, rbac, services, status_fields, workloads
from kinform.apiserver.endpoints.status import StatusError, bad_request
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.scheme.resource_quantities import QuantityError
from kinform.apiserver.serializer.json_values import Json

__all__ = ["default", "default_owned", "prepare_create", "prepare_update"]

_DEFAULTS: Final[Mapping[str, Callable[[Json], None]]] = {
    **core.DEFAULTS,
    **rbac.DEFAULTS,
    **others.DEFAULTS,
    **workloads.DEFAULTS,
}

_OWNED: Final[Mapping[str, Callable[[Json], None]]] = {
    "clusterroles.rbac.authorization.k8s.io": rbac.default_owned_role,
    "pods": pods.default_owned_pod,
    "roles.rbac.authorization.k8s.io": rbac.default_owned_role,
    "services": services.default_owned,
}
"""Kinds with defaults that the writer does not own."""
_PREPARE_CREATE: Final[Mapping[str, Callable[[Json], None]]] = {
    **core.PREPARE_CREATE,
    **rbac.PREPARE_CREATE,
    **others.PREPARE_CREATE,
    **workloads.PREPARE_CREATE,
}
_PREPARE_UPDATE: Final[Mapping[str, Callable[[Json, Json], None]]] = {
    **core.PREPARE_UPDATE,
    **rbac.PREPARE_UPDATE,
    **others.PREPARE_UPDATE,
    **workloads.PREPARE_UPDATE,
}


def default_owned(kind: Kind, obj: Json) -> None:
    """Fill in those defaults that the writer of the object owns, in place.

    Raises:
        StatusError: A quantity cannot be read.
    """
    fill = _OWNED.get(kind.storage) or _DEFAULTS.get(kind.storage)
    if fill is not None:
        try:
            fill(obj)
        except QuantityError as error:
            raise _unreadable(kind, error) from None
    if obj.get("status"):
        status_fields.complete(kind, obj)


def default(kind: Kind, obj: Json) -> None:
    """Fill in the defaults of a built-in kind, in place. Twice is the same as once.

    Quantities are rewritten as the server spells them.

    Raises:
        StatusError: A quantity cannot be read.
    """
    fill = _DEFAULTS.get(kind.storage)
    if fill is not None:
        try:
            fill(obj)
        except QuantityError as error:
            raise _unreadable(kind, error) from None


def prepare_create(kind: Kind, obj: Json) -> None:
    """Take what a client may not choose at creation out of an object, and put in what it gets.

    The object has its uid already: the labels of a Job name it. Runs before `default`.
    """
    prepare = _PREPARE_CREATE.get(kind.storage)
    if prepare is not None:
        prepare(obj)


def prepare_update(kind: Kind, new: Json, old: Json) -> None:
    """Carry over from ``old`` what an update may not change, such as its status.

    Raises:
        StatusError: A quantity cannot be read.
    """
    prepare = _PREPARE_UPDATE.get(kind.storage)
    if prepare is not None:
        try:
            prepare(new, old)
        except QuantityError as error:
            raise _unreadable(kind, error) from None


def _unreadable(kind: Kind, error: QuantityError) -> StatusError:
    what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    return bad_request(f"{what}: {error}")

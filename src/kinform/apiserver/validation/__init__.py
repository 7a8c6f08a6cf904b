"""Validation: the errors of a new object, and of an update.

The errors are those of kube-apiserver, in its order and in its words: metadata first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.validation import core, others, rbac, statuses
from kinform.apiserver.validation.metadata import (
    validate_metadata,
    validate_metadata_update,
    validate_metadata_update_again,
)
from kinform.apiserver.validation.pods import update
from kinform.apiserver.validation.workloads import controllers

__all__ = ["has_rules", "validate", "validate_update"]

_VALIDATE: Final[Mapping[str, Callable[[Json], list[FieldError]]]] = {
    **core.VALIDATE,
    **rbac.VALIDATE,
    **others.VALIDATE,
    **controllers.VALIDATE,
}
_VALIDATE_UPDATE: Final[Mapping[str, Callable[[Json, Json], list[FieldError]]]] = {
    **core.VALIDATE_UPDATE,
    **rbac.VALIDATE_UPDATE,
    **others.VALIDATE_UPDATE,
    **controllers.VALIDATE_UPDATE,
}
_PARTS: Final[Mapping[str, Mapping[str, Callable[[Json, Json], list[FieldError]]]]] = {
    "status": statuses.VALIDATE_STATUS,
    "ephemeralcontainers": {"pods": update.validate_ephemeral_update},
}


def has_rules(kind: Kind) -> bool:
    """Return whether a built-in kind is checked by rules of its own.

    Of the others the structure is checked, by their schema, and the metadata.
    """
    return kind.storage in _VALIDATE


def validate(kind: Kind, obj: Json) -> list[FieldError]:
    """Return the errors of a new object with its defaults filled in, metadata included."""
    errors = validate_metadata(kind, obj)
    check = _VALIDATE.get(kind.storage)
    if check is not None:
        errors += check(obj)
    return errors


def validate_update(kind: Kind, new: Json, old: Json, *, subresource: str = "") -> list[FieldError]:
    """Return the errors of a change from ``old`` to ``new``, metadata included.

    A function in a table ``VALIDATE_UPDATE`` does the whole of it for its kind, the rules that
    hold at creation included; kinds without one are checked as new objects are. Some
    subresources have rules of their own.
    """
    errors = validate_metadata_update(kind, new, old, subresource=subresource)
    check = _PARTS.get(subresource, {}).get(kind.storage) or _VALIDATE_UPDATE.get(kind.storage)
    if check is not None:
        errors += check(new, old)
    elif (whole := _VALIDATE.get(kind.storage)) is not None:
        errors += whole(new)
    return errors + validate_metadata_update_again(kind, new, old, subresource=subresource)

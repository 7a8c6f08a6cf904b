"""Objects of custom kinds, and the definitions of these kinds, on their way to the storage."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.cluster import Cluster
from kinform.apiserver.crd import (
    defaulting,
    definitions,
    establishing,
    kinds,
    pruning,
    validating,
)
from kinform.apiserver.field_errors import FieldError
from kinform.apiserver.json import Json
from kinform.apiserver.kind import CustomVersion, Kind
from kinform.apiserver.rendering import decode

__all__ = [
    "DEFINITIONS",
    "advice",
    "complete",
    "default_definition",
    "establish",
    "kinds_of",
    "mark_deleting",
    "mark_terminating",
    "prepare_definition",
    "validate",
    "validate_definition",
    "validate_definition_update",
    "validate_update",
]

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
kinds_of = kinds.kinds_of


def complete(kind: Kind, obj: Json) -> None:
    """Drop what the schema does not know and fill in its defaults, in place."""
    custom = _custom(kind)
    pruning.coerce(kind, custom.schema, obj)
    if not custom.preserves_unknown_fields:
        pruning.prune(custom.schema, obj)
    defaulting.default(custom.schema, obj)


def validate(kind: Kind, obj: Json) -> list[FieldError]:
    """Return what is wrong with a new custom object, its metadata aside."""
    custom = _custom(kind)
    return validating.validate(kind, custom.schema, obj)


def validate_update(kind: Kind, new: Json, old: Json) -> list[FieldError]:
    """Return what is wrong with a change of a custom object, its metadata aside."""
    custom = _custom(kind)
    return validating.validate_update(kind, custom.schema, new, old)


def _custom(kind: Kind) -> CustomVersion:
    assert kind.custom is not None
    return kind.custom


def advice(kind: Kind, obj: Json) -> list[str]:
    """Return what to warn the author of an object of: parts that this server cannot evaluate."""
    return definitions.warnings(obj) if kind.storage == DEFINITIONS else []


def prepare_definition(new: Json, old: Json | None) -> None:
    """Set the part of a definition's status that a write sets."""
    if old is None:
        establishing.prepare_for_create(new)
    else:
        establishing.prepare_for_update(new, old)


def establish(obj: Json, cluster: Cluster) -> None:
    """Give a CustomResourceDefinition the status that the server's controllers give it."""
    kind = cluster.kinds.versions(DEFINITIONS)[0]
    others = (
        decode(kind, stored.raw) for stored in cluster.storage.table(DEFINITIONS).now()
    )
    establishing.establish(obj, others, cluster.timestamp())


mark_deleting = establishing.mark_deleting
mark_terminating = establishing.mark_terminating
default_definition = definitions.default
validate_definition = definitions.validate
validate_definition_update = definitions.validate_update

"""Custom objects and their definitions: the steps between decoding and storage."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final, cast

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions import custom_kinds, definitions, establishing
from kinform.apiserver.apiextensions.schema import defaulting, object_validation, pruning
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = [
    "ADVISED",
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

_WRITTEN_OUT: Final = 1e21
"""From here on numbers are written with an exponent."""
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
ADVISED: Final = frozenset({DEFINITIONS, "secrets"})
"""The resources about whose objects `advice` has something to say."""
kinds_of: Final[Callable[[Json], list[Kind]]] = custom_kinds.kinds_of


def complete(kind: Kind, obj: Json) -> None:
    """Drop what the schema does not know and fill in its defaults, in place."""
    custom = _custom(kind)
    _make_whole(obj)
    pruning.coerce(kind, custom.schema, obj)
    if not custom.preserves_unknown_fields:
        pruning.prune(custom.schema, obj)
    defaulting.default(custom.schema, obj)


def _make_whole(value: JsonValue) -> None:
    """Make integers of floats with a whole value, in place: 2.0 is stored as 2."""
    if isinstance(value, dict):
        entries = as_dict(cast("object", value))
        for key, item in entries.items():
            if type(item) is float:
                entries[key] = _whole(item)
            elif isinstance(item, (dict, list)):
                _make_whole(cast("JsonValue", item))
    elif isinstance(value, list):
        items = as_list(cast("object", value))
        for index, item in enumerate(items):
            if type(item) is float:
                items[index] = _whole(item)
            elif isinstance(item, (dict, list)):
                _make_whole(cast("JsonValue", item))


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < _WRITTEN_OUT else number


def validate(kind: Kind, obj: Json) -> list[FieldError]:
    """Return the errors of a new custom object, its metadata aside."""
    custom = _custom(kind)
    return object_validation.validate(kind, custom.schema, obj)


def validate_update(kind: Kind, new: Json, old: Json) -> list[FieldError]:
    """Return the errors of a change of a custom object, its metadata aside."""
    custom = _custom(kind)
    return object_validation.validate_update(kind, custom.schema, new, old)


def _custom(kind: Kind) -> CustomVersion:
    assert kind.custom is not None
    return kind.custom


def advice(kind: Kind, obj: Json) -> list[str]:
    """Return what to warn the author of an object of: parts that are of no use as they are."""
    if kind.storage == DEFINITIONS:
        return definitions.warnings(obj)
    if kind.storage == "secrets" and obj.get("type") == "kubernetes.io/tls":
        return _certificate_advice(as_dict(obj.get("data")))
    return []


def _certificate_advice(data: Json) -> list[str]:
    for key, called in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            content = base64.b64decode(data.get(key) or "")
        except ValueError:
            continue
        if b"-----BEGIN" not in content:
            return [f"tls: failed to find any PEM data in {called} input"]
    return []


def prepare_definition(new: Json, old: Json | None) -> None:
    """Set the part of a definition's status that a write sets."""
    if old is None:
        establishing.prepare_for_create(new)
    else:
        establishing.prepare_for_update(new, old)


def establish(obj: Json, cluster: Cluster) -> None:
    """Give a CustomResourceDefinition the status that the server's controllers give it."""
    kind = cluster.kinds.versions(DEFINITIONS)[0]
    others = (decode(kind, stored.raw) for stored in cluster.storage.table(DEFINITIONS).now())
    establishing.establish(obj, others, cluster.timestamp())


mark_deleting: Final[Callable[[Json, str], None]] = establishing.mark_deleting
mark_terminating: Final[Callable[[Json, str], None]] = establishing.mark_terminating
default_definition: Final[Callable[[Json], None]] = definitions.default
validate_definition: Final[Callable[[Json], list[FieldError]]] = definitions.validate
validate_definition_update: Final[Callable[[Json, Json], list[FieldError]]] = (
    definitions.validate_update
)

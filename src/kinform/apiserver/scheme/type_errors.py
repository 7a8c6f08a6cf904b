"""Go's messages about values of a wrong type: names of types, structs and JSON values.

Type names come from the names of the definitions. What OpenAPI does not tell, named strings and
embedded structs, is in tables: those that real clients run into.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, cast

from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import as_dict, as_list

__all__ = [
    "embedded",
    "go_format",
    "go_type",
    "json_kind",
    "no_object",
    "reflect_kind",
    "struct_name",
]

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_REFERENCES: Final = frozenset(
    {
        "ConfigMapEnvSource", "ConfigMapKeySelector", "ConfigMapProjection",
        "ConfigMapVolumeSource", "SecretEnvSource", "SecretKeySelector", "SecretProjection",
    }
)  # fmt: skip
"""Structs with a LocalObjectReference in them, whose ``name`` it is."""
_OUTER: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "Volume": ("VolumeSource", frozenset({"name"})),
    "Probe": (
        "ProbeHandler",
        frozenset(
            {
                "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
                "failureThreshold", "terminationGracePeriodSeconds",
            }
        ),
    ),
    "PersistentVolumeSpec": (
        "PersistentVolumeSource",
        frozenset(
            {
                "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy",
                "storageClassName", "mountOptions", "volumeMode", "nodeAffinity",
                "volumeAttributesClassName",
            }
        ),
    ),
    "EphemeralContainer": ("EphemeralContainerCommon", frozenset({"targetContainerName"})),
    "IngressRule": ("IngressRuleValue", frozenset({"host"})),
}  # fmt: skip
"""Structs that embed another one, and the fields that are their own."""
_NAMED: Final[Mapping[str, str]] = {
    "Capabilities.add": "v1.Capability",
    "Capabilities.drop": "v1.Capability",
    "Container.imagePullPolicy": "v1.PullPolicy",
    "DeploymentStrategy.type": "v1.DeploymentStrategyType",
    "ObjectMeta.uid": "types.UID",
    "ObjectReference.uid": "types.UID",
    "OwnerReference.uid": "types.UID",
    "PersistentVolumeClaimSpec.accessModes": "v1.PersistentVolumeAccessMode",
    "PersistentVolumeSpec.accessModes": "v1.PersistentVolumeAccessMode",
    "PodSpec.preemptionPolicy": "v1.PreemptionPolicy",
    "ServiceSpec.ipFamilies": "v1.IPFamily",
    "ServiceSpec.sessionAffinity": "v1.ServiceAffinity",
    "ServiceSpec.type": "v1.ServiceType",
    "Taint.effect": "v1.TaintEffect",
    "Toleration.effect": "v1.TaintEffect",
    "Toleration.operator": "v1.TolerationOperator",
    "Condition.status": "v1.ConditionStatus",
}
_HEADER: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_SIMPLE: Final[Mapping[str, str]] = {"boolean": "bool", "number": "float64"}


def struct_name(schema: Schema) -> str:
    """Return what Go calls a struct: ``PodSpec``."""
    return schema.definition.rpartition(".")[2]


def embedded(struct: str, field: str) -> str:
    """Return the path to a field in a struct: with the struct between, if it is embedded.

    >>> embedded("Volume", "emptyDir"), embedded("Volume", "name")
    ('VolumeSource.emptyDir', 'name')
    """
    if struct in _OUTER and field not in _OUTER[struct][1]:
        return f"{_OUTER[struct][0]}.{field}"
    if field == "name" and struct in _REFERENCES:
        return f"LocalObjectReference.{field}"
    return field


def go_type(schema: Schema, struct: str = "", field: str = "") -> str:
    """Return the name of a Go type; of a named string only if its place is given."""
    if schema.is_int_or_string:
        return "int32"
    if schema.type == "array":
        return "[]" + (go_type(schema.items, struct, field) if schema.items else "interface {}")
    if schema.values is not None:
        if schema.values.definition == _QUANTITY:
            return "v1.ResourceList"
        return f"map[string]{go_type(schema.values)}"
    if schema.type == "string":
        return _string_type(schema, struct, field)
    if schema.type == "integer":
        return schema.format or "int64"
    if schema.type in _SIMPLE:
        return _SIMPLE[schema.type]
    return ".".join(schema.definition.split(".")[-2:]) or "interface {}"


def _string_type(schema: Schema, struct: str, field: str) -> str:
    if schema.format == "byte":
        return "[]uint8"
    if schema.format == "date-time":
        return "string"
    if named := _NAMED.get(f"{struct}.{field}"):
        return named
    if field and "enum" in schema.raw:
        return f"v1.{field[0].upper()}{field[1:]}".removesuffix("s")
    return "string"


def json_kind(value: object) -> str:
    """Return what Go calls a JSON value: string, number, bool, object or array."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def reflect_kind(value: object) -> str:
    """Return what Go calls the kind of a decoded value: ``int64``, ``slice``, ``map``."""
    if isinstance(value, float):
        return "float64"
    names = {"object": "map", "array": "slice", "number": "int64"}
    kind = json_kind(value)
    return names.get(kind, kind)


def no_object(value: object) -> str:
    """Return the refusal of a body without fields, whose kind is unknown."""
    before = "couldn't get version/kind; json parse error: json: cannot unmarshal "
    return f"{before}{json_kind(value)} into Go value of type {_HEADER}"


def go_format(value: object) -> str:
    """Return a decoded value as Go's ``%v`` prints it.

    >>> go_format({"b": [1, None], "a": {"x": True}})
    'map[a:map[x:true] b:[1 <nil>]]'
    """
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        entries = as_dict(cast("object", value))
        inside = " ".join(f"{key}:{go_format(entries[key])}" for key in sorted(entries))
        return f"map[{inside}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_format, as_list(cast('object', value))))}]"
    return str(value)


def _float(value: float) -> str:
    """Write a float in the fewest digits, from a million on with an exponent."""
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted()
    if -4 <= power < 6:
        return f"{exact:f}"
    digits = "".join(map(str, exact.as_tuple().digits))
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{'-' if value < 0 else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"

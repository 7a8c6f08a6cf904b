"""The models of the built-in API versions, one module each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from kinform.clientset.codegen.model import Model, ModelField, Module, TypeText, in_order
from kinform.clientset.codegen.schemas import Node, fields_of, reference
from tools.clientset.recorded import API

__all__ = ["model_modules", "place_of"]

APIMACHINERY = "io.k8s.apimachinery.pkg."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
SCALARS = {
    f"{APIMACHINERY}api.resource.Quantity": "Quantity",
    f"{APIMACHINERY}apis.meta.v1.FieldsV1": "JSON",
    f"{APIMACHINERY}apis.meta.v1.MicroTime": "Time",
    f"{APIMACHINERY}apis.meta.v1.Time": "Time",
    f"{APIMACHINERY}runtime.RawExtension": "JSON",
    f"{APIMACHINERY}util.intstr.IntOrString": "IntOrString",
    f"{EXTENSIONS}JSON": "JSON",
    f"{EXTENSIONS}JSONSchemaPropsOrArray": "JSONSchemaProps | Sequence[JSONSchemaProps]",
    f"{EXTENSIONS}JSONSchemaPropsOrBool": "JSONSchemaProps | bool",
    f"{EXTENSIONS}JSONSchemaPropsOrStringArray": "JSONSchemaProps | Sequence[str]",
}
"""Schemas that are no classes here."""
META = f"{APIMACHINERY}apis.meta.v1.ObjectMeta"
APPLY = """

if TYPE_CHECKING:
    from kinform.clientset import {name} as apply
else:
    apply = sys.modules[__name__]
\"""What to apply: every field of a model may be left out, so it is the models themselves.\"""
"""
METHODS = '''
    def __post_init__(self) -> None:
        """Keep the bytes of ``managedFields`` alone, not all those of the object."""
        raw = self.managed_fields
        if isinstance(raw, msgspec.Raw):
            own = raw.copy() if bytes(raw) else msgspec.UNSET
            msgspec.structs.force_setattr(self, "managed_fields", own)
'''
TEXTS = frozenset({"generateName", "name", "namespace", "resourceVersion", "uid"})
"""The metadata of which the API says that empty and absent are one."""


def place_of(schema: str) -> tuple[str, str]:
    """Return module and class of a schema."""
    *_, group, version, name = schema.split(".")
    return f"{group}_{version}", name


def model_modules(api: API) -> list[Module]:
    """Return every module of models."""
    modules: dict[str, list[Model]] = {}
    kinds = {served.schema: served.kind for served in api.resources}
    for schema in api.reachable():
        if schema in SCALARS:
            continue
        module, name = place_of(schema)
        node = api.schemas[schema]
        fields = list(_fields(schema, node, module))
        doc = str(node.get("description") or f"{name}.")
        methods = METHODS if schema == META else ""
        model = Model(name=name, fields=fields, doc=doc, kind=kinds.get(schema), methods=methods)
        modules.setdefault(module, []).append(model)
    return [_module(name, models, api) for name, models in sorted(modules.items())]


def _fields(schema: str, node: Node, module: str) -> Iterator[ModelField]:
    def inner(found: Node, _name: str) -> TypeText:
        target = reference(found)
        assert target is not None, f"an object without a name in {schema}"
        if target in SCALARS:
            return TypeText(SCALARS[target])
        home, name = place_of(target)
        return TypeText(name if home == module else f"clientset.{home}.{name}", is_struct=True)

    for field in fields_of(node, inner):
        if schema == META and field.wire in TEXTS:
            yield dataclasses.replace(field, type="str", default='""')
        elif schema == META and field.wire == "managedFields":
            reader = "kinform.clientset.ownership.managed_fields"
            doc = f"{field.doc}\n\nKept as JSON: `{reader}` reads it."
            kind = "msgspec.Raw | msgspec.UnsetType"
            yield dataclasses.replace(field, type=kind, default="msgspec.UNSET", doc=doc)
        else:
            yield field


def _module(name: str, models: list[Model], api: API) -> Module:
    group, _, version = name.rpartition("_")
    what = "what all objects share" if group == "meta" else f"the models of {group}/{version}"
    return Module(
        name=name,
        doc=f"Kubernetes {api.version}: {what}. Written by ``make clientset``.",
        models=in_order(models),
        exports=["apply"],
        extra=APPLY.format(name=name),
    )

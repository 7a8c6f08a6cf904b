"""A user's own kinds: from CustomResourceDefinitions to a module of models and clients."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, final

from kinform.clientset.codegen.checks import check_schema
from kinform.clientset.codegen.clients import ClientSpec, Property, client_class, group_class
from kinform.clientset.codegen.emit import HOMES, emit
from kinform.clientset.codegen.model import KindSpec, Model, Module, TypeText, in_order
from kinform.clientset.codegen.names import class_name, unique
from kinform.clientset.codegen.schemas import Node, fields_of, is_open, named_nodes
from kinform.errors import UsageError
from kinform.meta import GroupVersion, GroupVersionResource

__all__ = ["definitions_in", "module_text"]

_RESERVED: Final = frozenset(name for names in HOMES.values() for name in names) | {
    "False",
    "None",
    "True",
}
_NAME: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_GROUP: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_OBJECT: Final[Mapping[str, Node]] = {
    "apiVersion": {"type": "string", "description": "The group and version of the schema."},
    "kind": {"type": "string", "description": "The kind of the object."},
    "metadata": {"$ref": "ObjectMeta", "description": "What all objects have."},
}
_FREE: Final[Mapping[str, Node]] = {"spec": {}, "status": {}}
"""What nearly every object has, even where its schema says nothing."""
_OBJECT_META: Final = TypeText("clientset.meta_v1.ObjectMeta", is_struct=True)
_SCALE: Final = "clientset.autoscaling_v1.Scale"


def module_text(definitions: Sequence[Node], *, version: str | None = None) -> str:
    """Return the module for the kinds of these CustomResourceDefinitions.

    Args:
        definitions: as read from JSON or YAML.
        version: which version of each; by default the one that is stored.

    Raises:
        UsageError: one of them is no definition, has no such version or no schema, has a
            malformed one, or is there twice; says which.
    """
    book = _Book()
    found = sorted((_read(it, version) for it in definitions), key=lambda it: str(it.kind.gvr))
    for one, other in itertools.pairwise(found):
        if one.kind.gvr == other.kind.gvr:
            raise UsageError(f"{one.kind.gvr} is defined twice; give it once")
    # All kinds first: a model within another takes what is left.
    named = [(custom, book.take(class_name(custom.kind.kind))) for custom in found]
    clients: dict[GroupVersion, list[ClientSpec]] = {}
    for custom, name in named:
        clients.setdefault(custom.kind.gvr.group_version, []).append(book.add(custom, name))
    names = {version: book.take(_group_name(version)) for version in clients}
    every = [client for group in clients.values() for client in group]
    classes = [
        *map(client_class, every),
        *(group_class(names[it], str(it), group) for it, group in clients.items()),
    ]
    kinds = ", ".join(f"{custom.kind.kind} ({custom.kind.gvr})" for custom in found)
    module = Module(
        name="",
        doc=f"Models and clients of {kinds}. Written by ``kinform gen``.",
        models=in_order(book.models),
        extra="".join(f"\n\n{text}" for text in classes),
        exports=[*names.values(), *(client.name for client in every)],
    )
    return emit(module)


def _group_name(version: GroupVersion) -> str:
    return class_name(version.group.partition(".")[0], version.version)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Custom:
    """One version of one definition."""

    kind: KindSpec
    schema: Node
    parts: Sequence[str]


def _read(definition: Node, version: str | None) -> _Custom:
    name = _text(_dict(definition, "metadata"), "name") or "a definition without a name"
    if definition.get("kind") != "CustomResourceDefinition":
        raise UsageError(f"{name} is a {definition.get('kind')!r}, not a CustomResourceDefinition")
    if definition.get("apiVersion") != "apiextensions.k8s.io/v1":
        raise UsageError(f"{name} is not of apiextensions.k8s.io/v1; convert it first")
    spec = _dict(definition, "spec")
    names, group = _dict(spec, "names"), _text(spec, "group")
    kind, plural = _text(names, "kind"), _text(names, "plural")
    if not (group and kind and plural):
        raise UsageError(f"{name} does not say its group, its kind and its plural name")
    chosen = _version(spec, name, version)
    gvr = GroupVersionResource(group, _text(chosen, "name"), plural)
    _check_names(name, gvr, kind)
    return _Custom(
        kind=KindSpec(gvr=gvr, kind=kind, namespaced=_text(spec, "scope") == "Namespaced"),
        schema=_schema(chosen, name),
        parts=sorted({"scale", "status"} & _dict(chosen, "subresources").keys()),
    )


def _check_names(name: str, gvr: GroupVersionResource, kind: str) -> None:
    """Refuse names that no server would take: they become a part of the text."""
    names = (gvr.version, gvr.resource, kind)
    if not (_GROUP.fullmatch(gvr.group) and all(map(_NAME.fullmatch, names))):
        words = f"{name} has a name that is none: one of {gvr.group!r}"
        raise UsageError(f"{words}, {', '.join(map(repr, names))}")


def _schema(version: Node, name: str) -> Node:
    schema = _dict(version, "schema").get("openAPIV3Schema")
    if not schema:
        raise UsageError(f"{name} has no schema for its version {_text(version, 'name')}")
    check_schema(schema, f"{name}: openAPIV3Schema")
    return cast("Node", schema)


def _version(spec: Node, name: str, wanted: str | None) -> Node:
    versions = [cast("Node", it) for it in _list(spec, "versions") if isinstance(it, Mapping)]
    served = [it for it in versions if it.get("served") is not False and _text(it, "name")]
    if wanted is not None:
        found = [it for it in served if it.get("name") == wanted]
    else:
        found = [it for it in served if it.get("storage")] or served
    if not found:
        known = ", ".join(_text(it, "name") for it in served) or "none"
        raise UsageError(f"{name} does not serve version {wanted!r}; it serves {known}")
    return found[0]


@final
@dataclass(slots=True)
class _Book:
    """The models of a module, as they are found, and the names that are taken."""

    models: list[Model] = field(default_factory=list[Model])
    names: set[str] = field(default_factory=lambda: set(_RESERVED))

    def add(self, custom: _Custom, name: str) -> ClientSpec:
        """Write the models of a kind, the outermost as ``name``; return what its client is."""
        kind = custom.kind
        self._write(custom.schema, name, kind)
        parts = [
            Property(name=part, wire=part, model=name if part == "status" else _SCALE)
            for part in custom.parts
        ]
        return ClientSpec(name=self.take(f"{name}Client"), kind=kind, model=name, parts=parts)

    def take(self, name: str) -> str:
        """Return ``name``, or one like it that nobody has."""
        free = unique(name, self.names)
        self.names.add(free)
        return free

    def _write(self, node: Node, name: str, kind: KindSpec | None = None) -> None:
        def inner(found: Node, wire: str) -> TypeText:
            if found is _OBJECT["metadata"]:
                return _OBJECT_META
            part = self.take(class_name(name, wire))
            self._write(found, part)
            return TypeText(part, is_struct=True)

        always = set(cast("list[str]", _list(node, "required")))
        if kind is not None:
            always |= {"metadata", "spec", "status"}
            node = _with(node, free=is_open(node))
        elif node.get("x-kubernetes-embedded-resource"):
            always |= {"metadata"}
            node = _with(node)
        fields = list(fields_of(node, inner, always=always))
        doc = str(node.get("description") or "") or f"{name}."
        self.models.append(Model(name=name, fields=fields, doc=doc, kind=kind))


def _with(node: Node, *, free: bool = False) -> Node:
    """Return the schema of an object with the fields that need no mention in it."""
    return {**node, "properties": {**(_FREE if free else {}), **named_nodes(node), **_OBJECT}}


def _dict(node: Node, key: str) -> Node:
    value = node.get(key)
    return cast("Node", value) if isinstance(value, Mapping) else {}


def _list(node: Node, key: str) -> Sequence[object]:
    value = node.get(key)
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(node: Node, key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def definitions_in(documents: Sequence[object]) -> Iterator[Node]:
    """Yield the definitions among documents, those inside a ``List`` too."""
    for document in documents:
        if not isinstance(document, Mapping):
            continue
        node = cast("Node", document)
        if str(node.get("kind")).endswith("List") or "items" in node:
            yield from definitions_in(_list(node, "items"))
        elif node.get("kind") == "CustomResourceDefinition":
            yield node

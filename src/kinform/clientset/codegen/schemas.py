"""Reads OpenAPI schemas: which type a node is, which fields a model has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias, cast

from kinform.clientset.codegen.model import ModelField, TypeText
from kinform.clientset.codegen.names import attribute_name

__all__ = ["Node", "Nodes", "fields_of", "is_open", "named_nodes", "reference", "type_of"]

Node: TypeAlias = Mapping[str, object]
"""One schema."""
Nodes: TypeAlias = Callable[[Node, str], TypeText]
"""Tells the type of what this module does not know itself: references and inner objects."""

_PREFIX: Final = "#/components/schemas/"
_SCALARS: Final = {"boolean": "bool", "integer": "int", "number": "float", "string": "str"}
_FORMATS: Final = {"byte": "bytes", "int-or-string": "IntOrString", "date-time": "Time"}


def reference(node: Node) -> str | None:
    """Return the name of the schema that ``node`` refers to, directly or as ``allOf``."""
    single = cast("list[Node]", node.get("allOf") or [])
    target = node.get("$ref") or (single[0].get("$ref") if len(single) == 1 else None)
    return target.removeprefix(_PREFIX) if isinstance(target, str) else None


def named_nodes(node: Node) -> Mapping[str, Node]:
    """Return the properties of an object by their wire names."""
    return cast("Mapping[str, Node]", node.get("properties") or {})


def is_open(node: Node) -> bool:
    """Whether objects keep fields that the schema does not name: a class would lose them."""
    return bool(node.get("x-kubernetes-preserve-unknown-fields"))


def type_of(node: Node, name: str, inner: Nodes) -> TypeText:
    """Return the type of ``node``; ``inner`` is asked for references and objects with fields.

    An object that keeps unknown fields is a mapping, whether or not some of them are known.

    ``name`` is the wire name of the property it is, for classes that have no name of their own.
    """
    if node.get("x-kubernetes-int-or-string"):
        return TypeText("IntOrString")
    kind, form = node.get("type"), node.get("format")
    if reference(node) or (kind in {"object", None} and named_nodes(node) and not is_open(node)):
        return inner(node, name)
    if isinstance(form, str) and form in _FORMATS and kind in {"string", None}:
        return TypeText(_FORMATS[form])
    if kind == "array":
        return TypeText(f"Sequence[{_item(node.get('items'), name, inner)}]")
    if kind == "object":
        return TypeText(f"Mapping[str, {_item(node.get('additionalProperties'), name, inner)}]")
    return TypeText(_SCALARS.get(str(kind), "JSON"))


def _item(node: object, name: str, inner: Nodes) -> str:
    if not isinstance(node, Mapping):
        return "JSON"
    item = cast("Node", node)
    text = type_of(item, name, inner).text
    return f"{text} | None" if item.get("nullable") and text != "JSON" else text


def fields_of(node: Node, inner: Nodes, *, always: Collection[str] = ()) -> Iterator[ModelField]:
    """Yield the attributes of a model, by their wire names in order.

    A Struct that is always there has an empty one as default: where the API's own code holds a
    value (``default: {}``), and under the wire names in ``always``. Everything else may be None.
    """
    names: set[str] = set()
    for wire, prop in sorted(named_nodes(node).items()):
        name = attribute_name(wire, names)
        names.add(name)
        found = type_of(prop, wire, inner)
        present = found.is_struct and not prop.get("nullable")
        present = present and (prop.get("default") == {} or wire in always)
        yield ModelField(
            name=name,
            wire=wire,
            type=found.text if present or found.text == "JSON" else f"{found.text} | None",
            default=f"{found.text}()" if present else "None",
            doc=str(prop.get("description") or ""),
        )

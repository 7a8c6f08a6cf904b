"""Objects made from the server's own schemas: any value that a field may have."""

from __future__ import annotations

import base64
import functools
from typing import Any

from hypothesis import strategies as st

from kinform.clientset.codegen.schemas import Node, named_nodes, reference
from tools.clientset.modules import META, SCALARS, TEXTS
from tools.clientset.recorded import API, Served

DEPTH = 5
"""How far objects reach down: deeper ones only take longer."""

TEXT = st.text(max_size=8)
SHORT = st.text("abc", min_size=1, max_size=3)
INT = st.integers(-(2**31), 2**31 - 1) | st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | INT | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(SHORT, inner, max_size=2),
    max_leaves=4,
)
SOMETHING = JSON.filter(lambda value: value is not None)
BASE64 = st.binary(max_size=5).map(lambda value: base64.b64encode(value).decode())
TIME = st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000060Z"])
KNOWN = {
    "JSON": SOMETHING,
    "Time": TIME,
    "Quantity": st.sampled_from(["500m", "1Gi", "1e3", 2, 0.5, 0]),
    "IntOrString": st.sampled_from([80, "http", "25%", 0, ""]),
}


@functools.cache
def api() -> API:
    return API()


def objects(served: Served) -> st.SearchStrategy[dict[str, Any]]:
    return _object(served.schema, DEPTH)


@functools.cache
def _object(schema: str, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    fields = {
        wire: prop
        for wire, prop in named_nodes(api().schemas[schema]).items()
        if depth > 1 or not _is_deep(prop)
    }
    few = st.sets(st.sampled_from(sorted(fields)), max_size=4) if fields else st.just(set[str]())
    return few.flatmap(
        lambda wires: st.fixed_dictionaries(
            {wire: _field(schema, wire, fields[wire], depth - 1) for wire in sorted(wires)}
        )
    )


def _is_deep(node: Node) -> bool:
    return node.get("type") not in {"string", "integer", "boolean", "number"}


def _field(schema: str, wire: str, node: Node, depth: int) -> st.SearchStrategy[Any]:
    if schema == META and wire in TEXTS:
        return st.text(min_size=1, max_size=8)  # empty and absent are one
    return _value(node, depth)


def _value(node: Any, depth: int) -> st.SearchStrategy[Any]:
    if target := reference(node):
        return _referred(target, depth)
    match node.get("type"), node.get("format"):
        case "string", "byte":
            return BASE64
        case "string", _:
            return TEXT
        case "integer", _:
            return INT
        case "number", _:
            return FLOAT
        case "boolean", _:
            return st.booleans()
        case "array", _:
            return st.lists(_value(node["items"], depth), max_size=2)
        case "object", _ if "additionalProperties" in node:
            return st.dictionaries(TEXT, _value(node["additionalProperties"], depth), max_size=2)
    raise AssertionError(f"no values for {node}")


def _referred(target: str, depth: int) -> st.SearchStrategy[Any]:
    if target not in SCALARS:
        return _object(target, depth)
    kind = SCALARS[target]
    if kind in KNOWN:
        return KNOWN[kind]
    props = _object(f"{target.rpartition('.')[0]}.JSONSchemaProps", depth)
    if kind.endswith("bool"):
        return props | st.booleans()
    inner = TEXT if kind.endswith("[str]") else props
    return props | st.lists(inner, max_size=2)


def whole(served: Served) -> Any:
    """Return an object in which every field of the schema is set, each list with one item."""
    return _whole({"$ref": served.schema}, ())


def _whole(node: Any, above: tuple[str, ...]) -> Any:
    target = reference(node)
    if target is None:
        return _whole_plain(node, above)
    if target in SCALARS:
        return {"Time": "2026-01-02T03:04:05.000060Z", "Quantity": "1Gi", "IntOrString": 80}.get(
            SCALARS[target], {}
        )
    if target in above:
        return {}
    props = named_nodes(api().schemas[target])
    return {wire: _whole(prop, (*above, target)) for wire, prop in props.items()}


def _whole_plain(node: Any, above: tuple[str, ...]) -> Any:
    match node.get("type"), node.get("format"):
        case "string", "byte":
            return "aGk="
        case "array", _:
            return [_whole(node["items"], above)]
        case "object", _:
            return {"k": _whole(node["additionalProperties"], above)}
        case kind, _:
            return {"string": "s", "integer": 0, "number": 0.5, "boolean": False}[kind]

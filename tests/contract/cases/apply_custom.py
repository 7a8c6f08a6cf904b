"""Server-side apply of custom objects: their schemas say how lists are merged."""

from __future__ import annotations

from typing import Any

from tests.contract.case import case
from tests.contract.cases.kinds_bodies import Body, custom, only, whole
from tests.contract.exchange import Answer
from tests.contract.session import Session

ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
}
KEYED = {
    "type": "array",
    "items": ITEM,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
TEXTS = {"type": "array", "items": {"type": "string"}}
SPEC = {
    "keyed": KEYED,
    "atomic": {"type": "array", "items": ITEM},
    "set": {**TEXTS, "x-kubernetes-list-type": "set"},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "whole": {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
SCHEMA: Body = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}
SHOWN = only("metadata", "spec")


def version(schema: Body) -> Body:
    """Return version v1 with a schema."""
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


async def apply(s: Session, group: str, spec: dict[str, Any], manager: str = "one") -> Answer:
    """Apply a widget."""
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets/a"
    body = custom(group, spec=spec)
    return await s.patch(path, body, kind="apply", fieldManager=manager, view=SHOWN)


@case("apply", "a custom list with keys is merged by them")
async def custom_keyed(s: Session) -> None:
    group = await s.crd(versions=[version(SCHEMA)])
    await apply(s, group, {"keyed": [{"name": "a", "size": 1}]})
    await apply(s, group, {"keyed": [{"name": "b", "size": 2}]}, "two")
    await apply(s, group, {"keyed": [{"name": "a", "size": 3}]}, "two")
    await apply(s, group, {"keyed": []})
    await apply(s, group, {"keyed": [{"size": 1}]})


@case("apply", "a custom list without a type is replaced as a whole")
async def custom_atomic(s: Session) -> None:
    group = await s.crd(versions=[version(SCHEMA)])
    await apply(s, group, {"atomic": [{"name": "a", "size": 1}]})
    await apply(s, group, {"atomic": [{"name": "b", "size": 2}]}, "two")
    await apply(s, group, {"atomic": [{"name": "b"}]})


@case("apply", "a custom set is shared by its items")
async def custom_set(s: Session) -> None:
    group = await s.crd(versions=[version(SCHEMA)])
    await apply(s, group, {"set": ["a", "b"]})
    await apply(s, group, {"set": ["b", "c"]}, "two")
    await apply(s, group, {"set": ["a"]})
    await apply(s, group, {"set": ["d", "d"]})


@case("apply", "custom maps are merged by key, or atomic")
async def custom_maps(s: Session) -> None:
    group = await s.crd(versions=[version(SCHEMA)])
    await apply(s, group, {"map": {"a": "1"}, "whole": {"a": "1"}, "free": {"x": [1, {"y": 2}]}})
    await apply(s, group, {"map": {"b": "2"}}, "two")
    await apply(s, group, {"whole": {"b": "2"}}, "two")
    await apply(s, group, {"free": {"x": [2]}}, "two")


@case("apply", "a field that a custom schema does not know is refused")
async def custom_unknown(s: Session) -> None:
    group = await s.crd(versions=[version(SCHEMA)])
    await apply(s, group, {"colour": "red"})
    await apply(s, group, {"map": {"a": 1}})


@case("apply", "custom objects without a structure are merged field by field")
async def custom_free(s: Session) -> None:
    group = await s.crd()
    await apply(s, group, {"a": {"b": 1, "c": [1, 2]}})
    await apply(s, group, {"a": {"d": 1}}, "two")
    await apply(s, group, {"a": {"c": [3]}}, "two")


@case("apply", "the status of a custom object has owners of its own")
async def custom_status(s: Session) -> None:
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {**SCHEMA["properties"], "status": status}}
    group = await s.crd(versions=[version(schema)])
    await apply(s, group, {"map": {"a": "1"}})
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets/a/status"
    body = custom(group, status={"phase": "Good"}, spec={"map": {"a": "2"}})
    await s.patch(path, body, kind="apply", fieldManager="one", view=whole)

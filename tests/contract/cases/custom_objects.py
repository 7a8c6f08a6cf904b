"""Custom objects: their schema defaults, prunes and judges them."""

from __future__ import annotations

from typing import Any

from tests.contract.case import case, each
from tests.contract.cases.kinds_bodies import Body, custom, only, quoted
from tests.contract.session import Session

ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 1}},
}
FIELDS: Body = {
    "text": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    "colour": {"type": "string", "enum": ["red", "green"]},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "small": {"type": "integer", "format": "int32"},
    "open": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    "half": {"type": "number", "multipleOf": 0.5},
    "flag": {"type": "boolean"},
    "list": {
        "type": "array",
        "items": {"type": "string", "maxLength": 3},
        "minItems": 1,
        "maxItems": 2,
    },
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "keyed": {
        "type": "array",
        "items": ITEM,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "map": {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "minProperties": 1,
        "maxProperties": 2,
    },
    "nested": {
        "type": "object",
        "required": ["must"],
        "properties": {"must": {"type": "string"}, "more": {"type": "string"}},
    },
    "time": {"type": "string", "format": "date-time"},
    "ip": {"type": "string", "format": "ipv4"},
    "mail": {"type": "string", "format": "email"},
    "binary": {"type": "string", "format": "byte"},
    "maybe": {"type": "string", "nullable": True},
    "port": {"x-kubernetes-int-or-string": True},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "inner": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "either": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "not": {"type": "string", "not": {"enum": ["never"]}},
}
DEFAULTS: Body = {
    "level": {"type": "integer", "default": 5},
    "deep": {
        "type": "object",
        "default": {},
        "properties": {"a": {"type": "string", "default": "x"}},
    },
    "absent": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}},
}
SPEC = {"type": "object", "properties": {**FIELDS, **DEFAULTS}}
SHOWN = only("spec", "status", "metadata")


def version(spec: Body, name: str = "v1", **more: Any) -> Body:
    """Return a version whose spec has this schema."""
    status = {"type": "object", "properties": {"phase": {"type": "string", "maxLength": 8}}}
    whole = {"type": "object", "properties": {"spec": spec, "status": status}}
    base = {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    return {**base, **more}


@each(
    "custom",
    "what a schema says of a spec",
    {
        "defaults": {"spec": {}},
        "no_spec": {"spec": None},
        "defaults_deep": {"spec": {"absent": {}, "keyed": [{"name": "a"}], "deep": {"a": "y"}}},
        "default_for_null": {"spec": {"level": None, "deep": None, "maybe": None}},
        "null_not_allowed": {"spec": {"text": None, "nested": None}},
        "pruned": {"spec": {"other": 1, "nested": {"must": "x", "other": 2}}},
        "free": {"spec": {"free": {"a": [1, {"b": None}], "c": 1.5}}},
        "wrong_type": {"spec": {"text": 5, "size": "x", "flag": "true", "list": {}, "map": []}},
        "fraction": {"spec": {"size": 1.5}},
        "whole_number": {"spec": {"size": 2.0}},
        "too_short": {"spec": {"text": "a"}},
        "too_long": {"spec": {"text": "abcdef"}},
        "pattern": {"spec": {"text": "ABC"}},
        "enum": {"spec": {"colour": "blue"}},
        "minimum": {"spec": {"size": 0}},
        "maximum": {"spec": {"size": 10}},
        "int32": {"spec": {"small": 3_000_000_000}},
        "exclusive": {"spec": {"open": 0}},
        "multiple": {"spec": {"half": 0.7}},
        "no_items": {"spec": {"list": []}},
        "many_items": {"spec": {"list": ["a", "b", "c"]}},
        "bad_item": {"spec": {"list": ["abcd", 5]}},
        "set_twice": {"spec": {"set": ["a", "b", "a"]}},
        "keyed_twice": {"spec": {"keyed": [{"name": "a"}, {"name": "a", "size": 2}]}},
        "keyed_no_key": {"spec": {"keyed": [{"size": 2}]}},
        "map_value": {"spec": {"map": {"a": "x"}}},
        "map_empty": {"spec": {"map": {}}},
        "map_many": {"spec": {"map": {"a": 1, "b": 2, "c": 3}}},
        "required": {"spec": {"nested": {"more": "x"}}},
        "time": {"spec": {"time": "yesterday"}},
        "ip": {"spec": {"ip": "1.2.3"}},
        "mail": {"spec": {"mail": "nobody"}},
        "binary": {"spec": {"binary": "%%"}},
        "nullable": {"spec": {"maybe": None, "text": "abc"}},
        "int_or_string": {"spec": {"port": "http"}},
        "int_or_string_boolean": {"spec": {"port": True}},
        "embedded": {"spec": {"inner": {"apiVersion": "v1", "kind": "Pod", "x": 1}}},
        "embedded_no_kind": {"spec": {"inner": {"x": 1}}},
        "embedded_metadata": {
            "spec": {
                "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A_", "x": 1}}
            }
        },
        "one_of_none": {"spec": {"either": {}}},
        "one_of_two": {"spec": {"either": {"a": "x", "b": "x"}}},
        "not": {"spec": {"not": "never"}},
        "several": {"spec": {"size": 0, "colour": "blue", "text": "A"}},
        "spec_text": {"spec": "x"},
    },
)
async def judged(s: Session, *, spec: object) -> None:
    group = await s.crd(versions=[version(SPEC)])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    body = custom(group) if spec is None else custom(group, spec=spec)
    await s.post(path, body, view=unordered)


def unordered(body: Any) -> object:
    """Show several complaints in an order of their own: the server has none."""
    causes = (body.get("details") or {}).get("causes") or ()
    if body.get("kind") != "Status" or len(causes) < 2:
        return SHOWN(body)
    causes = sorted(causes, key=lambda each: [each["field"], each["message"]])
    return {**body, "message": "", "details": {**body["details"], "causes": causes}}


@each(
    "custom",
    "an object that is none of the resource",
    {
        "no_kind": {"change": {"kind": None}},
        "no_version": {"change": {"apiVersion": None}},
        "other_kind": {"change": {"kind": "Gadget"}},
        "other_version": {"change": {"apiVersion": "example.com/v1"}},
        "no_name": {"change": {"metadata": {}}},
        "bad_name": {"change": {"metadata": {"name": "A_b"}}},
        "bad_label": {"change": {"metadata": {"name": "a", "labels": {"a b": "c"}}}},
        "label_number": {"change": {"metadata": {"name": "a", "labels": {"a": 5}}}},
        "metadata_unknown": {"change": {"metadata": {"name": "a", "colour": "red"}}},
        "metadata_text": {"change": {"metadata": "x"}},
        "generate_name": {"change": {"metadata": {"generateName": "a-"}}},
    },
)
async def not_one(s: Session, *, change: Body) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    body = {key: each for key, each in {**custom(group), **change}.items() if each is not None}
    await s.post(path, body)


@each(
    "custom",
    "unknown fields of a custom object",
    {
        "strict": {"mode": "Strict"},
        "warn": {"mode": "Warn"},
        "ignore": {"mode": "Ignore"},
        "default": {"mode": None},
    },
)
async def unknown(s: Session, *, mode: str | None) -> None:
    group = await s.crd(versions=[version(SPEC)])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    body = custom(group, spec={"other": 1, "keyed": [{"name": "a", "x": 1}]}, top=1)
    await s.post(path, body, fieldValidation=mode, view=SHOWN)
    await s.make(path, custom(group, "b"))
    patch = {"spec": {"other": 1}}
    await s.patch(f"{path}/b", patch, fieldValidation=mode, view=quoted(SHOWN))


@case("custom", "the generation without a status subresource counts all but metadata")
async def generation(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.post(path, custom(group, spec={"a": 1}), view=SHOWN)
    await s.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}}, view=SHOWN)
    await s.patch(f"{path}/a", {"spec": {"a": 2}}, view=SHOWN)
    await s.patch(f"{path}/a", {"status": {"b": 2}}, view=SHOWN)


@case("custom", "with a status subresource each is written through its own path")
async def status(s: Session) -> None:
    group = await s.crd(versions=[version(SPEC, subresources={"status": {}})])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.post(path, custom(group, spec={"size": 1}, status={"phase": "x"}), view=SHOWN)
    both = {"spec": {"size": 2}, "status": {"phase": "y"}}
    await s.patch(f"{path}/a", both, view=SHOWN)
    await s.patch(f"{path}/a/status", {**both, "spec": {"size": 3}}, view=SHOWN)
    await s.patch(f"{path}/a/status", {"status": {"phase": "too long a phase"}})
    await s.patch(f"{path}/a/status", {"metadata": {"labels": {"x": "y"}}}, view=SHOWN)


@case("custom", "an update needs the version of what it changes")
async def update(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    made = await s.make(path, custom(group, spec={"a": 1}))
    await s.put(f"{path}/a", custom(group, spec={"a": 2}))
    version = {"resourceVersion": made["metadata"]["resourceVersion"]}
    await s.put(f"{path}/a", custom(group, spec={"a": 2}, metadata=version), view=SHOWN)
    await s.put(f"{path}/a", custom(group, spec={"a": 3}, metadata=version))
    await s.put(f"{path}/b", custom(group, "b"))


@case("custom", "an object of one version is read and written as another")
async def versions(s: Session) -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    two = version(free, "v2", storage=False)
    group = await s.crd(versions=[version(free), two])
    await s.make(f"/apis/{group}/v1/namespaces/{{ns}}/widgets", custom(group, spec={"a": 1}))
    path = f"/apis/{group}/v2/namespaces/{{ns}}/widgets"
    await s.get(f"{path}/a", view=only("apiVersion", "spec", "metadata"))
    await s.patch(f"{path}/a", {"spec": {"b": 2}}, view=only("apiVersion", "spec", "metadata"))
    await s.post(path, custom(group, "b"))


@case("custom", "a deprecated version says so in a warning")
async def deprecated(s: Session) -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own = version(free, "v2", storage=False, deprecated=True, deprecationWarning="take v1")
    two = version(free, "v3", storage=False, deprecated=True)
    group = await s.crd(versions=[version(free), own, two])
    for name in ("v1", "v2", "v3"):
        await s.get(f"/apis/{group}/{name}/namespaces/{{ns}}/widgets", view=only("kind"))


@case("custom", "fields that a definition makes selectable")
async def selectable(s: Session) -> None:
    fields = [{"jsonPath": ".spec.colour"}, {"jsonPath": ".spec.size"}]
    group = await s.crd(versions=[version(SPEC, selectableFields=fields)])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.make(path, custom(group, spec={"colour": "red", "size": 2}))
    await s.make(path, custom(group, "b", spec={"colour": "green"}))
    await s.make(path, custom(group, "c"))
    for selector in (
        "spec.colour=red",
        "spec.colour!=red",
        "spec.colour=",
        "spec.size=2",
        "spec.flag=true",
        "metadata.name=b",
    ):
        view = only("kind", "items") if "flag" in selector else _names
        await s.get(path, fieldSelector=selector, view=view)


def _names(body: Any) -> object:
    """Reduce a list to the names of its items."""
    if not isinstance(body, dict) or "items" not in body:
        return body
    return [each["metadata"]["name"] for each in body["items"]]


@case("custom", "a rule of a schema is evaluated")
async def rules(s: Session) -> None:
    spec = {
        "type": "object",
        "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "self.low <= self.high", "message": "low must not exceed high"}
        ],
    }
    group = await s.crd(versions=[version(spec)])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.post(path, custom(group, spec={"low": 1, "high": 2}), view=only("spec"))
    await s.post(path, custom(group, "b", spec={"low": 3, "high": 2}))


@case("custom", "cluster-scoped custom objects have no namespace")
async def cluster_scoped(s: Session) -> None:
    group = await s.crd(scope="Cluster")
    path = f"/apis/{group}/v1/widgets"
    await s.post(path, custom(group))
    await s.get(f"/apis/{group}/v1/namespaces/{{ns}}/widgets")
    await s.post(path, custom(group, "b", metadata={"namespace": s.ns}))


@case("custom", "printer columns make a Table")
async def columns(s: Session) -> None:
    printed = [
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "how big"},
        {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag", "priority": 1},
        {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
        {"name": "Time", "type": "date", "jsonPath": ".spec.time"},
        {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
    ]
    group = await s.crd(versions=[version(SPEC, additionalPrinterColumns=printed)])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    full = {
        "colour": "red",
        "size": 3,
        "flag": True,
        "list": ["a", "b"],
        "time": "2020-01-01T00:00:00Z",
        "map": {"a": 1},
    }
    await s.make(path, custom(group, spec=full))
    await s.make(path, custom(group, "b"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    await s.get(path, headers={"Accept": accept})
    await s.get(f"{path}/a", headers={"Accept": accept}, includeObject="None")

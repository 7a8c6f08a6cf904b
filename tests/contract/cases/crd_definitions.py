"""Definitions of custom resources: what they become, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from tests.contract.case import case, each
from tests.contract.cases.kinds_bodies import DEFINITIONS, Body, custom, definition, only, seen
from tests.contract.exchange import Answer
from tests.contract.session import Session

FREE: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(schema: Body | None = None, name: str = "v1", **more: Any) -> Body:
    """Return a version; ``schema`` is that of the spec."""
    whole = FREE if schema is None else {"type": "object", "properties": {"spec": schema}}
    base = {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    return {**base, **more}


def settled(body: Any) -> object:
    """Show conditions in the order of their types."""
    status = body["status"]
    conditions = sorted(status.get("conditions") or (), key=lambda each: str(each["type"]))
    return {**body, "status": {**status, "conditions": conditions}, "metadata": {}}


def established(answer: Answer) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@case("crd", "a definition with its defaults, as it is created and once it is established")
async def created(s: Session) -> None:
    group = f"{s.ident}.example.com"
    body = definition(group, version())
    body["spec"]["names"] = {"plural": "widgets", "kind": "Widget"}
    await s.post(DEFINITIONS, body, view=only("spec", "metadata"))
    await s.eventually(f"{DEFINITIONS}/widgets.{group}", established, view=seen(settled))


@case("crd", "a rich definition")
async def rich(s: Session) -> None:
    group = f"{s.ident}.example.com"
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    schema = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "colour": {"type": "string", "enum": ["red", "green"], "nullable": True},
            "port": {"x-kubernetes-int-or-string": True},
        },
    }
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.size"}}
    subresources["scale"]["statusReplicasPath"] = ".status.size"
    one = version(schema, additionalPrinterColumns=columns, subresources=subresources)
    two = version(name="v2", storage=False, deprecated=True, deprecationWarning="use v1")
    names = {
        "plural": "widgets",
        "kind": "Widget",
        "shortNames": ["wd"],
        "categories": ["all"],
        "listKind": "Widgets",
    }
    body = definition(group, one, two, names=names, scope="Cluster")
    await s.post(DEFINITIONS, body, view=only("spec"))
    await s.eventually(f"{DEFINITIONS}/widgets.{group}", established, view=seen(settled))


@each(
    "crd",
    "a definition that is wrong",
    {
        "no_spec": {"spec": None},
        "no_versions": {"spec": {"versions": []}},
        "no_names": {"spec": {"names": {}}},
        "no_scope": {"spec": {"scope": ""}},
        "scope": {"spec": {"scope": "Everywhere"}},
        "no_schema": {"spec": {"versions": [{"name": "v1", "served": True, "storage": True}]}},
        "no_storage": {"spec": {"versions": [version(storage=False)]}},
        "two_storages": {"spec": {"versions": [version(), version(name="v2")]}},
        "same_version": {"spec": {"versions": [version(), version(storage=False)]}},
        "version_name": {"spec": {"versions": [version(name="V_1")]}},
        "kind": {"spec": {"names": {"plural": "widgets", "kind": "a b"}}},
        "plural": {"spec": {"names": {"plural": "Widgets", "kind": "Widget"}}},
        "short_name": {
            "spec": {"names": {"plural": "widgets", "kind": "Widget", "shortNames": ["W_"]}}
        },
        "list_kind": {
            "spec": {"names": {"plural": "widgets", "kind": "Widget", "listKind": "Widget"}}
        },
        "preserve": {"spec": {"preserveUnknownFields": True}},
        "conversion": {"spec": {"conversion": {"strategy": "Magic"}}},
        "conversion_webhook": {"spec": {"conversion": {"strategy": "Webhook"}}},
        "column_path": {
            "spec": {
                "versions": [
                    version(
                        additionalPrinterColumns=[
                            {"name": "A", "type": "string", "jsonPath": "spec.a"}
                        ]
                    )
                ]
            }
        },
        "column_type": {
            "spec": {
                "versions": [
                    version(
                        additionalPrinterColumns=[
                            {"name": "A", "type": "colour", "jsonPath": ".spec.a"}
                        ]
                    )
                ]
            }
        },
        "scale_path": {
            "spec": {
                "versions": [
                    version(
                        subresources={
                            "scale": {"specReplicasPath": ".size", "statusReplicasPath": "x"}
                        }
                    )
                ]
            }
        },
        "selectable": {
            "spec": {"versions": [version(selectableFields=[{"jsonPath": ".spec.colour"}])]}
        },
    },
)
async def wrong(s: Session, *, spec: Body | None) -> None:
    body = definition(f"{s.ident}.example.com", version())
    body["spec"] = None if spec is None else {**body["spec"], **spec}
    await s.post(DEFINITIONS, body)


@each(
    "crd",
    "a schema that is wrong",
    {
        "unknown_type": {"schema": {"type": "colour"}},
        "no_type": {"schema": {"properties": {"a": {"type": "string"}}}},
        "property_no_type": {"schema": {"type": "object", "properties": {"a": {}}}},
        "items_missing": {"schema": {"type": "array"}},
        "items_no_type": {"schema": {"type": "array", "items": {}}},
        "properties_and_additional": {
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"},
            }
        },
        "additional_false": {"schema": {"type": "object", "additionalProperties": False}},
        "default_wrong": {"schema": {"type": "integer", "default": "x"}},
        "default_not_pruned": {"schema": {"type": "object", "default": {"a": 1}}},
        "default_null": {
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string", "default": None}},
            }
        },
        "pattern": {"schema": {"type": "string", "pattern": "["}},
        "reference": {"schema": {"$ref": "#/definitions/x"}},
        "unique_items": {
            "schema": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        },
        "map_no_keys": {
            "schema": {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
            }
        },
        "map_optional_key": {
            "schema": {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            }
        },
        "map_unknown_key": {
            "schema": {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["b"],
            }
        },
        "set_of_objects": {
            "schema": {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "set",
            }
        },
        "list_type": {
            "schema": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "bag",
            }
        },
        "int_or_string_type": {
            "schema": {"type": "string", "x-kubernetes-int-or-string": True},
        },
        "preserve_false": {
            "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": False}
        },
        "embedded": {
            "schema": {"type": "object", "x-kubernetes-embedded-resource": True},
        },
        "structure_in_any_of": {
            "schema": {"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]}
        },
        "nullable_in_any_of": {
            "schema": {"type": "object", "anyOf": [{"nullable": True}]},
        },
        "read_only": {"schema": {"type": "string", "readOnly": True}},
        "rule": {
            "schema": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "self.size >", "message": "bad"}],
            }
        },
    },
)
async def wrong_schema(s: Session, *, schema: Body) -> None:
    await s.post(DEFINITIONS, definition(f"{s.ident}.example.com", version(schema)))


@case("crd", "the name must be the plural and the group")
async def wrong_name(s: Session) -> None:
    body = definition(f"{s.ident}.example.com", version())
    body["metadata"]["name"] = s.unique("widgets")
    await s.post(DEFINITIONS, body)
    protected = definition("widgets.k8s.io", version())
    await s.post(DEFINITIONS, protected)
    short = definition(s.ident, version())
    await s.post(DEFINITIONS, short, dryRun="All", view=only("kind"))


@case("crd", "the metadata of the root may be restricted, nothing more")
async def root_metadata(s: Session) -> None:
    group = f"{s.ident}.example.com"
    metadata = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
    whole = {"type": "object", "properties": {"metadata": metadata}}
    one = {**version(), "schema": {"openAPIV3Schema": whole}}
    await s.crd(versions=[one])
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.post(path, custom(group, "long-name"))
    labels = {"type": "object", "properties": {"labels": {"type": "object"}}}
    bad = {"type": "object", "properties": {"metadata": labels}}
    other = {**version(), "schema": {"openAPIV3Schema": bad}}
    body = definition(f"other.{group}", other)
    await s.post(DEFINITIONS, body, dryRun="All")


@case("crd", "what cannot be changed in a definition")
async def immutable(s: Session) -> None:
    group = await s.crd()
    path = f"{DEFINITIONS}/widgets.{group}"
    await s.patch(path, {"spec": {"scope": "Cluster"}})
    await s.patch(path, {"spec": {"group": "example.com"}})
    await s.patch(path, {"spec": {"names": {"kind": "Gadget"}}})
    await s.patch(path, {"spec": {"names": {"plural": "gadgets"}}})
    await s.patch(path, {"spec": {"versions": [version(name="v2")]}})


@case("crd", "a new version of a definition is served, and stored versions are remembered")
async def new_version(s: Session) -> None:
    group = await s.crd()
    both = [version(), version(name="v2", storage=False)]
    await s.patch(f"{DEFINITIONS}/widgets.{group}", {"spec": {"versions": both}}, quiet=True)
    path = f"/apis/{group}/v2/namespaces/{{ns}}/widgets"
    await s.eventually(path, lambda answer: answer.status == 200, view=only("kind", "apiVersion"))
    stored = [version(storage=False), version(name="v2")]
    await s.patch(f"{DEFINITIONS}/widgets.{group}", {"spec": {"versions": stored}}, quiet=True)
    versions = seen(lambda body: body["status"]["storedVersions"])
    await s.get(f"{DEFINITIONS}/widgets.{group}", view=versions)
    less = {"spec": {"versions": [version(name="v2")]}}
    await s.patch(f"{DEFINITIONS}/widgets.{group}", less)


@case("crd", "a definition goes with its objects")
async def deletion(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.make(path, custom(group))
    view = seen(lambda body: [body["kind"], body["metadata"].get("finalizers")])
    await s.delete(f"{DEFINITIONS}/widgets.{group}", view=view)
    await s.eventually(f"{DEFINITIONS}/widgets.{group}", lambda answer: answer.status == 404)
    await s.eventually(f"{path}/a", lambda answer: answer.status == 404)


@case("crd", "a definition waits for objects that have finalizers")
async def deletion_waits(s: Session) -> None:
    group = await s.crd()
    path = f"/apis/{group}/v1/namespaces/{{ns}}/widgets"
    await s.make(path, custom(group, metadata={"finalizers": ["example.com/hold"]}))
    await s.delete(f"{DEFINITIONS}/widgets.{group}", quiet=True)
    view = seen(lambda body: sorted(body["metadata"]))
    await s.eventually(f"{path}/a", lambda answer: "deletionTimestamp" in answer.meta, view=view)
    await s.post(path, custom(group, "late"))
    await s.get(f"{DEFINITIONS}/widgets.{group}", view=only("kind"))
    await s.change(f"{path}/a", {"metadata": {"finalizers": None}})
    await s.eventually(f"{DEFINITIONS}/widgets.{group}", lambda answer: answer.status == 404)


@case("crd", "two definitions cannot have the same kind in a group")
async def names_taken(s: Session) -> None:
    group = await s.crd()
    names = {"plural": "gadgets", "kind": "Widget"}
    body = definition(group, version(), names=names)
    body["metadata"]["name"] = f"gadgets.{group}"
    await s.make(DEFINITIONS, body)
    await s.eventually(
        f"{DEFINITIONS}/gadgets.{group}",
        lambda answer: bool(answer.body.get("status", {}).get("conditions")),
        view=seen(settled),
    )

"""Schemas: a readable view of OpenAPI nodes, built in and custom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.apiserver import _recorded
from kinform.apiserver.scheme import schemas
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"


def at(root: Schema, path: str) -> Schema:
    """Return the schema at a path like ``spec.containers[].ports``, ``{}`` for a map's values."""
    for name in path.replace("[]", ".[]").replace("{}", ".{}").split("."):
        found = root.items if name == "[]" else root.values if name == "{}" else None
        root = found or root.properties[name]
    return root


def pod(path: str) -> Schema:
    return at(schemas.builtin("io.k8s.api.core.v1.Pod"), path)


def core(kind: str, path: str) -> Schema:
    return at(schemas.builtin(f"io.k8s.api.core.v1.{kind}"), path)


# Built-in ones.


@pytest.mark.parametrize(
    ("path", "kind", "form"),
    [
        ("spec", "object", ""),
        ("spec.containers", "array", ""),
        ("spec.containers[].ports[].containerPort", "integer", "int32"),
        ("spec.hostNetwork", "boolean", ""),
        ("metadata.creationTimestamp", "string", "date-time"),
        ("metadata.labels", "object", ""),
        ("metadata.labels{}", "string", ""),
        ("spec.containers[].resources.limits{}", "", ""),
    ],
)
def test_a_field_has_the_type_of_what_it_refers_to(path: str, kind: str, form: str) -> None:
    assert (pod(path).type, pod(path).format) == (kind, form)


def test_a_list_of_named_items_says_how_it_merges() -> None:
    containers = pod("spec.containers")
    assert (containers.list_type, containers.list_keys) == ("map", ("name",))
    assert (containers.patch_strategies, containers.patch_merge_key) == (("merge",), "name")


def test_a_list_is_atomic_where_nothing_else_is_said() -> None:
    assert pod("spec.containers[].args").list_type == "atomic"
    assert core("Node", "status.conditions[].type").list_type == "atomic"
    assert pod("metadata.finalizers").list_type == "set"


def test_the_defaults_of_list_keys_include_zero_values() -> None:
    ports = pod("spec.containers[].ports")
    assert ports.key_defaults == {"containerPort": 0, "protocol": "TCP"}
    assert pod("spec.containers").key_defaults == {"name": ""}
    assert pod("metadata.finalizers").key_defaults == {}


def test_several_patch_strategies_are_distinguished() -> None:
    assert pod("spec.volumes").patch_strategies == ("merge", "retainKeys")
    assert pod("spec.nodeName").patch_strategies == ()
    strategy = schemas.builtin("io.k8s.api.apps.v1.DeploymentSpec").properties["strategy"]
    assert strategy.patch_strategies == ("retainKeys",)


def test_an_atomic_object_is_known_by_its_definition_and_by_its_place() -> None:
    assert core("Pod", "spec.nodeSelector").is_atomic
    assert core("ServiceSpec", "selector").is_atomic
    assert schemas.builtin("io.k8s.api.core.v1.ObjectReference").is_atomic
    assert core("Event", "involvedObject").is_atomic
    assert not core("PersistentVolume", "spec.claimRef").is_atomic  # the place says "granular"


def test_the_place_wins_over_the_definition_it_refers_to() -> None:
    metadata = pod("metadata")
    assert metadata.definition == f"{META}.ObjectMeta"
    assert metadata.raw["default"] == {}
    assert metadata.raw["description"].startswith("Standard object's metadata.")
    assert metadata.raw["type"] == "object"
    assert "default" not in schemas.builtin(f"{META}.ObjectMeta").raw


def test_numbers_or_strings_are_marked() -> None:
    port = core("ServicePort", "targetPort")
    assert port.is_int_or_string
    assert port.type == ""
    assert not port.preserves_unknown
    assert not core("ServicePort", "port").is_int_or_string


def test_what_has_no_structure_keeps_everything() -> None:
    kept = {name for name in _recorded.schemas() if schemas.builtin(name).preserves_unknown}
    assert kept == {
        f"{META}.FieldsV1",
        f"{META}.Patch",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        f"{EXTENSIONS}.JSON",
        f"{EXTENSIONS}.JSONSchemaPropsOrArray",
        f"{EXTENSIONS}.JSONSchemaPropsOrBool",
        f"{EXTENSIONS}.JSONSchemaPropsOrStringArray",
    }


def test_a_schema_may_contain_itself() -> None:
    props = schemas.builtin(f"{EXTENSIONS}.JSONSchemaProps")
    deeper = at(props, "properties{}.properties{}.not")
    assert deeper.properties is props.properties


def test_a_property_may_be_called_like_a_word_of_schemas() -> None:
    props = schemas.builtin(f"{EXTENSIONS}.JSONSchemaProps")
    assert props.type == "object"
    assert props.properties["type"].type == "string"
    assert props.properties["required"].type == "array"
    assert props.properties["nullable"].type == "boolean"
    assert not props.nullable


def test_every_definition_can_be_read_through() -> None:
    for schema in map(schemas.builtin, _recorded.schemas()):
        for child in (*schema.properties.values(), schema.items, schema.values):
            if child is not None:
                assert child.list_type in {"atomic", "set", "map"}
                assert bool(child.list_keys) == (child.list_type == "map")
                assert set(child.key_defaults) <= set(child.list_keys)
                assert child.type or child.is_int_or_string or child.definition


def test_an_unknown_definition_is_an_error() -> None:
    with pytest.raises(KeyError):
        schemas.builtin("io.k8s.api.core.v1.Nothing")


# Custom ones.


def test_a_custom_root_has_what_every_object_has() -> None:
    schema: Json = {"type": "object", "properties": {"metadata": {"type": "object"}}}
    root = schemas.custom(schema)
    assert root.properties["apiVersion"].type == root.properties["kind"].type == "string"
    assert root.properties["metadata"].properties["labels"].values is not None
    assert root.raw is schema
    assert not root.is_embedded
    assert not root.preserves_unknown


def test_an_object_inside_another_has_it_too() -> None:
    root = schemas.custom(
        {"properties": {"inner": {"type": "object", "x-kubernetes-embedded-resource": True}}}
    )
    inner = root.properties["inner"]
    assert inner.is_embedded
    assert inner.properties.keys() == {"apiVersion", "kind", "metadata"}


def test_a_custom_object_keeps_unknown_fields_only_where_it_says_so() -> None:
    root = schemas.custom(
        {
            "properties": {
                "closed": {"type": "object"},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            }
        }
    )
    assert not root.properties["closed"].preserves_unknown
    assert root.properties["open"].preserves_unknown


def test_a_custom_map_of_anything_keeps_its_keys_and_nothing_below() -> None:
    """The real server prunes ``{"a": {"b": 1}, "c": 3}`` to ``{"a": {}, "c": 3}``."""
    root = schemas.custom({"properties": {"loose": {"additionalProperties": True}}})
    values = root.properties["loose"].values
    assert values is not None
    assert (values.type, values.properties, values.preserves_unknown) == ("", {}, False)
    closed = schemas.custom({"properties": {"none": {"additionalProperties": False}}})
    assert closed.properties["none"].values is None


def test_custom_lists_and_scalars_are_read_as_built_in_ones_are() -> None:
    root = schemas.custom(
        {
            "properties": {
                "port": {"x-kubernetes-int-or-string": True},
                "size": {"type": "integer", "nullable": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "zone"],
                    "items": {"properties": {"name": {}, "zone": {"default": "a"}}},
                },
                "one": {"type": "object", "x-kubernetes-map-type": "atomic"},
            }
        }
    )
    assert root.properties["port"].is_int_or_string
    assert root.properties["size"].nullable
    assert root.properties["parts"].list_keys == ("name", "zone")
    assert root.properties["parts"].key_defaults == {"zone": "a"}
    assert root.properties["one"].is_atomic


NODES = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "boolean"])}),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            }
        ),
    ),
    max_leaves=12,
)


def rebuilt(schema: Schema) -> Json:
    """Return the node that a schema shows."""
    found: Json = {"type": schema.type}
    if schema.items is not None:
        found["items"] = rebuilt(schema.items)
    if schema.values is not None:
        found["additionalProperties"] = rebuilt(schema.values)
    elif schema.type == "object":
        found["properties"] = {name: rebuilt(it) for name, it in schema.properties.items()}
    return found


@given(NODES)
def test_a_schema_shows_all_of_its_node(node: Json) -> None:
    assert rebuilt(schemas.custom({"properties": {"x": node}}).properties["x"]) == node

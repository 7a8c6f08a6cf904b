"""``kinform gen`` on any schema: the module loads, is formatted, and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kinform.clientset.codegen.crd import module_text
from kinform.clientset.typed import GroupClient
from kinform.errors import UsageError
from kinform.resource import encode, model_decoder

ODD = (
    "a podIP pod_ip from None str int object metadata spec type Sequence x-y $ref 3d é _ "
    "aRatherLongNameForAFieldOfACustomResource"
).split()
WIRE = st.sampled_from(ODD) | st.text("aBZ9-_. ", min_size=1, max_size=12)
DOC = st.one_of(
    st.none(),
    st.text("a \"\\\n\t'.", max_size=40),
    st.text("word ", max_size=300),
    st.text(max_size=20),
)
SCALAR = st.sampled_from(
    [
        ({"type": "string"}, "s"),
        ({"type": "integer"}, 0),
        ({"type": "boolean"}, False),
        ({"type": "number"}, 1.5),
        ({"type": "string", "format": "byte"}, "aGk="),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z"),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [None]}),
        ({"type": "object"}, {"any": 1}),
    ]
)


OPEN = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}


def of_object(inner: Any) -> Any:
    """A schema with fields, and an object that has them all."""
    entry = st.tuples(inner, DOC, st.booleans(), st.booleans())

    def build(fields: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        props: dict[str, Any] = {}
        required = []
        for wire, ((schema, _), doc, must, nullable) in fields.items():
            props[wire] = {**schema, **({"description": doc} if doc else {})}
            props[wire] |= {"nullable": True} if nullable else {}
            required += [wire] if must else []
        content = {wire: value for wire, ((_, value), *_) in fields.items()}
        return {"type": "object", "properties": props, "required": required}, content

    return st.dictionaries(WIRE, entry, min_size=1, max_size=4).map(build)


def of_container(inner: Any) -> Any:
    return inner.map(lambda it: ({"type": "array", "items": it[0]}, [it[1]])) | inner.map(
        lambda it: ({"type": "object", "additionalProperties": it[0]}, {"k": it[1]})
    )


def of_special(inner: Any) -> Any:
    """An object with fields that no schema names: unknown ones, and those of all objects."""
    return of_object(inner).map(
        lambda it: ({**it[0], **OPEN}, {**it[1], "notInTheSchema": [None]})
    ) | of_object(inner).map(lambda it: ({**it[0], **EMBEDDED}, {**it[1], **POD}))


SCHEMA = st.recursive(
    SCALAR,
    lambda inner: of_object(inner) | of_container(inner) | of_special(inner),
    max_leaves=8,
)


def definition(
    schema: Any, kind: str = "Widget", plural: str = "widgets", group: str = "example.com"
) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


@contextmanager
def loaded(text: str) -> Iterator[Any]:
    module = types.ModuleType("kinform_generated")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, module.__name__, "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[module.__name__]


@settings(max_examples=60)
@given(of_object(SCHEMA))
def test_an_object_of_any_schema_comes_back_as_it_was(found: tuple[dict[str, Any], Any]) -> None:
    schema, content = found
    spec = {"type": "object", "properties": {"spec": schema}}
    with loaded(module_text([definition(spec)])) as module:
        whole = {"metadata": {"name": "a"}, "spec": content}
        model = model_decoder(module.Widget)(json.dumps(whole).encode())
        assert json.loads(encode(model)) == whole


def again(module: Any, whole: Any) -> Any:
    """Return what is left of an object that a model has read and written."""
    return json.loads(encode(model_decoder(module.Widget)(json.dumps(whole).encode())))


@pytest.mark.parametrize("content", [{"a": [None, {"b": 1}]}, ["x"], "text", 7])
def test_a_kind_whose_schema_is_open_keeps_its_spec_and_its_status(content: Any) -> None:
    with loaded(module_text([definition({"type": "object", **OPEN})])) as module:
        whole = {**POD, "spec": content, "status": content}
        assert again(module, whole) == whole
        assert module.Widget().spec is None


def test_an_open_kind_has_the_types_that_its_schema_gives() -> None:
    spec = {"type": "object", "properties": {"podIP": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}, **OPEN}
    with loaded(module_text([definition(schema)])) as module:
        assert module.Widget(spec=module.WidgetSpec(pod_ip="::")).spec.pod_ip == "::"
        whole = {**POD, "spec": {"podIP": "::"}, "status": {"any": [1]}}
        assert again(module, whole) == whole


def test_an_embedded_resource_has_the_fields_of_all_objects() -> None:
    text = {"type": "string"}
    template = {"type": "object", "properties": {"data": text}, **EMBEDDED}
    spec = {"type": "object", "properties": {"template": template}}
    schema = {"type": "object", "properties": {"spec": spec}}
    with loaded(module_text([definition(schema)])) as module:
        whole = {"metadata": {"name": "w"}, "spec": {"template": {**POD, "data": "x"}}}
        assert again(module, whole) == whole
        pod = module.WidgetSpecTemplate(api_version="v1", kind="Pod")
        assert pod.metadata.name == ""


@pytest.mark.parametrize("kind", ["None", "True", "False"])
def test_a_kind_may_be_called_like_a_constant(kind: str) -> None:
    with loaded(module_text([definition({"type": "object"}, kind)])) as module:
        assert getattr(module, f"{kind}2").__gvk__.kind == kind


def test_no_kind_hides_what_a_group_has_nor_another_kind() -> None:
    members = [name for name in dir(GroupClient) if not name.startswith("_")]
    plurals = [*(name.replace("_", "-") for name in members), "foobars", "foo-bars"]
    kinds = [
        definition({"type": "object"}, "FooBar" if plural == "foobars" else f"K{index}", plural)
        for index, plural in enumerate(plurals)
    ]
    with loaded(module_text(kinds)) as module:
        own = {name for name in vars(module.ExampleV1) if not name.startswith("_")}
        assert own == {"api_version", *(f"{it}_" for it in members), "foo_bars", "foo_bars_"}


def test_models_and_clients_never_share_a_name() -> None:
    kinds = [
        definition({"type": "object"}, kind, f"plural{index}", group)
        for index, kind in enumerate(("Foo", "FooClient", "foo"))
        for group in ("a.example.com", "b.example.com")
    ]
    with loaded(module_text(kinds)) as module:
        assert len(module.__all__) == len(set(module.__all__)) == 2 * len(kinds) + 2


def test_a_kind_that_is_given_twice_is_refused() -> None:
    twice = [definition({"type": "object"}), definition({"type": "object"}, "Other")]
    with pytest.raises(UsageError, match=r"^example\.com/v1/widgets is defined twice"):
        module_text(twice)


@pytest.mark.parametrize("kind", ['A"""', "A\nB", "-a", "ä"])
def test_a_name_that_no_server_takes_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"widgets\.example\.com has a name that is none"):
        module_text([definition({"type": "object"}, kind)])


def endless() -> dict[str, Any]:
    node: dict[str, Any] = {"type": "array"}
    node["items"] = node
    return node


@pytest.mark.parametrize(
    "spec, words",
    [
        (None, " is null, not a schema"),
        ([], " is a list, not a schema"),
        ({"properties": ["a"]}, ".properties is a list, not a mapping of schemas"),
        ({"properties": {"a": None}}, ".properties.a is null, not a schema"),
        ({"properties": {True: {}}}, ".properties has the name True, not a text; quote it"),
        ({"items": {"properties": {"a": 7}}}, ".items.properties.a is 7, not a schema"),
        ({"items": []}, ".items is a list, not a schema"),
        ({"additionalProperties": "a"}, ".additionalProperties is 'a', not a schema"),
        ({"type": ["string"]}, ".type is a list, not the name of a type"),
        ({"required": {"a": 1}}, ".required is a mapping, not a list"),
        ({"required": [[]]}, ".required holds what is no text"),
        ({"allOf": [1]}, ".allOf[0] is 1, not a schema"),
        ({"$ref": "#/a"}, " has a $ref, which custom kinds cannot have"),
        (endless(), " is nested more than 100 schemas deep"),
    ],
)
def test_a_malformed_schema_is_refused_by_its_path(spec: Any, words: str) -> None:
    schema = {"type": "object", "properties": {"spec": spec}}
    with pytest.raises(UsageError) as caught:
        module_text([definition(schema)])
    assert str(caught.value).startswith("widgets.example.com: openAPIV3Schema.properties.spec")
    assert words in str(caught.value)


@pytest.mark.parametrize("schema", [["a"], "a", 7])
def test_a_schema_that_is_none_at_all_is_refused(schema: Any) -> None:
    with pytest.raises(UsageError, match=r"openAPIV3Schema is .*, not a schema"):
        module_text([definition(schema)])


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=of_object(SCHEMA))
def test_the_module_of_any_schema_is_formatted(
    found: tuple[dict[str, Any], Any], tmp_path: Path
) -> None:
    spec = {"type": "object", "properties": {"spec": found[0]}}
    path = tmp_path / "generated.py"
    text = module_text([definition(spec)])
    assume(max(map(len, text.splitlines())) <= 100)  # nested maps of very long names: as they are
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "format", "--diff", "--isolated"]
    done = subprocess.run(
        [*command, "--config", "line-length = 100", path],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout

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


SCHEMA = st.recursive(SCALAR, lambda inner: of_object(inner) | of_container(inner), max_leaves=8)


def definition(schema: dict[str, Any], kind: str = "Widget") -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": "widgets"},
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

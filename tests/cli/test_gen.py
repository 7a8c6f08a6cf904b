"""``kinform gen``: a module for kinds of one's own, that loads and does what it says."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kinform.apiserver import APIServer
from kinform.cli.execution import run
from kinform.clientset.codegen.crd import module_text
from kinform.errors import UsageError
from kinform.resource import encode
from tests.cli.conftest import Scene
from tests.cli.support_command import run as run_command

SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": 'A widget, "as is".\n\nWith a \\ and """quotes""".',
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size", "template"],
            "properties": {
                "size": {"type": "integer", "description": "How large it is."},
                "podIP": {"type": "string"},
                "port": {"x-kubernetes-int-or-string": True},
                "from": {"type": "string", "format": "date-time"},
                "ratio": {"type": "number"},
                "secret": {"type": "string", "format": "byte"},
                "str": {"type": "string"},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "bag": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "string"}},
                },
                "pod": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"data": {"type": "string"}},
                },
                "byName": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "maybe": {
                    "type": "object",
                    "nullable": True,
                    "properties": {"a": {"type": "string"}},
                },
                "template": {"type": "object", "properties": {"name": {"type": "string"}}},
                "steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "aVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"x": {"type": "integer", "nullable": True}},
                                },
                            }
                        },
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.shop.example.com"},
    "spec": {
        "group": "shop.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            },
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"},
                },
            },
        ],
    },
}
WIDGET: dict[str, Any] = {
    "metadata": {"name": "w"},
    "spec": {
        "size": 3,
        "podIP": "1.2.3.4",
        "port": "http",
        "from": "2026-01-02T03:04:05Z",
        "ratio": 0.5,
        "secret": "aGk=",
        "str": "s",
        "anything": [{"a": None}],
        "bag": {},
        "open": {"known": "k", "unknown": [1]},
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "data": "d"},
        "byName": {"a": False},
        "template": {},
        "steps": [{"aVeryLongNameOfAFieldThatNoFormatterLikesToSeeInOneLine": [{"x": 1}]}],
    },
}


@pytest.fixture
def crd(tmp_path: Path) -> Path:
    path = tmp_path / "crd.yaml"
    path.write_text(yaml.safe_dump_all([{"kind": "ConfigMap"}, DEFINITION]), encoding="utf-8")
    return path


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = run(["gen", *args])
    return code, capsys.readouterr().err


async def test_the_module_reads_and_writes_objects_of_the_kind(crd: Path, tmp_path: Path) -> None:
    target = tmp_path / "shop_v1.py"
    assert await asyncio.to_thread(run, ["gen", "--crd", str(crd), "-o", str(target)]) == 0  # noqa: TID251 - it has a loop of its own
    shop: Any = loaded(target)
    async with APIServer(port=None) as server, server.connect() as client:
        definitions = client.apiextensions_v1.custom_resource_definitions()
        await definitions.create(DEFINITION)
        widgets = shop.ShopV1(client).widgets("default")
        made = await widgets.create(WIDGET)
        assert isinstance(made, shop.Widget)
        assert made.spec.pod_ip == "1.2.3.4"
        assert made.spec.secret == b"hi"
        assert (made.spec.from_, made.spec.str_) == ("2026-01-02T03:04:05Z", "s")
        assert made.spec.maybe is None
        assert made.spec.open == {"known": "k", "unknown": [1]}
        assert (made.spec.pod.kind, made.spec.pod.metadata.name) == ("Pod", "p")
        assert made.status.ready is None
        await widgets.status.patch("w", {"status": {"ready": True}})
        assert (await widgets.get("w")).status.ready is True
        assert (await widgets.scale.get("w")).spec.replicas == 3
        again = await client.resource("widgets", namespace="default").get("w")
        copy = again.decode(shop.Widget)
        assert json.loads(encode(copy)) == json.loads(again.raw)


@pytest.mark.slow  # and it needs ruff, which the quick round does not have
def test_the_text_is_formatted_and_the_same_each_time(tmp_path: Path) -> None:
    text = module_text([DEFINITION])
    assert module_text([json.loads(json.dumps(DEFINITION))]) == text
    path = tmp_path / "shop_v1.py"
    path.write_text(text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", "line-length = 100", "--isolated"]
    subprocess.run([*ruff, "format", "--diff", *config, path], check=True)
    subprocess.run([*ruff, "check", "--select", "E,F,I,N,UP,W", *config, path], check=True)


def test_the_module_that_type_checkers_see_is_the_one_that_is_written() -> None:
    seen = Path(__file__).parents[1] / "typing" / "generated_shop_v1.py"
    assert seen.read_text("utf-8") == module_text([DEFINITION])


def test_the_version_can_be_chosen() -> None:
    assert '"shop.example.com/v1alpha1/widgets"' in module_text([DEFINITION], version="v1alpha1")
    assert '"shop.example.com/v1/widgets"' in module_text([DEFINITION])
    with pytest.raises(UsageError, match="does not serve version 'v9'; it serves v1alpha1, v1"):
        module_text([DEFINITION], version="v9")


def test_kinds_of_one_name_and_names_of_ours_do_not_collide(tmp_path: Path) -> None:
    def renamed(kind: str, group: str) -> dict[str, Any]:
        names = {"kind": kind, "plural": f"{kind.lower()}s"}
        return {**DEFINITION, "spec": {**DEFINITION["spec"], "group": group, "names": names}}

    text = module_text([renamed("Widget", "a.example.com"), renamed("Widget", "b.example.com")])
    path = tmp_path / "both_v1.py"
    path.write_text(text, encoding="utf-8")
    both: Any = loaded(path)
    assert both.Widget.__resource__ == "a.example.com/v1/widgets"
    assert both.Widget2.__resource__ == "b.example.com/v1/widgets"
    path = tmp_path / "part_v1.py"
    path.write_text(module_text([renamed("Part", "a.example.com")]), encoding="utf-8")
    assert loaded(path).Part2.__gvk__.kind == "Part"


@pytest.mark.slow
async def test_kinds_of_a_cluster_are_found_by_any_of_their_names(scene: Scene) -> None:
    definitions = scene.client.apiextensions_v1.custom_resource_definitions()
    await definitions.create(DEFINITION)
    try:
        for name in ("widgets.shop.example.com", "widgets", "Widget"):
            code, out, err = await run_command("gen", "--from-cluster", name, env=scene.env)
            assert (code, err) == (0, "")
            assert out == module_text([DEFINITION])
    finally:
        await definitions.delete("widgets.shop.example.com")
    code, _, err = await run_command("gen", "--from-cluster", "pods", env=scene.env)
    assert (code, "v1/pods is not a custom kind" in err) == (1, True)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "is not YAML"),
        ("kind: ConfigMap", "holds no CustomResourceDefinition"),
        (f"a: {'9' * 5000}", "is not YAML"),
        ("", "holds no CustomResourceDefinition"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]", "has nested aliases"),
        (f"a: {'[' * 200}{']' * 200}", "is nested more than 100 levels deep"),
        ("[1, two]", "holds no CustomResourceDefinition"),
        ("kind: CustomResourceDefinition", "is not of apiextensions.k8s.io/v1"),
        (
            "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, spec: 7}",
            "does not say its group",
        ),
    ],
)
def test_a_file_that_will_not_do_is_named_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(text, encoding="utf-8")
    code, said = complaint(capsys, "--crd", str(path))
    assert code == 1
    assert words in said
    assert said.count("\n") == 1


def test_words_that_only_old_yaml_understands_are_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["on", "off", "yes", "no", "y", "true", "7", "2026-01-02"]
    fields = {word: {"type": "string", "enum": ["EQUALS", "!="]} for word in words}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    definition = json.loads(json.dumps(DEFINITION))
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"] = schema
    text = yaml.safe_dump(definition).replace("EQUALS", "=")
    for word in words:
        text = text.replace(f"'{word}':", f"{word}:")
    assert " on:\n" in text
    assert " =\n" in text
    path = tmp_path / "crd.yaml"
    path.write_text(f"# größe\n{text}", encoding="utf-8")
    assert run(["gen", "--crd", str(path)]) == 0
    assert capsys.readouterr().out == module_text([definition])


def test_truth_values_and_merge_keys_are_what_they_were(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "crd.yaml"
    text = yaml.safe_dump(DEFINITION).replace("served: true", "<<: {served: false}", 1)
    path.write_text(text, encoding="utf-8")
    code, said = complaint(capsys, "--crd", str(path), "--version", "v1alpha1")
    assert (code, "does not serve version 'v1alpha1'; it serves v1\n" in said) == (1, True)


def test_a_file_that_is_not_utf8_is_named_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "crd.yaml"
    path.write_bytes(b"kind: \xff\xfe")
    code, said = complaint(capsys, "--crd", str(path))
    assert code == 1
    assert f"{path} is not UTF-8" in said
    assert said.count("\n") == 1


def test_a_file_that_is_given_twice_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], crd: Path
) -> None:
    code, said = complaint(capsys, "--crd", str(crd), "--crd", str(crd))
    assert code == 1
    assert "shop.example.com/v1/widgets is defined twice" in said
    assert said.count("\n") == 1


def test_a_definition_without_a_schema_is_refused() -> None:
    bare = {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": [{"name": "v1"}]}}
    with pytest.raises(UsageError, match="has no schema for its version v1"):
        module_text([bare])


@pytest.mark.parametrize("args", [[], ["--crd", "a", "--from-cluster", "b"]])
def test_one_source_must_be_named(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    code, said = complaint(capsys, *args)
    assert (code, "--crd FILE or --from-cluster NAME" in said) == (2, True)


def test_a_file_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = complaint(capsys, "--crd", "/nowhere/crd.yaml")
    assert (code, "/nowhere/crd.yaml" in said) == (1, True)

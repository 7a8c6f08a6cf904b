"""The commands that ask once, in processes of their own."""

from __future__ import annotations

import json

import pytest
import yaml

import kinform
from tests.cli.conftest import Scene
from tests.cli.support_command import run

pytestmark = pytest.mark.slow


async def test_a_table_has_the_servers_columns(scene: Scene) -> None:
    code, out, err = await run("get", "pods", env=scene.env)
    lines = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert lines[0] == "NAME READY STATUS RESTARTS AGE".split()
    assert [line[:4] for line in lines[1:]] == [
        "web-0 0/1 Pending 0".split(),
        "web-1 0/1 Pending 0".split(),
    ]


async def test_all_namespaces_have_a_column(scene: Scene) -> None:
    _, out, _ = await run("get", "pods", "-A", "-o", "wide", env=scene.env)
    header, *rows = out.splitlines()
    assert header.split()[:2] == ["NAMESPACE", "NAME"]
    assert "NODE" in header
    assert any(row.split()[:2] == [scene.namespace, "web-0"] for row in rows)


async def test_one_object_as_json_and_yaml(scene: Scene) -> None:
    _, text, _ = await run("get", "pod", "web-0", "-o", "json", env=scene.env)
    shown = json.loads(text)
    assert (shown["kind"], shown["metadata"]["name"]) == ("Pod", "web-0")
    assert "managedFields" not in shown["metadata"]
    _, text, _ = await run("get", "pods/web-0", "-o", "yaml", env=scene.env)
    assert yaml.safe_load(text) == shown


async def test_a_name_is_of_each_of_several_kinds(scene: Scene) -> None:
    await scene.maps.create({"metadata": {"name": "web-0"}})
    args = ("get", "pods,configmaps", "web-0", "-o", "name")
    _, out, _ = await run(*args, env=scene.env)
    assert out == "pod/web-0\nconfigmap/web-0\n"


async def test_a_list_as_json_can_be_applied_again(scene: Scene) -> None:
    _, text, _ = await run("get", "pods", "-o", "json", env=scene.env)
    shown = json.loads(text)
    assert shown["kind"] == "List"
    assert [(item["apiVersion"], item["kind"]) for item in shown["items"]] == [("v1", "Pod")] * 2


async def test_names_and_templates(scene: Scene) -> None:
    assert (await run("get", "po", "-o", "name", env=scene.env))[1] == "pod/web-0\npod/web-1\n"
    template = 'jsonpath={range .items[*]}{.metadata.name}={.status.phase}{"\\n"}{end}'
    _, out, _ = await run("get", "po", "-o", template, env=scene.env)
    assert out == "web-0=Pending\nweb-1=Pending\n"


async def test_selectors_choose(scene: Scene) -> None:
    await scene.pods.patch("web-1", {"metadata": {"labels": {"app": "db"}}})
    assert (await run("get", "po", "-l", "app in (db)", "-o", "name", env=scene.env))[1] == (
        "pod/web-1\n"
    )
    fields = ("--field-selector", "metadata.name!=web-1")
    assert (await run("get", "po", *fields, "-o", "name", env=scene.env))[1] == "pod/web-0\n"


async def test_an_empty_result_succeeds_but_a_missing_name_fails(scene: Scene) -> None:
    code, out, err = await run("get", "jobs", env=scene.env)
    assert (code, out, err) == (0, "", f"no objects found in namespace {scene.namespace}\n")
    code, out, err = await run("get", "pods", "nope", env=scene.env)
    assert (code, out, err) == (1, "", 'error: pods "nope" not found\n')


async def test_wire_shows_the_answer(scene: Scene) -> None:
    _, out, _ = await run("get", "pods/web-0", "-o", "wire", env=scene.env)
    request, head, body = out.splitlines()
    assert request.startswith("GET http://")
    assert head.startswith("HTTP 200")
    assert '"web-0"' in body


async def test_api_resources_are_those_of_kubectl(scene: Scene) -> None:
    _, out, _ = await run("api-resources", env=scene.env)
    assert ["pods", "po", "v1", "true", "Pod"] in [line.split() for line in out.splitlines()]
    args = ("--api-group", "apps", "--verbs", "list,watch", "-o", "name")
    _, out, _ = await run("api-resources", *args, env=scene.env)
    assert "deployments.apps" in out.splitlines()
    assert "pods" not in out
    _, out, _ = await run("api-resources", "--no-namespaced", "-o", "json", env=scene.env)
    assert all(not one["namespaced"] for one in json.loads(out))


async def test_version_is_ours_and_the_servers(scene: Scene) -> None:
    _, out, _ = await run("version", "-o", "json", env=scene.env)
    shown = json.loads(out)
    assert shown["kinform"] == kinform.__version__
    assert shown["server"]["version"].startswith("v1.")

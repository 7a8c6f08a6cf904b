"""Every error is one line that says what to do, with the right exit code."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinform.cli.app import cli
from kinform.cli.execution import run
from kinform.cli.options import read_duration
from tests.cli.conftest import Scene
from tests.cli.support_command import run as run_command

COMMANDS = ("watch", "get", "api-resources", "gen", "serve", "simulate", "version")


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KINFORM_TOKEN", "KINFORM_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    code = run(args)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    return code, captured.err.removeprefix("error: ").rstrip("\n")


def test_without_arguments_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_the_list_of_commands_loads_none_of_them() -> None:
    code = "import sys; from kinform.cli.app import cli; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"aiohttp", "rich", "asyncio", "yaml"}.intersection(found.stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples_and_exit_codes(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert f"    kinform {name}" in result.output, "an example in a line of its own"
    assert "Exit codes:" in result.output
    assert "\\b" not in result.output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["frob"], "No such command 'frob'"),
        (["watch", "--bogus"], "(see: kinform watch --help)"),
        (["get"], "Missing argument 'RESOURCE'"),
        (["get", "pods", "-w"], "use: kinform watch"),
        (["get", "pods/a", "b"], "give pods/NAME or pods NAME, not both"),
        (["get", "pods", "a/b"], "'pods/a/b' has a name too many: give pods/NAME"),
        (["get", "pods/"], "'pods/' is neither a kind nor an object: give pods or pods/NAME"),
        (["watch", "pod/a/b"], "'pod/a/b' has a name too many: give pod/NAME"),
        (
            ["watch", "nodes,pods/"],
            "'pods/' is neither a kind nor an object: give pods or pods/NAME",
        ),
        (["watch", "/a"], "'/a' is neither a kind nor an object"),
        (["watch", "apps/v1/"], "'apps/v1/' is neither a kind nor an object"),
        (["get", "pods", "web", "-A"], "leave out -A"),
        (["get", "pods", "web", "-l", "a=b"], "not both"),
        (["get", "pods", "-n", "a", "-A"], "not both"),
        (["get", "pods", "-l", "a in ("], "at index 6 of selector 'a in ('"),
        (["get", "pods", "--field-selector", "a"], "selector 'a'"),
        (["get", "pods", "-o", "jsonpath={.a[}"], "at position 5"),
        (["get", "pods", "-o", "jsonpath="], "needs a template"),
        (["get", "pods", "-o", "xml"], "'xml' is none of table"),
        (["watch", "--for", "soon"], "'soon' is not a duration like 30s"),
        (["watch", "--until", "ready"], "expected delete, condition=NAME"),
        (["watch", "--until", "jsonpath={.a[}=b"], "at position 5"),
        (["watch", "--until", "delete", "-o", "wire"], "leave out --until"),
        (["watch", "--until", "condition=Ready", "--metadata-only"], "leave out --metadata-only"),
        (["serve", "--port", "99999"], "--port"),
        (["serve", "--faults", "/nowhere"], "/nowhere"),
        (["get", "pods", "--server", "http://[::1]:1", "--context", "a"], "--server stands alone"),
        (["get", "pods", "--certificate-authority", "/ca"], "goes with --server"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], args: list[str], words: str
) -> None:
    code, said = complaint(capsys, *args)
    assert code == 2
    assert words in said


def test_a_missing_configuration_is_reported_with_what_to_try(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said = complaint(capsys, "get", "pods")
    assert code == 1
    assert "no configuration found" in said
    assert "kinform watch --demo" in said


def test_a_named_kubeconfig_that_is_missing_does_not_start_the_demo(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    code, said = complaint(capsys, "watch")
    assert code == 1
    assert "nowhere does not exist" in said


def test_a_broken_kubeconfig_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("a: [", encoding="utf-8")
    code, said = complaint(capsys, "get", "pods", "--kubeconfig", str(broken))
    assert code == 1
    assert f"{broken}: is not valid YAML" in said


def test_a_refused_connection_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        code, said = complaint(capsys, "get", "pods", "--server", f"http://127.0.0.1:{port}")
    assert code == 1
    assert "refused the connection; is the server up" in said


def test_debug_shows_where_an_error_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "pods", "--debug", "--kubeconfig", "/nowhere"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1].startswith("error: /nowhere: does not exist")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30.0), ("30s", 30.0), ("1m30s", 90.0), ("2h", 7200.0), ("50ms", 0.05)],
)
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert read_duration(None, None, text) == seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["get", "podz"], "no resource named 'podz'; did you mean v1/pods?"),
        (["watch", "a/v1/b/c"], "no resource named 'a/v1/b'"),
        (["watch", "tokenreviews"], "cannot be asked to watch"),
        (["watch", "pods", "--field-selector", "a=b"], "field label not supported"),
        (["get", "pods", "--context", "nope"], "context 'nope' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_an_unknown_kind_or_object_is_reported_in_one_line(
    scene: Scene, args: list[str], words: str
) -> None:
    code, out, err = await run_command(*args, env=scene.env)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.slow
async def test_an_ambiguous_kind_is_reported_with_its_candidates(scene: Scene) -> None:
    definitions = scene.client.resource("apiextensions.k8s.io/v1/customresourcedefinitions")
    for group in ("a", "b"):
        await definitions.create(definition(f"{scene.namespace[5:]}.{group}.example"))
    code, _, err = await run_command("get", f"widgets-{scene.namespace[5:]}", env=scene.env)
    assert code == 1
    assert "is ambiguous; use one of" in err
    assert ".a.example/v1" in err
    assert ".b.example/v1" in err


def definition(group: str) -> dict[str, object]:
    mark = group.partition(".")[0]
    plural = f"widgets-{mark}"
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": f"Widget{mark}"},
            "versions": [version],
        },
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", [("get", "pods"), ("watch", "pods"), ("api-resources",)])
async def test_a_missing_token_is_reported_with_its_variable(
    scene: Scene, command: tuple[str, ...]
) -> None:
    env = {**scene.env}
    del env["KUBECONFIG"]
    server = scene.client.config.server.partition("/~")[0]
    code, out, err = await run_command(*command, "--server", server, env=env)
    assert (code, out) == (1, "")
    assert err == "error: the server requires credentials (Unauthorized); set KINFORM_TOKEN\n"
    env["KINFORM_TOKEN"] = "a-wrong-one"
    code, _, err = await run_command(*command, "--server", server, env=env)
    assert code == 1
    assert "does not accept the credentials" in err


@pytest.mark.slow
async def test_an_empty_list_of_kinds_is_reported(scene: Scene) -> None:
    code, out, err = await run_command("api-resources", "--api-group", "nope", env=scene.env)
    assert (code, len(out.splitlines())) == (0, 1)
    assert err == "kinform: the server has no API group 'nope'\n"
    args = ("api-resources", "--api-group", "apps", "--no-namespaced", "-o", "name")
    code, out, err = await run_command(*args, env=scene.env)
    assert (code, out, err) == (0, "", "kinform: the server has no such kinds\n")


@pytest.mark.slow
async def test_the_token_of_a_server_comes_from_the_environment(scene: Scene) -> None:
    config = scene.client.config
    env = {**scene.env, "KINFORM_TOKEN": config.token or ""}
    del env["KUBECONFIG"]
    args = ("get", "pods", "-n", scene.namespace, "--server", config.server, "-o", "name")
    assert (await run_command(*args, env=env))[1] == "pod/web-0\npod/web-1\n"

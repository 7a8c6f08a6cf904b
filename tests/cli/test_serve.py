"""``kinform serve`` as a process, and the kubeconfig it writes."""

from __future__ import annotations

import signal
import socket
import stat
from pathlib import Path

import pytest
import yaml

import kinform as library
from kinform.cli.commands.serve import MARK, write_kubeconfig
from kinform.cli.problems import CommandProblem
from tests.cli.support_command import environment, kinform, run


def test_a_kubeconfig_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, "a: 1\n", force=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert yaml.safe_load(path.read_text("utf-8")) == {"a": 1}
    write_kubeconfig(path, "a: 2\n", force=False)
    assert yaml.safe_load(path.read_text("utf-8")) == {"a": 2}
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubeconfig"]


def test_an_error_about_an_unwritable_kubeconfig_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "kubeconfig"
    message = f"^the kubeconfig {path} cannot be written: no such file or directory$"
    with pytest.raises(CommandProblem, match=message):
        write_kubeconfig(path, "a: 1\n", force=False)


def test_a_foreign_kubeconfig_is_replaced_with_force_only(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("mine: true\n", encoding="utf-8")
    with pytest.raises(CommandProblem, match="was not written by kinform serve; --force"):
        write_kubeconfig(path, "a: 1\n", force=False)
    assert path.read_text("utf-8") == "mine: true\n"
    write_kubeconfig(path, "a: 1\n", force=True)
    assert path.read_text("utf-8") == f"{MARK}a: 1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
async def test_it_serves_until_a_signal_comes(tmp_path: Path, signum: signal.Signals) -> None:
    path = tmp_path / "kubeconfig"
    args = ("serve", "--kubeconfig", str(path))
    async with kinform(*args, env=environment(tmp_path)) as command:
        await command.line("serving http://127.0.0.1:")
        await command.line(f"KUBECONFIG={path} kubectl get namespaces")
        async with library.connect(path) as client:
            names = [one.name for one in await client.resource("v1/namespaces").list()]
        assert "default" in names
        command.send(signum)
        code, _, err = await command.end()
    assert (code, err) == (0, "")


@pytest.mark.slow
async def test_the_token_of_the_environment_is_the_servers(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    env = environment(tmp_path, KINFORM_TOKEN="a-token-of-mine")
    async with kinform("serve", "--kubeconfig", str(path), env=env) as command:
        await command.line("serving")
        assert "a-token-of-mine" in path.read_text("utf-8")
        command.send(signal.SIGTERM)
        assert (await command.end())[0] == 0


@pytest.mark.slow
async def test_without_a_kubeconfig_it_says_how_to_get_the_token(tmp_path: Path) -> None:
    for env, words in (
        (environment(tmp_path), "with --kubeconfig FILE to have it written there, or set KINFORM_"),
        (environment(tmp_path, KINFORM_TOKEN="mine"), "its token is that of KINFORM_TOKEN"),
    ):
        async with kinform("serve", env=env) as command:
            assert "mine" not in await command.line(words)
            command.send(signal.SIGTERM)
            assert (await command.end())[0] == 0


@pytest.mark.slow
async def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = await run("serve", "--port", str(port), env=environment(tmp_path))
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert f"port {port} is in use; choose another" in err


@pytest.mark.slow
async def test_a_foreign_kubeconfig_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("mine: true\n", encoding="utf-8")
    code, out, err = await run("serve", "--kubeconfig", str(path), env=environment(tmp_path))
    assert (code, out) == (1, "")
    assert err == (
        f"error: {path} is there and was not written by kinform serve; --force replaces it\n"
    )


@pytest.mark.slow
async def test_a_broken_data_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    path.write_bytes(b"no database at all\n" * 100)
    code, out, err = await run("serve", "--data", str(path), env=environment(tmp_path))
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert str(path) in err
    assert path.read_bytes() == b"no database at all\n" * 100

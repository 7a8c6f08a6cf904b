"""Credential plugins: their start, their input, and all their failures."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinform.errors import ConfigError
from kinform.rest.auth.exec_plugin import ExecCredential, run
from kinform.rest.config import Config, TlsConfig
from kinform.rest.transport.tls import ClientCertificate
from tests.rest.support_plugin import V1, Plugin, credential

V1BETA1 = "client.authentication.k8s.io/v1beta1"
SECRET = "eyJhbGciOi-a-token-that-must-not-show"


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


@pytest.fixture(autouse=True)
def no_terminal() -> Iterator[None]:
    """Hide the terminal from the code under test."""
    before, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    yield
    os.dup2(before, 0)
    os.close(before)
    os.close(null)


@pytest.fixture
def terminal() -> Iterator[int]:
    """Give the tests a terminal as standard input; the other end is what a person types on."""
    before = os.dup(0)
    person, ours = os.openpty()
    os.dup2(ours, 0)
    yield person
    os.dup2(before, 0)
    for descriptor in (before, person, ours):
        os.close(descriptor)


async def error_of(config: Config) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        await run(config)
    assert caught.value.source == "/kube/config"
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return caught.value


# --- what it gives ----------------------------------------------------------------------------


async def test_a_token_with_its_end(plugin: Plugin) -> None:
    plugin.gives(token="abc", expirationTimestamp="2026-01-01T00:10:00Z")
    assert await run(plugin.config()) == ExecCredential(token="abc", expires_at=1_767_226_200.0)


@pytest.mark.parametrize(
    "text", ["2026-01-01T01:10:00+01:00", "2026-01-01T00:10:00.000000001Z", "2026-01-01T00:10:00"]
)
async def test_forms_of_a_timestamp(plugin: Plugin, text: str) -> None:
    plugin.gives(token="abc", expirationTimestamp=text)
    assert (await run(plugin.config())).expires_at == 1_767_226_200.0


async def test_a_certificate_without_an_end(plugin: Plugin) -> None:
    plugin.gives(clientCertificateData="CERT", clientKeyData=SECRET)
    given = await run(plugin.config())
    assert given == ExecCredential(certificate=ClientCertificate(b"CERT", SECRET.encode()))
    assert SECRET not in repr(given)


async def test_v1beta1_is_understood(plugin: Plugin) -> None:
    plugin.prints(credential(V1BETA1, token="abc"))
    assert (await run(plugin.config(api_version=V1BETA1))).token == "abc"


# --- its input --------------------------------------------------------------------------------


async def exec_info(plugin: Plugin, config: Config) -> dict[str, object]:
    """Return the ExecCredential that the plugin finds in its environment."""
    folder = plugin.path.parent
    plugin.does(f'printf %s "$KUBERNETES_EXEC_INFO" > {folder}/info; cat {folder}/answer')
    plugin.gives(token="abc")
    await run(config)
    info: dict[str, object] = json.loads((folder / "info").read_text(encoding="utf-8"))
    return info


async def test_a_plugin_is_told_version_and_interactivity(plugin: Plugin) -> None:
    assert await exec_info(plugin, plugin.config()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


async def test_a_plugin_is_told_about_the_cluster_if_it_wants(
    plugin: Plugin, tmp_path: Path
) -> None:
    (tmp_path / "ca").write_bytes(b"CA")
    tls = TlsConfig(ca_file=str(tmp_path / "ca"), server_name="kubernetes")
    extension = {"audience": "x", "n": 1}
    config = plugin.config(tls=tls, provide_cluster_info=True, cluster_extension=extension)
    assert (await exec_info(plugin, config))["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://api.example:6443",
            "tls-server-name": "kubernetes",
            "certificate-authority-data": "Q0E=",
            "config": extension,
        },
    }


async def test_a_missing_ca_file_is_an_error_before_the_plugin_runs(plugin: Plugin) -> None:
    config = plugin.config(tls=TlsConfig(ca_file="/nowhere/ca"), provide_cluster_info=True)
    assert (await error_of(config)).key == "clusters[dev].cluster.certificate-authority"
    assert plugin.runs == 0


async def test_an_extension_that_is_no_json_is_an_error(plugin: Plugin) -> None:
    config = plugin.config(provide_cluster_info=True, cluster_extension={"x": object()})
    assert "cluster extension that is not JSON" in (await error_of(config)).message


async def test_arguments_and_environment_arrive_unharmed(plugin: Plugin, tmp_path: Path) -> None:
    """No shell splits them."""
    out = tmp_path / "out"
    plugin.does(f'printf "%s|" "$@" "$REGION" > {out}; cat {tmp_path}/answer')
    plugin.gives(token="abc")
    await run(plugin.config(args=["a b", "$HOME;*", '"'], env={"REGION": "x y"}))
    assert out.read_text(encoding="utf-8") == 'a b|$HOME;*|"|x y|'


async def test_a_command_without_a_slash_is_found_in_path(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin.gives(token="abc")
    monkeypatch.setenv("PATH", str(plugin.path.parent), prepend=os.pathsep)
    assert (await run(plugin.config(command="plugin"))).token == "abc"


async def test_a_relative_entry_of_path_is_not_trusted(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plugin.path.parent)
    monkeypatch.setenv("PATH", ".", prepend=os.pathsep)
    error = await error_of(plugin.config(command="plugin"))
    assert "relative entry of PATH" in error.message
    assert plugin.runs == 0


# --- the terminal -----------------------------------------------------------------------------


async def test_always_interactive_needs_a_terminal(plugin: Plugin) -> None:
    error = await error_of(plugin.config(interactive_mode="Always"))
    assert error.key == "users[dev].user.exec.interactiveMode"
    assert "is not a terminal" in error.message
    assert plugin.runs == 0


@pytest.mark.parametrize("mode", ["Always", "IfAvailable"])
async def test_a_plugin_may_ask_at_the_terminal(plugin: Plugin, terminal: int, mode: str) -> None:
    plugin.does(
        'read line; printf \'{"apiVersion":"%s","kind":"ExecCredential",'
        '"status":{"token":"%s"}}\' ' + V1 + ' "$line"'
    )
    os.write(terminal, b"typed\n")
    assert (await run(plugin.config(interactive_mode=mode))).token == "typed"


async def test_a_plugin_that_never_asks_gets_no_terminal(plugin: Plugin, terminal: int) -> None:
    plugin.does(f"test -t 0 && exit 3; cat {plugin.path.parent}/answer")
    plugin.gives(token="abc")
    assert (await run(plugin.config(interactive_mode="Never"))).token == "abc"


# --- how it goes wrong ------------------------------------------------------------------------


async def test_a_missing_command_names_the_key_and_the_hint(plugin: Plugin) -> None:
    error = await error_of(
        plugin.config(command="no-such-plugin", install_hint="brew\n install\x1b it")
    )
    assert error.key == "users[dev].user.exec.command"
    assert error.message == "program 'no-such-plugin' not found; brew install? it"


async def test_a_missing_command_without_a_hint(plugin: Plugin) -> None:
    error = await error_of(plugin.config(command="/nowhere/plugin"))
    assert (
        error.message == "program '/nowhere/plugin' not found; install it, or correct the command"
    )


async def test_a_file_that_is_not_executable(plugin: Plugin) -> None:
    plugin.path.chmod(0o644)
    assert "is not executable; set its x bit" in (await error_of(plugin.config())).message


async def test_a_file_that_is_no_program(plugin: Plugin) -> None:
    plugin.path.write_bytes(b"\x00\x01\x02")
    assert "cannot start" in (await error_of(plugin.config())).message


async def test_an_argument_that_no_program_can_have(plugin: Plugin) -> None:
    assert "cannot start" in (await error_of(plugin.config(args=["a\0b"]))).message


async def test_without_a_plugin_there_is_nothing_to_run() -> None:
    with pytest.raises(ConfigError, match="exec_plugin: is not set"):
        await run(Config(server="https://x"))


@pytest.mark.parametrize(
    "line, topic",
    [
        ("Unable to locate credentials", "a login"),
        ("session has expired, sign in", "a login"),
        ("login failed: password swordfish was rejected", "a login"),
        ("AccessDenied: not authorized", "permissions"),
        ("dial tcp: connection refused", "the network"),
        ("profile dev not found", "something that is missing"),
        (f"refused {SECRET}", None),
        ("passphrase 'correct horse' is wrong", None),
        ("PIN 4711 rejected", None),
        ("token abcdefgh refused", None),
        ("https://u:hunter@host refused", None),
        ("\x1b[31mred", None),
        ("word " * 60, None),
        ("", None),
    ],
)
async def test_a_failing_plugin_is_reported_without_its_output(
    plugin: Plugin, tmp_path: Path, line: str, topic: str | None
) -> None:
    """F-R31: prints a token to stderr. No heuristic knows every form of a password."""
    (tmp_path / "stderr").write_text(f"{SECRET}\n{line}\n\n", encoding="utf-8")
    plugin.does(f"cat {tmp_path}/stderr >&2; exit 7")
    error = await error_of(plugin.config())
    mentions = "" if topic is None else f"its output mentions {topic}; "
    assert error.message == (
        f"{str(plugin.path)!r} failed with exit code 7; {mentions}run it by hand to see why"
    )


@pytest.mark.parametrize(
    "output, says",
    [
        pytest.param("", "printed no ExecCredential as JSON", id="nothing"),
        pytest.param(f"Hello {SECRET}", "printed no ExecCredential as JSON", id="nonsense"),
        pytest.param(f'["{SECRET}"]', "printed no ExecCredential as JSON", id="list"),
        pytest.param(credential(token=[SECRET]), "$.status.token", id="token-is-a-list"),
        pytest.param(
            credential(token=SECRET, expirationTimestamp="tomorrow"),
            "$.status.expirationTimestamp",
            id="timestamp",
        ),
        pytest.param(credential(), "neither a token nor a certificate", id="no-token"),
        pytest.param(
            json.dumps({"apiVersion": V1, "kind": "ExecCredential"}),
            "neither a token nor a certificate",
            id="no-status",
        ),
        pytest.param(
            credential(token=SECRET, clientKeyData="x"), "without its", id="key-without-certificate"
        ),
        pytest.param(
            credential(clientCertificateData="x"), "without its", id="certificate-without-key"
        ),
        pytest.param(credential(token=f"{SECRET}\r\nX: y"), "characters", id="header-injection"),
        pytest.param(credential(token=f"{SECRET}é"), "characters", id="not-ascii"),
    ],
)
async def test_nonsense_is_refused_and_not_quoted(plugin: Plugin, output: str, says: str) -> None:
    plugin.prints(output)
    error = await error_of(plugin.config())
    assert error.key == "users[dev].user.exec.command"
    assert says in error.message


@pytest.mark.parametrize(
    "output",
    [
        credential(V1BETA1, token=SECRET),
        json.dumps({"apiVersion": V1, "kind": "Secret", "status": {"token": SECRET}}),
        json.dumps({"status": {"token": SECRET}}),
    ],
)
async def test_another_version_or_kind_is_refused(plugin: Plugin, output: str) -> None:
    plugin.prints(output)
    error = await error_of(plugin.config())
    assert error.key == "users[dev].user.exec.apiVersion"
    assert f"where '{V1} ExecCredential' is configured" in error.message


async def test_a_kind_that_no_plugin_has_is_not_quoted(plugin: Plugin) -> None:
    plugin.prints(json.dumps({"apiVersion": V1, "kind": f"password {SECRET}"}))
    error = await error_of(plugin.config())
    assert "printed something else where" in error.message


async def test_endless_output_is_cut_off(plugin: Plugin) -> None:
    plugin.does("exec cat /dev/zero")
    assert "printed more than 1048576 bytes" in (await error_of(plugin.config())).message


async def test_endless_noise_on_stderr_does_no_harm(plugin: Plugin) -> None:
    plugin.does(f"head -c 3000000 /dev/zero >&2; cat {plugin.path.parent}/answer")
    plugin.gives(token="abc")
    assert (await run(plugin.config())).token == "abc"


# --- hanging and cancelling -------------------------------------------------------------------


class Hanging:
    """A plugin that waits for ever, with a child that does, too."""

    def __init__(self, plugin: Plugin) -> None:
        self.pids = plugin.path.parent / "pids"
        os.mkfifo(self.pids)
        plugin.does(f"sleep 1000 & echo $$ $! > {self.pids}; wait")

    async def started(self) -> list[int]:
        """Wait until it runs, and return its process and its child's."""
        text = await asyncio.get_running_loop().run_in_executor(None, self.pids.read_text)
        return [int(word) for word in text.split()]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone since we looked, or while we read
        return False
    return state != "Z"  # an orphan may wait for init to bury it


async def gone(pids: list[int]) -> bool:
    for _ in range(200):
        if not any(is_alive(pid) for pid in pids):
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
async def test_a_hanging_plugin_is_killed_with_its_children(plugin: Plugin) -> None:
    hanging = Hanging(plugin)
    async with asyncio.TaskGroup() as group:
        started = group.create_task(hanging.started())
        error = await error_of(plugin.config(timeout=3))  # it has to get as far as hanging
    assert error.key == "users[dev].user.exec.command"
    assert "did not finish within 3 s; run it by hand" in error.message
    assert await gone(started.result())


async def test_a_plugin_that_waits_for_somebody_at_the_terminal_is_killed(
    plugin: Plugin, terminal: int
) -> None:
    plugin.does("read line")
    assert "did not finish within 0.1 s" in (await error_of(plugin.config(timeout=0.1))).message


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
async def test_cancelling_kills_the_plugin_with_its_children(plugin: Plugin) -> None:
    hanging = Hanging(plugin)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(plugin.config()))
        pids = await hanging.started()
        task.cancel()
    assert task.cancelled()
    assert await gone(pids)


def children() -> str:
    """Return the processes that this thread has started."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text("ascii").strip()


@pytest.mark.skipif(not Path("/proc/thread-self/children").exists(), reason="looks into /proc")
@pytest.mark.parametrize("turns", range(6))
async def test_cancelling_while_it_is_being_started_kills_its_children_too(
    plugin: Plugin, turns: int
) -> None:
    """There asyncio alone would forget the children, and wait for the pipes they hold."""
    hanging = Hanging(plugin)
    before = children()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(plugin.config()))
        while children() == before:  # noqa: ASYNC110 - the very turn of the loop counts
            await asyncio.sleep(0)
        pids = [int(word) for word in hanging.pids.read_text("ascii").split()]  # the loop stands
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # once more, while it cleans up
    assert task.cancelled()
    assert await gone(pids)


@pytest.mark.slow
async def test_a_child_left_behind_with_the_pipes_costs_only_a_moment(plugin: Plugin) -> None:
    """Some plugins start an agent that outlives them."""
    plugin.does(f"setsid sleep 5 & cat {plugin.path.parent}/answer")
    plugin.gives(token="abc")
    assert (await run(plugin.config())).token == "abc"


async def test_no_log_holds_the_output(plugin: Plugin, caplog: pytest.LogCaptureFixture) -> None:
    plugin.does(f"echo {SECRET} >&2; cat {plugin.path.parent}/answer")
    plugin.gives(token=SECRET)
    with caplog.at_level(logging.DEBUG):
        await run(plugin.config(args=[SECRET], env={"X": SECRET}))
    assert SECRET not in caplog.text + repr([vars(record) for record in caplog.records])

"""Credential plugins are code that a kubeconfig names: they run only where a policy lets them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

import kinform
from kinform import sync
from kinform.clock import offload
from kinform.errors import ConfigError, UsageError
from kinform.rest.auth import exec_plugin
from kinform.rest.clientcmd.loading import load
from kinform.rest.config import Config, CredentialPluginPolicy, TlsConfig
from tests.rest.support_kubeconfig import Entry, document, write
from tests.rest.support_plugin import V1, Plugin


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """A plugin that leaves a trace when it runs."""
    made = Plugin(tmp_path)
    made.gives(token="from-the-plugin")
    return made


def kubeconfig(command: object, **user: object) -> Entry:
    return document(user={"exec": {"apiVersion": V1, "command": str(command)}, **user})


async def test_a_kubeconfig_from_elsewhere_runs_nothing(plugin: Plugin) -> None:
    """Text, bytes or a dict: the plugin of an untrusted document is denied."""
    untrusted = kubeconfig(plugin.path)
    for form in (untrusted, json.dumps(untrusted), json.dumps(untrusted).encode()):
        with pytest.raises(ConfigError, match="may not run: the policy is DenyAll") as caught:
            Config.from_kubeconfig(form, source="secret team-a/kubeconfig")
        assert str(plugin.path) in str(caught.value)
        assert "pass credential_plugin_policy=" in str(caught.value)
        assert caught.value.source == "secret team-a/kubeconfig"
        assert caught.value.key == "users[dev].user.exec.command"
    assert plugin.runs == 0


async def test_a_plugin_of_a_kubeconfig_from_elsewhere_runs_if_it_is_allowed(
    plugin: Plugin,
) -> None:
    policy = [str(plugin.path)]
    config = Config.from_kubeconfig(kubeconfig(plugin.path), credential_plugin_policy=policy)
    assert (await exec_plugin.run(config)).token == "from-the-plugin"
    assert plugin.runs == 1


async def test_a_token_beside_the_plugin_needs_no_plugin(plugin: Plugin) -> None:
    config = Config.from_kubeconfig(kubeconfig(plugin.path, token="mine"))
    assert config.token == "mine"
    with pytest.raises(ConfigError, match="may not run"):
        await exec_plugin.run(replace(config, token=None))
    assert plugin.runs == 0


async def test_the_policy_also_holds_for_a_configuration_from_code(plugin: Plugin) -> None:
    """The policy is checked when the program is started, for any origin of the configuration."""
    denied = replace(plugin.config(), credential_plugin_policy="DenyAll")
    also_a_certificate = replace(denied, tls=TlsConfig(cert_file="/x", key_file="/y"))
    for config in (denied, also_a_certificate):
        with pytest.raises(ConfigError, match="may not run"):
            await exec_plugin.run(config)
    assert plugin.runs == 0


async def test_whoever_connects_can_deny_the_plugins_of_a_file(
    plugin: Plugin, tmp_path: Path
) -> None:
    path = write(tmp_path / "config", kubeconfig(plugin.path))
    assert (await offload(load, path)).credential_plugin_policy == "AllowAll"
    with pytest.raises(ConfigError, match="may not run") as caught:
        async with kinform.connect(path, credential_plugin_policy="DenyAll"):
            pass
    assert caught.value.source == path
    assert plugin.runs == 0


def test_blocking_code_can_deny_them_as_well(plugin: Plugin, tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig(plugin.path))
    with pytest.raises(ConfigError, match="may not run"):
        sync.connect(path, credential_plugin_policy="DenyAll").open()
    assert plugin.runs == 0


# --- allowlists -------------------------------------------------------------------------------

VARIABLES = ["LD_PRELOAD", "PATH", "PYTHONPATH", "PYTHONWARNINGS", "BROWSER", "AWS_PROFILE"]


def with_variable(plugin: Plugin, name: str) -> Entry:
    env = [{"name": name, "value": "/tmp/evil"}]
    return document(user={"exec": {"apiVersion": V1, "command": str(plugin.path), "env": env}})


@pytest.mark.parametrize("name", VARIABLES)
def test_a_kubeconfig_from_elsewhere_sets_no_variables_of_an_allowed_plugin(
    plugin: Plugin, name: str
) -> None:
    """A plugin written in Python, for example, runs what PYTHONWARNINGS and BROWSER say."""
    untrusted = with_variable(plugin, name)
    with pytest.raises(ConfigError, match="can make an allowed program run other code") as caught:
        Config.from_kubeconfig(untrusted, credential_plugin_policy=[str(plugin.path)])
    assert caught.value.key == "users[dev].user.exec.env"
    trusted = Config.from_kubeconfig(untrusted, credential_plugin_policy="AllowAll")
    with pytest.raises(ConfigError, match="can make an allowed program run other code"):
        load(trusted, credential_plugin_policy=[str(plugin.path)])
    assert plugin.runs == 0


async def test_code_and_files_may_set_variables(plugin: Plugin, tmp_path: Path) -> None:
    policy = [str(plugin.path)]
    config = Config.from_kubeconfig(kubeconfig(plugin.path), credential_plugin_policy=policy)
    assert config.exec_plugin is not None
    in_code = replace(config, exec_plugin=replace(config.exec_plugin, env={"AWS_PROFILE": "dev"}))
    assert (await exec_plugin.run(in_code)).token == "from-the-plugin"
    path = write(tmp_path / "config", with_variable(plugin, "AWS_PROFILE"))
    from_file = await offload(load, path, credential_plugin_policy=policy)
    assert (await exec_plugin.run(from_file)).token == "from-the-plugin"
    assert plugin.runs == 2


async def test_an_allowlist_admits_what_it_leads_to_and_nothing_else(
    plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    other = Plugin(tmp_path / "other")
    other.gives(token="from-another")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    named = replace(plugin.config(command="plugin"), origin=None)
    by_path = plugin.config()

    for config in (named, by_path):
        for entry in (str(plugin.path), "plugin"):
            allowed = replace(config, credential_plugin_policy=["/usr/bin/aws", entry])
            assert (await exec_plugin.run(allowed)).token == "from-the-plugin"
    runs = plugin.runs
    for config in (named, by_path):
        for entry in (str(other.path), "sh", "/usr/bin/aws", f"{tmp_path}/other/../plugin"):
            denied = replace(config, credential_plugin_policy=[entry])
            with pytest.raises(ConfigError, match="an allowlist without it"):
                await exec_plugin.run(denied)
    assert (plugin.runs, other.runs) == (runs, 0)


async def test_another_program_of_that_name_earlier_in_path_is_not_run(
    plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path that is allowed counts, not the name."""
    (tmp_path / "first").mkdir()
    impostor = Plugin(tmp_path / "first")
    monkeypatch.setenv("PATH", f"{impostor.path.parent}{os.pathsep}{tmp_path}")
    config = plugin.config(command="plugin")
    with pytest.raises(ConfigError, match="an allowlist without it") as caught:
        await exec_plugin.run(replace(config, credential_plugin_policy=[str(plugin.path)]))
    assert f"found at {str(impostor.path)!r}" in str(caught.value)
    assert (plugin.runs, impostor.runs) == (0, 0)


@pytest.mark.parametrize(
    "policy, words",
    [
        ("denyall", "'AllowAll', 'DenyAll' or a list"),
        ("/usr/bin/aws", "'AllowAll', 'DenyAll' or a list"),
        ([], "empty list; say 'DenyAll'"),
        (["bin/aws"], "absolute paths"),
        (["./aws"], "absolute paths"),
        ([""], "absolute paths"),
    ],
)
def test_a_policy_that_is_none_is_refused_even_if_nothing_would_run(
    policy: CredentialPluginPolicy, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        load("https://api.example", credential_plugin_policy=policy)


# --- where a command is looked for ------------------------------------------------------------


async def test_a_command_is_never_looked_for_in_the_working_directory(
    plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for command in ("plugin", "./plugin", "bin/../plugin"):
        path = write(tmp_path / "elsewhere/config", kubeconfig(command))
        with pytest.raises(ConfigError, match="not found; "):
            await exec_plugin.run(await offload(load, path))
    for command in ("./plugin", "../plugin", "a/plugin"):
        with pytest.raises(ConfigError, match="is relative; give an absolute path"):
            Config.from_kubeconfig(kubeconfig(command), credential_plugin_policy="AllowAll")
    assert plugin.runs == 0


async def test_no_shell_reads_a_command_or_its_arguments(plugin: Plugin, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for command in (f"{plugin.path}; touch {trace}", f"$(touch {trace})", f"| touch {trace}"):
        with pytest.raises(ConfigError, match="not found; "):
            path = write(tmp_path / "config", kubeconfig(command))
            await exec_plugin.run(await offload(load, path))
    config = plugin.config(args=["; touch", str(trace), "`touch", f"{trace}`"])
    assert (await exec_plugin.run(config)).token == "from-the-plugin"
    assert not trace.exists()

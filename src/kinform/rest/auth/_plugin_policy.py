"""The policy for credential plugins: kubectl's ``credentialPluginPolicy``.

A kubeconfig names a program, so its author decides which code runs. `check` applies the policy
before the program is looked up; `check_found` applies it to the file that would be started;
`check_environment` keeps an untrusted kubeconfig from making an allowed program run other code.
client-go: ``ExecConfig.PluginPolicy``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from kinform.errors import ConfigError, UsageError
from kinform.rest.config import Config, CredentialPluginPolicy, ExecPlugin

__all__ = ["check", "check_environment", "check_found", "is_used"]

_SETTING: Final = "credential_plugin_policy"


def is_used(config: Config) -> bool:
    """Return whether a plugin provides the credential: one is set, and no other credential is."""
    tls = config.tls
    has_other = config.token_file or config.token or config.username or config.password
    return config.exec_plugin is not None and not (has_other or tls.cert_data or tls.cert_file)


def check(config: Config) -> None:
    """Refuse a plugin that may not run, without looking it up in PATH.

    Raises:
        ConfigError: if plugins are denied and one is needed; names it, its file and what to do.
        UsageError: if the policy is not valid.
    """
    _check_form(config.credential_plugin_policy)
    plugin = config.exec_plugin
    if plugin is not None and config.credential_plugin_policy == "DenyAll" and is_used(config):
        raise _denied(config, plugin, why="DenyAll")


def check_found(config: Config, plugin: ExecPlugin, found: str) -> None:
    """Refuse the program at ``found`` unless the policy allows it. Blocks.

    Raises:
        ConfigError: as `check`.
    """
    policy = config.credential_plugin_policy
    if policy == "AllowAll":
        return
    if isinstance(policy, str) or all(shutil.which(entry) != found for entry in policy):
        why = "DenyAll" if isinstance(policy, str) else "an allowlist without it"
        raise _denied(config, plugin, why=why, found=found)


def check_environment(config: Config) -> None:
    """Refuse environment variables of an untrusted kubeconfig, under an allowlist.

    An allowlist says which programs may run. Variables such as ``LD_PRELOAD``, ``PATH``,
    ``PYTHONWARNINGS`` or ``AWS_CONFIG_FILE`` make an allowed program run other code, and no list of
    such variables is complete. ``AllowAll`` trusts the document to run anything.

    Raises:
        ConfigError: names the key; says how to set variables in code.
    """
    origin, plugin = config.origin, config.exec_plugin
    if origin is None or origin.is_file or plugin is None or not plugin.env:
        return
    if not isinstance(config.credential_plugin_policy, str):
        message = (
            "sets environment variables, which can make an allowed program run other code; remove"
            " them from the document, and set what you need in code:"
            " dataclasses.replace(config, exec_plugin=dataclasses.replace(config.exec_plugin,"
            " env=...))"
        )
        raise config.error("exec_plugin.env", message)


def _check_form(policy: CredentialPluginPolicy) -> None:
    if isinstance(policy, str):
        if policy not in {"AllowAll", "DenyAll"}:
            raise UsageError(f"{_SETTING} is {policy!r}; give 'AllowAll', 'DenyAll' or a list")
        return
    if not policy:  # kubectl, too, takes this for a mistake
        raise UsageError(f"{_SETTING} is an empty list; say 'DenyAll' if no plugin may run")
    for entry in policy:
        if not entry or (os.sep in entry and not Path(entry).is_absolute()):
            raise UsageError(f"{_SETTING} has {entry!r}; give absolute paths, or names in PATH")


def _denied(config: Config, plugin: ExecPlugin, *, why: str, found: str = "") -> ConfigError:
    at = f" (found at {found!r})" if found and found != plugin.command else ""
    message = (
        f"the credential plugin {plugin.command!r}{at} may not run: the policy is {why};"
        f" if you trust this configuration, pass {_SETTING}= with a list that names the plugin"
    )
    return config.error("exec_plugin.command", message)

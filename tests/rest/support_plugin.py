"""Credential plugins for tests: real programs, each a few lines of shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import final

from kinform.rest.config import Config, ExecPlugin, Origin, TlsConfig

__all__ = ["ORIGIN", "V1", "Plugin", "credential"]

V1 = "client.authentication.k8s.io/v1"
ORIGIN = Origin(
    cluster_source="/kube/config",
    cluster_key="clusters[dev].cluster",
    user_source="/kube/config",
    user_key="users[dev].user",
)


def credential(api_version: str = V1, /, **status: object) -> str:
    """Return what a plugin prints."""
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status})


@final
class Plugin:
    """A program that prints the file ``answer`` and counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plugin"
        self._answer = folder / "answer"
        self._runs = folder / "runs"
        self.does(f"cat {self._answer}")

    def does(self, script: str) -> None:
        """Let it run ``script`` from now on."""
        self.path.write_text(f"#!/bin/sh\necho run >> {self._runs}\n{script}\n", encoding="utf-8")
        self.path.chmod(0o755)

    def prints(self, text: str) -> None:
        """Let it print ``text`` from now on."""
        self._answer.write_text(text, encoding="utf-8")

    def gives(self, **status: object) -> None:
        """Let it hand out this credential from now on."""
        self.prints(credential(**status))

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self._runs.read_text(encoding="utf-8").split()) if self._runs.exists() else 0

    def config(self, *, tls: TlsConfig | None = None, **settings: object) -> Config:
        """Return a configuration with this plugin."""
        plugin = ExecPlugin(**{"command": str(self.path), **settings})  # type: ignore[arg-type]
        return Config(
            server="https://api.example:6443",
            tls=tls or TlsConfig(),
            exec_plugin=plugin,
            origin=ORIGIN,
        )

"""kubeconfigs for tests: small ones, written out as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

Entry: TypeAlias = dict[str, object]

SERVER = "https://api.example:6443"


def document(
    *,
    cluster: Entry | None = None,
    user: Entry | None = None,
    context: Entry | None = None,
    name: str = "dev",
) -> Entry:
    """Return a kubeconfig with one context whose parts are all called ``name``."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
    }


def write(path: Path, content: Entry | str) -> str:
    """Write a kubeconfig, readable by its owner alone, and return its path as text."""
    text = content if isinstance(content, str) else json.dumps(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return str(path)

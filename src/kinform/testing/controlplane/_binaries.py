"""Locates the servers' binaries, and checks their versions.

Searched in this order: ``KUBEBUILDER_ASSETS``, the per-user cache that ``make control-plane``
fills, and ``PATH``. The first one found must have the right version: a wrong one is refused by
name, never skipped silently.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kinform.testing.errors import ControlPlaneUnavailable

__all__ = ["KUBERNETES_VERSION", "cache_folder", "find"]

KUBERNETES_VERSION: Final = "1.36.4"
"""The release that ``make control-plane`` builds; any patch release of its minor is accepted."""

_MINOR: Final = tuple(int(part) for part in KUBERNETES_VERSION.split(".")[:2])
_ETCD_MINIMUM: Final = (3, 6, 0)
"""Older ones lack flags used here; those before 3.5.13 are refused by kube-apiserver as well."""
_VERSION_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "etcd": ("--version",),
    "etcdutl": ("version",),
    "kube-apiserver": ("--version",),
    "kube-controller-manager": ("--version",),
    "kubectl": ("version", "--client"),
}
_ARCHITECTURES: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64"}
_ADVICE: Final = "`make control-plane` in a checkout of kinform builds the right ones"
_PROBE_TIMEOUT: Final = 60.0


def cache_folder() -> Path:
    """Return the folder that ``make control-plane`` fills, whether it exists or not."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    machine = platform.machine().lower()
    system = f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"
    return root / "kinform" / "control-plane" / f"{KUBERNETES_VERSION}-{system}"


def find(name: str) -> Path:
    """Return the binary ``name``, which is there and has the right version.

    Runs it once per process to ask for its version.

    Raises:
        ControlPlaneUnavailable: It is nowhere, or the first one found is of another version.
    """
    looked: list[str] = []
    for place, folder in _places():
        path = shutil.which(name, path=folder) if folder else None
        if path is not None:
            found = Path(path).absolute()
            _check(name, found, place=place)
            return found
        looked.append(f"{place} ({folder or 'not set'})")
    raise ControlPlaneUnavailable(f"{name} not found in {', '.join(looked)}; {_ADVICE}")


def _places() -> list[tuple[str, str | None]]:
    """Return what is searched, in order, each as a label and a search path."""
    return [
        ("KUBEBUILDER_ASSETS", os.environ.get("KUBEBUILDER_ASSETS")),
        ("the cache", str(cache_folder())),
        ("PATH", os.environ.get("PATH")),
    ]


def _check(name: str, path: Path, *, place: str) -> None:
    """Refuse a binary of the wrong version."""
    said = _version_output(path, _VERSION_ARGUMENTS[name])
    version = _version_in(said)
    if version is None:
        first = said.strip().partition("\n")[0]
        raise ControlPlaneUnavailable(
            f"{path} (from {place}) tells no version: {first!r}; {_ADVICE}"
        )
    if name.startswith("etcd"):
        accepted, wanted = version >= _ETCD_MINIMUM, "3.6.0 or newer"
    else:
        accepted, wanted = version[:2] == _MINOR, ".".join(map(str, _MINOR)) + ".x"
    if not accepted:
        shown = ".".join(map(str, version))
        raise ControlPlaneUnavailable(
            f"{name} {shown} at {path} (from {place}) is refused, {wanted} is wanted; {_ADVICE}"
        )


def _version_in(text: str) -> tuple[int, int, int] | None:
    """Return the first ``x.y.z`` in what a binary says about itself."""
    found = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


@functools.cache
def _version_output(path: Path, arguments: tuple[str, ...]) -> str:
    try:
        run = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ControlPlaneUnavailable(f"{path} cannot be run: {error}; {_ADVICE}") from error
    return run.stdout.decode(errors="replace")

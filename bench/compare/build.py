"""What has to be there before a run: programs, and the pods in both encodings.

A peer whose tools are missing is left out, and the record says why.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.compare.peers import (
    BUILD,
    CLIENT_GO,
    CLIENT_GO_PROGRAM,
    KINFORM,
    KUBE_RS_PROGRAM,
    ROOT,
    UVLOOP,
    ZSTD,
    Peer,
)

__all__ = ["BuildError", "built", "protobuf_corpus"]

_TIMEOUT: Final = 1_200.0
_IMPORTS: Final[Mapping[str, Sequence[str]]] = {
    KINFORM: ("kinform", "aiohttp", "msgspec"),
    "lightkube": ("lightkube",),
    "kubernetes": ("kubernetes",),
    "kubernetes_asyncio": ("kubernetes_asyncio",),
    "kopf": ("kopf",),
    "kr8s": ("kr8s",),
    UVLOOP.label: ("uvloop",),
    ZSTD.label: ("zstandard",),
}
"""What the Python peers import."""


class BuildError(Exception):
    """Something that a run needs cannot be made."""


def built(
    peers: Iterable[Peer], *, tell: Callable[[str], None]
) -> tuple[list[Peer], dict[str, str]]:
    """Build what these peers need; return those that can run, and why the others cannot."""
    able: list[Peer] = []
    left_out: dict[str, str] = {}
    reasons: dict[str, str | None] = {}
    for peer in peers:
        if peer.name not in reasons:
            reasons[peer.name] = _reason_against(peer.name, tell)
        reason = reasons[peer.name] or _missing_import(peer)
        if reason is None:
            able.append(peer)
        else:
            left_out[peer.label] = reason
    return able, left_out


def protobuf_corpus(source: Path, *, tell: Callable[[str], None]) -> Path:
    """Return the protobuf twin of a file of pods; client-go's own encoder writes it, once.

    Raises:
        BuildError: It cannot.
    """
    twin = source.with_name(source.name.replace(".json.bin", ".proto.bin"))
    if twin.exists() and twin.stat().st_mtime_ns >= source.stat().st_mtime_ns:
        return twin
    tell(f"encoding {source.name} as protobuf")
    unfinished = twin.with_name(f"{twin.name}.unfinished")
    _run([str(CLIENT_GO_PROGRAM), "encode", str(source), str(unfinished)], folder=ROOT)
    return unfinished.replace(twin)


def _reason_against(name: str, tell: Callable[[str], None]) -> str | None:
    try:
        if name == CLIENT_GO:
            _build_client_go(tell)
        elif name == "kube-rs":
            _build_kube_rs(tell)
    except BuildError as exc:
        return str(exc)
    return None


def _missing_import(peer: Peer) -> str | None:
    for key in (peer.name, peer.label):
        for module in _IMPORTS.get(key, ()):
            if importlib.util.find_spec(module) is None:
                return f"{module} is not installed (`make venv` installs it)"
    return None


def _build_client_go(tell: Callable[[str], None]) -> None:
    folder = ROOT / "bench" / "peers" / "client-go"
    if shutil.which("go") is None:
        raise BuildError("there is no Go toolchain to build it with")
    tell("building client-go's peer (the first time takes minutes)")
    _run(["go", "build", "-p", "2", "-o", str(CLIENT_GO_PROGRAM), "."], folder=folder)


def _build_kube_rs(tell: Callable[[str], None]) -> None:
    folder = ROOT / "bench" / "peers" / "kube-rs"
    if shutil.which("cargo") is None:
        raise BuildError("there is no Rust toolchain to build it with")
    tell("building kube-rs' peer (the first time takes minutes)")
    target = KUBE_RS_PROGRAM.parents[1]
    _run(["cargo", "build", "--release", "-j", "2", "--target-dir", str(target)], folder=folder)


def _run(command: Sequence[str], *, folder: Path) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            list(command), cwd=folder, check=False, capture_output=True, timeout=_TIMEOUT, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise BuildError(f"{command[0]}: {exc}") from exc
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-6:])
        raise BuildError(f"`{' '.join(command[:2])}` failed: {tail}")

"""The prerequisites of a run: programs, and the pods in both encodings.

A peer whose tools are missing is left out, and the record says why.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.compare.peers import (
    BUILD,
    CLIENT_GO,
    CLIENT_GO_PROGRAM,
    KINFORM,
    KUBE_RS,
    KUBE_RS_PROGRAM,
    ROOT,
    UVLOOP,
    ZSTD,
    Peer,
)

__all__ = ["PROGRAMS", "BuildError", "Program", "build", "built", "missing", "protobuf_corpus"]

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
"""The imports of the Python peers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A peer that has to be built."""

    folder: Path
    language: str
    command: tuple[str, ...]
    """Builds it, in ``folder``."""


PROGRAMS: Final[Mapping[str, Program]] = {
    CLIENT_GO: Program(
        folder=ROOT / "bench" / "peers" / "client-go",
        language="Go",
        command=("go", "build", "-p", "2", "-o", str(CLIENT_GO_PROGRAM), "."),
    ),
    KUBE_RS: Program(
        folder=ROOT / "bench" / "peers" / "kube-rs",
        language="Rust",
        command=(
            "cargo", "build", "--release", "-j", "2", "--target-dir",
            str(KUBE_RS_PROGRAM.parents[1]),
        ),
    ),
}  # fmt: skip
"""By the names of their peers."""


class BuildError(Exception):
    """Something that a run needs cannot be made."""


def build(names: Sequence[str], *, tell: Callable[[str], None]) -> None:
    """Build these programs; without names all, but Rust's only where cargo is.

    Raises:
        BuildError: One cannot be built.
    """
    for name in names or PROGRAMS:
        if not names and name == KUBE_RS and shutil.which("cargo") is None:
            tell(f"{name} is left out: cargo was not found")
            continue
        if (reason := _reason_against(name, tell)) is not None:
            raise BuildError(f"{name} is not built: {reason}")
        tell(f"{name} is built")


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


def missing(peer: Peer) -> str | None:
    """Return what this peer lacks to run as things are, and how to get it; None if nothing."""
    path = Path(peer.command[0])
    if peer.name in PROGRAMS and not path.exists():
        return f"{path.name} is not built (`make bench-peers ARGS={peer.name}` builds it)"
    return _missing_import(peer)


def _reason_against(name: str, tell: Callable[[str], None]) -> str | None:
    if name not in PROGRAMS:
        return None
    try:
        _build(name, tell)
    except BuildError as exc:
        return str(exc)
    return None


def _missing_import(peer: Peer) -> str | None:
    for key in (peer.name, peer.label):
        for module in _IMPORTS.get(key, ()):
            if importlib.util.find_spec(module) is None:
                return f"{module} is not installed (`make venv` installs it)"
    return None


def _build(name: str, tell: Callable[[str], None]) -> None:
    program = PROGRAMS[name]
    if shutil.which(program.command[0]) is None:
        raise BuildError(f"there is no {program.language} toolchain to build it with")
    tell(f"building the peer of {name} (the first time takes minutes)")
    _run(program.command, folder=program.folder)


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

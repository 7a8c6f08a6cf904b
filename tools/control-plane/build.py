"""Build the control plane that kinform's e2e tests run on, into a per-user cache folder.

etcd, etcdutl, kube-apiserver, kube-controller-manager and kubectl are compiled from the
``go.mod`` beside this file, which alone says which versions. Only python3 (3.11 or newer) and
Go are needed. What is up to date is not built again; an interrupted run goes on where it
stopped; two runs at once wait for each other.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MODULE: Final = Path(__file__).resolve().parent
PACKAGES: Final[Mapping[str, str]] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
"""Each binary and the Go package it is built from."""
VERSION_VARIABLES: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
HEARTBEAT: Final = 30.0
"""Seconds between two signs of life of a long build."""
ARCHITECTURES: Final[Mapping[str, str]] = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
}


class BuildError(Exception):
    """The build cannot go on; the message is for people, and complete."""


def say(text: str) -> None:
    """Print ``text`` on stderr, at once."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return ``seconds`` as people read it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def from_go_mod(pattern: str) -> str:
    """Return the first group of ``pattern`` in go.mod, matched on one line."""
    path = MODULE / "go.mod"
    found = re.search(pattern, path.read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{path}: no line matches {pattern}")
    return found[1]


def kubernetes_version() -> str:
    """Return the version to build, without the leading ``v``."""
    return from_go_mod(r"^\s*(?:require\s+)?k8s\.io/kubernetes v(\d+\.\d+\.\d+)")


def target() -> tuple[str, str]:
    """Return this machine's GOOS and GOARCH."""
    machine = platform.machine().lower()
    return platform.system().lower(), ARCHITECTURES.get(machine, machine)


def cache_folder() -> Path:
    """Return the folder the binaries go to; ``kinform.testing`` looks in the same one."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    goos, goarch = target()
    return root / "kinform" / "control-plane" / f"{kubernetes_version()}-{goos}-{goarch}"


def link_flags() -> str:
    """Return the value of ``-ldflags``: stripped, and with the version ``/version`` reports."""
    version = kubernetes_version()
    major, minor, _ = version.split(".")
    values = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    sets = (f"-X {path}.{name}={v}" for path in VERSION_VARIABLES for name, v in values.items())
    return " ".join(["-s -w", *sets])


def digest() -> str:
    """Return a hash of all that decides what the binaries are."""
    parts = [(MODULE / "go.mod").read_bytes(), (MODULE / "go.sum").read_bytes()]
    parts += [link_flags().encode(), repr(target()).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def go_command() -> str:
    """Return the path of ``go``.

    Raises:
        BuildError: Go is missing, or older than go.mod asks for.
    """
    wanted = from_go_mod(r"^go (\d+\.\d+)")
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"Go is not on PATH; install Go {wanted} or newer")
    run = subprocess.run(
        [go, "env", "GOVERSION"],
        env=go_environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.match(r"go(\d+)\.(\d+)", run.stdout)
    if found is None:
        said = (run.stderr or run.stdout).strip()
        raise BuildError(f"{go} does not tell its version; install Go {wanted} or newer: {said}")
    if (int(found[1]), int(found[2])) < tuple(map(int, wanted.split("."))):
        version = run.stdout.strip().removeprefix("go")
        raise BuildError(f"{go} is Go {version}; install Go {wanted} or newer")
    return go


def go_environment() -> dict[str, str]:
    """Return the environment of go: this machine, no cgo, no surprise from outside."""
    goos, goarch = target()
    fixed = {"CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch, "GOWORK": "off"}
    return os.environ | fixed | {"GOTOOLCHAIN": "local"}


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Keep a second build of the same folder waiting."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Manifest:
    """The sources of each binary in a folder, kept in ``manifest.json``."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "manifest.json"
        self._folder = folder
        try:
            self._built: dict[str, str] = json.loads(self._path.read_text())
        except (FileNotFoundError, ValueError):
            self._built = {}

    def missing(self, wanted: str) -> list[str]:
        """Return the binaries that are not there, or not built from ``wanted``."""
        return [
            name
            for name in PACKAGES
            if self._built.get(name) != wanted or not (self._folder / name).is_file()
        ]

    def add(self, name: str, built_from: str) -> None:
        """Record that ``name`` stands complete in the folder."""
        self._built[name] = built_from
        draft = self._path.with_suffix(".tmp")
        draft.write_text(json.dumps(self._built, indent=1, sort_keys=True) + "\n")
        draft.replace(self._path)


def compile_binary(name: str, folder: Path, *, go: str) -> None:
    """Build one binary and put it in place in one step, so that none is ever half there."""
    command = [go, "build", "-trimpath", "-mod=readonly", "-ldflags", link_flags()]
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as scratch:
        draft = Path(scratch) / name
        with (Path(scratch) / "log").open("w+") as log:
            code = run_with_heartbeat(
                [*command, "-o", str(draft), PACKAGES[name]], name=name, log=log.fileno()
            )
            log.seek(0)
            said = log.read().strip()
        if code:
            raise BuildError(f"{name}: go build failed with exit code {code}\n{said}")
        draft.replace(folder / name)


def run_with_heartbeat(command: list[str], *, name: str, log: int) -> int:
    """Run ``command``, saying every now and then that it still runs; return its exit code."""
    start = time.monotonic()
    with subprocess.Popen(
        command, cwd=MODULE, env=go_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
    ) as process:
        try:
            while True:
                try:
                    return process.wait(HEARTBEAT)
                except subprocess.TimeoutExpired:
                    say(f"  {name}: still building, {duration(time.monotonic() - start)}")
        except BaseException:
            process.kill()
            raise


def build(folder: Path, *, force: bool = False) -> None:
    """Bring every binary in ``folder`` up to date."""
    wanted = digest()
    if not force and not Manifest(folder).missing(wanted):
        say(f"control plane {kubernetes_version()} is up to date in {folder}")
        return
    go = go_command()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        manifest = Manifest(folder)
        names = list(PACKAGES) if force else manifest.missing(wanted)
        say(f"building the control plane {kubernetes_version()} (minutes, the first time)")
        for number, name in enumerate(names, 1):
            say(f"[{number}/{len(names)}] {name}")
            start = time.monotonic()
            compile_binary(name, folder, go=go)
            manifest.add(name, wanted)
            size = (folder / name).stat().st_size / 1e6
            say(f"  {name}: {size:.0f} MB in {duration(time.monotonic() - start)}")
    say(f"control plane {kubernetes_version()} is ready in {folder}")


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--force", action="store_true", help="build all, even what is up to date")
    parser.add_argument(
        "--print-path", action="store_true", help="print the cache folder and build nothing"
    )
    options = parser.parse_args()
    try:
        if options.print_path:
            print(cache_folder())
        else:
            build(cache_folder(), force=options.force)
    except (BuildError, OSError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next run goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

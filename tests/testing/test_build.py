"""The build tool, with a quick ``go``: a shell script that writes the expected output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from kinform.testing.controlplane import _binaries

FOLDER = Path(__file__).parents[2] / "tools" / "control-plane"
ALL = ["etcd", "etcdutl", "kube-apiserver", "kube-controller-manager", "kubectl"]
GO = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit; fi
{before}
while [ $# -gt 0 ]; do [ "$1" = -o ] && out="$2"; last="$1"; shift; done
echo "$last" >> {log}
echo "$last" > "$out"
"""


@dataclass
class Bench:
    """A cache of its own and a ``go`` of its own."""

    root: Path

    @property
    def cache(self) -> Path:
        return Path(self.run("--print-path").stdout.strip())

    @property
    def built(self) -> list[str]:
        """The packages ``go build`` was asked for, in order."""
        log = self.root / "log"
        return log.read_text(encoding="utf-8").split() if log.exists() else []

    def install_go(self, *, version: str = "go1.26.1", before: str = ":") -> None:
        go = self.root / "bin" / "go"
        go.parent.mkdir(exist_ok=True)
        script = GO.format(version=version, before=before, log=self.root / "log")
        go.write_text(script, encoding="utf-8")
        go.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"XDG_CACHE_HOME": str(self.root), "PATH": f"{self.root / 'bin'}"}
        command = [sys.executable, str(FOLDER / "build.py"), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.install_go()
    return bench


def test_the_harness_and_the_build_agree_on_version_and_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_mod = (FOLDER / "go.mod").read_text(encoding="utf-8")
    assert re.search(rf"k8s\.io/kubernetes v{re.escape(_binaries.KUBERNETES_VERSION)}\b", go_mod)
    monkeypatch.setenv("XDG_CACHE_HOME", str(bench.root))
    assert bench.cache == _binaries.cache_folder()


def test_every_binary_is_built_and_told_about(bench: Bench) -> None:
    run = bench.run()
    assert run.returncode == 0, run.stderr
    assert [path.name for path in sorted(bench.cache.iterdir()) if path.suffix == ""] == [
        ".lock",
        *ALL,
    ]
    assert len(bench.built) == len(ALL)
    assert "[3/5] kube-apiserver" in run.stderr


def test_a_second_run_builds_nothing_and_needs_no_go(bench: Bench) -> None:
    bench.run()
    (bench.root / "bin" / "go").unlink()
    run = bench.run()
    assert (run.returncode, len(bench.built)) == (0, len(ALL))
    assert "is up to date" in run.stderr


def test_only_what_is_missing_is_built(bench: Bench) -> None:
    bench.run()
    (bench.cache / "kubectl").unlink()
    bench.run()
    assert bench.built[len(ALL) :] == ["k8s.io/kubernetes/cmd/kubectl"]


def test_what_was_built_from_other_sources_is_built_again(bench: Bench) -> None:
    bench.run()
    manifest = bench.cache / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(re.sub(r'("etcd": ")\w+', r"\1other", text), encoding="utf-8")
    bench.run()
    assert bench.built[len(ALL) :] == ["go.etcd.io/etcd/server/v3"]


def test_force_builds_all_again(bench: Bench) -> None:
    bench.run()
    bench.run("--force")
    assert len(bench.built) == 2 * len(ALL)


def test_a_failed_build_shows_what_go_said_and_leaves_no_half_binary(bench: Bench) -> None:
    bench.install_go(before="echo 'missing go.sum entry for module' >&2; exit 1")
    run = bench.run()
    assert run.returncode == 1
    assert "error: etcd: go build failed with exit code 1\nmissing go.sum entry" in run.stderr
    assert [path.name for path in bench.cache.iterdir()] == [".lock"]


def test_an_interrupted_run_goes_on_where_it_stopped(bench: Bench) -> None:
    bench.install_go(before=f"[ -e {bench.root / 'log'} ] && exit 1")
    bench.run()
    bench.install_go()
    bench.run()
    assert len(bench.built) == len(ALL)


@pytest.mark.parametrize(
    "version, complaint",
    [
        ("go1.25.9", "is Go 1.25.9; install Go 1.26 or newer"),
        ("nonsense", "does not tell its version; install Go 1.26 or newer"),
    ],
)
def test_an_old_go_is_a_one_line_error(bench: Bench, version: str, complaint: str) -> None:
    bench.install_go(version=version)
    run = bench.run()
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert complaint in run.stderr


def test_a_missing_go_is_a_one_line_error(bench: Bench) -> None:
    (bench.root / "bin" / "go").unlink()
    run = bench.run()
    assert run.returncode == 1
    assert run.stderr == "error: Go is not on PATH; install Go 1.26 or newer\n"


def test_help_says_what_it_builds(bench: Bench) -> None:
    run = bench.run("--help")
    assert run.returncode == 0
    assert "--print-path" in run.stdout

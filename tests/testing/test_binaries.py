"""Binaries: the one that is taken, and the errors if none can be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kinform.testing.controlplane import _binaries
from kinform.testing.errors import ControlPlaneUnavailable

GOOD = {
    "etcd": "etcd Version: 3.7.3\nGit SHA: Not provided",
    "etcdutl": "etcdutl version: 3.6.0\nAPI version: 3.6",
    "kube-apiserver": "Kubernetes v1.36.4",
    "kube-controller-manager": "Kubernetes v1.36.0",
    "kubectl": "Client Version: v1.36.4-dispatcher\nKustomize Version: v5.8.1",
}


def install(folder: Path, name: str, *, says: str) -> Path:
    """Put an executable there that answers as a real one does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The three places to look in, all empty; ``cat`` stays in reach of the fakes."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin:/usr/bin")
    return {
        "assets": tmp_path / "assets",
        "cache": _binaries.cache_folder(),
        "path": tmp_path / "path",
    }


@pytest.mark.parametrize("name", GOOD)
def test_every_binary_is_found_and_its_version_understood(
    places: dict[str, Path], name: str
) -> None:
    expected = install(places["cache"], name, says=GOOD[name])
    assert _binaries.find(name) == expected


def test_assets_come_before_the_cache_and_the_cache_before_path(places: dict[str, Path]) -> None:
    found: list[Path] = []
    for place in ("path", "cache", "assets"):
        install(places[place], "etcd", says=GOOD["etcd"])
        found.append(_binaries.find("etcd"))
    assert found == [places[place] / "etcd" for place in ("path", "cache", "assets")]


def test_each_binary_is_looked_for_on_its_own(places: dict[str, Path]) -> None:
    install(places["assets"], "etcd", says=GOOD["etcd"])
    expected = install(places["cache"], "etcdutl", says=GOOD["etcdutl"])
    assert _binaries.find("etcdutl") == expected


def test_a_missing_binary_names_every_place_and_the_cure(places: dict[str, Path]) -> None:
    with pytest.raises(ControlPlaneUnavailable) as caught:
        _binaries.find("kube-controller-manager")
    message = str(caught.value)
    assert message.startswith("kube-controller-manager not found in KUBEBUILDER_ASSETS (")
    assert all(str(folder) in message for folder in places.values())
    assert "make control-plane" in message


def test_an_unset_variable_is_called_that(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    with pytest.raises(ControlPlaneUnavailable, match=r"KUBEBUILDER_ASSETS \(not set\)"):
        _binaries.find("etcdutl")


@pytest.mark.parametrize(
    "name, says, complaint",
    [
        ("etcd", "etcd Version: 3.4.23", "etcd 3.4.23 at {} .* is refused, 3.6.0 or newer"),
        ("kube-apiserver", "Kubernetes v1.35.9", "kube-apiserver 1.35.9 at {} .*, 1.36.x is"),
        ("kube-apiserver", "Kubernetes v1.37.0", "kube-apiserver 1.37.0 at {} .*, 1.36.x is"),
        ("kubectl", "Client Version: v1.32.4-dispatcher", "kubectl 1.32.4 at {} "),
        ("kube-apiserver", "Kubernetes dev", "{} .* tells no version: 'Kubernetes dev'"),
    ],
)
def test_a_wrong_version_is_refused_by_name_with_the_cure(
    places: dict[str, Path], name: str, says: str, complaint: str
) -> None:
    path = install(places["path"], name, says=says)
    expected = complaint.format(re.escape(str(path))) + ".*make control-plane"
    with pytest.raises(ControlPlaneUnavailable, match=expected):
        _binaries.find(name)


def test_a_wrong_version_is_not_passed_over_for_a_right_one_further_on(
    places: dict[str, Path],
) -> None:
    install(places["assets"], "etcd", says="etcd Version: 3.5.30")
    install(places["cache"], "etcd", says=GOOD["etcd"])
    with pytest.raises(ControlPlaneUnavailable, match="from KUBEBUILDER_ASSETS"):
        _binaries.find("etcd")


def test_a_file_for_another_machine_is_named(places: dict[str, Path]) -> None:
    path = install(places["cache"], "etcd", says="")
    path.write_bytes(b"\x7fELF no")
    with pytest.raises(ControlPlaneUnavailable, match=f"{re.escape(str(path))} cannot be run"):
        _binaries.find("etcd")

"""The generator: the same input gives the same text, and every name has one spelling."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinform.clientset
from kinform.clientset.codegen.names import attribute_name, class_name, snake_case, unique
from tools.clientset.__main__ import HOME, written


def test_what_is_committed_is_what_the_generator_writes() -> None:
    for path, text in written().items():
        assert path.read_text("utf-8") == text, f"{path.name}: run `make clientset`"


def test_writing_twice_gives_the_same_text() -> None:
    assert written() == written()


def test_every_module_is_offered_and_no_other() -> None:
    modules = {path.stem for path in HOME.glob("*_v*.py")}
    assert modules | {"ownership", "quantity", "times"} == set(kinform.clientset.__all__)
    assert set(kinform.clientset.__all__) <= set(dir(kinform.clientset))
    with pytest.raises(AttributeError, match="has no attribute 'app_v1'"):
        getattr(kinform.clientset, "app_v1")  # noqa: B009 - a checker would see the mistake


@pytest.mark.parametrize(
    "wire, name",
    [
        ("podIP", "pod_ip"),
        ("podIPs", "pod_ips"),
        ("clusterIPs", "cluster_ips"),
        ("nonResourceURLs", "non_resource_urls"),
        ("podCIDRs", "pod_cidrs"),
        ("runAsUser", "run_as_user"),
        ("fsGroup", "fs_group"),
        ("machineID", "machine_id"),
        ("systemUUID", "system_uuid"),
        ("x-kubernetes-list-map-keys", "x_kubernetes_list_map_keys"),
        ("sha256Sum", "sha256_sum"),
        ("HTTPGet", "http_get"),
    ],
)
def test_wire_names_have_a_spelling_in_python(wire: str, name: str) -> None:
    assert snake_case(wire) == name


@given(st.lists(st.text(max_size=6), max_size=8, unique=True))
def test_any_wire_names_become_attributes_that_differ(wires: list[str]) -> None:
    names: set[str] = set()
    for wire in wires:
        name = attribute_name(wire, names)
        assert name.isidentifier()
        assert not name.startswith("__")
        assert name not in names
        names.add(name)


@given(st.text(max_size=10), st.sets(st.sampled_from(["Model", "A", "A2"])))
def test_any_text_becomes_a_class_that_is_free(text: str, taken: set[str]) -> None:
    name = unique(class_name(text), taken)
    assert name.isidentifier()
    assert name not in taken


@pytest.mark.slow
def test_the_check_notices_a_file_that_was_changed(tmp_path: Path) -> None:
    """On a copy of the sources, one of them with a line more."""
    root = HOME.parents[2]
    for folder in ("src", "tools", "docs"):
        subprocess.run(["cp", "-r", root / folder, tmp_path / folder], check=True)
    command = [sys.executable, "-m", "tools.clientset", "--check"]
    env = {"PYTHONPATH": f"{tmp_path / 'src'}:{tmp_path}"}

    def check() -> tuple[int, str]:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=tmp_path, env=env
        )
        return done.returncode, done.stdout

    assert check() == (0, "")
    with (tmp_path / "src/kinform/clientset/apps_v1.py").open("a", encoding="utf-8") as file:
        file.write("# more\n")
    assert check() == (1, "src/kinform/clientset/apps_v1.py is not as `make clientset` writes it\n")

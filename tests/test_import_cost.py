"""The cost of an import, and the modules it must not load. Each import in a new interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

LOADED = "import sys; before = set(sys.modules); import {}; print(*(set(sys.modules) - before))"
TIMED = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def output(code: str, env: Mapping[str, str] | None = None) -> list[str]:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return done.stdout.split()


def test_import_kinform_loads_only_the_lazy_exports_and_no_dependency() -> None:
    loaded = output(LOADED.format("kinform"))
    assert not {"aiohttp", "asyncio", "msgspec", "yaml"}.intersection(loaded)
    ours = {name for name in loaded if name.startswith("kinform")}
    assert ours == {"kinform", "kinform._lazy"}


def test_import_kinform_sync_starts_nothing_and_loads_no_dependency() -> None:
    loaded = output(LOADED.format("kinform.sync"))
    assert not {"aiohttp", "asyncio", "msgspec", "yaml"}.intersection(loaded)


def test_the_pytest_plugin_loads_no_other_module_of_ours() -> None:
    """Every pytest run loads the plugin, even of users who do not know kinform."""
    loaded = output("import pytest;" + LOADED.format("kinform.testing.plugin"))
    ours = {name for name in loaded if name.startswith("kinform")}
    assert ours == {"kinform", "kinform._lazy", "kinform.testing", "kinform.testing.plugin"}
    assert not {"aiohttp", "asyncio", "cryptography", "msgspec", "yaml"}.intersection(loaded)


@pytest.mark.slow
def test_import_kinform_costs_little_more_than_its_base() -> None:
    """At most 1.6 times ``import asyncio, msgspec``: the best of interleaved runs of both."""
    ours, base = [], []
    for _ in range(5):
        ours.append(float(*output(TIMED.format("kinform"))))
        base.append(float(*output(TIMED.format("asyncio, msgspec"))))
    assert min(ours) <= 1.6 * min(base)


def test_a_client_loads_no_group_before_it_is_used() -> None:
    loaded = output(LOADED.format("kinform.client"))
    ours = {name for name in loaded if name.startswith("kinform.clientset")}
    assert ours == {"kinform.clientset", "kinform.clientset.groups"}


def test_a_group_of_models_loads_those_it_is_made_of_and_no_client() -> None:
    loaded = output(LOADED.format("kinform.clientset.rbac_v1"))
    assert {name for name in loaded if name.startswith("kinform")} == {
        "kinform",
        "kinform._lazy",
        "kinform.clientset",
        "kinform.clientset.meta_v1",
        "kinform.clientset.rbac_v1",
        "kinform.clientset.wire",
        "kinform.meta",
    }
    assert "aiohttp" not in loaded


@pytest.mark.slow
def test_the_largest_groups_of_models_cost_at_most_twice_as_much_as_msgspec(tmp_path: Path) -> None:
    """With bytecode, as an installed package has it: the best of interleaved runs."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    names = ("msgspec", "kinform.clientset.core_v1", "kinform.clientset.apps_v1")
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(6):
        for name in names:
            times[name].append(float(*output(TIMED.format(name), env)))
    base, *groups = (min(taken) for taken in times.values())
    assert max(groups) <= 2 * base

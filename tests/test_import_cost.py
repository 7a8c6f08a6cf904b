"""What an import costs, and what it must not load. Each import in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "import sys; before = set(sys.modules); import {}; print(*(set(sys.modules) - before))"
TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def output(code: str) -> list[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_import_kinform_loads_no_other_module_of_ours_and_no_dependency() -> None:
    loaded = output(LOADED.format("kinform"))
    assert not {"aiohttp", "asyncio", "msgspec", "yaml"}.intersection(loaded)
    assert [name for name in loaded if name.startswith("kinform")] == ["kinform"]


def test_import_kinform_sync_starts_nothing_and_loads_no_dependency() -> None:
    loaded = output(LOADED.format("kinform.sync"))
    assert not {"aiohttp", "asyncio", "msgspec", "yaml"}.intersection(loaded)


def test_the_pytest_plugin_loads_no_other_module_of_ours() -> None:
    """Every pytest run loads it, of people who may not even know that kinform is installed."""
    loaded = output("import pytest;" + LOADED.format("kinform.testing.plugin"))
    ours = {name for name in loaded if name.startswith("kinform")}
    assert ours == {"kinform", "kinform.testing", "kinform.testing.plugin"}
    assert not {"aiohttp", "asyncio", "cryptography", "msgspec", "yaml"}.intersection(loaded)


@pytest.mark.slow
def test_import_kinform_costs_little_more_than_its_base() -> None:
    """At most 1.6 times ``import asyncio, msgspec``: the best of interleaved runs of both."""
    ours, base = [], []
    for _ in range(5):
        ours.append(float(*output(TIMED.format("kinform"))))
        base.append(float(*output(TIMED.format("asyncio, msgspec"))))
    assert min(ours) <= 1.6 * min(base)

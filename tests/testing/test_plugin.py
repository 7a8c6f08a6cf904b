"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

USES_THE_FIXTURE = """
def test_something(kinform_control_plane):
    assert kinform_control_plane.url
"""
USES_THE_FACTORY = """
import asyncio

def test_something(kinform_control_plane_factory):
    async def use():
        async with kinform_control_plane_factory(apiservers=2):
            pass
    asyncio.run(use())
"""
LOOKS_AT_MODULES = """
import sys

def test_nothing_of_kinform_is_loaded():
    loaded = {name for name in sys.modules if name.startswith("kinform")}
    assert loaded == {"kinform", "kinform._lazy", "kinform.testing", "kinform.testing.plugin"}
"""


@pytest.fixture
def runner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> pytest.Pytester:
    """A pytest whose machine has no binaries."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KINFORM_REQUIRE_CONTROL_PLANE", raising=False)
    return pytester


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [USES_THE_FIXTURE, USES_THE_FACTORY], ids=["fixture", "factory"]
)
def test_without_binaries_a_test_is_skipped_with_the_reason_and_the_cure(
    runner: pytest.Pytester, program: str
) -> None:
    runner.makepyfile(program)
    result = runner.runpytest_subprocess("-rs", "-p", "no:randomly")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*etcd not found in *make control-plane*"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [USES_THE_FIXTURE, USES_THE_FACTORY], ids=["fixture", "factory"]
)
def test_without_binaries_a_test_fails_where_skipping_is_forbidden(
    runner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("KINFORM_REQUIRE_CONTROL_PLANE", "1")
    runner.makepyfile(program)
    result = runner.runpytest_subprocess("-p", "no:randomly")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*etcd not found in *KINFORM_REQUIRE_CONTROL_PLANE=1*"])


@pytest.mark.slow
def test_the_plugin_loads_nothing_of_kinform_until_a_fixture_is_used(
    runner: pytest.Pytester,
) -> None:
    runner.makepyfile(LOOKS_AT_MODULES)
    runner.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_fixtures_describe_themselves(runner: pytest.Pytester) -> None:
    result = runner.runpytest_subprocess("--fixtures", "-p", "no:randomly")
    result.stdout.fnmatch_lines(
        ["kinform_control_plane *", "kinform_control_plane_factory *", "kinform_namespace *"]
    )

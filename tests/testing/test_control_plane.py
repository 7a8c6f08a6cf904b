"""`ControlPlane` without servers: options, misuse, kubeconfigs, lazy loading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import kinform.testing
from kinform.errors import UsageError
from kinform.testing import ControlPlane
from kinform.testing.controlplane import users
from kinform.testing.controlplane._pki import CertificateAuthority
from kinform.testing.errors import ControlPlaneUnavailable


def test_at_least_one_apiserver_is_needed() -> None:
    with pytest.raises(UsageError, match="apiservers=0"):
        ControlPlane(apiservers=0)


def test_a_string_is_no_list_of_strings() -> None:
    with pytest.raises(UsageError, match="controllers is a sequence of strings"):
        ControlPlane(controllers="garbage-collector-controller")
    with pytest.raises(UsageError, match="apiserver_flags is a sequence of strings"):
        ControlPlane(apiserver_flags="--v=4")


@pytest.mark.parametrize("name", ["url", "urls", "config", "kubeconfig_path", "raw_apis"])
def test_before_the_start_there_is_no_way_in(name: str) -> None:
    with pytest.raises(UsageError, match="not started"):
        getattr(ControlPlane(), name)


@pytest.mark.parametrize("seconds", [-1.0, 40.0, float("nan")])
def test_a_lag_the_apiserver_would_not_survive_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="less than 40"):
        ControlPlane(etcd_relay=True).lag(0, seconds)


def test_lag_without_a_relay_says_how_to_get_one() -> None:
    with pytest.raises(UsageError, match=r"ControlPlane\(etcd_relay=True\)"):
        ControlPlane().lag(0, 5)


def test_closing_what_was_never_started_is_nothing() -> None:
    control_plane = ControlPlane()
    control_plane.close()
    assert control_plane.log_tails() == {}


async def test_missing_binaries_are_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBEBUILDER_ASSETS", "XDG_CACHE_HOME", "PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(ControlPlaneUnavailable, match="etcd not found"):
        async with ControlPlane():
            pass


def test_a_kubeconfig_has_a_context_per_apiserver() -> None:
    pair = CertificateAuthority().client("reader")
    data = users.kubeconfig(["https://a", "https://b"], users.login(pair), ca_pem=b"ca")
    document = yaml.safe_load(data)
    assert document["current-context"] == "apiserver-0"
    assert [cluster["cluster"]["server"] for cluster in document["clusters"]] == [
        "https://a",
        "https://b",
    ]
    assert [context["name"] for context in document["contexts"]] == ["apiserver-0", "apiserver-1"]


def test_a_private_file_is_replaced_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    users.write_private(path, b"one")
    users.write_private(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_every_exported_name_can_be_loaded() -> None:
    for name in kinform.testing.__all__:
        assert getattr(kinform.testing, name).__name__ == name
    assert set(kinform.testing.__all__) <= set(dir(kinform.testing))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = kinform.testing.Nonsense  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_the_package_loads_none_of_its_modules() -> None:
    program = (
        "import sys, kinform.testing\n"
        "print([name for name in sys.modules if name.startswith('kinform.testing.')])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.strip() == b"[]"

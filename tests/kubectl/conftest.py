"""One ``kinform serve`` for all that kubectl does, and a namespace for each test.

kubectl is the one that ``make control-plane`` builds: where it is not found these tests are
skipped, or fail if ``KINFORM_REQUIRE_CONTROL_PLANE=1`` is set. To see that a test expects what
kube-apiserver does, name a kubeconfig of one, with the garbage-collector, namespace and
serviceaccount controllers, in ``KINFORM_KUBECTL_TESTS_ON``.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinform.testing import plugin
from kinform.testing.controlplane import _binaries
from tests.kubectl.support_kubectl import Kubectl, environment
from tests.support.serving import serving

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    with plugin._skipped_where_unavailable():
        return _binaries.find("kubectl")


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture(scope="session")
def kubectl_server(kubectl_binary: Path, kubectl_home: Path) -> Iterator[Path]:
    """The kubeconfig of a running ``kinform serve``."""
    if other := os.environ.get("KINFORM_KUBECTL_TESTS_ON"):
        yield Path(other)
        return
    with serving(kubectl_home, environment(kubectl_home)) as kubeconfig:
        yield kubeconfig


@pytest.fixture
def kubectl(kubectl_binary: Path, kubectl_home: Path, kubectl_server: Path) -> Iterator[Kubectl]:
    """kubectl in a new, empty namespace."""
    namespace = f"kubectl-{next(NUMBERS)}-{secrets.token_hex(3)}"
    run = Kubectl(kubectl_binary, kubeconfig=kubectl_server, home=kubectl_home, namespace=namespace)
    assert run("create", "namespace", namespace) == f"namespace/{namespace} created\n"
    yield run
    run("delete", "namespace", namespace, "--wait=false")

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
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinform.testing import binaries, plugin
from tests.kubectl.support_kubectl import TIMEOUT, Kubectl, environment

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    with plugin._skipped_where_unavailable():
        return binaries.find("kubectl")


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture(scope="session")
def kubectl_server(kubectl_binary: Path, kubectl_home: Path) -> Iterator[Path]:
    """The kubeconfig of a running ``kinform serve``."""
    if other := os.environ.get("KINFORM_KUBECTL_TESTS_ON"):
        yield Path(other)
        return
    kubeconfig = kubectl_home / "kubeconfig"
    command = [sys.executable, "-m", "kinform", "serve", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(
        command, env=environment(kubectl_home), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("serving http://127.0.0.1:")
            assert server.stdout.readline() == f"kubeconfig {kubeconfig}\n"
            yield kubeconfig
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(TIMEOUT) == 0


@pytest.fixture
def kubectl(kubectl_binary: Path, kubectl_home: Path, kubectl_server: Path) -> Iterator[Kubectl]:
    """kubectl in a new, empty namespace."""
    namespace = f"kubectl-{next(NUMBERS)}-{secrets.token_hex(3)}"
    run = Kubectl(kubectl_binary, kubeconfig=kubectl_server, home=kubectl_home, namespace=namespace)
    assert run("create", "namespace", namespace) == f"namespace/{namespace} created\n"
    yield run
    run("delete", "namespace", namespace, "--wait=false")

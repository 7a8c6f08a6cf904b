"""Blocking code on a real kube-apiserver, over TLS."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from kinform.sync import connect
from kinform.testing import ControlPlane

pytestmark = pytest.mark.e2e


def test_a_cache_follows_what_is_written(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    with connect(kinform_control_plane.kubeconfig_path, namespace=kinform_namespace) as client:
        maps = client.resource("v1/configmaps")
        with client.informer("v1/configmaps", namespace=kinform_namespace) as informer:
            informer.wait_synced(30)
            made = maps.create({"metadata": {"name": "a"}})
            informer.wait_until(made.resource_version, 30)
            assert informer.lister.get(made.key) == made


DROP = """
import gc, os, sys
from asyncio import sslproto
from kinform.sync import connect

client = connect(namespace=sys.argv[1]).open()
informer = client.informer("v1/configmaps", namespace=sys.argv[1])
informer.start()
informer.wait_synced(30)
if (pid := os.fork()) == 0:
    for one in gc.get_objects():
        if isinstance(one, sslproto._SSLProtocolTransport):
            one.close()  # as the garbage collector would do
    sys.exit()
os.waitpid(pid, 0)
made = client.resource("v1/configmaps").create({"metadata": {"name": "b"}})
informer.wait_until(made.resource_version, 30)
print(informer.statistics().reflector.watches)
"""


def test_a_child_says_no_goodbye_in_its_parents_name(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    """Closing a TLS connection sends a message: a forked child must not, not even at its end."""
    env = {**os.environ, "KUBECONFIG": str(kinform_control_plane.kubeconfig_path)}
    command = [sys.executable, "-c", textwrap.dedent(DROP), kinform_namespace]
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, env=env
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")

"""One server, started by the command itself, and for each test a namespace with two pods."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from kinform.client import Client, connect
from kinform.objects.object import Object
from kinform.resource_client import ResourceClient
from tests.cli.support_command import environment
from tests.support.serving import serving


class Scene(NamedTuple):
    client: Client
    namespace: str
    maps: ResourceClient[Object]
    pods: ResourceClient[Object]
    env: dict[str, str]
    """Leads to the server, and to the namespace."""


def pod(name: str, **labels: str) -> dict[str, object]:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a running ``kinform serve``."""
    folder = tmp_path_factory.mktemp("serve")
    with serving(folder, environment(folder)) as kubeconfig:
        yield kubeconfig


@pytest.fixture
async def scene(served: Path, tmp_path: Path) -> AsyncGenerator[Scene]:
    namespace = f"test-{secrets.token_hex(4)}"
    content = yaml.safe_load(served.read_text("utf-8"))
    content["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch(0o600)
    kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")
    async with connect(kubeconfig) as client:
        await client.resource("v1/namespaces").create({"metadata": {"name": namespace}})
        pods = client.resource("v1/pods")
        for name in ("web-0", "web-1"):
            await pods.create(pod(name, app="web"))
        env = environment(tmp_path, KUBECONFIG=str(kubeconfig))
        yield Scene(client, namespace, client.resource("v1/configmaps"), pods, env)

"""A pod's log through a real kube-apiserver, which fetches it from a kubelet of ours."""

from __future__ import annotations

import pytest

import kinform
from kinform.testing import ControlPlane
from tests.support import certs
from tests.support.wire import WireConnection, WireRequest, WireServer

pytestmark = pytest.mark.e2e


async def kubelet(request: WireRequest, conn: WireConnection) -> None:
    assert request.path.startswith("/containerLogs/")
    await conn.chunked(headers={"Content-Type": "text/plain"})
    for line in (b"one\n", b"two", b" and a half\n", b"three"):
        await conn.chunk(line)
    await conn.end_chunks()


async def test_a_log_is_read_line_by_line(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    tls = certs.Authority().issue("localhost").server_context()
    async with WireServer(kubelet, tls=tls) as server, kinform_control_plane.connect() as client:
        nodes = client.resource("nodes")
        await nodes.create({"metadata": {"name": "logs"}})
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
        endpoints = {"kubeletEndpoint": {"Port": server.port}}
        status = {"addresses": addresses, "daemonEndpoints": endpoints}
        await nodes.status.patch("logs", {"status": status})
        pods = client.resource("pods", namespace=kinform_namespace)
        container = {"name": "c", "image": "nginx"}
        spec = {"nodeName": "logs", "containers": [container]}
        await pods.create({"metadata": {"name": "web"}, "spec": spec})
        async with pods.logs("web", container="c", tail_lines=10) as lines:
            assert [line async for line in lines] == ["one", "two and a half", "three"]
        assert server.requests[-1].query == {"tailLines": "10"}
        with pytest.raises(kinform.InvalidError, match="container other is not valid"):
            async with pods.logs("web", container="other"):
                pass

"""The command on a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinform.testing import ControlPlane
from tests.cli.support_command import environment, kinform, run

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def test_a_watch_shows_the_servers_columns_and_equals_a_fresh_list(
    kinform_control_plane: ControlPlane, kinform_namespace: str, tmp_path: Path
) -> None:
    env = environment(tmp_path, KUBECONFIG=str(kinform_control_plane.kubeconfig_path))
    args = ("watch", "configmaps,services", "-n", kinform_namespace, "--for", "3s")
    async with kinform_control_plane.connect() as client:
        maps = client.resource("v1/configmaps", namespace=kinform_namespace)
        await maps.create({"metadata": {"name": "red"}, "data": {"a": "1"}})
        async with kinform(*args, env=env) as command:
            assert (await command.line("EVENT")).split() == "EVENT NAME DATA AGE".split()
            assert (await command.line("ADDED")).split()[:3] == "ADDED configmaps/red 1".split()
            await maps.patch("red", {"data": {"b": "2"}})
            assert (await command.line("MODIFIED")).split()[1:3] == "configmaps/red 2".split()
            code, _, err = await command.end()
    assert code == 0
    assert err == "kinform: 1 events seen, 1 objects; cache equals a fresh list: yes\n"


async def test_a_refusal_is_reported_in_one_line(
    kinform_control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = kinform_control_plane.config
    ca = tmp_path / "ca.crt"
    ca.write_bytes(config.tls.ca_data or Path(config.tls.ca_file or "").read_bytes())
    env = environment(tmp_path, KINFORM_TOKEN="nobody-knows-me")
    args = ("--server", config.server, "--certificate-authority", str(ca))
    code, out, err = await run("watch", "pods", *args, env=env)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "the server does not accept the credentials" in err


async def test_the_wire_shows_one_chunk_for_each_event(
    kinform_control_plane: ControlPlane, kinform_namespace: str, tmp_path: Path
) -> None:
    env = environment(tmp_path, KUBECONFIG=str(kinform_control_plane.kubeconfig_path))
    args = ("watch", "cm", "-n", kinform_namespace, "-o", "wire")
    async with kinform_control_plane.connect() as client, kinform(*args, env=env) as command:
        await command.line("HTTP 200 Transfer-Encoding: chunked")
        maps = client.resource("v1/configmaps", namespace=kinform_namespace)
        await maps.create({"metadata": {"name": "red"}})
        size, payload = (await command.line('"ADDED"')).split(" bytes  ")
        assert int(size) == len(payload.encode()) + 1

"""``kinform watch`` in processes of its own, on a server."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kinform.testing.relay import Relay
from tests.cli.conftest import Scene, pod
from tests.cli.support_command import environment, kinform, run

pytestmark = pytest.mark.slow


async def test_every_change_is_a_line_with_the_servers_columns(scene: Scene) -> None:
    async with kinform("watch", "pods", env=scene.env) as command:
        assert (await command.line()).split() == "EVENT NAME READY STATUS RESTARTS AGE".split()
        assert (await command.line()).split()[:5] == "ADDED web-0 0/1 Pending 0".split()
        await command.line("ADDED", "web-1")
        await scene.pods.status.patch("web-1", {"status": {"phase": "Running"}})
        await command.line("MODIFIED", "web-1", "Running")
        await scene.pods.create(pod("web-2"))
        await command.line("ADDED", "web-2")
        await scene.pods.delete("web-0", grace_period=0)
        await command.line("DELETED", "web-0")


async def test_several_kinds_are_followed_at_once(scene: Scene) -> None:
    async with kinform("watch", "pods,cm", "-A", env=scene.env) as command:
        await command.line("NAMESPACE", "READY")
        await command.line("ADDED", scene.namespace, "pods/web-1")
        await scene.maps.create({"metadata": {"name": "red"}})
        await command.line("ADDED", scene.namespace, "configmaps/red")


async def test_the_time_ends_it_with_a_summary(scene: Scene) -> None:
    async with kinform("watch", "pods", "--for", "3s", env=scene.env) as command:
        await command.line("web-1")
        await scene.pods.create(pod("web-2"))
        code, _, complaints = await command.end()
    assert code == 0
    assert complaints == "kinform: 1 events seen, 3 objects; cache equals a fresh list: yes\n"


async def test_json_is_an_event_for_each_line(scene: Scene) -> None:
    async with kinform("watch", "pods/web-1", "-o", "json", env=scene.env) as command:
        event = json.loads(await command.line())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "web-1")
        assert event["object"]["kind"] == "Pod"
        await scene.pods.patch("web-1", {"metadata": {"labels": {"app": "db"}}})
        event = json.loads(await command.line())
        assert event["object"]["metadata"]["labels"] == {"app": "db"}


async def test_an_object_that_leaves_the_selection_is_deleted(scene: Scene) -> None:
    async with kinform("watch", "pods", "-l", "app=web", "-o", "table", env=scene.env) as command:
        await command.line("ADDED", "web-1")
        await scene.pods.patch("web-1", {"metadata": {"labels": {"app": "db"}}})
        await command.line("DELETED", "web-1")


async def test_wire_shows_each_chunk_with_its_size(scene: Scene) -> None:
    async with kinform("watch", "cm", "-o", "wire", env=scene.env) as command:
        await command.line("GET http://", "/configmaps?watch=true")
        await command.line("HTTP 200 Transfer-Encoding: chunked")
        await scene.maps.create({"metadata": {"name": "red"}})
        shown = await command.line('"ADDED"', '"red"')
        size, payload = shown.split(" bytes  ")
        assert int(size) == len(payload.encode()) + 1, "the line's end belongs to the chunk"


async def test_metadata_alone_has_the_columns_too(scene: Scene) -> None:
    async with kinform("watch", "pods", "--metadata-only", env=scene.env) as command:
        await command.line("ADDED", "web-0", "Pending")


async def test_until_all_meet_the_condition(scene: Scene) -> None:
    condition = "jsonpath={.status.phase}=Running"
    async with kinform("watch", "pods", "--until", condition, env=scene.env) as command:
        await command.line("web-1")
        await scene.pods.status.patch("web-0", {"status": {"phase": "Running"}})
        await command.line("MODIFIED", "web-0")
        await scene.pods.status.patch("web-1", {"status": {"phase": "Running"}})
        assert (await command.end())[0] == 0


async def test_until_nothing_is_left(scene: Scene) -> None:
    async with kinform("watch", "pods", "--until", "delete", env=scene.env) as command:
        await command.line("web-1")
        await scene.pods.delete("web-0", grace_period=0)
        await scene.pods.delete("web-1", grace_period=0)
        assert (await command.end())[0] == 0


async def test_a_condition_that_is_not_met_in_time_is_a_failure(scene: Scene) -> None:
    code, _, complaints = await run(
        "watch", "pods", "--until", "condition=Ready", "--for", "3", env=scene.env
    )
    assert code == 1
    assert complaints == (
        "error: timed out: condition=Ready is not met by 2 of 2 objects: "
        f"{scene.namespace}/web-0, {scene.namespace}/web-1\n"
    )


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_it_quietly(scene: Scene, signum: signal.Signals, code: int) -> None:
    async with kinform("watch", "pods", env=scene.env) as command:
        await command.line("web-1")
        command.send(signum)
        assert await command.end() == (code, "", "")


async def test_the_end_of_a_pipe_ends_it_quietly_though_nothing_happens(scene: Scene) -> None:
    script = '"$0" -m kinform watch pods | head -1; echo "${PIPESTATUS[0]}"'
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", script, sys.executable, env=scene.env, stdout=-1, stderr=-1
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert (out.decode().splitlines()[1:], err) == (["0"], b"")


async def test_a_lost_connection_is_reported_and_the_watch_continues(
    scene: Scene, tmp_path: Path
) -> None:
    config = scene.client.config
    server = urlsplit(config.server)
    async with Relay("127.0.0.1", server.port or 0) as relay:
        url = f"http://127.0.0.1:{relay.port}{server.path}"
        env = environment(tmp_path, KINFORM_TOKEN=config.token or "")
        args = ("watch", "pods", "-n", scene.namespace, "--server", url)
        async with kinform(*args, env=env) as command:
            await command.line("web-1")
            await scene.pods.create(pod("web-2"))
            await command.line("ADDED", "web-2")  # it is the watch that is cut, not the list
            relay.cut()
            line = await command.complaint("pods: connection lost:")
            assert (config.token or "") not in line
            await command.complaint("pods: connected again")
            await scene.pods.create(pod("web-3"))
            await command.line("ADDED", "web-3")


async def test_a_demo_cluster_is_watched_where_there_is_none(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with kinform("watch", "--for", "3s", env=env) as command:
        await command.complaint("no kubeconfig and no cluster found: starting a demo cluster")
        await command.line("ADDED", "pods/")
        code, _, complaints = await command.end()
    assert code == 0
    assert complaints.splitlines()[-1].endswith("cache equals a fresh list: yes")

"""The real control plane: its start, its users, its faults, and its end."""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast
from urllib.parse import quote, urlsplit

import pytest
import pytest_asyncio

from kinform.clock import offload
from kinform.errors import ForbiddenError
from kinform.testing import ControlPlane, ControlPlaneError, User
from kinform.testing.controlplane import _binaries
from kinform.testing.controlplane._raw_api import Json, RawApi, RawResponse, text_at
from kinform.testing.plugin import ControlPlaneFactory
from tests.testing.eventually import eventually
from tests.testing.processes import is_alive, running

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> AsyncGenerator[ControlPlane]:
    """Two apiservers and two controllers that tests may hurt, if they heal them again."""
    controllers = ["garbage-collector-controller", "namespace-controller"]
    async with kinform_control_plane_factory(apiservers=2, controllers=controllers) as cp:
        yield cp


def config_map(name: str, **metadata: object) -> Json:
    return {"metadata": {"name": name} | metadata, "data": {"of": name}}


async def create(api: RawApi, name: str, **metadata: object) -> Json:
    return await offload(api.call, "POST", CONFIG_MAPS, body=config_map(name, **metadata))


async def get(api: RawApi, path: str) -> RawResponse:
    return await offload(api.request, "GET", path)


async def names(api: RawApi, query: str = "") -> set[str]:
    listed = (await get(api, CONFIG_MAPS + query)).json()
    return {text_at(item, "metadata", "name") for item in cast("list[Json]", listed["items"])}


def is_gone(api: RawApi, path: str) -> bool:
    return api.request("GET", path).status == 404


def version(obj: Json) -> str:
    return text_at(obj, "metadata", "resourceVersion")


async def watch(api: RawApi, resource_version: str) -> list[Json]:
    """Return what a watch from that version says within a second."""
    query = f"?watch=1&resourceVersion={resource_version}&timeoutSeconds=1"
    lines = await offload(lambda: list(api.lines("GET", CONFIG_MAPS + query)))
    return [json.loads(line) for line in lines]


def expired(events: list[Json]) -> bool:
    """Tell whether a watch ended with 410 right away."""
    return [(e["type"], cast("Json", e["object"]).get("code")) for e in events] == [("ERROR", 410)]


def login(cp: ControlPlane, user: User, folder: Path) -> RawApi:
    """Return the way of ``user`` to apiserver 0, by its certificate."""
    path = folder / "user.pem"
    path.write_bytes(user.cert_pem + user.key_pem)
    context = trust(cp)
    context.load_cert_chain(path)
    return RawApi(port_of(cp), context=context)


def anybody(cp: ControlPlane, **options: float) -> RawApi:
    """Return a way to apiserver 0 that shows no certificate."""
    return RawApi(port_of(cp), context=trust(cp), **options)


def trust(cp: ControlPlane) -> ssl.SSLContext:
    ca = cp.config.tls.ca_data
    assert ca is not None
    return ssl.create_default_context(cadata=ca.decode())


def port_of(cp: ControlPlane) -> int:
    port = urlsplit(cp.url).port
    assert port is not None
    return port


# The start.


def test_the_version_is_the_one_asked_for(kinform_control_plane: ControlPlane) -> None:
    said = kinform_control_plane.raw_apis[0].call("GET", "/version")
    expected = ("v" + _binaries.KUBERNETES_VERSION, "1", "36", "clean")
    assert (said["gitVersion"], said["major"], said["minor"], said["gitTreeState"]) == expected


async def test_it_is_ready_within_fifteen_seconds(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    began = time.monotonic()
    async with kinform_control_plane_factory() as cp:
        assert time.monotonic() - began < 15
        assert (await get(cp.raw_apis[0], "/api/v1/namespaces/default")).status == 200


async def test_the_shared_control_plane_works_on_any_loop_one(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    path = f"/api/v1/namespaces/{kinform_namespace}"
    assert (await get(kinform_control_plane.raw_apis[0], path)).status == 200


async def test_the_shared_control_plane_works_on_any_loop_two(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    account = await kinform_control_plane.service_account(kinform_namespace, "bot")
    assert account.username == f"system:serviceaccount:{kinform_namespace}:bot"


async def test_flags_and_feature_gates_reach_the_apiserver(
    kinform_control_plane_factory: ControlPlaneFactory, tmp_path: Path
) -> None:
    async with kinform_control_plane_factory(
        feature_gates={"WatchList": False}, apiserver_flags=["--authorization-mode=AlwaysAllow"]
    ) as cp:
        user = login(cp, cp.user("powerless"), tmp_path)
        assert (await get(user, "/api/v1/secrets")).status == 200
        watch_list = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        assert (await get(user, CONFIG_MAPS + watch_list)).status == 422


async def test_pods_get_their_service_account_where_its_controller_runs(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    controllers = ["serviceaccount-controller", "root-ca-certificate-publisher-controller"]
    async with kinform_control_plane_factory(controllers=controllers) as cp:
        (api,) = cp.raw_apis
        default = "/api/v1/namespaces/default/serviceaccounts/default"
        await offload(eventually, lambda: api.is_ok(default))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        created = await offload(api.call, "POST", "/api/v1/namespaces/default/pods", body=pod)
        assert text_at(created, "spec", "serviceAccountName") == "default"


async def test_a_server_that_does_not_start_is_told_with_the_end_of_its_log(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    with pytest.raises(ControlPlaneError, match=r"(?s)kube-apiserver-0 ended .*--no-such-flag"):
        async with kinform_control_plane_factory(apiserver_flags=["--no-such-flag"]):
            pass


async def test_a_server_that_is_not_ready_in_time_is_told_with_the_end_of_its_log(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    with pytest.raises(ControlPlaneError, match=r"is not ready after 0.01 s; the end of its log"):
        async with kinform_control_plane_factory(timeout=0.01):
            pass


# Users.


async def test_a_user_may_do_what_rbac_allows_its_group_and_no_more(
    kinform_control_plane: ControlPlane, tmp_path: Path
) -> None:
    admin = kinform_control_plane.raw_apis[0]
    user = kinform_control_plane.user("reader", groups=["viewers"])
    reader = login(kinform_control_plane, user, tmp_path)
    assert (await get(reader, CONFIG_MAPS)).status == 403
    # Not the built-in `view`: it is empty without the controller that aggregates it.
    group, metadata = "rbac.authorization.k8s.io", {"name": "viewers"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "viewers"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "viewers"}],
    }
    for kind, body in (
        ("clusterroles", {"metadata": metadata, "rules": [rule]}),
        ("clusterrolebindings", binding),
    ):
        await offload(admin.call, "POST", f"/apis/{group}/v1/{kind}", body=body)
    await offload(eventually, lambda: reader.is_ok(CONFIG_MAPS))
    assert (await get(reader, "/api/v1/secrets")).status == 403


def test_no_repr_of_a_user_holds_a_key(kinform_control_plane: ControlPlane) -> None:
    user = kinform_control_plane.user("shy")
    assert b"PRIVATE KEY" in user.key_pem
    assert "PRIVATE" not in repr(user) + repr(user.config)


async def test_clients_connect_as_anybody_to_any_apiserver(pair: ControlPlane) -> None:
    for apiserver in (0, 1):
        async with pair.connect(apiserver=apiserver) as client:
            assert (await client.resource("v1/namespaces").get("default")).metadata.name
    async with pair.connect(pair.user("powerless")) as client:
        with pytest.raises(ForbiddenError, match="powerless"):
            await client.resource("v1/namespaces").get("default")


async def test_clients_connect_as_a_service_account_with_its_token(pair: ControlPlane) -> None:
    account = await pair.service_account("default", "client")
    for apiserver in (0, 1):
        async with pair.connect(account, apiserver=apiserver) as client:
            with pytest.raises(ForbiddenError, match="system:serviceaccount:default:client"):
                await client.resource("v1/namespaces").get("default")
    assert await account.token() not in repr(account.config)


def test_strangers_may_not_list_anything(kinform_control_plane: ControlPlane) -> None:
    assert anybody(kinform_control_plane).request("GET", CONFIG_MAPS).status == 403


ETCD_PATHS = {
    "--listen-client-urls": ["/v3/kv/range", "/v3/maintenance/snapshot", "/metrics", "/readyz"],
    "--listen-peer-urls": ["/members", "/raft", "/v3/kv/range"],
}


@pytest.mark.parametrize("way", ["in clear", "no certificate", "an administrator's certificate"])
@pytest.mark.parametrize("port", ETCD_PATHS)
def test_no_other_user_of_the_machine_gets_into_etcd(
    kinform_control_plane: ControlPlane, tmp_path: Path, port: str, way: str
) -> None:
    """A client of etcd can read all Secrets and become administrator."""
    cp = kinform_control_plane
    cp.raw_apis[0].request(
        "POST",
        "/api/v1/namespaces/default/secrets",
        body={"metadata": {"name": "in-etcd"}, "stringData": {"password": "sword" + "fish"}},
    )
    context: ssl.SSLContext | None = None
    if way != "in clear":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a thief is not picky
    if context is not None and way != "no certificate":
        user = cp.user("thief", groups=["system:masters"])
        path = tmp_path / "user.pem"
        path.write_bytes(user.cert_pem + user.key_pem)
        context.load_cert_chain(path)
    api = RawApi(etcd_port(cp, port), context=context, timeout=5.0)
    key = base64.b64encode(b"/registry/secrets/default/in-etcd").decode()
    for method, body in (("GET", None), ("POST", {"key": key})):
        for path_of_etcd in ETCD_PATHS[port]:
            try:
                answer = api.request(method, path_of_etcd, body=body)
            except ControlPlaneError:
                continue  # the connection was ended
            assert answer.status == 400  # HTTP on a port for HTTPS
            assert b"HTTPS" in answer.body


def etcd_port(cp: ControlPlane, flag: str) -> int:
    """Return the port that etcd was given, as any user of the machine can find it out."""
    command = Path(f"/proc/{pids(cp)[0]}/cmdline").read_text(encoding="utf-8").split("\0")
    (url,) = [one.partition("=")[2] for one in command if one.startswith(f"{flag}=")]
    port = urlsplit(url).port
    assert port is not None
    return port


def test_no_private_key_can_be_read_by_others(kinform_control_plane: ControlPlane) -> None:
    folder = kinform_control_plane.kubeconfig_path.parent
    assert folder.stat().st_mode & 0o077 == 0
    keys = list(folder.glob("*.key"))
    assert len(keys) >= 5
    assert not [key.name for key in keys if key.stat().st_mode & 0o077]


async def test_a_revoked_token_is_refused_and_the_next_one_is_good(
    kinform_control_plane: ControlPlane,
) -> None:
    account = await kinform_control_plane.service_account("default", "bot")
    unauthenticated = anybody(kinform_control_plane)
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    def status(token: str) -> int:
        return unauthenticated.request("POST", review, body={}, token=token).status

    old = await account.token()
    assert account.token_path.read_text(encoding="utf-8") == old
    assert await offload(status, old) == 201
    await account.revoke()
    await offload(eventually, lambda: status(old) == 401, within=30)
    new = await account.token()
    assert await offload(status, new) == 201
    assert old not in repr(account)


async def test_a_service_account_without_its_namespace_is_refused(
    kinform_control_plane: ControlPlane,
) -> None:
    with pytest.raises(ControlPlaneError, match='namespaces "nowhere" not found'):
        await kinform_control_plane.service_account("nowhere", "bot")


async def test_kubectl_works_with_every_kubeconfig_and_context(pair: ControlPlane) -> None:
    account = await pair.service_account("default", "cli")
    kubectl = await offload(_binaries.find, "kubectl")
    for path in (pair.kubeconfig_path, pair.user("cli").kubeconfig_path, account.kubeconfig_path):
        assert path.stat().st_mode & 0o777 == 0o600
        for context in ("apiserver-0", "apiserver-1"):
            options = [f"--kubeconfig={path}", f"--context={context}"]
            command = [str(kubectl), *options, "auth", "whoami"]
            code, said = await offload(_output, command)
            assert code == 0, said


def _output(command: list[str]) -> tuple[int, bytes]:
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return run.returncode, run.stdout


# Faults.


async def test_a_paused_apiserver_is_silent_until_it_is_resumed(pair: ControlPlane) -> None:
    impatient = anybody(pair, timeout=0.5)
    pair.pause()
    try:
        with pytest.raises(ControlPlaneError, match="timed out"):
            await get(impatient, "/version")
    finally:
        pair.resume()
    assert (await get(pair.raw_apis[0], "/version")).status == 200


async def test_a_killed_apiserver_refuses_connections_until_it_is_started(
    pair: ControlPlane,
) -> None:
    url = pair.url
    await create(pair.raw_apis[0], "survivor")
    await pair.kill_apiserver()
    try:
        with pytest.raises(ControlPlaneError, match="ConnectionRefused"):
            await get(pair.raw_apis[0], "/version")
        assert "survivor" in await names(pair.raw_apis[1])
    finally:
        await pair.start_apiserver()
    assert pair.url == url
    assert "survivor" in await names(pair.raw_apis[0])


async def test_starting_a_running_apiserver_is_refused(pair: ControlPlane) -> None:
    with pytest.raises(ControlPlaneError, match="kube-apiserver-1 is running already"):
        await pair.start_apiserver(1)


async def test_after_a_restart_every_older_version_is_410_to_a_watch(pair: ControlPlane) -> None:
    api = pair.raw_apis[1]
    old = version(await create(api, "before-restart"))
    await create(api, "before-restart-too")
    assert not expired(await watch(api, old))
    await pair.restart_apiserver(1)
    assert expired(await watch(api, old))


async def test_a_watch_ends_in_good_order_when_its_apiserver_is_restarted(
    pair: ControlPlane,
) -> None:
    api = pair.raw_apis[1]
    started = await create(api, "watched")
    lines = api.lines("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0&timeoutSeconds=60")
    first = json.loads(await offload(next, lines))
    assert first["type"] == "ADDED"
    await pair.restart_apiserver(1)
    rest = [json.loads(line) for line in await offload(list, lines)]
    assert {event["type"] for event in rest} <= {"ADDED", "MODIFIED", "BOOKMARK"}
    assert version(started) <= max(version(event["object"]) for event in [first, *rest])


async def test_compaction_expires_old_versions_and_continue_tokens(pair: ControlPlane) -> None:
    api = pair.raw_apis[0]
    for number in range(3):
        await create(api, f"page-{number}")
    page = (await get(api, f"{CONFIG_MAPS}?limit=1")).json()
    old, rest = version(page), f"{CONFIG_MAPS}?limit=1&continue="
    rest += quote(text_at(page, "metadata", "continue"))
    await create(api, "after-page")
    await pair.restart_apiserver()
    assert (await get(api, rest)).status == 200, "a restart alone does not expire a token"

    compacted = await pair.compact()

    assert compacted > int(old)
    assert (await get(api, rest)).status == 410
    assert expired(await watch(api, old))
    exact = f"{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={old}"
    assert (await get(api, exact)).status == 410
    assert "after-page" in await names(api)


async def test_a_lagging_apiserver_serves_stale_reads_while_another_is_fresh(
    pair: ControlPlane,
) -> None:
    fresh, stale = pair.raw_apis
    await create(fresh, "old-news")
    await _until_listed(stale, "old-news")
    pair.lag(1, 30)
    try:
        await create(fresh, "news")
        await _until_listed(fresh, "news")
        seen = await names(stale, "?resourceVersion=0")
        assert ("old-news" in seen, "news" in seen) == (True, False)
    finally:
        pair.lag(1, 0)
    await _until_listed(stale, "news")


async def _until_listed(api: RawApi, name: str) -> None:
    """Wait until a read of any version knows ``name``."""
    async with asyncio.timeout(20):
        while name not in await names(api, "?resourceVersion=0"):
            pass


async def test_a_restored_snapshot_undoes_what_came_later(pair: ControlPlane) -> None:
    first, second = pair.raw_apis
    await create(first, "kept")
    snapshot = await pair.snapshot()
    # More than the apiservers themselves write while they start.
    lost = [await create(first, f"lost-{number}") for number in range(100)][-1]
    await pair.restore(snapshot)
    assert snapshot.revision < int(version(lost))
    for api in (first, second):
        listed = await names(api)
        assert ("kept" in listed, "lost-0" in listed) == (True, False)
        assert int(version((await get(api, CONFIG_MAPS)).json())) < int(version(lost))


async def test_the_chosen_controllers_do_their_work(pair: ControlPlane) -> None:
    api = pair.raw_apis[0]
    owner = await create(api, "owner")
    uid = text_at(owner, "metadata", "uid")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    await create(api, "owned", ownerReferences=[reference])
    await offload(api.call, "POST", "/api/v1/namespaces", body={"metadata": {"name": "brief"}})
    await offload(api.call, "DELETE", f"{CONFIG_MAPS}/owner")
    await offload(api.call, "DELETE", "/api/v1/namespaces/brief")
    for path in (f"{CONFIG_MAPS}/owned", "/api/v1/namespaces/brief"):
        await offload(eventually, functools.partial(is_gone, api, path), within=60)


# The end.


def pids(cp: ControlPlane) -> list[int]:
    return [server.pid for server in cp._servers._all if server.pid is not None]


async def test_nothing_is_left_after_the_end(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    async with kinform_control_plane_factory(etcd_relay=True) as cp:
        folder, processes = cp.kubeconfig_path.parent, pids(cp)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(processes) == 2
        assert all(is_alive(pid) for pid in processes)
    assert not folder.exists()
    assert not any(is_alive(pid) for pid in processes)
    assert "kube-apiserver-0" in cp.log_tails()


async def test_a_server_that_crashes_in_use_is_told_at_the_end(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    with pytest.raises(ControlPlaneError, match=r"kube-apiserver-0 ended with code -9"):
        async with kinform_control_plane_factory() as cp:
            os.kill(pids(cp)[1], signal.SIGKILL)
            await offload(eventually, lambda: "ended" in cp._servers.crash_report())


async def test_a_crash_is_noted_on_the_error_it_caused(
    kinform_control_plane_factory: ControlPlaneFactory,
) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        async with kinform_control_plane_factory() as cp:
            os.kill(pids(cp)[0], signal.SIGKILL)
            await offload(eventually, lambda: "etcd" in cp._servers.crash_report())
            raise ZeroDivisionError
    assert "etcd ended with code -9" in caught.value.__notes__[0]


RUNNER = """
import asyncio, json, threading
from kinform.testing import ControlPlane

async def main():
    async with ControlPlane(apiservers=2, controllers=["namespace-controller"]) as cp:
        pids = [server.pid for server in cp._servers._all]
        facts = {"pids": pids, "folder": str(cp.kubeconfig_path.parent)}
        print(json.dumps(facts), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_no_server_survives_a_test_runner_that_is_killed(
    kinform_control_plane: ControlPlane,
) -> None:
    with running(RUNNER) as (runner, facts):
        processes, folder = cast("list[int]", facts["pids"]), Path(str(facts["folder"]))
        assert len(processes) == 4
        assert all(is_alive(pid) for pid in processes)
        runner.kill()
        runner.wait()
        eventually(lambda: not any(is_alive(pid) for pid in processes) and not folder.exists())


@pytest.fixture(scope="module")
def assets(kinform_control_plane: ControlPlane) -> str:
    """The folder of the binaries, found before pytester moves the home and with it the cache."""
    return str(_binaries.find("etcd").parent)


def test_a_failed_test_shows_the_end_of_the_apiservers_log(
    assets: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", assets)
    pytester.makepyfile(
        """
        def test_in_vain(kinform_control_plane):
            assert kinform_control_plane.url == "elsewhere"

        def test_without(tmp_path):
            assert tmp_path is None
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly")
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert text.count("Log of kube-apiserver-0") == 1

"""Ways to prove who we are to a real kube-apiserver, and what happens when they change."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from pathlib import Path

import pytest

import kinform
from kinform import ForbiddenError, TransportError, TransportFailure, UnauthorizedError
from kinform.rest.config import Config, ExecPlugin, Impersonation, TlsConfig
from kinform.rest.rate_limits import TokenBucketLimiter
from kinform.testing import ControlPlane
from tests.support.eventually import eventually

pytestmark = pytest.mark.e2e

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def whoami(client: kinform.Client) -> tuple[str, set[str]]:
    """Ask the server who it takes us for."""
    review = await client.resource("authentication.k8s.io/v1/selfsubjectreviews").create(REVIEW)
    user = review.to_dict("status", "userInfo")
    return str(user["username"]), {
        str(group) for group in review.at("status", "userInfo", "groups")
    }


def without_certificate(config: Config, **changes: object) -> Config:
    tls = TlsConfig(ca_data=config.tls.ca_data, ca_file=config.tls.ca_file)
    return dataclasses.replace(config, tls=tls, **changes)  # type: ignore[arg-type]


async def test_a_client_certificate_says_who_we_are(kinform_control_plane: ControlPlane) -> None:
    user = kinform_control_plane.user("jane", groups=["devs"])
    async with kinform_control_plane.connect(user) as client:
        name, groups = await whoami(client)
    assert name == "jane"
    assert "devs" in groups


async def test_the_kubeconfig_of_the_control_plane_works_by_path(
    kinform_control_plane: ControlPlane,
) -> None:
    async with kinform.connect(kinform_control_plane.kubeconfig_path) as client:
        assert (await client.version()).major == "1"


async def test_impersonation_with_several_groups(kinform_control_plane: ControlPlane) -> None:
    someone = Impersonation(user="bob", groups=["a", "b"], extra={"example.com/x": ["1", "2"]})
    config = dataclasses.replace(kinform_control_plane.config, impersonate=someone)
    async with kinform.connect(config) as client:
        name, groups = await whoami(client)
    assert name == "bob"
    assert groups >= {"a", "b"}


async def test_an_exec_plugin_logs_in_and_is_run_again_after_a_401(
    kinform_control_plane: ControlPlane, kinform_namespace: str, tmp_path: Path
) -> None:
    account = await kinform_control_plane.service_account(kinform_namespace, "bot")
    token_file, runs = tmp_path / "token", tmp_path / "runs"
    token_file.write_text(await account.token())
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, pathlib\n"
        f"runs = pathlib.Path({str(runs)!r})\n"
        "runs.write_text((runs.read_text() if runs.exists() else '') + 'x')\n"
        f"token = pathlib.Path({str(token_file)!r}).read_text()\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',"
        " 'kind': 'ExecCredential', 'status': {'token': token}}))\n"
    )
    command = ExecPlugin(command=sys.executable, args=[str(plugin)], interactive_mode="Never")
    config = without_certificate(kinform_control_plane.config, exec_plugin=command)
    async with kinform.connect(config) as client:
        expected = f"system:serviceaccount:{kinform_namespace}:bot"
        assert (await whoami(client))[0] == expected
        assert (await whoami(client))[0] == expected
        assert runs.read_text() == "x"
        await account.revoke()
        token_file.write_text(await account.token())
        await eventually(lambda: ran_twice(client, runs), NotYet)
        assert (await whoami(client))[0] == expected


class NotYet(Exception):
    """The server still takes the old token from its cache."""


async def ran_twice(client: kinform.Client, runs: Path) -> None:
    await whoami(client)
    if runs.read_text(encoding="utf-8") != "xx":
        raise NotYet


async def test_a_token_revoked_and_replaced_during_a_watch(
    kinform_control_plane: ControlPlane, kinform_namespace: str, tmp_path: Path
) -> None:
    """F-R30: the running watch goes on, and the next requests use the new token."""
    cp = kinform_control_plane
    account = await cp.service_account(kinform_namespace, "bot")
    token_file = tmp_path / "token"
    token_file.write_text(await account.token())
    config = without_certificate(cp.config, token_file=str(token_file))
    async with cp.connect() as admin, kinform.connect(config) as client:
        await grant_config_maps(admin, kinform_namespace, "bot")
        theirs = admin.resource("configmaps", namespace=kinform_namespace)
        mine = client.resource("v1/configmaps", namespace=kinform_namespace)
        listed = await eventually(mine.list, ForbiddenError)
        async with (
            asyncio.timeout(60),
            mine.watch(resource_version=listed.resource_version) as seen,
        ):
            events = aiter(seen)
            await account.revoke()
            await theirs.create({"metadata": {"name": "during"}})
            assert (await anext(events)).object.name == "during"
            async with kinform.connect(
                without_certificate(cp.config, token=token_file.read_text())
            ) as old:
                with pytest.raises(UnauthorizedError):
                    await eventually(lambda: refused(old, kinform_namespace), NotYet)
            token_file.write_text(await account.token())
            await mine.list()  # 401 with the old token, then the file is read again
            await theirs.create({"metadata": {"name": "after"}})
            assert (await anext(events)).object.name == "after"


async def refused(client: kinform.Client, namespace: str) -> None:
    await client.resource("v1/configmaps", namespace=namespace).list()
    raise NotYet


async def grant_config_maps(admin: kinform.Client, namespace: str, account: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    roles = admin.resource("roles", namespace=namespace)
    await roles.create({"metadata": {"name": "maps"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    await admin.resource("rolebindings", namespace=namespace).create(binding)


async def test_without_the_clusters_ca_nothing_is_said(kinform_control_plane: ControlPlane) -> None:
    config = dataclasses.replace(kinform_control_plane.config, tls=TlsConfig())
    async with kinform.connect(config) as client:
        with pytest.raises(TransportError) as caught:
            await client.version()
    assert caught.value.failure is TransportFailure.TLS


async def test_a_wrong_token_is_unauthorized(kinform_control_plane: ControlPlane) -> None:
    config = without_certificate(kinform_control_plane.config, token="not-a-token")
    async with kinform.connect(config) as client:
        with pytest.raises(UnauthorizedError):
            await client.resource("v1/pods").list()


async def test_150_watches_and_one_get_work_together(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    limiter = TokenBucketLimiter(qps=1000, burst=1000)
    async with kinform.connect(kinform_control_plane.config, rate_limiter=limiter) as client:
        maps = client.resource("v1/configmaps", namespace=kinform_namespace)
        await maps.create({"metadata": {"name": "a"}})
        started = asyncio.Semaphore(0)
        done = asyncio.Event()

        async def watch() -> None:
            async with maps.watch() as events:
                async for _event in events:
                    started.release()
                    break
                await done.wait()

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(150):
                group.create_task(watch())
            for _ in range(150):
                await started.acquire()
            assert (await maps.get("a")).name == "a"
            done.set()


async def test_errors_and_reprs_hold_no_secret(kinform_control_plane: ControlPlane) -> None:
    config = without_certificate(kinform_control_plane.config, token="canary-token-value")
    async with kinform.connect(config) as client:
        with pytest.raises(UnauthorizedError) as caught:
            await client.resource("v1/pods").list()
    shown = json.dumps([repr(config), str(caught.value), repr(caught.value)])
    assert "canary" not in shown

"""Informers that lose the right to look, or the very kind they look at, and get it back."""

from __future__ import annotations

import asyncio
import secrets

import pytest

import kinform
from kinform import (
    Client,
    ForbiddenError,
    NotFoundError,
    Object,
    ReflectorOptions,
    SharedInformer,
    UnauthorizedError,
    UnknownResourceError,
)
from kinform.runtime.healthz.checks import informers_check
from kinform.testing import ControlPlane
from tests.e2e.support_informer import Writer, shown
from tests.e2e.support_informer_kinds import define, undefine, unserve
from tests.e2e.support_informer_scene import MOST_ATTEMPTS, patience, scene
from tests.e2e.support_informer_ways import Front, connect, port_of
from tests.support.eventually import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SHORT = ReflectorOptions(watch_timeout=8)
"""A watch that runs is never checked again: the next one must come soon, 8 times a minute."""
RBAC = "rbac.authorization.k8s.io"


def now() -> float:
    return asyncio.get_running_loop().time()


async def allow(admin: Client, namespace: str, subject: dict[str, str]) -> None:
    """Let ``subject`` read config maps. `forbid` undoes it."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    roles = admin.resource(f"{RBAC}/v1/roles", namespace=namespace)
    await roles.apply(
        {"metadata": {"name": "reader"}, "rules": [rule]}, field_manager="tests", force=True
    )
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reader"},
        "subjects": [subject],
    }
    await admin.resource(f"{RBAC}/v1/rolebindings", namespace=namespace).create(binding)


async def forbid(admin: Client, namespace: str) -> None:
    await admin.resource(f"{RBAC}/v1/rolebindings", namespace=namespace).delete("reader")


async def can_read(client: Client, namespace: str) -> None:
    """Wait until the server has taken note of what is allowed."""
    await eventually(client.resource("v1/configmaps", namespace=namespace).list, ForbiddenError)


async def test_rights_that_are_revoked_and_given_back(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    """F-R18: the cache stays as it was last, and goes on when it may."""
    user = kinform_control_plane.user(f"reader-{kinform_namespace}")
    subject = {"apiGroup": RBAC, "kind": "User", "name": user.name}
    async with (
        connect(kinform_control_plane, qps=40) as admin,
        connect(kinform_control_plane, user) as client,
    ):
        await allow(admin, kinform_namespace, subject)
        await can_read(client, kinform_namespace)
        writer = Writer(admin.resource("v1/configmaps", namespace=kinform_namespace))
        async with scene(client, writer, namespace=kinform_namespace, options=SHORT) as made:
            async with writer.writing():
                await forbid(admin, kinform_namespace)
                began = await made.wait_reported(ForbiddenError, 30)
                before = made.attempts
                await writer.wait_written(60)
            kept = shown(made.informer)
            assert kept
            assert kept != writer.present
            assert made.informer.has_synced
            await allow(admin, kinform_namespace, subject)
            await made.catch_up(patience(now() - began))
            assert max(made.attempts.since(before)) <= MOST_ATTEMPTS


async def test_a_token_that_is_revoked_and_replaced(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    """F-R30: refused while the token is bad; the file is read again, and all goes on."""
    account = await kinform_control_plane.service_account(kinform_namespace, "bot")
    subject = {"kind": "ServiceAccount", "name": "bot", "namespace": kinform_namespace}
    async with (
        connect(kinform_control_plane, qps=40) as admin,
        kinform.connect(account.kubeconfig_path) as client,
    ):
        await allow(admin, kinform_namespace, subject)
        await can_read(client, kinform_namespace)
        writer = Writer(admin.resource("v1/configmaps", namespace=kinform_namespace))
        async with scene(client, writer, namespace=kinform_namespace, options=SHORT) as made:
            async with writer.writing():
                await account.revoke()
                began = await made.wait_reported(UnauthorizedError, 45)
                before = made.attempts
                await writer.wait_written(20)
                await account.token()
            await made.catch_up(patience(now() - began))
            assert max(made.attempts.since(before)) <= MOST_ATTEMPTS


@pytest.mark.parametrize("scope", ["Namespaced", "Cluster"])
async def test_a_kind_that_is_deleted_and_made_anew(
    kinform_control_plane: ControlPlane, kinform_namespace: str, scope: str
) -> None:
    """F-R17: its objects are deleted with it, once; new ones are seen, with any scope."""
    group = f"{secrets.token_hex(4)}.example.com"
    async with (
        connect(kinform_control_plane, qps=40) as admin,
        connect(kinform_control_plane) as client,
    ):
        await define(admin, group, scope="Namespaced")
        kind = f"{group}/v1/widgets"
        writer = Writer(admin.resource(kind, namespace=kinform_namespace))
        async with scene(client, writer, namespace="", resource=kind) as made:
            before, began = made.attempts, now()
            await undefine(admin, group)
            writer.go_back_to({})
            await made.catch_up(30)
            await made.wait_reported(UnknownResourceError, 30)
            await define(admin, group, scope=scope)
            async with connect(kinform_control_plane, qps=40) as other:
                place = kinform_namespace if scope == "Namespaced" else None
                again = Writer(other.resource(kind, namespace=place))
                await again.write(20)
                writer.present = again.present
                await made.catch_up(patience(now() - began))
            assert max(made.attempts.since(before)) <= MOST_ATTEMPTS


async def test_a_kind_that_is_deleted_while_nobody_can_see_it(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    """F-R17: no delete was seen, and still no object of it is left."""
    group = f"{secrets.token_hex(4)}.example.com"
    port = port_of(kinform_control_plane)
    async with (
        Front(port) as front,
        connect(kinform_control_plane, qps=40) as admin,
        connect(kinform_control_plane, port=front.port) as client,
    ):
        await define(admin, group, scope="Namespaced")
        kind = f"{group}/v1/widgets"
        writer = Writer(admin.resource(kind, namespace=kinform_namespace))
        async with scene(client, writer, namespace="", resource=kind) as made:
            began = now()
            front.close()
            await undefine(admin, group)
            writer.go_back_to({})
            assert shown(made.informer)
            front.move(port)
            # Absence is proven twice, 30 s apart, with a wait of a minute at most in between.
            await made.catch_up(patience(now() - began, waits=3) + 90)


async def test_a_version_that_is_no_longer_served_deletes_nothing(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    """F-R17: the objects are there, in another version."""
    group = f"{secrets.token_hex(4)}.example.com"
    async with (
        connect(kinform_control_plane, qps=40) as admin,
        connect(kinform_control_plane) as client,
    ):
        await define(admin, group, scope="Namespaced", beside="v1alpha1")
        writer = Writer(admin.resource(f"{group}/v1/widgets", namespace=kinform_namespace))
        kind, deleted = f"{group}/v1alpha1/widgets", list[str]()
        await eventually(
            admin.resource(kind, namespace="").list, NotFoundError, UnknownResourceError
        )
        await writer.write(5)
        informer = client.informer(kind)
        informer.add_event_handler(on_delete=lambda event: deleted.append(event.key.name))
        async with informer:
            await informer.wait_synced(30)
            held = len(informer.indexer)
            assert held
            await unserve(admin, group, "v1alpha1")
            await eventually(lambda: _unserved(informer, f"{group}/v1/widgets"), AssertionError)
            await asyncio.sleep(75)  # longer than two proofs of absence would take
            assert (len(informer.indexer), deleted) == (held, [])
            assert not informer.healthy()


async def _unserved(informer: SharedInformer[Object], served: str) -> None:
    error = informer.statistics().reflector.last_error
    assert isinstance(error, UnknownResourceError)
    assert error.served_in == (served,)


async def test_an_informer_without_permission_says_which_rule_is_missing(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    user = kinform_control_plane.user(f"powerless-{kinform_namespace}")
    missing = 'resources: ["configmaps"], verbs: ["list", "watch"]}'
    async with connect(kinform_control_plane, user) as client:
        informer = client.informer("v1/configmaps", namespace=kinform_namespace)
        async with informer:
            with pytest.raises(TimeoutError) as caught:
                await informer.wait_synced(3)
            assert isinstance(caught.value.__cause__, ForbiddenError)
            assert missing in str(caught.value)
            assert f"a Role in the namespace {kinform_namespace}" in str(caught.value)
            said = informers_check([informer])()
            assert said is not None
            assert missing in said

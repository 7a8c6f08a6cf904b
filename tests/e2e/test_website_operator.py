"""The website operator as two processes on a real kube-apiserver: killed, paused, asked to end.

Every replica is a user of its own, and the server keeps an audit log: who wrote what, and when, is
the server's word, not ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio
import yaml

from examples import website_operator as program
from examples.website_operator import CONFIG_MAPS, DEPLOYMENTS, DIRECTORY, SERVICES, WRITTEN_BY
from kinform import Client, Object, ResourceClient, SharedInformer
from kinform.cache import handler
from kinform.cache.processor.events import Added, Updated
from kinform.testing import ControlPlane
from kinform.testing.plugin import ControlPlaneFactory
from tests.support.eventually import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

ROOT = Path(__file__).resolve().parents[2]
LEASE = "website-operator"
DURATION, DEADLINE, RETRY = 6.0, 4.0, 1.0
"""Short, so that the tests are; and still long for a process on a busy machine."""
PATIENCE = 30.0
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]},
        {"level": "None"},
    ],
}


class Audited(NamedTuple):
    """A control plane, and the file of its audit log."""

    plane: ControlPlane
    log: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audited(
    kinform_control_plane_factory: ControlPlaneFactory, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Audited]:
    folder = tmp_path_factory.mktemp("audit")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(yaml.safe_dump(POLICY), encoding="utf-8")
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    async with kinform_control_plane_factory(apiserver_flags=flags) as plane:
        async with plane.connect() as client:
            await program.install_crd(client)
        yield Audited(plane, log)


# --- a scene


@dataclass(kw_only=True)
class Replica:
    """A process of the operator, and the user that it is."""

    name: str
    user: str
    process: Process
    port: int
    log: Path

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Return the exit code, once there is one."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    async def is_ready(self) -> None:
        url = f"http://127.0.0.1:{self.port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200, await answer.text()

    @property
    def last_words(self) -> str:
        return self.log.read_text(encoding="utf-8").splitlines()[-1]


@dataclass(kw_only=True)
class Scene:
    """A namespace, what is seen there by watching, and who is at work."""

    audited: Audited
    namespace: str
    sites: ResourceClient[Object]
    client: Client
    seen: dict[str, SharedInformer[Object]]
    folder: Path
    states: list[Object] = field(default_factory=list)
    """Every state of every child, in the order of each kind's watch."""
    replicas: list[Replica] = field(default_factory=list)

    async def start(self, name: str, *, slow: float = 0.0) -> Replica:
        """Start a replica, as a user of that name; the namespace makes it one of its own."""
        user = self.audited.plane.user(f"{self.namespace}-{name}", ["system:masters"])
        port, log = free_port(), self.folder / f"{name}.log"
        arguments = [
            f"--namespace={self.namespace}",
            f"--lease={LEASE}",
            f"--identity={name}",
            f"--lease-duration={DURATION}",
            f"--renew-deadline={DEADLINE}",
            f"--retry-period={RETRY}",
            f"--health={port}",
            f"--slow={slow}",
            "-v",
        ]
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(ROOT / "examples" / "website_operator.py"), *arguments),
                env={**os.environ, "KUBECONFIG": str(user.kubeconfig_path)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        replica = Replica(name=name, user=user.name, process=process, port=port, log=log)
        self.replicas.append(replica)
        return replica

    async def two(self, *, slow: float = 0.0) -> tuple[Replica, Replica]:
        """Start one that leads, and is slow if asked to; and another. Both are ready."""
        leader = await self.start("a", slow=slow)
        await self.leader(lambda holder: holder == leader.name)
        other = await self.start("b")
        for replica in (leader, other):
            await eventually(replica.is_ready, AssertionError, OSError, aiohttp.ClientError)
        return leader, other

    async def leader(self, wanted: Callable[[str], bool]) -> str:
        """Wait until an accepted holder has the lease; return it."""

        def holder(lease: Object | None) -> str | None:
            found = "" if lease is None else str(lease.at("spec", "holderIdentity", default=""))
            return found if found and wanted(found) else None

        leases = self.seen["leases"]
        key = f"{self.namespace}/{LEASE}"
        return await leases.wait_for(lambda cache: holder(cache.get(key)), PATIENCE)

    async def make(self, name: str, **spec: object) -> None:
        await self.sites.create({"metadata": {"name": name}, "spec": {"html": "hello", **spec}})

    async def wait_for(self, kind: str, name: str, **wanted: object) -> Object:
        """Wait until the child is there, with these values in its spec or data."""

        def is_so(found: Object | None) -> Object | None:
            if found is None:
                return None
            content: Any = found.get("spec") or found.get("data")
            return found if all(content.get(key) == wanted[key] for key in wanted) else None

        key = f"{self.namespace}/{name}"
        return await self.seen[kind].wait_for(lambda cache: is_so(cache.get(key)), PATIENCE)

    def has(self, kind: str, name: str) -> bool:
        return self.seen[kind].lister.get(f"{self.namespace}/{name}") is not None

    async def served(self, name: str, generation: int = 1) -> None:
        """Wait until the operator has said about that generation that it rolls out."""

        def is_so(site: Object | None) -> bool:
            return site is not None and site.at("status", "observedGeneration") == generation

        key = f"{self.namespace}/{name}"
        await self.seen["sites"].wait_for(lambda cache: is_so(cache.get(key)), PATIENCE)

    def audit(self) -> list[dict[str, Any]]:
        """Return all write requests in this namespace, of any client."""
        found = [json.loads(line) for line in self.audited.log.read_text("utf-8").splitlines()]
        return [each for each in found if each["objectRef"].get("namespace") == self.namespace]

    def writes(self, replica: Replica) -> list[dict[str, Any]]:
        """Return what a replica asked for."""
        return [each for each in self.audit() if each["user"]["username"] == replica.user]

    def status_writers(self, name: str) -> list[str]:
        """Return the users that wrote the status of a site, each once."""
        found = [
            each["user"]["username"]
            for each in self.audit()
            if each["objectRef"].get("subresource") == "status"
            and each["objectRef"]["name"] == name
        ]
        return list(dict.fromkeys(found))

    def writers(self, name: str) -> list[tuple[str, int]]:
        """Return who wrote each state of a site's children, by their resourceVersions."""
        states = [each for each in self.states if each.name in (name, f"{name}-html")]
        states.sort(key=lambda each: int(each.resource_version))
        noted = [each.annotations[WRITTEN_BY].split() for each in states]
        return [(who, int(number)) for who, number in noted]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest_asyncio.fixture(loop_scope="module")
async def here(audited: Audited, tmp_path: Path) -> AsyncGenerator[Scene]:
    namespace = f"sites-{secrets.token_hex(4)}"
    async with audited.plane.connect() as client, contextlib.AsyncExitStack() as stack:
        await client.resource("v1/namespaces").create({"metadata": {"name": namespace}})
        kinds = {
            "configmaps": CONFIG_MAPS,
            "services": SERVICES,
            "deployments": DEPLOYMENTS,
            "sites": program.WEBSITES,
            "leases": "coordination.k8s.io/v1/leases",
        }
        seen = {kind: client.informer(name, namespace=namespace) for kind, name in kinds.items()}
        scene = Scene(
            audited=audited,
            namespace=namespace,
            sites=client.resource(program.WEBSITES, namespace=namespace),
            client=client,
            seen=seen,
            folder=tmp_path,
        )

        def note(event: Added[Object] | Updated[Object]) -> None:
            state = event.obj if isinstance(event, Added) else event.new
            if WRITTEN_BY in state.annotations:
                scene.states.append(state)

        for kind in ("configmaps", "services", "deployments"):
            seen[kind].add_event_handler(handler(on_add=note, on_update=note))
        for informer in seen.values():
            await stack.enter_async_context(informer)
            await informer.wait_synced(PATIENCE)
        try:
            yield scene
        finally:
            for replica in scene.replicas:
                await replica.end()


def lines(log: Path, text: str) -> list[str]:
    return [line for line in log.read_text(encoding="utf-8").splitlines() if text in line]


# --- the tests


async def test_one_of_two_acts_and_when_asked_to_end_does_its_work_and_hands_over_at_once(
    here: Scene,
) -> None:
    leader, other = await here.two(slow=1)
    await here.make("one", replicas=2)
    await here.served("one")
    await here.wait_for("deployments", "one", replicas=2)
    await here.wait_for("services", "one")
    await here.wait_for("configmaps", "one-html")
    assert {who for who, _ in here.writers("one")} == {leader.name}
    assert here.writes(other) == []

    await here.make("two")
    await here.wait_for("configmaps", "two-html")
    leader.send(signal.SIGTERM)  # half way
    assert not here.has("deployments", "two")
    assert await leader.ended() == 0
    ended = time.monotonic()
    await here.leader(lambda holder: holder == other.name)
    # It was released: the other replica does not wait for it to expire.
    assert time.monotonic() - ended < DURATION / 2
    assert lines(leader.log, "not done within") == []
    assert [who for who, _ in here.writers("two")][:3] == [leader.name] * 3
    await here.served("two")
    assert here.status_writers("two") == [leader.user]

    await other.is_ready()
    await here.make("three")
    await here.served("three")
    assert {who for who, _ in here.writers("three")} == {other.name}
    await here.sites.delete("one")
    names = {"one.example.com": None, "two.example.com": "two", "three.example.com": "three"}
    await here.wait_for("configmaps", DIRECTORY, **names)
    other.send(signal.SIGTERM)
    assert await other.ended() == 0


async def test_a_leader_that_is_killed_half_way_is_replaced_and_nothing_is_doubled(
    here: Scene,
) -> None:
    leader, other = await here.two(slow=2)
    await here.make("web")
    half = await here.wait_for("configmaps", "web-html")
    leader.send(signal.SIGKILL)
    began = time.monotonic()
    assert not here.has("deployments", "web")  # it was in the middle of it
    assert await leader.ended() == -signal.SIGKILL

    await here.leader(lambda holder: holder == other.name)
    # The others wait for the whole duration since they saw it renewed, and look now and then.
    assert time.monotonic() - began < DURATION + 2.2 * RETRY + 10
    await here.served("web")
    after = await here.wait_for("configmaps", "web-html")
    assert after.uid == half.uid
    for resource in (CONFIG_MAPS, SERVICES, DEPLOYMENTS):
        found = await here.client.resource(resource, namespace=here.namespace).list(
            label_selector={**program.OURS, "app.kubernetes.io/instance": "web"}
        )
        assert len(found) == 1
    directory = await here.wait_for("configmaps", DIRECTORY)
    assert directory["data"] == {"web.example.com": "web"}
    events = await here.client.resource("v1/events", namespace=here.namespace).list()
    created = [each.at("message") for each in events if each.at("reason") == "Created"]
    assert sorted(set(created)) == sorted(created)
    assert check_numbers(here.writers("web")) == [leader.name, other.name]


async def test_a_leader_that_was_paused_half_way_writes_nothing_any_more(here: Scene) -> None:
    leader, other = await here.two(slow=2)
    await here.make("first")
    await here.wait_for("deployments", "first")  # its status is to come
    await here.make("second")
    await here.wait_for("configmaps", "second-html")  # and its Service
    leader.send(signal.SIGSTOP)
    first = here.seen["sites"].lister.get(f"{here.namespace}/first")
    assert first is not None
    assert first.get("status") is None
    assert not here.has("services", "second")

    await here.leader(lambda holder: holder == other.name)
    for name in ("first", "second"):
        await here.sites.patch(name, {"spec": {"html": "new", "replicas": 3}})
        await here.served(name, generation=2)
    states = {each: (await here.sites.get(each)) for each in ("first", "second")}
    leader.send(signal.SIGCONT)  # both reconciles would go on: their time is up, all at once
    assert await leader.ended() == 1
    assert leader.last_words.startswith("error: lease")

    # What the server heard of it: nothing, since before the other led.
    takeover = next(
        each["requestReceivedTimestamp"]
        for each in here.writes(other)
        if each["objectRef"]["resource"] == "leases" and each["responseStatus"]["code"] < 300
    )
    by_old_leader = here.writes(leader)
    late = [
        (each["verb"], each["requestURI"], each["responseStatus"]["code"])
        for each in by_old_leader
        if each["requestReceivedTimestamp"] >= takeover
    ]
    assert late == []
    assert {"leases", "websites", "configmaps"} <= {
        each["objectRef"]["resource"] for each in by_old_leader
    }
    # And the objects are those of the new leader.
    for name in ("first", "second"):
        assert await here.sites.get(name) == states[name]
        await here.wait_for("deployments", name, replicas=3)
        await here.wait_for("configmaps", f"{name}-html", **{"index.html": "new"})
        assert check_numbers(here.writers(name)) == [leader.name, other.name]


def check_numbers(writers: Sequence[tuple[str, int]]) -> list[str]:
    """Check that fencing numbers never fall, and belong to one each; return who wrote in turn."""
    numbers = [number for _, number in writers]
    assert numbers == sorted(numbers)
    by_number = {number: who for who, number in writers}
    assert {(who, number) for number, who in by_number.items()} == set(writers)
    return [by_number[number] for number in sorted(by_number)]

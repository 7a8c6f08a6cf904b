"""The website operator: what a site owns, what is said of it, and what is left when it goes."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import website_operator as program
from examples.website_operator import CHECKSUM, DIRECTORY, FINALIZER, OURS, WRITTEN_BY
from kinform import (
    Controller,
    InvalidError,
    KinformError,
    LeaderElection,
    NotFoundError,
    Object,
    UnknownResourceError,
)
from kinform.apiserver import faults
from kinform.runtime.controller.statistics import Outcome
from kinform.runtime.owner_references import is_controlled_by
from kinform.testing import ControlPlane, in_virtual_time
from tests.examples.support_operator import Scene, scene
from tests.examples.support_programs import check_that_errors_are_one_line, run_program

HOUR = 3600.0


def checksum(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()


def template_checksum(deployment: Object) -> object:
    return deployment.at("spec", "template", "metadata", "annotations", CHECKSUM)


def runs_of(controller: Controller) -> int:
    return controller.statistics().duration.count


# --- what a site owns


@in_virtual_time
async def test_a_site_gets_what_it_owns_a_host_and_a_finalizer() -> None:
    async with scene() as here, here.operator():
        await here.make(html="<p>hi</p>", replicas=2)
        site = await here.sites.get("web")
        assert site.metadata.finalizers == (FINALIZER.name,)
        config_map, service, deployment = await here.children()
        for child in (config_map, service, deployment):
            assert is_controlled_by(child, site)
            assert child.labels.items() >= OURS.items()
        assert config_map["data"] == {"index.html": "<p>hi</p>"}
        labels = deployment.at("spec", "template", "metadata", "labels")
        assert deployment.at("spec", "selector", "matchLabels") == labels
        assert service.at("spec", "selector") == labels
        assert deployment.at("spec", "replicas") == 2
        assert template_checksum(deployment) == checksum("<p>hi</p>")
        volumes = deployment.at("spec", "template", "spec", "volumes")
        assert volumes[0]["configMap"]["name"] == config_map.name
        assert await here.directory() == {"web.example.com": "web"}
        assert await here.events() == ["Created"] * 3


@in_virtual_time
async def test_the_kind_has_defaults_and_limits() -> None:
    async with scene() as here:
        assert (await here.make()).at("spec", "replicas") == 1
        for spec in ({"replicas": 11}, {"replicas": -1}, {"host": "no host"}, {"html": None}):
            with pytest.raises(InvalidError):
                await here.make("bad", **spec)


Doing = Callable[[Scene], Awaitable[object]]
DRIFT: dict[str, Doing] = {
    "config map deleted": lambda here: here.config_maps.delete("web-html"),
    "service deleted": lambda here: here.services.delete("web"),
    "deployment deleted": lambda here: here.deployments.delete("web"),
    "html edited": lambda here: here.config_maps.patch("web-html", {"data": {"index.html": "x"}}),
    "selector edited": lambda here: here.services.patch(
        "web", {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}
    ),
    "scaled": lambda here: here.deployments.patch("web", {"spec": {"replicas": 9}}),
    "labels removed": lambda here: here.deployments.patch("web", {"metadata": {"labels": None}}),
    "owner removed": lambda here: here.services.patch(
        "web", {"metadata": {"ownerReferences": None}}
    ),
    "finalizer removed": lambda here: here.sites.patch("web", {"metadata": {"finalizers": None}}),
    "host taken away": lambda here: here.config_maps.patch(
        DIRECTORY, {"data": {"web.example.com": None}}
    ),
    "directory deleted": lambda here: here.config_maps.delete(DIRECTORY),
    "status edited": lambda here: here.sites.status.patch("web", {"status": {"host": "x"}}),
}


async def everything(here: Scene) -> list[object]:
    """Return what the operator is responsible for."""
    site = await here.sites.get("web")
    config_map, service, deployment = children = await here.children()
    return [
        config_map["data"],
        (service.at("spec", "selector"), service.at("spec", "ports")),
        deployment["spec"],
        *[(dict(each.labels), each.metadata.controller) for each in children],
        (site.metadata.finalizers, site.at("status", "host")),
        await here.directory(),
    ]


async def every_version(here: Scene) -> set[Object]:
    directory = await here.config_maps.get(DIRECTORY)
    return {*await here.children(), directory, await here.sites.get("web")}


@pytest.mark.parametrize("drift", DRIFT)
@in_virtual_time
async def test_what_is_changed_or_deleted_by_hand_comes_back(drift: str) -> None:
    async with scene() as here, here.operator():
        await here.make()
        before, versions = await everything(here), await every_version(here)
        await DRIFT[drift](here)
        await here.settle()
        assert await everything(here) == before
        assert len(await every_version(here) - versions) == 1  # it was another meanwhile


@pytest.mark.slow
@in_virtual_time
async def test_a_settled_site_is_left_in_peace_by_this_operator_and_the_next() -> None:
    async with scene() as here:
        async with here.operator() as controller:
            await here.make()
            await here.roll_out()
            before = [each.resource_version for each in await here.children()]
            site = await here.sites.get("web")
            runs = runs_of(controller)
            await asyncio.sleep(HOUR)
            assert runs_of(controller) == runs
        async with here.operator():
            assert [each.resource_version for each in await here.children()] == before
            assert await here.sites.get("web") == site
            assert await here.events() == ["Created"] * 3


# --- changes


@in_virtual_time
async def test_new_html_replaces_the_pods_and_another_host_does_not() -> None:
    async with scene() as here, here.operator():
        await here.make()
        generation = (await here.deployments.get("web")).metadata.generation
        await here.change(host="elsewhere.example.com")
        assert (await here.deployments.get("web")).metadata.generation == generation
        assert await here.directory() == {"elsewhere.example.com": "web"}

        await here.change(html="new")
        config_map, _, deployment = await here.children()
        assert config_map["data"] == {"index.html": "new"}
        assert template_checksum(deployment) == checksum("new")
        assert (await here.events())[3:] == ["Published"]


@in_virtual_time
async def test_a_site_is_scaled_by_its_spec_and_as_kubectl_scale_does() -> None:
    async with scene() as here, here.operator():
        await here.make()
        await here.change(replicas=3)
        assert (await here.deployments.get("web")).at("spec", "replicas") == 3
        await here.sites.scale.patch("web", {"spec": {"replicas": 0}})
        await here.settle()
        assert (await here.deployments.get("web")).at("spec", "replicas") == 0
        assert (await here.events())[3:] == ["ScaledUp", "ScaledDown"]


# --- what is said of it


@in_virtual_time
async def test_conditions_follow_the_status_of_the_deployment() -> None:
    async with scene() as here, here.operator():
        await here.make(replicas=2)
        assert await here.conditions() == {
            "Available": ("False", "NoReplicas"),
            "Progressing": ("True", "RollingOut"),
            "Degraded": ("False", "AsExpected"),
        }
        await here.roll_out(availableReplicas=1, readyReplicas=1)
        assert (await here.conditions())["Available"] == ("True", "Serving")
        assert (await here.conditions())["Progressing"] == ("True", "RollingOut")
        assert await here.message("web", "Available") == "1 of 2 replicas are available"
        await here.roll_out()
        assert (await here.conditions())["Progressing"] == ("False", "Complete")
        status = (await here.sites.get("web"))["status"]
        assert (status["replicas"], status["readyReplicas"]) == (2, 2)

        await here.change(html="new")  # the same counts, of an older generation
        assert (await here.conditions())["Progressing"] == ("True", "RollingOut")
        stuck = {
            "type": "Progressing",
            "status": "False",
            "reason": "ProgressDeadlineExceeded",
            "message": "no pod gets ready",
        }
        await here.roll_out(updatedReplicas=1, conditions=[stuck])
        assert (await here.conditions())["Degraded"] == ("True", "ProgressDeadlineExceeded")
        assert await here.message("web", "Degraded") == "no pod gets ready"


@in_virtual_time
async def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    async with scene() as here, here.operator():
        await here.make()

        async def since() -> dict[object, object]:
            conditions = (await here.sites.get("web")).at("status", "conditions")
            return {each["type"]: each["lastTransitionTime"] for each in conditions}

        first = await since()
        await asyncio.sleep(HOUR)
        await here.roll_out()
        second = await since()
        assert second["Degraded"] == first["Degraded"]
        assert second["Available"] != first["Available"]
        assert second["Progressing"] != first["Progressing"]


# --- what cannot be


@in_virtual_time
async def test_a_site_that_cannot_be_served_is_told_once_and_not_tried_again() -> None:
    """A Service has a stricter name than a Website: the server refuses it."""
    async with scene() as here, here.operator() as controller:
        await here.make("not.for.a.service")
        conditions = await here.conditions("not.for.a.service")
        assert conditions["Degraded"] == ("True", "Invalid")
        assert conditions["Progressing"] == ("False", "Invalid")
        assert "Service" in str(await here.message("not.for.a.service", "Degraded"))
        assert await here.events("not.for.a.service") == ["Created", "Invalid"]
        runs = runs_of(controller)
        await asyncio.sleep(HOUR)
        assert runs_of(controller) == runs
        assert controller.statistics().outcomes[Outcome.ERROR] == 0

        await here.make("good")  # and no other is held up
        assert (await here.conditions("good"))["Degraded"] == ("False", "AsExpected")


@in_virtual_time
async def test_of_two_sites_with_one_host_the_first_keeps_it_and_the_second_waits() -> None:
    async with scene() as here, here.operator() as controller:
        await here.make("first", host="www.example.com")
        await here.make("second", host="www.example.com")
        assert await here.directory() == {"www.example.com": "first"}
        assert (await here.conditions("first"))["Degraded"] == ("False", "AsExpected")
        assert (await here.conditions("second"))["Degraded"] == ("True", "HostTaken")
        assert await here.events("second") == ["HostTaken"]
        with pytest.raises(NotFoundError):
            await here.deployments.get("second")
        runs = runs_of(controller)
        await asyncio.sleep(HOUR)
        assert runs_of(controller) == runs

        await here.sites.delete("first")
        await here.settle()
        assert await here.directory() == {"www.example.com": "second"}
        assert (await here.conditions("second"))["Degraded"] == ("False", "AsExpected")
        await here.children("second")


@in_virtual_time
async def test_a_host_that_is_taken_leaves_a_site_as_it_was() -> None:
    async with scene() as here, here.operator():
        await here.make("first")
        await here.make("second")
        await here.roll_out("second")
        await here.change("second", host="first.example.com", html="new")
        conditions = await here.conditions("second")
        assert conditions["Degraded"] == ("True", "HostTaken")
        assert conditions["Available"] == ("True", "Serving")
        assert (await here.directory())["second.example.com"] == "second"
        assert (await here.config_maps.get("second-html"))["data"] == {"index.html": "hello"}

        await here.change("first", host="third.example.com")
        assert await here.directory() == {
            "first.example.com": "second",
            "third.example.com": "first",
        }
        assert (await here.config_maps.get("second-html"))["data"] == {"index.html": "new"}


@in_virtual_time
async def test_a_host_that_is_given_back_in_the_moment_of_the_refusal_is_noticed() -> None:
    async with scene() as here, here.operator():
        body = {"metadata": {"name": DIRECTORY, "labels": OURS}}
        await here.config_maps.create({**body, "data": {"web.example.com": "ghost"}})
        await here.make()
        assert (await here.conditions())["Degraded"] == ("True", "HostTaken")
        here.server.faults.add(faults.drip(size=64, every=1.0, verb="get", resource="configmaps"))
        await here.sites.patch("web", {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(1)  # the answer, that the host is taken, is on its way
        await here.config_maps.patch(DIRECTORY, {"data": {"web.example.com": None}})
        await here.settle()
        here.server.faults.clear()
        await here.settle()
        assert await here.directory() == {"web.example.com": "web"}


@in_virtual_time
async def test_a_name_that_another_controller_has_is_asked_for_again_and_again() -> None:
    async with scene() as here, here.operator():
        owner = await here.config_maps.create({"metadata": {"name": "owner"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
        metadata = {"name": "web", "ownerReferences": [{**reference, "controller": True}]}
        await here.services.create({"metadata": metadata, "spec": {"ports": [{"port": 1}]}})
        await here.make()
        assert (await here.conditions())["Degraded"] == ("True", "NameTaken")
        assert (await here.services.get("web")).at("spec", "ports", 0, "port") == 1
        await here.services.delete("web")
        await asyncio.sleep(60)
        assert (await here.conditions())["Degraded"] == ("False", "AsExpected")


HOSTS = st.sampled_from(["a.example.com", "b.example.com"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["one", "two", "three"]), st.none() | HOSTS, st.booleans()),
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=15)
@given(steps=STEPS)
def test_no_host_is_ever_shared_lost_or_held_by_nobody(
    steps: list[tuple[str, str | None, bool]],
) -> None:
    @in_virtual_time
    async def check() -> None:
        async with scene() as here, here.operator():
            hosts: dict[str, str] = {}
            for name, host, waits in steps:
                if host is None:
                    hosts.pop(name, None)
                    await ignoring_absence(here.sites.delete(name))
                elif name in hosts:
                    hosts[name] = host
                    await here.sites.patch(name, {"spec": {"host": host}})
                else:
                    await here.settle()  # its predecessor may be on its way out
                    hosts[name] = host
                    body = {"metadata": {"name": name}, "spec": {"html": "", "host": host}}
                    await here.sites.create(body)
                if waits:
                    await here.settle()
            await here.settle()
            directory = await here.directory()
            for name, host in hosts.items():
                is_refused = (await here.conditions(name))["Degraded"] == ("True", "HostTaken")
                assert is_refused == (directory[host] != name)
            assert set(directory.values()) <= set(hosts)
            assert set(hosts.values()) <= set(directory)

    check()


async def ignoring_absence(work: Awaitable[object]) -> None:
    with contextlib.suppress(NotFoundError):
        await work


# --- the end


@in_virtual_time
async def test_a_site_that_is_deleted_gives_its_host_back_even_if_nobody_was_there() -> None:
    async with scene() as here:
        async with here.operator():
            await here.make("one")
            await here.make("two")
        await here.sites.delete("one", propagation="Background")
        await here.settle()
        assert (await here.sites.get("one")).metadata.deletion_timestamp  # it waits for us
        assert set(await here.directory()) == {"one.example.com", "two.example.com"}
        async with here.operator():
            assert await here.directory() == {"two.example.com": "two"}
            with pytest.raises(NotFoundError):
                await here.sites.get("one")
            with pytest.raises(NotFoundError):
                await here.deployments.get("one")
            await here.children("two")


@in_virtual_time
async def test_a_refused_site_can_be_deleted_and_takes_nothing_with_it() -> None:
    async with scene() as here, here.operator():
        await here.make("one", host="www.example.com")
        await here.make("two", host="www.example.com")
        await here.sites.delete("two")
        await here.settle()
        assert await here.directory() == {"www.example.com": "one"}
        await here.sites.delete("one")
        await here.settle()
        assert await here.directory() == {}
        assert not await here.sites.list()


# --- trouble


@pytest.mark.slow
@in_virtual_time
async def test_the_kind_may_be_installed_after_the_start() -> None:
    async with scene(installs=False) as here, here.operator() as controller:
        await asyncio.sleep(HOUR)
        assert runs_of(controller) == 0
        with pytest.raises(UnknownResourceError):
            await here.sites.list()
        await program.install_crd(here.client)
        await asyncio.sleep(120)
        await here.make()
        await here.children()


@in_virtual_time
async def test_a_site_that_is_gone_gets_no_host_though_the_cache_still_shows_it() -> None:
    async with scene() as here, here.operator():
        await here.make()
        for verb in ("list", "watch"):
            here.server.faults.add(faults.reset(verb=verb, resource="websites"))
        here.server.cluster.storage.disconnect()
        await here.settle()
        # Another leader has done it all, and of that we hear of the directory alone.
        await here.sites.patch("web", {"metadata": {"finalizers": None}})
        await here.sites.delete("web")
        await here.config_maps.patch(DIRECTORY, {"data": None})
        await asyncio.sleep(120)
        here.server.faults.clear()
        await asyncio.sleep(240)
        assert await here.directory() == {}


@in_virtual_time
async def test_nothing_is_told_twice_though_the_cache_is_behind() -> None:
    async with scene() as here:
        for resource, size in (("websites", 512), ("services", 256), ("deployments", 64)):
            drip = faults.drip(size=size, every=0.1, verb="watch", resource=resource)
            here.server.faults.add(drip)
        async with here.operator():
            await here.make(host="www.example.com")
            await here.make("other", host="www.example.com")
            await asyncio.sleep(60)
            assert await here.events() == ["Created"] * 3
            assert await here.events("other") == ["HostTaken"]


class Crash(KinformError):
    """The end of a process, as far as the server can tell: it hears nothing more."""


@pytest.mark.slow
@in_virtual_time
async def test_whichever_write_is_the_last_of_an_operator_the_next_one_completes_it() -> None:
    found_half_done: set[int] = set()
    for last in range(10):
        writes = iter(range(last))

        def dies(writes: Iterator[int] = writes) -> None:
            if next(writes, None) is None:
                raise Crash

        async with scene() as here:
            await here.sites.create({"metadata": {"name": "web"}, "spec": {"html": "hello"}})
            async with here.operator(guard=dies):
                pass
            made = await ours(here)
            found_half_done.add(len(made))
            async with here.operator():
                assert made <= await ours(here)
                await here.children()
                assert await here.directory() == {"web.example.com": "web"}
                assert (await here.conditions())["Progressing"] == ("True", "RollingOut")
    assert found_half_done == {0, 1, 2, 3, 4}


async def ours(here: Scene) -> set[tuple[str, str]]:
    """Return kind and uid of all objects: a directory and three children, when all is done."""
    return {
        (each.kind, each.uid)
        for resource in (here.config_maps, here.services, here.deployments)
        for each in await resource.list(label_selector=OURS)
    }


@in_virtual_time
async def test_a_server_that_refuses_to_write_for_a_while_is_waited_for() -> None:
    async with scene() as here, here.operator() as controller:
        for verb in ("patch", "create", "update"):
            here.server.faults.add(faults.status(verb=verb, code=500, resource="configmaps"))
        here.server.faults.add(faults.status(verb="patch", code=500, resource="deployments"))
        await here.sites.create({"metadata": {"name": "web"}, "spec": {"html": "hello"}})
        await asyncio.sleep(60)
        assert controller.statistics().outcomes[Outcome.ERROR] > 0
        here.server.faults.clear()
        await asyncio.sleep(120)
        await here.children()
        assert (await here.conditions())["Degraded"] == ("False", "AsExpected")


@in_virtual_time
async def test_of_two_replicas_one_acts_and_the_other_follows_with_a_higher_number() -> None:
    async with scene() as here:

        async def writers() -> set[tuple[str, int]]:
            noted = [each.annotations[WRITTEN_BY].split() for each in await here.children()]
            return {(who, int(number)) for who, number in noted}

        def election(identity: str) -> LeaderElection:
            return LeaderElection(lease="sites", namespace="default", identity=identity)

        async with here.operator(identity="one", election=election("one")):
            await here.make()
            ((first, number),) = await writers()
            assert first == "one"
            async with asyncio.TaskGroup() as group:
                over = asyncio.Event()

                async def other() -> None:
                    async with here.operator(identity="two", election=election("two")):
                        await over.wait()

                group.create_task(other())
                await asyncio.sleep(120)
                await here.change(html="new")
                assert await writers() == {("one", number)}
                over.set()
        async with here.operator(identity="two", election=election("two")):
            ((second, higher),) = await writers()
            assert (second, higher > number) == ("two", True)
            assert (await here.events()).count("Created") == 3


# --- the program


@pytest.mark.slow
def test_its_demo_ends_well_where_no_cluster_is(tmp_path: Path) -> None:
    done = run_program("website_operator.py", "--demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all gone"
    check_that_errors_are_one_line("website_operator.py", "--demo", home=tmp_path)
    check_that_errors_are_one_line("website_operator.py", home=tmp_path)


@pytest.mark.e2e
@pytest.mark.slow
def test_its_demo_ends_well_on_a_control_plane(kinform_control_plane: ControlPlane) -> None:
    kubeconfig = kinform_control_plane.kubeconfig_path
    done = run_program("website_operator.py", "--demo", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all gone"

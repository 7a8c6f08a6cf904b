"""Invalid calls raise at once, with a message that says what to do; no other error escapes."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kinform.apiserver import APIServer, faults
from kinform.apiserver.faults.kinds import about_verb
from kinform.apiserver.faults.plan import FaultPlan
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.testing import in_virtual_time

VERBS = "get, list, watch, create, update, patch, delete, deletecollection"


def refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        call()


def test_an_error_about_a_mistyped_verb_lists_the_verbs() -> None:
    words = f"close: verb: there is no 'lst', did you mean 'list'? There are {VERBS}"
    verb: Any = "lst"
    refused(lambda: faults.close(verb=verb), words)
    refused(lambda: faults.load("- close: {verb: lst}"), f"entry 1 (close): {words[7:]}")


@pytest.mark.parametrize("verb", ["xyz", 5, True, []])
def test_an_error_about_an_unknown_verb_makes_no_guess(verb: Any) -> None:
    refused(lambda: faults.gzip(verb=verb), f"verb: there is no {verb!r}; there are {VERBS}")


def test_every_verb_and_none_is_accepted() -> None:
    assert [about_verb(verb, VERBS.split(", ")) for verb in (*VERBS.split(", "), None)] == [
        None
    ] * 9


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (faults.status, "status: code: expected `int`, got `str`"),
        (faults.latency, "latency: seconds: expected `float`, got `str`"),
        (lambda wrong: faults.close(nth=wrong), "close: nth: expected `int | null`, got `str`"),
        (lambda wrong: faults.gzip(times=wrong), "gzip: times: expected `int | null`, got `str`"),
    ],
    ids=["code", "seconds", "nth", "times"],
)
def test_a_text_for_a_figure_is_refused(make: Callable[[Any], object], words: str) -> None:
    refused(lambda: make("429"), words)


def test_a_figure_is_of_its_own_kind() -> None:
    assert faults.latency(1).options() == {"seconds": 1}
    flag: Any = True
    refused(lambda: faults.status(flag), "status: code: expected `int`, got `bool`")


@pytest.mark.parametrize("wrong", ["close", faults.close, None, {"close": None}])
def test_only_faults_can_be_added(wrong: Any) -> None:
    refused(lambda: FaultPlan().add(wrong), "is not a fault; make one with faults.close(...)")
    refused(lambda: FaultPlan([wrong]), "or of YAML with faults.load(text)")


@pytest.mark.parametrize("wrong", ["- gzip:", [faults.gzip()], {}])
def test_an_error_about_a_plan_says_how_to_make_one(wrong: Any) -> None:
    refused(lambda: APIServer(faults=wrong), "FaultPlan(faults.load(text)) of YAML")


@pytest.mark.parametrize("port", [-5, 65536, 99999, "8080", True, 80.0])
def test_an_invalid_port_is_refused(port: Any) -> None:
    refused(lambda: APIServer(port=port), f"or None (no port), got {port!r}")


@pytest.mark.parametrize("port", [None, 0, 1, 65535])
def test_all_ports_there_are_can_be_asked_for(port: int | None) -> None:
    assert repr(APIServer(port=port)) == "<APIServer, not started>"


def test_an_empty_token_is_refused_and_a_wrong_one_not_shown() -> None:
    refused(lambda: APIServer(token=""), "token: it is empty; leave it out for a random one")
    wrong: Any = b"secret"
    with pytest.raises(UsageError, match="got bytes") as caught:
        APIServer(token=wrong)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("port", [0, None])
def test_a_server_that_is_not_started_says_how_to_start_it(port: int | None) -> None:
    server = APIServer(port=port)
    words = "the server is not started: use `async with APIServer() as server`"
    refused(lambda: server.url, words)
    refused(server.connect, words)
    refused(server.kubeconfig, words)
    refused(server.compact, words)


@in_virtual_time
async def test_a_server_without_a_port_says_what_to_use_instead() -> None:
    async with APIServer(port=None) as server:
        words = "the server has no port (port=None); use server.connect()"
        refused(lambda: server.url, words)
        refused(server.kubeconfig, words)


@in_virtual_time
async def test_an_error_about_an_unknown_revision_names_the_current_one() -> None:
    async with APIServer(port=None) as server:
        now = server.cluster.storage.revision
        for revision in (0, -1, now + 1):
            words = f"revision {revision} does not exist: the first is 1, the current one {now}"
            refused(lambda: server.restore(revision), words)  # noqa: B023 - called at once
            refused(lambda: server.compact(revision), words)  # noqa: B023
        wrong: Any = "5"
        refused(lambda: server.restore(wrong), "revision: expected a number, got '5'")
        assert server.cluster.storage.revision == now
        server.restore(now)
        server.compact(now)


@in_virtual_time
async def test_an_error_about_a_forgotten_revision_names_the_oldest() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource("v1/configmaps").create({"metadata": {"name": "a"}})
        server.compact()
        now = server.cluster.storage.revision
        words = f"revision {now - 1} is forgotten, the oldest is {now}, the current one {now}"
        refused(lambda: server.restore(now - 1), words)


async def test_a_server_shows_where_it_is_and_never_its_token() -> None:
    server = APIServer(token="a-secret-of-mine")
    assert repr(server) == "<APIServer, not started>"
    async with server:
        assert repr(server) == f"<APIServer at {server.url}, running>"
    assert repr(server) == "<APIServer, stopped>"


@in_virtual_time
async def test_a_server_without_a_port_says_so() -> None:
    async with APIServer(port=None) as server:
        assert repr(server) == "<APIServer without a port, running>"


async def test_faults_can_be_changed_from_another_thread() -> None:
    async with APIServer(port=None) as server:
        fault = faults.refuse(duration=3600)  # needs the timer of the server's own loop
        seen: list[str] = []
        server.faults.when_refusing(lambda: seen.append(threading.current_thread().name))
        await offload(server.faults.add, fault)
        assert server.faults.is_refusing
        with pytest.raises(UsageError, match="in the plan already"):
            await offload(server.faults.add, fault)
        await offload(server.faults.remove, fault)
        stalled = server.faults.add(faults.stall())
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            tasks.create_task(server.faults.wait_removed(stalled))
            await offload(server.faults.clear)
        assert seen == [threading.main_thread().name] * 2
    await offload(server.faults.add, faults.gzip())  # of no server: done at once

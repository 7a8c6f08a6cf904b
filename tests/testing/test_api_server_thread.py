"""The embedded server beside a test: from any loop, from none, and gone afterwards."""

from __future__ import annotations

import threading
import urllib.request  # noqa: TID251 - a client that is not ours

import pytest

from kinform.apiserver import APIServer, faults
from kinform.client import Client
from kinform.errors import NotFoundError, ResourceExpiredError, UsageError
from kinform.testing import APIServerThread


def servers() -> set[threading.Thread]:
    """Return the threads of servers; tests that ran before may have left theirs to the session."""
    return {thread for thread in threading.enumerate() if thread.name == "kinform-apiserver"}


def test_a_blocking_client_can_use_it(kinform_apiserver: APIServerThread) -> None:
    request = urllib.request.Request(  # noqa: TID251
        f"{kinform_apiserver.url}/api/v1/namespaces/default",
        headers={"Authorization": f"Bearer {kinform_apiserver.token}"},
    )
    with urllib.request.urlopen(request) as response:  # noqa: TID251
        assert response.status == 200


async def test_the_client_fixture_is_a_client_of_the_same_server(
    kinform_apiserver: APIServerThread, kinform_client: Client
) -> None:
    async with kinform_client as client, kinform_apiserver.connect() as other:
        await client.resource("v1/configmaps").create({"metadata": {"name": "a"}})
        assert (await other.resource("v1/configmaps").get("a")).metadata.name == "a"


async def test_each_test_has_a_server_of_its_own(kinform_client: Client) -> None:
    async with kinform_client as client:
        with pytest.raises(NotFoundError):
            await client.resource("v1/configmaps").get("a")


async def test_what_is_done_to_the_server_is_done_in_its_thread(
    kinform_apiserver: APIServerThread,
) -> None:
    assert kinform_apiserver.call(lambda _: threading.current_thread().name) == "kinform-apiserver"
    async with kinform_apiserver.connect() as client:
        configmaps = client.resource("v1/configmaps")
        first = await configmaps.create({"metadata": {"name": "a"}})
        await configmaps.create({"metadata": {"name": "b"}})
        revision = int(first.resource_version)
        kinform_apiserver.restore(revision)
        assert [cm.metadata.name for cm in await configmaps.list()] == ["a"]
        kinform_apiserver.compact()
        with pytest.raises(ResourceExpiredError):
            await configmaps.list(
                resource_version=str(revision - 1), resource_version_match="Exact"
            )


def test_an_error_of_a_call_is_the_callers(kinform_apiserver: APIServerThread) -> None:
    def fail(server: APIServer) -> None:
        raise LookupError(server.url)

    with pytest.raises(LookupError):
        kinform_apiserver.call(fail)
    assert kinform_apiserver.url


def test_a_server_that_cannot_start_says_why_and_leaves_no_thread(
    kinform_apiserver: APIServerThread,
) -> None:
    port = int(kinform_apiserver.url.rpartition(":")[2])
    before = servers()
    with pytest.raises(UsageError, match=f"port {port} is in use"):
        APIServerThread(APIServer(port=port)).__enter__()
    assert servers() <= before


def test_it_is_gone_after_the_test() -> None:
    before = servers()
    with APIServerThread() as server:
        assert len(servers() - before) == 1
    assert servers() <= before
    with pytest.raises(UsageError, match="has ended; make another one"):
        server.compact()
    with pytest.raises(UsageError, match="can be started once; make another one"):
        server.__enter__()


def test_one_that_is_not_started_says_how_to_start_it() -> None:
    server = APIServerThread()
    calls = (lambda: server.url, server.connect, server.kubeconfig, server.compact)
    for call in calls:
        with pytest.raises(UsageError, match="not started: use `with APIServerThread"):
            call()


def test_one_that_runs_cannot_be_started_again(kinform_apiserver: APIServerThread) -> None:
    with pytest.raises(UsageError, match="can be started once; make another one"):
        kinform_apiserver.__enter__()
    assert kinform_apiserver.call(lambda server: server.url) == kinform_apiserver.url


def test_a_revision_that_never_was_is_told(kinform_apiserver: APIServerThread) -> None:
    with pytest.raises(UsageError, match=r"revision 99999 does not exist: .* the current one "):
        kinform_apiserver.restore(99999)
    with pytest.raises(UsageError, match=r"revision 99999 does not exist: .* the current one "):
        kinform_apiserver.compact(99999)


def test_it_shows_where_it_is_and_never_its_token() -> None:
    thread = APIServerThread(APIServer(token="a-secret-of-mine"))
    assert repr(thread) == "<APIServerThread of <APIServer, not started>>"
    with thread as server:
        assert repr(server) == f"<APIServerThread of <APIServer at {server.url}, running>>"


async def test_faults_are_added_and_removed_from_the_test(
    kinform_apiserver: APIServerThread,
) -> None:
    async with kinform_apiserver.connect() as client:
        configmaps = client.resource("v1/configmaps")
        fault = kinform_apiserver.faults.add(faults.status(404, verb="list"))
        with pytest.raises(NotFoundError):
            await configmaps.list()
        kinform_apiserver.faults.remove(fault)
        assert await configmaps.list() is not None
        assert fault.hits == 1


def test_a_fault_that_needs_a_timer_can_be_added_where_there_is_no_event_loop(
    kinform_apiserver: APIServerThread,
) -> None:
    kinform_apiserver.faults.add(faults.refuse(duration=3600))
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(kinform_apiserver.url)  # noqa: TID251
    kinform_apiserver.faults.clear()
    with pytest.raises(OSError, match="401"):
        urllib.request.urlopen(kinform_apiserver.url)  # noqa: TID251

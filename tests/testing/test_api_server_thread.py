"""The embedded server beside a test: from any loop, from none, and gone afterwards."""

from __future__ import annotations

import threading
import urllib.request  # noqa: TID251 - a client that is not ours

import pytest

from kinform.apiserver import APIServer
from kinform.client import Client
from kinform.errors import NotFoundError, ResourceExpiredError, UsageError
from kinform.testing import APIServerThread


def names_of_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


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
    before = threading.active_count()
    with pytest.raises(UsageError, match=f"port {port} is in use"):
        APIServerThread(APIServer(port=port)).__enter__()
    assert threading.active_count() == before


def test_it_is_gone_after_the_test() -> None:
    with APIServerThread() as server:
        assert "kinform-apiserver" in names_of_threads()
    assert "kinform-apiserver" not in names_of_threads()
    with pytest.raises(UsageError):
        server.compact()

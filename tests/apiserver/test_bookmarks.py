"""Bookmarks: every event up to their revision was sent before."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.serializer.json_values import Json
from kinform.testing import in_virtual_time

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def answer(api: APIServer, method: str, query: str = "", body: bytes = b"") -> ServerResponse:
    headers = {"authorization": "Bearer x", "content-type": "application/json"}
    request = ServerRequest.of(method, CONFIG_MAPS + query, headers=headers, body=body)
    return await api.application.handle(request)


async def create(api: APIServer, name: str) -> None:
    response = await answer(api, "POST", body=b'{"metadata":{"name":"%s"}}' % name.encode())
    assert response.status == 201


@in_virtual_time
async def test_a_bookmark_never_runs_ahead_of_a_client_that_reads_slowly() -> None:
    """While one event is on its way another change happens, and a bookmark becomes due."""
    async with APIServer(port=None, token="x") as api:
        version = api.cluster.storage.revision
        watch = await answer(
            api, "GET", f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        )
        assert not isinstance(watch.body, bytes)
        events = list[Json]()
        async with contextlib.aclosing(watch.body) as chunks:
            await create(api, "a")
            events.append(msgspec.json.decode(await anext(chunks)))
            await create(api, "b")
            await asyncio.sleep(100)
            for _ in range(3):
                events.append(msgspec.json.decode(await anext(chunks)))
    assert [it["type"] for it in events] == ["ADDED", "BOOKMARK", "ADDED", "BOOKMARK"]
    versions = [int(it["object"]["metadata"]["resourceVersion"]) for it in events]
    assert versions == [version + 1, version + 1, version + 2, version + 2]

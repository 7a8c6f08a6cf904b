"""Writes to an API server without end, to be killed: ``python endless_writer.py FILE ROUND``.

Each line of its output is a write that was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import msgspec

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.serializer.json_values import Json

PATH = "/api/v1/namespaces/default/configmaps"
CREATORS = 8


class Writer:
    """A client of a server in this process."""

    def __init__(self, server: APIServer) -> None:
        self._server = server

    async def send(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"authorization": "Bearer x", "content-type": "application/json"}
        content = b"" if body is None else msgspec.json.encode(body)
        request = ServerRequest.of(method, path, headers=headers, body=content)
        response = await self._server.application.handle(request)
        assert isinstance(response.body, bytes)
        answer: Json = msgspec.json.decode(response.body)
        assert response.status < 300, answer
        return answer

    async def create(self, name: str, value: int = 0) -> Json:
        obj: Json = {"metadata": {"name": name}, "data": {"value": str(value)}}
        return await self.send("POST", PATH, obj)


def acknowledge(verb: str, obj: Json) -> None:
    meta = obj["metadata"]
    value = obj["data"]["value"]
    line = f"{verb} {meta['name']} {meta['uid']} {meta['resourceVersion']} {value}\n"
    sys.stdout.write(line)
    sys.stdout.flush()


async def create_forever(writer: Writer, prefix: str) -> None:
    async for number in counting():
        acknowledge("created", await writer.create(f"{prefix}-{number}"))


async def update_forever(writer: Writer, name: str) -> None:
    obj = await writer.create(name)
    async for number in counting():
        obj["data"]["value"] = str(number)
        obj = await writer.send("PUT", f"{PATH}/{name}", obj)
        acknowledge("updated", obj)


async def delete_forever(writer: Writer, prefix: str) -> None:
    async for number in counting():
        obj = await writer.create(f"{prefix}-{number}")
        await writer.send("DELETE", f"{PATH}/{prefix}-{number}")
        acknowledge("deleted", obj)


async def counting() -> AsyncIterator[int]:
    number = 0
    while True:
        number += 1
        yield number


async def main(path: str, turn: str) -> None:
    async with APIServer(port=None, token="x", data=path) as server, asyncio.TaskGroup() as group:
        writer = Writer(server)
        for number in range(CREATORS):
            group.create_task(create_forever(writer, f"c{turn}-{number}"))
        group.create_task(update_forever(writer, f"u{turn}"))
        group.create_task(delete_forever(writer, f"d{turn}"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

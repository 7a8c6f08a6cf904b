"""A watch as it stands on the wire: one HTTP chunk per event.

A ConfigMap is created, watched and edited, once through the deprecated path
``/api/v1/watch/namespaces/NS/configmaps/NAME`` and once through the modern one; the size of each
chunk is printed. ``python examples/http_chunks.py [--namespace NAME]``
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator

import kinform
from kinform.rest.request import Request

NAME = "kinform-chunks"


async def chunks(request: Request) -> AsyncGenerator[bytes]:
    """Yield the HTTP chunks of an answer, each put together from the reads it came in."""
    async with request.stream() as response:
        print(f"HTTP {response.status}, Transfer-Encoding: {response.headers['Transfer-Encoding']}")
        chunk = b""
        async for data, chunk_ends in response.iter_chunks():
            chunk += data
            if chunk_ends:
                yield chunk
                chunk = b""


async def main(namespace: str | None) -> None:
    async with kinform.connect(namespace=namespace) as client:
        namespace = client.config.namespace
        maps = client.resource("v1/configmaps")
        old = client.rest("v1").get().prefix("watch").namespace(namespace)
        new = client.rest("v1").get().namespace(namespace).resource("configmaps")
        await maps.apply({"metadata": {"name": NAME}, "data": {"n": "0"}}, field_manager="chunks")
        try:
            requests = {
                "deprecated": old.resource("configmaps").name(NAME),
                "modern": new.params({"watch": True, "fieldSelector": f"metadata.name={NAME}"}),
            }
            for form, request in requests.items():
                print(f"{form}: GET {request.url}")
                await show(maps, request)
        finally:
            await maps.delete(NAME)


async def show(maps: kinform.ResourceClient[kinform.Object], request: Request) -> None:
    """Print the first chunk, edit the ConfigMap, print the chunk that follows."""
    async with contextlib.aclosing(chunks(request)) as received:
        for edits in range(2):
            chunk = await anext(received)
            event = json.loads(chunk)
            version = event["object"]["metadata"]["resourceVersion"]
            print(f"  chunk of {len(chunk):4} bytes: {event['type']} at version {version}")
            if edits == 0:
                await maps.patch(NAME, {"data": {"edited-at": version}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--namespace", help="instead of the context's")
    try:
        asyncio.run(main(parser.parse_args().namespace))
    except kinform.KinformError as error:
        sys.exit(f"error: {error}")

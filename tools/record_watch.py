"""Record watches of a real kube-apiserver as they are on the wire, to the byte.

    python -m tools.record_watch        on a control plane of its own

Writes ``tests/faults/recorded_watch.json``, which tests cut at every byte: heads, chunks, events of
every type. Only what the server says is kept. Versions, uids and times are new each time, so the
file is never the same twice; see `tests.faults.support_recorded`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, final
from urllib.parse import urlencode, urlsplit

from kinform import Client, Resource
from kinform.testing import ControlPlane
from tests.contract.target import Target, of_control_plane
from tests.faults.support_recorded import FILE, NAMESPACE, Recorded, save

__all__ = ["main"]

PATIENCE: Final = 60.0
MAPS: Final = Resource.of("v1/configmaps", kind="ConfigMap", namespaced=True)
SECONDS: Final = 6
"""The timeout of the watch; two seconds before it there is a bookmark."""
BARE: Final = [dict[str, str]()]
"""As ``managedFields``, it has the server keep none: they are much text, and all alike."""
STREAMED: Final = {
    "watch": "true",
    "allowWatchBookmarks": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "timeoutSeconds": str(SECONDS),
}
LIST_END: Final = b'"k8s.io/initial-events-end":"true"'
LAST_CHUNK: Final = b"\r\n0\r\n\r\n"


def main() -> None:
    """Record everything."""
    recorded = asyncio.run(record())
    size = save(recorded)
    sizes = ", ".join(f"{name} {len(answer)}" for name, answer in recorded._asdict().items())
    sys.stderr.write(f"{FILE.name}: {size} bytes ({sizes})\n")


async def record() -> Recorded:
    """Create a history of objects, and record every form of watch on it."""
    async with ControlPlane() as plane:
        server = of_control_plane(plane)
        async with plane.connect() as client:
            await client.resource("v1/namespaces").create({"metadata": {"name": NAMESPACE}})
            await create(client, "a")
            watch = await changes(server, client)
            await create(client, "c")
        await plane.compact()
        since = re.findall(rb'"resourceVersion":"(\d+)"', watch)[-1].decode()
        return Recorded(
            watch=watch,
            look=await whole(server, {"limit": "1"}, end=b"}\n"),
            expired=await whole(
                server, {"watch": "true", "resourceVersion": since}, end=LAST_CHUNK
            ),
            afterwards=await whole(server, STREAMED, end=LIST_END + b"}}}}\n\r\n"),
        )


async def changes(server: Target, client: Client) -> bytes:
    """Return a watch with events of every type that a watch can go on after."""
    async with asked(server, STREAMED) as answer:
        await answer.until(LIST_END)
        maps = client.resource(MAPS, namespace=NAMESPACE)
        await create(client, "b")
        await maps.patch("b", {"metadata": {"annotations": {"k": "ü\u0085\u2028"}}})
        await maps.delete("a")
        # No event shows this one: the bookmark has a version of its own.
        await create(client, "elsewhere", namespace="default")
        await answer.until(LAST_CHUNK)
        return answer.said


async def create(client: Client, name: str, *, namespace: str = NAMESPACE) -> None:
    """Create an object of few bytes."""
    metadata = {"name": name, "managedFields": BARE}
    await client.resource(MAPS, namespace=namespace).create({"metadata": metadata})


async def whole(server: Target, query: dict[str, str], *, end: bytes) -> bytes:
    """Return an answer up to its ``end``."""
    async with asked(server, query) as answer:
        await answer.until(end)
        return answer.said


@final
class Answer:
    """The bytes that a server sent on one connection."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader: Final = reader
        self.said = b""

    async def until(self, mark: bytes) -> None:
        """Read on until it has said ``mark``.

        Raises:
            EOFError: It ended without.
            TimeoutError: It did not say so in time.
        """
        async with asyncio.timeout(PATIENCE):
            while mark not in self.said:
                data = await self._reader.read(1 << 16)
                if not data:
                    raise EOFError(f"the answer ends before {mark!r}: {self.said!r}")
                self.said += data


@asynccontextmanager
async def asked(server: Target, query: dict[str, str]) -> AsyncGenerator[Answer]:
    """Ask for ConfigMaps, on a connection that ends with the block."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=server.ssl)
    try:
        target = f"/api/v1/namespaces/{NAMESPACE}/configmaps?{urlencode(query)}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        yield Answer(reader)
    finally:
        writer.transport.abort()


if __name__ == "__main__":
    main()

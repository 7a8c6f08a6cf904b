"""An embedded server in a thread of its own, so that clients of any kind can talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, final

from kinform.apiserver import APIServer

TIMEOUT = 30.0
"""How long anything may take; only what is broken ever needs that."""

GROUP = "peers.example.test"
_NAMES = itertools.count(1)

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1},
                                    "colour": {"type": "string", "default": "red"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": {"type": "string"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


@final
class Served:
    """A server that runs elsewhere, with the kind ``Widget`` defined."""

    def __init__(self, server: APIServer, loop: asyncio.AbstractEventLoop, folder: Path) -> None:
        self._server = server
        self._loop = loop
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")

    def create(self, resource: str, obj: dict[str, Any], namespace: str | None = None) -> None:
        """Create an object, with kinform's own client."""

        async def create() -> None:
            async with self._server.connect() as client:
                await client.resource(resource, namespace=namespace).create(obj)

        asyncio.run_coroutine_threadsafe(create(), self._loop).result(TIMEOUT)

    def namespace(self) -> str:
        """Create a namespace and return its name."""
        name = f"peer-{next(_NAMES)}"
        self.create("v1/namespaces", {"metadata": {"name": name}})
        return name

    def compact(self) -> None:
        """Make the server forget the past."""
        self._loop.call_soon_threadsafe(self._server.compact)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Run a server in another thread within the block."""
    ready: Future[tuple[APIServer, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with APIServer() as server:
            ready.set_result((server, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as exc:
            if ready.done():
                raise
            ready.set_exception(exc)

    thread = threading.Thread(target=run, name="embedded API server")
    thread.start()
    try:
        server, loop, stop = ready.result(TIMEOUT)
        try:
            found = Served(server, loop, folder)
            found.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            yield found
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(TIMEOUT)
        assert not thread.is_alive()

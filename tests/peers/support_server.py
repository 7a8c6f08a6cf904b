"""An embedded server in a thread of its own, so that clients of any kind can talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

from kinform.testing import APIServerThread

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
    """A server that runs in a thread of its own, with the kind ``Widget`` defined."""

    def __init__(self, server: APIServerThread, folder: Path) -> None:
        self._server = server
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(server.kubeconfig(), encoding="utf-8")
        self.compact = server.compact
        """Make the server forget the past."""

    def create(self, resource: str, obj: dict[str, Any], namespace: str | None = None) -> None:
        """Create an object, with kinform's own client."""

        async def create() -> None:
            async with self._server.connect() as client:
                await client.resource(resource, namespace=namespace).create(obj)

        with ThreadPoolExecutor(1) as other:  # the caller may have a loop of its own
            other.submit(lambda: asyncio.run(create())).result(TIMEOUT)

    def namespace(self) -> str:
        """Create a namespace and return its name."""
        name = f"peer-{next(_NAMES)}"
        self.create("v1/namespaces", {"metadata": {"name": name}})
        return name


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Run a server in another thread within the block."""
    with APIServerThread() as server:
        found = Served(server, folder)
        found.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        yield found

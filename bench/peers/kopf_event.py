"""kopf: an operator within this process, with one ``kopf.on.event`` handler that keeps the bodies.

Nothing of it waits, writes or logs where a setting can prevent that. After a 410 it lists again by
itself and tells the handler of everything, so that objects which went meanwhile stay in the dict.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bench.peers import driver, goals
from bench.peers.table import Key, TablePeer

__all__ = ["KopfPeer"]

_PAGE: Final = 500
_OTHER_CLIENTS: Final = ("kubernetes", "kubernetes_asyncio", "pykube")
"""Packages that kopf imports if they are installed, only for their types."""


class KopfPeer(TablePeer):
    """One operator; what is kept is the body that its handler is given."""

    packages: ClassVar[Sequence[str]] = ("kopf", "aiohttp")

    async def configure(self) -> None:
        """Register the handlers, and choose settings."""
        modules: dict[str, Any] = dict.fromkeys(_OTHER_CLIENTS)
        sys.modules.update(modules)
        import kopf

        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        kopf.on.event("", "v1", "pods", registry=registry)(self._delivered)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.peering.standalone = True
        settings.watching.chunk_size = None if self.options.lists == "whole" else _PAGE
        settings.watching.initial_streaming = self.options.lists == "stream"
        self._kopf, self._registry, self._settings = kopf, registry, settings
        self._relist: goals.Goal | None = None

    async def _login(self, **arguments: Any) -> Any:
        if not self.options.kubeconfig:
            return self._kopf.ConnectionInfo(server=self.options.url or "")
        return self._kopf.login_with_kubeconfig(**arguments)

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Run the operator; it never ends by itself."""
        namespaced = self.options.namespaces > 0
        operator = self._kopf.operator(
            registry=self._registry,
            settings=self._settings,
            clusterwide=not namespaced,
            namespaces=self.options.scopes if namespaced else (),
        )
        group.create_task(operator)

    async def _delivered(self, *, body: Any, type: str | None, **_: Any) -> None:  # noqa: A002 - its word
        if type == "DELETED":
            self.lost(body)
        else:
            self.saw(body)
            if type is None and self._relist is not None:  # so comes what was listed
                self._relist.step()

    def relisted(self) -> Awaitable[object]:
        """Wait until the handler has received all listed objects."""
        self._relist = goals.Goal(self.count(), what="objects of a list")
        return self._relist.wait(self.options.timeout)

    # --- one pod

    def key_of(self, pod: Any) -> Key:
        """Return its key."""
        metadata = pod["metadata"]
        return metadata["namespace"], metadata["name"]

    def node_of(self, pod: Any) -> str | None:
        """Return the name of its node."""
        node: str | None = pod["spec"].get("nodeName")
        return node

    def phase_of(self, pod: Any) -> str | None:
        """Return its phase."""
        phase: str | None = pod["status"].get("phase")
        return phase

    def labels_of(self, pod: Any) -> Mapping[str, str] | None:
        """Return its labels."""
        labels: Mapping[str, str] | None = pod["metadata"].get("labels")
        return labels

    def version_of(self, pod: Any) -> str | None:
        """Return its resourceVersion."""
        version: str = pod["metadata"]["resourceVersion"]
        return version

    def uid_of(self, pod: Any) -> str | None:
        """Return its uid."""
        uid: str = pod["metadata"]["uid"]
        return uid

    def sent(self, pod: Any) -> str:
        """Read the annotation."""
        found: str = pod["metadata"]["annotations"][driver.SENT]
        return found


if __name__ == "__main__":
    driver.main(KopfPeer)

"""lightkube: its list and its watch, in the loop that a careful user writes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from bench.peers import driver
from bench.peers.table import Key, TablePeer

if TYPE_CHECKING:
    from lightkube import AsyncClient
    from lightkube.resources.core_v1 import Pod

__all__ = ["LightkubePeer"]

_PAGE: Final = 500
_ALL: Final = "*"
_WATCHES_OF_A_CLIENT: Final = 80
"""A client has a hundred connections at most, and waits for ever for one more."""


class LightkubePeer(TablePeer):
    """One task for each watch; what is kept is the client's ``Pod``."""

    packages: ClassVar[Sequence[str]] = ("lightkube", "lightkube-models", "httpx2", "msgspec")

    async def configure(self) -> None:
        """Make the client."""
        from lightkube import ApiError, AsyncClient, KubeConfig
        from lightkube.config.models import Cluster, User
        from lightkube.resources.core_v1 import Pod

        if self.options.kubeconfig:
            config = KubeConfig.from_file(self.options.kubeconfig)
        else:
            # With from_server() there would be no user, which it asks for.
            cluster = Cluster(server=self.options.url or "")
            config = KubeConfig.from_one(cluster=cluster, user=User())
        self._clients = [
            AsyncClient(config=config.get())
            for _ in range(0, len(self.options.scopes), _WATCHES_OF_A_CLIENT)
        ]
        self._pod, self._error = Pod, ApiError

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Begin a task for each namespace."""
        for number, scope in enumerate(self.options.scopes):
            client = self._clients[number // _WATCHES_OF_A_CLIENT]
            group.create_task(self.lasting(functools.partial(self._run, client, scope)))

    async def _run(self, client: AsyncClient, scope: str) -> None:
        while True:
            version = await self._list(client, scope)
            try:
                # Ends of connections are the client's business.
                async for operation, pod in client.watch(
                    self._pod, namespace=scope or _ALL, resource_version=version
                ):
                    if operation == "DELETED":
                        self.lost(pod)
                    else:
                        self.saw(pod)
            except self._error as error:
                if error.status.code != 410:
                    raise
                await self.pause()

    async def _list(self, client: AsyncClient, scope: str) -> str:
        """Replace the known objects by the listed ones; return the list's version."""
        size = None if self.options.lists == "whole" else _PAGE
        found = client.list(self._pod, namespace=scope or _ALL, chunk_size=size)
        self.listed([pod async for pod in found], scope)
        return found.resourceVersion

    # --- one pod

    def key_of(self, pod: Pod) -> Key:
        """Return its key."""
        metadata: Any = pod.metadata
        return metadata.namespace, metadata.name

    def node_of(self, pod: Pod) -> str | None:
        """Return the name of its node."""
        return pod.spec.nodeName if pod.spec else None

    def phase_of(self, pod: Pod) -> str | None:
        """Return its phase."""
        return pod.status.phase if pod.status else None

    def labels_of(self, pod: Pod) -> Mapping[str, str] | None:
        """Return its labels."""
        return pod.metadata.labels if pod.metadata else None

    def version_of(self, pod: Pod) -> str | None:
        """Return its resourceVersion."""
        return pod.metadata.resourceVersion if pod.metadata else None

    def uid_of(self, pod: Pod) -> str | None:
        """Return its uid."""
        return pod.metadata.uid if pod.metadata else None

    def sent(self, pod: Any) -> str:
        """Read the annotation."""
        found: str = pod.metadata.annotations[driver.SENT]
        return found


if __name__ == "__main__":
    driver.main(LightkubePeer)

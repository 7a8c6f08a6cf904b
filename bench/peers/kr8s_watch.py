"""kr8s: its list and its watch, in the loop that a careful user writes.

Its list does not return its version, so the watch starts at the highest version of an object. Its
watch does not report a 410 either: it repeats its request, with the version that was refused.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bench.peers import driver
from bench.peers.table import Key, TablePeer

__all__ = ["Kr8sPeer"]

_WATCHES_OF_A_CLIENT: Final = 80
"""A client has a hundred connections at most, and waits for ever for one more."""


class Kr8sPeer(TablePeer):
    """One task for each watch; what is kept is the client's ``Pod``."""

    packages: ClassVar[Sequence[str]] = ("kr8s", "httpx", "python-box")

    async def configure(self) -> None:
        """Import it; its clients ask for the server's version as soon as they are made."""
        import kr8s.asyncio
        from kr8s.asyncio.objects import Pod

        self._connect: Any = kr8s.asyncio.api
        self._pod: Any = Pod
        self._all = kr8s.ALL

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Begin a task for each namespace."""
        place = {"url": self.options.url, "kubeconfig": self.options.kubeconfig}
        scopes = self.options.scopes
        for first in range(0, len(scopes), _WATCHES_OF_A_CLIENT):
            # Clients are shared by those who give the same arguments.
            api = await self._connect(**place, namespace=scopes[first] or None)
            for scope in scopes[first : first + _WATCHES_OF_A_CLIENT]:
                group.create_task(self.lasting(functools.partial(self._run, api, scope)))

    async def _run(self, api: Any, scope: str) -> None:
        namespace = scope or self._all
        while True:
            pods = [pod async for pod in api.get(self._pod, namespace=namespace)]
            since = max((int(pod.metadata.resourceVersion) for pod in pods), default=None)
            self.listed(pods, scope)
            del pods
            version = None if since is None else str(since)
            # It ends where the server ends it.
            async for what, pod in api.watch(self._pod, namespace=namespace, since=version):
                if what == "DELETED":
                    self.lost(pod)
                else:
                    self.saw(pod)
            await self.pause()

    def relisted(self) -> Awaitable[object]:
        """Refuse: the client does not report that a relist is necessary."""
        raise driver.Unsupported

    # --- one pod

    def key_of(self, pod: Any) -> Key:
        """Return its key."""
        metadata = pod.metadata
        return metadata.namespace, metadata.name

    def node_of(self, pod: Any) -> str | None:
        """Return the name of its node."""
        node: str | None = pod.spec.get("nodeName")
        return node

    def phase_of(self, pod: Any) -> str | None:
        """Return its phase."""
        phase: str | None = pod.status.get("phase")
        return phase

    def labels_of(self, pod: Any) -> Mapping[str, str] | None:
        """Return its labels."""
        labels: Mapping[str, str] = pod.labels
        return labels

    def version_of(self, pod: Any) -> str | None:
        """Return its resourceVersion."""
        version: str = pod.metadata.resourceVersion
        return version

    def uid_of(self, pod: Any) -> str | None:
        """Return its uid."""
        uid: str = pod.metadata.uid
        return uid

    def sent(self, pod: Any) -> str:
        """Read the annotation."""
        found: str = pod.annotations[driver.SENT]
        return found


if __name__ == "__main__":
    driver.main(Kr8sPeer)

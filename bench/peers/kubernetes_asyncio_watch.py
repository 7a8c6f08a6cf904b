"""kubernetes_asyncio: its list and its ``Watch``, in the loop that a careful user writes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bench.peers import driver
from bench.peers.table import Key, TablePeer

__all__ = ["KubernetesAsyncioPeer"]

_PAGE: Final = 500
_WATCH: Final = 3600
"""Seconds after which a watch is restarted. With a limit the watch reports the first 410; without
one it would repeat its request."""


class KubernetesAsyncioPeer(TablePeer):
    """One task for each watch; what is kept is the client's ``V1Pod``."""

    packages: ClassVar[Sequence[str]] = ("kubernetes_asyncio", "aiohttp")

    async def configure(self) -> None:
        """Make the client; objects that come from the server are not validated."""
        from kubernetes_asyncio import client, config, watch

        configuration: Any = client.Configuration()
        if self.options.kubeconfig:
            load: Any = config.load_kube_config
            await load(self.options.kubeconfig, client_configuration=configuration)
        else:
            configuration.host = self.options.url
        configuration.client_side_validation = False
        configuration.connection_pool_maxsize = 2 * len(self.options.scopes) + 10
        client.Configuration.set_default(configuration)  # the models ask no other
        self._api: Any = client.CoreV1Api(client.ApiClient(configuration))
        self._watch_class: Any = watch.Watch
        self._error = client.ApiException

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Begin a task for each namespace."""
        for scope in self.options.scopes:
            group.create_task(self.lasting(functools.partial(self._run, scope)))

    async def _run(self, scope: str) -> None:
        call = self._api.list_pod_for_all_namespaces
        if scope:
            # Where its text is, the watch looks for the type of what it reads.
            call = functools.wraps(self._api.list_namespaced_pod)(
                functools.partial(self._api.list_namespaced_pod, scope)
            )
        while True:
            version: str | None = await self._list(call, scope)
            while version:
                version = await self._watch(call, version)
                await self.pause()

    async def _list(self, call: Any, scope: str) -> str:
        """Replace the known objects by the listed ones; return the list's version."""
        limit = {} if self.options.lists == "whole" else {"limit": _PAGE}
        answer = await call(**limit)
        pods = answer.items
        while token := answer.metadata._continue:  # noqa: SLF001 - as the generator calls it
            answer = await call(**limit, _continue=token)
            pods += answer.items
        version: str = answer.metadata.resource_version
        self.listed(pods, scope)
        return version

    async def _watch(self, call: Any, version: str) -> str | None:
        """Follow one watch; return the version to go on from, or None where that is too old."""
        watch = self._watch_class()
        options = {"resource_version": version, "allow_watch_bookmarks": True}
        try:
            async for event in watch.stream(call, **options, timeout_seconds=_WATCH):
                if event["type"] == "DELETED":
                    self.lost(event["object"])
                elif event["type"] != "BOOKMARK":
                    self.saw(event["object"])
        except self._error as error:
            if error.status != 410:
                raise
            return None
        following: str = watch.resource_version
        return following

    # --- one pod

    def key_of(self, pod: Any) -> Key:
        """Return its key."""
        return pod.metadata.namespace, pod.metadata.name

    def node_of(self, pod: Any) -> str | None:
        """Return the name of its node."""
        node: str | None = pod.spec.node_name
        return node

    def phase_of(self, pod: Any) -> str | None:
        """Return its phase."""
        phase: str | None = pod.status.phase
        return phase

    def labels_of(self, pod: Any) -> Mapping[str, str] | None:
        """Return its labels."""
        labels: Mapping[str, str] | None = pod.metadata.labels
        return labels

    def version_of(self, pod: Any) -> str | None:
        """Return its resourceVersion."""
        version: str | None = pod.metadata.resource_version
        return version

    def uid_of(self, pod: Any) -> str | None:
        """Return its uid."""
        uid: str | None = pod.metadata.uid
        return uid

    def sent(self, pod: Any) -> str:
        """Read the annotation."""
        found: str = pod.metadata.annotations[driver.SENT]
        return found


if __name__ == "__main__":
    driver.main(KubernetesAsyncioPeer)

"""``kubernetes.informer``, the informer of the official Python client.

It has its own cache; the index is a dict beside it, kept by the handler. It always lists in one
piece.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bench.peers import driver, goals
from bench.peers.lookups import SELECTOR, Lookups

__all__ = ["OfficialPeer"]

_NEVER: Final = 24 * 3600
"""Seconds between two lists. With a period the watch reports the first 410; without one it would
repeat its request."""

_WORDS: Final = {"ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}


class OfficialPeer(driver.Peer):
    """One informer, or one for each namespace; each has a thread."""

    packages: ClassVar[Sequence[str]] = ("kubernetes", "urllib3", "pydantic")

    async def configure(self) -> None:
        """Make the informers."""
        from kubernetes import client, config, informer

        untyped: Any = informer.SharedInformer
        configuration: Any = client.Configuration()
        if self.options.kubeconfig:
            load: Any = config.load_kube_config
            load(self.options.kubeconfig, client_configuration=configuration)
        else:
            configuration.host = self.options.url
        configuration.connection_pool_maxsize = len(self.options.scopes) + 10
        api = client.CoreV1Api(client.ApiClient(configuration))
        self._informers: list[Any] = []
        for scope in self.options.scopes:
            namespaced = {"namespace": scope} if scope else {}
            call = api.list_namespaced_pod if scope else api.list_pod_for_all_namespaces
            made = untyped(list_func=call, resync_period=_NEVER, **namespaced)
            made.add_event_handler(informer.ADDED, self._saw)
            made.add_event_handler(informer.MODIFIED, self._saw)
            made.add_event_handler(informer.DELETED, self._lost)
            made.add_event_handler(informer.ERROR, self._failed)
            if self.journal is not None:
                for what, word in _WORDS.items():
                    made.add_event_handler(what, functools.partial(self._note, word))
            self._informers.append(made)
        self._node_of: dict[str, str | None] = {}
        self._on_node: dict[str | None, set[str]] = {}
        self._relist: goals.Goal | None = None

    async def start(self, group: asyncio.TaskGroup) -> None:  # noqa: ARG002 - has threads
        """Start the threads."""
        for informer in self._informers:
            informer.start()

    # --- the handlers, in the informers' threads

    def _saw(self, pod: Any) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        node, before = pod.spec.node_name, self._node_of.get(key)
        if node != before:
            self._leave(before, key)
            self._node_of[key] = node
            self._on_node.setdefault(node, set()).add(key)
        self.tell(pod)

    def _lost(self, pod: Any) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self._leave(self._node_of.pop(key, None), key)
        self.tell(pod)

    def _note(self, what: str, pod: Any) -> None:
        assert self.journal is not None
        metadata = pod.metadata
        key = f"{metadata.namespace}/{metadata.name}"
        self.journal.note(what, key, uid=metadata.uid, version=metadata.resource_version)

    def _leave(self, node: str | None, key: str) -> None:
        if (others := self._on_node.get(node)) is not None:
            others.discard(key)
            if not others:
                self._on_node.pop(node, None)

    def _failed(self, error: Any) -> None:
        # After a 410 it lists, and the handler receives every object of the list.
        if self._relist is not None and getattr(error, "status", None) == 410:
            relist, self._relist = self._relist, None
            self.tell = goals.telling(relist)

    # --- what the driver asks

    def look(self, pod: Any) -> object:
        """Read three fields."""
        return pod.spec.node_name, pod.status.phase, dict(pod.metadata.labels or {})

    def sent(self, pod: Any) -> str:
        """Read the annotation."""
        found: str = pod.metadata.annotations[driver.SENT]
        return found

    def count(self) -> int:
        """Return how many objects all caches hold."""
        return sum(len(informer.cache.list_keys()) for informer in self._informers)

    def content(self) -> Mapping[str, driver.Kept]:
        """Return what all caches hold."""
        return {
            f"{pod.metadata.namespace}/{pod.metadata.name}": (
                pod.metadata.resource_version,
                pod.metadata.uid,
                self.sent(pod),
            )
            for informer in self._informers
            for pod in informer.cache.list()
        }

    async def stop(self, tasks: Sequence[asyncio.Task[object]]) -> None:
        """Stop the informers, which waits for their threads."""
        del tasks
        for informer in self._informers:
            await asyncio.get_running_loop().run_in_executor(None, informer.stop)

    def lookups(self) -> Lookups:
        """Return the cache's methods; for several namespaces, those that find the cache first."""
        caches = {
            scope: informer.cache
            for scope, informer in zip(self.options.scopes, self._informers, strict=True)
        }
        label, wanted = SELECTOR

        def get(key: str) -> object:
            return caches[key.partition("/")[0]].get_by_key(key)

        def everything() -> list[Any]:
            return [pod for cache in caches.values() for pod in cache.list()]

        if self.options.namespaces == 0:
            get, everything = caches[""].get_by_key, caches[""].list
        on_node = self._on_node
        return Lookups(
            keys=[key for cache in caches.values() for key in cache.list_keys()],
            nodes=sorted(node for node in on_node if node is not None),
            get=get,
            on_node=lambda node: [get(key) for key in on_node.get(node, ())],
            list=everything,
            select=lambda: [
                pod for pod in everything() if (pod.metadata.labels or {}).get(label) == wanted
            ],
        )

    def relisted(self) -> Awaitable[object]:
        """Wait until the handler has received all objects again, after the first 410."""
        relist = self._relist = goals.Goal(self.count(), what="objects delivered after a relist")
        return relist.wait(self.options.timeout)


if __name__ == "__main__":
    driver.main(OfficialPeer)

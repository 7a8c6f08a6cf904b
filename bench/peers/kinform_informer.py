"""kinform's `SharedInformer`, with whole objects as bytes, compressed, or as models."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

import kinform
from bench.peers import driver, goals
from bench.peers.lookups import SELECTOR, Lookups
from kinform.cache import InformerGroup
from kinform.cache.store.compaction import MIN_BYTES
from kinform.rest.clientcmd import loading

__all__ = ["KinformPeer"]

_PODS: Final = "v1/pods"
_BY_NODE: Final = "node"
_SELECTOR: Final = "=".join(SELECTOR)
_LISTS: Final = {
    # Who ignores limits would answer the small list of a probe with everything.
    "whole": kinform.ReflectorOptions(stream_lists=False, first_version="0", probe_period=None),
    "pages": kinform.ReflectorOptions(stream_lists=False),
    "stream": kinform.ReflectorOptions(),
}


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, frozen=True):
    node_name: str | None = msgspec.field(name="nodeName", default=None)


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


class KinformPeer(driver.Peer):
    """One informer, or one for each namespace."""

    packages: ClassVar[Sequence[str]] = ("kinform", "aiohttp", "msgspec")
    forms: ClassVar[Sequence[str]] = ("raw", "zstd", "typed")

    async def configure(self) -> None:
        """Open the client, which sends nothing, and make the informers."""
        self.has_annotations = self.options.form != "typed"
        self._stack = contextlib.AsyncExitStack()
        config = loading.load(self.options.url, kubeconfig=self.options.kubeconfig)
        # As the client-go peer, and kube-controller-manager: the network is quicker than gzip.
        if not self.options.compression:
            config = dataclasses.replace(config, compression=False)
        connected = kinform.connect(config)
        client = await self._stack.enter_async_context(connected)
        informers = {scope: self._informer(client, scope) for scope in self.options.scopes}
        self._group: InformerGroup[Any] = InformerGroup(informers)
        self._informers = list(informers.values())
        self._group.add_event_handler(on_add=self._added, on_update=self._updated)
        if self.journal is not None:
            self._group.add_event_handler(
                on_add=lambda event: self._note("add", event.obj),
                on_update=lambda event: self._note("update", event.new),
                on_delete=lambda event: self._note("delete", event.obj),
            )
        self._queue: kinform.WorkQueue[kinform.ObjectName] = kinform.WorkQueue("bench")
        self._worked: goals.Goal | None = None

    def _informer(self, client: kinform.Client, scope: str) -> kinform.SharedInformer[Any]:
        options = _LISTS[self.options.lists]
        if self.options.form == "typed":
            return client.informer(
                _PODS,
                model=_Pod,
                namespace=scope,
                indexers={_BY_NODE: lambda pod: pod.spec.node_name},
                options=options,
            )
        return client.informer(
            _PODS,
            namespace=scope,
            indexers={_BY_NODE: kinform.index_by("spec", "nodeName")},
            options=options,
            storage="zstd" if self.options.form == "zstd" else "raw",
        )

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Start the informers, and a worker for what may be queued."""
        for informer in self._informers:
            await self._stack.enter_async_context(informer)
        group.create_task(self._work())

    # --- the handler

    def _added(self, event: kinform.Added[Any]) -> None:
        self.tell(event.obj)

    def _updated(self, event: kinform.Updated[Any]) -> None:
        self.tell(event.new)

    def look(self, pod: Any) -> object:
        """Read three fields."""
        if self.options.form == "typed":
            return pod.spec.node_name, pod.status.phase, dict(pod.metadata.labels)
        return pod.at("spec", "nodeName"), pod.at("status", "phase"), dict(pod.labels)

    def sent(self, pod: Any) -> str:
        """Read the annotation."""
        found: str = pod.annotations[driver.SENT]
        return found

    def _note(self, what: str, pod: kinform.Object) -> None:
        assert self.journal is not None
        self.journal.note(what, str(pod.key), uid=pod.uid, version=pod.resource_version)

    # --- the cache

    def content(self) -> Mapping[str, driver.Kept]:
        """Return what all caches hold."""
        if self.options.form == "typed":
            raise driver.Unsupported
        return {
            str(pod.key): (pod.resource_version, pod.uid, self.sent(pod))
            for informer in self._informers
            for pod in informer.lister.list()
        }

    async def stop(self, tasks: Sequence[asyncio.Task[object]]) -> None:
        """End the informers and the client, as the end of their blocks does."""
        await self._stack.aclose()
        await super().stop(tasks)

    def count(self) -> int:
        """Return how many objects all caches hold."""
        return sum(len(informer.indexer) for informer in self._informers)

    def lookups(self) -> Lookups:
        """Return the lister's and the indexer's methods; for several namespaces the group's."""
        keys = [key for each in self._informers for key in each.indexer.list_keys()]
        nodes = {
            node for each in self._informers for node in each.indexer.list_index_values(_BY_NODE)
        }
        source: Any = self._group
        on_node: Callable[[str, str], list[Any]] = self._group.by_index
        if len(self._informers) == 1:
            source, on_node = self._informers[0].lister, self._informers[0].indexer.by_index
        return Lookups(
            keys=[kinform.ObjectName(*key) for key in keys],
            nodes=sorted(nodes),
            get=source.get,
            on_node=lambda node: on_node(_BY_NODE, node),
            list=source.list,
            select=lambda: source.list(_SELECTOR),
        )

    def relisted(self) -> Awaitable[object]:
        """Wait until each informer has begun one more list, and its batch is in the cache."""
        before = [informer.statistics().reflector.lists for informer in self._informers]
        return asyncio.gather(*map(_one_more_list, self._informers, before))

    async def settle(self) -> None:
        """Wait until all is compressed that will be: a cache that is too small never is."""
        if self.options.form != "zstd":
            return
        while True:
            packed = sum(each.statistics().storage.objects for each in self._informers)
            left = sum(len(pod.raw) for pod in self._group.list() if not pod.is_packed)
            if not left or (not packed and left < MIN_BYTES * len(self._informers)):
                return
            await asyncio.sleep(0.5)  # nothing tells the end of it

    async def join(self) -> int:
        """Add a handler, and remove it when it has received all objects."""
        count = itertools.count().__next__
        added = self._group.add_event_handler(on_add=lambda _: count())
        for registration in added.values():
            await registration.wait_synced(self.options.timeout)
        for registration in added.values():
            registration.remove()
        return count()

    # --- the work queue

    async def queue(self, items: int) -> Callable[[], Coroutine[Any, Any, None]]:
        """Use a queue of its own, with `ObjectName` as keys."""
        queue: kinform.WorkQueue[kinform.ObjectName] = kinform.WorkQueue("keys")
        keys = [kinform.ObjectName(f"bench-{n % 20}", f"pod-{n}") for n in range(items)]

        async def work() -> None:
            for key in keys:
                queue.add(key)
            for _ in keys:
                queue.done(await queue.get())

        return work

    def controller(self, done: goals.Goal) -> None:
        """Have the handler queue keys instead of counting."""
        self._worked = done
        add, key_of = self._queue.add, _key if self.options.form == "typed" else _object_key
        self.tell = lambda pod: add(key_of(pod))

    async def _work(self) -> None:
        while True:
            async with self._queue.processing():
                if self._worked is not None:
                    self._worked.step()


def _object_key(pod: kinform.Object) -> kinform.ObjectName:
    return pod.key


def _key(pod: _Pod) -> kinform.ObjectName:
    return kinform.ObjectName(pod.metadata.namespace, pod.metadata.name)


async def _one_more_list(informer: kinform.SharedInformer[Any], before: int) -> None:
    def is_there(_: object) -> bool:
        # Asked after each batch. Between the begin of a list and its own batch there is none:
        # the watch has ended, and what it brought was written by then.
        reflector = informer.statistics().reflector
        return reflector.lists > before and reflector.phase not in {"list", "stream"}

    await informer.wait_for(is_there)


if __name__ == "__main__":
    driver.main(KinformPeer)

"""The cache of a client that has none: a dict and an index, as its users would write them.

`TablePeer` is the part that all such clients share. Their modules list and watch and pass it the
objects; it updates both dicts and then notifies the handler.
"""

from __future__ import annotations

import abc
import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeAlias

from bench.peers import driver, goals
from bench.peers.lookups import SELECTOR, Lookups

__all__ = ["Key", "TablePeer"]

log: Final = logging.getLogger("bench.peers")

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class TablePeer(driver.Peer):
    """A client whose objects are kept in a dict by their key, and in one of sets by their node.

    One thread or task at a time writes: `saw`, `lost` and `listed` must not run at once.
    """

    def __init__(self, options: driver.Options) -> None:
        super().__init__(options)
        self._pods: dict[Key, Any] = {}
        self._on_node: dict[str, set[Key]] = {}
        self._relists: goals.Goal | None = None

    # --- what differs from client to client

    @abc.abstractmethod
    def key_of(self, pod: Any) -> Key:
        """Return its key."""

    @abc.abstractmethod
    def node_of(self, pod: Any) -> str | None:
        """Return the name of its node, if it has one."""

    @abc.abstractmethod
    def phase_of(self, pod: Any) -> str | None:
        """Return its phase."""

    @abc.abstractmethod
    def labels_of(self, pod: Any) -> Mapping[str, str] | None:
        """Return its labels, as the client gives them."""

    @abc.abstractmethod
    def version_of(self, pod: Any) -> str | None:
        """Return its resourceVersion."""

    @abc.abstractmethod
    def uid_of(self, pod: Any) -> str | None:
        """Return its uid."""

    # --- what a watch loop calls

    async def lasting(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a loop of lists and watches; after an exception anew, if that is wanted."""
        while True:
            try:
                await run()
            except Exception as error:
                if self.options.restart is None:
                    raise
                log.warning("begins anew after %s: %s", type(error).__name__, error)
            self.restarts += 1
            await self.pause()

    async def pause(self) -> None:
        """Wait before a loop goes on, if it is to begin anew by itself: no hot loop is ours."""
        if self.options.restart is not None:
            await asyncio.sleep(self.options.restart)

    def saw(self, pod: Any) -> None:
        """Keep a new or changed object, and tell the handler."""
        key = self.key_of(pod)
        if self.journal is not None:
            self._note("update" if key in self._pods else "add", pod)
        self._put(key, pod)
        self.tell(pod)

    def lost(self, pod: Any) -> None:
        """Forget a deleted object, and tell the handler."""
        if self.journal is not None:
            self._note("delete", pod)
        self._remove(self.key_of(pod))
        self.tell(pod)

    def listed(self, pods: Iterable[Any], scope: str) -> None:
        """Replace the known objects of a namespace and notify the handler of differences."""
        new = {self.key_of(pod): pod for pod in pods}
        known = self._pods
        gone = [key for key in known if key not in new and (not scope or key[0] == scope)]
        for key in gone:
            pod = self._remove(key)
            self._note("delete", pod)
            self.tell(pod)
        for key, pod in new.items():
            old = known.get(key)
            self._put(key, pod)
            if old is None or self.version_of(old) != self.version_of(pod):
                self._note("add" if old is None else "update", pod)
                self.tell(pod)
        if self._relists is not None:
            self._relists.step()

    def _note(self, what: str, pod: Any) -> None:
        if self.journal is not None:
            key = "/".join(self.key_of(pod))
            uid, version = self.uid_of(pod), self.version_of(pod)
            self.journal.note(what, key, uid=uid, version=version)

    def _put(self, key: Key, pod: Any) -> None:
        old, node = self._pods.get(key), self.node_of(pod)
        self._pods[key] = pod
        if old is not None:
            before = self.node_of(old)
            if before == node:
                return
            self._leave(before, key)
        if node is not None:
            self._on_node.setdefault(node, set()).add(key)

    def _remove(self, key: Key) -> Any:
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._leave(self.node_of(pod), key)
        return pod

    def _leave(self, node: str | None, key: Key) -> None:
        if node is not None and (others := self._on_node.get(node)) is not None:
            others.discard(key)
            if not others:
                del self._on_node[node]

    # --- what the driver asks

    def look(self, pod: Any) -> object:
        """Read three fields."""
        return self.node_of(pod), self.phase_of(pod), dict(self.labels_of(pod) or {})

    def count(self) -> int:
        """Return how many objects the dict holds."""
        return len(self._pods)

    def content(self) -> Mapping[str, driver.Kept]:
        """Return what the dict holds."""
        return {
            "/".join(key): (self.version_of(pod), self.uid_of(pod), self.sent(pod))
            for key, pod in self._pods.items()
        }

    def lookups(self) -> Lookups:
        """Return what one writes by hand for such dicts."""
        pods, on_node, labels_of = self._pods, self._on_node, self.labels_of
        label, wanted = SELECTOR
        return Lookups(
            keys=[(namespace, name) for namespace, name in pods],
            nodes=sorted(on_node),
            get=pods.get,
            on_node=lambda node: [pods[key] for key in on_node.get(node, ())],
            list=lambda: list(pods.values()),
            select=lambda: [
                pod for pod in pods.values() if (labels_of(pod) or {}).get(label) == wanted
            ],
        )

    def relisted(self) -> Awaitable[object]:
        """Wait until each watch has brought one more list."""
        self._relists = goals.Goal(len(self.options.scopes), what="lists")
        return self._relists.wait(self.options.timeout)

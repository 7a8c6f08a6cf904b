"""What users of a client without a cache keep for themselves: a dict, and an index beside it.

`TablePeer` is the part that all such clients share. Their modules list and watch; they tell it what
they have seen, and it keeps both dicts right and tells the handler, in this order.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, TypeAlias

from bench.peers import driver, goals
from bench.peers.lookups import SELECTOR, Lookups

__all__ = ["Key", "TablePeer"]

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

    # --- what a watch loop calls

    def saw(self, pod: Any) -> None:
        """Keep a new or changed object, and tell the handler."""
        self._put(self.key_of(pod), pod)
        self.tell(pod)

    def lost(self, pod: Any) -> None:
        """Forget a deleted object, and tell the handler."""
        self._remove(self.key_of(pod))
        self.tell(pod)

    def listed(self, pods: Iterable[Any], scope: str) -> None:
        """Take the place of all that is known of a namespace; tell of what differs."""
        new = {self.key_of(pod): pod for pod in pods}
        known = self._pods
        gone = [key for key in known if key not in new and (not scope or key[0] == scope)]
        for key in gone:
            self.tell(self._remove(key))
        for key, pod in new.items():
            old = known.get(key)
            self._put(key, pod)
            if old is None or self.version_of(old) != self.version_of(pod):
                self.tell(pod)
        if self._relists is not None:
            self._relists.step()

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

"""The clients on the board: the programs of ``bench/peers``, each as its users have it.

Clients with a cache of their own (client-go, kube-rs, the official informer, kinform) are used as
they are. Those without get the dict and the loop of lists and watches of `bench.peers.table`; where
their own calls end with an exception, that loop begins anew a second later, which none of them does
by itself. kopf is a framework that owns its loop: it gets the dict alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.compare import build
from bench.compare import peers as compared
from bench.compare.peers import CLIENT_GO, KINFORM, KUBE_RS, Peer

__all__ = ["CLIENTS", "RESTART", "Client", "chosen", "missing"]

RESTART: Final = 1.0
"""Seconds that the loop around a client waits after an exception."""

_DEFAULT: Final = ("--journal", "--compression")
_LOOPED: Final = (*_DEFAULT, "--lists", "pages", "--restart", str(RESTART))


@dataclass(frozen=True, slots=True)
class Client:
    """A client on the board."""

    label: str
    peer: Peer
    arguments: Sequence[str]
    """More of them for the peer's program."""
    how: str
    """A description of its cache, for the page."""

    def command(self, kubeconfig: str) -> list[str]:
        """Return the command that starts it."""
        return [*self.peer.command, "--kubeconfig", kubeconfig, *self.arguments]


def _of(name: str) -> Peer:
    return compared.chosen([name])[0]


_LOOP: Final = "its list and its watch, a dict, and a loop that begins anew 1 s after an exception"

CLIENTS: Final[Sequence[Client]] = (
    Client(
        KINFORM,
        _of("kinform raw"),
        (*_DEFAULT, "--lists", "stream"),
        "`SharedInformer`, defaults",
    ),
    Client(
        CLIENT_GO,
        _of("client-go JSON"),
        (*_DEFAULT, "--lists", "stream"),
        "`SharedIndexInformer` of a factory, defaults (streamed lists), no limit on requests",
    ),
    Client(KUBE_RS, _of(KUBE_RS), (), "`watcher` with `default_backoff`, `reflector` store"),
    Client(
        "kubernetes",
        _of("kubernetes"),
        _DEFAULT,
        "`SharedInformer` of the official client, with a `resync_period` of a day (without one it "
        "repeats a watch that has expired)",
    ),
    Client("kubernetes_asyncio", _of("kubernetes_asyncio"), _LOOPED, _LOOP),
    Client("lightkube", _of("lightkube"), _LOOPED, _LOOP),
    Client("kr8s", _of("kr8s"), _LOOPED, _LOOP),
    Client(
        "kopf",
        _of("kopf"),
        _DEFAULT,
        "an operator with one `kopf.on.event` handler that fills a dict, defaults",
    ),
)
"""In the order of the table."""


def chosen(names: Iterable[str]) -> list[Client]:
    """Return the clients of these names, or all without names.

    Raises:
        ValueError: A name is unknown.
    """
    wanted = [name.strip() for name in names if name.strip()]
    known = [client.label for client in CLIENTS]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"no client {unknown[0]!r}; there is {', '.join(known)}")
    return [client for client in CLIENTS if not wanted or client.label in wanted]


def missing(client: Client) -> str | None:
    """Return what a client lacks to run; None if nothing."""
    return build.missing(client.peer)

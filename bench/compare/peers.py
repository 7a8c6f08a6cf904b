"""The clients that are compared: how each is started, and how much it can be asked for.

A client is a peer here: a program in ``bench/peers`` that does the same as all others and speaks
the protocol of `bench.peers.driver`. The costs are rough, for estimates of time and deadlines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "BUILD",
    "CLIENT_GO",
    "CLIENT_GO_PROGRAM",
    "FROZEN",
    "JSON",
    "KINFORM",
    "KUBE_RS",
    "KUBE_RS_PROGRAM",
    "LIGHTKUBE",
    "NULL",
    "PEERS",
    "PROTOBUF",
    "RAW",
    "ROOT",
    "TYPED",
    "UVLOOP",
    "ZSTD",
    "Peer",
    "chosen",
]

ROOT: Final = Path(__file__).resolve().parents[2]
BUILD: Final = ROOT / "build" / "bench"
CLIENT_GO_PROGRAM: Final = BUILD / "client-go-peer"
KUBE_RS_PROGRAM: Final = BUILD / "kube-rs-target" / "release" / "kube-rs-peer"

CLIENT_GO: Final = "client-go"
KINFORM: Final = "kinform"
KUBE_RS: Final = "kube-rs"
NULL: Final = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A client in one of its configurations.

    ``label`` is its name in records and tables, unique. ``most`` is the largest number of
    objects it is asked for: what takes it about 20 seconds.
    """

    name: str
    label: str
    command: tuple[str, ...]
    most: int = 100_000
    rounds: int = 3
    """The maximum number of lives."""
    start: float = 0.5
    """Seconds until it is ready."""
    sync_us: float = 65.0
    """CPU microseconds for each object of a list."""
    event_us: float = 45.0
    """CPU microseconds for each event."""
    reads: str = "json"
    """The encoding it requests: ``json`` or ``protobuf``."""
    has_life: bool = True
    """True if it runs all steps; otherwise it takes part in some parts only."""

    @property
    def is_slow(self) -> bool:
        """True if it gets only one round, with fewer objects."""
        return self.rounds == 1


def _python(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"bench.peers.{name}", *arguments)


def _kinform(form: str, *arguments: str) -> tuple[str, ...]:
    return _python("kinform_informer", "--form", form, *arguments)


def _client_go(form: str) -> tuple[str, ...]:
    return (str(CLIENT_GO_PROGRAM), "--form", form)


PROTOBUF: Final = Peer(
    name=CLIENT_GO,
    label="client-go protobuf",
    command=_client_go("protobuf"),
    start=0.2,
    sync_us=150,
    event_us=150,
    reads="protobuf",
)
JSON: Final = Peer(
    name=CLIENT_GO,
    label="client-go JSON",
    command=_client_go("json"),
    start=0.2,
    rounds=2,
    sync_us=740,
    event_us=740,
)
RAW: Final = Peer(
    name=KINFORM, label="kinform raw", command=_python("kinform_informer", "--form", "raw")
)
UVLOOP: Final = Peer(
    name=KINFORM,
    label="kinform raw, uvloop",
    command=_kinform("raw", "--loop", "uvloop"),
)
FROZEN: Final = Peer(
    name=KINFORM,
    label="kinform raw, gc frozen",
    command=_kinform("raw", "--gc", "frozen"),
    has_life=False,
)
ZSTD: Final = Peer(
    name=KINFORM,
    label="kinform zstd",
    command=_kinform("zstd"),
    rounds=2,
    sync_us=150,
    event_us=150,
)
TYPED: Final = Peer(
    name=KINFORM,
    label="kinform typed",
    command=_kinform("typed"),
    rounds=2,
    sync_us=80,
    event_us=60,
)
LIGHTKUBE: Final = Peer(
    name="lightkube",
    label="lightkube",
    command=_python("lightkube_watch"),
    rounds=2,
    sync_us=310,
    event_us=170,
)

PEERS: Final[Sequence[Peer]] = (
    PROTOBUF,
    JSON,
    RAW,
    UVLOOP,
    FROZEN,
    ZSTD,
    TYPED,
    Peer(
        name=KUBE_RS, label="kube-rs", command=(str(KUBE_RS_PROGRAM),), start=0.2, rounds=2,
        sync_us=190, event_us=130,
    ),
    LIGHTKUBE,
    Peer(
        name="kubernetes", label="kubernetes (official)", command=_python("official_informer"),
        start=2.0, most=10_000, rounds=1, sync_us=1_800, event_us=1_200,
    ),
    Peer(
        name="kubernetes_asyncio", label="kubernetes_asyncio",
        command=_python("kubernetes_asyncio_watch"), start=2.0, most=10_000, rounds=1,
        sync_us=1_900, event_us=1_900,
    ),
    Peer(
        name="kopf", label="kopf", command=_python("kopf_event"), start=1.5, most=10_000,
        rounds=1, sync_us=600, event_us=600,
    ),
    Peer(
        name="kr8s", label="kr8s", command=_python("kr8s_watch"), start=1.0, most=1_000,
        rounds=1, sync_us=1_500, event_us=3_000,
    ),
    Peer(
        name=NULL, label="null (reads, does nothing)",
        command=_python("null_client"), start=0.2, sync_us=5, event_us=5, has_life=False,
    ),
)  # fmt: skip
"""In the order of the table."""


def chosen(names: Iterable[str]) -> list[Peer]:
    """Return the peers with one of these names or labels, all if there are no names.

    Raises:
        ValueError: A name is unknown.
    """
    wanted = [name.strip() for name in names if name.strip()]
    known = {text for peer in PEERS for text in (peer.name, peer.label)}
    if unknown := [name for name in wanted if name not in known]:
        names_known = ", ".join(dict.fromkeys(peer.name for peer in PEERS))
        raise ValueError(f"no peer {unknown[0]!r}; there is {names_known}")
    return [peer for peer in PEERS if not wanted or {peer.name, peer.label} & set(wanted)]

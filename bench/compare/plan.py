"""The plan of a run: jobs, their order and duration, decided before anything runs.

A `Job` is one life of one process. Peers take turns: in each round every peer lives once, in an
order that rotates, so that a neighbour who slows the machine down for a while slows all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bench.compare.peers import KINFORM, PROTOBUF, RAW, UVLOOP, Peer

__all__ = ["FULL", "LIFE", "PARTS", "QUICK", "Job", "Scale", "main_jobs", "rotated"]

LIFE: Final = ("sync", "events", "latency", "lookup", "join", "relist", "idle")
"""The steps of a whole life, in their order."""
PARTS: Final = (*LIFE, "null", "fields", "lists", "informers", "queue", "growth", "real")
"""The values of ``--parts``: steps of the life, and the measurements beside it."""

_SERVER_START: Final = 1.0
_SETTLE: Final = 1.0
_PREPARE_US: Final = 40.0
_RELIST_WAIT: Final = 1.5
_FEWER: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The numbers of objects, events and rounds."""

    name: str
    objects: int
    """For those that can; others get what they can."""
    slow_objects: int
    """The most that a slow peer gets."""
    events: int
    rounds: int
    latency_rounds: int
    paced: int
    """Events at 1,000 a second."""
    idle: float
    extra_objects: int
    """For what is measured beside the life."""
    growth: tuple[int, ...]
    real_objects: int
    items: int


QUICK: Final = Scale(
    name="quick",
    objects=10_000,
    slow_objects=1_000,
    events=10_000,
    rounds=2,
    latency_rounds=2,
    paced=3_000,
    idle=3.0,
    extra_objects=5_000,
    growth=(5_000, 20_000),
    real_objects=2_000,
    items=50_000,
)
FULL: Final = Scale(
    name="full",
    objects=100_000,
    slow_objects=5_000,
    events=100_000,
    rounds=3,
    latency_rounds=5,
    paced=5_000,
    idle=6.0,
    extra_objects=10_000,
    growth=(10_000, 100_000, 1_000_000),
    real_objects=20_000,
    items=100_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One life of one process: what it is asked for, step by step."""

    part: str
    peer: Peer
    round: int
    objects: int
    steps: tuple[str, ...]
    events: int = 0
    paced: int = 0
    items: int = 0
    idle: float = 0.0
    lists: str = "stream"
    fields: bool = False
    namespaces: int = 0

    def estimate(self) -> float:
        """Return about how many seconds it takes."""
        return sum(self.seconds(step) for step in ("start", *self.steps))

    def seconds(self, step: str) -> float:
        """Return about how many seconds a step takes."""
        peer = self.peer
        listing = self.objects * peer.sync_us / 1e6
        telling = self.events * (peer.event_us + _PREPARE_US) / 1e6
        return {
            "start": peer.start + _SERVER_START + self.objects * 5e-6,
            "sync": listing + _SETTLE,
            "events": telling + _SETTLE,
            "controller": telling + _SETTLE,
            "latency": self.paced / 1_000 + 0.5,
            "relist": listing + _SETTLE + _RELIST_WAIT,
            "idle": self.idle,
        }.get(step, 1.0 + self.objects * 1e-5)


def rotated(peers: Sequence[Peer], by: int) -> list[Peer]:
    """Return the peers in the order of round ``by``."""
    first = by % len(peers) if peers else 0
    return [*peers[first:], *peers[:first]]


def main_jobs(scale: Scale, peers: Iterable[Peer], parts: Sequence[str]) -> list[Job]:
    """Return the whole life of each peer, round by round, as often as it has rounds.

    Peers other than kinform do all of it in the first round alone: after that they have fewer
    events and no relist, which takes them as long as the first sync. Rounds after the last whole
    one measure latency alone, of client-go with protobuf and of kinform.
    """
    steps = tuple(step for step in LIFE if step in parts)
    those = [peer for peer in peers if peer.has_life]
    jobs: list[Job] = []
    if not steps:
        return jobs
    for number in range(max(scale.rounds, scale.latency_rounds if "latency" in steps else 0)):
        for peer in rotated(those, number):
            job = _life(scale, peer, number=number, steps=steps)
            if number >= scale.rounds:
                if peer.label not in {PROTOBUF.label, RAW.label, UVLOOP.label}:
                    continue
                job = replace(job, part="latency", steps=("sync", "latency"), events=0)
            elif number >= peer.rounds:
                continue
            elif number and peer.name != KINFORM:
                kept = tuple(step for step in job.steps if step != "relist")
                job = replace(job, steps=kept, events=job.events // _FEWER)
            jobs.append(job)
    return jobs


def _life(scale: Scale, peer: Peer, *, number: int, steps: tuple[str, ...]) -> Job:
    objects = min(scale.objects, peer.most)
    if peer.is_slow:
        objects = min(objects, scale.slow_objects)
    needed = steps if "sync" in steps else ("sync", *steps)  # without it there is nothing to ask
    return Job(
        part="life",
        peer=peer,
        round=number,
        objects=objects,
        steps=needed,
        events=min(scale.events, objects),
        paced=scale.paced if not peer.is_slow else scale.paced // 3,
        idle=scale.idle,
    )

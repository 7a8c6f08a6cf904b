"""Measurements beside the whole life: each part has its own jobs.

Its rounds are as many as those of the life, unless one has to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from bench.compare.peers import (
    FROZEN,
    JSON,
    LIGHTKUBE,
    NULL,
    PROTOBUF,
    RAW,
    UVLOOP,
    ZSTD,
    Peer,
)
from bench.compare.plan import Job, Scale, rotated

__all__ = ["INFORMERS", "extra_jobs"]

INFORMERS: Final = 50
PODS_PER_NAMESPACE: Final = 20
_IDLE_ROUNDS: Final = 3
_MODES: Final = ("stream", "pages", "whole")


def extra_jobs(scale: Scale, peers: Iterable[Peer], parts: Sequence[str]) -> list[Job]:
    """Return the jobs of all these parts, for the peers among those that each part compares."""
    able = list(peers)
    return [job for part, jobs in _JOBS.items() if part in parts for job in jobs(scale, able)]


def _among(peers: Sequence[Peer], *wanted: Peer) -> list[Peer]:
    labels = {peer.label for peer in peers}
    return [peer for peer in wanted if peer.label in labels]


def _null(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """The server alone: the rate of a client that reads and does nothing."""
    return [
        Job(
            part="null",
            peer=peer,
            round=number,
            objects=scale.objects,
            steps=("sync", "events"),
            events=scale.events,
        )
        for number in range(scale.rounds)
        for peer in peers
        if peer.name == NULL
    ]


def _fields(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """Handlers that read the node's name, the phase and the labels of every object."""
    those = [peer for peer in peers if peer.has_life]
    jobs: list[Job] = []
    for number in range(scale.rounds):
        for peer in rotated(those, number):
            if number >= peer.rounds:
                continue
            objects = min(scale.extra_objects, peer.most, *([2_000] if peer.is_slow else []))
            jobs.append(
                Job(
                    part="fields",
                    peer=peer,
                    round=number,
                    objects=objects,
                    steps=("sync", "events"),
                    events=objects,
                    fields=True,
                )
            )
    return jobs


def _lists(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """The first sync by each way that a server has to show all objects."""
    return [
        Job(
            part="lists",
            peer=peer,
            round=0,
            objects=scale.objects,
            steps=("sync",),
            lists=mode,
        )
        for mode in _MODES
        for peer in _among(peers, PROTOBUF, RAW, UVLOOP)
    ]


def _informers(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """Fifty informers in one process, one for each namespace, and nothing happens."""
    those = _among(peers, PROTOBUF, RAW, UVLOOP)
    return [
        Job(
            part="informers",
            peer=peer,
            round=number,
            objects=INFORMERS * PODS_PER_NAMESPACE,
            steps=("sync", "idle"),
            idle=2 * scale.idle,  # there is little to see
            namespaces=INFORMERS,
        )
        for number in range(_IDLE_ROUNDS)
        for peer in rotated(those, number)
    ]


def _queue(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """The work queue alone, and a controller that does nothing."""
    those = _among(peers, PROTOBUF, RAW, UVLOOP)
    objects = scale.extra_objects
    return [
        Job(
            part="queue",
            peer=peer,
            round=number,
            objects=objects,
            steps=("sync", "queue", "controller"),
            events=objects,
            items=scale.items,
        )
        for number in range(scale.rounds)
        for peer in rotated(those, number)
    ]


def _growth(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """Kinform alone, with ten times as many objects, and ten times as many again."""
    return [
        Job(
            part="growth",
            peer=peer,
            round=0,
            objects=objects,
            steps=("sync", "events"),
            events=min(objects, scale.events),
        )
        for objects in scale.growth
        for peer in _among(peers, RAW, FROZEN, ZSTD)
    ]


def _real(scale: Scale, peers: Sequence[Peer]) -> list[Job]:
    """The first sync from a real kube-apiserver, over TLS."""
    those = _among(peers, PROTOBUF, JSON, RAW, UVLOOP, LIGHTKUBE)
    return [
        Job(
            part="real",
            peer=peer,
            round=number,
            objects=scale.real_objects,
            steps=("sync",),
        )
        for number in range(scale.rounds)
        for peer in rotated(those, number)
    ]


_JOBS: Final[Mapping[str, Callable[[Scale, Sequence[Peer]], list[Job]]]] = {
    "null": _null,
    "fields": _fields,
    "lists": _lists,
    "informers": _informers,
    "queue": _queue,
    "growth": _growth,
    "real": _real,
}

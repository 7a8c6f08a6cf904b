"""The pods of the comparison: a cluster's, in files, the same for the same seed.

They are those of `bench.pods` in the shape of a cluster: ReplicaSets of 1 to 12 pods, 4 on
average, whose pods have the same labels and owner, and 20 pods to a node. `bench.pods` makes one
pod of each application; what differs from pod to pod in it is filled anew for each, with as much
chance in it as there.

Some fields have a fixed width, so that they can be overwritten in place, and are functions of the
pod's number (`name_suffix`, `uid_tail`, `FIRST_VERSION`): they are distinct for all pods there
are. A file has one record for each pod, 4 bytes with its length (big-endian) and its JSON without
kind and apiVersion, as the items of a list come.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import operator
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias, final

import zstandard

from bench import pods as applications

__all__ = [
    "FIRST_VERSION",
    "FOLDER",
    "PODS_PER_NODE",
    "SENT",
    "json_file",
    "main",
    "name_suffix",
    "pods",
    "proto_file",
    "records",
    "uid_tail",
    "zstd_size",
]

FOLDER: Final = Path(__file__).parent.parent / "build" / "bench"
"""The folder of the files."""
FIRST_VERSION: Final = 1_000_000_000
"""The resourceVersion of the first pod; that of pod n is n higher. Always 10 digits."""
SENT: Final = "bench.example.com/sent"
"""The annotation with the time an event was sent: nanoseconds of Unix time, 19 digits."""
PODS_PER_NODE: Final = 20

_REPLICAS: Final = (1, 2, 2, 3, 3, 4, 6, 12)
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_NAMES: Final = len(_LETTERS) ** 5
_PAIRS: Final = ["".join(pair).encode() for pair in itertools.product(_LETTERS, repeat=2)]
_LEVEL: Final = 19
_PROGRESS: Final = 10_000

Maker: TypeAlias = Callable[[], bytes]


# --- what a pod's number decides --------------------------------------------------------------


def name_suffix(number: int) -> bytes:
    """Return the five letters that the name of a pod ends with."""
    rest, last = divmod(number * 7_654_321 % _NAMES, 729)
    first, middle = divmod(rest, 729)
    return _LETTERS[first].encode() + _PAIRS[middle] + _PAIRS[last]


def uid_tail(number: int) -> bytes:
    """Return the 12 digits that the uid of a pod ends with."""
    return b"%012x" % (number * 0x9E37_79B9_7F4B & 0xFFFF_FFFF_FFFF)


# --- an application ---------------------------------------------------------------------------

_SLOTS: Final = rb"""
|(?P<time>2026-0\d-\d\dT\d\d:\d\d:\d\dZ)
|(?P<digest>(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f]))
|(?P<setting>(?<="value":")[0-9a-f]{6}(?="))
|(?P<token>(?<=kube-api-access-)[0-9a-f]{5})
|(?P<address>(?<=")10\.\d+\.\d+\.\d+(?=\\?"))
|(?P<word>(?<="https://)[a-z]+)
|(?P<port>(?<=\.svc:)\d+)
|(?P<tag>(?<=:v)\d\.\d+(?="))
|(?P<log_level>(?<=--log-level=)[a-z]+)
|(?P<shard>(?<=--shard=)\d+)
|(?P<cores>(?<="limits":\{"cpu":")\d+)
|(?P<millicores>\d+(?=m","memory))
|(?P<gibibytes>\d+(?=Gi"))
|(?P<mebibytes>\d+(?=Mi"))
|(?P<delay>(?<="initialDelaySeconds":)\d+)
|(?P<group>(?<="fsGroup":)\d+)
|(?P<restarts>(?<="restartCount":)\d)
"""
"""The values that differ from pod to pod, beside the identity of the pod and its ReplicaSet."""


@final
class _Chance:
    """Makes what differs from pod to pod; each method is named as its slot."""

    def __init__(self, seed: int) -> None:
        self.bits = random.Random(seed).getrandbits
        self.words: list[bytes] = []

    def time(self) -> bytes:
        bits = self.bits(40)
        month, day, second = bits % 9 + 1, (bits >> 8) % 28 + 1, (bits >> 16) % 86_400
        clock = (second // 3600, second // 60 % 60, second % 60)
        return b"2026-0%d-%02dT%02d:%02d:%02dZ" % (month, day, *clock)

    def digest(self) -> bytes:
        return b"%064x" % self.bits(256)

    def setting(self) -> bytes:
        return b"%06x" % self.bits(24)

    def token(self) -> bytes:
        return b"%05x" % self.bits(20)

    def address(self) -> bytes:
        bits = self.bits(24)
        return b"10.%d.%d.%d" % (bits >> 16, bits >> 8 & 255, bits % 253 + 1)

    def word(self) -> bytes:
        return self.words[self.bits(16) % len(self.words)]

    def tag(self) -> bytes:
        return b"%d.%d" % (self.bits(8) % 9 + 1, self.bits(8) % 41)

    def log_level(self) -> bytes:
        return b"debug" if self.bits(1) else b"info"

    def restarts(self) -> bytes:
        return (b"0", b"0", b"0", b"1", b"7")[self.bits(16) % 5]

    def uid_start(self) -> bytes:
        bits = b"%020x" % self.bits(80)
        return b"%b-%b-4%b-a%b-" % (bits[:8], bits[8:12], bits[12:15], bits[15:18])

    def hash(self) -> bytes:
        return b"".join(_PAIRS[self.bits(16) % len(_PAIRS)] for _ in range(5))

    def number(self, low: int, high: int) -> bytes:
        return b"%d" % (low + self.bits(24) % (high - low + 1))


_RANGES: Final = {
    "port": (80, 9000),
    "shard": (0, 64),
    "cores": (1, 8),
    "millicores": (50, 900),
    "gibibytes": (1, 16),
    "mebibytes": (64, 999),
    "delay": (5, 60),
    "group": (1000, 65_000),
}


class _Identity(NamedTuple):
    """The values of a pod before it is rendered; each field is named after its slot."""

    suffix: bytes
    hash: bytes
    owner: bytes
    uid: bytes
    version: bytes
    release: bytes
    node: bytes


class _ReplicaSet(NamedTuple):
    hash: bytes
    uid: bytes
    release: bytes


@final
class _Application:
    """One pod of `bench.pods`, cut where pods of the application differ."""

    def __init__(self, pod: bytes, chance: _Chance) -> None:
        self._chance = chance
        self._makers: list[Maker] = []
        metadata = json.loads(pod)["metadata"]
        hashed = metadata["labels"]["pod-template-hash"]
        zeros = b'"annotations":{"%b":"%019d",' % (SENT.encode(), 0)
        pod = pod.replace(b'"annotations":{', zeros, 1)
        identity = {
            "suffix": rf"(?<={hashed}-){metadata['name'][-5:]}(?=\")",
            "hash": hashed,
            "owner": metadata["ownerReferences"][0]["uid"],
            "uid": metadata["uid"],
            "version": rf"(?<=\"resourceVersion\":\"){metadata['resourceVersion']}(?=\")",
            "release": r"(?<=\"app\.kubernetes\.io/version\":\")[\d.]+",
            "node": r"(?<=\"nodeName\":\")[^\"]+",
        }
        of_this_pod = "|".join(f"(?P<{name}>{pattern})" for name, pattern in identity.items())
        slots = re.compile(of_this_pod.encode() + b"".join(_SLOTS.split(b"\n")))
        pieces: list[bytes] = []
        order: list[int] = []  # where the values of the slots come from, in one list of all
        end, addresses = 0, dict[bytes, int]()
        for found in slots.finditer(pod):
            pieces += (pod[end : found.start()], b"")
            order.append(self._place(str(found.lastgroup), found[0], addresses))
            end = found.end()
        self._pieces = (*pieces, pod[end:])
        self._values: Callable[[list[bytes]], tuple[bytes, ...]] = operator.itemgetter(*order)

    def _place(self, kind: str, text: bytes, addresses: dict[bytes, int]) -> int:
        """Return where the value of a slot comes from; it may get a maker of its own."""
        if kind in _Identity._fields:
            return _Identity._fields.index(kind)
        place = len(_Identity._fields) + len(self._makers)
        if kind == "address" and addresses.setdefault(text, place) != place:
            return addresses[text]  # the addresses of host and pod appear twice each
        if kind in _RANGES:
            low, high = _RANGES[kind]
            self._makers.append(functools.partial(self._chance.number, low, high))
        else:
            self._makers.append(getattr(self._chance, kind))
        return place

    def pod(self, number: int, replica_set: _ReplicaSet, *, node: int) -> bytes:
        """Return the pod with a number, in a ReplicaSet and on a node."""
        identity = _Identity(
            suffix=name_suffix(number),
            hash=replica_set.hash,
            owner=replica_set.uid,
            uid=self._chance.uid_start() + uid_tail(number),
            version=b"%d" % (FIRST_VERSION + number),
            release=replica_set.release,
            node=b"ip-10-000-%03d-%03d.eu-central-1.compute.internal" % divmod(node, 256),
        )
        pieces = list(self._pieces)
        pieces[1::2] = self._values([*identity, *[maker() for maker in self._makers]])
        return b"".join(pieces)


def _applications(chance: _Chance, *, seed: int) -> list[_Application]:
    """Return the applications that `bench.pods` knows, or almost all of them."""
    found: dict[tuple[str, str], _Application] = {}
    for pod in applications.pods(600, seed=seed, typed=False):
        metadata = json.loads(pod)["metadata"]
        key = (metadata["namespace"], metadata["labels"]["app.kubernetes.io/name"])
        if key not in found:
            found[key] = _Application(pod, chance)
    chance.words = sorted({word.encode() for _, name in found for word in name.split("-")})
    return list(found.values())


def pods(count: int, *, seed: int = 1) -> Iterator[bytes]:
    """Yield ``count`` pods as compact JSON, without kind and apiVersion."""
    chance = _Chance(seed)
    known = _applications(chance, seed=seed)
    wanted: list[list[_ReplicaSet]] = [[] for _ in known]  # by ReplicaSets that are not complete
    for number in range(count):
        which = chance.bits(32) % len(known)
        if not wanted[which]:
            uid = chance.uid_start() + b"%012x" % chance.bits(48)
            release = b"%d.%d" % (chance.bits(8) % 9 + 1, chance.bits(16) % 61)
            replica_set = _ReplicaSet(chance.hash(), uid, release)
            wanted[which] = [replica_set] * _REPLICAS[number % len(_REPLICAS)]
        node = number * 7919 % max(1, count // PODS_PER_NODE)
        yield known[which].pod(number, wanted[which].pop(), node=node)


# --- the files --------------------------------------------------------------------------------


def json_file(count: int, *, seed: int = 1, folder: Path = FOLDER) -> Path:
    """Return the file with ``count`` pods; it is written if it is not there."""
    file = folder / f"pods-{seed}-{count}.json.bin"
    if not file.exists():
        made = _with_progress(pods(count, seed=seed), f"of {count:,} pods made")
        _write(file, (len(pod).to_bytes(4, "big") + pod for pod in made))
    return file


def proto_file(count: int, *, seed: int = 1, folder: Path = FOLDER) -> Path:
    """Return where the same pods are in protobuf. It is not written here."""
    return folder / f"pods-{seed}-{count}.proto.bin"


def records(file: Path) -> Iterator[bytes]:
    """Yield the records of a file."""
    with file.open("rb") as source:
        while header := source.read(4):
            yield _exactly(source, int.from_bytes(header, "big"))


def zstd_size(file: Path) -> int:
    """Return the size of the records, without their lengths, under plain zstd at level 19.

    The first time takes long, minutes for 100,000 pods; the answer is kept next to the file.
    """
    kept = file.with_name(f"{file.name}.zstd-{_LEVEL}")
    if not kept.exists():
        compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        counted = _with_progress(records(file), "pods compressed")
        size = sum(len(compressor.compress(record)) for record in counted)
        size += len(compressor.flush())
        _write(kept, [b"%d\n" % size])
    return int(kept.read_text(encoding="ascii"))


def _exactly(source: BinaryIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) != size:
        raise ValueError(f"{source.name}: ends within a record")
    return data


def _with_progress(items: Iterable[bytes], what: str) -> Iterator[bytes]:
    """Yield the items, and tell from time to time how far it is."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _PROGRESS == 0:
            print(f"{number:,} {what}", file=sys.stderr, flush=True)


def _write(file: Path, pieces: Iterable[bytes]) -> None:
    """Write a file, which is there as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as target:
            target.writelines(pieces)
        temporary.chmod(0o644)
        temporary.rename(file)
    finally:
        temporary.unlink(missing_ok=True)


def main(arguments: Sequence[str] = ()) -> bool:
    """Write a file of pods and print its name."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpus")
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--zstd", action="store_true", help="print its size under zstd, too")
    options = parser.parse_args(arguments)
    file = json_file(options.pods, seed=options.seed)
    print(file)
    if options.zstd:
        print(f"{file.stat().st_size:,} bytes, {zstd_size(file):,} under zstd level {_LEVEL}")
    return True


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))

"""The bytes of a real kube-apiserver about ConfigMaps: ``recorded_watch.json``.

Made by ``python -m tools.record_watch``, never by hand: every byte, head and chunks and all, is as
it came out of TLS.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

__all__ = ["NAMESPACE", "Recorded", "load", "save"]

FILE = Path(__file__).with_name("recorded_watch.json")
NAMESPACE = "recorded"


class Recorded(NamedTuple):
    """The answers of a server, in the order in which it gave them."""

    watch: bytes
    """A streamed list, what happened then, a bookmark, and the end in good order."""
    look: bytes
    """A list of one object at most, when more had happened and the past was forgotten."""
    expired: bytes
    """A watch from the last version of the first one: an event says that this is forgotten."""
    afterwards: bytes
    """A streamed list up to the bookmark that ends it; that watch stays open."""


def load() -> Recorded:
    """Return what was recorded."""
    answers: dict[str, list[str]] = json.loads(FILE.read_text("utf-8"))
    return Recorded(**{name: "".join(lines).encode() for name, lines in answers.items()})


def save(recorded: Recorded) -> int:
    """Write it, each line as one; return how long the file is."""
    answers = {
        name: [line.decode() for line in answer.splitlines(keepends=True)]
        for name, answer in recorded._asdict().items()
    }
    text = json.dumps(answers, indent=1) + "\n"
    return FILE.write_bytes(text.encode())

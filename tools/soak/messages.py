"""What the process under test and the one that torments it say to each other, as lines of JSON."""

from __future__ import annotations

import msgspec

__all__ = ["Address", "Said", "Sample", "State", "Views"]

Views = dict[str, dict[str, str]]
"""What each part of the process under test believes there is: uid and version, by name."""


class Address(msgspec.Struct, kw_only=True):
    """Where the server is, and how to get in. Sent once, through a pipe."""

    url: str
    namespace: str
    token: str | None = None
    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = None


class Sample(msgspec.Struct, tag="sample", kw_only=True):
    """How the process under test stands; said every second."""

    at: float
    """Seconds since it was started."""
    rss: int
    """Bytes of memory that are resident."""
    tasks: int
    descriptors: int
    events: int
    """Callbacks so far."""
    failures: int
    """Lists and watches that failed so far."""


class State(msgspec.Struct, tag="state", kw_only=True):
    """What it believes; said when it is asked."""

    views: Views
    complaints: list[str]
    """What its handlers should never have been told."""


Said = Sample | State

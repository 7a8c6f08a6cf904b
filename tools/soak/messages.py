"""Messages between the process under test and the driver, as lines of JSON."""

from __future__ import annotations

import msgspec

__all__ = ["Address", "Said", "Sample", "State", "Views"]

Views = dict[str, dict[str, str]]
"""The contents of each cache of the process under test: uid and version, by name."""


class Address(msgspec.Struct, kw_only=True):
    """The address and credentials of the server. Sent once, through a pipe."""

    url: str
    namespace: str
    token: str | None = None
    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = None


class Sample(msgspec.Struct, tag="sample", kw_only=True):
    """Resource usage of the process under test; sent every second."""

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
    """The contents of its caches; sent on request."""

    views: Views
    complaints: list[str]
    """Invalid notifications that its handlers received."""


Said = Sample | State

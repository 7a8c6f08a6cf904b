"""The rules that kinform keeps, by their titles, and why some of them have no mutant here.

A rule is one way in which list and watch fail in the field, and what a client must do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["ELSEWHERE", "INVARIANTS", "RULES"]

RULES: Final[Mapping[str, str]] = {
    "F-R01": "half-open connection",
    "F-R02": "a server that stops sending and keeps the socket",
    "F-R03": "watches closed at once, in a loop",
    "F-R04": "410 Gone, as a status or as an event",
    "F-R05": "other errors within the stream",
    "F-R06": "too large resource version",
    "F-R07": "a version that goes back: etcd restored",
    "F-R08": "stale reads from another server",
    "F-R09": "cache polluted by direct answers",
    "F-R10": "connection refused, and herds",
    "F-R11": "5xx during rolling restarts",
    "F-R12": "HTTP/2",
    "F-R13": "DNS, endpoints, proxies",
    "F-R14": "pages: expired and inconsistent tokens",
    "F-R15": "bookmarks that do not come, or come late",
    "F-R16": "aggregated APIs without versions or watches",
    "F-R17": "a kind that is gone, or only seems to be",
    "F-R18": "permissions revoked",
    "F-R19": "namespace terminating",
    "F-R20": "deletes missed while disconnected",
    "F-R21": "deleted and created again under one name",
    "F-R22": "duplicates and replays",
    "F-R23": "a stream cut within an event",
    "F-R24": "events larger than a read",
    "F-R25": "partial and invalid UTF-8, Unicode line ends",
    "F-R26": "gzip",
    "F-R27": "poison objects",
    "F-R28": "wrong content",
    "F-R29": "429, priority and fairness",
    "F-R30": "expiring tokens",
    "F-R31": "exec plugins",
    "F-R32": "rotating CAs and client certificates",
    "F-R33": "clock jumps and suspend",
    "F-R34": "slow handlers, buffers",
    "F-R35": "exceptions of handlers",
    "F-R36": "a blocked event loop",
    "F-R37": "leaks after cancellation",
    "F-R38": "fork",
    "F-R39": "shutdown with work in flight",
    "F-R40": "races of start and stop",
    "F-R41": "leader election: skew, pauses, split brain",
    "F-R42": "work queues: lost keys, keys worked on twice",
    "F-R43": "memory over days",
    "F-R44": "synced, but stale",
}

INVARIANTS: Final[Mapping[str, str]] = {
    "F-I3": "no gap between two lists",
    "F-I4": "who is told of a version finds it in the cache",
    "F-I7": "cache and indexes equal the server",
    "F-I8": "the version never goes back unannounced",
    "F-I11": "a budget of requests",
    "F-I13": "bounded buffers",
}
"""Named by mutants that break no single rule."""

_SOCKETS: Final = "real sockets only"
_CREDENTIALS: Final = "credentials: a simulated client has one token for good"

ELSEWHERE: Final[Mapping[str, str]] = {
    "F-R09": "nothing but the reflector writes a cache: there is nothing to break",
    "F-R12": "kinform speaks HTTP/1.1",
    "F-R13": _SOCKETS,
    "F-R16": "the simulated server has versions and watches",
    "F-R19": "namespaces are not deleted",
    "F-R28": "what is no JSON cannot be read, whether or not its type is looked at before",
    "F-R30": _CREDENTIALS,
    "F-R31": _CREDENTIALS,
    "F-R32": _CREDENTIALS,
    "F-R38": "needs processes of the system",
    "F-R43": "a schedule is over in minutes; `make soak` takes longer",
}
"""Why the simulator does not claim a rule. Tests of their own are there for these."""

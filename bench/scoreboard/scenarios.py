"""The scenarios, as data: the same steps, times and deadlines for every client.

Every scenario begins with a cache that is in sync with twenty pods and a watch that is open. Then
its steps are done at once and stay for ``fault`` seconds; then all faults are taken away, one more
change is written, and the cache has ``deadline`` seconds to be equal to the server again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["NAMES", "PODS", "SCENARIOS", "Scenario", "chosen", "pod"]

Step: TypeAlias = Mapping[str, object]
"""A command of the server's process: see `bench.scoreboard.server`."""

PODS: Final = 20
_DEADLINE: Final = 20.0
_PATIENCE: Final = 360.0
"""Longer than any of the clients documents for noticing a silent watch, or an older server."""


def pod(number: int) -> str:
    """Return a pod's name."""
    return f"web-{number:02}"


def _faults(*texts: str) -> Step:
    return {"do": "faults", "faults": "\n".join(f"- {text}" for text in texts)}


def _write(*changes: tuple[str, str]) -> Step:
    return {"do": "write", "changes": changes}


def _act(what: str) -> Step:
    return {"do": "act", "what": what}


_SOME: Final = _write(
    ("update", pod(0)), ("create", "late-0"), ("delete", pod(1)), ("update", pod(2))
)
"""The events that a client which is not affected receives during the fault."""
_END: Final = _act("end watches")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way to make life hard for a client."""

    name: str
    title: str
    """The title in the table."""
    steps: Sequence[Step]
    fault: float = 6.0
    """Seconds from the steps to the healing."""
    deadline: float = _DEADLINE
    front: str = ""
    """The proxy of the client: ``plain`` or ``tls``; empty for none."""
    before: Sequence[Step] = ()
    """Done first, and waited for until the client's cache has it."""
    ignored: frozenset[str] = frozenset()
    """Pods that need not be right: the client may be unable to read them."""
    refuses: bool = False
    """True if connections are refused, so that the kernel counts attempts."""
    is_stop: bool = False
    """True if the scenario is about the end of the client: the fault stays."""

    @property
    def is_patient(self) -> bool:
        """True if it may take minutes without any action."""
        return self.deadline > _DEADLINE


SCENARIOS: Final[Sequence[Scenario]] = (
    Scenario(name="clean", title="nothing goes wrong", steps=[_SOME], fault=3.0),
    Scenario(
        name="ends",
        title="every watch ends at once, in order (200, empty)",
        steps=[_act("end all watches"), _SOME],
    ),
    Scenario(
        name="cut",
        title="every watch is cut off after its headers",
        steps=[_faults("close: {verb: watch, resource: pods, after_events: 0}"), _END, _SOME],
    ),
    Scenario(
        name="refused",
        title="connections are refused for 10 s",
        steps=[_faults("refuse: {}"), _END, _SOME],
        fault=10.0,
        refuses=True,
    ),
    Scenario(
        name="unavailable",
        title="503 to everything, as plain text from a proxy",
        steps=[_faults('status: {code: 503, text: "no backend"}'), _END, _SOME],
    ),
    Scenario(
        name="not-found",
        title="404 to everything, as plain text from a proxy",
        steps=[_faults('status: {code: 404, text: "default backend - 404"}'), _END, _SOME],
    ),
    Scenario(
        name="gone-status",
        title="410 as the status of the next watch",
        # Of that one alone: it would be no answer to a streamed list, which asks for no version.
        steps=[_faults("status: {code: 410, verb: watch, resource: pods, times: 1}"), _END, _SOME],
    ),
    Scenario(
        name="gone-stream",
        title="410 as an event: the version was compacted during an outage",
        steps=[
            _faults("reset: {}"),
            _END,
            _write(("update", pod(0)), ("update", pod(3)), ("create", "late-0")),
            _act("compact"),
        ],
        fault=2.0,
    ),
    Scenario(
        name="error-500",
        title="500 as the first event of every watch",
        steps=[_faults("error_event: {code: 500, verb: watch, resource: pods}"), _END, _SOME],
    ),
    Scenario(
        name="throttled",
        title="429 with Retry-After: 2 to every list and watch",
        steps=[_faults("status: {code: 429, resource: pods, retry_after: 2}"), _END, _SOME],
    ),
    Scenario(
        name="too-large",
        title='504 "Too large resource version" to every watch',
        steps=[
            _faults(
                "status: {code: 504, verb: watch, resource: pods, retry_after: 1, reason: Timeout,"
                ' message: "Too large resource version: 100000, current: 30"}'
            ),
            _END,
            _SOME,
        ],
    ),
    Scenario(
        name="truncated",
        title="every watch ends in the midst of its first event",
        steps=[_faults("truncate_frame: {event: 1, resource: pods}"), _END, _SOME],
    ),
    Scenario(
        name="corrupt",
        title="the first event of every watch is not valid UTF-8",
        steps=[_faults("corrupt: {event: 1, verb: watch, resource: pods}"), _END, _SOME],
    ),
    Scenario(
        name="next-line",
        title="an annotation has a U+0085 in it",
        steps=[_write(("next-line", pod(4))), _SOME],
        fault=3.0,
    ),
    Scenario(
        name="gzip",
        title="a proxy compresses watches, asked for or not",
        steps=[_faults("gzip: {verb: watch, resource: pods}"), _END, _SOME],
    ),
    Scenario(
        name="drip",
        title="watches come 256 bytes at a time, 50 times a second",
        steps=[_faults("drip: {size: 256, every: 0.02, verb: watch}"), _END, _SOME],
    ),
    Scenario(
        name="duplicates",
        title="every event comes twice",
        steps=[_faults("duplicate_events: {resource: pods}"), _END, _SOME],
        fault=3.0,
    ),
    Scenario(
        name="missed-deletes",
        title="3 deletes and a compaction during an outage",
        steps=[
            _faults("reset: {}"),
            _END,
            _write(*(("delete", pod(number)) for number in (5, 6, 7))),
            _act("compact"),
        ],
        fault=2.0,
    ),
    Scenario(
        name="recreated",
        title="2 pods deleted and created again during an outage, and a compaction",
        steps=[
            _faults("reset: {}"),
            _END,
            _write(*((what, pod(number)) for number in (5, 6) for what in ("delete", "create"))),
            _act("compact"),
        ],
        fault=2.0,
    ),
    Scenario(
        name="restored",
        title="etcd is restored from a backup: versions go back",
        before=[
            _act("remember"),
            _write(*(("update", pod(number)) for number in range(8, 18)), ("create", "late-1")),
        ],
        steps=[_act("restore")],
        fault=1.0,
        deadline=_PATIENCE,
    ),
    Scenario(
        name="redirected",
        title="every request is redirected (307) to another host",
        steps=[_act("redirect")],
        fault=5.0,
        front="tls",
    ),
    Scenario(
        name="poison",
        title="one pod is nested 1,500 levels deep",
        steps=[_write(("poison", "poison")), _SOME],
        ignored=frozenset({"default/poison"}),
    ),
    Scenario(
        name="silence",
        title="the connection stays open and nothing comes any more",
        steps=[_act("freeze"), _SOME],
        fault=1.0,
        front="plain",
        deadline=_PATIENCE,
    ),
    Scenario(
        name="stop",
        title="the client is stopped while the server does not answer",
        steps=[_faults("stall: {}"), _END],
        fault=2.0,
        is_stop=True,
    ),
)
"""In the order of the table."""

NAMES: Final = tuple(scenario.name for scenario in SCENARIOS)


def chosen(names: Sequence[str]) -> list[Scenario]:
    """Return the scenarios of these names, or all without names.

    Raises:
        ValueError: A name is unknown.
    """
    wanted = [name.strip() for name in names if name.strip()]
    if unknown := [name for name in wanted if name not in NAMES]:
        raise ValueError(f"no scenario {unknown[0]!r}; there is {', '.join(NAMES)}")
    return [scenario for scenario in SCENARIOS if not wanted or scenario.name in wanted]

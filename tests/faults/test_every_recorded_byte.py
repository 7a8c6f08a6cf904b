"""F-R23, F-P13 with what a real server wrote: its watches may be cut at any byte of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, final

import pytest

import kinform
from kinform import Config
from tests.faults.support_cutting import LISTED, Ending, followed
from tests.faults.support_recorded import NAMESPACE, load
from tests.support.wire import WireConnection, WireRequest, WireServer

pytestmark = pytest.mark.slow

Asked: TypeAlias = Literal["stream", "look", "watch"]

RECORDED = load()
LANES = 4
"""So many runs at a time: each of them waits for a moment, again and again."""


class Cut(NamedTuple):
    """The position at which a response ends, the first time that it is sent."""

    answer: Literal["watch", "expired"]
    after: int
    ending: Ending

    @property
    def sent(self) -> bytes:
        """The part that is sent."""
        answer: bytes = getattr(RECORDED, self.answer)
        return answer[: self.after]


@final
class Replay:
    """Replays the recorded responses to every client, with one cut."""

    def __init__(self, cut: Cut) -> None:
        self._cut: Cut | None = cut
        self.asked: list[Asked] = []
        self.since: list[str] = []
        """The versions that watches were to begin from."""

    async def __call__(self, request: WireRequest, conn: WireConnection) -> None:
        name = self._note(request)
        if self._cut is not None and self._cut.answer == name:
            cut, self._cut = self._cut, None
            await conn.write(cut.sent)
            await conn.fin() if cut.ending is Ending.FIN else conn.rst()
            return
        await conn.write(getattr(RECORDED, name))
        if name == "afterwards":
            await conn.stall()

    def _note(self, request: WireRequest) -> str:
        """Take note of what was asked for; return which answer that gets."""
        query = request.query
        if "watch" not in query:
            self.asked.append("look")
            return "look"
        if "sendInitialEvents" in query:
            self.asked.append("stream")
            return "watch" if self.asked == ["stream"] else "afterwards"
        self.asked.append("watch")
        self.since.append(query["resourceVersion"])
        return "expired"


def events(answer: bytes) -> list[dict[str, Any]]:
    """Return the events that are whole; no other line of an answer is a JSON object."""
    found: list[dict[str, Any]] = []
    for line in answer.splitlines():
        try:
            found += [json.loads(line)] if line.startswith(b"{") else []
        except ValueError:
            break
    return found


def versions(answer: bytes) -> dict[str, str]:
    """Return the versions of the objects that a streamed list has sent."""
    added = [event["object"]["metadata"] for event in events(answer) if event["type"] == "ADDED"]
    return {metadata["name"]: metadata["resourceVersion"] for metadata in added}


def wanted(cut: Cut) -> tuple[list[Asked], list[str]]:
    """Return what must be asked for, and no more; and the versions to watch from.

    A list that was not whole is asked for again. Else the next watch begins where the last one
    was cut, and hears, perhaps at the second attempt, that this is forgotten.
    """
    if cut.answer == "watch" and LISTED not in cut.sent:
        return ["stream", "stream"], []
    received = events(cut.sent if cut.answer == "watch" else RECORDED.watch)
    again = second_attempt(cut.sent) if cut.answer == "expired" else []
    since = received[-1]["object"]["metadata"]["resourceVersion"]
    return ["stream", "look", "watch", *again, "stream"], [since] * (1 + again.count("watch"))


def second_attempt(sent: bytes) -> list[Asked]:
    """Return what follows a watch, on a connection that had been in use, of which this came."""
    if b"\r\n\r\n" not in sent:
        return ["watch"]  # at once: it may have been over before the request came
    return [] if events(sent) else ["look", "watch"]


async def check(cut: Cut) -> None:
    """Follow it all with an informer of which one watch is cut."""
    replay = Replay(cut)
    async with WireServer(replay) as server, kinform.connect(Config(server=server.url)) as client:
        await followed(client, namespace=NAMESPACE, expected=versions(RECORDED.afterwards))
    assert (replay.asked, replay.since) == wanted(cut), cut


def test_what_was_recorded_is_all_that_a_watch_can_say() -> None:
    types = [event["type"] for event in events(RECORDED.watch)]
    assert types[:5] == ["ADDED", "BOOKMARK", "ADDED", "MODIFIED", "DELETED"]
    assert set(types[5:]) == {"BOOKMARK"}
    assert LISTED in RECORDED.watch
    assert [event["object"]["code"] for event in events(RECORDED.expired)] == [410]
    assert re.search(rb"\r\nTransfer-Encoding: chunked\r\n", RECORDED.watch)
    assert RECORDED.watch.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("answer", ["watch", "expired"])
@pytest.mark.parametrize("ending", Ending, ids=lambda ending: ending.name)
async def test_a_recorded_watch_may_be_cut_at_any_byte(
    answer: Literal["watch", "expired"], ending: Ending
) -> None:
    """Every byte is the last one of one run, and then the cache equals the server."""
    cuts = [Cut(answer, after, ending) for after in range(len(getattr(RECORDED, answer)) + 1)]
    async with asyncio.TaskGroup() as group:
        for lane in range(LANES):
            group.create_task(check_all(cuts[lane::LANES]))


async def check_all(cuts: Sequence[Cut]) -> None:
    for cut in cuts:
        await check(cut)

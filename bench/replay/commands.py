"""Commands to the server: a line of JSON each, and a line of JSON back.

A command that cannot be carried out is answered with ``{"error": "..."}``; the next one may
follow. The end of the input means ``quit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Annotated, Final, TypeAlias, assert_never, final

import msgspec

from bench.replay import events
from bench.replay.events import NotSentError, Prepared
from bench.replay.frames import chunk
from bench.replay.http import GoneError
from bench.replay.pods import Cluster, Lists
from bench.replay.server import Server
from bench.replay.wire import Failure

__all__ = ["Control", "run"]

_EXPIRED: Final = Failure(410, "Expired", "too old resource version: the replay says so")
_TIMEOUT: Final = 60.0

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Answer: TypeAlias = Mapping[str, object]


class _Command(msgspec.Struct, tag_field="do", tag=str.lower, forbid_unknown_fields=True):
    pass


class Serve(_Command):
    """From now on, these pods are served; what was open is closed."""

    objects: Count
    lists: Lists = "whole"
    namespaces: Annotated[int, msgspec.Meta(ge=0)] = 0


class Prepare(_Command):
    """Make the next events, in place of those that were prepared and not sent."""

    events: Count


class Blast(_Command):
    """Send what was prepared."""

    watchers: Count = 1
    timeout: float = _TIMEOUT
    """The time to wait for the watches."""


class Pace(_Command):
    """Send events at a rate."""

    events: Count
    per_second: Annotated[float, msgspec.Meta(gt=0)]
    watchers: Count = 1
    timeout: float = _TIMEOUT


class Expire(_Command):
    """End all watches, with an event that makes clients list again."""


class Bookmark(_Command):
    """Send a bookmark on all watches that asked for some."""


class Stats(_Command):
    """Tell what was served since the start."""


class Quit(_Command):
    """Close all connections and end."""


_Action: TypeAlias = Serve | Prepare | Blast | Pace | Expire | Bookmark | Stats


@final
class Control:
    """Carries out commands, one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._prepared: Prepared | None = None
        self._decoder: msgspec.json.Decoder[_Action | Quit] = msgspec.json.Decoder(_Action | Quit)

    def answer(self, line: bytes) -> Answer | None:
        """Carry out a command and return the answer; None means the end."""
        try:
            command = self._decoder.decode(line)
            return None if isinstance(command, Quit) else self._carry_out(command)
        except (msgspec.MsgspecError, NotSentError, OSError, ValueError) as exc:
            return {"error": str(exc)}

    def _carry_out(
        self, command: Serve | Prepare | Blast | Pace | Expire | Bookmark | Stats
    ) -> Answer:
        server = self._server
        match command:
            case Serve():
                return self._serve(command)
            case Prepare():
                cluster = self._cluster()
                self._prepared = None  # gives its memory back first
                self._prepared = Prepared(cluster, command.events, encodings=server.encodings)
                return {"prepared": command.events}
            case Blast():
                return self._blast(command)
            case Pace():
                cluster = self._cluster()
                watches = server.watches.wait(command.watchers, timeout=command.timeout)
                rate = command.per_second
                sent = events.pace(cluster, watches, count=command.events, per_second=rate)
                return sent._asdict()
            case Expire():
                ended = [
                    watch.end(watch.pods.wire.error(_EXPIRED))
                    for watch in server.watches.take_all()
                ]
                return {"expired": sum(ended)}
            case Bookmark():
                return {"bookmarked": self._bookmark()}
            case Stats():
                return server.statistics()
            case _:
                assert_never(command)

    def _cluster(self) -> Cluster:
        if not self._server.cluster.objects:
            raise ValueError("nothing is served yet")
        return self._server.cluster

    def _serve(self, command: Serve) -> Answer:
        self._server.cluster = Cluster(
            command.objects, lists=command.lists, namespaces=command.namespaces
        )
        self._prepared = None
        for watch in self._server.watches.take_all():
            watch.connection.interrupt()
        return {"serving": command.objects}

    def _blast(self, command: Blast) -> Answer:
        prepared, self._prepared = self._prepared, None
        if prepared is None or not prepared.is_due:
            raise ValueError("nothing is prepared, or other events were sent since")
        try:
            watches = self._server.watches.wait(command.watchers, timeout=command.timeout)
        except TimeoutError:
            self._prepared = prepared
            raise
        return events.blast(prepared, watches)._asdict()

    def _bookmark(self) -> int:
        done = 0
        for watch in self._server.watches.all():
            if not watch.wants_bookmarks:
                continue
            try:
                watch.connection.send(chunk(watch.pods.wire.bookmark(self._cluster().version)))
            except GoneError:
                continue
            done += 1
        return done


def run(control: Control, *, commands: IO[bytes], answers: IO[bytes]) -> None:
    """Answer commands until the last one or the end of the input."""
    for line in commands:
        if not line.strip():
            continue
        if (answer := control.answer(line)) is None:
            return
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()

"""The writer: changes objects on the server, and is hit by no fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias, final

import msgspec

from kinform.apiserver.deletion import delete_options
from kinform.apiserver.paths import Route, route
from kinform.apiserver.server import APIServer
from kinform.apiserver.wire import Request
from kinform.errors import UsageError
from kinform.testing.simulation.actions import Meddle, Write
from kinform.testing.simulation.history import State

__all__ = ["BUSY", "Lost", "Writer"]

Lost: TypeAlias = tuple[int, Write]
"""A write that was undone, behind the revision before it."""

BUSY: Final = 100
"""Revisions that each write of a schedule takes: others write too, what nobody looks at."""
REDONE: Final = 1000
"""Added to the value of what is written again."""
_TRICKY: Final = " é\u0085\u2028😀"
"""Behind every value: characters of two, three and four bytes, of which two end lines elsewhere."""


@final
class Writer:
    """Writes what a schedule says, to a server that runs."""

    def __init__(self, server: APIServer) -> None:
        self._server = server
        self._marks: list[tuple[int, Write]] = []  # the revisions before each write

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        self._create("/api/v1/namespaces", {"metadata": {"name": name}})

    def write(self, action: Write, held: State | None) -> None:
        """Write a ConfigMap, which is as ``held`` now; what cannot be updated is created."""
        storage = self._server.cluster.storage
        self._marks.append((storage.revision, action))
        storage.revision += BUSY
        path = f"/api/v1/namespaces/{action.namespace}/configmaps"
        team = held.team if held is not None else ("red" if action.value % 2 else "blue")
        if action.verb == "relabel":
            team = "blue" if team == "red" else "red"
        body = {
            "metadata": {"name": action.name, "labels": {"team": team}},
            "data": {"value": f"{action.value}{_TRICKY}"},
        }
        if held is not None and action.verb in {"delete", "recreate"}:
            self._delete(f"{path}/{action.name}")
            held = None
        if action.verb == "delete":
            return
        if held is None:
            self._create(path, body)
        else:
            self._put(f"{path}/{action.name}", body)

    def meddle(self, action: Meddle) -> None:
        """Change or delete a Secret, if there is one of that name."""
        path = f"/api/v1/namespaces/{action.namespace}/secrets/{action.name}"
        held = self._server.cluster.storage.table("secrets").get(
            f"{action.namespace}/{action.name}"
        )
        if held is None:
            return
        if action.deletes:
            self._delete(path)
        else:
            content = json.loads(held.raw)
            self._put(path, {**content, "data": {"value": "bWVkZGxlZA=="}})

    def restore(self, by: int) -> Sequence[Lost] | None:
        """Let the server be as before the last ``by`` writes.

        Return for each object the last write of it that is lost; None if it cannot be so.
        """
        if not self._marks:
            return None
        revision, _ = self._marks[-min(by, len(self._marks))]
        try:
            self._server.restore(revision)
        except UsageError:  # forgotten meanwhile
            return None
        lost = {(it.namespace, it.name): (mark, it) for mark, it in self._marks if mark >= revision}
        self._marks = [(mark, it) for mark, it in self._marks if mark < revision]
        return sorted(lost.values(), key=lambda found: found[0])

    def redo(self, lost: Lost, held: State) -> None:
        """Make a write that was lost again, in the version that it had, with another value."""
        mark, action = lost
        storage = self._server.cluster.storage
        storage.revision = max(storage.revision, mark)
        value = action.value + REDONE
        self.write(msgspec.structs.replace(action, verb="update", value=value), held)

    def _create(self, path: str, body: object) -> None:
        application = self._server.application
        application.writing.create(_request("POST", path, body), self._route(path))
        application.collector.settle()

    def _put(self, path: str, body: object) -> None:
        application = self._server.application
        application.writing.put(_request("PUT", path, body), self._route(path))
        application.collector.settle()

    def _delete(self, path: str) -> None:
        application = self._server.application
        options = delete_options(_request("DELETE", path, {}))
        application.writing.delete(self._route(path), options)
        application.collector.settle()

    def _route(self, path: str) -> Route:
        return route(self._server.cluster.kinds, path)


def _request(method: str, path: str, body: object) -> Request:
    headers = {"Content-Type": "application/json"}
    return Request.of(method, path, headers=headers, body=json.dumps(body).encode())

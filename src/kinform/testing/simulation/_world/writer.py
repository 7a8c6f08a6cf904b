"""The writer: changes objects on the server; faults do not affect it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Sequence
from typing import Final, TypeAlias, final

import msgspec

from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route, route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.patch import merge_patch
from kinform.apiserver.registry.deletion import delete_options
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.server import APIServer
from kinform.apiserver.storage.versioned_store import Stored
from kinform.errors import UsageError
from kinform.meta import GroupVersion, GroupVersionKind, GroupVersionResource
from kinform.testing.simulation._schedule.workload import CONFIG_MAPS, Draft, Workload, body_of
from kinform.testing.simulation.actions import Meddle, Write

__all__ = ["BUSY", "Lost", "Writer"]

Lost: TypeAlias = tuple[int, Write]
"""A write that was undone, behind the revision before it."""

BUSY: Final = 100
"""Revisions that each write of a schedule takes: others are taken by unrelated writes."""
REDONE: Final = 1000
"""Added to the value of a repeated write."""


@final
class Writer:
    """Writes what a schedule says, to a server that runs.

    ConfigMaps, unless there is a workload, are replaced whole: seeds mean what they always meant.
    """

    def __init__(self, server: APIServer, workload: Workload | None = None) -> None:
        self.workload: Final = workload or CONFIG_MAPS
        self._server = server
        self._replaces = workload is None
        self._marks: list[tuple[int, Write]] = []  # the revisions before each write

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        self._create("/api/v1/namespaces", {"metadata": {"name": name}})

    def install(self) -> None:
        """Create what the workload needs.

        Raises:
            UsageError: it cannot be created.
        """
        for manifest in self.workload.manifests:
            given = as_dict(manifest)
            metadata = as_dict(given.get("metadata"))
            with _refused(f"the workload's manifest {given.get('kind')} {metadata.get('name')}"):
                kind = self._kind_of(given)
                self._create(_path(kind, metadata.get("namespace") or "default"), given)

    def _kind_of(self, manifest: Json) -> Kind:
        version, name = (str(manifest.get(field, "")) for field in ("apiVersion", "kind"))
        kind = self._server.cluster.kinds.by_gvk(
            GroupVersionKind(*GroupVersion.parse(version), name)
        )
        if kind is None:
            raise ValueError(f"no kind {name!r} is served in {version!r}")
        return kind

    @property
    def kind(self) -> Kind:
        """The objects that are written.

        Raises:
            UsageError: the workload cannot be written.
        """
        name = self.workload.resource
        kind = self._server.cluster.kinds.find(*GroupVersionResource.parse(name))
        if kind is None:
            raise UsageError(f"nothing serves the workload's {name!r}: add its CRD to manifests")
        return kind

    def key_of(self, action: Write) -> str:
        """Return the key of what an action writes; without namespaces, both words are its name."""
        return f"{action.namespace}{'/' if self.kind.namespaced else '-'}{action.name}"

    def write(self, action: Write) -> None:
        """Write an object; what cannot be updated is created.

        Raises:
            UsageError: the workload does not make one that the server takes.
        """
        kind, storage = self.kind, self._server.cluster.storage
        self._marks.append((storage.revision, action))
        storage.revision += BUSY
        path, table = _path(kind, action.namespace), storage.table(kind.storage)
        key = self.key_of(action)
        namespace, _, name = key.rpartition("/")
        held = table.get(key)
        labels = {"team": _team(action, held)}
        with _refused(f"the workload's {key}"):
            if held is not None and action.verb in {"delete", "recreate"}:
                self._delete(f"{path}/{name}")
                held = table.get(key)  # there is one, if it has a finalizer
            if action.verb == "delete":
                return
            draft = Draft(namespace=namespace, name=name, labels=labels, value=action.value)
            body = body_of(self.workload, draft, kind)
            if held is None:
                self._create(path, body)
            else:
                self._put(f"{path}/{name}", body if self._replaces else _merged(held, body))

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
        """Restore the state that the server had before the last ``by`` writes.

        Return the last lost write of each object; None if that state cannot be restored.
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

    def redo(self, lost: Lost) -> None:
        """Make a write that was lost again, in the version that it had, with another value."""
        mark, action = lost
        storage = self._server.cluster.storage
        storage.revision = max(storage.revision, mark)
        value = action.value + REDONE
        self.write(msgspec.structs.replace(action, verb="update", value=value))

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


def _path(kind: Kind, namespace: str) -> str:
    """Return where objects are created."""
    prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"{prefix}{within}/{kind.plural}"


def _team(action: Write, held: Stored | None) -> str:
    """Return the team label for an object, whose current state is ``held``."""
    first = "red" if action.value % 2 else "blue"
    team = first if held is None else held.labels.get("team", "")
    if action.verb == "relabel":
        team = "blue" if team == "red" else "red"
    return team


def _merged(held: Stored, body: Json) -> Json:
    """Return the desired object, with the fields that others have set."""
    content: Json = json.loads(held.raw)
    metadata = merge_patch.apply(content["metadata"], body["metadata"])
    return {**content, **body, "metadata": metadata}


@contextlib.contextmanager
def _refused(called: str) -> Generator[None]:
    """Raise the error of a refused write as the workload's."""
    try:
        yield
    except (StatusError, TypeError, ValueError) as exc:
        raise UsageError(f"{called} is refused: {exc}") from exc


def _request(method: str, path: str, body: object) -> ServerRequest:
    headers = {"Content-Type": "application/json"}
    return ServerRequest.of(method, path, headers=headers, body=msgspec.json.encode(body))

"""The demo's access to the server: that of a client, without HTTP.

Clients may delete or change anything at any time, so a refused write is
expected: the next step tries again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Final, final

import msgspec

from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.list_options import WriteQuery
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.registry.deletion import DeleteOptions
from kinform.apiserver.registry.objects import key_of
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json, as_list, text
from kinform.apiserver.storage.versioned_store import Stored
from kinform.meta import GroupVersionKind

__all__ = ["DemoWorld", "condition", "is_going", "is_owned", "owner_reference"]

log: Final = logging.getLogger("kinform.apiserver")

EVENTS: Final = 100
"""The number of Events that are kept; a real server deletes them after an hour."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_MANAGER: Final = "kube-controller-manager"


@final
class DemoWorld:
    """All objects of a cluster, to be read and changed. Nothing here waits."""

    def __init__(self, application: Application, chance: random.Random) -> None:
        self._application = application
        self._cluster = application.cluster
        self._objects = application.objects
        self.random = chance
        # What was decoded last, by resource and key: most of it stays as it is.
        self._seen: dict[str, dict[str, tuple[Stored, Json]]] = {}

    @property
    def revision(self) -> int:
        """The last revision: it tells whether something has happened."""
        return self._cluster.storage.revision

    @property
    def now(self) -> str:
        """The time as objects carry it."""
        return self._cluster.timestamp()

    @property
    def micro_now(self) -> str:
        """The time as leases carry it."""
        return self._cluster.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    @property
    def minute(self) -> int:
        """The number of minutes since 1970."""
        return int(self._cluster.now().timestamp()) // 60

    def suffix(self, length: int = 5) -> str:
        """Return the end of a name that is new."""
        return "".join(self.random.choices(_LETTERS, k=length))

    # --- reading

    def all(self, resource: str) -> list[Json]:
        """Return all objects of a resource, such as ``deployments.apps``; not to be changed."""
        kinds = self._cluster.kinds.versions(resource)
        known, seen = self._seen.get(resource, {}), dict[str, tuple[Stored, Json]]()
        for stored in self._cluster.storage.table(resource).now() if kinds else ():
            held = known.get(stored.key)
            is_same = held is not None and held[0] is stored
            seen[stored.key] = held if held and is_same else (stored, decode(kinds[0], stored.raw))
        self._seen[resource] = seen
        return [obj for _, obj in seen.values()]

    def has(self, obj: Json) -> bool:
        """Return whether there is an object of that name."""
        kind = self._kind(obj)
        if kind is None:
            return False
        return self._cluster.storage.table(kind.storage).get(_key(kind, obj)) is not None

    # --- writing

    def create(self, obj: Json, *, manager: str = _MANAGER) -> Json | None:
        """Create an object; return it, None if the server refused. A status comes with it."""
        kind = self._kind(obj)
        if kind is None:
            return None
        body = _copy({key: value for key, value in obj.items() if key != "status"})
        namespace = text(obj, "metadata", "namespace")

        def create() -> Json:
            return self._objects.create(
                kind, body, WriteQuery(manager=manager), namespace=namespace
            )

        created = self._tried(create)
        if created is not None and "status" in obj:
            return self.set_status(created, obj["status"], manager=manager)
        return created

    def change(
        self,
        obj: Json,
        change: Callable[[Json], None],
        *,
        manager: str = _MANAGER,
        subresource: str = "",
    ) -> Json | None:
        """Change an object in place, as it is by now; return it, None if the server refused."""
        kind = self._kind(obj)
        if kind is None:
            return None

        def changed(held: Json) -> Json:
            change(held)
            return held

        options = WriteQuery(manager=manager)
        key = _key(kind, obj)
        return self._tried(
            lambda: self._objects.update(
                kind, key, changed, options=options, subresource=subresource
            )
        )

    def set_status(self, obj: Json, state: Json, *, manager: str = _MANAGER) -> Json | None:
        """Give an object a status, if it has another one."""
        if obj.get("status") == state:
            return obj

        def change(held: Json) -> None:
            held["status"] = _copy(state)

        return self.change(obj, change, manager=manager, subresource="status")

    def delete(self, obj: Json, *, grace: int | None = None) -> None:
        """Delete an object as a client does; its dependents follow."""
        kind = self._kind(obj)
        if kind is None:
            return
        options = DeleteOptions(grace=grace, policy="Background", uid=obj["metadata"]["uid"])
        key = _key(kind, obj)
        self._tried(lambda: self._application.deletion.delete(kind, key, options).obj)

    def _tried(self, write: Callable[[], Json]) -> Json | None:
        try:
            return write()
        except StatusError as exc:
            log.debug("demo cluster write refused", extra={"error": exc.message})
            return None
        finally:
            self._application.collector.settle()

    def _kind(self, obj: Json) -> Kind | None:
        group, _, version = obj["apiVersion"].rpartition("/")
        return self._cluster.kinds.by_gvk(GroupVersionKind(group, version, obj["kind"]))

    # --- events

    def tell(self, obj: Json, reason: str, message: str, *, by: str, kind: str = "Normal") -> None:
        """Record an Event about an object; the same one again is counted."""
        meta, now = obj["metadata"], self.now
        for event in self._events_about(meta["uid"]):
            if (event["reason"], event["message"]) == (reason, message):
                self.change(event, _repeated(now), manager=by)
                return
        reference = {key: obj[key] for key in ("kind", "apiVersion")}
        reference |= {key: meta[key] for key in ("namespace", "name", "uid") if key in meta}
        event_meta = {"namespace": meta.get("namespace", "default")}
        event_meta["name"] = f"{meta['name']}.{self.random.getrandbits(64):016x}"
        self.create(
            {
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": event_meta,
                "involvedObject": reference,
                "reason": reason,
                "message": message,
                "type": kind,
                "count": 1,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "source": {"component": by},
            },
            manager=by,
        )

    def _events_about(self, uid: str) -> list[Json]:
        kind = self._cluster.kinds.versions("events")[0]
        return [
            decode(kind, it.raw)
            for it in self._cluster.storage.table("events").now()
            if it.fields.get("involvedObject.uid") == uid
        ]

    def forget_events(self) -> None:
        """Delete the oldest Events, so that there are never many."""
        table = self._cluster.storage.table("events")
        if len(table) <= EVENTS:
            return
        kind = self._cluster.kinds.versions("events")[0]
        events = sorted(table.now(), key=lambda it: it.revision)
        for event in events[: len(events) - EVENTS]:
            self.delete(decode(kind, event.raw))


def _repeated(now: str) -> Callable[[Json], None]:
    def change(event: Json) -> None:
        event["count"] = (event.get("count") or 1) + 1
        event["lastTimestamp"] = now

    return change


def _copy(obj: Json) -> Json:
    """Return a copy that the server may change: it fills in defaults in place."""
    copied: Json = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


def _key(kind: Kind, obj: Json) -> str:
    meta = obj["metadata"]
    return key_of(kind, meta.get("namespace", ""), meta["name"])


def is_going(obj: Json) -> bool:
    """Return whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def owner_reference(owner: Json) -> Json:
    """Return the reference by which an object belongs to its controller."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_owned(obj: Json, owner: Json) -> bool:
    """Return whether ``owner`` is the object's controller."""
    references = as_list(obj["metadata"].get("ownerReferences"))
    uid = owner["metadata"]["uid"]
    return any(it.get("controller") and it["uid"] == uid for it in references)


def condition(kind: str, value: str, *, state: Json, now: str, **more: str) -> Json:
    """Return a condition; its time is the old one's if its value is."""
    olds = (it for it in as_list(state.get("conditions")) if it["type"] == kind)
    old = next(olds, None)
    since = old["lastTransitionTime"] if old and old["status"] == value else now
    return {"type": kind, "status": value, "lastTransitionTime": since, **more}

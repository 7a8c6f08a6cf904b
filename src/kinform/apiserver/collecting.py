"""What a cluster's controllers do about ownership: garbage, namespaces, definitions.

kube-controller-manager does this some time after a write. Here it is done before the answer to
the write is sent, so that a test never has to wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, final

from kinform.apiserver import custom_objects
from kinform.apiserver.cluster import Cluster
from kinform.apiserver.custom_objects import DEFINITIONS
from kinform.apiserver.deletion import FOREGROUND, ORPHAN, DeleteOptions, Deletion
from kinform.apiserver.json import Json, as_dict, as_list, text
from kinform.apiserver.kind import Kind
from kinform.apiserver.objects import Objects
from kinform.apiserver.rendering import decode
from kinform.apiserver.storage import Change, Stored
from kinform.apiserver.write_options import Intent

__all__ = ["Collector"]

_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_NAMESPACES: Final = "namespaces"
_ACCOUNTS: Final = "serviceaccounts"
_MANAGER: Final = Intent(manager="kube-controller-manager")
_SERVER: Final = Intent(manager="kube-apiserver")
_NOW: Final = DeleteOptions(grace=0, policy="Background")
_BACKGROUND: Final = DeleteOptions(policy="Background")
_FOREGROUND: Final = DeleteOptions(policy="Foreground")


@final
class Collector:
    """Follows every change and settles what it leaves to be done."""

    def __init__(self, cluster: Cluster, objects: Objects, deletion: Deletion) -> None:
        self._cluster = cluster
        self._objects = objects
        self._deletion = deletion
        # Invariant: the objects of the storage, by uid, and by the uid of each owner.
        self._places: dict[str, tuple[str, str]] = {}
        self._dependents: dict[str, set[str]] = {}
        self._waiting: deque[tuple[str, Change]] = deque()
        cluster.storage.observe(self._note)

    def rebuild(self) -> None:
        """Learn everything anew, after the storage was loaded or restored."""
        self._places.clear()
        self._dependents.clear()
        self._waiting.clear()
        for resource in self._cluster.storage.resources():
            for stored in self._cluster.storage.table(resource).now():
                self._add(resource, stored)

    def settle(self) -> None:
        """Do all that is left to be done."""
        while self._waiting:
            resource, change = self._waiting.popleft()
            self._react(resource, change)

    # --- the index

    def _note(self, resource: str, change: Change) -> None:
        if change.old is not None:
            self._drop(change.old)
        if not change.is_delete:
            self._add(resource, change.new)
        new = change.new
        is_of_interest = (
            change.is_delete
            or new.owners
            or b'"deletionTimestamp"' in new.raw
            or resource in {_NAMESPACES, DEFINITIONS, _ACCOUNTS}
        )
        if is_of_interest:
            self._waiting.append((resource, change))

    def _add(self, resource: str, stored: Stored) -> None:
        self._places[stored.uid] = (resource, stored.key)
        for owner in stored.owners:
            self._dependents.setdefault(owner, set()).add(stored.uid)

    def _drop(self, stored: Stored) -> None:
        self._places.pop(stored.uid, None)
        for owner in stored.owners:
            uids = self._dependents.get(owner)
            if uids is not None:
                uids.discard(stored.uid)
                if not uids:
                    del self._dependents[owner]

    def _children(self, uid: str) -> list[tuple[Kind, Stored]]:
        found = [self._find(child) for child in sorted(self._dependents.get(uid, ()))]
        return [it for it in found if it is not None]

    def _find(self, uid: str) -> tuple[Kind, Stored] | None:
        place = self._places.get(uid)
        if place is None:
            return None
        resource, key = place
        kinds = self._cluster.kinds.versions(resource)
        stored = self._cluster.storage.table(resource).get(key)
        return (kinds[0], stored) if kinds and stored is not None else None

    # --- reactions

    def _react(self, resource: str, change: Change) -> None:
        if change.is_delete:
            self._bury(change.new.uid)
            self._report_to_owners(change.new)
            self._report_to_containers(resource, change.key)
            return
        if resource == _NAMESPACES and change.old is None:
            self._give_account(change.key)
        found = self._find(change.new.uid)
        if found is None or found[1].revision != change.new.revision:
            return  # a later change of it waits, or did already
        kind, stored = found
        if b'"deletionTimestamp"' in stored.raw:
            self._finish(kind, stored)
        elif resource == DEFINITIONS:
            self._establish(kind, stored)
        elif stored.owners and not any(owner in self._places for owner in stored.owners):
            self._deletion.delete_held(kind, stored, _BACKGROUND)

    def _bury(self, uid: str) -> None:
        """Delete what only a dead owner had; the others forget it."""
        for kind, stored in self._children(uid):
            if any(owner in self._places for owner in stored.owners):
                self._disown(kind, stored, uid)
            else:
                self._deletion.delete_held(kind, stored, _BACKGROUND)

    def _disown(self, kind: Kind, stored: Stored, uid: str) -> None:
        def change(obj: Json) -> Json:
            references = as_list(obj["metadata"].get("ownerReferences"))
            kept = [it for it in references if as_dict(it).get("uid") != uid]
            obj["metadata"]["ownerReferences"] = kept
            return obj

        self._objects.update(kind, stored.key, change, intent=_MANAGER)

    def _report_to_owners(self, stored: Stored) -> None:
        for owner in stored.owners:
            found = self._find(owner)
            if found is not None and b'"deletionTimestamp"' in found[1].raw:
                self._finish(*found)

    def _report_to_containers(self, resource: str, key: str) -> None:
        """Go on with a namespace, or a definition, that waited for one of its objects to go."""
        namespace, separator, _ = key.partition("/")
        if separator:
            self._resume(_NAMESPACES, namespace)
        if resource == _ACCOUNTS:
            self._give_account(namespace)
        self._resume(DEFINITIONS, resource)

    def _resume(self, resource: str, key: str) -> None:
        stored = self._cluster.storage.table(resource).get(key)
        if stored is not None and b'"deletionTimestamp"' in stored.raw:
            self._finish(self._cluster.kinds.versions(resource)[0], stored)

    def _finish(self, kind: Kind, stored: Stored) -> None:
        """Do what the finalizers of an object that is being deleted wait for."""
        obj = decode(kind, stored.raw)
        finalizers: list[str] = as_list(obj["metadata"].get("finalizers"))
        if ORPHAN in finalizers:
            for child, held in self._children(stored.uid):
                self._disown(child, held, stored.uid)
            self._release(kind, stored.key, ORPHAN)
        elif FOREGROUND in finalizers:
            self._finish_foreground(kind, stored)
        if kind.storage == _NAMESPACES:
            self._empty_namespace(kind, stored)
        elif _CLEANUP in finalizers and kind.storage == DEFINITIONS:
            self._empty_definition(kind, stored, obj)

    def _finish_foreground(self, kind: Kind, stored: Stored) -> None:
        for child, held in self._children(stored.uid):
            if b'"deletionTimestamp"' not in held.raw:
                self._deletion.delete_held(child, held, _FOREGROUND)
        if not any(_blocks(child, held, stored.uid) for child, held in self._children(stored.uid)):
            self._release(kind, stored.key, FOREGROUND)

    def _release(self, kind: Kind, key: str, finalizer: str) -> None:
        if self._cluster.storage.table(kind.storage).get(key) is None:
            return

        def change(obj: Json) -> Json:
            held: list[str] = as_list(obj["metadata"].get("finalizers"))
            obj["metadata"]["finalizers"] = [name for name in held if name != finalizer]
            return obj

        self._objects.update(kind, key, change, intent=_MANAGER)

    # --- namespaces and definitions

    def _give_account(self, namespace: str) -> None:
        held = self._cluster.storage.table(_NAMESPACES).get(namespace)
        kind = self._cluster.kinds.find("", "v1", _ACCOUNTS)
        table = self._cluster.storage.table(_ACCOUNTS)
        if held is None or kind is None or table.get(f"{namespace}/default") is not None:
            return
        if held.fields.get("status.phase") == "Terminating":
            return
        account: Json = {"kind": "ServiceAccount", "apiVersion": "v1"}
        account["metadata"] = {"name": "default"}
        self._objects.create(kind, account, _MANAGER, namespace=namespace)

    def _empty_namespace(self, kind: Kind, stored: Stored) -> None:
        for child, held in self._content(f"{stored.key}/"):
            if b'"deletionTimestamp"' not in held.raw:
                self._deletion.delete_held(child, held, _NOW)
        if next(self._content(f"{stored.key}/"), None) is not None:
            return
        if self._cluster.storage.table(_NAMESPACES).get(stored.key) is None:
            return

        def change(obj: Json) -> Json:
            spec = as_dict(obj.get("spec"))
            spec["finalizers"] = [
                it for it in as_list(spec.get("finalizers")) if it != "kubernetes"
            ]
            obj["spec"] = spec
            return obj

        self._objects.update(kind, stored.key, change, intent=_MANAGER, subresource="finalize")

    def _content(self, prefix: str) -> Iterator[tuple[Kind, Stored]]:
        for resource in self._cluster.storage.resources():
            kinds = self._cluster.kinds.versions(resource)
            if kinds and kinds[0].namespaced:
                for stored in self._cluster.storage.table(resource).now(prefix):
                    yield kinds[0], stored

    def _establish(self, kind: Kind, stored: Stored) -> None:
        def change(obj: Json) -> Json:
            custom_objects.establish(obj, self._cluster)
            return obj

        self._objects.update(kind, stored.key, change, intent=_SERVER, subresource="status")

    def _empty_definition(self, kind: Kind, stored: Stored, obj: Json) -> None:
        group, plural = text(obj, "spec", "group"), text(obj, "spec", "names", "plural")
        storage = f"{plural}.{group}"
        table = self._cluster.storage.table(storage)

        def change(obj: Json) -> Json:
            custom_objects.mark_terminating(obj, self._cluster.timestamp())
            return obj

        self._objects.update(kind, stored.key, change, intent=_SERVER, subresource="status")
        kinds = self._cluster.kinds.versions(storage)
        for held in table.now() if kinds else ():
            if b'"deletionTimestamp"' not in held.raw:
                self._deletion.delete_held(kinds[0], held, _BACKGROUND)
        if not len(table):
            self._release(kind, stored.key, _CLEANUP)


def _blocks(kind: Kind, stored: Stored, owner: str) -> bool:
    references = as_list(decode(kind, stored.raw)["metadata"].get("ownerReferences"))
    return any(
        as_dict(it).get("uid") == owner and as_dict(it).get("blockOwnerDeletion")
        for it in references
    )

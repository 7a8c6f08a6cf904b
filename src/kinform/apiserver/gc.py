"""The controllers that clean up: garbage collection, namespaces, definitions.

kube-controller-manager does this some time after a write. Here it is done before the answer to
the write is sent, so that a test never has to wait for it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.apiextensions import custom_objects
from kinform.apiserver.apiextensions.custom_objects import DEFINITIONS
from kinform.apiserver.endpoints.list_options import WriteQuery
from kinform.apiserver.fieldmanager import managed_fields
from kinform.apiserver.registry.deletion import FOREGROUND, ORPHAN, DeleteOptions, Deletion
from kinform.apiserver.registry.objects import ObjectRegistry
from kinform.apiserver.scheme.kind_registry import Kind, schema_of
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text
from kinform.apiserver.storage.versioned_store import Change, Stored

__all__ = ["GarbageCollector"]

log: Final = logging.getLogger("kinform.apiserver")

_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_NAMESPACES: Final = "namespaces"
_ACCOUNTS: Final = "serviceaccounts"
_MANAGER: Final = "kube-controller-manager"
_SERVER: Final = "kube-apiserver"
_NOW: Final = DeleteOptions(grace=0, policy="Background")
_BACKGROUND: Final = DeleteOptions(policy="Background")
_FOREGROUND: Final = DeleteOptions(policy="Foreground")


@final
class GarbageCollector:
    """Follows every change and settles what it leaves to be done.

    What it writes is not validated again: an object that could be stored can be cleared away.
    """

    def __init__(self, cluster: Cluster, objects: ObjectRegistry, deletion: Deletion) -> None:
        self._cluster = cluster
        self._objects = objects
        self._deletion = deletion
        # Invariant: the objects of the storage, by uid, and by the uid of each owner.
        self._places: dict[str, tuple[str, str]] = {}
        self._dependents: dict[str, set[str]] = {}
        self._waiting: deque[tuple[str, Change]] = deque()
        cluster.storage.observe(self._note)

    def rebuild(self) -> None:
        """Rebuild the index, after the storage was loaded or restored.

        What was left to be done then is left to be done now: a backup may have been made between
        the end of an owner and the end of what it owned.
        """
        self._places.clear()
        self._dependents.clear()
        self._waiting.clear()
        self._objects.addresses.rebuild()
        for resource in self._cluster.storage.resources():
            for stored in self._cluster.storage.table(resource).now():
                self._add(resource, stored)
                if _is_unfinished(stored):
                    again = Change(stored.revision, stored.key, stored, stored)
                    self._waiting.append((resource, again))

    def settle(self) -> None:
        """Do all that is left to be done; what cannot be done is logged."""
        while self._waiting:
            resource, change = self._waiting.popleft()
            try:
                self._react(resource, change)
            except Exception:  # as in a controller: a failure is logged, and the rest goes on
                log.exception(
                    "controller failed to handle a change of %s %s",
                    resource,
                    change.key,
                    extra={"resource": resource, "key": change.key},
                )

    # --- the index

    def _note(self, resource: str, change: Change) -> None:
        if change.old is not None:
            self._drop(change.old)
        if not change.is_delete:
            self._add(resource, change.new)
        new = change.new
        is_of_interest = (
            change.is_delete
            or _is_unfinished(new)
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
        def change(obj: Json) -> None:
            references = as_list(obj["metadata"].get("ownerReferences"))
            kept = [it for it in references if as_dict(it).get("uid") != uid]
            obj["metadata"]["ownerReferences"] = kept

        self._write(kind, stored.key, change, by=_MANAGER)

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
        def change(obj: Json) -> None:
            held: list[str] = as_list(obj["metadata"].get("finalizers"))
            obj["metadata"]["finalizers"] = [name for name in held if name != finalizer]

        self._write(kind, key, change, by=_MANAGER)

    def _write(
        self,
        kind: Kind,
        key: str,
        change: Callable[[Json], None],
        *,
        by: str,
        subresource: str = "",
    ) -> None:
        held = self._cluster.storage.table(kind.storage).get(key)
        if held is None:
            return
        old, new = decode(kind, held.raw), decode(kind, held.raw)
        change(new)
        managed_fields.on_update(
            kind,
            schema_of(kind),
            new,
            old=old,
            manager=by,
            now=self._cluster.timestamp(),
            subresource=subresource,
        )
        managed_fields.restore_times(new, old)
        self._objects.replace(kind, held, new, old=old)

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
        self._objects.create(kind, account, WriteQuery(manager=_MANAGER), namespace=namespace)

    def _empty_namespace(self, kind: Kind, stored: Stored) -> None:
        for child, held in self._content(f"{stored.key}/"):
            if b'"deletionTimestamp"' not in held.raw:
                self._deletion.delete_held(child, held, _NOW)
        left = list(self._content(f"{stored.key}/"))

        def report(obj: Json) -> None:
            _report(obj, left, self._cluster.timestamp())

        def release(obj: Json) -> None:
            spec = as_dict(obj.get("spec"))
            kept = [it for it in as_list(spec.pop("finalizers", None)) if it != "kubernetes"]
            obj["spec"] = {**spec, "finalizers": kept} if kept else spec

        self._write(kind, stored.key, report, by=_MANAGER, subresource="status")
        if not left:
            self._write(kind, stored.key, release, by=_MANAGER, subresource="finalize")

    def _content(self, prefix: str) -> Iterator[tuple[Kind, Stored]]:
        for resource in self._cluster.storage.resources():
            kinds = self._cluster.kinds.versions(resource)
            if kinds and kinds[0].namespaced:
                for stored in self._cluster.storage.table(resource).now(prefix):
                    yield kinds[0], stored

    def _establish(self, kind: Kind, stored: Stored) -> None:
        def change(obj: Json) -> None:
            custom_objects.establish(obj, self._cluster)

        self._write(kind, stored.key, change, by=_SERVER, subresource="status")

    def _empty_definition(self, kind: Kind, stored: Stored, obj: Json) -> None:
        group, plural = text(obj, "spec", "group"), text(obj, "spec", "names", "plural")
        storage = f"{plural}.{group}"
        table = self._cluster.storage.table(storage)

        def change(obj: Json) -> None:
            custom_objects.mark_terminating(obj, self._cluster.timestamp())

        self._write(kind, stored.key, change, by=_SERVER, subresource="status")
        kinds = self._cluster.kinds.versions(storage)
        for held in table.now() if kinds else ():
            if b'"deletionTimestamp"' not in held.raw:
                self._deletion.delete_held(kinds[0], held, _BACKGROUND)
        if not len(table):
            self._release(kind, stored.key, _CLEANUP)


def _is_unfinished(stored: Stored) -> bool:
    """Return whether something may follow from what it is."""
    return bool(stored.owners) or b'"deletionTimestamp"' in stored.raw


def _blocks(kind: Kind, stored: Stored, owner: str) -> bool:
    references = as_list(decode(kind, stored.raw)["metadata"].get("ownerReferences"))
    return any(
        as_dict(it).get("uid") == owner and as_dict(it).get("blockOwnerDeletion")
        for it in references
    )


# --- the conditions of a namespace that is being deleted


class _Fine(NamedTuple):
    """A namespace condition that has nothing to report."""

    type: str
    reason: str
    message: str


_CONTENT: Final = _Fine(
    "NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"
)
_FINALIZERS: Final = _Fine(
    "NamespaceFinalizersRemaining",
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
)
_ALL: Final = (
    _Fine(
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    _Fine(
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    _Fine(
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    _CONTENT,
    _FINALIZERS,
)


def _report(obj: Json, left: Sequence[tuple[Kind, Stored]], now: str) -> None:
    """Write into a namespace's status what is left in it, in place."""
    resources: Counter[str] = Counter()
    finalizers: Counter[str] = Counter()
    for kind, stored in left:
        resources[f"{kind.plural}.{kind.group}"] += 1
        finalizers.update(as_list(decode(kind, stored.raw)["metadata"].get("finalizers")))
    said: dict[_Fine, tuple[str, str]] = {}
    if resources:
        message = f"Some resources are remaining: {_listed(resources, 'has')}"
        said[_CONTENT] = ("SomeResourcesRemain", message)
    if finalizers:
        message = "Some content in the namespace has finalizers remaining"
        message = f"{message}: {_listed(finalizers, 'in')}"
        said[_FINALIZERS] = ("SomeFinalizersRemain", message)
    state = as_dict(obj.get("status"))
    known = {each["type"]: each for each in as_list(state.get("conditions"))}
    for fine in _ALL:
        reason, message = said.get(fine, (fine.reason, fine.message))
        old = as_dict(known.get(fine.type))
        value = "True" if fine in said else "False"
        if old.get("status") != value or old.get("message") != message:
            since = now if old.get("status") != value else old["lastTransitionTime"]
            known[fine.type] = {
                "type": fine.type,
                "status": value,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
    obj["status"] = {**state, "conditions": list(known.values())}


def _listed(counts: Counter[str], word: str) -> str:
    return ", ".join(
        f"{name} {word} {count} resource instances" for name, count in sorted(counts.items())
    )

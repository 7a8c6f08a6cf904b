"""Entries to fill stores with: metadata as a server gives it, and any object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from kinform.meta import Entry, ObjectMeta, ObjectName, OwnerReference
from kinform.sansio.queue.deltas import Delta, DeltaType

T = TypeVar("T")


def entry_of(
    key: str,
    obj: T,
    rv: int | str = "",
    *,
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    owners: Iterable[str] = (),
) -> Entry[T]:
    """Return an entry of ``key`` whose uid, unless told, is made from it."""
    name = ObjectName.parse(key)
    metadata = ObjectMeta(
        name=name.name,
        namespace=name.namespace,
        uid=f"uid-{key}" if uid is None else uid,
        resource_version=str(rv),
        raw_labels=dict(labels) if labels is not None else None,
        raw_owner_references=tuple(OwnerReference(uid=owner) for owner in owners) or None,
    )
    return Entry(metadata, obj)


def keyed(*entries: Entry[T]) -> dict[ObjectName, Entry[T]]:
    """Return ``entries`` by key, as a relist has them."""
    return {entry.metadata.key: entry for entry in entries}


def delta_of(
    kind: DeltaType, key: str, entry: Entry[T] | None, *, final_state_unknown: bool = False
) -> Delta[T]:
    """Return a delta of ``key``."""
    return Delta(kind, ObjectName.parse(key), entry, final_state_unknown)

"""Who set which field: reads ``metadata.managedFields``, which models keep as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kinform.clientset import meta_v1
from kinform.errors import DecodeError

__all__ = ["managed_fields"]


def managed_fields(metadata: meta_v1.ObjectMeta) -> Sequence[meta_v1.ManagedFieldsEntry]:
    """Return the entries of ``managedFields``, none if the server sent none.

    >>> raw = msgspec.Raw(b'[{"manager":"kubectl","operation":"Apply"}]')
    >>> [entry.manager for entry in managed_fields(meta_v1.ObjectMeta(managed_fields=raw))]
    ['kubectl']

    Raises:
        DecodeError: it is no list of such entries.
    """
    raw = metadata.managed_fields
    if isinstance(raw, msgspec.UnsetType):
        return ()
    try:
        entries = msgspec.json.decode(raw, type=list[meta_v1.ManagedFieldsEntry] | None)
    except msgspec.DecodeError as exc:
        raise DecodeError(str(exc), path="$.metadata.managedFields") from None
    return entries or ()

"""The conditions of a namespace that is being deleted: what it still waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from kinform.apiserver.json import Json, as_dict, as_list
from kinform.apiserver.kind import Kind
from kinform.apiserver.rendering import decode
from kinform.apiserver.storage import Stored

__all__ = ["report"]


class _Fine(NamedTuple):
    """What a condition says when there is nothing to wait for."""

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


def report(obj: Json, left: Sequence[tuple[Kind, Stored]], now: str) -> None:
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

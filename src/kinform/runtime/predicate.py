"""Predicates: filters for the events that trigger a controller.

controller-runtime: ``pkg/predicate``. A predicate is a plain function from an event to a bool.
Those named ``…_changed`` look at updates; objects that came or went always pass. They all agree on
three things, the first two of which controller-runtime does otherwise:

- A resync passes. Nothing changed, but the controller asked for resyncs, so they are delivered.
  ``not_(is_resync)`` drops them.
- What the object does not have cannot be unchanged: without a ``generation`` (config maps, pods,
  many others), `generation_changed` lets every update pass, where controller-runtime drops all.
- Objects are identified by their uid: if a new object has the same name, that is a change.

A predicate only saves work: a reconcile must be correct for every name it is called with. Models
must declare the fields that a predicate reads, see `kinform.runtime.map_functions.metadata_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, TypeVar

from kinform.cache.processor.events import Event, Updated
from kinform.errors import UsageError
from kinform.meta import ObjectMeta
from kinform.runtime.map_functions import metadata_of
from kinform.selectors import LabelSelector, LabelSelectorLike

__all__ = [
    "Predicate",
    "all_of",
    "annotations_changed",
    "any_of",
    "finalizers_changed",
    "generation_changed",
    "has_labels",
    "in_namespaces",
    "is_resync",
    "labels_changed",
    "not_",
    "resource_version_changed",
]

T = TypeVar("T")

Predicate: TypeAlias = Callable[[Event[T]], bool]
"""Returns whether an event should trigger a reconcile."""


class AnyPredicate(Protocol):
    """A predicate for events of any objects."""

    def __call__(self, event: Event[T], /) -> bool:
        """Return whether ``event`` should trigger a reconcile."""
        ...


_GENERATION: Final = ("uid", "generation", "deletionTimestamp")


def generation_changed(event: Event[T]) -> bool:
    """Pass updates that changed the desired state of the object, not those of its status.

    The server counts ``metadata.generation`` up when the spec changes, and not for status,
    labels or annotations. An object that is now to be deleted passes as well: not every server
    counts that.
    """
    return _changed(event, _differs_in_generation, needed=_GENERATION)


def labels_changed(event: Event[T]) -> bool:
    """Pass updates that changed a label."""
    return _changed(event, lambda old, new: old.labels != new.labels, needed=("uid", "labels"))


def annotations_changed(event: Event[T]) -> bool:
    """Pass updates that changed an annotation."""
    # As dicts: in a cache that packs its objects, each look at them is a pass over the bytes.
    return _changed(
        event,
        lambda old, new: dict(old.annotations) != dict(new.annotations),
        needed=("uid", "annotations"),
    )


def finalizers_changed(event: Event[T]) -> bool:
    """Pass updates that changed what holds back the deletion."""
    return _changed(
        event,
        lambda old, new: tuple(old.finalizers) != tuple(new.finalizers),
        needed=("uid", "finalizers"),
    )


def resource_version_changed(event: Event[T]) -> bool:
    """Pass updates that changed anything at all.

    Every real one did. In controller-runtime this keeps resyncs out; here ``not_(is_resync)`` does.
    """
    return _changed(
        event,
        lambda old, new: old.resource_version != new.resource_version,
        needed=("uid", "resourceVersion"),
    )


def is_resync(event: Event[T]) -> bool:
    """Pass only resyncs: events that are delivered again although nothing changed."""
    return isinstance(event, Updated) and event.old is event.new


def has_labels(selector: LabelSelectorLike) -> AnyPredicate:
    """Return a predicate that passes objects with such labels, before or after an update.

    So an object that loses its labels is delivered once more, as in a watch with that selector.
    (controller-runtime checks the new state alone.) The server still sends all objects: a
    ``label_selector`` on the source is cheaper, if nothing else needs the other objects.

    Raises:
        SelectorError: ``selector`` is not a label selector.
    """
    wanted = LabelSelector.of(selector)

    def labelled(event: Event[T], /) -> bool:
        states = (event.new, event.old) if isinstance(event, Updated) else (event.obj,)
        return any(wanted.matches(metadata_of(state, "labels").labels) for state in states)

    return labelled


def in_namespaces(*namespaces: str) -> AnyPredicate:
    """Return a predicate that passes objects in one of these namespaces.

    Raises:
        UsageError: no namespace is given.
    """
    if not namespaces:
        raise UsageError("in which namespaces? give one at least")
    wanted = frozenset(namespaces)

    def inside(event: Event[T], /) -> bool:
        return event.key.namespace in wanted

    return inside


def any_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Return a predicate that passes what any of these passes; the first that does decides.

    Raises:
        UsageError: there is none: nothing would ever pass.
    """
    if not predicates:
        raise UsageError("any_of() of no predicates would let nothing pass; give one at least")
    return lambda event: any(predicate(event) for predicate in predicates)


def all_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Return a predicate that passes what all of these pass; the first that does not decides."""
    return lambda event: all(predicate(event) for predicate in predicates)


def not_(predicate: Predicate[T]) -> Predicate[T]:
    """Return a predicate that passes what this one does not.

    Objects that came or went always pass a ``…_changed``, and so never its opposite.
    """
    return lambda event: not predicate(event)


def _changed(
    event: Event[T],
    differs: Callable[[ObjectMeta, ObjectMeta], bool],
    *,
    needed: tuple[str, ...],
) -> bool:
    if not isinstance(event, Updated) or event.old is event.new:
        return True
    old, new = metadata_of(event.old, *needed), metadata_of(event.new, *needed)
    return old.uid != new.uid or differs(old, new)


def _differs_in_generation(old: ObjectMeta, new: ObjectMeta) -> bool:
    if not new.generation or old.generation != new.generation:
        return True
    return new.deletion_timestamp is not None and old.deletion_timestamp is None

"""Mapping functions: which names to reconcile because of an object.

controller-runtime: ``pkg/handler`` (EnqueueRequestForObject, ForOwner, MapFunc). A mapping
function receives one state of an object and returns the names to reconcile because of it.
`names_of` calls it for an event, which has one state or two.

Labels and annotations are other people's data: a value that is not a valid name is ignored, and
not an error.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Final, Protocol, TypeAlias, TypeVar, cast

import msgspec

from kinform.cache.processor.events import Event, Updated
from kinform.clientset.wire import WireModel
from kinform.errors import UsageError
from kinform.meta import GroupVersion, GroupVersionKind, ObjectMeta, ObjectName
from kinform.objects import models
from kinform.objects.object import Object

__all__ = [
    "AnyObject",
    "HasKind",
    "HasMetadata",
    "MapFunc",
    "described",
    "metadata_of",
    "names_in",
    "names_of",
    "to_all",
    "to_annotation",
    "to_itself",
    "to_label",
    "to_owner",
    "type_of",
]

T = TypeVar("T")

MapFunc: TypeAlias = Callable[[T], Iterable[ObjectName] | ObjectName | None]
"""Maps an object to names: one, several or none. A plain function that does not wait."""


class HasMetadata(Protocol):
    """A model of an object: it declares its metadata, in a form that `metadata_of` can read."""

    @property
    def metadata(self) -> object:
        """The metadata, best an `ObjectMeta`."""
        ...


class HasKind(Protocol):
    """A model class that declares its kind, as those of `kinform.clientset` do."""

    __gvk__: ClassVar[GroupVersionKind]


AnyObject: TypeAlias = HasMetadata | Mapping[str, object]
"""An object in any form: `Object`, dict, or a model that declares its metadata."""

# The name in JSON of each field of ObjectMeta, and what Python programs may call it.
_FIELDS: Final[Mapping[str, str]] = {
    field.encode_name: field.name.removeprefix("raw_")
    for field in msgspec.structs.fields(ObjectMeta)
}


def metadata_of(obj: object, *needed: str) -> ObjectMeta:
    """Return the metadata of an `Object`, a dict, or a model that declares its metadata.

    >>> metadata_of({"metadata": {"name": "web", "labels": {"app": "x"}}}).labels["app"]
    'x'

    A model best declares ``metadata: kinform.ObjectMeta``. One with a metadata class of its own
    works too, if that has the ``needed`` fields (named as in JSON), by their names in JSON or in
    Python: a field that the model does not declare must not be taken for absent. (For a
    ``TypedDict`` that cannot be checked: it is a dict.)

    Raises:
        UsageError: the model does not declare it, or it is not what metadata looks like.
    """
    model = type(obj).__name__
    metadata: object = getattr(obj, "metadata", None)
    if isinstance(metadata, ObjectMeta):
        return metadata
    if isinstance(metadata, WireModel):
        return _of_generated(metadata)
    if metadata is None and isinstance(obj, Mapping):
        metadata = cast("Mapping[str, object]", obj).get("metadata")
    if metadata is None:
        raise UsageError(
            f"{model} has no metadata to look at; declare `metadata: ObjectMeta` in it"
        )
    return _converted(metadata, needed, model=model)


def _of_generated(metadata: WireModel) -> ObjectMeta:
    """Read the metadata of a generated model, attribute by attribute: predicates do, each time."""
    found = {
        wire: value
        for wire, python in _FIELDS.items()
        if (value := getattr(metadata, python)) is not None
    }
    return msgspec.convert(found, ObjectMeta, from_attributes=True)


def _converted(metadata: object, needed: tuple[str, ...], *, model: str) -> ObjectMeta:
    """Read metadata of a shape we do not know as our own."""
    if isinstance(metadata, Mapping):
        found = {**cast("Mapping[str, object]", metadata)}
    else:
        found = dict(_attributes(metadata))
        if missing := [name for name in needed if name not in found]:
            raise UsageError(
                f"the metadata of {model} does not declare {', '.join(missing)}; "
                "declare `metadata: ObjectMeta`, which has it all"
            )
    present = {name: value for name, value in found.items() if value is not None}
    try:
        return msgspec.json.decode(models.encode(present), type=ObjectMeta)
    except msgspec.DecodeError as exc:
        raise UsageError(f"the metadata of {model} is not Kubernetes' metadata: {exc}") from None


def _attributes(metadata: object) -> Iterator[tuple[str, object]]:
    for wire, python in _FIELDS.items():
        for name in (python, wire):
            if hasattr(metadata, name):
                yield wire, getattr(metadata, name)
                break


def type_of(obj: object) -> tuple[str, str]:
    """Return the apiVersion and the kind of an object; ``""`` where they are unknown.

    >>> type_of({"apiVersion": "apps/v1", "kind": "Deployment"})
    ('apps/v1', 'Deployment')

    The object's own fields come first. A server may leave them out, and an object made in Python
    may too: then it is the ``__gvk__`` of the model's class.
    """
    version, kind = _said(obj, "apiVersion", "api_version"), _said(obj, "kind", "kind")
    if kind == "PartialObjectMetadata":  # that is how it was sent, not what it is
        version = kind = ""
    known: object = getattr(type(obj), "__gvk__", None)
    if not (version and kind) and isinstance(known, GroupVersionKind):
        return str(known.group_version), known.kind
    return version, kind


def _said(obj: object, wire: str, python: str) -> str:
    if isinstance(obj, Mapping):
        value = cast("Mapping[str, object]", obj).get(wire)
    else:
        value = getattr(obj, python, None) or getattr(obj, wire, None)
    return value if isinstance(value, str) else ""


def described(obj: object) -> str:
    """Return what to call an object in a message: never what it holds, which may be secret."""
    if isinstance(obj, Object):
        return repr(obj)
    version, kind = type_of(obj)
    what = f"{version}/{kind}" if version and kind else kind or type(obj).__name__
    return f"{what} {metadata_of(obj).key}".rstrip()


def to_itself(obj: object) -> ObjectName:
    """Name the object itself. `names_of` takes its name from the event: any model will do."""
    return metadata_of(obj, "name", "namespace").key


def to_owner(
    kind: GroupVersionKind | str | type[HasKind],
    *,
    controller_only: bool = True,
    namespaced: bool = True,
) -> MapFunc[object]:
    """Return a function that names the owners of that kind, by their ownerReferences.

    .. code-block:: python

        KindSource("v1/pods", map=to_owner("apps/v1/ReplicaSet"))

    The version does not matter: it says with which version the owner was written, and the same
    object has several. A namespaced owner is in the namespace of what it owns.

    Args:
        kind: the owner's, or its generated model: ``to_owner(apps_v1.ReplicaSet)``.
        controller_only: name only the one owner that is marked as controller.
        namespaced: whether the owner's kind is. Owners without a namespace own in all of them.
            A generated model knows.

    Raises:
        UsageError: ``kind`` is not a kind like ``apps/v1/Deployment``.
    """
    group, _, wanted = _kind(kind)
    namespaced = namespaced and getattr(kind, "__namespaced__", True) is not False

    def owners(obj: object) -> Iterable[ObjectName]:
        metadata = metadata_of(obj, "namespace", "ownerReferences")
        if namespaced and not metadata.namespace:
            return ()  # what has no namespace cannot be owned from inside of one
        place = metadata.namespace if namespaced else ""
        return [
            ObjectName(place, reference.name)
            for reference in metadata.owner_references
            if reference.kind == wanted
            and reference.api_version.rpartition("/")[0] == group
            and (reference.controller or not controller_only)
        ]

    return owners


def to_label(key: str, *, namespaced: bool = True) -> MapFunc[object]:
    """Return a function that names what the label ``key`` says: a name in the same namespace.

    ``namespace/name`` is understood as well, though the server allows no such label. With
    ``namespaced=False`` the name is that of an object without a namespace.
    """

    def labelled(obj: object) -> ObjectName | None:
        metadata = metadata_of(obj, "namespace", "labels")
        return _named(metadata.labels.get(key), metadata.namespace if namespaced else "")

    return labelled


def to_annotation(key: str, *, namespaced: bool = True) -> MapFunc[object]:
    """Return a function that names what the annotation ``key`` says.

    That is ``namespace/name``, or a name in the same namespace. With ``namespaced=False`` the
    name is that of an object without a namespace.
    """

    def annotated(obj: object) -> ObjectName | None:
        metadata = metadata_of(obj, "namespace", "annotations")
        return _named(metadata.annotations.get(key), metadata.namespace if namespaced else "")

    return annotated


def to_all(names: Callable[[], Iterable[ObjectName]]) -> MapFunc[object]:
    """Return a function that maps every object to all names that ``names()`` yields.

    For an object that all others depend on:
    ``to_all(lambda: [w.key for w in widgets.lister.list()])``.
    """

    def all_names(_: object) -> Iterable[ObjectName]:
        return names()

    return all_names


def names_of(event: Event[T], map: MapFunc[T]) -> list[ObjectName]:  # noqa: A002 - the field's word
    """Return the names an event means, each once, in the order they were named.

    For an update ``map`` is called with the old *and* the new state: an owner that has lost a child
    must be reconciled. A resync has one state, and one call.

    Raises:
        UsageError: ``map`` returned something else than names.
        Exception: what ``map`` raised.
    """
    # By identity: every event knows its key, whether or not the model declares metadata.
    if cast("object", map) is to_itself:
        return [event.key]
    if not isinstance(event, Updated):
        return names_in(map(event.obj))
    if event.old is event.new:
        return names_in(map(event.new))
    return list(dict.fromkeys([*names_in(map(event.old)), *names_in(map(event.new))]))


def names_in(answer: object) -> list[ObjectName]:
    """Return the names in what a mapping function answered, each once.

    Raises:
        UsageError: it answered something else.
    """
    if answer is None:
        return []
    if isinstance(answer, ObjectName):  # a tuple too, so this question comes first
        return [answer]
    if inspect.iscoroutine(answer):
        answer.close()
        raise UsageError("a mapping function must be a plain function, not an async one")
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise _no_name(answer)
    names: dict[ObjectName, None] = {}
    for name in cast("Iterable[object]", answer):
        if not isinstance(name, ObjectName):
            raise _no_name(name)
        names[name] = None
    return list(names)


def _no_name(answer: object) -> UsageError:
    return UsageError(
        f"a mapping function returned {answer!r}, which is not an ObjectName; "
        "ObjectName('namespace', 'name') is, or ObjectName.parse('namespace/name')"
    )


def _named(value: str | None, namespace: str) -> ObjectName | None:
    """Return the name in ``value``; None where it holds none."""
    if not value:
        return None
    try:
        name = ObjectName.parse(value)
    except ValueError:
        return None
    return name if name.namespace else ObjectName(namespace, name.name)


@functools.lru_cache(maxsize=64)
def _kind(kind: GroupVersionKind | str | type[HasKind]) -> GroupVersionKind:
    known: object = getattr(kind, "__gvk__", kind)
    if isinstance(known, GroupVersionKind):
        return known
    if not isinstance(kind, str):
        raise UsageError(f"{kind!r} does not say its kind; give text like 'apps/v1/Deployment'")
    version, _, name = kind.rpartition("/")
    try:
        if not name:
            raise ValueError
        return GroupVersionKind(*GroupVersion.parse(version), name)
    except ValueError:
        raise UsageError(f"{kind!r} is not a kind like 'v1/Pod' or 'apps/v1/Deployment'") from None

"""The kinds that the server serves: the built-in ones, and those of CustomResourceDefinitions."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver import _recorded
from kinform.apiserver.scheme import schemas
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer.json_values import Json
from kinform.meta import GroupVersion, GroupVersionKind

__all__ = [
    "CUSTOM_VERBS",
    "CustomVersion",
    "Kind",
    "Kinds",
    "Subresource",
    "builtin",
    "definition_of",
    "schema_of",
    "version_priority",
]

CUSTOM_VERBS: Final = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)
"""The verbs of every custom kind, in the order of discovery."""

_DEPRECATED: Final = {
    (
        "",
        "endpoints",
    ): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}
_EVENTS: Final = "events"
_VERSION: Final = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STAGES: Final[Mapping[str | None, int]] = {None: 0, "beta": 1, "alpha": 2}


@final
class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A subresource of an object, such as ``pods/eviction``."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    """Of its bodies; ``pods/eviction`` takes an ``Eviction``."""
    group: str = ""
    version: str = ""


@final
class CustomVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a CustomResourceDefinition, beyond names and scope."""

    definition: str
    """The name of the CustomResourceDefinition."""
    schema: dict[str, object]
    """The ``openAPIV3Schema``, or an empty object."""
    preserves_unknown_fields: bool = False
    """The old ``spec.preserveUnknownFields``."""
    has_status: bool = False
    scale: dict[str, str] | None = None
    """``specReplicasPath``, ``statusReplicasPath`` and ``labelSelectorPath``."""
    columns: tuple[dict[str, object], ...] = ()
    """The ``additionalPrinterColumns``."""
    selectable_fields: tuple[str, ...] = ()
    """JSON paths such as ``.spec.color``."""
    is_terminating: bool = False
    """The definition is being deleted: nothing new comes, and discovery shows less."""


@final
class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one group and version, with everything that discovery shows."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = {}
    storage: str = ""
    """The table its objects are in, such as ``deployments.apps``. Versions of a kind share it."""
    definition: str = ""
    """The name of its schema, such as ``io.k8s.api.core.v1.Pod``; empty for a custom one."""
    list_kind: str = ""
    custom: CustomVersion | None = None
    deprecation: str = ""
    """The text of the ``Warning`` header that answers carry; empty if it is not deprecated."""
    api_version: str = ""
    """The ``apiVersion`` of its objects. Derived from group and version."""
    is_converted: bool = False
    """Its objects are stored in the form of another version
    (`kinform.apiserver.registry.conversion`). Derived from group and version."""

    def __post_init__(self) -> None:
        # Every request reads these two several times, so they are attributes, not properties.
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        is_converted = self.group == "events.k8s.io" or api_version == "autoscaling/v1"
        msgspec.structs.force_setattr(self, "api_version", api_version)
        msgspec.structs.force_setattr(self, "is_converted", is_converted)

    @property
    def group_version(self) -> GroupVersion:
        """Its group and version alone."""
        return GroupVersion(self.group, self.version)

    @property
    def gvk(self) -> GroupVersionKind:
        """Its full name."""
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def qualified(self) -> str:
        """The name of the resource in messages: ``pods``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The name of the kind in messages: ``Pod``, ``Deployment.apps``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return what to sort versions by, the preferred one first.

    Stable ones precede beta ones, these alpha ones; of each, higher numbers come first. Names
    of another form come last, in alphabetical order.

    >>> sorted(["foo", "v1alpha1", "v1beta2", "v1", "v2beta1", "v10"], key=version_priority)
    ['v10', 'v1', 'v2beta1', 'v1beta2', 'v1alpha1', 'foo']
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (len(_STAGES), 0, 0, version)
    major, stage, minor = match.groups()
    return (_STAGES[stage], -int(major), -int(minor or 0), "")


@final
class Kinds:
    """A registry of kinds, which changes with the CustomResourceDefinitions.

    Built-in kinds stay. `put` and `remove` replace what is inside in one step each, so a reader
    in another thread sees the kinds before or after, never a mixture.
    """

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._fixed: Final = tuple(kinds)
        self._custom: dict[str, _Versions] = {}
        self._moved: dict[GroupVersionKind, str] = {}
        self._generation = 0
        self._index = _Index(self._fixed)

    @property
    def generation(self) -> int:
        """A number that grows with each change."""
        return self._generation

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind at ``/apis/{group}/{version}/{plural}``; the core group is ``""``."""
        return self._index.by_path.get((group, version, plural))

    def by_gvk(self, gvk: GroupVersionKind) -> Kind | None:
        """Return the kind of that group, version and name."""
        return self._index.by_gvk.get(gvk)

    def all(self) -> Sequence[Kind]:
        """Return every kind: the built-in ones in the server's order, then the custom ones."""
        return self._index.all

    def versions(self, storage: str) -> Sequence[Kind]:
        """Return the kinds that share a table, the preferred version first; none if there is none.

        The two homes of ``Event`` share one; the core one comes first.
        """
        return self._index.by_storage.get(storage, ())

    def stored_version(self, kind: Kind) -> str:
        """Return the version that a custom kind's objects are stored in, as given to `put`."""
        versions = self._custom.get(kind.custom.definition) if kind.custom else None
        return versions.stored if versions else kind.version

    def put(self, kinds: Sequence[Kind], *, stored: str = "") -> None:
        """Serve the versions of one CustomResourceDefinition, instead of those it had before.

        ``stored`` is the version with ``storage: true``, which need not be served; the preferred
        one if nothing is said.

        Raises:
            ValueError: they are not all custom, or not all of one definition.
        """
        definitions = {kind.custom.definition if kind.custom else "" for kind in kinds}
        if len(definitions) != 1 or "" in definitions:
            raise ValueError(f"kinds of one definition are needed, not of {sorted(definitions)}")
        ordered = sorted(kinds, key=_preference)
        versions = _Versions(tuple(ordered), stored or ordered[0].version)
        self._change(self._custom | {definitions.pop(): versions})

    def remove(self, definition: str) -> None:
        """Serve a CustomResourceDefinition no longer. Nothing happens if it was not served."""
        if definition in self._custom:
            self._change({name: it for name, it in self._custom.items() if name != definition})

    def move(self, kind: Kind, version: str) -> None:
        """Serve a built-in kind in another version, and in its own no longer; its own: undo it.

        Its objects stay where they are: an API version that was removed looks like this.
        """
        self._moved[kind.gvk] = version
        self._change(self._custom)

    def _change(self, custom: dict[str, _Versions]) -> None:
        ordered = [kind for name in sorted(custom) for kind in custom[name].kinds]
        fixed = [
            msgspec.structs.replace(kind, version=self._moved.get(kind.gvk, kind.version))
            for kind in self._fixed
        ]
        self._index = _Index((*fixed, *ordered))
        self._custom = custom
        self._generation += 1


class _Versions(NamedTuple):
    """The served versions of one CustomResourceDefinition."""

    kinds: tuple[Kind, ...]
    stored: str


@final
class _Index:
    """The kinds at one moment, by everything they are looked up by."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.all: Final = tuple(kinds)
        self.by_path: Final = {(kind.group, kind.version, kind.plural): kind for kind in kinds}
        self.by_gvk: Final = {kind.gvk: kind for kind in kinds}
        shared: dict[str, list[Kind]] = {}
        for kind in kinds:
            shared.setdefault(kind.storage, []).append(kind)
        self.by_storage: Final = {
            storage: tuple(sorted(versions, key=_preference))
            for storage, versions in shared.items()
        }


def _preference(kind: Kind) -> tuple[bool, tuple[int, int, int, str]]:
    return (bool(kind.group), version_priority(kind.version))


def builtin() -> Kinds:
    """Return a new registry of the built-in kinds."""
    return Kinds(_builtin_kinds())


def definition_of(gvk: GroupVersionKind) -> str:
    """Return the name of a built-in kind's schema, ``""`` if there is none.

    It knows also kinds that are only bodies of subresources: ``Scale``, ``Eviction``.
    """
    return _recorded.api().definitions.get(f"{gvk.group}/{gvk.version}/{gvk.kind}", "")


def schema_of(kind: Kind) -> Schema:
    """Return the schema of a kind's objects; for the same kind the same one.

    Raises:
        KeyError: it is built in, but has no schema.
    """
    if kind.custom is None:
        return schemas.builtin(kind.definition)
    return _custom_schema(_Node(kind.custom.schema))


@final
class _Node:
    """A custom schema as a key: compared by identity, and kept alive while cached."""

    __slots__ = ("value",)

    def __init__(self, value: Json) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Node) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@functools.lru_cache(maxsize=1024)
def _custom_schema(key: _Node) -> Schema:
    return schemas.custom(key.value)


@functools.cache
def _builtin_kinds() -> tuple[Kind, ...]:
    return tuple(
        _kind(group["metadata"].get("name", ""), version["version"], resource)
        for group in _recorded.api().groups
        for version in group["versions"]
        for resource in version["resources"]
    )


def _kind(group: str, version: str, resource: Json) -> Kind:
    """Make a kind from its entry in aggregated discovery."""
    name: str = resource["responseKind"]["kind"]
    plural: str = resource["resource"]
    found = [_subresource(group, version, it) for it in resource.get("subresources", ())]
    is_event = plural == _EVENTS and group in {"", "events.k8s.io"}
    return Kind(
        group=group,
        version=version,
        kind=name,
        plural=plural,
        singular=resource["singularResource"],
        namespaced=resource["scope"] == "Namespaced",
        verbs=tuple(resource["verbs"]),
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        subresources={it.name: it for it in found},
        storage=plural if is_event or not group else f"{plural}.{group}",
        definition=definition_of(GroupVersionKind(group, version, name)),
        list_kind=f"{name}List",
        deprecation=_DEPRECATED.get((group, plural), ""),
    )


def _subresource(group: str, version: str, entry: Json) -> Subresource:
    kind: Json = entry["responseKind"]
    is_own = not kind["version"]
    return Subresource(
        name=entry["subresource"],
        verbs=tuple(entry["verbs"]),
        kind=kind["kind"],
        group=group if is_own else kind["group"],
        version=version if is_own else kind["version"],
    )

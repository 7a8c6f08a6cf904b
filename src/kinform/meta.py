"""Names, versions and metadata of Kubernetes objects, as values.

Values only: no I/O, no behaviour beyond parsing and printing. Field names on the wire are
written out, because mechanical camel-casing gets names like ``podIP`` wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType, field
from msgspec.structs import force_setattr

__all__ = [
    "Entry",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "ListMeta",
    "ObjectMeta",
    "ObjectName",
    "OwnerReference",
    "Status",
    "StatusCause",
    "StatusDetails",
]

T = TypeVar("T")

_NO_STRINGS: Final[Mapping[str, str]] = MappingProxyType({})


class GroupVersion(NamedTuple):
    """An API group and version; the core group is ``""``.

    >>> GroupVersion.parse("apps/v1"), str(GroupVersion.parse("v1"))
    (GroupVersion(group='apps', version='v1'), 'v1')
    """

    group: str
    version: str

    @classmethod
    def parse(cls, text: str) -> GroupVersion:
        """Parse ``v1`` or ``apps/v1``, the form of ``apiVersion``.

        Raises:
            ValueError: if ``text`` has none of these forms.
        """
        group, _, version = text.rpartition("/")
        if not version or "/" in group or (not group and "/" in text):
            raise ValueError(f"{text!r} is not an API version like 'v1' or 'apps/v1'")
        return cls(group, version)

    @property
    def path(self) -> str:
        """The URL path of this version: ``/api/v1`` or ``/apis/apps/v1``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersionKind(NamedTuple):
    """A kind of object, for example ``apps/v1`` ``Deployment``."""

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        """The group and version alone."""
        return GroupVersion(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.group_version}/{self.kind}"


class GroupVersionResource(NamedTuple):
    """A resource as written in URLs, for example ``apps/v1`` ``deployments``.

    >>> str(GroupVersionResource("apps", "v1", "deployments"))
    'apps/v1/deployments'
    """

    group: str
    version: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> GroupVersionResource:
        """Parse ``v1/pods`` or ``apps/v1/deployments``.

        Raises:
            ValueError: if ``text`` has none of these forms.
        """
        head, _, resource = text.rpartition("/")
        if not head or not resource:
            raise ValueError(f"{text!r} is not a resource like 'v1/pods' or 'apps/v1/deployments'")
        return cls(*GroupVersion.parse(head), resource)

    @property
    def group_version(self) -> GroupVersion:
        """The group and version alone."""
        return GroupVersion(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.group_version}/{self.resource}"


# A Struct, because caches have one for every object: a NamedTuple takes longer to make, is twice
# as large, and the garbage collector would visit each for as long as the program runs.
class ObjectName(msgspec.Struct, frozen=True, order=True, gc=False):
    """The namespace (``""`` for cluster-scoped kinds) and name of an object.

    ``str()`` is client-go's key, ``namespace/name`` or ``name``. It can be unpacked, sorted,
    and used as a key of dicts.

    >>> str(ObjectName("default", "web-0")), str(ObjectName("", "node-1"))
    ('default/web-0', 'node-1')
    """

    namespace: str
    name: str

    @classmethod
    def parse(cls, key: str) -> ObjectName:
        """Parse ``namespace/name`` or ``name``.

        Raises:
            ValueError: if ``key`` has another form.
        """
        namespace, slash, name = key.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"{key!r} is not a key like 'namespace/name' or 'name'")
        return cls(namespace, name)

    def __iter__(self) -> Iterator[str]:
        return iter((self.namespace, self.name))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def shown(self) -> str:
        r"""The key without control characters, for logs and terminals: some kinds allow any name.

        >>> ObjectName("", "a\x1b[2Jb").shown
        'a\\x1b[2Jb'
        """
        key = str(self)
        return key if key.isprintable() else repr(key)[1:-1]


class OwnerReference(msgspec.Struct, frozen=True, gc=False):
    """The owner of an object, as used by the garbage collector."""

    api_version: str = field(name="apiVersion", default="")
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = field(name="blockOwnerDeletion", default=None)


if TYPE_CHECKING:
    _Annotations: TypeAlias = Raw | Mapping[str, str] | UnsetType | None
else:
    _Annotations = Raw | UnsetType  # what the decoder fills in

_read_annotations: Final[Callable[[Raw], dict[str, str] | None]] = msgspec.json.Decoder(
    dict[str, str] | None
).decode
_read_unset: Final[Callable[[Raw], dict[str, str | None]]] = msgspec.json.Decoder(
    dict[str, str | None]
).decode


# gc=False: strings and their dicts have no cycles.
class ObjectMeta(msgspec.Struct, frozen=True, gc=False, eq=False):  # noqa: PLW1641 - dicts within
    """The metadata of an object, decoded without the rest of it.

    Nothing is required: bookmarks have no name, some servers send null for labels. Text that is
    absent or null is ``""``; such collections are empty. A label, annotation or finalizer that is
    null is the empty text, as in Go. ``managedFields`` is left out on purpose;
    ``obj.at("metadata", "managedFields")`` reads it. Times stay as the server wrote them.

    Annotations may be large, and ``kubectl apply`` repeats all of an object in one: they stay
    bytes and are decoded at each access. So a reference to the metadata of an object keeps its
    bytes alive.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = field(name="resourceVersion", default="")
    generation: int = 0
    creation_timestamp: str | None = field(name="creationTimestamp", default=None)
    deletion_timestamp: str | None = field(name="deletionTimestamp", default=None)
    deletion_grace_period_seconds: int | None = field(
        name="deletionGracePeriodSeconds", default=None
    )
    generate_name: str = field(name="generateName", default="")
    raw_labels: dict[str, str] | None = field(name="labels", default=None)
    # A window into the bytes that this was read from, or a mapping that reads them elsewhere.
    raw_annotations: _Annotations = field(name="annotations", default=UNSET)
    raw_owner_references: tuple[OwnerReference, ...] | None = field(
        name="ownerReferences", default=None
    )
    raw_finalizers: tuple[str, ...] | None = field(name="finalizers", default=None)

    @property
    def key(self) -> ObjectName:
        """The object's identity within its kind."""
        return ObjectName(self.namespace, self.name)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only."""
        return MappingProxyType(self.raw_labels) if self.raw_labels else _NO_STRINGS

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, read-only. `DecodeError` if they are not a mapping of text to text."""
        held = self.raw_annotations
        if isinstance(held, Raw):
            try:
                held = _annotations(held)
            except (msgspec.DecodeError, RecursionError) as exc:
                from kinform.sansio.wire import heads  # here, because it imports this module

                error = heads.decode_error(exc)
                error.path = "$.metadata.annotations" + error.path.removeprefix("$")
                error.key = str(self.key)
                raise error from None
        return _NO_STRINGS if isinstance(held, UnsetType) or not held else MappingProxyType(held)

    @property
    def owner_references(self) -> Sequence[OwnerReference]:
        """The owners, in the server's order."""
        return self.raw_owner_references or ()

    @property
    def finalizers(self) -> Sequence[str]:
        """The finalizers that still block the deletion."""
        return self.raw_finalizers or ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that is marked as controller, if any."""
        return next((ref for ref in self.owner_references if ref.controller), None)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same content, in any form of their annotations."""
        if not isinstance(other, ObjectMeta):
            return NotImplemented
        if any(getattr(self, name) != getattr(other, name) for name in _COMPARED):
            return False
        return self.raw_annotations == other.raw_annotations or _are_equal(self, other)


def _annotations(raw: Raw) -> dict[str, str] | None:
    try:
        return _read_annotations(raw)
    except msgspec.ValidationError:
        # A null value is the empty text, as in Go. Anything else fails as it did before.
        try:
            found = _read_unset(raw)
        except msgspec.ValidationError:
            pass
        else:
            return {name: value or "" for name, value in found.items()}
        raise


_COMPARED: Final = frozenset(ObjectMeta.__struct_fields__) - {"raw_annotations"}


def _are_equal(one: ObjectMeta, other: ObjectMeta) -> bool:
    """Compare annotations in two forms; those that cannot be decoded equal no others."""
    from kinform.errors import DecodeError

    try:
        return dict(one.annotations) == dict(other.annotations)
    except DecodeError:
        return False


# A Struct, because one is made for every event: a NamedTuple costs four times as much.
class Entry(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object and the metadata decoded from its bytes, as kept by caches.

    kinform never looks into ``T``; the fields it needs are in ``metadata``.
    """

    metadata: ObjectMeta
    object: T


if TYPE_CHECKING:
    _Text: TypeAlias = str
else:
    _Text = str | None  # what the decoder takes: null means "not set"


class ListMeta(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a list: its version and the token for its next page.

    Text that is absent or null is ``""``.
    """

    resource_version: _Text = field(name="resourceVersion", default="")
    continue_token: _Text = field(name="continue", default="")
    remaining_item_count: int | None = field(name="remainingItemCount", default=None)

    def __post_init__(self) -> None:
        for name in ("resource_version", "continue_token"):
            if getattr(self, name) is None:
                force_setattr(self, name, "")


class StatusCause(msgspec.Struct, frozen=True, gc=False):
    """One error within a `Status`: the field and the problem."""

    reason: str | None = None
    message: str | None = None
    field: str | None = None


class StatusDetails(msgspec.Struct, frozen=True):
    """The object and the causes of a `Status`."""

    name: str | None = None
    group: str | None = None
    kind: str | None = None
    uid: str | None = None
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int | None = msgspec.field(name="retryAfterSeconds", default=None)


class Status(msgspec.Struct, frozen=True):
    """The server's response without an object: success, or the reason of a failure."""

    status: str | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None

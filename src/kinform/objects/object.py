"""`Object`: one Kubernetes object, kept as the bytes it arrived in.

Rule 1: nothing is decoded before it is accessed, and nothing decoded is kept: a dict for each
object makes caches slow and large.
Rule 2: objects are immutable.
Rule 3: errors that the first pass over the bytes does not detect (numbers, depth, escapes) are
raised on access, as a `DecodeError` with the object's key and the path, never as another class.
Rule 4: a method reads the bytes once: they may be compressed, even between two reads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kinform.errors import DecodeError
from kinform.meta import GroupVersionKind, ObjectMeta, ObjectName
from kinform.objects import models, views
from kinform.objects._untracked import untrack
from kinform.objects.packed import Packed, cool
from kinform.objects.storage import Codec, Packer
from kinform.sansio.wire.heads import Head, read_head

__all__ = ["Object"]

T = TypeVar("T")
Path: TypeAlias = tuple[str | int, ...]

_members: Final = msgspec.json.Decoder(dict[str, Raw])
_elements: Final = msgspec.json.Decoder(list[Raw])
_anything: Final = msgspec.json.Decoder()


@final
@views.refusing(views.DICT_CHANGES)
class Object(Mapping[str, object]):
    """A Kubernetes object of any kind: immutable, and decoded on access.

    >>> pod = Object.from_dict(
    ...     {
    ...         "apiVersion": "v1",
    ...         "kind": "Pod",
    ...         "metadata": {"name": "web-0", "namespace": "default", "resourceVersion": "7"},
    ...         "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    ...     }
    ... )
    >>> pod
    <Object v1/Pod default/web-0 rv=7>
    >>> pod.at("spec", "containers", 0, "image"), pod.at("status", "phase", default="Unknown")
    ('nginx', 'Unknown')
    >>> pod["spec"]["containers"][0]["name"]
    'web'

    As a ``Mapping`` it is the JSON object: a missing key is ``KeyError``, null is None, dicts and
    lists are read-only views, and every attempt to change them raises ``TypeError``. Each
    ``[...]`` on the object itself is one pass over the bytes; keep the view for a second access.

    Two objects are equal if they are the same version of the same object: same ``uid`` and same
    ``resourceVersion``, even if the server sent different bytes. Where either lacks one of the two
    (it never was on a server), equal means the same bytes. An object never equals a dict, and
    is always true. ``copy`` and ``deepcopy`` return the object itself. Safe from any thread.

    A cache may keep its objects compressed (`pack`). They behave the same, but each access to the
    bytes decompresses them, some microseconds for a pod, and does not keep the result.

    Args:
        raw: exactly one JSON object, its own copy. It is not checked: for unchecked bytes use
            `from_bytes`.
        head: the result of `read_head` for ``raw``.
    """

    __slots__ = ("_head", "_raw")

    def __init__(self, raw: bytes, head: Head) -> None:
        # The only attribute that may change: from bytes to their packed form, by one assignment.
        self._raw: bytes | Packed = raw
        self._head = head
        untrack(self)  # it holds bytes and a head, which is not tracked either

    @classmethod
    def from_bytes(cls, raw: bytes) -> Object:
        """Return the object in ``raw``, after one structural pass over it.

        Raises:
            DecodeError: if ``raw`` is not one JSON object in UTF-8 with readable metadata.
        """
        return cls(raw, read_head(raw))

    @classmethod
    def from_dict(cls, content: Mapping[str, object]) -> Object:
        """Return an object with a copy of ``content``.

        Raises:
            UsageError: if something in ``content`` has no JSON form.
            DecodeError: if its metadata is not valid Kubernetes metadata.
        """
        return cls.from_bytes(models.encode(content))

    @property
    def raw(self) -> bytes:
        """The JSON as the server wrote it. `DecodeError` if it was packed and is corrupted."""
        raw = self._raw
        return raw if isinstance(raw, bytes) else self._unpacked(raw)

    @property
    def head(self) -> Head:
        """The result of the first pass over the bytes: kind and metadata."""
        return self._head

    @property
    def is_packed(self) -> bool:
        """True if the bytes are compressed."""
        return not isinstance(self._raw, bytes)

    @property
    def kept_size(self) -> int:
        """The number of bytes kept: those of the JSON, or fewer if they are compressed."""
        raw = self._raw
        return len(raw) if isinstance(raw, bytes) else len(raw.data)

    def is_packed_for(self, codec: Codec) -> bool:
        """Return whether the bytes are compressed for ``codec``."""
        raw = self._raw
        return not isinstance(raw, bytes) and raw.codec is codec

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata, typed; the rest is not decoded."""
        return self._head.metadata

    @property
    def api_version(self) -> str:
        """The group and version, for example ``apps/v1``; ``""`` where the server left it out."""
        return self._head.api_version

    @property
    def kind(self) -> str:
        """The kind, for example ``Deployment``; ``""`` where the server left it out."""
        return self._head.kind

    @property
    def gvk(self) -> GroupVersionKind:
        """Group, version and kind in one; empty where the server left them out."""
        group, _, version = self._head.api_version.rpartition("/")
        return GroupVersionKind(group, version, self._head.kind)

    @property
    def key(self) -> ObjectName:
        """The object's identity within its kind."""
        return self._head.metadata.key

    @property
    def name(self) -> str:
        """The name."""
        return self._head.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace; ``""`` for kinds that have none."""
        return self._head.metadata.namespace

    @property
    def uid(self) -> str:
        """The identity that survives no deletion: another object of the same name has another."""
        return self._head.metadata.uid

    @property
    def resource_version(self) -> str:
        """The version of this state of the object."""
        return self._head.metadata.resource_version

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only."""
        return self._head.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, read-only."""
        return self._head.metadata.annotations

    def at(self, *path: str | int, default: Any = None) -> Any:
        """Return the one value at ``path`` without building the rest.

        Strings name members, integers index arrays (negative ones from the end). ``default`` is
        the answer where the path leads nowhere: something on it is missing, is null, or is not
        the object or array the next step needs. An explicit null counts as missing. Dicts and
        lists come as read-only views.

        A reader is compiled for each distinct path (half a millisecond; 1,024 are kept), so
        paths should be literals; for member names that vary, index: ``cm["data"][name]``.

        Raises:
            DecodeError: if the value itself cannot be read.
        """
        value = self._value(path)
        return default if value is None or value is UNSET else views.read_only(value)

    def shares_member(self, other: Object, member: str | int) -> bool:
        """Return whether ``spec`` or ``status`` is certainly equal in both, without decoding.

        ``False`` proves nothing: other members, and packed objects, are not compared.
        """
        window = self._window((member,))
        return window is not UNSET and window == other._window((member,))

    def to_dict(self, *path: str | int) -> dict[str, object]:
        """Return a new dict of the object, or of the JSON object at ``path``; you may change it.

        Raises:
            KeyError: if ``path`` does not lead to a JSON object.
            DecodeError: if it cannot be read.
        """
        value = self._value(path)
        if not isinstance(value, dict):
            raise KeyError(f"no object at {_json_path(path)}")
        return cast("dict[str, object]", value)

    def decode(self, model: type[T]) -> T:
        """Return the object as ``model``: any class that `Resource` takes.

        Raises:
            DecodeError: if the object does not fit the model.
            UsageError: if ``model`` is not a supported class.
        """
        if model is Object:
            return cast("T", self)
        return models.read(models.decoder_of(model), self.raw, meta=self.metadata)

    def pack(self, packer: Packer) -> None:
        """Keep the bytes compressed from now on, and read the annotations from them.

        For caches: see `kinform.cache.store.compaction`. Only the time of an access changes. May be
        called from any thread; an object packed for the same codec stays as it is.
        """
        raw = self._raw
        if isinstance(raw, bytes):
            self._raw = packed = packer.pack(raw)
            self._head = self._head.without_windows()
        elif raw.codec is not packer.codec:
            self._raw = packed = packer.pack(self._unpacked(raw))
        else:
            return
        cool(self._head.metadata, packed)

    def __getitem__(self, key: str) -> Any:
        value = self._value((key,))
        if value is UNSET:
            raise KeyError(key)
        return views.read_only(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members())

    def __len__(self) -> int:
        return len(self._members())

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Object):
            return NotImplemented
        mine, its = self._identity(), other._identity()
        return mine == its if mine and its else self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self._identity() or self.raw)

    def __copy__(self) -> Object:
        return self

    def __deepcopy__(self, _memo: object) -> Object:
        return self

    def __reduce__(self) -> tuple[Callable[[bytes], Object], tuple[bytes]]:
        return Object.from_bytes, (self.raw,)  # to another process as plain bytes, even if packed

    def __repr__(self) -> str:
        kind = str(self.gvk) if self.api_version or self.kind else ""
        version = f"rv={self.resource_version}" if self.resource_version else ""
        return f"<{' '.join(part for part in ('Object', kind, self.key.shown, version) if part)}>"

    def _unpacked(self, packed: Packed) -> bytes:
        try:
            return packed.unpack()
        except DecodeError as exc:
            raise DecodeError(exc.message, key=str(self.key)) from exc.__cause__

    def _identity(self) -> tuple[str, str] | None:
        meta = self._head.metadata
        uid, version = meta.uid, meta.resource_version
        return (uid, version) if uid and version else None

    def _members(self) -> dict[str, Raw]:
        return models.read(_members.decode, self.raw, meta=self.metadata)

    def _window(self, path: Path) -> Raw | UnsetType:
        """Return the bytes of the member that ``path`` begins with, if it is known where."""
        head, member = self._head, path[0] if path else None
        if member == "spec":
            return head.spec
        return head.status if member == "status" else UNSET

    def _value(self, path: Path) -> object:
        """Decode the value at ``path``, anew in each call; None or `UNSET` if there is none."""
        if (part := self._window(path)) is not UNSET:
            try:
                return _reader(path[1:])(part)
            except msgspec.DecodeError:  # the whole tells what is wrong
                pass
        raw = self.raw
        try:
            try:
                return _reader(path)(raw)
            except msgspec.ValidationError:
                # A value along the path has another type than the path expects, or the value
                # cannot be decoded. Walking step by step tells which.
                return _walk(raw, path)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
            raise models.unreadable(exc, self.metadata, path=_json_path(path)) from None


@functools.lru_cache(maxsize=1024)
def _reader(path: Path) -> Callable[[bytes | Raw], object]:
    """Return a function that reads the value at ``path`` and skips everything else.

    The path becomes a type: a string is a struct with that one member, an integer a list. What
    comes back has the same shape, so taking it apart is a walk along the path.
    """
    shape: Any = Any
    try:
        for step in reversed(path):
            shape = list[shape] if isinstance(step, int) else _struct(step, shape)
            shape = shape | None
    except ValueError:  # a member name msgspec does not take: quotes, control characters
        return functools.partial(_walk, path=path)
    decode = msgspec.json.Decoder(shape).decode

    def read(raw: bytes | Raw) -> object:
        value: Any = decode(raw)
        for step in path:
            if value is None or value is UNSET:
                return value
            if isinstance(step, str):
                value = value.v
            else:
                value = value[step] if -len(value) <= step < len(value) else UNSET
        return value

    return read


def _struct(member: str, shape: Any) -> type[msgspec.Struct]:
    # gc=False: these live for one call and JSON has no cycles.
    return msgspec.defstruct("At", [("v", shape, UNSET)], rename={"v": member}, gc=False)


def _walk(raw: bytes | Raw, path: Path) -> object:
    """Read the value at ``path`` one step at a time; this works for any object."""
    inner: bytes | Raw = raw
    for step in path:
        try:
            if isinstance(step, str):
                inner = _members.decode(inner)[step]
            else:
                inner = _elements.decode(inner)[step]
        except (msgspec.ValidationError, LookupError):  # not an object or array, or not in it
            return UNSET
    return _anything.decode(inner)


def _json_path(path: Path) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)

"""Serialization: objects, lists and events as bytes, and content negotiation.

Stored objects are JSON already, without ``kind`` and ``apiVersion``: the plain form is made by
putting these in front. The cost does not depend on the size of the object.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, final

import msgspec
import yaml

from kinform.apiserver import printers
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.registry.conversion import to_served
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue
from kinform.apiserver.storage.versioned_store import Stored

__all__ = [
    "Form",
    "Renderer",
    "decode",
    "document",
    "encode",
    "envelope",
    "in_version",
    "negotiate",
]

encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, JsonValue]).decode


def decode(kind: Kind, raw: bytes) -> Json:
    """Return a stored object, which is the caller's to change, with its kind and version."""
    obj: Json = {"kind": kind.kind, "apiVersion": kind.api_version, **_decode(raw)}
    return to_served(kind, obj) if kind.is_converted else obj


class _Dumper(yaml.SafeDumper):
    """YAML as the server writes it: without aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Write out every value."""
        del data
        return True


def in_version(stored: Stored, revision: int) -> bytes:
    """Return a stored object as if it had been written in another revision."""
    # The version stands before anything that a client could have written the same way.
    was, now = (b'"resourceVersion":"%d"' % it for it in (stored.revision, revision))
    return stored.raw.replace(was, now, 1)


@functools.lru_cache(maxsize=4096)
def envelope(kind: str, api_version: str) -> bytes:
    """Return how an object begins."""
    head = encode({"kind": kind, "apiVersion": api_version})
    return head[:-1] + b","


def document(value: JsonValue, form: Form) -> bytes:
    """Return any value in the syntax of a form."""
    if form.is_yaml:
        text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=True)
        return text.encode()
    if form.is_pretty:
        return msgspec.json.format(encode(value), indent=2)
    return encode(value) + b"\n"


@final
class Renderer:
    """Makes answers of one request: one kind, one form.

    ``include`` is the ``includeObject`` of a Table, ``now`` tells the time for the ages in it.
    """

    def __init__(
        self, kind: Kind, form: Form, *, include: str = "", now: Callable[[], datetime]
    ) -> None:
        self._kind = kind
        self._form = form
        self._include = include
        self._now = now
        self._has_columns = False
        # Stored objects can be sent as they are.
        self._is_plain = not (
            form.is_yaml or form.is_table or form.is_partial or form.is_pretty or kind.is_converted
        )
        self._head = envelope(kind.kind, kind.api_version)

    @property
    def is_shapeless(self) -> bool:
        """Events were asked for as lists, which they cannot be: the first one ends the watch."""
        return self._form.is_partial_list

    def document(self, value: JsonValue) -> bytes:
        """Return any value in the form's syntax."""
        return document(value, self._form)

    def stored(self, raw: bytes) -> bytes:
        """Return one stored object."""
        if self._is_plain:
            return self._head + raw[1:] + b"\n"
        return self.object(decode(self._kind, raw))

    def object(self, obj: Json) -> bytes:
        """Return one object that has its kind and version."""
        if self._form.is_table:
            # The Table of one object has its version as the list's.
            version = obj["metadata"].get("resourceVersion", "")
            obj = self._table([obj], {"resourceVersion": version})
        elif self._form.is_partial:
            obj = self._partial(obj)
        return document(obj, self._form)

    def list(self, raws: Sequence[bytes], metadata: Json) -> bytes:
        """Return a list of stored objects."""
        form, kind = self._form, self._kind
        if kind.custom is not None and not (form.is_table or form.is_partial):
            metadata = {"continue": "", **metadata}
        if self._is_plain:
            # Items of built-in kinds say nothing of their kind, those of custom ones do.
            items = b",".join(
                [self._head + raw[1:] for raw in raws] if kind.custom is not None else raws
            )
            start = envelope(kind.list_kind, kind.api_version)
            return b'%b"metadata":%b,"items":[%b]}\n' % (start, encode(metadata), items)
        objects = [decode(kind, raw) for raw in raws]
        if form.is_table:
            return self.document(self._table(objects, metadata))
        if form.is_partial:
            return self.document(
                {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": f"meta.k8s.io/{form.version}",
                    "metadata": metadata,
                    "items": [self._partial(obj) for obj in objects] or None,
                }
            )
        if kind.custom is None:
            for obj in objects:
                del obj["kind"], obj["apiVersion"]
        head: Json = {"kind": kind.list_kind, "apiVersion": kind.api_version}
        return self.document({**head, "metadata": metadata, "items": objects})

    def event(self, event: bytes, raw: bytes) -> bytes:
        """Return a watch event about a stored object; ``event`` is its type."""
        form = self._form
        if not (form.is_table or form.is_partial or self._kind.is_converted):
            return b'{"type":"%b","object":%b%b}\n' % (event, self._head, raw[1:])
        obj = decode(self._kind, raw)
        if not (form.is_table or form.is_partial):
            return self._wrapped(event, obj)
        if form.is_partial:
            return self._wrapped(event, self._partial(obj))
        version: str = obj["metadata"].get("resourceVersion", "")
        return self._wrapped(event, self._table([obj], {"resourceVersion": version}))

    def bookmark(self, obj: Json) -> bytes:
        """Return a BOOKMARK event; ``obj`` is one of the kind with nothing but metadata."""
        if self._form.is_partial:
            return self._wrapped(b"BOOKMARK", self._partial(obj))
        if self._form.is_table:
            metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return self._wrapped(b"BOOKMARK", self._table([obj], metadata))
        return self._wrapped(b"BOOKMARK", obj)

    def error(self, status: Json) -> bytes:
        """Return an ERROR event."""
        return self._wrapped(b"ERROR", status)

    def _wrapped(self, event: bytes, value: Json) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (event, encode(value))

    def _partial(self, obj: Json) -> Json:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{self._form.version}",
            "metadata": obj.get("metadata") or {},
        }

    def _table(self, objects: Sequence[Json], metadata: Json) -> Json:
        with_columns, self._has_columns = not self._has_columns, True
        return printers.table(
            self._kind,
            objects,
            list_metadata=metadata,
            include=self._include or "Metadata",
            now=self._now(),
            with_columns=with_columns,
            group_version=f"meta.k8s.io/{self._form.version}",
        )


# --- content negotiation

_YAML: Final = "application/yaml"
_MEDIA: Final = frozenset({"application/json", "*/*", _YAML})
_PARTIAL: Final = frozenset({"PartialObjectMetadata", "PartialObjectMetadataList"})
_WHOLE: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMED: Final = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")
"""Programs behind which a person sits: they get their JSON indented."""


@final
class Form(msgspec.Struct, frozen=True):
    """The representation of objects that a client accepts."""

    is_yaml: bool = False
    is_table: bool = False
    is_partial: bool = False
    """Only metadata: PartialObjectMetadata or a list of them."""
    is_partial_list: bool = False
    """It was a list of them that was asked for."""
    version: str = "v1"
    """Of the Table or the PartialObjectMetadata, in ``meta.k8s.io``."""
    is_pretty: bool = False

    @property
    def content_type(self) -> str:
        """The media type of the answer."""
        return _YAML if self.is_yaml else "application/json"


def negotiate(request: ServerRequest, *, is_watch: bool = False, can_watch: bool = False) -> Form:
    """Return the first form among those accepted that this server can make.

    Args:
        is_watch: The request is a watch.
        can_watch: At its path there are watches too, so refusals list their forms.

    Raises:
        StatusError: it can make none of them.
    """
    accept = request.headers.get("accept", "").strip()
    pretty = _is_pretty(request)
    if not accept:
        return Form(is_pretty=pretty)
    is_known = False
    for media, parameters in _clauses(accept):
        if media not in _MEDIA:
            continue
        is_known = True
        form = _form(media, parameters, is_pretty=pretty)
        if form is not None and not (is_watch and form.is_yaml):
            return form
    if not is_known:
        available = f"{_WHOLE}, {_STREAMED}" if can_watch else _WHOLE
        message = f"406: Not Acceptable\n\nAvailable representations: {available}"
        raise StatusError(406, "NotAcceptable", message, details={})
    raise status.not_acceptable(_STREAMED if is_watch else _WHOLE)


@functools.lru_cache(maxsize=256)
def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an ``Accept`` header with their parameters, the best first."""
    found: list[tuple[str, dict[str, str]]] = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        found.append((media, dict(_pairs(parameters))))
    return sorted(found, key=lambda it: -_quality(it[1].get("q", "")))


def _quality(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 1.0


def _form(media: str, parameters: dict[str, str], *, is_pretty: bool) -> Form | None:
    is_yaml = media == _YAML
    is_pretty = is_pretty or parameters.get("pretty") in {"1", "true"}
    kind = parameters.get("as", "")
    if not kind:
        return Form(is_yaml=is_yaml, is_pretty=is_pretty)
    version = parameters.get("v", "")
    if parameters.get("g") != "meta.k8s.io" or version not in {"v1", "v1beta1"}:
        return None
    if kind == "Table":
        return Form(is_yaml=is_yaml, is_table=True, version=version, is_pretty=is_pretty)
    if kind in _PARTIAL:
        return Form(
            is_yaml=is_yaml,
            is_partial=True,
            is_partial_list=kind == "PartialObjectMetadataList",
            version=version,
            is_pretty=is_pretty,
        )
    return None


def _pairs(parameters: list[str]) -> list[tuple[str, str]]:
    return [
        (name.strip(), value.strip()) for name, _, value in (p.partition("=") for p in parameters)
    ]


def _is_pretty(request: ServerRequest) -> bool:
    if "pretty" in request.query:
        return request.option("pretty").lower() in {"true", "1"}
    return request.headers.get("user-agent", "").startswith(_PEOPLE)

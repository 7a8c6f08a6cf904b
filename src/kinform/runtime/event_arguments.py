"""What may be said of an event, checked before anything is done with it. Pure.

Of an object only its reference is taken: what it holds (a Secret's data, say) never gets here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias, cast, get_args

from kinform.errors import UsageError
from kinform.runtime.event_bodies import Reporter
from kinform.runtime.mapping import AnyObject, HasMetadata, metadata_of, type_of
from kinform.sansio.event_correlation import EventType, ObjectReference, Occurrence, cut

__all__ = ["Regarding", "occurrence_of", "reference_of", "reporter_of"]

Regarding: TypeAlias = AnyObject | ObjectReference
"""What an event can be about: an object, a reference, either as a dict; or an object's model."""

_MAX_WORD: Final = 128  # the server's, for reason, action and instance
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_REPORTER: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_TYPES: Final[tuple[str, ...]] = get_args(EventType)


def occurrence_of(
    regarding: Regarding,
    *,
    type_: str,
    reason: str,
    message: str,
    action: str = "",
    related: Regarding | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Occurrence:
    """Return the occurrence of these parts; a message that is too long is cut.

    Raises:
        UsageError: a part cannot be what it is to be.
    """
    if type_ not in _TYPES:
        raise UsageError(f"an event's type is 'Normal' or 'Warning', got {type_!r}")
    return Occurrence(
        regarding=reference_of(regarding),
        type=cast("EventType", type_),
        reason=_checked_reason(reason),
        message=cut(_text("message", message)),
        action=_word("action", action),
        related=None if related is None else reference_of(related),
        annotations=_checked_annotations(annotations),
    )


def reference_of(regarding: Regarding) -> ObjectReference:
    """Return the reference to an object.

    Raises:
        UsageError: it is no object, or it has no kind or no name.
    """
    if isinstance(regarding, ObjectReference):
        reference = regarding
    elif hasattr(regarding, "metadata"):
        reference = _of_object(cast("HasMetadata", regarding))
    elif isinstance(regarding, Mapping):
        reference = _of_mapping(regarding)
    else:
        raise UsageError(
            f"an event is about an Object or an ObjectReference, not a {type(regarding).__name__}; "
            "or a model that declares its metadata"
        )
    if not reference.kind or not reference.name:
        raise UsageError(
            f"an event must name the kind and the name of its object, got kind "
            f"{reference.kind!r} and name {reference.name!r}; where the object does not say, give "
            "ObjectReference(api_version=..., kind=..., namespace=..., name=..., uid=...)"
        )
    return reference


def reporter_of(component: str, instance: str, *, host: str) -> Reporter:
    """Return who reports; the process is the ``host``'s unless it has a name of its own.

    Raises:
        UsageError: a name is not of the form that the server asks for.
    """
    prefix, slash, name = _text("component", component).rpartition("/")
    fits = _PREFIX.fullmatch(prefix) is not None and len(prefix) <= 253 if slash else not prefix
    if not fits or not _REPORTER.fullmatch(name):
        raise UsageError(
            f"component is {component!r}; expected a name like 'website-operator' or "
            "'example.com/website-operator', of at most 63 characters after the slash"
        )
    return Reporter(component, _word("instance", instance) or cut(host, _MAX_WORD) or component)


def _of_object(obj: HasMetadata) -> ObjectReference:
    (api_version, kind), metadata = type_of(obj), metadata_of(obj, "name", "namespace", "uid")
    return ObjectReference(
        api_version=api_version,
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def _of_mapping(given: Mapping[str, object]) -> ObjectReference:
    """Read an object, whose metadata names it, or a reference, which names it itself."""
    metadata = given.get("metadata", given)
    if not isinstance(metadata, Mapping):
        raise UsageError("the metadata of the object that an event is about is no dict")
    about = cast("Mapping[str, object]", metadata)
    return ObjectReference(
        api_version=_text("apiVersion", given.get("apiVersion") or ""),
        kind=_text("kind", given.get("kind") or ""),
        namespace=_text("namespace", about.get("namespace") or ""),
        name=_text("name", about.get("name") or ""),
        uid=_text("uid", about.get("uid") or ""),
        field_path=_text("fieldPath", given.get("fieldPath") or ""),
        resource_version=_text("resourceVersion", about.get("resourceVersion") or ""),
    )


def _checked_reason(reason: str) -> str:
    if not _REASON.fullmatch(_word("reason", reason)):
        raise UsageError(
            f"reason is {reason!r}; expected one word in UpperCamelCase, like 'FailedCreate': "
            "it is for programs to read; the message is for people"
        )
    return reason


def _checked_annotations(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    found = dict(annotations or {})
    for key, value in found.items():
        _text("an annotation's name", key)
        _text(f"annotation {key!r}", value)
    return found


def _word(what: str, value: str) -> str:
    if len(_text(what, value).encode("utf-8", "replace")) > _MAX_WORD:
        raise UsageError(f"{what} is {value[:40]!r}...; expected at most {_MAX_WORD} characters")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what} must be a string, got {type(value).__name__}")
    return value

"""The bodies of writes and their checks. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, TypeVar, cast

import msgspec

from kinform.errors import DecodeError, UsageError
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.resource import decode_answer, encode, is_projection
from kinform.sansio import json_diff
from kinform.sansio.wire.heads import read_head
from kinform.verbs._finder import Found

__all__ = ["Content", "Propagation"]

T = TypeVar("T")

Content: TypeAlias = dict[str, object]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
"""The treatment of the objects that the deleted one owns."""

_GUARD: Final = "/metadata/resourceVersion"


def content_of(body: object) -> Content:
    """Return ``body`` (dict, `Object`, model) as a JSON object, always a copy.

    Raises:
        UsageError: it is not a JSON object.
    """
    try:
        return msgspec.json.decode(encode(body), type=Content)
    except msgspec.DecodeError:
        raise UsageError(f"expected an object with fields, got {type(body).__name__}") from None


def whole_object(body: object) -> Content:
    """Return the content of a dict or an `Object`; refuse a model, which may be only a part.

    Raises:
        UsageError: ``body`` is a model.
    """
    if is_projection(body):
        raise UsageError(
            f"replace() would drop every field that {type(body).__name__} does not declare; "
            "use update(name, change), or give a dict or an Object"
        )
    return content_of(body)


def with_kind(content: Content, resource: Found) -> Content:
    """Fill in ``apiVersion`` and ``kind`` where they are missing."""
    return {
        "apiVersion": str(resource.gvr.group_version),
        "kind": resource.kind,
        **{key: value for key, value in content.items() if value or key not in _TYPE_META},
    }


_TYPE_META: Final = {"apiVersion", "kind"}


def name_of(content: Content, namespace: str) -> ObjectName:
    """Return the name of the object ``content``, in ``namespace`` unless it names its own.

    Raises:
        UsageError: it has no name, or names another namespace than the client's.
    """
    name = _metadata(content).get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("metadata.name must be set")
    return ObjectName(namespace_of(content, namespace), name)


def namespace_of(content: Content, namespace: str) -> str:
    """Return the namespace to write ``content`` to.

    Raises:
        UsageError: it names another namespace than the client's.
    """
    own = _metadata(content).get("namespace")
    if not own:
        return namespace
    if namespace and own != namespace:
        raise UsageError(
            f"the object says namespace {own!r}, the client {namespace!r}; "
            f"use in_namespace({own!r})"
        )
    return str(own)


def refuse_managed_fields(content: Content) -> None:
    """Refuse to apply an object as it was read: we would become the owner of every field.

    Raises:
        UsageError: ``managedFields`` is set.
    """
    if _metadata(content).get("managedFields"):
        raise UsageError(
            "metadata.managedFields must not be set; apply only the fields you mean to own"
        )


def delete_options(
    *,
    grace_period: float | None,
    propagation: Propagation | None,
    uid: str | None = None,
    resource_version: str | None = None,
    dry_run: bool = False,
) -> Content:
    """Return the body of a DELETE; options that are ``None`` are not sent."""
    seconds = None if grace_period is None else max(0, round(grace_period))
    conditions = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {key: value for key, value in conditions.items() if value is not None}
    values: Content = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": seconds,
        "propagationPolicy": propagation,
        "preconditions": preconditions or None,
        "dryRun": ["All"] if dry_run else None,
    }
    return {key: value for key, value in values.items() if value is not None}


def is_gone(body: bytes) -> bool:
    """Return whether the response to a DELETE shows that the object was removed.

    The response is a ``Status``, or the object's last state; an object that still exists has a
    deletionTimestamp.

    Raises:
        DecodeError: the response is not an object.
    """
    head = read_head(body.strip())
    return head.kind == "Status" or head.metadata.deletion_timestamp is None


def guarded_patch(
    current: bytes, model: type[T], change: Callable[..., object]
) -> list[json_diff.Operation]:
    """Return the changes that ``change`` makes to ``current`` as a JSON patch; empty if none.

    The patch carries the version it was made from, so that the server refuses it (409) if the
    object has changed since. A model's undeclared fields are not touched: the difference
    between the model before and after is applied to the whole object.
    """
    whole = content_of_answer(current)
    version = _metadata(whole).get("resourceVersion")
    if model is Object or model is dict:
        mine: object = content_of_answer(current)
        after = content_of(_changed(mine, change(mine)))
        if _metadata(after).get("name") != _metadata(whole).get("name"):
            raise UsageError(
                "change returned something else than the whole object; change the dict in place "
                "and return nothing, or return {**content, ...}"
            )
    else:
        mine, old = decode_answer(model, current), decode_answer(model, current)
        new = _changed(mine, change(mine))
        rebased = json_diff.rebase(
            json_diff.as_json(whole),
            json_diff.as_json(content_of(old)),
            json_diff.as_json(content_of(new)),
        )
        after = cast("Content", rebased)
    # We set the version: a manifest written from scratch has none, or an older one.
    after["metadata"] = {**_metadata(after), "resourceVersion": version}
    operations = json_diff.diff(json_diff.as_json(whole), json_diff.as_json(after))
    guard = {"op": "replace", "path": _GUARD, "value": json_diff.as_json(version)}
    return [guard, *operations] if operations else []


def _changed(given: object, answer: object) -> object:
    """Return the result of a change function: its return value, or ``given`` itself."""
    if answer is None:
        return given
    if inspect.iscoroutine(answer):
        answer.close()
        raise UsageError("change must be a plain function, not an async one")
    kind: type[object] = type(answer)
    if kind in {str, bytes, bool, int, float, list, tuple, set}:
        raise UsageError(f"change must return nothing or the whole object, got {kind.__name__}")
    return answer


def version_of(body: bytes) -> str:
    """Return the resourceVersion of an object."""
    return read_head(body.strip()).metadata.resource_version


def content_of_answer(raw: bytes) -> Content:
    """Return the object in a response, always a copy.

    Raises:
        DecodeError: it is not an object, or cannot be decoded.
    """
    try:
        return msgspec.json.decode(raw, type=Content)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise DecodeError(f"the object cannot be read: {exc}") from None
    except RecursionError:
        raise DecodeError("the object nests deeper than this Python can read") from None


def _metadata(content: Content) -> Mapping[str, object]:
    metadata = content.get("metadata")
    return cast("Mapping[str, object]", metadata) if isinstance(metadata, dict) else {}

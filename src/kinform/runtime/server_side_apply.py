"""Server-side apply for controllers: ``apply`` an object, with its owner, by its own kind.

`ResourceClient.apply` gets the kind from its client; here the body names it, as in a manifest.
An apply that changes nothing writes nothing: the server keeps the resourceVersion, so a reconcile
may apply everything every time without triggering itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, cast

from kinform.client import Client
from kinform.errors import ConflictError, NotFoundError, UsageError
from kinform.meta import GroupVersion, ObjectMeta, Status
from kinform.objects.object import Object
from kinform.resource_client import ResourceClient
from kinform.rest.restmapper import APIResource
from kinform.runtime.map_functions import AnyObject, described, metadata_of, type_of
from kinform.runtime.owner_references import AlreadyOwnedError, set_controller_reference
from kinform.verbs import _write_bodies
from kinform.verbs._write_bodies import Content

__all__ = ["apply", "apply_status"]

_TRIES: Final = 5
_PAUSE: Final = 0.01
_NEEDED: Final = ("name", "namespace", "uid", "resourceVersion")


async def apply(
    client: Client,
    body: AnyObject,
    *,
    field_manager: str,
    owner: AnyObject | None = None,
    namespace: str | None = None,
    force: bool = True,
) -> Object:
    """Apply ``body`` on the server and return the object: created, changed or unchanged.

    .. code-block:: python

        await apply(ctx.client, deployment, owner=website, field_manager="websites")

    ``body`` and ``owner`` are dicts, `Object` or models that declare their metadata; generated
    models (`kinform.clientset`) know their kind. ``body`` is not changed. The manager gives up
    fields that it applied before and leaves out now; the server removes them unless another manager
    owns them.

    Args:
        owner: becomes the controller of the object (`set_controller_reference`). The metadata of
            the existing object is read first: two owners that want the same name would take it from
            each other for ever, and the server allows it if both have the same field manager.
        namespace: where the object is, unless it says so itself; else that of ``owner``, else the
            client's. Ignored for cluster-scoped kinds.
        force: take over fields that another manager owns. This is right for a controller, which
            must own the fields that it sets.

    Raises:
        AlreadyOwnedError: the object has another controller than ``owner``.
        ConflictError: another manager owns a field, and ``force`` is off.
        InvalidError: the server rejected it; ``causes`` lists why.
        UnknownResourceError: the server has no such kind.
        UsageError: ``apiVersion``, ``kind`` or ``metadata.name`` is missing, or the namespaces or
            owners contradict each other.
        ApiError: any other refusal by the server.
    """
    content = _with_type(_write_bodies.content_of(body), body)
    found = await client.find(_checked(content))
    _place(content, found, _namespace(client, owner, namespace))
    resource = _resource(client, found, content)
    if owner is not None:
        set_controller_reference(content, owner)
        await _check_controller(resource, content, owner)
    return await resource.apply(content, field_manager=field_manager, force=force)


async def apply_status(
    client: Client,
    obj: AnyObject,
    *,
    status: object,
    field_manager: str,
    force: bool = True,
) -> Object:
    """Apply the status of an existing object through ``/status``; return the object.

    .. code-block:: python

        conditions = with_condition(website, "Ready", status=True, reason="AllUp")
        await apply_status(
            ctx.client, website, status={"conditions": conditions}, field_manager="websites"
        )

    ``obj`` is an `Object`, a dict or a model that declares its metadata; ``status`` a dict or a
    model: ``apps_v1.DeploymentStatus(ready_replicas=1)``.

    A new object of the same name (another uid) is never changed. ``obj`` may be an old version:
    after a conflict the current object is read, and the write is retried.

    Raises:
        NotFoundError: the object was deleted, or its kind has no status subresource.
        ConflictError: another object has its name; or the object keeps changing; or another
            manager owns a field, and ``force`` is off.
        InvalidError: the server rejected the status; ``causes`` lists why.
        UsageError: ``obj`` does not state its kind, or was never on a server.
        ApiError: any other refusal by the server.
    """
    metadata = metadata_of(obj, *_NEEDED)
    if not metadata.uid or not metadata.resource_version:
        raise UsageError(f"{described(obj)} has no uid: create it first, its status comes after")
    content, fields = _identity(obj, metadata), _write_bodies.content_of(status)
    found = await client.find(_checked(content))
    resource = _resource(client, found, content)

    async def send(version: str) -> Object:
        body = _status_body(content, version, fields)
        return await resource.status.apply(body, field_manager=field_manager, force=force)

    version = metadata.resource_version
    for _ in range(_TRIES - 1):
        try:
            return await send(version)
        except ConflictError as exc:
            version = await _version_now(resource, metadata, exc)
        await asyncio.sleep(_PAUSE)
    return await send(version)


def _with_type(content: Content, obj: AnyObject) -> Content:
    """Write into ``content`` what kind the object is of, if that is known."""
    version, kind = type_of(obj)
    return {**content, "apiVersion": version, "kind": kind} if version and kind else content


def _identity(obj: AnyObject, metadata: ObjectMeta) -> Content:
    place = {"namespace": metadata.namespace} if metadata.namespace else {}
    return _with_type({"metadata": {"name": metadata.name, **place}}, obj)


def _status_body(identity: Content, version: str, status: Mapping[str, object]) -> Content:
    # The version, because it is the one thing that the server compares for every kind: a uid it
    # overlooks in the status of custom resources.
    metadata = {**_meta(identity), "resourceVersion": version}
    return {**identity, "metadata": metadata, "status": status}


async def _version_now(
    resource: ResourceClient[Object], meant: ObjectMeta, refusal: ConflictError
) -> str:
    """Return the version to try again with, if it is still the same object.

    Raises:
        NotFoundError: it was deleted.
        ConflictError: another has its name; or that was not what the refusal is about.
    """
    if any(cause.reason == "FieldManagerConflict" for cause in refusal.causes):
        raise refusal
    there = await resource.metadata_only.get(meant.key)
    if there.uid == meant.uid:
        return there.resource_version
    message = (
        f"{meant.key} with uid {meant.uid} is gone; another object has its name, "
        f"with uid {there.uid}"
    )
    status = Status(status="Failure", code=409, reason="Conflict", message=message)
    raise ConflictError(status, method=refusal.method, url=refusal.url) from refusal


def _checked(content: Content) -> str:
    """Return the name by which the server knows the kind of ``content``.

    Raises:
        UsageError: it lacks what an object must say about itself.
    """
    version, kind, name = content.get("apiVersion"), content.get("kind"), _meta(content).get("name")
    for field, value in (("apiVersion", version), ("kind", kind), ("metadata.name", name)):
        if not isinstance(value, str) or not value:
            raise UsageError(
                f"{field} must be set to apply {_described(content)}; only generated models know "
                "their kind without saying it"
            )
    if kind == "PartialObjectMetadata":
        raise UsageError(
            f"{_described(content)} was read with metadata_only, and does not say its kind"
        )
    try:
        return f"{GroupVersion.parse(str(version))}/{kind}"
    except ValueError as exc:
        raise UsageError(f"apiVersion of {_described(content)}: {exc}") from None


async def _check_controller(
    resource: ResourceClient[Object], content: Content, owner: AnyObject
) -> None:
    """Refuse to take an object from its controller.

    Raises:
        AlreadyOwnedError: it has one that is not ``owner``.
    """
    try:
        there = await resource.metadata_only.get(str(_meta(content)["name"]))
    except NotFoundError:
        return
    controller = there.metadata.controller
    if controller is not None and controller.uid != metadata_of(owner, "uid").uid:
        reference = {"kind": controller.kind, "name": controller.name, "uid": controller.uid}
        raise AlreadyOwnedError(f"{content['kind']} {there.key}", reference)


def _namespace(client: Client, owner: AnyObject | None, namespace: str | None) -> tuple[str, bool]:
    """Return the namespace to write to, and whether the caller named it."""
    if namespace:
        return namespace, True
    place = "" if owner is None else metadata_of(owner, "namespace").namespace
    return place or client.config.namespace, False


def _place(content: Content, found: APIResource, target: tuple[str, bool]) -> None:
    """Write the namespace into ``content``, if its kind has namespaces."""
    metadata, (namespace, is_asked_for) = _meta(content), target
    own = metadata.get("namespace")
    if not found.namespaced:
        if own:
            raise UsageError(
                f"{_described(content)} says namespace {own!r}, and a {found.kind} has none"
            )
        return
    if own and is_asked_for and own != namespace:
        raise UsageError(
            f"{_described(content)} says namespace {own!r}, and namespace={namespace!r} was given"
        )
    content["metadata"] = {**metadata, "namespace": own or namespace}


def _resource(client: Client, found: APIResource, content: Content) -> ResourceClient[Object]:
    namespace = _meta(content).get("namespace")
    return client.resource(found.gvr, namespace=str(namespace or ""))


def _meta(content: Content) -> Content:
    metadata = content.get("metadata")
    return cast("Content", metadata) if isinstance(metadata, dict) else {}


def _described(content: Content) -> str:
    kind, name = content.get("kind") or "an object", _meta(content).get("name") or "without a name"
    return f"{kind} {name}"

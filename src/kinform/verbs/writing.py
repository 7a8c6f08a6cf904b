"""The verbs that write: create, replace, update, patch, apply, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar, overload

from kinform.errors import ConflictError, InvalidError, UsageError
from kinform.objects.object import Object
from kinform.rest import _responses
from kinform.rest.conflict import retry_on_conflict
from kinform.rest.options import FieldValidation, PatchType, WriteOptions
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.verbs import _write_bodies
from kinform.verbs._write_bodies import Propagation
from kinform.verbs.base import ALL_NAMESPACES, Name, ResourceBase, again_if_moved, selecting

__all__ = ["Changes", "Creates", "Deletes", "DeletesCollections"]

T = TypeVar("T")


class Creates(ResourceBase[T]):
    """Can create objects."""

    @again_if_moved
    async def create(
        self,
        body: object,
        *,
        name: Name | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Create an object from a dict, an `Object` or a model; return it as stored.

        ``apiVersion`` and ``kind`` are filled in where they are missing. ``name`` is for
        subresources only (``pods.subresource("eviction").create({...}, name="web-0")``).

        Raises:
            AlreadyExistsError: an object of that name exists.
            InvalidError: the server rejected it; ``causes`` lists why.
        """
        resource = await self._find()
        content = _write_bodies.content_of(body)
        if self._subresource is None:
            content = _write_bodies.with_kind(content, resource)
        target = self._namespace if name is None else self._place(name)
        namespace = _write_bodies.namespace_of(content, target) if resource.namespaced else target
        request = await self._request("POST", name, namespace=namespace)
        options = WriteOptions(field_manager, field_validation, dry_run)
        return await request.params(options).body(content).into(self._model)


class Changes(ResourceBase[T]):
    """Can change an object, or its subresource."""

    @again_if_moved
    async def replace(
        self,
        body: Mapping[str, object] | Object,
        *,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Replace the object named in ``body`` (PUT); with a resourceVersion, only that version.

        Takes a dict or an `Object`, never a model: a model declares part of an object, and
        the fields it does not declare would be lost. Use `update` for models.

        Raises:
            ConflictError: the object changed since it was read.
        """
        content = _write_bodies.whole_object(body)
        resource = await self._find()
        content = _write_bodies.with_kind(content, resource) if self._shows_whole else content
        name = _write_bodies.name_of(content, self._namespace)
        request = await self._request("PUT", name)
        options = WriteOptions(field_manager, field_validation, dry_run)
        return await request.params(options).body(content).into(self._model)

    @overload
    async def update(
        self: Changes[Object],
        name: Name,
        change: Callable[[dict[str, object]], Mapping[str, object] | None],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object: ...
    @overload
    async def update(
        self,
        name: Name,
        change: Callable[[T], T | None],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> T: ...
    async def update(
        self,
        name: Name,
        change: Callable[..., object],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> T | Object:
        """Read an object, call ``change`` with a copy of it, and write only the difference.

        For `Object` (and ``dict``) the copy is a plain dict: change it in place or return a new
        one. For a frozen model, return a new model. Fields the model does not
        declare are left alone. If another client wrote in between, the server refuses the write
        and read and change are repeated, at most five times, so ``change`` must have no side
        effects. No difference: no write.

        Raises:
            NotFoundError: the object does not exist.
            ConflictError: other clients kept writing.
        """

        async def attempt() -> T:
            current = await self._read(name)
            with _responses.naming_request(method=current.method, url=current.url):
                operations = _write_bodies.guarded_patch(current.body, self._model, change)
                version = _write_bodies.version_of(current.body)
            if not operations:
                return current.into(self._model)
            try:
                return await self.patch(
                    name, operations, field_manager=field_manager, dry_run=dry_run
                )
            except InvalidError as exc:
                # The server applies a patch before it compares versions: one that no longer fits
                # is a conflict like any other if the object has changed.
                if _write_bodies.version_of((await self._read(name)).body) == version:
                    raise
                raise ConflictError(exc.status, method=exc.method, url=exc.url) from exc

        return await retry_on_conflict(attempt)

    @again_if_moved
    async def patch(
        self,
        name: Name,
        patch: object,
        *,
        patch_type: PatchType | Literal["json", "merge", "strategic"] | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change part of an object: a list is a JSON patch, anything else a merge patch.

        ``patch_type="strategic"`` merges lists by key (built-in kinds only).
        """
        if patch_type is not None and patch_type not in {"json", "merge", "strategic"}:
            raise UsageError(
                f"patch_type must be 'json', 'merge' or 'strategic', got {str(patch_type)!r}; "
                "server-side apply is apply()"
            )
        if patch_type is None:
            is_list = issubclass(type(patch), list | tuple)
            patch_type = PatchType.JSON if is_list else PatchType.MERGE
        request = await self._request("PATCH", name, patch_type=PatchType(patch_type))
        options = WriteOptions(field_manager, field_validation, dry_run)
        return await request.params(options).body(patch).into(self._model)

    @again_if_moved
    async def apply(
        self,
        body: object,
        *,
        field_manager: str,
        force: bool = False,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> T:
        """Apply ``body`` on the server: create the object, or own and set the fields it names.

        Raises:
            ConflictError: another manager owns a field, and ``force`` is off.
            UsageError: ``body`` has no name, or holds ``managedFields``.
        """
        resource, content = await self._find(), _write_bodies.content_of(body)
        content = _write_bodies.with_kind(content, resource) if self._shows_whole else content
        _write_bodies.refuse_managed_fields(content)
        name = _write_bodies.name_of(content, self._namespace)
        options = WriteOptions(field_manager, field_validation, dry_run, force=force)
        request = await self._request("PATCH", name, patch_type=PatchType.APPLY)
        return await request.params(options).body(content).into(self._model)


class Deletes(ResourceBase[T]):
    """Can delete one object."""

    @again_if_moved
    async def delete(
        self,
        name: Name,
        *,
        grace_period: float | None = None,
        propagation: Propagation | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> T | None:
        """Delete one object; return it if it lingers (finalizers, grace period), else ``None``.

        One that lingers has a ``deletion_timestamp``.

        ``uid`` and ``resource_version`` are preconditions of the delete.

        Raises:
            NotFoundError: the object does not exist.
            ConflictError: the object has another uid or version.
        """
        request = await self._request("DELETE", name)
        request.body(
            _write_bodies.delete_options(
                grace_period=grace_period,
                propagation=propagation,
                uid=uid,
                resource_version=resource_version,
                dry_run=dry_run,
            )
        )
        answer = await request.do()
        _responses.check_json(answer.headers, method=answer.method, url=answer.url)
        with _responses.naming_request(method=answer.method, url=answer.url):
            return None if _write_bodies.is_gone(answer.body) else answer.into(self._model)


class DeletesCollections(ResourceBase[T]):
    """Can delete many objects at once."""

    @again_if_moved
    async def delete_collection(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        grace_period: float | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete every object of the namespace that matches. Without selectors: all of them."""
        if self._namespace == ALL_NAMESPACES and (await self._find()).namespaced:
            raise UsageError("delete_collection works in one namespace: in_namespace(...) first")
        request = await self._request("DELETE", listing=True)
        request.params(selecting(label_selector, field_selector))
        request.body(
            _write_bodies.delete_options(
                grace_period=grace_period, propagation=propagation, dry_run=dry_run
            )
        )
        answer = await request.do()
        _responses.check_json(answer.headers, method=answer.method, url=answer.url)

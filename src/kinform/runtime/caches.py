"""The caches of one controller: which informers it has, and how they are found again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar, cast, final

from kinform.cache.group import InformerGroup
from kinform.cache.informer import SharedInformer
from kinform.cache.lister import Lister
from kinform.cache.selection import Kind, select
from kinform.client import Client
from kinform.errors import UsageError
from kinform.objects import Object

__all__ = ["Caches"]

T = TypeVar("T")


@final
class Caches:
    """The informers of one controller, by the kind's name and model."""

    def __init__(self, controller: str, client: Client) -> None:
        self._controller = controller
        self._client = client
        self._groups: dict[tuple[str, type[object]], InformerGroup[object]] = {}
        self._readers: dict[tuple[str, type[object]], object] = {}

    def add(self, name: str, model: type[T], informers: Mapping[str, SharedInformer[T]]) -> None:
        """Take note of the informers of a kind. Of two for one kind the first is what is read."""
        identity = (name, cast("type[object]", model))
        group = InformerGroup(informers)
        if identity in self._groups:
            return
        self._groups[identity] = cast("InformerGroup[object]", group)
        only = next(iter(informers.values())) if len(informers) == 1 else None
        self._readers[identity] = group if only is None else only.lister

    @property
    def all(self) -> Sequence[SharedInformer[object]]:
        """All informers."""
        return [one for group in self._groups.values() for one in group.informers.values()]

    def reader(self, resource: Kind[T], model: type[T] | None) -> Lister[T] | InformerGroup[T]:
        """Return what shows the objects of a kind.

        Raises:
            UsageError: there is no cache of it.
        """
        return cast("Lister[T] | InformerGroup[T]", self._readers[self._found(resource, model)])

    def informers(
        self, resource: Kind[T], model: type[T] | None
    ) -> Mapping[str, SharedInformer[T]]:
        """Return the informers of a kind by namespace.

        Raises:
            UsageError: there is none.
        """
        group = self._groups[self._found(resource, model)]
        return MappingProxyType(cast("dict[str, SharedInformer[T]]", dict(group.informers)))

    async def wait_for(self, written: Object, timeout: float) -> None:
        """Wait until the cache of its kind shows ``written``: see `Context.wait_for_cache`."""
        informer = await self._of(written)
        await informer.wait_until(written.resource_version, timeout)

    async def _of(self, written: Object) -> SharedInformer[object]:
        """Return the informer that ``written`` must come to."""
        gvk = written.gvk
        for (name, _), group in self._groups.items():
            found = await self._client.find(name)
            if (found.kind, found.gvr.group) == (gvk.kind, gvk.group):
                informer = group.informers.get(written.namespace) or group.informers.get("")
                if informer is not None:
                    return informer
        what = f"{gvk.kind} {written.key}"
        raise UsageError(f"{self._controller}: there is no cache that {what} would come to; {self}")

    def _found(self, resource: Kind[T], model: type[T] | None) -> tuple[str, type[object]]:
        # A name that is known needs no second look; this is called in every reconcile.
        if isinstance(resource, str) and model is None:
            identity: tuple[str, type[object]] = (resource, Object)
        else:
            selection = select(resource, model=model)
            identity = (selection.name, cast("type[object]", selection.model))
        if identity not in self._groups:
            name, kind = identity
            of = "" if kind is Object else f" as {kind.__name__}"
            raise UsageError(f"{self._controller}: there is no cache of {name}{of}; {self}")
        return identity

    def __str__(self) -> str:
        names = (
            name if model is Object else f"{name} (as {model.__name__})"
            for name, model in self._groups
        )
        return f"it has {', '.join(names)}"

"""The caches of one controller: which it has, and how they are found again."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, TypeVar, cast, final, overload

from kinform.cache.informer import SharedInformer
from kinform.cache.selection import Kind, Selection, select
from kinform.cache.store import Key
from kinform.client import Client
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectName
from kinform.objects import Object
from kinform.resource import Resource
from kinform.selectors import LabelSelector, LabelSelectorLike

__all__ = ["CacheReader", "Caches"]

T = TypeVar("T")


@final
class CacheReader(Generic[T]):
    """What a cache of one kind shows, in one namespace, in several or in all. Never any I/O.

    Any thread may read.
    """

    __slots__ = ("_informers", "_only")

    def __init__(self, informers: Mapping[str, SharedInformer[T]]) -> None:
        self._informers: Final = MappingProxyType(dict(informers))
        self._only = next(iter(informers.values())).lister if len(informers) == 1 else None

    @property
    def informers(self) -> Mapping[str, SharedInformer[T]]:
        """The informers by namespace; that of all namespaces is ``""``."""
        return self._informers

    def get(self, key: Key) -> T | None:
        """Return the object of ``key``, if the cache holds it.

        Raises:
            ValueError: text that is not ``namespace/name`` or ``name``.
        """
        if self._only is not None:
            return self._only.get(key)
        name = ObjectName.parse(key) if isinstance(key, str) else key
        informer = self._informers.get(name.namespace)
        return None if informer is None else informer.lister.get(name)

    def list(self, label_selector: LabelSelectorLike = None) -> builtins.list[T]:
        """Return the objects whose labels meet the selector, in no particular order.

        Raises:
            SelectorError: the selector cannot be understood.
        """
        return [
            found
            for informer in self._informers.values()
            for found in informer.lister.list(label_selector)
        ]

    def by_index(self, index: str, value: str) -> builtins.list[T]:
        """Return the objects under ``value`` of an index, see ``indexers`` of `KindSource`.

        Raises:
            UnknownIndexError: there is no such index.
        """
        return [
            found
            for informer in self._informers.values()
            for found in informer.indexer.by_index(index, value)
        ]


@final
class Caches:
    """The caches of one controller: of what it is for, owns and watches."""

    def __init__(self, controller: str, client: Client) -> None:
        self._controller = controller
        self._client = client
        self._by_kind: dict[tuple[str, type[object]], list[CacheReader[object]]] = {}
        self._by_source: dict[object, CacheReader[object]] = {}
        self._selectors: dict[CacheReader[object], tuple[LabelSelector, str]] = {}

    def add(
        self, source: object, selection: Selection[T], informers: Mapping[str, SharedInformer[T]]
    ) -> None:
        """Take note of the informers of a source."""
        identity = (selection.name, cast("type[object]", selection.model))
        known = self._by_kind.setdefault(identity, [])
        added = cast("Mapping[str, SharedInformer[object]]", informers)
        same = next((each for each in known if each.informers == added), None)
        if same is None:
            same = CacheReader(added)
            known.append(same)
            labels = LabelSelector.of(selection.label_selector)
            self._selectors[same] = labels, selection.field_selector
        self._by_source[source] = same

    @overload
    def lister(self, resource: str | GroupVersionResource) -> CacheReader[Object]: ...
    @overload
    def lister(self, resource: str | GroupVersionResource, *, model: type[T]) -> CacheReader[T]: ...
    @overload
    def lister(self, resource: type[T] | Resource[T]) -> CacheReader[T]: ...
    def lister(self, resource: Kind[T], *, model: type[T] | None = None) -> CacheReader[T]:
        """Return the cache of a kind, named as the controller does, with its model.

        Raises:
            UsageError: there is none, or several with other selectors: see `of_source`.
        """
        return self.found(resource, model)

    def found(self, resource: Kind[T], model: type[T] | None) -> CacheReader[T]:
        """Return the cache of a kind: `lister` for those who pass it on."""
        # A name that is known needs no second look; this is called in every reconcile.
        if isinstance(resource, str) and model is None:
            identity: tuple[str, type[object]] = (resource, Object)
        else:
            selection = select(resource, model=model)
            identity = (selection.name, cast("type[object]", selection.model))
        caches = self._by_kind.get(identity, ())
        if len(caches) != 1:
            raise self._mistake(identity, len(caches))
        return cast("CacheReader[T]", caches[0])

    def of_source(self, source: object) -> CacheReader[object]:
        """Return the cache of one `KindSource` of the controller.

        Raises:
            UsageError: it is not one of this controller's.
        """
        found = self._by_source.get(source)
        if found is None:
            raise UsageError(f"{source!r} is none of {self._controller}'s sources")
        return found

    @property
    def all(self) -> Sequence[SharedInformer[object]]:
        """All informers, each once."""
        readers = [each for known in self._by_kind.values() for each in known]
        informers = [one for reader in readers for one in reader.informers.values()]
        return list(dict.fromkeys(informers))

    async def wait_for(self, written: Object, timeout: float) -> None:
        """Wait until the caches of its kind show ``written``: see `Context.wait_for_cache`."""
        async with asyncio.timeout(timeout):
            for informer in await self._of(written):
                await informer.wait_until(written.resource_version)

    async def _of(self, written: Object) -> Sequence[SharedInformer[object]]:
        """Return the informers that ``written`` must come to."""
        gvk, found = written.gvk, list[SharedInformer[object]]()
        for (name, _), readers in self._by_kind.items():
            resource = await self._client.find(name)
            if (resource.kind, resource.gvr.group) == (gvk.kind, gvk.group):
                seen = [self._shown_by(reader, written) for reader in readers]
                found += [informer for informer in seen if informer is not None]
        if found:
            return found
        what = f"{gvk.kind} {written.key}"
        raise UsageError(f"{self._controller}: there is no cache that {what} would come to; {self}")

    def _shown_by(
        self, reader: CacheReader[object], written: Object
    ) -> SharedInformer[object] | None:
        labels, fields = self._selectors[reader]
        if fields or not labels.matches(written.labels):
            return None  # of fields only the server can tell
        return reader.informers.get(written.namespace) or reader.informers.get("")

    def _mistake(self, identity: tuple[str, type[object]], count: int) -> UsageError:
        name, model = identity
        of = name if model is Object else f"{name} as {model.__name__}"
        if count:
            return UsageError(
                f"{self._controller} has {count} caches of {of}, with other selectors; say which: "
                "ctx.lister(source), with the KindSource that was given to the controller"
            )
        return UsageError(
            f"{self._controller}: there is no cache of {of}; {self}. Add it to owns or watches"
        )

    def __str__(self) -> str:
        names = (
            name if model is Object else f"{name} (as {model.__name__})"
            for name, model in self._by_kind
        )
        return f"it has {', '.join(names)}"

"""The caches of one controller: which it has, and how they are found again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast, final, overload

from kinform.cache.informer_group import InformerGroup
from kinform.cache.selection import Kind, Selection, select
from kinform.cache.shared_informer import SharedInformer
from kinform.client import Client
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.selectors import LabelSelector
from kinform.tasks import gather

__all__ = ["Caches"]

T = TypeVar("T")


@final
class Caches:
    """The caches of one controller: of the kinds that it is for, owns and watches."""

    def __init__(self, controller: str, client: Client) -> None:
        self._controller = controller
        self._client = client
        self._by_kind: dict[tuple[str, type[object]], list[InformerGroup[object]]] = {}
        self._by_source: dict[object, InformerGroup[object]] = {}
        self._selectors: dict[InformerGroup[object], tuple[LabelSelector, str]] = {}

    def add(
        self, source: object, selection: Selection[T], informers: Mapping[str, SharedInformer[T]]
    ) -> None:
        """Register the informers of a source."""
        identity = (selection.name, cast("type[object]", selection.model))
        known = self._by_kind.setdefault(identity, [])
        added = cast("Mapping[str, SharedInformer[object]]", informers)
        same = next((each for each in known if each.informers == added), None)
        if same is None:
            same = InformerGroup(added)
            known.append(same)
            labels = LabelSelector.of(selection.label_selector)
            self._selectors[same] = labels, selection.field_selector
        self._by_source[source] = same

    @overload
    def lister(self, resource: str | GroupVersionResource) -> InformerGroup[Object]: ...
    @overload
    def lister(
        self, resource: str | GroupVersionResource, *, model: type[T]
    ) -> InformerGroup[T]: ...
    @overload
    def lister(self, resource: type[T] | Resource[T]) -> InformerGroup[T]: ...
    def lister(self, resource: Kind[T], *, model: type[T] | None = None) -> InformerGroup[T]:
        """Return the cache of a kind, named as the controller does, with its model.

        Raises:
            UsageError: there is none, or several with other selectors: see `of_source`.
        """
        return self.found(resource, model)

    def found(self, resource: Kind[T], model: type[T] | None) -> InformerGroup[T]:
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
        return cast("InformerGroup[T]", caches[0])

    def of_source(self, source: object) -> InformerGroup[object]:
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
        version = written.resource_version
        await gather(*(each.wait_until(version, timeout) for each in await self._of(written)))

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
        raise UsageError(f"{self._controller}: no cache receives {what}; {self}")

    def _shown_by(
        self, reader: InformerGroup[object], written: Object
    ) -> SharedInformer[object] | None:
        labels, fields = self._selectors[reader]
        if fields or not labels.matches(written.labels):
            return None  # field selectors can be evaluated by the server alone
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
            f"{self._controller}: no cache of {of}; {self}. Add it to owns or watches"
        )

    def __str__(self) -> str:
        names = (
            name if model is Object else f"{name} (as {model.__name__})"
            for name, model in self._by_kind
        )
        return f"it has {', '.join(names)}"

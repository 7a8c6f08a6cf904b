"""`SharedInformerFactory` for blocking code, and the informers of several namespaces as one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, TypeVar, Unpack, cast, final, overload

from kinform.cache import factory as aio
from kinform.cache import shared_informer as aio_informer
from kinform.cache._informer.lifetime import GRACE
from kinform.cache.selection import Kind, Selection, select
from kinform.cache.shared_informer import InformerOptions
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.sync._blocking import blocking, parts_of
from kinform.sync.client import Client
from kinform.sync.informer_group import InformerGroup
from kinform.sync.shared_informer import SharedInformer

__all__ = ["SharedInformerFactory"]

T = TypeVar("T")


@final
class SharedInformerFactory:
    """Makes informers and shares them: for equal kind, model, namespace and selectors, the same.

    .. code-block:: python

        factory = SharedInformerFactory(client, resync_period=600)
        pods = factory.informer("v1/pods")
        with factory:
            factory.wait_for_cache_sync(30)

    It is a `kinform.SharedInformerFactory` with the same arguments, for a `kinform.sync.Client`
    that is open.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespaces: str | Sequence[str] | None = "",
        namespace: str | None = None,
        **defaults: Unpack[InformerOptions[Object]],
    ) -> None:
        self._loop, inner = parts_of(client)
        self._inner = aio.SharedInformerFactory(
            inner, namespaces=namespaces, namespace=namespace, **defaults
        )
        self._facades: dict[aio_informer.SharedInformer[object], SharedInformer[object]] = {}

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of its informers; ``""`` means all."""
        return self._inner.namespaces

    @property
    def all_informers(self) -> Sequence[SharedInformer[object]]:
        """The informers it has made and not forgotten."""
        return tuple(map(self._facade, self._inner.all_informers))

    # --- informers

    @overload
    def configure(
        self, resource: str | GroupVersionResource, **options: Unpack[InformerOptions[Object]]
    ) -> None: ...
    @overload
    def configure(
        self,
        resource: str | GroupVersionResource,
        *,
        model: type[T],
        **options: Unpack[InformerOptions[T]],
    ) -> None: ...
    @overload
    def configure(
        self, resource: type[T] | Resource[T], **options: Unpack[InformerOptions[T]]
    ) -> None: ...
    def configure(
        self,
        resource: Kind[T],
        *,
        model: type[T] | None = None,
        **options: Unpack[InformerOptions[T]],
    ) -> None:
        """Set keywords for all informers of one kind, independent of the first caller.

        See `kinform.SharedInformerFactory.configure`.

        Raises:
            UsageError: one has been made already.
        """
        configure = cast("Callable[..., None]", self._inner.configure)
        self._loop.call(configure, resource, model=model, **options)

    @overload
    def informer(
        self,
        resource: str | GroupVersionResource,
        *,
        namespace: str | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        metadata_only: bool = False,
        **options: Unpack[InformerOptions[Object]],
    ) -> SharedInformer[Object]: ...
    @overload
    def informer(
        self,
        resource: str | GroupVersionResource,
        *,
        model: type[T],
        namespace: str | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]: ...
    @overload
    def informer(
        self,
        resource: type[T] | Resource[T],
        *,
        namespace: str | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]: ...
    def informer(
        self,
        resource: Kind[T],
        *,
        model: type[T] | None = None,
        namespace: str | None = None,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        metadata_only: bool = False,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]:
        """Return the informer of a kind; the first to ask has it made, with ``options``.

        See `kinform.SharedInformerFactory.informer`.

        Raises:
            SelectorError: a selector cannot be read.
            UsageError: the factory was shut down, or has several namespaces, or options are
                given for an informer that exists, or it has another function for an index.
        """
        make = cast("Callable[..., aio_informer.SharedInformer[T]]", self._inner.informer)
        made = self._loop.call(
            make,
            resource,
            model=model,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
            **options,
        )
        return self._facade(made)

    def informer_of(
        self, selection: Selection[T], **options: Unpack[InformerOptions[T]]
    ) -> SharedInformer[T]:
        """Return the informer of a selection: `informer` for callers that pass keywords on."""
        made = self._loop.call(functools.partial(self._inner.informer_of, selection, **options))
        return self._facade(made)

    @overload
    def informers(self, resource: str | GroupVersionResource) -> InformerGroup[Object]: ...
    @overload
    def informers(
        self, resource: str | GroupVersionResource, *, model: type[T]
    ) -> InformerGroup[T]: ...
    @overload
    def informers(self, resource: type[T] | Resource[T]) -> InformerGroup[T]: ...
    def informers(self, resource: Kind[T], *, model: type[T] | None = None) -> InformerGroup[T]:
        """Return the informers of a kind in all of the factory's namespaces, to be used as one.

        Raises:
            UsageError: the factory was shut down.
        """
        informers: Mapping[str, SharedInformer[T]] = {
            namespace: self.informer_of(select(resource, model=model, namespace=namespace))
            for namespace in self.namespaces
        }
        return InformerGroup(self._loop, informers)

    def _facade(self, informer: aio_informer.SharedInformer[T]) -> SharedInformer[T]:
        key = cast("aio_informer.SharedInformer[object]", informer)
        made = self._facades.get(key)
        if made is None:
            made = self._facades[key] = SharedInformer(self._loop, key)
        return cast("SharedInformer[T]", made)

    # --- life

    def start(self) -> None:
        """Start every informer that is not started yet; may be called again and again.

        Raises:
            UsageError: the factory was shut down.
        """
        self._loop.run(self._inner.start)
        for informer in self.all_informers:
            if not informer.is_stopped:
                informer.stop_at_exit()

    wait_for_cache_sync: Final = blocking(aio.SharedInformerFactory.wait_for_cache_sync)

    def remove(self, informer: SharedInformer[T], grace: float = GRACE) -> None:
        """Stop one informer and forget it: the next request for its kind creates a new one.

        One that is not the factory's is left alone.
        """
        mine = self._facades.pop(
            cast("aio_informer.SharedInformer[object]", informer.asynchronous), None
        )
        if mine is not None:
            self._loop.run(self._inner.remove, informer.asynchronous, grace)
            mine.stop(grace)

    def shut_down(self, grace: float = GRACE) -> None:
        """Stop all informers, all at once; no informer can be created any more."""
        informers = self.all_informers
        self._loop.run(self._inner.shut_down, grace)
        for informer in informers:
            informer.stop(0)  # it has ended; its threads may

    def __enter__(self) -> SharedInformerFactory:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shut_down()

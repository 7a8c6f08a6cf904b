"""`ResourceClient` for blocking code: the same, without ``await``."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final, Generic, TypeVar, Unpack, cast, final, overload

from kinform import resource_client as aio
from kinform.cache.shared_informer import InformerOptions
from kinform.objects.object import Object
from kinform.rest.pager import PAGE_SIZE
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.sync._batches import Reader
from kinform.sync._blocking import blocking, wrapped
from kinform.sync._loop_thread import LoopThread
from kinform.sync.shared_informer import SharedInformer
from kinform.sync.streams import LogStream, Watch
from kinform.verbs.base import Name

__all__ = ["ResourceClient"]

T = TypeVar("T")


@final
class ResourceClient(Generic[T]):
    """One kind of object in one namespace (or all). Made by `Client.resource`; costs nothing.

    Its methods are those of `kinform.ResourceClient`, and wait. Any thread may call them. Ctrl-C
    cancels the request under way.
    """

    __slots__ = ("_inner", "_loop")

    def __init__(self, loop: LoopThread, inner: aio.ResourceClient[T]) -> None:
        self._loop = loop
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    # Other views of the same kind.

    def in_namespace(self, namespace: str) -> ResourceClient[T]:
        """Return the same client for another namespace."""
        return ResourceClient(self._loop, self._inner.in_namespace(namespace))

    def subresource(self, name: str) -> ResourceClient[Object]:
        """Return a client for a part of the objects, for example ``eviction``."""
        return ResourceClient(self._loop, self._inner.subresource(name))

    @property
    def status(self) -> ResourceClient[T]:
        """The ``status`` part: ``pods.status.patch("web-0", {"status": {...}})``."""
        return ResourceClient(self._loop, self._inner.status)

    @property
    def scale(self) -> ResourceClient[Object]:
        """The ``scale`` part, an ``autoscaling/v1`` Scale."""
        return ResourceClient(self._loop, self._inner.scale)

    @property
    def metadata_only(self) -> ResourceClient[Object]:
        """Read only metadata (``PartialObjectMetadata``): far less to send and to keep."""
        return ResourceClient(self._loop, self._inner.metadata_only)

    # Reads.

    get: Final = blocking(aio.ResourceClient[T].get)
    list: Final = blocking(aio.ResourceClient[T].list)
    watch: Final = wrapped(aio.ResourceClient[T].watch, Watch[T])
    logs: Final = wrapped(aio.ResourceClient[T].logs, LogStream)

    def iterate(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        page_size: int | None = PAGE_SIZE,
    ) -> Generator[T]:
        """Yield object after object, fetching the next pages meanwhile.

        Raises:
            ResourceExpiredError: reading took longer than the server keeps the version.
        """
        items = self._inner.iterate(
            label_selector=label_selector, field_selector=field_selector, page_size=page_size
        )
        failures: list[Exception] = []

        async def pull() -> Sequence[T]:
            """Return about a page of objects: one detour to the loop for each is one too many."""
            pulled: builtins.list[T] = []
            try:
                while not failures and len(pulled) < (page_size or PAGE_SIZE):
                    pulled.append(await anext(items))
            except StopAsyncIteration:
                return pulled
            except Exception as exc:  # noqa: BLE001 - raised below, when all before it was read
                failures.append(exc)
            if failures and not pulled:
                raise failures[0]
            return pulled

        reader = Reader(self._loop, pull, what="list")
        try:
            while True:
                try:
                    item = reader.next()
                except StopIteration:
                    return
                yield item
        finally:
            reader.end(items.aclose)

    def informer(
        self,
        *,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]:
        """Return an informer of these objects; the other keywords are those of `SharedInformer`.

        Nothing is sent before it is started. The kind need not exist yet.

        Raises:
            SelectorError: a selector cannot be read.
            UsageError: an option is invalid.
        """
        informer = self._inner.informer(
            label_selector=label_selector, field_selector=field_selector, **options
        )
        return SharedInformer(self._loop, informer)

    # Writes.

    create: Final = blocking(aio.ResourceClient[T].create)
    replace: Final = blocking(aio.ResourceClient[T].replace)
    patch: Final = blocking(aio.ResourceClient[T].patch)
    apply: Final = blocking(aio.ResourceClient[T].apply)
    delete: Final = blocking(aio.ResourceClient[T].delete)
    delete_collection: Final = blocking(aio.ResourceClient[T].delete_collection)

    @overload
    def update(
        self: ResourceClient[Object],
        name: Name,
        change: Callable[[dict[str, object]], Mapping[str, object] | None],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object: ...
    @overload
    def update(
        self,
        name: Name,
        change: Callable[[T], T | None],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> T: ...
    def update(
        self,
        name: Name,
        change: Callable[..., object],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> T | Object:
        """Read an object, let ``change`` work on a copy of it, and write only the difference.

        See `kinform.ResourceClient.update`. ``change`` runs on kinform's thread: it may compute,
        and neither wait nor call the cluster.

        Raises:
            NotFoundError: the object does not exist.
            ConflictError: others kept writing.
        """
        return self._loop.run(
            self._inner.update,
            name,
            cast("Callable[[T], T | None]", change),
            field_manager=field_manager,
            dry_run=dry_run,
        )

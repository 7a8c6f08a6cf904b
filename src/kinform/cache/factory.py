"""SharedInformerFactory: makes one informer for each selection of objects, and shares it.

One class for kinds by name and by model.

client-go: informers.SharedInformerFactory, dynamicinformer and metadatainformer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TypeVar, Unpack, cast, final, overload

from kinform.cache._informer.argument_checks import check_keywords
from kinform.cache._informer.lifetime import GRACE
from kinform.cache._informer.state_waiters import wait_for_all
from kinform.cache.informer_group import InformerGroup
from kinform.cache.selection import InformerSource, Kind, Selection, check_namespaces, select
from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.cache.store.indexes import IndexFunc
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.tasks import gather

__all__ = ["SharedInformerFactory"]

T = TypeVar("T")


@final
class SharedInformerFactory:
    """Makes informers and shares them: one for equal kind, model, namespace and selectors.

    .. code-block:: python

        factory = kinform.SharedInformerFactory(client, resync_period=600)
        pods = factory.informer("v1/pods")
        nodes = factory.informer(Node)
        async with factory:
            await factory.wait_for_cache_sync(30)

    Entering it starts the informers made so far; those made later are started by the next
    `start`. Leaving it stops all of them. If a kind does not exist yet, its informer waits for it.

    Args:
        source: a `Client`.
        namespaces: the namespaces of informers that are requested without one; by default all.
            For more than one, use `informers`.
        namespace: the same for one namespace.
        defaults: keywords of `SharedInformer` for every informer; those of `configure` override
            them, and those of the first request override both. ``indexers`` are combined.
            ``transform`` and ``storage`` are for `Object`: informers of a model do not get them.

    Raises:
        UsageError: the namespaces contradict each other, a value cannot be used, or ``source`` is
            not a `Client`.
        TypeError: a keyword is unknown.
    """

    def __init__(
        self,
        source: InformerSource,
        *,
        namespaces: str | Sequence[str] | None = "",
        namespace: str | None = None,
        **defaults: Unpack[InformerOptions[Object]],
    ) -> None:
        if not hasattr(source, "informer_of"):
            raise UsageError(
                f"a factory has its informers made by a Client, and {type(source).__name__} makes "
                "none; SharedInformer(lw) is the informer of a ListerWatcher"
            )
        self._source = source
        self._namespaces = check_namespaces(namespace, namespaces)
        _check("SharedInformerFactory()", defaults)
        self._defaults = defaults
        self._of_kind: dict[str, tuple[type[object], InformerOptions[Object]]] = {}
        self._informers: dict[Selection[object], SharedInformer[object]] = {}
        self._indexers: dict[Selection[object], dict[str, IndexFunc[Object]]] = {}
        self._is_shut_down = False

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of its informers; ``""``: all namespaces."""
        return self._namespaces

    @property
    def all_informers(self) -> Sequence[SharedInformer[object]]:
        """The informers it has made and not removed."""
        return tuple(self._informers.values())

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
        """Set the keywords of all informers of one kind.

        ``transform`` and ``storage`` are only for informers of the same model. A second call for
        the same kind replaces the first.

        Raises:
            UsageError: an informer of the kind has been made already.
        """
        _check("configure()", options)
        selection = select(resource, model=model)
        kind = selection.name
        made = [one for of, one in self._informers.items() if of.name == kind]
        if not all(informer.is_stopped for informer in made):
            raise UsageError(f"there is an informer of {kind} already; configure it before")
        self._of_kind[kind] = selection.model, cast("InformerOptions[Object]", options)

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
        """Return the informer of a kind; the first call makes it, with ``options``.

        More ``indexers`` are added to an existing one; other options would be too late. One that
        has stopped is replaced by a new one.

        Raises:
            SelectorError: a selector cannot be parsed.
            UsageError: the factory was shut down, or has several namespaces, or options are
                given for an existing informer, or it has another function for an index.
        """
        if namespace is None:
            namespace, *others = self._namespaces
            if others:
                raise UsageError(
                    "this factory has several namespaces: use informers(), or pass one"
                )
        selection = select(
            resource,
            model=model,
            namespace=namespace,
            labels=label_selector,
            fields=field_selector,
            metadata_only=metadata_only,
        )
        return self.informer_of(selection, **options)

    def informer_of(
        self, selection: Selection[T], **options: Unpack[InformerOptions[T]]
    ) -> SharedInformer[T]:
        """Return the informer of a selection: `informer` with the arguments as one value."""
        _check("informer()", options)
        return self._shared(selection, options)

    @overload
    def informers(self, resource: str | GroupVersionResource) -> InformerGroup[Object]: ...
    @overload
    def informers(
        self, resource: str | GroupVersionResource, *, model: type[T]
    ) -> InformerGroup[T]: ...
    @overload
    def informers(self, resource: type[T] | Resource[T]) -> InformerGroup[T]: ...
    def informers(self, resource: Kind[T], *, model: type[T] | None = None) -> InformerGroup[T]:
        """Return the informers of a kind in all namespaces of the factory, as a group.

        Raises:
            UsageError: the factory was shut down.
        """
        return InformerGroup(
            {
                namespace: self._shared(select(resource, model=model, namespace=namespace), {})
                for namespace in self._namespaces
            }
        )

    def _shared(self, selection: Selection[T], options: InformerOptions[T]) -> SharedInformer[T]:
        if self._is_shut_down:
            raise UsageError("this factory was shut down; make a new one")
        identity = cast("Selection[object]", selection)
        made = cast("SharedInformer[T] | None", self._informers.get(identity))
        # client-go's factory keeps a stopped informer for ever, and it cannot be started again
        # (kubernetes#111310).
        if made is not None and not made.is_stopped:
            self._add_late(made, options, known=self._indexers[identity])
            return made
        configured_for, of_kind = self._of_kind.get(selection.name, (Object, {}))
        merged = _merged(
            _suited(self._defaults, Object, selection.model),
            _suited(of_kind, configured_for, selection.model),
            cast("InformerOptions[Object]", options),
        )
        informer = self._source.informer_of(selection, **cast("InformerOptions[T]", merged))
        self._informers[identity] = cast("SharedInformer[object]", informer)
        # Kept for `_add_late`: the informer has only the wrapped functions, which cannot be
        # compared.
        self._indexers[identity] = dict(merged.get("indexers") or {})
        return informer

    def _add_late(
        self,
        informer: SharedInformer[T],
        options: InformerOptions[T],
        *,
        known: dict[str, IndexFunc[Object]],
    ) -> None:
        if late := sorted(options.keys() - {"indexers"}):
            raise UsageError(
                f"{informer.name} exists already, so {', '.join(late)} would have no effect; "
                "give options with the first request, or to configure()"
            )
        indexers = cast("InformerOptions[Object]", options).get("indexers") or {}
        # An index that silently has another function than the caller gave would return wrong
        # objects.
        other = [name for name in indexers if indexers[name] != known.get(name, indexers[name])]
        if other:
            raise UsageError(
                f"{informer.name} exists already, with another function for the index "
                f"{other[0]!r}; share the function, or choose another name"
            )
        fresh = {name: made for name, made in indexers.items() if name not in known}
        informer.add_indexers(cast("Mapping[str, IndexFunc[T]]", fresh))
        known.update(fresh)

    # --- lifecycle

    async def start(self) -> None:
        """Start every informer that is not started yet; may be called many times.

        Raises:
            UsageError: the factory was shut down.
        """
        if self._is_shut_down:
            raise UsageError("this factory was shut down; make a new one")
        for informer in self._informers.values():
            if not informer.is_started and not informer.is_stopped:
                await informer.start()

    async def wait_for_cache_sync(self, timeout: float | None = None) -> None:
        """Wait until every informer has synced.

        Raises:
            TimeoutError: not all have in time; the message names them.
            UsageError: one was not started, has failed, or was stopped before it had synced.
        """
        await wait_for_all(self._informers.values(), timeout)

    async def remove(self, informer: SharedInformer[T], grace: float = GRACE) -> None:
        """Stop and remove one informer: the next request for its kind makes a new one.

        An informer of another origin is ignored.
        """
        for selection, made in tuple(self._informers.items()):
            # By identity: an equal selection may belong to the informer that has replaced this one.
            if made is informer:
                # Before the await: a request in the meantime must make a new informer, not return
                # the one that stops.
                del self._informers[selection], self._indexers[selection]
                await informer.stop(grace)

    async def shut_down(self, grace: float = GRACE) -> None:
        """Stop all informers concurrently; no more can be requested."""
        self._is_shut_down = True
        # Concurrently: one after the other, each would add its own grace.
        await gather(*(informer.stop(grace) for informer in self._informers.values()))

    async def __aenter__(self) -> SharedInformerFactory:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.shut_down()


def _check(caller: str, options: Mapping[str, object]) -> None:
    check_keywords(options, InformerOptions.__annotations__, caller=caller)


def _suited(
    options: InformerOptions[Object], meant_for: type[object], model: type[object]
) -> InformerOptions[Object]:
    """Return those of ``options``, ``meant_for`` one model, that informers of ``model`` get."""
    suited = options.copy()
    if model is not meant_for:
        # A transform of another model would get objects that it does not know; zstd packs whole
        # objects only.
        suited.pop("transform", None)
        suited.pop("storage", None)
    return suited


def _merged(*layers: InformerOptions[Object]) -> InformerOptions[Object]:
    """Return the options of all ``layers``: later ones override, indexers are combined."""
    merged, indexers = InformerOptions[Object](), dict[str, IndexFunc[Object]]()
    for layer in layers:
        merged.update(layer)
        indexers.update(layer.get("indexers") or {})
    if indexers:
        merged["indexers"] = indexers
    return merged

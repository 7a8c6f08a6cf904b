"""`connect` and `Client` for blocking code: the entry point, without ``await``."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeVar, Unpack, cast, final, overload

from kinform import client as aio
from kinform import resource_client as aio_kind
from kinform.cache.selection import Selection, select
from kinform.cache.shared_informer import InformerOptions
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.resource_client import ALL_NAMESPACES
from kinform.rest.config import Config, CredentialPluginPolicy
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.transport import Transport
from kinform.rest.warnings import WarningHandler
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.sync import _loop_thread
from kinform.sync._blocking import blocking
from kinform.sync.groups import Groups
from kinform.sync.resource_client import ResourceClient
from kinform.sync.shared_informer import SharedInformer

__all__ = ["Client", "connect"]

T = TypeVar("T")


def connect(
    config: str | os.PathLike[str] | Config | None = None,
    *,
    context: str | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    namespace: str | None = None,
    credential_plugin_policy: CredentialPluginPolicy | None = None,
    transport: Transport | None = None,
    rate_limiter: RateLimiter | None = None,
    warning_handler: WarningHandler | None = None,
    reconnect_rate: float | None = None,
) -> Client:
    """Return a client for the cluster that kubectl would talk to, for blocking code.

    .. code-block:: python

        with connect() as client: ...

    The arguments are those of `kinform.connect`. Nothing is read, and no thread is started,
    before the client is entered.
    """
    inner = aio.connect(
        config,
        context=context,
        kubeconfig=kubeconfig,
        namespace=namespace,
        credential_plugin_policy=credential_plugin_policy,
        transport=transport,
        rate_limiter=rate_limiter,
        warning_handler=warning_handler,
        reconnect_rate=reconnect_rate,
    )
    return Client(inner)


@final
class Client(Groups):
    """A connection to one API server as one user; made by `connect`.

    Open it with ``with``, once. Any thread may use it and all that is made from it: Flask's, a
    notebook's (its own event loop is not affected), a handler's. A forked child opens its own.

    ``client.core_v1``, ``client.apps_v1`` and so on lead to clients typed by generated models.

    Raises:
        ConfigError: on entering, if no usable configuration is found; lists the places searched.
    """

    def __init__(self, inner: aio.Client) -> None:
        self._inner = inner
        self._opened: _loop_thread.LoopThread | None = None

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def _loop(self) -> _loop_thread.LoopThread:
        if self._opened is None:
            raise UsageError("this client is not open yet; enter it first: `with client`")
        return self._opened

    @property
    def asynchronous(self) -> aio.Client:
        """The client itself, for functions that `kinform.sync.run` runs."""
        return self._inner

    def __enter__(self) -> Client:
        return self.open()

    def open(self) -> Client:
        """Open the client, where ``with`` does not fit; `close` should follow.

        Raises:
            ConfigError: no usable configuration is found.
            UsageError: it was opened before.
        """
        if self._opened is not None:
            self._opened.refuse_children()
        self._opened = loop = _loop_thread.current()
        loop.note_open(self._inner, self._inner.aclose)
        try:
            loop.run(self._inner.open)
        except UsageError:
            raise
        except BaseException:
            loop.spawn(self._inner.aclose)
            loop.forget(self._inner)
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; requests under way fail. Calling it again does nothing."""
        if self._opened is not None:
            self._opened.run(self._inner.aclose)
            self._opened.forget(self._inner)

    @property
    def is_open(self) -> bool:
        """True from opening to closing."""
        return self._inner.is_open

    @property
    def config(self) -> Config:
        """The configuration of this client."""
        self._loop.refuse_children()
        return self._inner.config

    def guarded(self, guard: Callable[[], None]) -> Client:
        """Return the same client, but ``guard`` is asked before every write.

        See `kinform.Client.guarded`. ``guard`` runs on kinform's thread.
        """
        view = Client(self._inner.guarded(guard))
        view._opened = self._loop
        return view

    @overload
    def resource(
        self, resource: str | GroupVersionResource, *, namespace: str | None = None
    ) -> ResourceClient[Object]: ...
    @overload
    def resource(
        self, resource: str | GroupVersionResource, *, model: type[T], namespace: str | None = None
    ) -> ResourceClient[T]: ...
    @overload
    def resource(
        self, resource: type[T] | Resource[T], *, namespace: str | None = None
    ) -> ResourceClient[T]: ...
    def resource(
        self,
        resource: str | GroupVersionResource | type[T] | Resource[T],
        *,
        model: type[T] | None = None,
        namespace: str | None = None,
    ) -> ResourceClient[T]:
        """Return the client for one kind of object: see `kinform.Client.resource`."""
        self._loop.refuse_children()
        made = cast("Callable[..., aio_kind.ResourceClient[T]]", self._inner.resource)
        return ResourceClient(self._loop, made(resource, model=model, namespace=namespace))

    @overload
    def informer(
        self,
        resource: str | GroupVersionResource,
        *,
        namespace: str | None = ALL_NAMESPACES,
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
        namespace: str | None = ALL_NAMESPACES,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]: ...
    @overload
    def informer(
        self,
        resource: type[T] | Resource[T],
        *,
        namespace: str | None = ALL_NAMESPACES,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]: ...
    def informer(
        self,
        resource: str | GroupVersionResource | type[T] | Resource[T],
        *,
        model: type[T] | None = None,
        namespace: str | None = ALL_NAMESPACES,
        label_selector: LabelSelectorLike = None,
        field_selector: FieldSelectorLike = None,
        metadata_only: bool = False,
        **options: Unpack[InformerOptions[T]],
    ) -> SharedInformer[T]:
        """Return an informer: a cache of one kind of object, kept equal to the server.

        .. code-block:: python

            with client.informer("v1/pods", namespace="default") as pods:
                pods.wait_synced(30)

        The arguments are those of `kinform.Client.informer`.

        Raises:
            SelectorError: a selector cannot be read.
            UsageError: an option is invalid, or kind or namespace cannot be named so.
        """
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
        """Return an informer for a selection: `informer` for callers that pass keywords on."""
        self._loop.refuse_children()
        return SharedInformer(self._loop, self._inner.informer_of(selection, **options))

    find: Final = blocking(aio.Client.find)
    api_resources: Final = blocking(aio.Client.api_resources)
    version: Final = blocking(aio.Client.version)

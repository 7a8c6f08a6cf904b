"""`connect` and `Client`: the entry point of kinform."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar, Unpack, cast, final, overload

import msgspec

from kinform.cache.selection import Selection, check_namespace, select
from kinform.cache.shared_informer import InformerOptions, SharedInformer
from kinform.clientset.groups import Groups
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.meta import GroupVersion, GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource, model_decoder, model_or_object, resource_of
from kinform.resource_client import ALL_NAMESPACES, ResourceClient
from kinform.rest.auth.credentials import Credentials
from kinform.rest.client import RESTClient
from kinform.rest.clientcmd import loading
from kinform.rest.config import Config, CredentialPluginPolicy
from kinform.rest.connection import Connection
from kinform.rest.discovery import Discovery
from kinform.rest.rate_limits import RateLimiter
from kinform.rest.reconnects import check_reconnect_rate
from kinform.rest.restmapper import APIResource
from kinform.rest.transport import Transport
from kinform.rest.transport.aiohttp_transport import AiohttpTransport
from kinform.rest.transport.proxy import proxy_for
from kinform.rest.transport.tls import TlsSource
from kinform.rest.warnings import WarningHandler
from kinform.selectors import FieldSelectorLike, LabelSelectorLike
from kinform.verbs._finder import Finder

__all__ = ["Client", "VersionInfo", "connect"]

T = TypeVar("T")


class VersionInfo(msgspec.Struct, frozen=True):
    """The response of ``/version``."""

    major: str = ""
    minor: str = ""
    git_version: str = msgspec.field(name="gitVersion", default="")
    platform: str = ""


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
    """Return a client for the cluster that kubectl would talk to.

    .. code-block:: python

        async with kinform.connect() as client: ...

    Without arguments: ``$KUBECONFIG``, then ``~/.kube/config``, then the service account of the
    pod this runs in. ``config`` may be a URL, a kubeconfig's path or a `Config`. Nothing is read
    before the client is entered.

    Args:
        context: the kubeconfig context to use instead of the current one.
        kubeconfig: the file to read instead of the default ones.
        namespace: the default namespace, instead of the context's.
        credential_plugin_policy: the programs that a kubeconfig may run for credentials:
            ``"AllowAll"``, ``"DenyAll"``, or a list of paths and names; by default all, as kubectl.
        transport: sends the requests, instead of HTTP sockets.
        rate_limiter: limits the rate of requests; none by default.
        warning_handler: called with the server's warnings; by default each is logged once.
        reconnect_rate: the limit of informers that reconnect per second, instead of that of the
            `Config` (by default 5, or one for every 20 informers if that is more).

    Raises:
        UsageError: ``reconnect_rate`` is not positive.
    """
    check_reconnect_rate(reconnect_rate)

    def load() -> Config:
        loaded = loading.load(
            config,
            context=context,
            kubeconfig=kubeconfig,
            namespace=namespace,
            credential_plugin_policy=credential_plugin_policy,
        )
        if reconnect_rate is not None:
            return dataclasses.replace(loaded, reconnect_rate=reconnect_rate)
        return loaded

    return Client(
        load, transport=transport, rate_limiter=rate_limiter, warning_handler=warning_handler
    )


@final
class Client(Groups):
    """A connection to one API server as one user; made by `connect`.

    Open it with ``async with``; it may be entered and left in different tasks, once. It belongs
    to the event loop and the process in which it is opened: a request from another loop, or from
    a forked child, is a `UsageError`. Everything made from it may be used by any task of that
    loop, and only while the client is open.

    ``client.core_v1``, ``client.apps_v1`` and so on are the typed clients of the built-in kinds.

    Raises:
        ConfigError: on entering, if no valid configuration was found; lists what was tried.
    """

    def __init__(
        self,
        config: Config | Callable[[], Config],
        *,
        transport: Transport | None = None,
        rate_limiter: RateLimiter | None = None,
        warning_handler: WarningHandler | None = None,
    ) -> None:
        self._load: Callable[[], Config] = config if callable(config) else lambda: config
        self._transport = transport
        self._rate_limiter = rate_limiter
        self._warning_handler = warning_handler
        self._config: Config | None = None
        self._connection: Connection | None = None
        self._discovery: Discovery | None = None
        self._opening = False
        self._closed = False
        self._is_view = False

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open" if self._connection else "not open"
        server = f" {self._config.server}" if self._config else ""
        return f"<Client{server} {state}>"

    async def __aenter__(self) -> Client:
        return await self.open()

    async def open(self) -> Client:
        """Open the client, where ``async with`` does not fit; `aclose` must follow.

        Raises:
            ConfigError: no valid configuration was found.
            UsageError: it was opened before.
        """
        if self._opening or self._closed:
            raise UsageError("this client was opened before; connect() gives a new one")
        self._opening = True
        self._config = config = await offload(self._load)
        self._connection = open_connection(
            config,
            transport=self._transport,
            rate_limiter=self._rate_limiter,
            warning_handler=self._warning_handler,
        )
        self._connection.bind()
        self._discovery = Discovery(self._connection)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection; requests in flight fail. Calling it again does nothing."""
        self._closed = True
        if self._connection is not None and not self._is_view:
            await self._connection.aclose()

    @property
    def _is_closed(self) -> bool:
        return self._closed or (self._connection is not None and self._connection.is_closed)

    @property
    def is_open(self) -> bool:
        """True while the client is open."""
        return self._connection is not None and not self._is_closed

    @property
    def config(self) -> Config:
        """The configuration of this client."""
        return self._opened(self._config)

    def rest(self, api_version: str | GroupVersion = "v1") -> RESTClient:
        """Return the RESTClient of one API version: ``client.rest("apps/v1")``."""
        return RESTClient(self._opened(self._connection), api_version)

    def guarded(self, guard: Callable[[], None]) -> Client:
        """Return a view of this client that also calls ``guard`` before every write.

        Guards are called in the order they were added, when the connection is ready, right before
        the first byte is sent, and again for each retry. An exception of a guard reaches the
        caller, and nothing was sent. The view is open as long as this client is, and need not be
        closed.
        """
        view = copy.copy(self)
        view._connection = self._opened(self._connection).guarded(guard)  # noqa: SLF001 - ours
        view._is_view = True  # noqa: SLF001
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
        """Return the client for one kind of object.

        Args:
            resource: ``"pods"``, ``"po"``, ``"Pod"``, ``"deployments.apps"``,
                ``"apps/v1/deployments"``, a model class that says which resource it is
                (``__resource__``), or a `Resource`.
            model: read objects as this class instead of `Object`.
            namespace: instead of the default one; `ALL_NAMESPACES` for all.

        Raises:
            UsageError: the name or the namespace is not valid, or the model is not supported.
        """
        return self._resource(resource, model, namespace=namespace)

    def _resource(
        self,
        resource: str | GroupVersionResource | type[T] | Resource[T],
        model: type[T] | None,
        *,
        namespace: str | None,
    ) -> ResourceClient[T]:
        connection = self._opened(self._connection)
        place = self.config.namespace if namespace is None else check_namespace(namespace)
        if isinstance(resource, Resource):
            if model is not None:
                raise UsageError("a Resource has its model; use resource.with_model(...)")
            return ResourceClient(
                connection, Finder(resource), resource.model, namespace=place, label=str(resource)
            )
        if isinstance(resource, type):
            if model is not None:
                raise UsageError("give a model class, or a name with model=, not both")
            model, resource = resource, _declared(resource)
        if not isinstance(resource, str | GroupVersionResource):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
            raise UsageError(f"{resource!r} names no resource; give 'v1/pods' or a model class")
        chosen = model_or_object(model)
        model_decoder(chosen)  # an unusable model is an error here, not at the first response
        name = str(resource)
        finder = Finder(
            lambda fresh: self._opened(self._discovery).find(name, fresh=fresh),
            find_again=lambda: self._opened(self._discovery).find_again(name),
        )
        return ResourceClient(connection, finder, chosen, namespace=place, label=str(resource))

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

            async with client.informer("v1/pods", namespace="default") as pods:
                await pods.wait_synced(30)

        Args:
            resource: as for `resource`. The kind need not exist yet: the informer waits for it.
            model: keep objects as this class instead of `Object`.
            namespace: the only namespace, instead of all; ``None`` is all as well.
            label_selector: the labels objects must have.
            field_selector: the fields objects must have.
            metadata_only: request only the metadata of objects, which is far less.
            options: the keywords of `SharedInformer`.

        Raises:
            SelectorError: a selector is not valid.
            UsageError: an option, the name or the namespace is not valid.
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
        """Return an informer of a `Selection`; see `informer`."""
        named = isinstance(selection.resource, str)
        model = selection.model if named else None
        client = self._resource(selection.resource, model, namespace=selection.namespace)
        if selection.metadata_only:
            client = cast("ResourceClient[T]", client.metadata_only)
        if "name" not in options:  # a namespace and selectors are for the log alone
            options["name"] = str(selection)
            options.setdefault("label", selection.name)
        return client.informer(
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            **options,
        )

    async def find(self, resource: str, *, fresh: bool = False) -> APIResource:
        """Return the discovery entry of a resource named as in `resource`.

        With ``fresh`` discovery runs again even if the resource is known.

        Raises:
            UnknownResourceError: the server has no resource of that name.
            AmbiguousResourceError: several API groups have it.
            NotFoundError: the discovery paths themselves are answered with 404.
        """
        return await self._opened(self._discovery).find(resource, fresh=fresh)

    async def api_resources(self) -> Sequence[APIResource]:
        """Run discovery and return every resource of the server."""
        return (await self._opened(self._discovery).resources(fresh=True)).resources

    async def version(self) -> VersionInfo:
        """Return the server's version."""
        return await self.rest().get().abs_path("/version").into(VersionInfo)

    def _opened(self, part: T | None) -> T:
        if part is None or self._is_closed:
            state = (
                "closed" if self._is_closed else "not open yet; enter it first: `async with client`"
            )
            raise UsageError(f"this client is {state}")
        return part


def open_connection(
    config: Config,
    *,
    transport: Transport | None = None,
    rate_limiter: RateLimiter | None = None,
    warning_handler: WarningHandler | None = None,
) -> Connection:
    """Create the connection described by a `Config`. No I/O: files are read at first use."""
    tls = TlsSource(config)
    if transport is None:
        transport = AiohttpTransport(
            tls=tls.context,
            server_hostname=tls.server_hostname,
            proxy=proxy_for(config),
            connect_timeout=config.connect_timeout,
        )
    return Connection(
        config.server,
        transport,
        credentials=Credentials(config, tls=tls),
        rate_limiter=rate_limiter,
        warning_handler=warning_handler,
        compression=config.compression,
        agent=config.user_agent,
        read_timeout=config.read_timeout,
        answer_timeout=config.answer_timeout,
        max_object_size=config.max_object_size,
        max_list_size=config.max_list_size,
        reconnect_rate=config.reconnect_rate,
        on_tls_failure=tls.invalidate,
    )


def _declared(model: type[object]) -> str:
    name = resource_of(model)
    if name is None:
        raise UsageError(
            f"{model.__name__} does not say which resource it is; set "
            "__resource__ = 'v1/pods' in it, or call resource('v1/pods', model=...)"
        )
    return name

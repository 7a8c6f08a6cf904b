"""What typed clients are made of: the verbs of `kinform.verbs`, each only where the API has it."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast, final

from kinform.cache.selection import check_namespace
from kinform.errors import UsageError
from kinform.meta import GroupVersionKind, GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource, model_decoder
from kinform.resource_client import ResourceClient
from kinform.rest.client import RESTClient
from kinform.rest.config import Config
from kinform.verbs._finder import Finder
from kinform.verbs.base import ResourceBase
from kinform.verbs.reading import Gets, Lists, Watches
from kinform.verbs.writing import Changes, Creates, Deletes, DeletesCollections

__all__ = [
    "Connected",
    "GroupClient",
    "HasParts",
    "InNamespaces",
    "Objects",
    "Part",
    "resource_for",
]

T = TypeVar("T")
M = TypeVar("M")
C = TypeVar("C", bound=ResourceBase[Any])


class Connected(Protocol):
    """What a group needs of a client."""

    def rest(self, api_version: str) -> RESTClient:
        """Return the RESTClient of one API version."""
        ...

    @property
    def config(self) -> Config:
        """What the client was configured with."""
        ...


class _Kind(Protocol):
    """What generated models say of themselves."""

    __gvk__: ClassVar[GroupVersionKind]
    __gvr__: ClassVar[GroupVersionResource]
    __namespaced__: ClassVar[bool]


def resource_for(model: type[T]) -> Resource[T]:
    """Return the `Resource` of a generated model. Nobody has to be asked for it.

    >>> from kinform.clientset import apps_v1
    >>> str(resource_for(apps_v1.Deployment))
    'apps/v1/deployments'

    Raises:
        UsageError: the class does not say which kind it is.
    """
    return cast("Resource[T]", _resource(cast("Hashable", model)))


@functools.cache
def _resource(model: Hashable) -> Resource[object]:
    if not hasattr(model, "__gvk__"):
        raise UsageError(f"{model!r} does not say which kind it is; give a generated model")
    kind = cast("type[_Kind]", model)
    return Resource(
        gvr=kind.__gvr__,
        kind=kind.__gvk__.kind,
        namespaced=kind.__namespaced__,
        model=cast("type[object]", kind),
        decode=model_decoder(kind),
    )


class GroupClient:
    """The typed clients of one API version; made by a `Client`: ``client.apps_v1``.

    Costs nothing, and sends nothing.
    """

    api_version: ClassVar[str] = ""
    """Group and version, as objects carry them."""

    def __init__(self, client: Connected) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.api_version}>"

    @property
    def rest(self) -> RESTClient:
        """The RESTClient of this API version, for requests of any other form."""
        return self._client.rest(self.api_version)

    def _of(self, make: type[C], model: type[object], namespace: str | None = None) -> C:
        resource = resource_for(model)
        place = ""
        if resource.namespaced:
            default = self._client.config.namespace
            place = default if namespace is None else check_namespace(namespace)
        connection = self.rest.connection
        return make(connection, Finder(resource), model, namespace=place, label=str(resource))


class InNamespaces(ResourceBase[T]):
    """A kind whose objects live in namespaces."""

    def in_namespace(self, namespace: str) -> Self:
        """Return the same client for another namespace; `ALL_NAMESPACES` for all."""
        place = self._elsewhere(namespace=check_namespace(namespace))
        return type(self)(self._connection, self._find, self._model, **place)


class Objects(
    Gets[T], Lists[T], Watches[T], Creates[T], Changes[T], Deletes[T], DeletesCollections[T]
):
    """A kind with all the usual verbs."""

    @property
    def metadata_only(self) -> ResourceClient[Object]:
        """Read only metadata (``PartialObjectMetadata``): far less to send and to keep."""
        place = self._elsewhere(partial="PartialObjectMetadata")
        return ResourceClient(self._connection, self._find, Object, **place)


@final
class Part(Gets[T], Changes[T]):
    """A subresource that is read and written by itself, such as ``status`` or ``scale``.

    Methods take the name of the object that it is a part of.
    """


class HasParts(ResourceBase[T]):
    """A kind with subresources."""

    def _part(self, name: str, model: type[M]) -> Part[M]:
        return Part(self._connection, self._find, model, **self._elsewhere(subresource=name))

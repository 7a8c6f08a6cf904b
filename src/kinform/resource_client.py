"""`ResourceClient`: all verbs for one resource, typed.

Reads return ``T``. Writes take anything that can be encoded as JSON and return ``T``.
"""

from __future__ import annotations

from typing import TypeVar, final

from kinform.cache.selection import check_namespace
from kinform.objects.object import Object
from kinform.verbs.base import ALL_NAMESPACES
from kinform.verbs.reading import Gets, Lists, ReadsLogs, Watches
from kinform.verbs.writing import Changes, Creates, Deletes, DeletesCollections

__all__ = ["ALL_NAMESPACES", "ResourceClient"]

T = TypeVar("T")
M = TypeVar("M")


@final
class ResourceClient(
    Gets[T],
    Lists[T],
    Watches[T],
    ReadsLogs[T],
    Creates[T],
    Changes[T],
    Deletes[T],
    DeletesCollections[T],
):
    """One resource in one namespace (or all). Made by `Client.resource`; cheap to create.

    Nothing is sent before the first ``await``, which also runs discovery. A name may be
    given as an `ObjectName`, whose namespace is then used.

    Every method raises `ApiError` when the server refuses, `TransportError` when it does not
    answer, `DecodeError` when its response cannot be decoded, and `UsageError` for calls that
    cannot work; these are not repeated below.
    """

    def in_namespace(self, namespace: str) -> ResourceClient[T]:
        """Return the same client for another namespace; `ALL_NAMESPACES` for all."""
        place = self._elsewhere(namespace=check_namespace(namespace))
        return ResourceClient(self._connection, self._find, self._model, **place)

    def subresource(self, name: str) -> ResourceClient[Object]:
        """Return a client for a part of the objects, for example ``eviction``."""
        return self._copy(Object, subresource=name)

    @property
    def status(self) -> ResourceClient[T]:
        """The ``status`` part: ``await pods.status.patch("web-0", {"status": {...}})``."""
        return self._copy(self._model, subresource="status")

    @property
    def scale(self) -> ResourceClient[Object]:
        """The ``scale`` part, an ``autoscaling/v1`` Scale."""
        return self.subresource("scale")

    @property
    def metadata_only(self) -> ResourceClient[Object]:
        """A client that reads only metadata (``PartialObjectMetadata``), which is far less."""
        return self._copy(Object, partial="PartialObjectMetadata")

    def _copy(
        self, model: type[M], *, subresource: str | None = None, partial: str | None = None
    ) -> ResourceClient[M]:
        place = self._elsewhere(subresource=subresource, partial=partial)
        return ResourceClient(self._connection, self._find, model, **place)

"""Typed access: from a blocking client to the kinds of one API version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kinform.clientset.typed import resource_for

if TYPE_CHECKING:
    from kinform.sync.client import Client
    from kinform.sync.resource_client import ResourceClient

__all__ = ["Group"]

T = TypeVar("T")


class Group:
    """The kinds of one API version; made by a `Client`: ``client.apps_v1``.

    Costs nothing, and sends nothing. Its clients have all verbs: what the API does not have, the
    server refuses.
    """

    __slots__ = ("_client",)

    def __init__(self, client: Client) -> None:
        self._client = client

    def _of(self, model: type[T], namespace: str | None = None) -> ResourceClient[T]:
        return self._client.resource(resource_for(model), namespace=namespace)

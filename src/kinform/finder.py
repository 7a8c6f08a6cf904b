"""Finder: which resource a name means on this server, looked up once and again when it is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import NamedTuple, final

from kinform.errors import NotFoundError
from kinform.meta import GroupVersionResource
from kinform.resource import Resource
from kinform.rest.mapping import APIResource

__all__ = ["Finder", "Found"]


class Found(NamedTuple):
    """What has to be known of a resource to ask for its objects."""

    gvr: GroupVersionResource
    kind: str
    namespaced: bool


@final
class Finder:
    """Tells which resource is meant; the server is asked when it is first needed.

    Given a `Resource`, nobody is asked at all. Otherwise ``find`` is: its argument tells whether
    an answer from memory will not do.
    """

    def __init__(self, find: Callable[[bool], Awaitable[APIResource]] | Resource[object]) -> None:
        self._find = None if isinstance(find, Resource) else find
        self._found: Found | None = _essence(find) if isinstance(find, Resource) else None
        self._must_ask = False

    async def __call__(self) -> Found:
        """Return what was found.

        Raises:
            UnknownResourceError: the server has nothing of that name.
            AmbiguousResourceError: several API groups have it.
        """
        if self._found is None:
            assert self._find is not None
            self._found = _essence(await self._find(self._must_ask))
            self._must_ask = False
        return self._found

    @property
    def namespaced(self) -> bool | None:
        """Whether the objects have namespaces; ``None`` while nothing was found."""
        return None if self._found is None else self._found.namespaced

    @contextlib.contextmanager
    def doubted_if_not_found(self) -> Generator[None]:
        """Ask the server anew after a 404: a CRD may be gone, or back with another scope."""
        try:
            yield
        except NotFoundError:
            if self._find is not None:
                self._found, self._must_ask = None, True
            raise


def _essence(resource: APIResource | Resource[object]) -> Found:
    return Found(resource.gvr, resource.kind, resource.namespaced)

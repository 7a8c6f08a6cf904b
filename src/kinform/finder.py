"""Finder: which resource a name means on this server; looked up once, and again after a 404."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple, final

from kinform.errors import ApiError, KinformError, NotFoundError, UnknownResourceError
from kinform.meta import GroupVersionResource
from kinform.resource import Resource
from kinform.rest.mapping import APIResource

__all__ = ["Finder", "Found"]

_FRESH: Final = True
_FROM_MEMORY: Final = False


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

    def __init__(
        self,
        find: Callable[[bool], Awaitable[APIResource]] | Resource[object],
        *,
        find_again: Callable[[], Awaitable[APIResource]] | None = None,
    ) -> None:
        self._find = None if isinstance(find, Resource) else find
        self._find_again = find_again
        self._found: Found | None = _essence(find) if isinstance(find, Resource) else None

    async def __call__(self) -> Found:
        """Return what was found.

        Raises:
            UnknownResourceError: the server has nothing of that name.
            AmbiguousResourceError: several API groups have it.
        """
        if self._found is None:
            assert self._find is not None
            self._found = _essence(await self._find(_FROM_MEMORY))
        return self._found

    @property
    def known(self) -> GroupVersionResource | None:
        """The resource, if it was found and is not in doubt."""
        return None if self._found is None else self._found.gvr

    @property
    def namespaced(self) -> bool | None:
        """Whether the objects have namespaces; ``None`` while nothing was found."""
        return None if self._found is None else self._found.namespaced

    @property
    def found(self) -> Found | None:
        """What requests use now; ``None`` before the first one."""
        return self._found

    async def has_moved(self, error: ApiError, used: Found | None) -> bool:
        """Return whether the path that was refused is not the resource's path any more.

        The server is asked for that, though not too often, unless ``error`` is about an object.

        Args:
            error: the answer.
            used: what the request used: another request may have found the new path meanwhile.
        """
        details = error.status.details
        if self._find_again is None or (details is not None and details.name):
            return False
        used = used or self._found
        if self._found != used:
            return True
        with contextlib.suppress(KinformError):  # the error at hand says more
            self._take(_essence(await self._find_again()))
        return self._found != used

    def _take(self, found: Found) -> None:
        """Use another version or scope of the resource, but never another resource.

        Discovery can be incomplete: if the server's core group does not answer for a moment,
        "pods" are those of metrics.k8s.io.
        """
        if self._found is None or _identity(self._found) == _identity(found):
            self._found = found

    @contextlib.asynccontextmanager
    async def checked_if_not_found(self) -> AsyncGenerator[None]:
        """Ask discovery anew after a 404: a CRD may be gone, or back with another scope.

        Raises:
            UnknownResourceError: discovery does not know the resource either.
        """
        try:
            yield
        except NotFoundError as exc:
            if self._find is not None:
                await self._check(self._find, exc)
            raise

    async def _check(
        self, find: Callable[[bool], Awaitable[APIResource]], cause: NotFoundError
    ) -> None:
        try:
            found = await find(_FRESH)
        except UnknownResourceError as exc:
            # What was found before is kept: the next list shows whether it is still a 404.
            raise exc from cause
        except KinformError:  # it says nothing: the 404 is all that is known
            return
        self._take(_essence(found))


def _identity(found: Found) -> tuple[str, str, str]:
    return found.gvr.group, found.gvr.resource, found.kind


def _essence(resource: APIResource | Resource[object]) -> Found:
    return Found(resource.gvr, resource.kind, resource.namespaced)

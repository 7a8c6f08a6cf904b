"""`Finder`: the resource behind a name; discovered once, and again after a 404."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, NamedTuple, final

from kinform.errors import ApiError, KinformError, NotFoundError, UnknownResourceError
from kinform.meta import GroupVersionResource
from kinform.resource import Resource
from kinform.rest.request import api_prefix, check_segment
from kinform.rest.restmapper import APIResource

__all__ = ["Finder", "Found"]

_FRESH: Final = True
_FROM_MEMORY: Final = False


class Found(NamedTuple):
    """The facts about a resource that requests for its objects need."""

    gvr: GroupVersionResource
    kind: str
    namespaced: bool
    prefix: str
    """The path of its API version, checked: ``/api/v1``."""


@final
class Finder:
    """Finds the resource of a name by discovery, at the first request.

    Given a `Resource`, no discovery is needed. Otherwise ``find`` is called: its argument is
    whether discovery must send a request instead of using its cache.
    """

    def __init__(
        self,
        find: Callable[[bool], Awaitable[APIResource]] | Resource[object],
        *,
        find_again: Callable[[], Awaitable[APIResource]] | None = None,
    ) -> None:
        self._find = None if isinstance(find, Resource) else find
        self._find_again = find_again
        self.found: Found | None = _essence(find) if isinstance(find, Resource) else None
        """The facts that requests use now; ``None`` before the first one."""

    async def __call__(self) -> Found:
        """Return the facts, by discovery if necessary.

        Raises:
            UnknownResourceError: the server has nothing of that name.
            AmbiguousResourceError: several API groups have it.
        """
        if self.found is None:
            assert self._find is not None
            self.found = _essence(await self._find(_FROM_MEMORY))
        return self.found

    @property
    def known(self) -> GroupVersionResource | None:
        """The resource, if it was found."""
        return None if self.found is None else self.found.gvr

    @property
    def namespaced(self) -> bool | None:
        """True if the objects are namespaced; ``None`` before discovery."""
        return None if self.found is None else self.found.namespaced

    async def has_moved(self, error: ApiError, used: Found | None) -> bool:
        """Return whether the path of the resource has changed since the refused request.

        Discovery runs for that, rate limited, unless ``error`` is about an object.

        Args:
            error: the response.
            used: the facts that the request used: another request may have found new ones since.
        """
        details = error.status.details
        if self._find_again is None or (details is not None and details.name):
            return False
        used = used or self.found
        if self.found != used:
            return True
        with contextlib.suppress(KinformError):  # the caller's error says more
            self._take(_essence(await self._find_again()))
        return self.found != used

    def _take(self, found: Found) -> None:
        """Use another version or scope of the resource, but never another resource.

        Discovery can be incomplete: if the server's core group does not answer for a moment,
        "pods" resolves to the pods of metrics.k8s.io.
        """
        if self.found is None or _identity(self.found) == _identity(found):
            self.found = found

    @contextlib.asynccontextmanager
    async def checked_if_not_found(self) -> AsyncGenerator[None]:
        """Run discovery again after a 404: a CRD may be deleted, or recreated with another scope.

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
            # The facts are kept: the next list shows whether it is still a 404.
            raise exc from cause
        except KinformError:  # discovery failed: the 404 is all that is known
            return
        self._take(_essence(found))


def _identity(found: Found) -> tuple[str, str, str]:
    return found.gvr.group, found.gvr.resource, found.kind


def _essence(resource: APIResource | Resource[object]) -> Found:
    gvr = resource.gvr
    check_segment("resource", gvr.resource)
    return Found(gvr, resource.kind, resource.namespaced, api_prefix(gvr.group_version))

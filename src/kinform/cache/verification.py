"""Verification: compares a cache with its server at one version."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar, final

from kinform.cache.listwatch import ListerWatcher
from kinform.errors import ResourceExpiredError, UsageError
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.rest.options import ListOptions
from kinform.rest.pager import ListPager

__all__ = ["Picture", "Verification", "compared", "identities", "list_at", "verified"]

T = TypeVar("T")

Identities: TypeAlias = Mapping[ObjectName, tuple[str, str]]
"""The uid and the version of the object of each name."""

PAGE_SIZE: Final = 500
_ATTEMPTS: Final = 5
"""Attempts that may fail because the server has compacted the version meanwhile."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of comparing a cache with its server."""

    resource_version: str
    """The version at which both were compared."""
    objects: int
    """The number of objects on the server."""
    missing: tuple[ObjectName, ...]
    """Objects that only the server had."""
    surplus: tuple[ObjectName, ...]
    """Objects that only the cache had."""
    different: tuple[ObjectName, ...]
    """Objects that both had, but of another version or uid."""

    @property
    def is_equal(self) -> bool:
        """True if the cache had exactly the objects of the server."""
        return not (self.missing or self.surplus or self.different)


class Picture(NamedTuple):
    """The objects of a cache or a server at one version."""

    resource_version: str
    objects: Identities
    unreadable: frozenset[ObjectName]


async def verified(
    take: Callable[[str | None], Awaitable[Picture]], lw: ListerWatcher[T], *, name: str
) -> Verification:
    """Compare a cache with the objects of its server at the same version.

    ``take`` returns a picture of the cache, at another version than the given one.

    Raises:
        ResourceExpiredError: the server compacts every version before it is listed.
        UsageError: the cache has no versions.
    """
    past: str | None = None
    expired = 0
    while True:
        picture = await take(past)
        past = picture.resource_version
        if not past:
            raise UsageError(
                f"{name} has no resource version; a list at that version cannot be requested"
            )
        try:
            return compared(picture, await list_at(lw, past))
        except ResourceExpiredError:
            # etcd is compacted every five minutes by default, and a quiet cache may show an older
            # version.
            expired += 1
            if expired == _ATTEMPTS:
                raise


def identities(entries: Iterable[Entry[T]]) -> Identities:
    """Return what makes each state of each object different from all others."""
    return {entry.metadata.key: _identity(entry.metadata) for entry in entries}


async def list_at(lw: ListerWatcher[T], version: str) -> Picture:
    """Ask the server what it had at exactly ``version``, page by page; objects are not kept.

    Raises:
        ResourceExpiredError: it does not know any more.
        KinformError: it cannot be asked.
    """
    # Exact: any other match would compare two moments, and report every write in between as a
    # difference.
    options = ListOptions(resource_version=version, resource_version_match="Exact", limit=PAGE_SIZE)
    objects: dict[ObjectName, tuple[str, str]] = {}
    unreadable: set[ObjectName] = set()
    async with contextlib.aclosing(ListPager(lw.list).pages(options)) as pages:
        async for page in pages:
            objects.update(identities(page.entries()))
            unreadable.update(item.metadata.key for item in page.unreadable)
    return Picture(version, objects, frozenset(unreadable))


def compared(cache: Picture, server: Picture) -> Verification:
    """Compare; an unreadable object of the list is missing only if the cache does not know it."""
    # Objects that this list could not decode: nothing can be said about their versions.
    blind = server.unreadable - server.objects.keys()
    has, had = cache.objects.keys() - blind, server.objects.keys()
    unheard_of = blind - cache.objects.keys() - cache.unreadable
    return Verification(
        resource_version=server.resource_version,
        objects=len(had) + len(blind),
        missing=tuple(sorted((had - has) | unheard_of)),
        surplus=tuple(sorted(has - had)),
        different=tuple(
            sorted(key for key in has & had if cache.objects[key] != server.objects[key])
        ),
    )


def _identity(metadata: ObjectMeta) -> tuple[str, str]:
    return metadata.uid, metadata.resource_version

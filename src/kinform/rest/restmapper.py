"""`ResourceMap`: from resource names as users write them to a server's resources. Pure.

A name may be ``pods``, ``pod``, ``po``, ``Pod``, ``deployments.apps``, ``deployments.v1.apps``,
``v1/pods`` or ``apps/v1/deployments``. Where several groups have it, the core group wins, as in
kubectl; any other ambiguous name is an error.
"""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from kinform.errors import AmbiguousResourceError, UnknownResourceError
from kinform.meta import GroupVersionKind, GroupVersionResource

__all__ = ["APIResource", "ResourceMap"]

_MAX_NAME: Final = 63
"""The longest name of a resource: a DNS label."""
_MAX_COMPARED: Final = 400
"""Limit of names, of about the same length, compared for suggestions: takes below 0.2 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class APIResource:
    """One resource of a server, as discovery describes it."""

    gvr: GroupVersionResource
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of its objects."""
        return GroupVersionKind(self.gvr.group, self.gvr.version, self.kind)


@final
class ResourceMap:
    """All resources of a server, most preferred version of each group first."""

    def __init__(self, resources: Iterable[APIResource]) -> None:
        self.resources: Sequence[APIResource] = tuple(resources)
        self._found: dict[str, APIResource] = {}

    def find(self, name: str) -> APIResource:
        """Return the resource that ``name`` means.

        Raises:
            UnknownResourceError: no resource has that name; similar names are suggested.
            AmbiguousResourceError: several groups have it; the full names are listed.
        """
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._search(name)
        return known

    def _search(self, name: str) -> APIResource:
        short, matches_group = _split(name)
        for matches_name in _ways_to_match(short):
            found = [r for r in self.resources if matches_group(r.gvr) and matches_name(r)]
            if found:
                return _choose(name, found)
        raise UnknownResourceError(name, nearest=self._nearest(name))

    def _nearest(self, name: str) -> Sequence[str]:
        known = {r.gvr.resource: str(r.gvr) for r in reversed(self.resources)}
        wanted = _split(name)[0].lower()
        if len(wanted) > _MAX_NAME:
            return ()
        # difflib's time grows with the product of the lengths, and a server may list any names.
        near = (known_name for known_name in known if len(known_name) <= _MAX_NAME)
        compared = heapq.nsmallest(_MAX_COMPARED, near, key=lambda one: abs(len(one) - len(wanted)))
        return [known[match] for match in difflib.get_close_matches(wanted, compared, n=3)]


def _split(name: str) -> tuple[str, Callable[[GroupVersionResource], bool]]:
    """Return the short name within ``name`` and a test for the group it may be in."""
    if "/" in name:
        group_version, _, short = name.rpartition("/")
        return short, lambda gvr: str(gvr.group_version) == group_version
    short, dot, rest = name.partition(".")
    if not dot:
        return short, lambda _: True
    version, _, group = rest.partition(".")
    return short, lambda gvr: gvr.group == rest or (gvr.group, gvr.version) == (group, version)


def _ways_to_match(short: str) -> Sequence[Callable[[APIResource], bool]]:
    """Return the predicates for a short name, the most specific first."""
    lower = short.lower()
    return (
        lambda r: r.gvr.resource == lower,
        lambda r: r.kind == short or lower in {r.singular, r.kind.lower()},
        lambda r: lower in r.short_names,
    )


def _choose(name: str, found: Sequence[APIResource]) -> APIResource:
    preferred: dict[tuple[str, str], APIResource] = {}
    for resource in found:
        preferred.setdefault((resource.gvr.group, resource.gvr.resource), resource)
    core = [resource for resource in preferred.values() if not resource.gvr.group]
    candidates = core or list(preferred.values())
    if len(candidates) > 1:
        names = sorted(str(candidate.gvr) for candidate in candidates)
        raise AmbiguousResourceError(name, candidates=names)
    return candidates[0]

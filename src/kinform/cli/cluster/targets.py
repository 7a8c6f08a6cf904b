"""The resource arguments of the command line: kinds, kinds with a name, categories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import click

from kinform.cli.output.rows import printable
from kinform.cli.problems import CommandProblem
from kinform.client import Client
from kinform.errors import UnknownResourceError
from kinform.objects.object import Object
from kinform.rest.restmapper import APIResource

__all__ = ["Target", "resolve", "split_words"]

_VERSION: Final = re.compile(r"(?:[a-z0-9.-]+/)?v\d+(?:(?:alpha|beta)\d+)?")


@final
@dataclass(frozen=True, slots=True)
class Target:
    """One kind to look at, or one object of it."""

    resource: APIResource
    name: str = ""

    @property
    def label(self) -> str:
        """The kind as people say it: ``pods``, ``widgets.example.com``."""
        gvr = self.resource.gvr
        is_custom = "." in gvr.group and not gvr.group.endswith(".k8s.io")
        return printable(f"{gvr.resource}.{gvr.group}" if is_custom else gvr.resource)

    def name_of(self, obj: Object) -> str:
        """Return kubectl's ``-o name``: ``pod/web-0``, ``deployment.apps/web``."""
        kind = self.resource.kind.lower()
        group = self.resource.gvr.group
        return printable(f"{kind}.{group}/{obj.name}" if group else f"{kind}/{obj.name}")


def split_words(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return ``(kind, name)`` for each word; ``a,b`` are two kinds, ``pods/web-0`` is an object.

    >>> split_words(["pods,nodes", "pods/web-0", "apps/v1/deployments"])
    [('pods', ''), ('nodes', ''), ('pods', 'web-0'), ('apps/v1/deployments', '')]

    Raises:
        UsageError: of click, if a word has a slash too many.
    """
    found: list[tuple[str, str]] = []
    for word in (part for given in words for part in given.split(",") if part):
        head, slash, last = word.rpartition("/")
        if not slash or (last and _VERSION.fullmatch(head)):
            found.append((word, ""))
            continue
        if not head or not last:
            raise click.UsageError(
                f"{word!r} is neither a kind nor an object: give pods or pods/NAME"
            )
        version, slash, _ = head.rpartition("/")
        if slash and not _VERSION.fullmatch(version):
            kind = version.partition("/")[0]
            raise click.UsageError(f"{word!r} has a name too many: give {kind}/NAME")
        found.append((head, last))
    return found


async def resolve(client: Client, words: Sequence[str], *, verb: str) -> list[Target]:
    """Return what ``words`` mean on this server, each once, in order.

    Raises:
        Problem: a kind cannot be listed or watched.
        UsageError: of click, if there are no words.
        UnknownResourceError: the kind or category does not exist.
        AmbiguousResourceError: several groups have it.
    """
    found: dict[tuple[str, str], Target] = {}
    for kind, name in split_words(words):
        for resource in await _resources(client, kind, verb):
            found.setdefault((str(resource.gvr), name), Target(resource, name))
    if not found:
        raise click.UsageError("no kind given; name one, for example pods")
    return list(found.values())


async def _resources(client: Client, kind: str, verb: str) -> list[APIResource]:
    try:
        one = await client.find(kind)
    except UnknownResourceError:
        category = await _category(client, kind, verb)
        if not category:
            raise
        return category
    if one.verbs and verb not in one.verbs:
        able = ", ".join(sorted(one.verbs))
        raise CommandProblem(f"{kind} cannot be asked to {verb}; the server lets you {able} them")
    return [one]


async def _category(client: Client, name: str, verb: str) -> list[APIResource]:
    """Return the kinds of a category such as ``all``, each in its preferred version."""
    preferred: dict[tuple[str, str], APIResource] = {}
    for resource in await client.api_resources():
        if name in resource.categories and verb in resource.verbs:
            preferred.setdefault((resource.gvr.group, resource.gvr.resource), resource)
    return list(preferred.values())

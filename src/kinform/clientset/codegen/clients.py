"""Writes the classes of typed clients, for built-in and for custom kinds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, final

from kinform.clientset.codegen.emit import fitted
from kinform.clientset.codegen.model import KindSpec
from kinform.clientset.codegen.names import attribute_name, snake_case

__all__ = ["STANDARD", "ClientSpec", "Property", "client_class", "group_class", "plural_name"]

STANDARD: Final = frozenset(
    {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
)
"""The verbs that most kinds have."""
_MEMBERS: Final = frozenset({"api_version", "rest"})
"""What every `GroupClient` has: no kind's method may hide it."""
_ABILITIES: Final = {
    "Gets": {"get"},
    "Lists": {"list"},
    "Watches": {"list", "watch"},
    "Creates": {"create"},
    "Changes": {"get", "patch", "update"},
    "Deletes": {"delete"},
    "DeletesCollections": {"deletecollection"},
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A subresource with a client of its own."""

    name: str
    wire: str
    model: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpec:
    """The client of one kind."""

    name: str
    """The name of its class."""
    kind: KindSpec
    model: str
    verbs: AbstractSet[str] = STANDARD
    actions: Sequence[str] = ()
    parts: Sequence[Property] = ()


def plural_name(kind: KindSpec, others: Collection[str] = ()) -> str:
    """Return the name of the method that leads to a kind: its plural, word by word.

    An underscore at its end keeps it from colliding with ``others`` and what all groups have.

    >>> def named(kind, plural):
    ...     gvr = GroupVersionResource("", "v1", plural)
    ...     return plural_name(KindSpec(gvr=gvr, kind=kind, namespaced=True))
    >>> from kinform.meta import GroupVersionResource
    >>> named("NetworkPolicy", "networkpolicies"), named("IPAddress", "ipaddresses")
    ('network_policies', 'ip_addresses')
    """
    plural, singular = kind.gvr.resource, snake_case(kind.kind)
    taken = kept = 0
    while kept < len(singular) and taken < len(plural):
        if singular[kept] != "_":
            if singular[kept] != plural[taken]:
                break
            taken += 1
        kept += 1
    related = len(singular) - kept <= 2  # policy, policies; not thing, oddities
    name = singular[:kept] + plural[taken:] if related else plural
    return attribute_name(name, {*_MEMBERS, *others})


def client_class(client: ClientSpec) -> str:
    """Return the class of one kind's client."""
    return "".join(f"{line}\n" for line in _client_lines(client))


def _client_lines(client: ClientSpec) -> Iterator[str]:
    yield "@final"
    bases = ", ".join(f"{base}[{client.model}]" for base in _bases(client))
    yield from fitted(f"class {client.name}(", bases, "):")
    yield (
        f'    """Every {client.kind.kind}, or those of one namespace."""'
        if (client.kind.namespaced)
        else f'    """Every {client.kind.kind}."""'
    )
    for part in client.parts:
        yield ""
        yield "    @property"
        yield f"    def {part.name}(self) -> Part[{part.model}]:"
        yield f'        """The ``{part.wire}`` of an object, by itself."""'
        yield f'        return self._part("{part.wire}", {part.model})'


def _bases(client: ClientSpec) -> Iterator[str]:
    if client.kind.namespaced:
        yield "InNamespaces"
    if client.verbs >= STANDARD:
        yield "Objects"
    else:
        yield from (name for name, needed in _ABILITIES.items() if needed <= client.verbs)
    yield from client.actions
    if client.parts:
        yield "HasParts"


def group_class(name: str, api_version: str, clients: Sequence[ClientSpec]) -> str:
    """Return the class that leads to the clients of one API version."""
    lines = [
        "@final",
        f"class {name}(GroupClient):",
        f'    """The kinds of {api_version}."""',
        "",
        f'    api_version: ClassVar[str] = "{api_version}"',
    ]
    names: set[str] = set()
    for client in clients:
        name = plural_name(client.kind, names)
        names.add(name)
        lines += ["", *_method(client, name)]
    return "".join(f"{line}\n" for line in lines)


def _method(client: ClientSpec, name: str) -> Iterator[str]:
    if client.kind.namespaced:
        opening = f"    def {name}("
        yield from fitted(opening, "self, namespace: str | None = None", f") -> {client.name}:")
        yield '        """In ``namespace``; by default in the client\'s own, with ``""`` in all."""'
        arguments = f"{client.name}, {client.model}, namespace"
    else:
        yield f"    def {name}(self) -> {client.name}:"
        yield '        """Of the whole cluster."""'
        arguments = f"{client.name}, {client.model}"
    yield from fitted("        return self._of(", arguments, ")")

"""The typed clients of the built-in API versions, one module each, and the way to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kinform.clientset.codegen.clients import (
    ClientSpec,
    Property,
    client_class,
    group_class,
    plural_name,
)
from kinform.clientset.codegen.emit import exports, imports
from tools.clientset.modules import place_of
from tools.clientset.recorded import API, Part, Served

__all__ = ["client_modules", "group_name", "groups", "package", "page"]

ACTIONS = {"binding": "Binds", "eviction": "Evicts", "log": "ReadsLogs", "token": "IssuesTokens"}
"""Subresources that are methods."""


def client_modules(api: API) -> dict[str, str]:
    """Return the text of every module of clients by its name."""
    modules: dict[str, list[Served]] = {}
    for served in api.resources:
        modules.setdefault(served.module, []).append(served)
    return {name: _module(name, found, api) for name, found in sorted(modules.items())}


def _module(name: str, resources: Sequence[Served], api: API) -> str:
    clients = [_client(name, served, api) for served in resources]
    clients.sort(key=lambda client: client.name)
    body = "".join(f"\n\n{client_class(client)}" for client in clients)
    version = str(resources[0].kind.gvr.group_version)
    body += f"\n\n{group_class(group_name(name), version, clients)}"
    names = sorted([*(client.name for client in clients), group_name(name)])
    others = {part.model.partition(".")[0] for client in clients for part in client.parts}
    head = [
        f'"""Clients for the kinds of {version}. Written by ``make clientset``."""',
        "",
        "from __future__ import annotations",
        "",
        *imports(body, clientset=sorted({name, *others})),
        "",
        *exports(names),
    ]
    return "\n".join(head) + "\n" + body


def _client(module: str, served: Served, api: API) -> ClientSpec:
    parts = [
        Property(name=_python_name(part), wire=part.name, model=_model(part, api))
        for part in served.parts.values()
        if part.verbs == frozenset({"get", "patch", "update"})
    ]
    return ClientSpec(
        name=f"{served.kind.kind}Client",
        kind=served.kind,
        model=f"{module}.{served.kind.kind}",
        verbs=served.verbs,
        actions=sorted(ACTIONS[name] for name in served.parts if name in ACTIONS),
        parts=sorted(parts, key=lambda part: part.name),
    )


def _python_name(part: Part) -> str:
    return {"ephemeralcontainers": "ephemeral_containers"}.get(part.name, part.name)


def _model(part: Part, api: API) -> str:
    return ".".join(place_of(api.schema_of(part.group, part.version, part.kind)))


def group_name(module: str) -> str:
    """Return the name of the class of an API version's clients."""
    return "".join(word.capitalize() for word in module.split("_"))


def groups(modules: Sequence[str]) -> str:
    """Return the text of the class that leads from a client to its groups."""
    return "".join(_groups(sorted(modules)))


def _groups(modules: Sequence[str]) -> Iterator[str]:
    yield '''"""`Groups`: from a client to its typed clients. Written by ``make clientset``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
'''
    for name in modules:
        yield f"    from kinform.clientset.clients.{name} import {group_name(name)}\n"
    yield '''    from kinform.clientset.typed import Connected

__all__ = ["Groups"]


class Groups:
    """The API versions of a client, each loaded when it is first asked for."""

    __slots__ = ()
'''
    for name in modules:
        group = group_name(name)
        yield f'''
    @property
    def {name}(self) -> {group}:
        """The kinds of `kinform.clientset.{name}`."""
        from kinform.clientset.clients.{name} import {group}

        return {group}(cast("Connected", self))
'''


def page(api: API) -> str:
    """Return the page of the documentation that lists all kinds."""
    lines = [
        "# Kinds",
        "",
        f"The built-in kinds of Kubernetes {api.version}, and how to get at their clients.",
        "Written by ``make clientset``.",
    ]
    modules: dict[str, list[ClientSpec]] = {}
    for served in api.resources:
        modules.setdefault(served.module, []).append(_client(served.module, served, api))
    for name, clients in sorted(modules.items()):
        lines += ["", f"## `client.{name}`", "", "| kind | client | parts |", "|---|---|---|"]
        for client in sorted(clients, key=lambda it: it.name):
            method = f"{plural_name(client.kind)}({'namespace' if client.kind.namespaced else ''})"
            parts = ", ".join(f"`{part.name}`" for part in client.parts)
            lines.append(f"| `{client.model}` | `{method}` | {parts} |")
    return "\n".join(lines) + "\n"


def package(modules: Sequence[str]) -> str:
    """Return the text of the package's ``__init__``."""
    own = ("ownership", "quantity", "times")
    names = sorted([*modules, *own])
    listed = "".join(f'    "{name}",\n' for name in names)
    imported = "".join(f"        {name},\n" for name in names)
    return f'''"""Typed models and clients for every kind that Kubernetes brings along.

One module for each group and version holds the models: `core_v1.Pod`, `apps_v1.Deployment`.
Each is loaded when it is first used. Clients come from a `Client`: ``client.apps_v1``.
Written by ``make clientset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinform._lazy import lazy_exports

if TYPE_CHECKING:
    from kinform.clientset import (
{imported}    )

__all__ = [
{listed}]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(__name__, {{}}, modules=__all__)
'''

"""The way from a blocking client to its kinds: a method for each, typed by its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kinform.clientset.codegen.clients import plural_name
from kinform.clientset.codegen.emit import fitted
from tools.clientset.clients import group_name
from tools.clientset.recorded import API, Served

__all__ = ["blocking_groups"]

WIDTH: Final = 100
IN_NAMESPACE: Final = '"""In ``namespace``; by default the client\'s own, with ``""`` in all."""'


def blocking_groups(api: API) -> str:
    """Return the text of the module that leads from a blocking client to its kinds."""
    modules: dict[str, list[Served]] = {}
    for served in api.resources:
        modules.setdefault(served.module, []).append(served)
    return "".join(f"{line}\n" for line in _module(dict(sorted(modules.items()))))


def _module(modules: Mapping[str, Sequence[Served]]) -> Iterator[str]:
    yield '"""`Groups`: from a blocking client to its kinds. Written by ``make clientset``."""'
    yield ""
    yield "from __future__ import annotations"
    yield ""
    yield "from typing import TYPE_CHECKING, cast, final"
    yield ""
    yield "from kinform.sync._typed import Group"
    yield ""
    yield "if TYPE_CHECKING:"
    yield "    from kinform.clientset import ("
    yield from (f"        {name}," for name in modules)
    yield "    )"
    yield "    from kinform.sync.client import Client"
    yield "    from kinform.sync.resource_client import ResourceClient"
    yield ""
    names = sorted(["Groups", *map(group_name, modules)])
    yield "__all__ = ["
    yield from (f'    "{name}",' for name in names)
    yield "]"
    for name, resources in modules.items():
        yield from _group(name, resources)
    yield from _groups(modules)


def _group(module: str, resources: Sequence[Served]) -> Iterator[str]:
    yield from ("", "", "@final", f"class {group_name(module)}(Group):")
    yield f'    """The kinds of {resources[0].kind.gvr.group_version}."""'
    for served in sorted(resources, key=lambda each: each.kind.kind):
        kind = served.kind
        model = f"{module}.{kind.kind}"
        end = f") -> ResourceClient[{model}]:"
        opening = f"    def {plural_name(kind)}("
        yield ""
        if kind.namespaced:
            yield from fitted(opening, "self, namespace: str | None = None", end)
            yield f"        {IN_NAMESPACE}"
        else:
            # A formatter puts a comma behind an argument that stands alone in its line.
            fits = len(opening + "self" + end) <= WIDTH
            yield from [f"{opening}self{end}"] if fits else [opening, "        self,", f"    {end}"]
            yield '        """Of the whole cluster."""'
        yield f"        from kinform.clientset import {module}"
        yield ""
        place = ", namespace" if kind.namespaced else ""
        yield from fitted("        return self._of(", f"{model}{place}", ")")


def _groups(modules: Mapping[str, Sequence[Served]]) -> Iterator[str]:
    yield from ("", "", "class Groups:")
    yield '    """The API versions of a blocking client."""'
    for module in modules:
        name = group_name(module)
        yield ""
        yield "    @property"
        yield f"    def {module}(self) -> {name}:"
        yield f'        """The kinds of `kinform.clientset.{module}`."""'
        yield f'        return {name}(cast("Client", self))'

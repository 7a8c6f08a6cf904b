"""The API of the real kube-apiserver, as recorded by ``tools/record_api.py``."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast, final

from kinform.clientset.codegen.model import KindSpec
from kinform.clientset.codegen.names import module_name
from kinform.clientset.codegen.schemas import Node, reference
from kinform.meta import GroupVersionResource

__all__ = ["API", "Json", "Part", "Served"]

Json: TypeAlias = dict[str, Any]

DATA = Path(__file__).resolve().parents[2] / "src/kinform/apiserver/data"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A subresource: its name, the kind it shows, and what can be done with it."""

    name: str
    group: str
    version: str
    kind: str
    verbs: frozenset[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A resource as discovery lists it."""

    kind: KindSpec
    schema: str
    verbs: frozenset[str]
    parts: Mapping[str, Part]

    @property
    def module(self) -> str:
        """The module of its API version."""
        return module_name(self.kind.gvr.group, self.kind.gvr.version)


class API:
    """All resources of the server, and every schema that they are made of."""

    def __init__(self) -> None:
        recorded = _load("api.json.xz")
        self.version: str = recorded["version"]["gitVersion"]
        self.schemas: dict[str, Node] = cast("dict[str, Node]", _load("schemas.json.xz"))
        self.definitions: dict[str, str] = recorded["definitions"]
        self.resources: list[Served] = list(self._resources(recorded["groups"]))

    def schema_of(self, group: str, version: str, kind: str) -> str:
        """Return the name of a kind's schema."""
        return self.definitions[f"{group}/{version}/{kind}"]

    def reachable(self) -> list[str]:
        """Return the names of all schemas that objects or parts of them are made of."""
        waiting = [served.schema for served in self.resources]
        for served in self.resources:
            for part in served.parts.values():
                name = self.definitions.get(f"{part.group}/{part.version}/{part.kind}")
                waiting += [name] if name else []
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += _references(self.schemas[name])
        return sorted(found)

    def _resources(self, groups: list[Json]) -> Iterator[Served]:
        for group in groups:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                for entry in version["resources"]:
                    yield self._served(name, version["version"], entry)

    def _served(self, group: str, version: str, entry: Json) -> Served:
        kind = KindSpec(
            gvr=GroupVersionResource(group, version, entry["resource"]),
            kind=entry["responseKind"]["kind"],
            namespaced=entry["scope"] == "Namespaced",
        )
        parts = {
            it["subresource"]: _part(it, group, version) for it in entry.get("subresources", ())
        }
        return Served(
            kind=kind,
            schema=self.schema_of(group, version, kind.kind),
            verbs=frozenset(entry["verbs"]),
            parts=parts,
        )


def _part(entry: Json, group: str, version: str) -> Part:
    kind = entry["responseKind"]
    return Part(
        name=entry["subresource"],
        group=kind["group"] or ("" if kind["version"] else group),
        version=kind["version"] or version,
        kind=kind["kind"],
        verbs=frozenset(entry["verbs"]),
    )


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if name := reference(cast("Node", {"$ref": cast("Node", node).get("$ref")})):
            yield name
        for value in cast("Json", node).values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in cast("list[object]", node):
            yield from _references(value)


def _load(name: str) -> Json:
    loaded: Json = json.loads(lzma.decompress(DATA.joinpath(name).read_bytes()))
    return loaded

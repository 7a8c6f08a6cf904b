"""Recorded answers of a real kube-apiserver, with its kinds in the embedded server's registry.

``tools/record_api.py`` writes the files.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
from pathlib import Path

import msgspec

from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind, Subresource
from kinform.apiserver.serializer.json_values import Json

FOLDER = Path(__file__).parent
STATUS_VERBS = ("get", "patch", "update")


@functools.cache
def discovery() -> dict[str, Json]:
    """Return the older discovery documents of built-in groups, by path."""
    return msgspec.json.decode(_read("discovery.json.xz"), type=dict[str, Json])


@functools.cache
def openapi_marks() -> dict[str, str]:
    """Return the `mark` of each OpenAPI document of built-in groups, by path."""
    return msgspec.json.decode(_read("openapi.json.xz"), type=dict[str, str])


def mark(value: object) -> str:
    """Return a short hash of a JSON value, as ``tools/record_api.py`` makes it."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@functools.cache
def custom() -> Json:
    """Return all answers of the server about the custom kinds in ``definitions.yaml``."""
    return msgspec.json.decode(_read("custom_kinds.json.xz"), type=Json)


def registry() -> kind_registry.Kinds:
    """Return a new registry with the built-in kinds and the recorded custom ones."""
    found = kind_registry.builtin()
    for spec in custom()["definitions"]:
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        found.put(kinds_of(spec), stored=stored)
    return found


def kinds_of(spec: Json) -> list[Kind]:
    """Return the kinds that a CustomResourceDefinition serves."""
    return [_kind(spec, version) for version in spec["versions"] if version["served"]]


def _kind(spec: Json, version: Json) -> Kind:
    names: Json = spec["names"]
    qualified = f"{names['plural']}.{spec['group']}"
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        verbs=kind_registry.CUSTOM_VERBS,
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        subresources=_subresources(spec, version),
        storage=qualified,
        list_kind=names["listKind"],
        custom=CustomVersion(
            definition=qualified,
            schema=version["schema"]["openAPIV3Schema"],
            selectable_fields=tuple(it["jsonPath"] for it in version.get("selectableFields", ())),
        ),
    )


def _subresources(spec: Json, version: Json) -> dict[str, Subresource]:
    kind: str = spec["names"]["kind"]
    own = Subresource(name="status", verbs=STATUS_VERBS, kind=kind)
    scale = Subresource(
        name="scale", verbs=STATUS_VERBS, kind="Scale", group="autoscaling", version="v1"
    )
    declared: Json = version.get("subresources", {})
    return {it.name: it for it in (scale, own) if it.name in declared}


def _read(name: str) -> bytes:
    return lzma.decompress(FOLDER.joinpath(name).read_bytes())

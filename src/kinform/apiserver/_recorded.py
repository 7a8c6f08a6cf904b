"""Recorded answers of a real kube-apiserver, as package data (see ``tools/record_api.py``).

Each file is read once, on first use; importing reads nothing. Returned values are shared: callers
must not change them.
"""

from __future__ import annotations

import functools
import lzma
from pathlib import Path
from typing import Final, TypeVar, final

import msgspec

from kinform.apiserver.serializer.json_values import Json

__all__ = ["Api", "Document", "api", "blanks", "custom_template", "documents", "schemas", "zones"]

T = TypeVar("T")

FOLDER: Final = Path(__file__).with_name("data")


@final
class Api(msgspec.Struct, frozen=True, kw_only=True):
    """The groups, versions and kinds of the server, and its version."""

    version: Json
    """The answer of ``/version``."""
    groups: list[Json]
    """Aggregated discovery of each group, the core group first, in the server's order."""
    columns: dict[str, list[Json]]
    """The column definitions of a kind's table, by ``group/version/plural``."""
    storage_hashes: dict[str, str]
    """The ``storageVersionHash`` of discovery, by ``group/version/plural``."""
    definitions: dict[str, str]
    """The name of a kind's schema, by ``group/version/kind``; also of ``Scale`` and its like."""


@final
class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One OpenAPI document, with its schemas in a field of their own."""

    hash: str
    document: Json
    """Without its schemas; where it has some, ``components.schemas`` is there and empty."""
    schemas: list[str]
    """Their names, in the document's order."""
    variants: dict[str, Json]
    """Those that are not as `schemas` has them."""


def _read(name: str, model: type[T]) -> T:
    packed = FOLDER.joinpath(name).read_bytes()
    return msgspec.json.decode(lzma.decompress(packed), type=model)


@functools.cache
def api() -> Api:
    """Return discovery, columns, the names of schemas and the version."""
    return _read("api.json.xz", Api)


@functools.cache
def blanks() -> dict[str, Json]:
    """Return the fields beside metadata in an empty object, by kind; most kinds have none."""
    return _read("blanks.json.xz", dict[str, Json])


@functools.cache
def zones() -> frozenset[str]:
    """Return the names of all time zones that a CronJob may use, independent of this host."""
    return frozenset(_read("zones.json.xz", list[str]))


@functools.cache
def schemas() -> dict[str, Json]:
    """Return every schema of a built-in kind by name, such as ``io.k8s.api.core.v1.Pod``."""
    return _read("schemas.json.xz", dict[str, Json])


@functools.cache
def custom_template() -> Document:
    """Return the OpenAPI document of two made-up custom kinds with all subresources.

    `kinform.apiserver.openapi.v3` knows their names, and makes the documents of others from it.
    """
    return _read("custom.json.xz", Document)


@functools.cache
def documents() -> dict[str, Document]:
    """Return the OpenAPI documents by path, such as ``apis/apps/v1``."""
    return _read("openapi.json.xz", dict[str, Document])

"""An object of a kind with nothing in it, as Go writes one: what a bookmark carries."""

from __future__ import annotations

import functools
from typing import cast

import msgspec

from kinform.apiserver.data import FOLDER
from kinform.apiserver.json import Json
from kinform.apiserver.kind import Kind

__all__ = ["blank", "preload"]


def blank(kind: Kind, metadata: Json) -> Json:
    """Return an object of ``kind`` with this metadata and no content."""
    content: Json = {} if kind.custom is not None else _blanks().get(str(kind.gvk), {})
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **content}


def preload() -> None:
    """Read the data. Blocks; later calls do nothing."""
    _blanks()


@functools.cache
def _blanks() -> dict[str, Json]:
    """Return what a real server's bookmarks had beside metadata, by kind; most have nothing."""
    return cast("dict[str, Json]", msgspec.json.decode(FOLDER.joinpath("blanks.json").read_bytes()))

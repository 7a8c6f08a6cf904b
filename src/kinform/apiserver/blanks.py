"""An object of a kind with nothing in it, as Go writes one: what a bookmark carries."""

from __future__ import annotations

from kinform.apiserver import data
from kinform.apiserver.json import Json
from kinform.apiserver.kind import Kind

__all__ = ["blank"]


def blank(kind: Kind, metadata: Json) -> Json:
    """Return an object of ``kind`` with this metadata and no content."""
    content: Json = {} if kind.custom is not None else data.blanks().get(str(kind.gvk), {})
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **content}

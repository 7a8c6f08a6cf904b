"""The four kinds of patch the API server knows."""

from __future__ import annotations

import enum

__all__ = ["PatchType"]


class PatchType(enum.StrEnum):
    """How the body of a PATCH is to be read."""

    JSON = "json"
    """RFC 6902: a list of operations."""
    MERGE = "merge"
    """RFC 7386: what is given replaces, null removes, lists are replaced whole."""
    STRATEGIC = "strategic"
    """Kubernetes' own: lists are merged by key. Built-in kinds only."""
    APPLY = "apply"
    """Server-side apply: the fields you own, and nothing else."""

    @property
    def content_type(self) -> str:
        """The content type that tells the server."""
        suffix = "yaml" if self is PatchType.APPLY else "json"
        names = {PatchType.STRATEGIC: "strategic-merge", PatchType.MERGE: "merge"}
        return f"application/{names.get(self, self.value)}-patch+{suffix}"

"""Query parameters of requests as values: list, watch and write options, and the patch types."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self, TypeAlias, cast

__all__ = [
    "FieldValidation",
    "ListOptions",
    "Params",
    "PatchType",
    "QueryOptions",
    "ResourceVersionMatch",
    "WriteOptions",
    "query_pairs",
]

ResourceVersionMatch: TypeAlias = Literal["Exact", "NotOlderThan"]
FieldValidation: TypeAlias = Literal["Strict", "Warn", "Ignore"]
"""The server's treatment of unknown or duplicate fields."""


class PatchType(enum.StrEnum):
    """The format of a PATCH body."""

    content_type: str
    """The content type of the body."""

    def __new__(cls, value: str, content_type: str = "") -> Self:
        """Make a member with its content type."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.content_type = content_type
        return member

    JSON = "json", "application/json-patch+json"
    """RFC 6902: a list of operations."""
    MERGE = "merge", "application/merge-patch+json"
    """RFC 7386: given values replace, null removes, lists are replaced whole."""
    STRATEGIC = "strategic", "application/strategic-merge-patch+json"
    """Kubernetes' own: lists are merged by key. Built-in kinds only."""
    APPLY = "apply", "application/apply-patch+yaml"
    """Server-side apply: the fields you own, and nothing else."""


class QueryOptions(Protocol):
    """A value that converts itself to query parameters."""

    def query(self) -> Mapping[str, str]:
        """Return the parameters by their names on the wire; unset ones are left out."""
        ...


Params: TypeAlias = QueryOptions | Mapping[str, object]
"""The argument of ``Request.params``: options, or parameters by their names on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or a watch; ``None`` or ``""`` means not sent.

    ``resource_version`` unset requests the most recent state, ``"0"`` any state of the server's
    watch cache, any other value a state not older than that (with ``resource_version_match``) or,
    for a watch, the changes since then.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: ResourceVersionMatch | None = None
    limit: int | None = None
    continue_token: str = ""
    timeout: float | None = None
    """Seconds after which the server closes a watch (or gives up a list); sent as an integer."""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None

    def query(self) -> Mapping[str, str]:
        """Return the parameters by their names on the wire."""
        timeout = None if self.timeout is None else max(1, round(self.timeout))
        return dict(
            query_pairs(
                {
                    "labelSelector": self.label_selector or None,
                    "fieldSelector": self.field_selector or None,
                    "resourceVersion": self.resource_version or None,
                    "resourceVersionMatch": self.resource_version_match,
                    "limit": self.limit,
                    "continue": self.continue_token or None,
                    "timeoutSeconds": timeout,
                    "watch": self.watch or None,
                    "allowWatchBookmarks": self.allow_watch_bookmarks or None,
                    "sendInitialEvents": self.send_initial_events,
                }
            )
        )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The query parameters of a write."""

    field_manager: str | None = None
    field_validation: FieldValidation | None = None
    dry_run: bool = False
    force: bool = False

    def query(self) -> Mapping[str, str]:
        """Return the parameters by their names on the wire."""
        values = {
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation,
            "dryRun": "All" if self.dry_run else None,
            "force": self.force or None,
        }
        return dict(query_pairs(values))


def query_pairs(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return ``(name, text)`` for every value that is set; a list gives its name repeatedly."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
        for one in several:
            if isinstance(one, bool):
                pairs.append((name, "true" if one else "false"))
            elif one is not None:
                pairs.append((name, str(one)))
    return pairs

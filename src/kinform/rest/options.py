"""Query parameters as values: what a list, a watch or a write may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

__all__ = ["ListOptions", "Params", "QueryOptions", "ResourceVersionMatch", "query_pairs"]

ResourceVersionMatch: TypeAlias = Literal["Exact", "NotOlderThan"]


class QueryOptions(Protocol):
    """A value that knows its query parameters."""

    def query(self) -> Mapping[str, str]:
        """Return the parameters by their names on the wire; unset ones are left out."""
        ...


Params: TypeAlias = QueryOptions | Mapping[str, object]
"""What ``Request.params`` takes: options, or parameters by their names on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or a watch; ``None`` or ``""`` means not sent.

    ``resource_version`` unset asks for the newest state there is, ``"0"`` for any state the
    server has at hand, anything else for a state not older than that (with
    ``resource_version_match``) or, for a watch, for what happened since.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: ResourceVersionMatch | None = None
    limit: int | None = None
    continue_token: str = ""
    timeout: float | None = None
    """How many seconds the server keeps a watch open (or works on a list); sent as whole ones."""
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


def query_pairs(values: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Yield ``(name, text)`` for every value that is set; a list yields its name repeatedly."""
    for name, value in values.items():
        if isinstance(value, list | tuple):
            for one in value:  # pyright: ignore[reportUnknownVariableType]
                yield name, _text(one)  # pyright: ignore[reportUnknownArgumentType]
        elif value is not None:
            yield name, _text(value)


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)

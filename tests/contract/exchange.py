"""Recorded exchanges: requests and answers as they went over the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

__all__ = [
    "Answer",
    "Exchange",
    "Json",
    "ListVersion",
    "Option",
    "View",
    "is_collection",
    "lines",
    "marked",
]

Json: TypeAlias = dict[str, Any]
Option: TypeAlias = Any
"""A query parameter of a request, or another of its options."""
View: TypeAlias = Callable[[Any], object]
"""Reduces a large body to what a case is about, before it is recorded."""


class ListVersion(str):
    """The version of a whole list, or of a bookmark: it moves with every write.

    A type of its own, so that it is not confused with the equal version of an object.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case; repeated ones joined by a line feed."""
    content: bytes = b""

    @property
    def body(self) -> Any:
        """The body: decoded where it is JSON or YAML, else its text, ``None`` if empty."""
        if not self.content:
            return None
        kind = self.headers.get("content-type", "")
        if "json" in kind:
            return marked(json.loads(self.content))
        if "yaml" in kind:
            return yaml.BaseLoader(self.content).get_single_data()  # keeps times as text
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            return "<binary>"

    def __getitem__(self, key: str) -> Any:
        return self.body[key]

    @property
    def meta(self) -> Json:
        """The metadata of the object or the list."""
        return self.body["metadata"]

    @property
    def rv(self) -> str:
        """The resourceVersion of the object or the list."""
        return self.meta["resourceVersion"]

    @property
    def token(self) -> str:
        """The token that leads to the next page, ``""`` on the last."""
        return self.meta.get("continue", "")


@dataclass
class Exchange:
    """A request and its answer, or what a watch brought."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    """Those that the case chose."""
    body: object
    """The body that was sent: JSON, or text."""
    answer: Answer
    view: View | None = None
    is_quiet: bool = False
    """It belongs to the preparations and is not recorded."""
    is_watch: bool = False
    events: list[Json] = field(default_factory=list[Json])
    ended: str = ""
    """The side that ended a watch."""
    chunks: list[int] | None = None
    """The number of events that ended in each HTTP chunk."""


def lines(content: bytes) -> tuple[list[Json], bytes]:
    """Return the complete JSON documents in a stream's bytes, and what is left."""
    *whole, rest = content.split(b"\n")
    return [json.loads(line) for line in whole if line], rest


def marked(value: Any, *, is_list: bool = False) -> Any:
    """Mark the version of a list, in place."""
    if isinstance(value, dict) and (is_list or is_collection(value)):
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and "resourceVersion" in metadata:
            metadata["resourceVersion"] = ListVersion(metadata["resourceVersion"])
    return value


def is_collection(value: Json) -> bool:
    """Tell a list (or a Table, which is one) from an object."""
    return "rows" in value or ("items" in value and str(value.get("kind", "")).endswith("List"))

"""Guards against YAML documents that are expensive to build: bombs, deep nesting, merge keys.

PyYAML does not limit them: its C code recurses for each level, aliases multiply ("billion laughs"),
merge keys copy. Here the events of a document are counted before any value is built. No message
quotes the document, which may hold secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

import yaml

__all__ = [
    "MAX_DEPTH",
    "Refused",
    "SafeLoader",
    "TooDeep",
    "TooManyValues",
    "refuse_bombs",
    "too_deep",
    "too_many",
]

MAX_DEPTH: Final = 100
_MERGE: Final = "tag:yaml.org,2002:merge"

if TYPE_CHECKING:
    SafeLoader = yaml.SafeLoader
else:  # libyaml's loader is ten times as fast; PyYAML may be built without it
    SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Refused(Exception):
    """The document exceeds a limit; the text quotes nothing of it."""


class TooDeep(Refused):
    """The document is nested too deep."""


class TooManyValues(Refused):
    """The document has too many values."""


def refuse_bombs(
    data: bytes | str,
    *,
    max_values: int,
    max_aliases: int | None,
    max_depth: int = MAX_DEPTH,
    merges: bool = False,
    only_first: bool = False,
) -> None:
    """Refuse YAML that would be expensive to build, by parsing its events alone.

    Args:
        data: one document or several.
        max_values: the limit of scalars, collections and aliases together.
        max_aliases: the limit of aliases. An alias then counts as many values as it repeats, and
            one inside an anchored part, which could double its size at every level, is refused.
            With ``None`` an alias counts as one value: the caller limits what aliases expand to.
        max_depth: the limit of nested collections.
        merges: whether merge keys (``<<``) are allowed.
        only_first: whether documents behind the first one are ignored.

    Raises:
        Refused: the document exceeds a limit.
        yaml.YAMLError: it is not valid YAML.
    """
    loader = SafeLoader(data)
    bounds = _Bounds(max_values, max_aliases, max_depth=max_depth, merges=merges)
    try:
        while loader.check_event():
            # types-PyYAML leaves this one without types
            event = cast("yaml.Event", loader.get_event())  # type: ignore[no-untyped-call]
            if only_first and isinstance(event, yaml.DocumentEndEvent):
                return
            bounds.count(event)
    finally:
        loader.dispose()


def too_deep(limit: int) -> TooDeep:
    """Return the error for a document of more than ``limit`` levels."""
    return TooDeep(f"is nested more than {limit} levels deep")


def too_many(limit: int) -> TooManyValues:
    """Return the error for a document of more than ``limit`` values."""
    return TooManyValues(f"holds more than {limit} values")


@final
class _Bounds:
    """The counters of `refuse_bombs`."""

    def __init__(
        self, max_values: int, max_aliases: int | None, *, max_depth: int, merges: bool
    ) -> None:
        self._max_values = max_values
        self._max_aliases = max_aliases
        self._max_depth = max_depth
        self._merges = merges
        self._total = self._aliases = 0
        self._open: list[tuple[str | None, int]] = []  # the anchor and the first value of each
        self._anchored = 0  # how many open collections have an anchor
        self._sizes: dict[str, int] = {}

    def count(self, event: yaml.Event) -> None:
        """Count one event, or raise `Refused`."""
        match event:
            case yaml.AliasEvent():
                self._total += 1
                self._repeat(str(event.anchor))
            case yaml.CollectionStartEvent():
                self._total += 1
                self._enter(event.anchor)
            case yaml.CollectionEndEvent():
                self._leave()
            case yaml.ScalarEvent():
                self._total += 1
                self._scalar(event)
            case _:
                pass
        if self._total > self._max_values:
            raise too_many(self._max_values)

    def _enter(self, anchor: str | None) -> None:
        self._open.append((anchor, self._total))
        self._anchored += anchor is not None
        if len(self._open) > self._max_depth:
            raise too_deep(self._max_depth)

    def _leave(self) -> None:
        anchor, first = self._open.pop()
        if anchor is not None:
            self._anchored -= 1
            self._sizes[anchor] = self._total - first

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if event.anchor is not None:
            self._sizes[str(event.anchor)] = 0
        is_plain = event.tag is None and not event.style  # ``"<<"`` in quotes is a text
        if not self._merges and (event.tag == _MERGE or (is_plain and event.value == "<<")):
            raise Refused("has a merge key (<<); write the values out")

    def _repeat(self, anchor: str) -> None:
        if self._max_aliases is None:
            return
        self._aliases += 1
        self._total += self._sizes.get(anchor, 0)  # an unknown anchor is an error of the parser
        if self._aliases > self._max_aliases or self._anchored:
            raise Refused(
                f"has nested aliases, or more than {self._max_aliases}; write the values out"
            )

"""The server's tables: documents of kind ``Table`` read into rows, and rows into texts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, final

import msgspec

from kinform.meta import ListMeta
from kinform.objects.object import Object

__all__ = [
    "Column",
    "Row",
    "ServerTable",
    "age",
    "cell_text",
    "duration",
    "header_texts",
    "parse_table",
    "plain",
    "printable",
    "row_texts",
    "shown",
]

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_Unit: TypeAlias = tuple[int, str]
_SPANS: Final[Sequence[tuple[int, tuple[_Unit, _Unit | None]]]] = (
    (2 * _MINUTE, ((1, "s"), None)),
    (10 * _MINUTE, ((_MINUTE, "m"), (1, "s"))),
    (3 * _HOUR, ((_MINUTE, "m"), None)),
    (8 * _HOUR, ((_HOUR, "h"), (_MINUTE, "m"))),
    (2 * _DAY, ((_HOUR, "h"), None)),
    (8 * _DAY, ((_DAY, "d"), (_HOUR, "h"))),
    (2 * _YEAR, ((_DAY, "d"), None)),
    (8 * _YEAR, ((_YEAR, "y"), (_DAY, "d"))),
)
"""Up to which span which units are written."""
_LONGEST: Final[tuple[_Unit, _Unit | None]] = (_YEAR, "y"), None


class Column(msgspec.Struct, frozen=True):
    """One column as the server defines it; those with a priority are for ``-o wide`` only."""

    name: str
    type: str = ""
    priority: int = 0


PLAIN_COLUMNS: Final = (Column("Name"), Column("Age"))
"""For servers that make no tables."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """An object and the server's cells for exactly this version of it."""

    obj: Object
    cells: tuple[object, ...] = ()
    columns: tuple[Column, ...] = ()
    received: float = 0.0
    """When it came off the wire, in the event loop's time."""


class _TableRow(msgspec.Struct):
    cells: list[object]
    of: msgspec.Raw = msgspec.field(name="object", default=msgspec.Raw(b"null"))


class _Document(msgspec.Struct):
    """A Table, or the list that a server sends instead if it makes none."""

    kind: str = ""
    metadata: ListMeta | None = None
    columns: tuple[Column, ...] | None = msgspec.field(name="columnDefinitions", default=None)
    rows: list[_TableRow] | None = None
    items: list[msgspec.Raw] | None = None


@final
@dataclass(frozen=True, slots=True)
class ServerTable:
    """The rows and the metadata of one document."""

    rows: list[Row]
    metadata: ListMeta
    columns: tuple[Column, ...]


_decoder: Final = msgspec.json.Decoder(_Document)


def parse_table(
    raw: bytes, *, columns: tuple[Column, ...] = (), received: float = 0.0, kind: str = ""
) -> ServerTable:
    """Read a ``Table``; ``columns`` is for a table of a watch, which does not repeat its columns.

    A list of objects is read as well, as rows of kind ``kind`` with a name and an age.

    Raises:
        DecodeError: an object in it cannot be read.
        msgspec.DecodeError: it is neither.
    """
    document = _decoder.decode(raw)
    metadata = document.metadata or ListMeta()
    if document.kind != "Table":
        objects = [
            _typed(bytes(item), document.kind.removesuffix("List") or kind)
            for item in document.items or ()
        ]
        rows = [plain(obj, received) for obj in objects]
        return ServerTable(rows, metadata, PLAIN_COLUMNS)
    columns = document.columns or columns
    found = [
        Row(Object.from_bytes(bytes(row.of)), tuple(row.cells), columns, received)
        for row in document.rows or ()
    ]
    return ServerTable(found, metadata, columns)


def plain(obj: Object, received: float = 0.0) -> Row:
    """Return the row of an object for which the server made no cells."""
    return Row(obj, (obj.name, ""), PLAIN_COLUMNS, received)


def _typed(raw: bytes, kind: str) -> Object:
    """Return an item of a list, which does not say its kind, as an object that does."""
    obj = Object.from_bytes(raw)
    return obj if obj.kind else Object.from_dict({"kind": kind, **obj.to_dict()})


def shown(columns: Sequence[Column], *, wide: bool) -> list[int]:
    """Return the places of the columns to show."""
    return [at for at, column in enumerate(columns) if wide or column.priority == 0]


def header_texts(columns: Sequence[Column], *, wide: bool) -> list[str]:
    """Return the names above the columns to show."""
    return [cell_text(columns[at].name).upper() for at in shown(columns, wide=wide)]


def row_texts(row: Row, *, wide: bool, wall: float) -> list[str]:
    """Return the texts of a row's cells; the age is computed for the time ``wall``."""
    texts: list[str] = []
    for at in shown(row.columns, wide=wide):
        value = row.cells[at] if at < len(row.cells) else None
        if row.columns[at].name == "Age":
            value = age(row.obj, wall) or value
        texts.append(cell_text(value))
    return texts


def cell_text(value: object) -> str:
    r"""Return a cell as one line that no terminal takes for a command.

    >>> cell_text("two\nlines"), cell_text(None), cell_text(3), cell_text(True)
    ('two...', '', '3', 'true')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    first, *rest = str(value).splitlines() or [""]
    return f"{printable(first)}..." if rest else printable(first)


def printable(text: str) -> str:
    r"""Return ``text`` without what a terminal obeys: control and bidirectional characters.

    >>> printable("a\x1b[31mb\u202ec")
    'a?[31mb?c'
    """
    return "".join(char if char.isprintable() else "?" for char in text)


def age(obj: Object, wall: float) -> str:
    """Return the age of an object; ``""`` if it is unknown."""
    created = obj.metadata.creation_timestamp
    if not created:
        return ""
    try:
        return duration(wall - datetime.fromisoformat(created).timestamp())
    except ValueError:
        return ""


def duration(seconds: float) -> str:
    """Return a time span as kubectl writes it: two units while they are few, then one.

    >>> [duration(s) for s in (5, 119, 120, 150, 900, 10800, 12000, 90000, 200000, 800000)]
    ['5s', '119s', '2m', '2m30s', '15m', '3h', '3h20m', '25h', '2d7h', '9d']
    """
    whole = max(0, int(seconds))
    large, small = next((units for limit, units in _SPANS if whole < limit), _LONGEST)
    (size, unit), rest = large, whole % large[0]
    second = f"{rest // small[0]}{small[1]}" if small and rest // small[0] else ""
    return f"{whole // size}{unit}{second}"

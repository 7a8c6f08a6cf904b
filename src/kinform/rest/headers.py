"""`Headers`: the headers of an answer, as `kinform.rest.transport.HttpResponse` promises them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import final

__all__ = ["Headers"]


@final
class Headers(Mapping[str, str]):
    """Header fields by name, read-only; look-ups ignore case.

    Fields of the same name are one, their values joined by ``", "`` in order of arrival.
    Iterating gives each name as it was first spelled.

    >>> headers = Headers([("Warning", '299 - "a"'), ("warning", '299 - "b"')])
    >>> headers["WARNING"]
    '299 - "a", 299 - "b"'
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields: dict[str, tuple[str, str]] = {}
        for name, value in fields:
            key = name.lower()
            if key in self._fields:
                first, before = self._fields[key]
                self._fields[key] = first, f"{before}, {value}"
            else:
                self._fields[key] = name, value

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()][1]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._fields

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._fields.values())

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        # Values may hold credentials (Set-Cookie): names only.
        return f"<Headers {' '.join(self)}>"

"""Output of one line per change, for pipes and files. Pure, but for the column widths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from kinform.cli.cluster.informer_feed import RowChange
from kinform.cli.cluster.targets import Target
from kinform.cli.output.formats import Output, to_json, to_yaml, without_managed_fields
from kinform.cli.output.rows import Row, cell_text, header_texts, printable, row_texts

__all__ = ["Lines", "columns_text"]

_EVENT_WIDTH: Final = len("MODIFIED")
_GAP: Final = "   "


@final
class Lines:
    """Turns changes into text; a table's header comes with the first change of its kind.

    Args:
        with_namespace: whether objects of several namespaces are shown.
        with_kind: whether objects of several kinds are.
    """

    def __init__(self, output: Output, *, with_namespace: bool, with_kind: bool) -> None:
        self._output = output
        self._with_namespace = with_namespace
        self._with_kind = with_kind
        self._widths: dict[Target, list[int]] = {}
        self._headed: set[Target] = set()

    def measure(self, target: Target, rows: Iterable[Row], *, wall: float) -> None:
        """Make columns wide enough for ``rows``, so that the initial rows are aligned."""
        if self._output.is_table:
            for row in rows:
                self._fit(target, self._header(target, row))
                self._fit(target, self._cells(target, row, wall))

    def text(self, change: RowChange, *, wall: float) -> str:
        """Return what to print for a change, with its line ends."""
        match self._output.form:
            case "name":
                return change.target.name_of(change.row.obj) + "\n"
            case "json":
                content = without_managed_fields(change.row.obj.to_dict())
                return to_json({"type": change.type, "object": content}, compact=True) + "\n"
            case "yaml":
                where = printable(f"{change.target.label} {change.key}")
                content = without_managed_fields(change.row.obj.to_dict())
                return f"---\n# {change.type} {where}\n{to_yaml(content)}"
            case "jsonpath":
                assert self._output.path is not None
                return self._output.path.render(change.row.obj.to_dict()) + "\n"
            case _:
                return self._table(change, wall)

    def _table(self, change: RowChange, wall: float) -> str:
        target = change.target
        lines: list[str] = []
        if target not in self._headed:
            self._headed.add(target)
            header = self._header(target, change.row)
            self._fit(target, header)
            self._fit(target, self._cells(target, change.row, wall))
            lines.append(self._line("EVENT", target, header))
        cells = self._cells(target, change.row, wall)
        self._fit(target, cells)
        lines.append(self._line(change.type, target, cells))
        return "".join(lines)

    def _line(self, event: str, target: Target, cells: list[str]) -> str:
        widths = self._widths[target]
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
        return _GAP.join([event.ljust(_EVENT_WIDTH), *padded]).rstrip() + "\n"

    def _header(self, target: Target, row: Row) -> list[str]:
        names = header_texts(row.columns, wide=self._output.is_wide)
        return ["NAMESPACE", *names] if self._shows_namespace(target) else names

    def _cells(self, target: Target, row: Row, wall: float) -> list[str]:
        cells = row_texts(row, wide=self._output.is_wide, wall=wall)
        if self._with_kind and cells:
            cells[0] = f"{target.label}/{cells[0]}"
        return [cell_text(row.obj.namespace), *cells] if self._shows_namespace(target) else cells

    def _shows_namespace(self, target: Target) -> bool:
        return self._with_namespace and target.resource.namespaced

    def _fit(self, target: Target, cells: list[str]) -> None:
        widths = self._widths.setdefault(target, [])
        widths += [0] * (len(cells) - len(widths))
        for at, cell in enumerate(cells):
            widths[at] = max(widths[at], len(cell))


def columns_text(table: list[list[str]]) -> str:
    """Return rows of cells, the header first, as aligned lines.

    >>> print(columns_text([["NAME", "AGE"], ["web-0", "5s"]]), end="")
    NAME    AGE
    web-0   5s
    """
    rows = [[cell_text(cell) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "".join(f"{line}\n" for line in lines)

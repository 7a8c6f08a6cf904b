from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kinform.cli.cluster.informer_feed import RowChange
from kinform.cli.output.board import FLASH, Board, BoardSection, _share
from kinform.cli.output.live import Standing, draw, fitting
from kinform.cli.output.tally import Tally
from tests.cli.support_rows import PODS, WALL, added, deleted, modified, row, target

NODES, MAPS = target("nodes", "Node"), target("configmaps", "ConfigMap")


def board(*changes: object, with_namespace: bool = False) -> Board:
    made = Board([PODS], wide=False, with_namespace=with_namespace)
    for change in changes:
        made.apply(change, now=100.0, wall=WALL)  # type: ignore[arg-type] # changes all
    return made


def section(of: Board, *, now: float = 100.0, height: int = 24) -> BoardSection:
    (only,) = of.sections(now=now, wall=WALL, height=height)
    return only


def marks(of: BoardSection) -> list[list[str]]:
    return [[cell.mark for cell in row] for row in of.rows]


def names(of: BoardSection) -> list[str]:
    return [row[0].text for row in of.rows]


def test_what_was_there_at_first_does_not_stand_out() -> None:
    assert marks(section(board(added("web", initial=True)))) == [["", "", ""]]


def test_a_new_row_stands_out_for_a_second() -> None:
    shown = board(added("web"))
    assert marks(section(shown)) == [["new"] * 3]
    assert marks(section(shown, now=100.1 + FLASH)) == [[""] * 3]


def test_only_the_cells_that_changed_stand_out() -> None:
    shown = board(added("web", initial=True))
    shown.apply(modified("web", "Failed"), now=200.0, wall=WALL)
    assert marks(section(shown, now=200.5)) == [["", "changed", ""]]


def test_a_change_that_no_cell_shows_marks_the_name() -> None:
    shown = board(added("web", initial=True))
    shown.apply(modified("web", "Running"), now=200.0, wall=WALL)
    assert marks(section(shown, now=200.5)) == [["changed", "", ""]]


def test_a_deleted_row_stays_for_a_second_and_goes() -> None:
    shown = board(added("a", initial=True), added("b", initial=True), deleted("a"))
    assert names(section(shown)) == ["a", "b"]
    assert marks(section(shown))[0] == ["gone"] * 3
    assert names(section(shown, now=100.1 + FLASH)) == ["b"]


def test_an_object_made_anew_while_its_old_row_goes_is_there() -> None:
    shown = board(added("a", initial=True), deleted("a"), added("a"))
    assert marks(section(shown, now=100.5)) == [["new"] * 3]


def test_rows_that_changed_last_are_kept_in_view() -> None:
    shown = board(*(added(f"pod-{n:02}", initial=True) for n in range(30)))
    shown.apply(modified("pod-29", "Failed"), now=200.0, wall=WALL)
    seen = section(shown, now=200.0, height=7)
    assert len(seen.rows) == 5
    assert "pod-29" in names(seen)
    assert seen.hidden == 25


@given(st.lists(st.integers(0, 50), max_size=5), st.integers(-5, 60))
def test_lines_are_shared_without_waste(wanted: list[int], room: int) -> None:
    given = _share(wanted, room)
    assert all(part <= want for part, want in zip(given, wanted, strict=True))
    assert sum(given) == max(0, min(room, sum(wanted)))


def picture(of: Board, standing: Standing, *, width: int = 120, height: int = 20) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(draw(of.sections(now=500.0, wall=WALL, height=height), standing, width=width))
    return capture.get()


SYNCED = Standing(has_synced=True, objects=1, rate=0, version="7", lag=0, received=0)


@pytest.mark.parametrize("height", range(-2, 12))
def test_a_terminal_of_few_lines_shows_whole_kinds_or_none(height: int) -> None:
    shown = Board([PODS, NODES, MAPS], wide=False, with_namespace=False)
    for kind in (PODS, NODES, MAPS):
        for name in ("a", "b"):
            change = RowChange("ADDED", kind, row(name), initial=True)
            shown.apply(change, now=100.0, wall=WALL)
    sections = shown.sections(now=500.0, wall=WALL, height=height)
    assert all(section.rows for section in sections)
    kinds = ["pods", "nodes", "configmaps"][: max(0, height) // 3]
    assert [section.title for section in sections] == kinds
    lines = picture(shown, SYNCED, height=height).splitlines()
    assert lines[-1].startswith("● synced")
    assert len(lines) <= max(0, height) + 1


def test_columns_that_do_not_fit_are_left_out_from_the_right() -> None:
    shown = board(added("a-name-of-some-length", "CrashLoopBackOff", initial=True))
    lines = picture(shown, SYNCED, width=40).splitlines()
    assert lines[0].split() == ["NAME", "STATUS"]
    assert lines[1].split() == ["a-name-of-some-length", "CrashLoopBackOff"]
    assert picture(shown, SYNCED, width=46).splitlines()[0].split() == ["NAME", "STATUS", "AGE"]


def test_a_name_gives_way_to_what_stands_beside_it() -> None:
    shown = board(added("x" * 60, "Running", initial=True), with_namespace=True)
    lines = picture(shown, SYNCED, width=40).splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "STATUS"]
    namespace, name, status = lines[1].split()
    assert (namespace, status) == ("shop", "Running")
    assert name == "x" * 19 + "…"


@given(st.lists(st.integers(1, 80), min_size=1, max_size=9), st.integers(5, 200), st.integers(1, 3))
def test_columns_never_take_more_than_there_is(wanted: list[int], room: int, least: int) -> None:
    widths = fitting(wanted, room=room, least=least)
    assert len(widths) >= min(least, len(wanted))
    assert sum(widths) + 2 * (len(widths) - 1) <= max(room, 3 * len(widths) - 2)
    if len(widths) > least:
        assert widths == wanted[: len(widths)], "what is left out makes room first"


def test_the_status_line_tells_how_it_stands() -> None:
    standing = Standing(
        has_synced=True, objects=2, rate=1.25, version="77", lag=0.002, received=12_300
    )
    shown = picture(board(added("[red]web[/red]")), standing)
    assert "● synced  2 objects  1.2 events/s  resourceVersion 77  lag 2 ms  12.3 kB" in shown
    assert "[red]web[/red]" in shown, "names are no markup"


def test_a_lost_connection_is_in_the_picture() -> None:
    standing = Standing(
        has_synced=True, objects=0, rate=0, version="", lag=0, received=0, trouble="gone\x1b[2J"
    )
    shown = picture(board(), standing)
    assert "○ disconnected" in shown
    assert "✗ gone [2J" in shown


def test_the_rate_is_of_the_last_seconds() -> None:
    tally = Tally(0.0)
    for at in range(10):
        tally.note(float(at), at - 0.5)
    assert (tally.events, tally.rate(9.0), tally.lag(9.0)) == (10, 1.2, 0.5)
    assert (tally.rate(100.0), tally.lag(100.0)) == (0.0, 0.0)

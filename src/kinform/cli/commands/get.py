"""``kinform get``: lists or gets objects once, as a table of the server's columns or in full.

Lists are read page by page. It has no cache: ``kinform watch`` follows changes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kinform import clock
from kinform.cli import problems
from kinform.cli.cluster.row_sources import TABLE, Wanted, collection
from kinform.cli.cluster.targets import Target, resolve, split_words
from kinform.cli.execution import asynchronously
from kinform.cli.options import ClusterOptions, Filters, access_options, selection_options
from kinform.cli.output import wire
from kinform.cli.output.formats import Output, to_json, to_yaml, without_managed_fields
from kinform.cli.output.lines import columns_text
from kinform.cli.output.rows import Row, header_texts, parse_table, row_texts
from kinform.client import Client
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.pager import PageProgress

__all__ = ["command"]

_PAGE = 500


@click.command("get", short_help="Show objects once.")
@click.argument("resource", metavar="RESOURCE")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@selection_options
@access_options
@click.option("-w", "--watch", "is_watch", is_flag=True, hidden=True)
def command(
    *,
    resource: str,
    names: tuple[str, ...],
    access: ClusterOptions,
    selection: Filters,
    output: Output,
    is_watch: bool,
) -> int:
    """Show objects once: of a kind (pods), of several (pods,services), of a category (all).

    Tables have the server's columns, as with kubectl; -o wide has all of them. -o wire shows the
    HTTP answer as it arrives. To see changes, use: kinform watch.

    \b
    Examples:
      kinform get pods -A
      kinform get deployments.apps web -o yaml
      kinform get pods/web-0 -o 'jsonpath={.status.podIP}{"\\n"}'
      kinform get pods -o 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'
      kinform get configmaps -o wire

    \b
    Exit codes:
      0  done, also if no objects match
      1  it failed: object not found, forbidden, server unreachable
      2  wrong command line
    """  # noqa: D301 - click wants the character itself
    if is_watch:
        raise click.UsageError("get shows objects once; use: kinform watch")
    if names and selection.all_namespaces:
        raise click.UsageError("an object of a name is in one namespace: leave out -A")
    if names and (selection.labels or selection.fields):
        raise click.UsageError("give names or selectors, not both")
    kinds = split_words([resource])
    if names and any(name for _, name in kinds):
        raise click.UsageError("give pods/NAME or pods NAME, not both")
    words = [f"{kind}/{name}" for kind, _ in kinds for name in names] or [resource]
    split_words(words)
    return asynchronously(lambda: _get(words, access, selection=selection, output=output))


async def _get(
    words: Sequence[str], access: ClusterOptions, *, selection: Filters, output: Output
) -> int:
    async with access.client() as client:
        targets = await resolve(client, words, verb="get" if "/" in words[0] else "list")
        wanted = [Wanted(client=client, target=one, selection=selection) for one in targets]
        if output.form == "wire":
            for one in wanted:
                await wire.show(one, sys.stdout.write)
        elif output.is_table:
            await _show_tables(wanted, output)
        else:
            _show_objects(wanted, await _objects(client, wanted), output)
    return problems.OK


async def _show_tables(wanted: Sequence[Wanted], output: Output) -> None:
    by_kind: dict[str, tuple[Wanted, list[Row]]] = {}
    for one in wanted:
        label = one.target.label
        by_kind.setdefault(label, (one, []))[1].extend(await _rows(one))
    tables = [(one, rows) for one, rows in by_kind.values() if rows]
    if not tables:
        place = wanted[0].namespace
        where = f" in namespace {place}" if place else ""
        click.echo(f"no objects found{where}", err=True)
    for at, (one, rows) in enumerate(tables):
        kind = one.target.label if len(tables) > 1 else ""
        sys.stdout.write(("\n" if at else "") + _table_text(one, rows, output, kind=kind))


async def _rows(wanted: Wanted) -> list[Row]:
    """Return one kind's rows, or the one of an object, page by page."""
    rows: list[Row] = []
    token, progress = "", PageProgress()
    while True:
        request = collection(wanted).header("Accept", TABLE)
        if wanted.target.name:
            request.name(wanted.target.name)
        else:
            request.params(
                ListOptions(
                    label_selector=wanted.selection.labels,
                    field_selector=wanted.selection.fields,
                    limit=_PAGE,
                    continue_token=token,
                )
            )
        kind = wanted.target.resource.kind
        table = parse_table((await request.do()).body, kind=kind)
        progress.note(table.rows)
        rows += table.rows
        token = table.metadata.continue_token
        if not token:
            return rows


def _table_text(wanted: Wanted, rows: Sequence[Row], output: Output, *, kind: str) -> str:
    columns = rows[0].columns
    with_namespace = wanted.target.resource.namespaced and wanted.namespace == ""
    header = header_texts(columns, wide=output.is_wide)
    table = [["NAMESPACE", *header] if with_namespace else header]
    wall = clock.SYSTEM.wall()
    for row in rows:
        cells = row_texts(row, wide=output.is_wide, wall=wall)
        if kind:
            cells[0] = f"{kind}/{cells[0]}"
        table.append([row.obj.namespace, *cells] if with_namespace else cells)
    return columns_text(table)


async def _objects(client: Client, wanted: Sequence[Wanted]) -> list[tuple[Target, Object]]:
    found: list[tuple[Target, Object]] = []
    for one in wanted:
        gvr = str(one.target.resource.gvr)
        resource = client.resource(gvr, namespace=one.namespace)
        if one.target.name:
            found.append((one.target, await resource.get(one.target.name)))
        else:
            listed = await resource.list(
                label_selector=one.selection.labels, field_selector=one.selection.fields
            )
            found += [(one.target, obj) for obj in listed]
    return found


def _show_objects(
    wanted: Sequence[Wanted], found: Sequence[tuple[Target, Object]], output: Output
) -> None:
    if output.form == "name":
        sys.stdout.writelines(f"{target.name_of(obj)}\n" for target, obj in found)
        return
    objects = [without_managed_fields(_typed(target, obj)) for target, obj in found]
    root: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": objects,
    }
    if len(wanted) == 1 and wanted[0].target.name:
        root = objects[0]
    if output.path is not None:
        sys.stdout.write(output.path.render(root))
    elif output.form == "json":
        sys.stdout.write(to_json(root) + "\n")
    else:
        sys.stdout.write(to_yaml(root))


def _typed(target: Target, obj: Object) -> dict[str, object]:
    """Return an object's content with its kind, which the items of a list leave out."""
    gvr = target.resource.gvr
    kinds = {"apiVersion": str(gvr.group_version), "kind": target.resource.kind}
    return {**kinds, **obj.to_dict()}

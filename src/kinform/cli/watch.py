"""``kinform watch``."""

from __future__ import annotations

import os
import sys

import click

from kinform.cli.json_path import JsonPathError
from kinform.cli.options import Access, Selection, access_options, read_duration, selection_options
from kinform.cli.outputs import Output
from kinform.cli.problems import one_line
from kinform.cli.running import asynchronously
from kinform.cli.until import Until

__all__ = ["command"]

DEFAULT = "pods,deployments,nodes"


def _read_until(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Until | None:
    try:
        return None if text is None else Until(text)
    except (ValueError, JsonPathError) as exc:
        raise click.BadParameter(one_line(str(exc))) from None


@click.command("watch", short_help="Follow kinds of objects live.")
@click.argument("resources", metavar="[RESOURCE]...", nargs=-1)
@selection_options
@access_options
@click.option(
    "--for",
    "time",
    metavar="DURATION",
    callback=read_duration,
    help="Stop after so long (30s, 5m), and compare the cache with a fresh list.",
)
@click.option(
    "--until",
    metavar="CONDITION",
    callback=_read_until,
    help="Stop when all objects meet it: delete, condition=Ready[=VALUE], jsonpath={PATH}=VALUE.",
)
@click.option("--metadata-only", is_flag=True, help="Have the server send metadata alone.")
@click.option("--demo", is_flag=True, help="Watch a demo cluster on this machine.")
@click.option("--seed", type=int, metavar="N", help="What happens in the demo cluster.")
def command(
    *,
    resources: tuple[str, ...],
    access: Access,
    selection: Selection,
    output: Output,
    time: float | None,
    until: Until | None,
    metadata_only: bool,
    demo: bool,
    seed: int | None,
) -> int:
    """Follow kinds of objects live: what an informer's cache holds, and what changes.

    RESOURCE is a kind (pods, po, Pod, deployments.apps, apps/v1/deployments), several (pods,nodes),
    a category (all), or one object (pods/web-0). Without one: pods, deployments and nodes.

    On a terminal the server's columns are shown as a live table; what changed stands out for a
    second. The last line tells whether the cache is synced, how many objects it holds, how fast
    they change, at which version it is, how long a change took from the wire to the screen (lag),
    and how much came in. Piped, or in another form than a table, each change is one line.

    Without a kubeconfig and without a cluster a demo cluster is started on this machine.

    \b
    Examples:
      kinform watch pods -A
      kinform watch pods,deployments -n shop -l app=web
      kinform watch pods/web-0 --until condition=Ready --for 2m && echo ready
      kinform watch pods -l job=import --until delete --for 1h
      kinform watch pods -o json | jq -r '.type + " " + .object.metadata.name'
      kinform watch pods -o 'jsonpath={.metadata.name} {.status.phase}'
      kinform watch configmaps -o wire

    \b
    Exit codes:
      0    the time of --for is over, or --until is met
      1    it failed, or --until was not met in the time of --for
      2    wrong command line
      130  ended by Ctrl-C; 143 by SIGTERM

    A lost connection is told, and the watch goes on when the server is back.
    """  # noqa: D301 - click wants the character itself
    from kinform.cli.targets import split_words
    from kinform.cli.watching import Plan, watch

    split_words(resources)  # what cannot be is told before anything is started
    if until is not None and output.form == "wire":
        raise click.UsageError("-o wire looks at bytes: leave out --until")
    if until is not None and metadata_only and not until.is_delete:
        raise click.UsageError("--until needs whole objects: leave out --metadata-only")
    plan = Plan(
        words=resources or (DEFAULT,),
        access=access,
        selection=selection,
        output=output,
        time=time,
        until=until,
        metadata_only=metadata_only,
        demo=demo,
        seed=seed,
        is_terminal=sys.stdout.isatty() and os.environ.get("TERM") != "dumb",
    )
    return asynchronously(lambda: watch(plan))

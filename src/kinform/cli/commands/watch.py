"""``kinform watch``: follows objects with informers, as a live table or one line per change.

This module reads the command line; ``kinform.cli.cluster.watch_session`` runs the informers.
"""

from __future__ import annotations

import os
import sys

import click

from kinform.cli.cluster.until import Until
from kinform.cli.execution import asynchronously
from kinform.cli.options import (
    ClusterOptions,
    Filters,
    access_options,
    read_duration,
    selection_options,
)
from kinform.cli.output.formats import Output
from kinform.cli.output.json_path import JsonPathError
from kinform.cli.problems import one_line

__all__ = ["command"]

DEFAULT = "pods,deployments,nodes"


def _read_until(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Until | None:
    try:
        return None if text is None else Until(text)
    except (ValueError, JsonPathError) as exc:
        raise click.BadParameter(one_line(str(exc))) from None


@click.command("watch", short_help="Follow objects live.")
@click.argument("resources", metavar="[RESOURCE]...", nargs=-1)
@selection_options
@access_options
@click.option(
    "--for",
    "time",
    metavar="DURATION",
    callback=read_duration,
    help="Stop after this time (30s, 5m), and compare the cache with a fresh list.",
)
@click.option(
    "--until",
    metavar="CONDITION",
    callback=_read_until,
    help="Stop when all objects meet it: delete, condition=Ready[=VALUE], jsonpath={PATH}=VALUE.",
)
@click.option("--metadata-only", is_flag=True, help="Request metadata only from the server.")
@click.option("--demo", is_flag=True, help="Watch a demo cluster on this machine.")
@click.option("--seed", type=int, metavar="N", help="The random seed of the demo cluster.")
def command(
    *,
    resources: tuple[str, ...],
    access: ClusterOptions,
    selection: Filters,
    output: Output,
    time: float | None,
    until: Until | None,
    metadata_only: bool,
    demo: bool,
    seed: int | None,
) -> int:
    """Follow objects live: the contents of an informer's cache, and its changes.

    RESOURCE is a kind (pods, po, Pod, deployments.apps, apps/v1/deployments), several (pods,nodes),
    a category (all), or one object (pods/web-0). Without one: pods, deployments and nodes.

    On a terminal the server's columns are shown as a live table; changed cells are highlighted for
    a second. The last line shows whether the cache is synced, its number of objects, the rate of
    changes, its resource version, the time from the wire to the screen (lag), and the bytes
    received. In a pipe, or with another output than a table, each change is one line.

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
      0    --for has elapsed, or --until is met
      1    it failed, or --until was not met within --for
      2    wrong command line
      130  stopped by Ctrl-C; 143 by SIGTERM

    A lost connection is reported, and the watch continues when the server is back.
    """  # noqa: D301 - click wants the character itself
    from kinform.cli.cluster.targets import split_words
    from kinform.cli.cluster.watch_session import Plan, watch

    split_words(resources)  # an invalid argument is reported before anything is started
    if until is not None and output.form == "wire":
        raise click.UsageError("-o wire shows bytes: leave out --until")
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

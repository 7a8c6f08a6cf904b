"""``kinform api-resources``: lists the kinds that a server serves, from discovery."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kinform.cli import problems
from kinform.cli.execution import asynchronously, warn
from kinform.cli.options import ClusterOptions, access_options
from kinform.cli.output.formats import to_json
from kinform.cli.output.lines import columns_text
from kinform.cli.output.rows import printable
from kinform.rest.restmapper import APIResource

__all__ = ["command"]


@click.command("api-resources", short_help="List the kinds that the server serves.")
@access_options
@click.option("--api-group", metavar="GROUP", help="List this group only; '' is the core group.")
@click.option(
    "--namespaced/--no-namespaced",
    default=None,
    help="List namespaced, or cluster-scoped, kinds only.",
)
@click.option(
    "--verbs",
    metavar="VERBS",
    default="",
    help="List kinds with all of these verbs only: list,watch",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "name", "json"]), default="table"
)
def command(
    *,
    access: ClusterOptions,
    api_group: str | None,
    namespaced: bool | None,
    verbs: str,
    output: str,
) -> int:
    """List the kinds that the server serves, each in its preferred version.

    \b
    Examples:
      kinform api-resources
      kinform api-resources --api-group apps -o wide
      kinform api-resources --verbs list,watch --namespaced -o name

    Exit codes: 0 done, 1 failed, 2 wrong command line.
    """  # noqa: D301 - click wants the character itself
    wanted = frozenset(filter(None, verbs.split(",")))
    found = asynchronously(lambda: _fetch(access))
    chosen = [
        one
        for one in found
        if (api_group is None or one.gvr.group == api_group)
        and (namespaced is None or one.namespaced == namespaced)
        and wanted <= one.verbs
    ]
    sys.stdout.write(_text(chosen, output))
    if api_group is not None and all(one.gvr.group != api_group for one in found):
        warn(f"the server has no API group {api_group!r}")
    elif not chosen:
        warn("the server has no such kinds")
    return problems.OK


async def _fetch(access: ClusterOptions) -> list[APIResource]:
    async with access.client() as client:
        preferred: dict[tuple[str, str], APIResource] = {}
        for one in await client.api_resources():
            preferred.setdefault((one.gvr.group, one.gvr.resource), one)
    return [preferred[key] for key in sorted(preferred)]


def _text(found: Sequence[APIResource], form: str) -> str:
    if form == "name":
        return "".join(f"{_name(one)}\n" for one in found)
    if form == "json":
        return to_json([_members(one) for one in found]) + "\n"
    header = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    rows = [
        [
            one.gvr.resource,
            ",".join(one.short_names),
            str(one.gvr.group_version),
            "true" if one.namespaced else "false",
            one.kind,
        ]
        for one in found
    ]
    if form == "wide":
        header += ["VERBS", "CATEGORIES"]
        for row, one in zip(rows, found, strict=True):
            row += [",".join(sorted(one.verbs)), ",".join(one.categories)]
    return columns_text([header, *rows])


def _name(one: APIResource) -> str:
    name = f"{one.gvr.resource}.{one.gvr.group}" if one.gvr.group else one.gvr.resource
    return printable(name)


def _members(one: APIResource) -> dict[str, object]:
    return {
        "name": one.gvr.resource,
        "apiVersion": str(one.gvr.group_version),
        "kind": one.kind,
        "namespaced": one.namespaced,
        "shortNames": list(one.short_names),
        "categories": list(one.categories),
        "verbs": sorted(one.verbs),
    }

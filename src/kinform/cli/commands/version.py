"""``kinform version``: shows the versions of kinform, of Python and of the server."""

from __future__ import annotations

import platform

import click

from kinform.cli import problems
from kinform.cli.execution import asynchronously, warn
from kinform.cli.options import ClusterOptions, access_options
from kinform.cli.output.formats import to_json
from kinform.cli.output.rows import printable
from kinform.client import VersionInfo
from kinform.errors import ConfigError
from kinform.version import __version__

__all__ = ["command"]


@click.command("version", short_help="Show the versions of kinform and of the server.")
@access_options
@click.option("--client", "client_only", is_flag=True, help="Do not connect to a server.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(*, access: ClusterOptions, client_only: bool, output: str) -> int:
    """Show the versions of kinform, of Python, and of the server.

    \b
    Examples:
      kinform version
      kinform version --client -o json

    Exit codes: 0 done, also where no server is configured; 1 the server does not answer.
    """  # noqa: D301 - click wants the character itself
    ours = {"kinform": __version__, "python": platform.python_version()}
    if output == "text":
        click.echo(f"kinform {ours['kinform']} (Python {ours['python']})")
    found = None if client_only else asynchronously(lambda: _ask(access))
    if output == "json":
        server = None
        if found is not None:
            url, version = found
            server = {"url": url, "version": version.git_version, "platform": version.platform}
        click.echo(to_json({**ours, "server": server}))
    elif found is not None:
        url, version = found
        said = printable(f"{version.git_version} ({version.platform})")
        click.echo(f"server  {said} at {url}")
    return problems.OK


async def _ask(access: ClusterOptions) -> tuple[str, VersionInfo] | None:
    client = access.client()
    try:
        await client.open()
    except ConfigError as exc:
        if exc.source or access.is_given:
            raise
        warn("no kubeconfig and no cluster found")
        return None
    try:
        return problems.without_secrets(client.config.server), await client.version()
    finally:
        await client.aclose()

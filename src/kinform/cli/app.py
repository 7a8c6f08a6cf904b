"""The command group. A command is imported when it is called or its help is shown."""

from __future__ import annotations

from importlib import import_module
from typing import Final, final

import click

from kinform.version import __version__

__all__ = ["cli"]

_COMMANDS: Final = {
    "watch": (
        "kinform.cli.commands.watch",
        "Follow kinds of objects live, from an informer's cache.",
    ),
    "get": ("kinform.cli.commands.get", "Show objects once."),
    "api-resources": (
        "kinform.cli.commands.api_resources",
        "List the kinds that the server serves.",
    ),
    "gen": ("kinform.cli.commands.gen", "Generate typed models and clients for custom kinds."),
    "serve": ("kinform.cli.commands.serve", "Run an API server on this machine."),
    "simulate": (
        "kinform.cli.commands.simulate",
        "Test controllers under simulated faults, seed by seed.",
    ),
    "version": ("kinform.cli.commands.version", "Show the versions of kinform and of the server."),
}
"""The module and the help line of each command, so that the list of commands imports none."""


@final
class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in _COMMANDS:
            return None
        command: object = import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.command(
    cls=_Commands,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kinform", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Kubernetes' list/watch machinery on the command line.

    \b
    Examples:
      kinform watch pods                  follow the pods of your namespace
      kinform watch                       without a cluster: start a demo cluster
      kinform get deployments -A          show objects once, with the server's columns
      kinform serve --demo                run an API server for kubectl and other clients

    \b
    Exit codes:
      0  done                             1  failed, or --until not met in time
      2  wrong command line               130, 143  ended by Ctrl-C, by SIGTERM

    Errors are one line on stderr; --debug after a command shows where they come from. Shell
    completion: eval "$(_KINFORM_COMPLETE=bash_source kinform)", also zsh_source, fish_source.
    """  # noqa: D301 - click wants the character itself
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())

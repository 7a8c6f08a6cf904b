"""``kinform serve``: runs the embedded API server until a signal, and writes its kubeconfig.

The kubeconfig holds the token: only its owner may read it, and a file of another origin is not
overwritten.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import click

from kinform.cli import problems
from kinform.cli.cluster.embedded import Embedded, embedded
from kinform.cli.execution import Interrupted, asynchronously, emit
from kinform.cli.options import TOKEN, debug_option
from kinform.cli.problems import CommandProblem
from kinform.clock import offload

__all__ = ["command", "write_kubeconfig"]

MARK: Final = "# written by kinform serve; it may write it again\n"
"""The first line of our kubeconfigs: a file without it is not overwritten."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    port: int
    data: Path | None
    faults: Path | None
    kubeconfig: Path | None
    force: bool
    demo: bool
    seed: int | None


@click.command("serve", short_help="Run an API server on this machine.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port; 0: any free port.",
)
@click.option(
    "--data",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the objects in this file; by default they are lost at the end.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Simulate a cluster whose objects are created, changed and deleted.",
)
@click.option("--seed", type=int, metavar="N", help="The random seed of the demo cluster.")
@click.option(
    "--faults",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Inject the faults described in FILE.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a kubeconfig to FILE, readable by you alone.",
)
@click.option("--force", is_flag=True, help="Overwrite a kubeconfig that kinform did not write.")
@debug_option
def command(
    *,
    port: int,
    data: Path | None,
    demo: bool,
    seed: int | None,
    faults: Path | None,
    kubeconfig: Path | None,
    force: bool,
) -> int:
    """Run an API server on this machine, for kubectl and other Kubernetes clients.

    It listens on loopback only and requires a token: a random one, or the value of KINFORM_TOKEN.
    The kubeconfig contains the token. Ctrl-C or SIGTERM stops the server.

    \b
    Examples:
      kinform serve --kubeconfig /tmp/kubeconfig
      KUBECONFIG=/tmp/kubeconfig kubectl get namespaces
      kinform serve --demo --port 8001 --kubeconfig demo.kubeconfig
      kinform serve --data cluster.db --kubeconfig cluster.kubeconfig

    Exit codes: 0 stopped by a signal; 1 failed: port in use, corrupted data file; 2 wrong command
    line.
    """  # noqa: D301 - click wants the character itself
    plan = _Plan(
        port=port,
        data=data,
        faults=faults,
        kubeconfig=kubeconfig,
        force=force,
        demo=demo,
        seed=seed,
    )
    with contextlib.suppress(Interrupted):  # the way it is meant to end
        asynchronously(lambda: _serve(plan))
    return problems.OK


async def _serve(plan: _Plan) -> None:
    server = embedded(
        live=plan.demo,
        seed=plan.seed,
        port=plan.port,
        data=plan.data,
        faults=plan.faults,
        token=os.environ.get(TOKEN) or None,
    )
    if plan.kubeconfig is not None:  # refused before anything is started
        await offload(_refuse_foreign, plan.kubeconfig, force=plan.force)
    async with server as running:
        await _announce(running, plan)
        await asyncio.Event().wait()


async def _announce(server: Embedded, plan: _Plan) -> None:
    lines = [f"serving {server.url}"]
    if plan.kubeconfig is not None:
        path = plan.kubeconfig.absolute()
        await offload(write_kubeconfig, path, server.kubeconfig(), force=plan.force)
        lines += [
            f"kubeconfig {path}",
            f"try: KUBECONFIG={path} kubectl get namespaces",
            f"     kinform watch --kubeconfig {path}",
        ]
    else:
        lines.append(_about_token())
    emit("".join(f"{line}\n" for line in lines))


def _about_token() -> str:
    if os.environ.get(TOKEN):
        return f"its token is that of {TOKEN}"
    return (
        "it requires a random token: start it again with --kubeconfig FILE to have it "
        f"written there, or set {TOKEN} to choose it"
    )


def write_kubeconfig(path: Path, text: str, *, force: bool) -> None:
    """Write a kubeconfig that its owner alone can read, in one step.

    Raises:
        Problem: there is one that is not ours, and no ``force``; or it cannot be written.
    """
    _refuse_foreign(path, force=force)
    try:
        _replace(path, MARK + text)
    except OSError as exc:  # of a file beside it, whose name says nothing to anybody
        reason = exc.strerror or str(exc)
        raise CommandProblem(f"the kubeconfig {path} cannot be written: {reason.lower()}") from exc


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    mode = stat.S_IRUSR | stat.S_IWUSR
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _refuse_foreign(path: Path, *, force: bool) -> None:
    if force:
        return
    try:
        with path.open("rb") as file:
            is_ours = file.read(len(MARK)) in {b"", MARK.encode()}
    except FileNotFoundError:
        return
    if not is_ours:
        raise CommandProblem(
            f"{path} is there and was not written by kinform serve; --force replaces it"
        )

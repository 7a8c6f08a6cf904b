"""The embedded API server and its demo cluster, as the command uses them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, final

from kinform.cli.problems import CommandProblem
from kinform.client import Client
from kinform.clock import offload

if TYPE_CHECKING:
    from kinform.apiserver import APIServer
    from kinform.apiserver.faults.plan import FaultPlan

__all__ = ["Embedded", "embedded"]


@final
class Embedded:
    """A running server; with ``live`` it has a demo cluster whose objects come, change and go."""

    def __init__(self, server: APIServer, demo: AsyncExitStack) -> None:
        self._server = server
        self._demo = demo

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._server.url

    def kubeconfig(self) -> str:
        """Return a kubeconfig for it, as YAML."""
        return self._server.kubeconfig()

    def connect(self) -> Client:
        """Return a client of it that is not open yet."""
        return self._server.connect()

    async def settle(self) -> None:
        """End the demo's life; what it has made stays as it is."""
        await self._demo.aclose()


@asynccontextmanager
async def embedded(
    *,
    live: bool,
    seed: int | None = None,
    port: int = 0,
    token: str | None = None,
    data: Path | None = None,
    faults: Path | None = None,
) -> AsyncGenerator[Embedded]:
    """Run a server within the block; ``faults`` is a file that says what is to go wrong.

    Raises:
        Problem: the file cannot be read.
        UsageError: its contents are invalid, the port is in use or the data file is not one.
    """
    # The server is imported on first use only.
    from kinform.apiserver import APIServer
    from kinform.apiserver.demo import Demo

    plan = None if faults is None else await _plan(faults)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            APIServer(port=port, token=token, seed=seed, data=data, faults=plan)
        )
        demo = await stack.enter_async_context(AsyncExitStack())
        if live:
            await demo.enter_async_context(Demo(server, seed=seed))
        yield Embedded(server, demo)


async def _plan(path: Path) -> FaultPlan:
    from kinform.apiserver import faults
    from kinform.apiserver.faults.plan import FaultPlan

    try:
        text = await offload(path.read_text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandProblem(f"{path}: cannot be read: {exc}") from exc
    return FaultPlan(faults.load(text, source=str(path)))

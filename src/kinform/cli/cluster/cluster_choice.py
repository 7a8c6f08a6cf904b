"""The cluster that a watch connects to: the configured one, or the embedded demo."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import final

from kinform.cli.cluster.embedded import embedded
from kinform.cli.execution import warn
from kinform.cli.options import ClusterOptions
from kinform.client import Client
from kinform.errors import ConfigError

__all__ = ["OpenCluster", "open_cluster"]


@final
@dataclass(frozen=True, slots=True)
class OpenCluster:
    """A client that is open; ``settle`` brings a demo cluster to rest."""

    client: Client
    is_demo: bool
    settle: Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_cluster(
    access: ClusterOptions, *, demo: bool, seed: int | None
) -> AsyncGenerator[OpenCluster]:
    """Connect to the configured cluster; if none is configured, to a demo on this machine.

    An invalid configuration is an error; the demo is not started then.

    Raises:
        ConfigError: the configuration is wrong.
    """
    async with AsyncExitStack() as stack:
        client = None if demo else await _configured(stack, access)
        if client is not None:
            yield OpenCluster(client, False, _nothing)  # noqa: FBT003 - a field, in order
            return
        server = await stack.enter_async_context(embedded(live=True, seed=seed))
        client = await stack.enter_async_context(server.connect())
        yield OpenCluster(client, True, server.settle)  # noqa: FBT003 - a field, in order


async def _configured(stack: AsyncExitStack, access: ClusterOptions) -> Client | None:
    try:
        return await stack.enter_async_context(access.client())
    except ConfigError as exc:
        if exc.source or access.is_given:
            raise
    warn("no kubeconfig and no cluster found: starting a demo cluster on this machine")
    return None


async def _nothing() -> None:
    """Do nothing: a real cluster need not settle."""

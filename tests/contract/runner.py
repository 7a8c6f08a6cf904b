"""Run cases on a server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from tests.contract.case import Case
from tests.contract.exchange import Json
from tests.contract.normal import Normal
from tests.contract.session import Session
from tests.contract.target import Target, of_embedded

__all__ = ["Outcome", "run", "run_all", "run_embedded"]

AT_ONCE: Final = 8
AT_ONCE_EMBEDDED: Final = 32
"""Most cases wait for the clock of the server; a single process runs them, so it has time."""
CASE_TIMEOUT: Final = 60.0


@dataclass(frozen=True)
class Outcome:
    """The result of a case."""

    exchanges: list[Json]
    error: str = ""
    """Why the case could not go on to its end."""

    @property
    def is_timely(self) -> bool:
        """No watch ran into its timeout."""
        return all("in time" not in each.get("ended", "") for each in self.exchanges)


async def run(case: Case, target: Target) -> Outcome:
    """Run one case on a server and return its exchanges, normalised."""
    connector = aiohttp.TCPConnector(ssl=target.ssl, force_close=True, limit=0)
    plain = ["Accept-Encoding"]  # a case says itself when it takes gzip
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=plain) as http:
        session = Session(http, target, ident=f"c{secrets.token_hex(4)}")
        error = ""
        try:
            async with asyncio.timeout(CASE_TIMEOUT):
                await session.open()
                await case.run(session)
        except Exception as caught:  # noqa: BLE001 - a case fails in any way the server can think of
            error = f"{type(caught).__name__}: {caught}"
        exchanges = list(session.exchanges)
        await session.close()
    normal = Normal(ident=session.ident, ns=session.ns, url=target.url, named=session.named)
    recorded = [(normal.exchange(each), each.is_quiet) for each in exchanges]
    return Outcome([shown for shown, is_quiet in recorded if not is_quiet], error)


async def run_embedded(cases: Sequence[Case]) -> dict[str, Outcome]:
    """Run cases on embedded servers: one for all, and one for each case that compacts."""
    from kinform.apiserver import APIServer

    usual = [case for case in cases if not case.compacts]
    async with APIServer() as server:
        outcomes = await run_all(usual, of_embedded(server), at_once=AT_ONCE_EMBEDDED)
    for case in cases:
        if case.compacts:
            async with APIServer() as server:
                outcomes[case.id] = await run(case, of_embedded(server))
    return outcomes


async def run_all(
    cases: Iterable[Case], target: Target, *, at_once: int = AT_ONCE
) -> dict[str, Outcome]:
    """Run cases, some at once, and those that compact one by one at the end; sorted by id."""
    outcomes: dict[str, Outcome] = {}
    slots = asyncio.Semaphore(at_once)

    async def one(case: Case) -> None:
        async with slots:
            outcomes[case.id] = await run(case, target)

    late: list[Case] = []
    async with asyncio.TaskGroup() as group:
        for case in cases:
            if case.compacts:
                late.append(case)
            else:
                group.create_task(one(case))
    for case in late:
        await one(case)
    return dict(sorted(outcomes.items()))

"""A soak run: a server, writers, a faulty network, and a process under test behind it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final, final

import msgspec

from kinform.tasks import background
from kinform.testing import Relay
from tools.soak.churn import Churn
from tools.soak.messages import Address, Said, Sample, State
from tools.soak.record import Checkpoint, Fault, Record, differences
from tools.soak.targets import NAMESPACE, TARGETS, Target, Trouble

__all__ = ["SubjectLost", "soak"]

PATIENCE: Final = 90.0
"""Seconds within which all caches must equal the server after the faults have ended.

A silent watch is closed after 50 seconds; the longest backoff is 8.
"""
_WRITERS: Final = 4
_END: Final = 20.0
_LONGEST_LINE: Final = 1 << 24
_DECODER: Final[msgspec.json.Decoder[Said]] = msgspec.json.Decoder(Said)


class SubjectLost(Exception):
    """The process under test is of no use any more."""


@final
class Subject:
    """The process under test, as its driver sees it."""

    def __init__(self, process: Process, record: Record) -> None:
        self._process = process
        self._record = record
        self._states: asyncio.Queue[State | None] = asyncio.Queue()  # None: it has ended

    async def listen(self) -> None:
        """Take what it says; return when it has ended."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            said = _DECODER.decode(line)
            if isinstance(said, Sample):
                self._record.samples.append(said)
            else:
                self._states.put_nowait(said)
        self._states.put_nowait(None)

    async def state(self) -> State:
        """Ask what it believes.

        Raises:
            SubjectLost: it has ended, or does not answer.
        """
        assert self._process.stdin is not None
        try:
            async with asyncio.timeout(_END):
                with contextlib.suppress(ConnectionError):
                    self._process.stdin.write(b"\n")
                    await self._process.stdin.drain()
                state = await self._states.get()
        except TimeoutError:
            raise SubjectLost(f"it does not answer within {_END:.0f} s") from None
        if state is None:
            raise SubjectLost("it has ended before its time")
        return state


@contextlib.asynccontextmanager
async def _subject(address: Address, record: Record) -> AsyncGenerator[Subject]:
    command = [sys.executable, "-m", "tools.soak.subject"]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE, start_new_session=True
    )
    assert process.stdin is not None
    try:
        process.stdin.write(msgspec.json.encode(address) + b"\n")
        await process.stdin.drain()
        subject = Subject(process, record)
        async with background(subject.listen()):
            yield subject
            process.stdin.close()
            async with asyncio.timeout(_END):
                code = await process.wait()
        if code:
            raise SubjectLost(f"it ended with {code}")
    except TimeoutError:
        raise SubjectLost(f"it did not end within {_END:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@final
class Run:
    """One run, from its first fault to its last checkpoint."""

    def __init__(
        self, record: Record, *, relay: Relay, churn: Churn, subject: Subject, target: Target
    ) -> None:
        self._record = record
        self._relay = relay
        self._churn = churn
        self._subject = subject
        self._random = random.Random(f"faults {record.seed}")
        self._troubles: Mapping[str, Trouble] = {**self._network(), **target.troubles()}
        self._began = asyncio.get_running_loop().time()

    @property
    def now(self) -> float:
        """Seconds since it began."""
        return asyncio.get_running_loop().time() - self._began

    async def go(self, tell: Callable[[str], object]) -> None:
        """Go on for as long as the record says."""
        end = self._record.minutes * 60
        while self.now < end:
            await self._trouble(until=min(self.now + self._record.period, end))
            checkpoint = await self._check()
            self._record.checkpoints.append(checkpoint)
            self._record.writes, self._record.refused = self._churn.writes, self._churn.refused
            tell(self._line(checkpoint))

    async def _trouble(self, *, until: float) -> None:
        while self.now < until:
            kind = self._random.choice(sorted(self._troubles))
            began = self.now
            await self._troubles[kind](self._random)
            self._record.faults.append(Fault(at=began, took=self.now - began, kind=kind))
            await asyncio.sleep(self._random.uniform(0, 4))

    async def _check(self) -> Checkpoint:
        async with self._churn.pausing():
            began = self.now
            truth = await self._churn.truth()
            while True:
                state = await self._subject.state()
                wrong = differences(state, truth)
                if not wrong or state.complaints or self.now > began + PATIENCE:
                    break
                await asyncio.sleep(0.25)
            return Checkpoint(
                at=began,
                took=self.now - began,
                objects=len(truth["cache"]),
                tasks=self._record.samples[-1].tasks,
                wrong=wrong,
            )

    def _line(self, checkpoint: Checkpoint) -> str:
        last = self._record.samples[-1]
        minutes, seconds = divmod(int(self.now), 60)
        verdict = f"{len(checkpoint.wrong)} WRONG" if checkpoint.wrong else "equal"
        return (
            f"{minutes:4}:{seconds:02}  {checkpoint.objects:4} objects {verdict} after "
            f"{checkpoint.took:4.1f} s  {self._churn.writes:7,} writes  "
            f"{len(self._record.faults):4} faults  {last.failures:4} failures  "
            f"{last.rss / 1e6:6.1f} MB  {last.tasks:3} tasks  {last.descriptors:3} descriptors"
        )

    def _network(self) -> Mapping[str, Trouble]:
        relay = self._relay

        async def cut(_: random.Random) -> None:
            relay.cut()

        async def dropped(_: random.Random) -> None:
            relay.drop()

        async def broken_off(rng: random.Random) -> None:
            relay.limit = rng.randint(1, 20_000)  # from the handshake to the midst of a list
            try:
                relay.cut()
                await asyncio.sleep(rng.uniform(1, 6))
            finally:
                relay.limit = None

        async def throttled(rng: random.Random) -> None:
            relay.rate = rng.uniform(2_000, 50_000)
            try:
                await asyncio.sleep(rng.uniform(2, 8))
            finally:
                relay.rate = None

        async def stalled(rng: random.Random) -> None:
            relay.stall()
            try:
                await asyncio.sleep(rng.uniform(1, 8))
            finally:
                relay.resume()

        async def slow(rng: random.Random) -> None:
            relay.delay = rng.uniform(0.05, 2)
            try:
                await asyncio.sleep(rng.uniform(2, 8))
            finally:
                relay.delay = 0

        async def refused(rng: random.Random) -> None:
            await relay.__aexit__(None, None, None)
            try:
                await asyncio.sleep(rng.uniform(0.5, 5))
            finally:
                await relay.__aenter__()

        return {
            "cut": cut,
            "dropped": dropped,
            "broken off": broken_off,
            "stalled": stalled,
            "slow": slow,
            "throttled": throttled,
            "refused": refused,
        }


async def soak(record: Record, tell: Callable[[str], object]) -> None:
    """Do what ``record`` says, and write into it what was seen.

    Raises:
        SubjectLost: the process under test has died, hangs, or did not end in good order.
    """
    async with (
        TARGETS[record.server]() as target,
        target.connect() as client,
        Relay("127.0.0.1", target.port) as relay,
        contextlib.AsyncExitStack() as stack,
    ):
        churn = Churn(client, NAMESPACE, random.Random(f"writes {record.seed}"))
        await churn.fill()
        for _ in range(_WRITERS):
            await stack.enter_async_context(background(churn.run()))
        subject = await stack.enter_async_context(_subject(target.address(relay.port), record))
        await subject.state()  # an answer shows that it runs
        run = Run(record, relay=relay, churn=churn, subject=subject, target=target)
        await run.go(tell)

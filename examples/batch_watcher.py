"""Follow thousands of Jobs until they end: progress and results, each Job counted once.

A job ends when it is complete, failed or deleted. A lost connection does not matter: after an
outage everything is listed again, and a counted job is not counted twice. A suspended job is
waited for, unless you pass ``--leave-suspended``. Only a few fields of each job are kept: a
model names them, and the rest is not even decoded.

``python examples/batch_watcher.py --selector batch=nightly [--expect 2000] [--progress SECONDS]``
``python examples/batch_watcher.py --demo``

The exit code is 1 if a job has failed or not ended in time, 2 if there is none to follow. Against
the cluster kubectl would use; where there is none, an API server of its own is started.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import enum
import secrets
import statistics
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

import kinform
from kinform.apiserver import APIServer
from kinform.tasks import background

SILENCE = 180.0
SHOWN = 20
"""So many of the jobs that failed are named at the end."""


# --- what is kept of a job


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One of a job's conditions."""

    type: str
    status: str
    reason: str | None = None
    since: str | None = msgspec.field(name="lastTransitionTime", default=None)


class Status(msgspec.Struct, frozen=True, gc=False):
    """When it began, and how it stands."""

    conditions: tuple[Condition, ...] | None = None
    started: str | None = msgspec.field(name="startTime", default=None)


class Spec(msgspec.Struct, frozen=True, gc=False):
    """The desired state; the pod template, most of a job, is left out."""

    suspend: bool | None = None


class Identity(msgspec.Struct, frozen=True, gc=False):
    """Distinguishes it from another job of the same name."""

    uid: str


class Job(msgspec.Struct, frozen=True, gc=False):
    """A projection of a Job: some hundred bytes."""

    __resource__ = "batch/v1/jobs"

    metadata: Identity
    spec: Spec = Spec()
    status: Status = Status()

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type, if it is true."""
        for one in self.status.conditions or ():
            if one.type == type_ and one.status == "True":
                return one
        return None


# --- what is counted


class Outcome(enum.StrEnum):
    """The result of a job."""

    COMPLETE = "complete"
    FAILED = "failed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class End:
    """The end of one job; ``duration`` is in seconds, if it is known."""

    key: kinform.ObjectName
    outcome: Outcome
    reason: str = ""
    duration: float | None = None


@dataclass(slots=True)
class Batch:
    """All jobs that were seen, and the ends of them: each once, known by its uid."""

    on_end: Callable[[End], object] = lambda _: None
    open: dict[str, bool] = field(default_factory=dict[str, bool])
    """The jobs that have not ended: whether they are suspended, by uid."""
    ended: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    failed: list[End] = field(default_factory=list[End])
    durations: list[float] = field(default_factory=list[float])

    def see(self, key: kinform.ObjectName, job: Job, *, is_gone: bool = False) -> None:
        """Record the state of a job. Recording the same state again is harmless."""
        uid = job.metadata.uid
        if uid in self.ended:
            return
        end = end_of(key, job)
        if end is None and is_gone:
            end = End(key, Outcome.DELETED)
        if end is None:
            self.open[uid] = bool(job.spec.suspend)
            return
        self.open.pop(uid, None)
        self.ended[uid] = end.outcome
        if end.outcome is Outcome.FAILED:
            self.failed.append(end)
        if end.duration is not None:
            self.durations.append(end.duration)
        self.on_end(end)

    @property
    def seen(self) -> int:
        """The number of jobs so far."""
        return len(self.open) + len(self.ended)

    @property
    def suspended(self) -> int:
        """The number of suspended jobs."""
        return sum(self.open.values())


def end_of(key: kinform.ObjectName, job: Job) -> End | None:
    """Return how a job ended, if it has. ``Suspended`` and the like are no ends."""
    for outcome, type_ in ((Outcome.COMPLETE, "Complete"), (Outcome.FAILED, "Failed")):
        if (condition := job.condition(type_)) is not None:
            seconds = None
            if job.status.started and condition.since:
                began, ended = map(parse_time, (job.status.started, condition.since))
                seconds = (ended - began).total_seconds()
            return End(key, outcome, condition.reason or "", seconds)
    return None


def parse_time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


# --- how they are followed


class BatchWatcher:
    """Feeds a `Batch` from an informer until all its jobs have ended."""

    def __init__(
        self,
        informer: kinform.SharedInformer[Job],
        batch: Batch,
        *,
        expect: int = 0,
        leaves_suspended: bool = False,
    ) -> None:
        self.batch = batch
        self._informer = informer
        self._expect = expect
        self._leaves_suspended = leaves_suspended
        self._change = asyncio.Event()
        self._began = 0.0

    async def run(self, *, every: float = 5.0, say: Callable[[str], object]) -> None:
        """Wait for the end of all jobs; ``say`` how far they are now and then.

        Returns at once if no job exists, unless some are expected.
        """
        self._began = asyncio.get_running_loop().time()
        registration = self._informer.add_event_handler(
            on_add=lambda event: self._see(event.key, event.obj),
            on_update=lambda event: self._see(event.key, event.new),
            on_delete=lambda event: self._see(event.key, event.obj, is_gone=True),
        )
        async with self._informer, background(self._report(every, say)):
            await registration.wait_synced()  # before that, none need not mean that all ended
            while not self.is_done:
                self._change.clear()
                await self._change.wait()

    def _see(self, key: kinform.ObjectName, job: Job, *, is_gone: bool = False) -> None:
        self.batch.see(key, job, is_gone=is_gone)
        self._change.set()

    @property
    def is_done(self) -> bool:
        """True if every job has ended, and as many as are expected have been seen."""
        left = self.batch.open
        has_ended = all(left.values()) if self._leaves_suspended else not left
        return has_ended and self.batch.seen >= self._expect

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return asyncio.get_running_loop().time() - self._began

    async def _report(self, every: float, say: Callable[[str], object]) -> None:
        while True:
            await asyncio.sleep(max(every, 0.1))
            say(self.progress())

    def progress(self) -> str:
        """Return how far they are, in one line."""
        batch, total = self.batch, max(self.batch.seen, self._expect)
        rate = len(batch.ended) / self.elapsed if self.elapsed else 0.0
        left = total - len(batch.ended)
        parts = [f"{len(batch.ended):,} of {total:,} ended, {len(batch.failed):,} failed"]
        parts += [f"{batch.suspended:,} suspended"] if batch.suspended else []
        parts += [f"{rate:,.1f} a second, about {left / rate:,.0f} s left"] if rate else []
        if not self._informer.healthy(SILENCE):
            error = self._informer.statistics().reflector.last_error
            parts.append(f"out of date: {error or 'the server is silent'}")
        return "; ".join(parts)


def table(batch: Batch, seconds: float) -> Iterator[str]:
    """Yield the lines of the final account."""
    counts = Counter(batch.ended.values())
    rows = {str(one): counts[one] for one in Outcome}
    rows |= {"suspended": batch.suspended, "not ended": len(batch.open) - batch.suspended}
    for name, count in rows.items():
        share = count / batch.seen if batch.seen else 0.0
        yield f"{name:<10}{count:>9,}{share:>8.1%}"
    speed = f", {len(batch.ended) / seconds:,.1f} a second" if seconds else ""
    yield f"{batch.seen:,} jobs in {seconds:,.1f} s{speed}"
    if batch.durations:
        middle, longest = statistics.median(batch.durations), max(batch.durations)
        yield f"they took {middle:,.0f} s (median), at most {longest:,.0f} s"
    for end in batch.failed[:SHOWN]:
        yield f"failed: {end.key}: {end.reason or 'no reason given'}"
    if len(batch.failed) > SHOWN:
        yield f"and {len(batch.failed) - SHOWN:,} more"


# --- the program


async def follow(client: kinform.Client, args: argparse.Namespace) -> int:
    informer = client.informer(Job, namespace=args.namespace, label_selector=args.selector)
    batch = Batch()
    watcher = BatchWatcher(
        informer, batch, expect=args.expect, leaves_suspended=args.leave_suspended
    )
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(args.timeout):
            await watcher.run(
                every=args.progress, say=lambda line: print(line, file=sys.stderr, flush=True)
            )
    for line in table(batch, watcher.elapsed):
        print(line)
    if not batch.seen:
        print("error: no job has these labels; --expect waits for them", file=sys.stderr)
        return 2
    return 1 if batch.failed or not watcher.is_done else 0


async def demo(client: kinform.Client, args: argparse.Namespace) -> int:
    """Forty jobs run: one fails, one is deleted, one is suspended for a while."""
    mark = secrets.token_hex(3)
    args.selector, args.progress, args.expect = f"kinform-demo={mark}", 0.5, 40
    jobs = client.resource("batch/v1/jobs", namespace=args.namespace)
    async with background(play_controller(jobs, mark)) as playing:
        code = await follow(client, args)
        await playing
    await jobs.delete_collection(label_selector=args.selector, propagation="Background")
    return 0 if code == 1 else 1  # one of them was meant to fail


async def play_controller(jobs: kinform.ResourceClient[kinform.Object], mark: str) -> None:
    """Make jobs, and write the status that the job controller would."""
    names = [f"job-{number:02}-{mark}" for number in range(40)]
    for name in names:
        await jobs.create(demo_job(name, mark))
    for number, name in enumerate(names):
        if number == 7:
            await jobs.delete(name, propagation="Background")
        elif number != 20:
            await jobs.status.patch(name, {"status": demo_status(fails=number == 13)})
        await asyncio.sleep(0.02)
    await jobs.patch(names[20], {"spec": {"suspend": True}})
    await asyncio.sleep(0.6)
    await jobs.patch(names[20], {"spec": {"suspend": False}})
    await jobs.status.patch(names[20], {"status": demo_status()})


def demo_job(name: str, mark: str) -> dict[str, object]:
    """Return a job that no controller touches, because it names another manager."""
    containers = [{"name": "main", "image": "example/never-runs"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    spec = {"template": template, "managedBy": "example.com/demo"}
    return {"metadata": {"name": name, "labels": {"kinform-demo": mark}}, "spec": spec}


def demo_status(*, fails: bool = False) -> dict[str, object]:
    """Return the status of a job that has ended, with all that the server insists on."""
    began, ended = "2026-01-01T00:00:00Z", "2026-01-01T00:00:30Z"
    first, second = ("FailureTarget", "Failed") if fails else ("SuccessCriteriaMet", "Complete")
    reason = "BackoffLimitExceeded" if fails else "CompletionsReached"
    conditions = [
        {"type": one, "status": "True", "reason": reason, "lastTransitionTime": ended}
        for one in (first, second)
    ]
    status: dict[str, object] = {"startTime": began, "conditions": conditions}
    return status | ({"failed": 1} if fails else {"succeeded": 1, "completionTime": ended})


@contextlib.asynccontextmanager
async def cluster() -> AsyncGenerator[kinform.Client]:
    """Connect to the configured cluster, or to a server of our own."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(kinform.connect())
        except kinform.ConfigError as error:
            if error.source:
                raise  # there is one, and it is wrong: never look elsewhere then
            print(f"{error}\nstarting an API server instead", file=sys.stderr)
            server = await stack.enter_async_context(APIServer())
            client = await stack.enter_async_context(server.connect())
        yield client


async def run(args: argparse.Namespace) -> int:
    async with cluster() as client:
        return await (demo(client, args) if args.demo else follow(client, args))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--selector", help="which jobs: a label selector, such as batch=nightly")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-n", "--namespace", default="default", help="default: default")
    where.add_argument("-A", "--all-namespaces", action="store_const", dest="namespace", const="")
    parser.add_argument("--expect", type=int, default=0, help="so many jobs will come")
    parser.add_argument("--leave-suspended", action="store_true", help="do not wait for these")
    parser.add_argument("--progress", type=float, default=5.0, help="seconds; default: 5")
    parser.add_argument("--timeout", type=float, help="give up after so many seconds")
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and not args.selector:
        parser.error("--selector is needed, or --demo")
    try:
        return asyncio.run(run(args))
    except kinform.KinformError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

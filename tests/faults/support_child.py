"""An informer in a process of its own, which tests stop, starve and ask.

Run as a program it is that process: it reads lines of JSON and answers each with one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, final

import kinform
from kinform import Added, Deleted, Object, ReflectorOptions, SharedInformer, Updated
from kinform.cache import Event

__all__ = ["Child", "child"]

ROOT = Path(__file__).parents[2]
LIMIT = 60.0


@final
class Child:
    """The other end: a process with an informer of the config maps of the default namespace."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, what: str) -> dict[str, Any]:
        """Have it do something, and return its answer: how it stands."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what.encode() + b"\n")
        async with asyncio.timeout(LIMIT):
            answer: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return answer

    async def end(self) -> int:
        """Let it end in good order; return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(LIMIT):
            return await self._process.wait()


@contextlib.asynccontextmanager
async def child(server: str, token: str, *options: str) -> AsyncGenerator[Child]:
    """Run the process within the block; its informer has synced."""
    command = [sys.executable, "-m", "tests.faults.support_child", server, *options]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        limit=1 << 24,
        cwd=ROOT,
        env={**os.environ, "TOKEN": token},
    )
    try:
        made = Child(process)
        await made.ask("sync")
        yield made
        assert await made.end() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


# --- the process itself


class Notes:
    """The state that a handler builds from its events; it can be made to block forever."""

    def __init__(self) -> None:
        self.believed: dict[str, str] = {}
        self.complaints: list[str] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def hear(self, event: Event[Object]) -> None:
        await self.may_go_on.wait()
        match event:
            case Added(obj=obj):
                self._check(obj.name not in self.believed, f"{obj.name} was added twice")
                self.believed[obj.name] = obj.resource_version
            case Updated(old=old, new=new):
                known = self.believed.get(old.name) == old.resource_version
                self._check(known and old.uid == new.uid, f"{old.name} was updated from nowhere")
                self.believed[new.name] = new.resource_version
            case Deleted(obj=obj):
                self._check(obj.name in self.believed, f"{obj.name} was deleted twice")
                self.believed.pop(obj.name, None)

    def _check(self, is_right: bool, complaint: str) -> None:
        if not is_right:
            self.complaints.append(complaint)


class Memory:
    """The resident memory file; opened early, because later no descriptor may be left."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)

    def resident(self) -> int:
        pages = int(os.pread(self._statm, 100, 0).split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def limit_descriptors(count: int | None) -> None:
    """Allow no descriptor above so many; those that are open stay."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if count is None else count, hard))


def standing(informer: SharedInformer[Object], notes: Notes, memory: Memory) -> dict[str, object]:
    figures = informer.statistics()
    return {
        "version": figures.resource_version,
        "complaints": notes.complaints,
        "lists": figures.reflector.lists,
        "watches": figures.reflector.watches,
        "failures": figures.reflector.failures,
        "error": str(figures.reflector.last_error or ""),
        "pending": figures.handlers[0].pending,
        "peak": figures.handlers[0].peak,
        "tasks": len(asyncio.all_tasks()),
        "rss": memory.resident(),
    }


def beliefs(informer: SharedInformer[Object], notes: Notes) -> dict[str, object]:
    cache = {one.name: one.resource_version for one in informer.lister.list()}
    return {"cache": cache, "believed": notes.believed}


async def main(server: str, *options: str) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    config = kinform.Config(server=server, token=os.environ["TOKEN"])
    chosen: dict[str, Any] = dict(json.loads(option) for option in options)
    notes, memory = Notes(), Memory()
    async with kinform.connect(config) as client:
        informer = client.informer(
            "v1/configmaps", namespace="default", options=ReflectorOptions(**chosen)
        )
        informer.add_event_handler(on_add=notes.hear, on_update=notes.hear, on_delete=notes.hear)
        async with informer:
            while line := await reader.readline():
                answer = standing(informer, notes, memory)
                match line.decode().strip():
                    case "sync":
                        await informer.wait_synced(LIMIT)
                    case "block":
                        notes.may_go_on.clear()
                    case "release":
                        notes.may_go_on.set()
                    case "starve":
                        limit_descriptors(3)
                    case "feed":
                        limit_descriptors(None)
                    case "state":
                        answer |= beliefs(informer, notes)
                    case _:
                        pass
                print(json.dumps(answer), flush=True)  # noqa: T201 - how it speaks to the test


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

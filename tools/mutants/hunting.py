"""Hunting one mutant: a copy of the source with the mistake in it, and seed after seed.

The copy runs in a process of its own (`tools.mutants.seeds`), which says how each seed went. One
that says nothing for too long is ended: then it hangs without even letting virtual time pass, and
is caught by that.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.mutants.patches import ROOT, Patch

__all__ = ["PATIENCE", "BrokenRunError", "Caught", "Survived", "hunt", "mutated", "sound"]

PATIENCE: Final = 240.0
"""Seconds that one seed may take, start included, before it counts as a hang."""


@dataclass(frozen=True, slots=True)
class Caught:
    """How a mutant was found."""

    seed: int
    oracle: str
    seconds: float
    """From the start to there, in real time."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Survived:
    """No seed has found it."""

    seeds: int
    seconds: float


class BrokenRunError(RuntimeError):
    """The process that runs seeds has failed, for a reason that is not the mutant's."""


@asynccontextmanager
async def mutated(patch: Patch) -> AsyncGenerator[Path]:
    """Have a folder with a copy of the source in which the mistake is made."""
    with tempfile.TemporaryDirectory(prefix=f"kinform-{patch.name}-") as folder:
        # With what was compiled before, and with the times by which that is known to be right.
        shutil.copytree(ROOT / "src" / "kinform", Path(folder) / "src" / "kinform")
        for path, text in patch.applied(lambda path: (ROOT / path).read_text("utf-8")).items():
            (Path(folder) / path).write_text(text, "utf-8")
        yield Path(folder)


async def hunt(patch: Patch, *, first: int = 0, count: int) -> Caught | Survived:
    """Run seeds until one finds the mutant.

    Raises:
        PatchError: the patch does not fit.
        BrokenRunError: the seeds could not be run.
    """
    clock = asyncio.get_running_loop().time
    began, seed = clock(), first
    async with mutated(patch) as folder:
        try:
            async with aclosing(_told(folder, first, count)) as told:
                async for line in told:
                    said = json.loads(line)
                    if said["oracle"]:
                        took = clock() - began
                        return Caught(said["seed"], said["oracle"], took, said["message"])
                    seed = said["seed"] + 1
        except TimeoutError:
            text = f"nothing for {PATIENCE:.0f} s of real time"
            return Caught(seed, "hang", clock() - began, text)
    if seed < first + count:
        raise BrokenRunError(f"{patch.name}: the run ended before seed {seed}")
    return Survived(count, clock() - began)


async def sound(seed: int) -> bool:
    """Return whether a seed passes on the source without a mutant."""
    async with aclosing(_told(ROOT, seed, 1)) as told:
        async for line in told:
            return not json.loads(line)["oracle"]
    raise BrokenRunError(f"seed {seed} could not be run")


async def _told(folder: Path, first: int, count: int) -> AsyncGenerator[bytes]:
    """Yield what the process says, line by line; it is ended with the block, or when silent."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.mutants.seeds", str(first), str(count)),
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(ROOT))),
            "PYTHONHASHSEED": "0",  # as `kinform simulate` has it
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us, and we end it
    )
    assert process.stdout is not None
    try:
        while True:
            async with asyncio.timeout(PATIENCE):
                line = await process.stdout.readline()
            if not line:
                return
            yield line
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()

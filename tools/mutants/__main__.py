"""Put mistakes into kinform, one at a time, and see that the simulator finds each.

    python -m tools.mutants                    all; writes the record and docs/mutants.md
    python -m tools.mutants NAME...            these; the others keep what is known of them
    python -m tools.mutants --check            each with the seed of the record; writes nothing

Fails if a mutant survives all seeds, with ``--check`` if one survives its own, or if the record or
the page is not as it would be written. Ctrl-C keeps what was found so far.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from tools.mutants import report
from tools.mutants.hunting import Caught, Survived, hunt, sound
from tools.mutants.patches import Patch, PatchError, load

SEEDS = 500


def main() -> None:
    """Hunt, or check."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description="Hunt mutants.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all by default")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many to try")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--check", action="store_true", help="only the seeds of the record")
    arguments = parser.parse_args()
    try:
        patches = load()
        chosen = _chosen(patches, arguments.names)
        run = _check if arguments.check else _hunt_all
        with suppress(KeyboardInterrupt):
            sys.exit(asyncio.run(run(patches, chosen, arguments)))
    except PatchError as exc:
        sys.exit(str(exc))
    sys.exit(130)


def _chosen(patches: Sequence[Patch], names: Sequence[str]) -> Sequence[Patch]:
    if unknown := set(names) - {patch.name for patch in patches}:
        raise PatchError(f"no such mutant: {', '.join(sorted(unknown))}")
    # Those that survive only by name: to see whether they still do.
    return [patch for patch in patches if (patch.name in names if names else not patch.survives)]


async def _hunt_all(
    patches: Sequence[Patch], chosen: Sequence[Patch], arguments: argparse.Namespace
) -> int:
    caught = report.load()
    survivors: list[str] = []
    expected = {patch.name for patch in patches if not patch.survives}

    async def one(patch: Patch) -> None:
        outcome = await hunt(patch, count=arguments.seeds)
        _tell(patch, outcome)
        if isinstance(outcome, Caught) and patch.survives:
            print(f"{patch.name} does not survive any more: take that line out of its patch")
        elif isinstance(outcome, Caught):
            caught[patch.name] = outcome
        else:
            survivors.append(patch.name)
            caught.pop(patch.name, None)
        _write(patches, caught)  # each time: it takes long, and may be ended at any moment

    await _at_a_time(arguments.jobs, chosen, one)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} caught")
    wrong = [
        f"{name} survived: it changes nothing, or the simulator does not look there"
        for name in survivors
        if name in expected
    ]
    wrong += await _unsound(caught, chosen)
    print("".join(f"{line}\n" for line in wrong), end="")
    return bool(wrong)


async def _unsound(caught: Mapping[str, Caught], chosen: Sequence[Patch]) -> list[str]:
    """Return a line for each seed that fails without a mutant too: it proves nothing."""
    seeds = sorted({caught[patch.name].seed for patch in chosen if patch.name in caught})
    return [
        f"seed {seed} fails without any mutant: mend that, and hunt again"
        for seed in seeds
        if not await sound(seed)
    ]


async def _check(
    patches: Sequence[Patch], chosen: Sequence[Patch], arguments: argparse.Namespace
) -> int:
    caught = report.load()
    wrong = report.mistakes(patches, caught)
    chosen = [patch for patch in chosen if not patch.survives]

    async def one(patch: Patch) -> None:
        outcome = await hunt(patch, first=caught[patch.name].seed, count=1)
        _tell(patch, outcome)
        if isinstance(outcome, Survived):
            hint = f"make mutants ARGS={patch.name}"
            wrong.append(f"{patch.name} is not caught by seed {caught[patch.name].seed}: {hint}")

    if not wrong:
        if report.PAGE.read_text("utf-8") != report.page(patches, caught):
            wrong.append("docs/mutants.md is not as `make mutants` writes it")
        await _at_a_time(arguments.jobs, chosen, one)
        wrong += await _unsound(caught, chosen)
    for line in wrong:
        print(line)
    return bool(wrong)


async def _at_a_time(
    jobs: int, patches: Sequence[Patch], work: Callable[[Patch], Awaitable[None]]
) -> None:
    places = asyncio.Semaphore(jobs)

    async def placed(patch: Patch) -> None:
        async with places:
            await work(patch)

    async with asyncio.TaskGroup() as group:
        for patch in patches:
            group.create_task(placed(patch))


def _tell(patch: Patch, outcome: Caught | Survived) -> None:
    if isinstance(outcome, Caught):
        expected = "" if outcome.oracle == patch.oracle else f" (expected: {patch.oracle})"
        print(
            f"{patch.name}: seed {outcome.seed}, {outcome.oracle}{expected}, "
            f"{outcome.seconds:.1f} s",
            flush=True,
        )
        if outcome.message:
            print(f"    {outcome.message.splitlines()[0][:160]}", flush=True)
    else:
        print(f"{patch.name}: SURVIVED {outcome.seeds} seeds, {outcome.seconds:.0f} s", flush=True)


def _write(patches: Sequence[Patch], caught: dict[str, Caught]) -> None:
    names = {patch.name for patch in patches if not patch.survives}
    known = {name: one for name, one in caught.items() if name in names}
    report.RECORD.write_text(report.dump(known), "utf-8")
    if known.keys() == names:
        kept = report.load()  # rounded as it will be read
        report.PAGE.write_text(report.page(patches, kept), "utf-8")


if __name__ == "__main__":
    main()

"""Play scripts to client-go's informer and to ours, and compare.

    python -m tools.differential                      2,000 scripts
    python -m tools.differential --seeds 200          as in CI
    python -m tools.differential --show 41            one script, and what both made of it
    python -m tools.differential --source PATH        with the kinform of another checkout's src
    python -m tools.differential --mutants [NAME...]  which mutants of the reflector are found
    python -m tools.differential --record             write the record and docs/differences.md

Fails if a difference is not explained by a rule, or if a rule that explains more than 5 % of the
scripts gives no reason for that. With ``--source`` and ``--record``, only the known defects that
were found are recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import msgspec

from tools.differential import proof, report
from tools.differential.drawing import draw
from tools.differential.players import ROOT, Broken, ClientGo, Kinform, build
from tools.differential.rules import RULES
from tools.differential.running import Runner, Tally, judge

SHARE = 0.05
SHOWN = 60
"""How many scripts with defects are printed."""


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m tools.differential", allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=2000, help="how many scripts")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="a folder with kinform")
    parser.add_argument("--show", type=int, metavar="SEED", help="one script in detail")
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="hunt these; all by default")
    parser.add_argument("--record", action="store_true", help="write down what came of it")
    arguments = parser.parse_args()
    try:
        build()
        if arguments.show is not None:
            sys.exit(_show(arguments.show, arguments.source))
        runner = Runner(jobs=arguments.jobs)
        try:
            run = _compare if arguments.mutants is None else _hunt
            sys.exit(run(runner, arguments))
        finally:
            runner.close()
    except Broken as exc:
        sys.exit(str(exc))


def _show(seed: int, source: Path) -> int:
    script = draw(seed)
    print(msgspec.json.format(msgspec.json.encode(script), indent=1).decode())
    client_go, kinform = ClientGo(), Kinform(source)
    try:
        theirs, ours = client_go.play(script), kinform.play(script)
    finally:
        client_go.close()
        kinform.close()
    for name, outcome in (("client-go", theirs), ("kinform", ours)):
        print(f"--- {name}: synced {outcome.synced}, {outcome.error or 'played to the end'}")
        for note in outcome.notes or ():
            print(f"{note.at:10.3f} {note.what:6} {note.key} {note.old} {note.state}")
        print("requests:", " ".join(f"{one.kind}@{one.at:.2f}" for one in outcome.asked))
    result = judge(script, ours, theirs)
    print("--- differences")
    for difference, rule in result.found:
        print(f"{difference.kind} {difference.key} {difference.text} [{rule or 'DEFECT'}]")
    return bool(result.defects)


def _compare(runner: Runner, arguments: argparse.Namespace) -> int:
    tally = Tally()
    for result in runner.run(
        range(arguments.first, arguments.first + arguments.seeds), arguments.source
    ):
        tally.add(result)
        if not tally.scripts % 200:
            print(f"{tally.scripts} scripts", file=sys.stderr, flush=True)
        if result.defects and len(tally.defects) <= SHOWN:
            print(f"seed {result.script.seed} ({result.script.theme}):", flush=True)
            for one in result.defects[:4]:
                print(f"    {one.kind} {one.key} {one.text[:200]}", flush=True)
    print(f"{tally.scripts} scripts, {len(tally.defects)} with a difference that no rule explains")
    wrong = bool(tally.defects)
    for rule in RULES:
        share = tally.hits[rule.name] / max(1, tally.scripts)
        flag = ""
        if share > SHARE:
            flag = " (reviewed)" if rule.review else " MORE THAN 5 %, and no reason is given"
            wrong |= not rule.review
        print(f"  {tally.hits[rule.name]:5} {share:6.1%}  {rule.name}{flag}")
    if arguments.source != ROOT / "src":
        found = proof.defects(tally.defects)
        print("known defects found:", json.dumps(found))
        if arguments.record:
            report.write(defects=found, defects_in=tally.scripts)
    elif arguments.record and not wrong:
        report.write(
            source="this source",
            scripts=tally.scripts,
            themes=dict(tally.themes),
            hits=dict(tally.hits),
        )
    return wrong


def _hunt(runner: Runner, arguments: argparse.Namespace) -> int:
    patches = [one for one in proof.hunted() if one.name in (arguments.mutants or [one.name])]
    seeds = range(arguments.first, arguments.first + min(arguments.seeds, 600))
    found: dict[str, int] = {}
    for name, seed, text in proof.mutants(runner, patches, seeds):
        found[name] = seed
        how = f"seed {seed}, {text[:120]}" if seed >= 0 else f"NOT FOUND {text}"
        print(f"{name}: {how}", flush=True)
    caught = sum(seed >= 0 for seed in found.values())
    print(f"{caught} of {len(found)} found, {caught / max(1, len(found)):.0%}")
    if arguments.record:
        names = {patch.name for patch in proof.hunted()}
        known = {**report.load().get("mutants", {}), **found}
        report.write(mutants={name: seed for name, seed in known.items() if name in names})
    return caught < 0.8 * len(found)


if __name__ == "__main__":
    main()

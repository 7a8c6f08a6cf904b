"""Record the responses of a real kube-apiserver and compare the embedded server with them.

Run it with ``python -m``:

    tools.contract record              run the cases on a new control plane, write its responses
    tools.contract record --only TEXT  only the cases whose id contains TEXT
    tools.contract try --only TEXT     run them on the embedded server, show the differences
    tools.contract score               run them on the embedded server, write docs/apiserver.md
    tools.contract score --check       fail if that page is out of date
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kinform.apiserver import validation
from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.scheme.kind_registry import Kind
from tests.contract import record
from tests.contract.case import STRICT_AREAS, Case, all_cases
from tests.contract.runner import Outcome, run_all, run_embedded
from tests.contract.target import (
    APISERVER_FLAGS,
    CONTROLLERS,
    Target,
    of_control_plane,
    of_kubeconfig,
)

__all__ = ["main", "page"]

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "apiserver.md"

HEAD: Final = """\
<!-- Made by python -m tools.contract score: change the text there. -->
# Fidelity of the embedded API server

`kinform.apiserver` answers as kube-apiserver 1.36 does. The same cases are run against both, each
a conversation over plain HTTP, and compared: status, headers, bodies, the order of items, the
events of a watch and how it ends. A case that compares only a part of a response says so in its
code, for example if the real server's order is random. The responses of the real server are
recorded in `tests/contract/recorded/` (by `python -m tools.contract record`, never by hand), and
the tests marked `e2e` check the real server again. Values that differ from run to run (times, uids,
versions, tokens) are compared by identity: values that were equal on the real server must be equal
on the embedded one.

"""

WHAT_IT_IS_NOT: Final = """\
## What it does not have

- No kubelet, no scheduler, no workload controllers: a Pod stays `Pending`, a Deployment creates no
  ReplicaSet.
- No admission webhooks, no aggregated API servers, no conversion webhooks.
- `exec`, `attach`, `portforward` and `proxy` answer 501.
- Responses are JSON or YAML. Protobuf is read, because client-go sends it, but never written.
- CEL rules and conversion webhooks of CustomResourceDefinitions are stored but not evaluated; the
  response to such a definition has a warning for each.
- Objects and patches have at most 40,000 values (a string of any length is one), YAML bodies
  50,000; more is a 413. Validation against a schema has a cost budget; a write that exceeds it is
  a 422.
- Patterns of CustomResourceDefinitions are evaluated by RE2 if `google-re2` is installed (the extra
  `testing` installs it). Without it, a pattern that could take exponential time is not evaluated.
- One process, for tests, demonstrations and simulation: it scales with one core.
"""


@asynccontextmanager
async def real_server(arguments: argparse.Namespace) -> AsyncGenerator[Target]:
    """Yield a real server: the named one, or a new control plane."""
    if arguments.kubeconfig:
        yield of_kubeconfig(arguments.kubeconfig)
    elif arguments.server:
        yield Target(arguments.server)
    else:
        from kinform.testing import ControlPlane

        async with ControlPlane(controllers=CONTROLLERS, apiserver_flags=APISERVER_FLAGS) as plane:
            yield of_control_plane(plane)


def chosen_cases(only: Sequence[str]) -> list[Case]:
    """Return the cases whose id contains one of the texts; all without any."""
    return [case for case in all_cases().values() if not only or any(o in case.id for o in only)]


async def do_record(arguments: argparse.Namespace) -> int:
    """Run the cases on a real server and write their answers."""
    cases = chosen_cases(arguments.only)
    if arguments.kubeconfig or arguments.server:
        left = [case.id for case in cases if case.compacts]
        cases = [case for case in cases if not case.compacts]
        print(*(f"left out, it needs a server of its own: {each}" for each in left), sep="\n")
    async with real_server(arguments) as target:
        outcomes = await run_all(cases, target)
    bad = {each: why for each, outcome in outcomes.items() if (why := _unfit(outcome))}
    _keep({each: outcome for each, outcome in outcomes.items() if each not in bad})
    print(*(f"not recorded: {each}: {why}" for each, why in bad.items()), sep="\n")
    print(f"{len(outcomes) - len(bad)} cases recorded")
    return bool(bad)


def _unfit(outcome: Outcome) -> str:
    return outcome.error or ("" if outcome.is_timely else "a watch delivered nothing")


def _keep(outcomes: dict[str, Outcome]) -> None:
    """Merge new outcomes into the files of their areas; drop entries without a case."""
    known = all_cases()
    for area in sorted({known[each].area for each in outcomes}):
        entries = {each: entry for each, entry in record.load(area).items() if each in known}
        for each, outcome in outcomes.items():
            if known[each].area == area:
                entries[each] = {"title": known[each].title, "exchanges": outcome.exchanges}
        record.save(area, entries)


def judge(outcomes: dict[str, Outcome]) -> dict[str, list[str]]:
    """Return the differences from the record, by case; equal cases are left out."""
    judged = {
        each: record.judged(each, outcome.exchanges, outcome.error)
        for each, outcome in outcomes.items()
    }
    return {each: found for each, found in sorted(judged.items()) if found}


async def do_try(arguments: argparse.Namespace) -> int:
    """Show where a server differs from the record: the embedded one, or the one named."""
    cases = chosen_cases(arguments.only)
    if arguments.server or arguments.kubeconfig:
        async with real_server(arguments) as target:
            outcomes = await run_all([case for case in cases if not case.compacts], target)
    else:
        outcomes = await run_embedded(cases)
    different = judge(outcomes)
    for each, found in different.items():
        print(f"== {each}: {all_cases()[each].title}", *found, sep="\n  ")
    count = Counter(all_cases()[each].area for each in outcomes)
    wrong = Counter(all_cases()[each].area for each in different)
    print(
        *(f"{area}: {count[area] - wrong[area]} of {count[area]} equal" for area in sorted(count)),
        sep="\n",
    )
    return bool(different)


def page(different: Sequence[str]) -> str:
    """Return the text of docs/apiserver.md, given the cases that differ."""
    cases, reasons = all_cases(), record.listed_differences()
    count = Counter(case.area for case in cases.values())
    wrong = Counter(cases[each].area for each in different)
    rows = [
        f"| {area} | {count[area]} | {count[area] - wrong[area]} | {wrong[area] or ''} |"
        for area in sorted(count, key=lambda area: (area not in STRICT_AREAS, area))
    ]
    equal = len(cases) - len(different)
    share = 100 * equal / len(cases)
    lines = [
        "## Score",
        "",
        f"{len(cases)} cases, {equal} equal ({share:.1f} %).",
        "",
        "| area | cases | equal | different |",
        "|---|---|---|---|",
        *rows,
        "",
        f"In the areas {', '.join(sorted(STRICT_AREAS))} no difference is allowed.",
        "",
        "## Differences",
        "",
        *(
            [
                f"- `{each}`: {cases[each].title}. {reasons.get(each, 'Unexplained.')}"
                for each in different
            ]
            or ["None."]
        ),
        "",
    ]
    return HEAD + "\n".join(lines) + "\n" + WHAT_IT_IS_NOT + kinds_served()


def kinds_served() -> str:
    """Return the paragraph about built-in kinds with their own rules and without."""
    stored = [kind for kind in kind_registry.builtin().all() if "create" in kind.verbs]
    stored = [kind for kind in stored if "get" in kind.verbs]
    ruled = sorted({kind.kind for kind in stored if _has_rules(kind)})
    plain = sorted({kind.kind for kind in stored} - set(ruled))
    return (
        "\n## Kinds\n\nAll built-in kinds of Kubernetes 1.36 are served. These have their own "
        f"defaults and validation: {', '.join(ruled)}.\n\nThe others are *structural*: unknown "
        "fields, wrong types and bad metadata are refused, but they have no further rules: "
        f"{', '.join(plain)}.\n"
    )


def _has_rules(kind: Kind) -> bool:
    # CustomResourceDefinitions are validated elsewhere; a ServiceAccount has only metadata.
    return validation.has_rules(kind) or kind.kind in {"CustomResourceDefinition", "ServiceAccount"}


async def do_score(arguments: argparse.Namespace) -> int:
    """Write the page, or check it; unlisted differences fail either way."""
    different = judge(await run_embedded(list(all_cases().values())))
    text, listed = page(list(different)), record.listed_differences()
    wrong = [f"{each} differs and is not listed" for each in different if each not in listed]
    wrong += [f"{each} is listed and does not differ" for each in listed if each not in different]
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != text:
        wrong.append("docs/apiserver.md is out of date: run python -m tools.contract score")
    print(*(f"wrong: {each}" for each in wrong), sep="\n", file=sys.stderr)
    return bool(wrong)


def main() -> None:
    """Record, try, or score."""
    parser = argparse.ArgumentParser(description="The contract between the two servers.")
    commands = parser.add_subparsers(required=True)
    recorder = commands.add_parser("record", help="write the responses of a real server")
    trier = commands.add_parser("try", help="show where a server differs from the record")
    for command, function in ((recorder, do_record), (trier, do_try)):
        command.add_argument("--only", action="append", default=[], metavar="TEXT")
        command.add_argument("--server", help="a server without authentication")
        command.add_argument("--kubeconfig", type=Path, help="a server, with client certificates")
        command.set_defaults(run=function)
    scorer = commands.add_parser("score", help="write docs/apiserver.md")
    scorer.add_argument("--check", action="store_true", help="change nothing; fail if one should")
    scorer.set_defaults(run=do_score)
    arguments = parser.parse_args()
    sys.exit(asyncio.run(arguments.run(arguments)))


if __name__ == "__main__":
    main()

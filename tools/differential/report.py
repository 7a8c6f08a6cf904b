"""The record of the last full runs, and the page that is made of it and of the rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tools.differential.players import ROOT
from tools.differential.proof import BEFORE, DEFECTS, OUT_OF_SCOPE
from tools.differential.rules import RULES

__all__ = ["PAGE", "RECORD", "load", "page", "write"]

RECORD: Final = ROOT / "tests" / "differential" / "record.json"
PAGE: Final = ROOT / "docs" / "differences.md"

SURVIVORS: Final[Mapping[str, str]] = {
    "handler-outlives-its-listener": "handlers are not cancelled before the end",
    "old-history-reused": "needs a restored server that has an object of the same uid and version "
    "with another content at the moment of the relist: seldom drawn",
    "restored-state-trusted": "as above",
    "synced-before-it-is": "the handlers' own `has_synced` is not compared",
}
"""Why a mutant is not found."""

_HEAD: Final = """\
# Differences from client-go

`make differential` plays scripts of server behaviour to client-go's informer and to kinform's, both
in virtual time, and compares the outcomes. A script is drawn from a seed: a history of objects, and
faults by verb, time and count (status codes, resets, cuts at any byte, silence, clean short
watches, ERROR events, odd bookmarks, pages that expire, versions that are no longer served,
restores of etcd, a watch cache that is behind its storage, events damaged on their way, roles that
are taken away, lists of 300 objects, failing discovery, JSON nulls, odd formatting, gzip). Both
clients are served by the same code, `tools/differential/server.py`; client-go is the module that
the benchmark pins.

Compared are:

- the states of each object in the order in which handlers were notified; only a relist may jump
  over states, and no state may be shown that the server did not have then
- the cache at the end, also with what the server has; an index, every 20 s, with the cache
- what was shown 2 s after a list had arrived whole, with what the server had
- whether the final state of a deleted object is known
- the time until the cache was synced, and for how long it was stale: at most 75 s more than
  client-go, and 75 s more for each fault that ends
- requests: at most 8 lists and 8 watches in any minute, and not more than client-go makes, plus a
  quarter and 8 per fault; probes (lists of one object) are not counted
- each request: valid for an API server, with bookmarks and a time-out of 5 to 10 minutes for
  watches, not from an older version than was shown, not from a version that the server has just
  refused, not before Retry-After is over, and no sooner than 0.7 s after it failed
- connections: one watch at a time, and all closed at the end; no part of the informer ends
- for handlers that use task groups, time-outs or threads, the outcome without them

A difference is a defect unless one of the rules below explains it.

```console
$ make differential                              # 2,000 scripts
$ make differential ARGS="--seeds 200"           # part of CI
$ make differential ARGS="--show 41"             # one script, and what both clients made of it
$ make differential ARGS="--source ../other/src" # the kinform of another checkout
$ make differential ARGS=--mutants               # which mutants of the reflector are found
```

This page is written by `make differential ARGS=--record`.

"""


def load() -> dict[str, Any]:
    """Return the record."""
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}


def write(**parts: object) -> None:
    """Replace these parts of the record, and write the page anew."""
    record = load() | parts
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")
    PAGE.write_text(page(record), "utf-8")


def page(record: Mapping[str, Any]) -> str:
    """Return the page."""
    return _HEAD + _rules(record) + _defects(record) + _mutants(record)


def _rules(record: Mapping[str, Any]) -> str:
    scripts, hits = record["scripts"], record["hits"]
    themes = ", ".join(f"{name} {count}" for name, count in sorted(record["themes"].items()))
    lines = [
        "## Rules\n\n",
        f"{scripts:,} scripts have no difference that no rule explains. Themes: {themes}.\n\n",
        *([f"Measured with {record['source']}.\n\n"] if "source" in record else []),
        "| rule | scripts | share |\n|---|---|---|\n",
        *(
            f"| {rule.name} | {hits.get(rule.name, 0)} | {hits.get(rule.name, 0) / scripts:.1%} |\n"
            for rule in RULES
        ),
        "\n",
    ]
    for rule in RULES:
        lines.append(f"**{rule.name}**: {rule.text}\n")
        if rule.review:
            lines.append(f"*More than 5 % of the scripts:* {rule.review}\n")
        lines.append("\n")
    return "".join(lines)


def _defects(record: Mapping[str, Any]) -> str:
    rows = [
        f"| {DEFECTS[name][0]} | {found['scripts']} | {found['seed']} |\n"
        for name, found in sorted(record.get("defects", {}).items())
    ]
    return (
        "## What the harness finds\n\n"
        f"With the kinform of commit {BEFORE}, which passed every test of its time, "
        f"{record.get('defects_in', 0):,} scripts find these defects unaided:\n\n"
        "| defect | scripts | first seed |\n|---|---|---|\n" + "".join(rows) + "\n"
    )


def _mutants(record: Mapping[str, Any]) -> str:
    mutants: Mapping[str, int] = record.get("mutants", {})
    caught = {name: seed for name, seed in mutants.items() if seed >= 0}
    head = (
        f"Of the {len(mutants)} mutants (see [mutants](mutants.md)) that can show here, "
        f"{len(caught)} are found ({len(caught) / max(1, len(mutants)):.0%}). Not found:\n\n"
    )
    lines = [
        f"- `{name}`: {SURVIVORS.get(name, 'not examined yet')}\n"
        for name in sorted(mutants.keys() - caught.keys())
    ]
    lines.append("\nMutants of these files cannot show here:\n\n")
    lines += [f"- `{part}`: {reason}\n" for part, reason in OUT_OF_SCOPE.items()]
    return head + "".join(lines)

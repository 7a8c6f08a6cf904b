"""Faults as YAML: a list of mappings, each from a fault's name to its options. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

import msgspec
import yaml

from kinform.apiserver.faults.kinds import (
    EFFECTS,
    VERBS,
    Effect,
    Fault,
    Match,
    about_verb,
    described,
    hint,
)
from kinform.errors import UsageError

__all__ = ["dump", "load"]

_MATCH: Final = frozenset(Match.__struct_fields__)


def load(text: str, *, source: str = "faults") -> list[Fault]:
    """Read faults; ``source`` is what messages call the text, such as the name of its file.

    >>> load("- close: {verb: watch, after_events: 3}")
    [faults.close(verb='watch', after_events=3)]

    Raises:
        UsageError: it is not a list of faults; the message names the entry and the key.
    """
    try:
        document: object = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise UsageError(f"{source}: this is not YAML: {_first_line(exc)}") from exc
    if document is None:
        return []
    if not isinstance(document, list):
        raise UsageError(f"{source}: expected a list of faults, each beginning with `- `")
    entries = cast("list[object]", document)
    return [_fault(entry, f"{source}: entry {n}") for n, entry in enumerate(entries, start=1)]


def dump(faults: Iterable[Fault]) -> str:
    """Return faults as `load` reads them.

    >>> from kinform.apiserver import faults
    >>> print(dump([faults.status(503, verb="list", times=2), faults.gzip()]), end="")
    - status: {verb: list, times: 2, code: 503}
    - gzip: {}
    """
    lines = [f"- {fault.name}: {_flow(fault.options())}\n" for fault in faults]
    return "".join(lines) or "[]\n"


def _flow(options: dict[str, object]) -> str:
    text: str = yaml.safe_dump(
        options, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    )
    return text.strip()


def _fault(entry: object, where: str) -> Fault:
    if isinstance(entry, str):
        entry = {entry: None}
    if not isinstance(entry, dict) or len(cast("dict[object, object]", entry)) != 1:
        raise UsageError(f"{where}: expected one fault with its options, such as `close: {{}}`")
    [(name, given)] = cast("dict[object, object]", entry).items()
    effect = EFFECTS.get(str(name))
    if effect is None:
        raise UsageError(f"{where}: unknown fault {str(name)!r}{hint(str(name), EFFECTS)}")
    where = f"{where} ({name})"
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise UsageError(f"{where}: expected options, such as `{{nth: 2}}`, got {given!r}")
    options = {str(key): value for key, value in cast("dict[object, object]", given).items()}
    known = [*effect.__struct_fields__, *Match.__struct_fields__]
    for key in options:
        if key not in known:
            raise UsageError(f"{where}: {key}: unknown option{hint(key, known)}")
    if problem := about_verb(options.get("verb"), VERBS):
        raise UsageError(f"{where}: {problem}")
    try:
        match = msgspec.convert({k: v for k, v in options.items() if k in _MATCH}, Match)
        own = {key: value for key, value in options.items() if key not in _MATCH}
        made: Effect = msgspec.convert(own, effect)
    except msgspec.ValidationError as exc:
        raise UsageError(f"{where}: {described(exc)}") from exc
    try:
        return Fault(made, match)
    except UsageError as exc:
        raise UsageError(f"{where}: {str(exc).partition(': ')[2]}") from exc


def _first_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or "it cannot be read")
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem

"""The query of a write, read and judged as kube-apiserver does."""

from __future__ import annotations

from typing import Final, final
from urllib.parse import unquote

import msgspec

from kinform.apiserver import field_errors
from kinform.apiserver.field_errors import FieldError
from kinform.apiserver.options import boolean, invalid_options
from kinform.apiserver.wire import Request

__all__ = ["Intent", "dry_run_problem", "intent"]

_LEVELS: Final = frozenset({"", "Ignore", "Strict", "Warn"})
_MANAGER_LIMIT: Final = 128


@final
class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a write says beside its body."""

    manager: str = "unknown"
    """Who owns the fields that it sets."""
    is_dry: bool = False
    """All is done but the storing."""
    field_validation: str = "Warn"
    """What happens to unknown and repeated fields: Ignore, Warn or Strict."""
    force: bool = False
    """An apply takes over what others own."""


def intent(request: Request, options: str, *, is_apply: bool = False) -> Intent:
    """Read the options of a write; ``options`` is what they are called, such as CreateOptions.

    Raises:
        StatusError: one of them is not what it can be.
    """
    manager = request.option("fieldManager")
    level = request.option("fieldValidation")
    errors: list[FieldError] = []
    if options == "PatchOptions":
        errors += _patch_problems(request, manager, is_apply=is_apply)
    if problem := dry_run_problem(request.query.get("dryRun", [])):
        errors.append(problem)
    errors += _manager_problems(manager)
    if level not in _LEVELS:
        errors.append(field_errors.not_supported("fieldValidation", level, _LEVELS))
    if errors:
        raise invalid_options(options, errors)
    return Intent(
        manager=manager or _agent(request),
        is_dry=bool(request.query.get("dryRun")),
        field_validation=level or "Warn",
        force=boolean(request, "force"),
    )


def dry_run_problem(values: list[str]) -> FieldError | None:
    """Return what is wrong with a ``dryRun``: it is All, or nothing."""
    if all(value == "All" for value in values):
        return None
    return field_errors.not_supported("dryRun", values, ["All"])


def _manager_problems(manager: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(manager.encode()) > _MANAGER_LIMIT:
        errors.append(field_errors.too_long("fieldManager", _MANAGER_LIMIT))
    for position, character in enumerate(manager):
        if not character.isprintable():
            at = len(manager[:position].encode())
            detail = f"invalid character U+{ord(character):04X} (at position {at})"
            errors.append(field_errors.invalid("fieldManager", manager, detail))
    return errors


def _patch_problems(request: Request, manager: str, *, is_apply: bool) -> list[FieldError]:
    if is_apply:
        text = "is required for apply patch"
        return [] if manager else [field_errors.required("fieldManager", text)]
    if "force" in request.query:
        return [field_errors.forbidden("force", "may not be specified for non-apply patch")]
    return []


def _agent(request: Request) -> str:
    """Return the name that a client without a field manager gets: its program's."""
    agent = unquote(request.headers.get("user-agent", "")).partition("/")[0]
    return agent[:_MANAGER_LIMIT] or "unknown"

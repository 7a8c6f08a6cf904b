"""Options in the query of a list, a watch or a write, validated as by kube-apiserver."""

from __future__ import annotations

from typing import Final, final
from urllib.parse import unquote

import msgspec

from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.storage import selection_predicate
from kinform.apiserver.storage.selection_predicate import (
    SelectionPredicate,
    parse_fields,
    parse_labels,
)

__all__ = [
    "ListQuery",
    "WriteQuery",
    "boolean",
    "dry_run_problem",
    "integer",
    "invalid_options",
    "list_options",
    "version",
    "write_options",
]

_DIGITS: Final = 400
"""Numbers with more digits are not read: they are out of any range."""
_MATCHES: Final = {"", "Exact", "NotOlderThan"}


@final
class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a list or a watch."""

    selection: SelectionPredicate
    is_watch: bool = False
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout: float | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None
    shard_selector: str = ""


def list_options(request: ServerRequest, kind: Kind, *, is_watch: bool = False) -> ListQuery:
    """Read the options of a list or a watch.

    Raises:
        StatusError: they cannot be read, or contradict each other.
    """
    wants_initial = request.option("sendInitialEvents")
    timeout = integer(request, "timeoutSeconds")
    options = ListQuery(
        selection=_selection(request, kind),
        is_watch=is_watch or boolean(request, "watch"),
        resource_version=request.option("resourceVersion"),
        match=request.option("resourceVersionMatch"),
        limit=integer(request, "limit") or 0,
        continue_token=request.option("continue"),
        timeout=timeout if timeout is None else float(timeout),
        bookmarks=boolean(request, "allowWatchBookmarks"),
        send_initial_events=(boolean(request, "sendInitialEvents") if wants_initial else None),
    )
    if errors := list(_problems(options)):
        raise invalid_options("ListOptions", errors)
    return options


def _selection(request: ServerRequest, kind: Kind) -> SelectionPredicate:
    labels = parse_labels(request.option("labelSelector"))
    fields = parse_fields(request.option("fieldSelector"))
    for term in fields:
        selection_predicate.check(kind, term.field)
    return SelectionPredicate(labels, fields)


def _problems(options: ListQuery) -> list[FieldError]:
    if options.is_watch:
        return _watch_problems(options)
    match, errors = options.match, list[FieldError]()
    if match:
        errors += _match_problems(options)
    if options.send_initial_events is not None:
        text = "sendInitialEvents is forbidden for list"
        errors.append(field_errors.forbidden("sendInitialEvents", text))
    return errors


def _watch_problems(options: ListQuery) -> list[FieldError]:
    match, errors = options.match, list[FieldError]()
    if options.send_initial_events is None:
        if match:
            errors.append(
                _match_forbidden("is forbidden for watch unless sendInitialEvents is provided")
            )
    elif match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(field_errors.forbidden("resourceVersionMatch", text))
    if match not in {"", "NotOlderThan"}:
        names = ["NotOlderThan"]
        errors.append(field_errors.not_supported("resourceVersionMatch", match, names))
    if options.continue_token:
        errors.append(_match_forbidden("is forbidden when continue is provided"))
    return errors


def _match_problems(options: ListQuery) -> list[FieldError]:
    match, errors = options.match, list[FieldError]()
    if not options.resource_version:
        errors.append(_match_forbidden("is forbidden unless resourceVersion is provided"))
    if options.continue_token:
        errors.append(_match_forbidden("is forbidden when continue is provided"))
    if match not in _MATCHES:
        detail = 'supported values: "Exact", "NotOlderThan", ""'
        problem = field_errors.Problem.NOT_SUPPORTED
        errors.append(FieldError(problem, "resourceVersionMatch", detail, match))
    elif match == "Exact" and options.resource_version == "0":
        errors.append(_match_forbidden('"exact" is forbidden for resourceVersion "0"'))
    return errors


def _match_forbidden(why: str) -> FieldError:
    return field_errors.forbidden("resourceVersionMatch", f"resourceVersionMatch {why}")


def invalid_options(kind: str, errors: list[FieldError]) -> StatusError:
    """Options contradict each other: ``kind`` is what they are called, such as ListOptions."""
    options = Kind(
        group="meta.k8s.io",
        version="v1",
        kind=kind,
        plural="",
        singular="",
        namespaced=False,
        verbs=(),
    )
    return status.invalid(options, "", errors)


def boolean(request: ServerRequest, name: str) -> bool:
    """Return a parameter's truth, as Go's conversion sees it: anything but false and 0 is true."""
    if name not in request.query:
        return False
    return request.option(name).lower() not in {"false", "0"}


def integer(request: ServerRequest, name: str) -> int | None:
    """Return a parameter's number, None if there is none.

    Raises:
        StatusError: it is not a number.
    """
    if name not in request.query:
        return None
    text = request.option(name)
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _DIGITS or not -(1 << 63) <= int(text) < 1 << 63:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def version(text: str) -> int:
    """Return the number of a resourceVersion; an unset one is 0.

    Raises:
        ValueError: it is not a number; the text is kube-apiserver's.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ValueError(str(field_errors.invalid("resourceVersion", text, why)))
    if len(text) > _DIGITS or int(text) >= 1 << 64:
        why = f'strconv.ParseUint: parsing "{text}": value out of range'
        raise ValueError(str(field_errors.invalid("resourceVersion", text, why)))
    return int(text)


# --- the query of a write

_LEVELS: Final = frozenset({"", "Ignore", "Strict", "Warn"})
_MANAGER_LIMIT: Final = 128


@final
class WriteQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a write: the query parameters of a create, an update or a patch."""

    manager: str = "unknown"
    """The field manager, which owns the fields that the write sets."""
    is_dry: bool = False
    """All is done but the storing."""
    field_validation: str = "Warn"
    """The treatment of unknown and repeated fields: Ignore, Warn or Strict."""
    force: bool = False
    """An apply takes over what others own."""


def write_options(request: ServerRequest, options: str, *, is_apply: bool = False) -> WriteQuery:
    """Read the options of a write; ``options`` is what they are called, such as CreateOptions.

    Raises:
        StatusError: one of them is not what it can be.
    """
    manager = request.option("fieldManager")
    level = request.option("fieldValidation")
    errors: list[FieldError] = []
    if options == "PatchOptions":
        errors += _patch_problems(request, manager, is_apply=is_apply)
    dry_run = request.query.get("dryRun")
    if dry_run and (problem := dry_run_problem(dry_run)):
        errors.append(problem)
    if manager:
        errors += _manager_problems(manager)
    if level not in _LEVELS:
        errors.append(field_errors.not_supported("fieldValidation", level, _LEVELS))
    if errors:
        raise invalid_options(options, errors)
    return WriteQuery(
        manager=manager or _agent(request),
        is_dry=bool(dry_run),
        field_validation=level or "Warn",
        force=is_apply and boolean(request, "force"),
    )


def dry_run_problem(values: list[str]) -> FieldError | None:
    """Return the errors of a ``dryRun``: it is All, or nothing."""
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


def _patch_problems(request: ServerRequest, manager: str, *, is_apply: bool) -> list[FieldError]:
    if is_apply:
        text = "is required for apply patch"
        return [] if manager else [field_errors.required("fieldManager", text)]
    if "force" in request.query:
        return [field_errors.forbidden("force", "may not be specified for non-apply patch")]
    return []


def _agent(request: ServerRequest) -> str:
    """Return the name that a client without a field manager gets: its program's."""
    agent = unquote(request.headers.get("user-agent", "")).partition("/")[0]
    return agent[:_MANAGER_LIMIT] or "unknown"

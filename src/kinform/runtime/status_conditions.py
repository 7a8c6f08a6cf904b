"""Conditions: the state of an object as a controller reports it (``metav1.Condition``).

apimachinery: ``meta.SetStatusCondition`` and its siblings. All functions accept
``status.conditions`` in any form: plain lists of dicts, the read-only views of an `Object`, the
models of `kinform.clientset`, or the whole object in one of these forms. Only `set_condition` and
`remove_condition` change something: the list they are given, which the caller must own
(`conditions_of`).

A condition that the server would refuse is refused here: a failed status write is noticed late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, Protocol, TypeAlias, cast

from kinform import clock
from kinform.errors import UsageError
from kinform.objects import models
from kinform.objects.object import Object
from kinform.objects.views import DictView
from kinform.runtime.map_functions import AnyObject
from kinform.verbs import _write_bodies

__all__ = [
    "Condition",
    "ConditionStatus",
    "Conditions",
    "conditions_of",
    "find_condition",
    "is_condition_true",
    "remove_condition",
    "set_condition",
    "with_condition",
]

Condition: TypeAlias = dict[str, object]
"""One element of ``status.conditions``."""


class ConditionModel(Protocol):
    """A condition as a model declares it."""

    @property
    def type(self) -> object:
        """The type of the condition: ``Ready``."""
        ...

    @property
    def status(self) -> object:
        """The status: ``True``, ``False`` or ``Unknown``."""
        ...


Conditions: TypeAlias = AnyObject | Iterable[Mapping[str, object] | ConditionModel] | None
"""A source of conditions: an object, or the value of its ``status.conditions``."""
ConditionStatus: TypeAlias = bool | Literal["True", "False", "Unknown"] | None
"""``None`` is ``"Unknown"``."""

_STATUSES: Final[Mapping[object, str]] = {
    True: "True",
    False: "False",
    None: "Unknown",
    **{text: text for text in ("True", "False", "Unknown")},
}
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TYPE: Final = re.compile(rf"({_LABEL}(\.{_LABEL})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"
_LONGEST_TYPE: Final = 316
_LONGEST_REASON: Final = 1024
_LONGEST_MESSAGE: Final = 32_768


def conditions_of(source: Conditions) -> list[Condition]:
    """Return the conditions as a new list, which the caller may change; empty if it has none.

    Raises:
        UsageError: ``source`` holds something else.
    """
    return [_own(each) for each in _listed(source)]


def find_condition(source: Conditions, type_: str) -> Mapping[str, object] | None:
    """Return the condition of that type, or None.

    Raises:
        UsageError: ``source`` holds something else than conditions.
    """
    return next((each for each in _listed(source) if each.get("type") == type_), None)


def is_condition_true(source: Conditions, type_: str) -> bool:
    """Return whether there is a condition of that type, and its status is ``True``.

    Raises:
        UsageError: ``source`` holds something else than conditions.
    """
    found = find_condition(source, type_)
    return found is not None and found.get("status") == "True"


def set_condition(
    conditions: list[Condition],
    type_: str,
    *,
    status: ConditionStatus,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | float | None = None,
) -> bool:
    """Add a condition to the list, or change the one of that type; return whether it differs.

    >>> conditions: list[Condition] = []
    >>> set_condition(conditions, "Ready", status=True, reason="AllUp", now=0)
    True
    >>> set_condition(conditions, "Ready", status=True, reason="AllUp", now=60)
    False
    >>> conditions[0]["lastTransitionTime"]
    '1970-01-01T00:00:00Z'

    ``lastTransitionTime`` is ``now`` if the status changed, and else stays. Other conditions, and
    other fields of this one, are left as they are.

    Args:
        observed_generation: the ``metadata.generation`` that this is about; if it is not said,
            the condition has none: that of an older report would be a lie.
        now: seconds since 1970, or a time with its zone; else it is taken from the clock.

    Raises:
        UsageError: the server would refuse the condition; says why.
    """
    condition = _made(
        type_,
        status=status,
        reason=reason,
        message=message,
        observed_generation=observed_generation,
    )
    known = find_condition(conditions, type_)
    moved = known is None or known.get("status") != condition["status"]
    changed = {**(known or {}), **condition}
    if observed_generation is None:
        changed.pop("observedGeneration", None)
    if moved or not changed.get("lastTransitionTime"):
        changed["lastTransitionTime"] = _time(now)
    if known == changed:
        return False
    _replace(conditions, type_, changed)
    return True


def with_condition(
    source: Conditions,
    type_: str,
    *,
    status: ConditionStatus,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | float | None = None,
) -> list[Condition]:
    """Return all conditions of ``source`` with this one set: `set_condition` on a fresh list.

    .. code-block:: python

        conditions = with_condition(website, "Ready", status=True, reason="AllUp")
        if conditions != website.at("status", "conditions"): ...

    Raises:
        UsageError: the server would refuse the condition; says why.
    """
    conditions = conditions_of(source)
    set_condition(
        conditions,
        type_,
        status=status,
        reason=reason,
        message=message,
        observed_generation=observed_generation,
        now=now,
    )
    return conditions


def remove_condition(conditions: list[Condition], type_: str) -> bool:
    """Remove the condition of that type from the list; return whether there was one."""
    left = [each for each in conditions if each.get("type") != type_]
    removed = len(left) < len(conditions)
    conditions[:] = left
    return removed


def _made(
    type_: str,
    *,
    status: ConditionStatus,
    reason: str,
    message: str,
    observed_generation: int | None,
) -> Condition:
    """Return the condition as it will be written, but for its time."""
    problem = (
        _text_problem("type", type_, pattern=_TYPE, longest=_LONGEST_TYPE)
        or _text_problem("reason", reason, pattern=_REASON, longest=_LONGEST_REASON)
        or _text_problem("message", message, pattern=None, longest=_LONGEST_MESSAGE)
        or _other_problem(status, observed_generation)
    )
    if problem:
        raise UsageError(f"condition {str(type_)[:_LONGEST_TYPE]!r}: {problem}")
    made: Condition = {"type": type_, "status": _STATUSES[status]}
    if observed_generation is not None:
        made["observedGeneration"] = observed_generation
    return made | {"reason": reason, "message": message}


def _text_problem(
    field: str, value: object, *, pattern: re.Pattern[str] | None, longest: int
) -> str | None:
    if not isinstance(value, str):
        return f"{field} must be text, got {type(value).__name__}"
    if len(value) > longest:
        return f"{field} has {len(value)} characters, {longest} are allowed"
    if pattern is not None and not pattern.fullmatch(value):
        # A message may hold anything; these two are words, and safe to show.
        return f"{field} {value!r} must be one word like 'Available', matching {pattern.pattern}"
    return None


def _other_problem(status: object, observed_generation: object) -> str | None:
    # Compare types as well: 1 is equal to True, and is not a status.
    if not isinstance(status, bool | str | None) or status not in _STATUSES:
        return f"status is {status!r}, expected True, False, None or 'Unknown'"
    if observed_generation is None:
        return None
    if type(observed_generation) is not int or observed_generation < 0:
        return f"observed_generation is {observed_generation!r}, expected an integer, at least 0"
    return None


def _time(now: datetime | float | None) -> str:
    """Return a time as Kubernetes writes it: UTC, in whole seconds."""
    if isinstance(now, datetime):
        if now.tzinfo is None:
            raise UsageError(f"{now!r} has no time zone; datetime.now(UTC) has")
        return now.astimezone(UTC).strftime(_FORMAT)
    try:
        seconds = clock.current().wall() if now is None else now
        return datetime.fromtimestamp(seconds, UTC).strftime(_FORMAT)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"now is {now!r}, expected seconds since 1970") from None


def _replace(conditions: list[Condition], type_: str, changed: Condition) -> None:
    """Put ``changed`` where the first of its type stands, or last. There is one of a type."""
    types = [each.get("type") for each in conditions]
    if type_ not in types:
        conditions.append(changed)
        return
    first = types.index(type_)
    conditions[:] = [
        changed if index == first else each
        for index, each in enumerate(conditions)
        if index == first or types[index] != type_
    ]


def _listed(source: Conditions) -> list[Mapping[str, object]]:
    found = _within(source)
    kind = type(found).__name__
    if found is None:
        return []
    if isinstance(found, Iterable) and not isinstance(found, str | bytes | Mapping):
        listed = [_mapping(each) for each in cast("Iterable[object]", found)]
        if all(isinstance(each, Mapping) for each in listed):
            return cast("list[Mapping[str, object]]", listed)
    raise UsageError(
        f"expected a list of conditions, or an object with status.conditions, got {kind}"
    )


def _within(source: object) -> object:
    """Return what is at ``status.conditions`` of an object; anything else is that itself."""
    if isinstance(source, Object):
        return source.at("status", "conditions")
    if isinstance(source, Mapping):
        found = cast("Mapping[str, object]", source)
        return _member(found.get("status"), "conditions") if "metadata" in found else found
    if hasattr(source, "metadata"):
        return _member(_member(source, "status"), "conditions")
    return source


def _member(holder: object, name: str) -> object:
    """Return a member of a dict or of a model; what is not there has none.

    Raises:
        UsageError: the model does not declare it: that must not be taken for absent.
    """
    if holder is None:
        return None
    if isinstance(holder, Mapping):
        return cast("Mapping[str, object]", holder).get(name)
    try:
        return cast("object", getattr(holder, name))
    except AttributeError:
        raise UsageError(f"{type(holder).__name__} does not declare {name}") from None


def _mapping(condition: object) -> object:
    """Return a model as a dict with the names of the wire; all else as it is."""
    return _write_bodies.content_of(condition) if models.is_projection(condition) else condition


def _own(condition: Mapping[str, object]) -> Condition:
    return condition.to_dict() if isinstance(condition, DictView) else {**condition}

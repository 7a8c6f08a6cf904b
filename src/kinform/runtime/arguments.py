"""What a controller is made of, checked: mistakes are named when it is made, not when it runs."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar, cast

from kinform.cache.handlers import refuse_generators
from kinform.errors import UsageError
from kinform.runtime.kind_source import AnyKindSource, KindSource
from kinform.runtime.sources import Source

__all__ = ["check", "several", "sorted_sources"]

T = TypeVar("T")

_NAME: Final = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def several(given: Iterable[T], role: str) -> list[T]:
    """Return a list of what was given for ``role``.

    Raises:
        UsageError: it is one, not several.
    """
    if isinstance(given, str | type) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
        raise UsageError(f"{role} is {given!r}; expected a list, perhaps [{given!r}]")
    return list(given)


def check(
    name: str,
    reconcile: object,
    *,
    workers: int,
    timeout: float | None,
    slow_after: float | None,
) -> None:
    """Refuse what makes no sense.

    Raises:
        UsageError: it does not.
    """
    if not _NAME.fullmatch(name):  # it is the component of events as well
        raise UsageError(
            f"no controller can be called {name!r}: up to 63 letters, digits, '-', '_' and '.', of "
            "which the first and the last are letters or digits"
        )
    if not callable(reconcile):
        raise UsageError(f"reconcile is of type {type(reconcile).__name__}; expected a function")
    refuse_generators("reconcile", reconcile)
    _check_signature(reconcile)
    if workers < 1:
        raise UsageError(f"workers is {workers}; expected at least 1")
    if timeout is not None and not 0 < timeout < math.inf:
        raise UsageError(f"timeout is {timeout!r}; expected seconds, more than 0, or None")
    if slow_after is not None and not slow_after > 0:
        raise UsageError(f"slow_after is {slow_after!r}; expected seconds, more than 0, or None")


def _check_signature(reconcile: Callable[..., object]) -> None:
    try:
        signature = inspect.signature(reconcile)
    except (TypeError, ValueError):
        return  # nothing is known of it
    try:
        signature.bind("ctx", "name")
    except TypeError:
        raise UsageError(
            f"reconcile is called with a Context and an ObjectName, and takes {signature}"
        ) from None


def sorted_sources(
    watches: Sequence[Source | AnyKindSource],
) -> tuple[list[AnyKindSource], list[Source]]:
    """Return which of them are kinds, and which sources of their own.

    Raises:
        UsageError: one is neither, or a kind does not say what its objects mean.
    """
    kinds, others = list[AnyKindSource](), list[Source]()
    for each in watches:
        if isinstance(each, KindSource):
            kind = cast("AnyKindSource", each)
            _check_map(kind)
            kinds.append(kind)
        elif callable(getattr(each, "run", None)) and isinstance(getattr(each, "name", None), str):
            others.append(cast("Source", each))
        else:
            raise UsageError(
                f"watches has {each!r}, which is no source: a KindSource('v1/pods', map=...), "
                "TimerSource, StreamSource, ChannelSource, or what has a name and a run(add), is"
            )
    return kinds, others


def _check_map(kind: AnyKindSource) -> None:
    if not kind.has_map:
        raise UsageError(
            f"watches has {kind.kind_name} without a map: say which names its objects mean, for "
            f"example KindSource({kind.kind_name!r}, map=to_label('example.com/widget'))"
        )

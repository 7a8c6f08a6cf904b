"""Checks of the arguments of `APIServer`. Pure."""

from __future__ import annotations

from typing import Final, TypeGuard

from kinform.apiserver.faults.plan import FaultPlan
from kinform.errors import UsageError

__all__ = ["check_faults", "check_port", "check_revision", "check_token"]

_LAST_PORT: Final = 65_535


def check_port(port: object) -> None:
    """Check a port number.

    Raises:
        UsageError: it is none.
    """
    if port is None:
        return
    if not _is_int(port) or not 0 <= port <= _LAST_PORT:
        raise UsageError(
            f"port: expected 0 to {_LAST_PORT} (0: any free one) or None (no port), got {port!r}"
        )


def check_token(token: object) -> None:
    """Check that a token can be sent in a header.

    Raises:
        UsageError: it is empty, or no text. The message does not hold it.
    """
    if token is None:
        return
    if not isinstance(token, str):
        raise UsageError(f"token: expected a text, or None for a random one, got {_type(token)}")
    if not token:
        raise UsageError("token: it is empty; leave it out for a random one")


def check_faults(faults: object) -> None:
    """Check a fault plan.

    Raises:
        UsageError: it is none.
    """
    if faults is not None and not isinstance(faults, FaultPlan):
        raise UsageError(
            f"faults: expected a FaultPlan, got {_type(faults)}; FaultPlan([faults.gzip()]) "
            "makes one of faults, FaultPlan(faults.load(text)) of YAML"
        )


def check_revision(revision: object, *, first: int, current: int) -> None:
    """Refuse a revision that never was.

    Raises:
        UsageError: it was not.
    """
    if not _is_int(revision):
        raise UsageError(f"revision: expected a number, got {revision!r}")
    if not first <= revision <= current:
        raise UsageError(
            f"revision {revision} does not exist: the first is {first}, the current one {current}"
        )


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _type(value: object) -> str:
    return type(value).__name__

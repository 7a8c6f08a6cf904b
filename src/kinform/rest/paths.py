"""The path of a request: which parts it has, what they may hold, how they are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final
from urllib.parse import quote, urlencode

from kinform.errors import UsageError

__all__ = ["RequestPath", "check_segment"]

_SAFE = "-._~!$&'()*+,;=:@"  # what RFC 3986 allows in a segment, all but the escapes


_FORBIDDEN: Final = re.compile("[/%\x00-\x1f\x7f\ud800-\udfff]")


def check_segment(part: str, value: str) -> str:
    """Return ``value`` if it may stand in a path as one segment.

    Raises:
        UsageError: it is empty, ``.`` or ``..``, or holds ``/``, ``%`` or a control character.
    """
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - users err
        raise UsageError(f"{part} must be a text, got {type(value).__name__}")
    if not value:
        raise UsageError(f"{part} must not be empty")
    if value in {".", ".."}:
        raise UsageError(f"{part} must not be {value!r}")
    if found := _FORBIDDEN.search(value):
        raise UsageError(f"{part} {value!r} must not hold {found[0]!r}")
    return value


@final
class RequestPath:
    """Collects the parts and writes them in Kubernetes' order.

    >>> path = RequestPath("/apis/apps/v1")
    >>> for part, value in [("namespace", "a"), ("resource", "Deployments"), ("name", "web")]:
    ...     path.set(part, value)
    >>> path.render("GET", [("limit", "1")])
    '/apis/apps/v1/namespaces/a/deployments/web?limit=1'
    """

    __slots__ = ("_name", "_namespace", "_prefix", "_resource", "_subresource", "_suffix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.rstrip("/")
        self._namespace: str | None = None
        self._resource: str | None = None
        self._name: str | None = None
        self._subresource: tuple[str, ...] | None = None
        self._suffix = ""

    def set(self, part: str, *values: str) -> None:
        """Set one part.

        Raises:
            UsageError: the value cannot stand there, or the part is set already.
        """
        match part:
            case "namespace":
                self._once(part, self._namespace)
                self._namespace = values[0] and check_segment(part, values[0])
            case "resource":
                self._once(part, self._resource)
                self._resource = check_segment(part, values[0]).lower()
            case "name":
                self._once(part, self._name)
                self._name = check_segment(part, values[0])
            case "subresource":
                self._once(part, self._subresource)
                self._subresource = tuple(check_segment(part, value) for value in values)
            case "prefix":
                self._prefix += _join(part, values)
            case "suffix":
                self._suffix += _join(part, values)
            case _:
                joined = _join(part, values)
                self._prefix = joined + ("/" if values and values[-1].endswith("/") else "")

    def render(self, method: str, params: Sequence[tuple[str, str]]) -> str:
        """Write the path with its query.

        Raises:
            UsageError: a namespace is needed and empty.
        """
        if self._namespace == "":
            if method == "POST":
                raise UsageError("a namespace must be set to create in it")
            if self._name is not None and method in {"GET", "PUT", "PATCH", "DELETE"}:
                raise UsageError("a namespace must be set to reach an object by name")
        segments: list[str | None] = ["namespaces", self._namespace] if self._namespace else []
        segments += [self._resource, self._name, *(self._subresource or ())]
        written = [f"/{quote(value, safe=_SAFE)}" for value in segments if value is not None]
        tail = "".join(written) + self._suffix
        path = self._prefix.rstrip("/") + tail if tail else self._prefix or "/"
        try:
            return f"{path}?{urlencode(params)}" if params else path
        except UnicodeEncodeError as exc:
            raise UsageError(f"a parameter cannot be sent: {exc.reason}") from None

    def _once(self, part: str, current: object) -> None:
        if current is not None:
            raise UsageError(f"{part} is set already, to {current!r}")


def _join(part: str, values: Sequence[str]) -> str:
    """Write free segments, which may themselves hold slashes."""
    pieces = [piece for value in values for piece in value.split("/") if piece]
    return "".join(f"/{quote(check_segment(part, piece), safe=_SAFE)}" for piece in pieces)

"""Probes and lifecycle handlers."""

from __future__ import annotations

import re
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, forbidden, invalid, required
from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.validation.labels import unsupported
from kinform.apiserver.validation.names import port_name, port_number

__all__ = ["at_least_zero", "check_handler", "check_lifecycle", "check_probes"]

_AT_LEAST_ZERO: Final = "must be greater than or equal to 0"
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_HEADER: Final = re.compile("[-A-Za-z0-9]+")
_HEADER_TEXT: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_SCHEMES: Final = ("HTTP", "HTTPS")


def at_least_zero(value: int, path: str, errors: list[FieldError]) -> None:
    """Validate a number that counts something."""
    if value < 0:
        errors.append(invalid(path, value, _AT_LEAST_ZERO))


def check_probes(container: Json, path: str, errors: list[FieldError]) -> None:
    """Validate the probes of a container."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is None:
            continue
        at = f"{path}.{name}"
        _check_probe(probe, at, errors)
        if name != "readinessProbe" and (times := probe.get("successThreshold", 1)) != 1:
            errors.append(invalid(f"{at}.successThreshold", times, "must be 1"))


def _check_probe(probe: Json, path: str, errors: list[FieldError]) -> None:
    check_handler(probe, path, errors)
    for field in _PROBE_NUMBERS:
        at_least_zero(probe.get(field) or 0, f"{path}.{field}", errors)
    if (grace := probe.get("terminationGracePeriodSeconds", 1)) <= 0:
        at = f"{path}.terminationGracePeriodSeconds"
        errors.append(invalid(at, grace, "must be greater than 0"))


def check_lifecycle(lifecycle: Json, path: str, errors: list[FieldError], *, grace: int) -> None:
    """Validate what runs when a container starts and before it stops."""
    for name in ("postStart", "preStop"):
        if (handler := lifecycle.get(name)) is not None:
            check_handler(handler, f"{path}.{name}", errors)
            seconds = as_dict(handler.get("sleep")).get("seconds") or 0
            if not 0 <= seconds <= grace:
                detail = (
                    f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                )
                errors.append(invalid(f"{path}.{name}.sleep", seconds, detail))


def check_handler(handler: Json, path: str, errors: list[FieldError]) -> None:
    """Validate an action: exactly one, and that one complete."""
    count = 0
    for name in _HANDLERS:
        if (action := handler.get(name)) is None:
            continue
        count += 1
        at = f"{path}.{name}"
        if count > 1:
            errors.append(forbidden(at, "may not specify more than 1 handler type"))
        else:
            _check_action(name, (action, at), errors)
    if not count:
        errors.append(required(path, "must specify a handler type"))


def _check_action(name: str, what: tuple[Json, str], errors: list[FieldError]) -> None:
    action, path = what
    match name:
        case "exec":
            if not action.get("command"):
                errors.append(required(f"{path}.command"))
        case "httpGet":
            _check_http_get(action, path, errors)
        case "sleep":
            pass
        case _:
            _check_port(action.get("port", 0), f"{path}.port", errors)


def _check_http_get(action: Json, path: str, errors: list[FieldError]) -> None:
    if not action.get("path"):
        errors.append(required(f"{path}.path"))
    _check_port(action.get("port", 0), f"{path}.port", errors)
    scheme = action.get("scheme") or ""
    if scheme not in _SCHEMES:
        errors.append(unsupported(f"{path}.scheme", scheme, _SCHEMES))
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        if _HEADER.fullmatch(name) is None:
            errors.append(invalid(f"{path}.httpHeaders", name, _HEADER_TEXT))


def _check_port(port: int | str, path: str, errors: list[FieldError]) -> None:
    problems = port_number(port) if isinstance(port, int) else port_name(port)
    errors += [invalid(path, port, problem) for problem in problems]

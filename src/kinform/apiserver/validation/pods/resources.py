"""Validation of containers' resources: names and amounts."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, Problem, forbidden, invalid, required
from kinform.apiserver.scheme.resource_quantities import parse, rounded
from kinform.apiserver.serializer.json_values import Json, as_dict
from kinform.apiserver.validation.labels import unsupported
from kinform.apiserver.validation.names import qualified_name

__all__ = ["check_pod_resources", "check_resources"]

_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL: Final = frozenset({"cpu", "memory"})
_HUGE: Final = "hugepages-"


def check_resources(resources: Json, path: str, errors: list[FieldError]) -> None:
    """Validate limits and requests, and that nothing is asked for beyond its limit."""
    limits: Json = resources.get("limits") or {}
    requests: Json = resources.get("requests") or {}
    for name, amount in limits.items():
        if not _is_plain(name, amount):
            _check_amount(name, amount, f"{path}.limits[{name}]", errors=errors)
    if any(
        name not in _STANDARD and name not in limits and _is_extended(name) for name in requests
    ):
        detail = "Limit must be set for non overcommitable resources"
        errors.append(required(f"{path}.limits", detail))
    for name, amount in requests.items():
        if not _is_plain(name, amount):
            _check_amount(name, amount, f"{path}.requests[{name}]", errors=errors)
        if name in limits:
            _check_pair(name, (amount, limits[name]), f"{path}.requests", errors=errors)
    if "claims" in resources:
        _check_claims(resources["claims"] or [], path, errors)
    names = limits.keys() | requests.keys()
    if not names & _POD_LEVEL and any(name.startswith(_HUGE) for name in names):
        errors.append(forbidden(path, "HugePages require cpu or memory"))


@functools.lru_cache(maxsize=4096)
def _is_plain(name: str, amount: str) -> bool:
    """Return whether there is nothing to say about so much of it, which is nearly always so."""
    return name in _STANDARD and parse(amount) >= 0


def _check_claims(claims: list[Json], path: str, errors: list[FieldError]) -> None:
    for index, claim in enumerate(claims):
        if not claim.get("name"):
            errors.append(required(f"{path}.claims[{index}]"))
        else:
            detail = "must be one of the names in pod.spec.resourceClaims which is empty"
            at = f"{path}.claims[{index}]"
            errors.append(FieldError(Problem.NOT_FOUND, at, detail, claim["name"]))


def _is_extended(name: str) -> bool:
    """Return whether what is asked for can never be promised twice."""
    return name not in _STANDARD and ("/" in name or name.startswith(_HUGE))


def _check_amount(name: str, amount: str, path: str, *, errors: list[FieldError]) -> None:
    problems = qualified_name(name)
    errors += [invalid(path, name, problem) for problem in problems]
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
        if not problems:
            detail = "must be a standard resource type or fully qualified"
            errors.append(invalid(path, name, detail))
        errors.append(invalid(path, name, "must be a standard resource for containers"))
    quantity = parse(amount)
    if quantity < 0:
        errors.append(invalid(path, amount, "must be greater than or equal to 0"))
    if "/" in name and "kubernetes.io/" not in name and quantity.denominator != 1:
        errors.append(invalid(path, amount, "must be an integer"))
    if name.startswith(_HUGE) and quantity % parse(name.removeprefix(_HUGE)):
        detail = f"{amount} is not positive integer multiple of {name}"
        errors.append(invalid(path, amount, detail))


def _check_pair(name: str, pair: tuple[str, str], path: str, *, errors: list[FieldError]) -> None:
    amount, limit = pair
    if amount == limit:
        return
    if _is_extended(name) and parse(amount) != parse(limit):
        detail = f"must be equal to {name} limit of {limit}"
        errors.append(invalid(path, amount, detail))
    elif parse(amount) > parse(limit):
        detail = f"must be less than or equal to {name} limit of {limit}"
        errors.append(invalid(path, amount, detail))


def check_pod_resources(
    spec: Json, path: str, errors: list[FieldError], *, resources: Json
) -> None:
    """Validate what a pod as a whole may use: at least what its containers ask for."""
    limits: Json = resources.get("limits") or {}
    requests: Json = resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            at = f"{path}.{kind}[{name}]"
            if name not in _POD_LEVEL and not name.startswith(_HUGE):
                errors.append(unsupported(at, name, ("cpu", "hugepages-", "memory")))
            elif parse(amount) < 0:
                errors.append(invalid(at, amount, "must be greater than or equal to 0"))
    for name in requests.keys() & limits.keys():
        _check_pair(name, (requests[name], limits[name]), f"{path}.requests", errors=errors)
    if any(_is_extended(name) and name not in limits for name in requests):
        detail = "Limit must be set for non overcommitable resources"
        errors.append(required(f"{path}.limits", detail))
    for name in sorted(requests.keys() & _POD_LEVEL):
        texts = [
            as_dict(as_dict(one.get("resources")).get("requests")).get(name) or "0"
            for one in spec.get("containers") or ()
        ]
        total = sum((parse(text) for text in texts), Fraction(0))
        if parse(requests[name]) < total:
            shown = rounded(f"{math.ceil(total * 1000)}m")
            detail = f"must be greater than or equal to aggregate container requests of {shown}"
            errors.append(invalid(f"{path}.requests[{name}]", requests[name], detail))

"""Addresses and ports of services: which are taken, and which a service gets."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.defaults import services
from kinform.apiserver.field_errors import FieldError
from kinform.apiserver.json import Json, as_dict, as_list, at
from kinform.apiserver.kind import Kind
from kinform.apiserver.rendering import decode
from kinform.apiserver.storage import Table

__all__ = ["assign"]

_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def assign(kind: Kind, obj: Json, key: str, *, table: Table) -> list[FieldError]:
    """Give a service the address and the ports that it needs and has not, in place.

    ``table`` has all services; the one at ``key`` is this one, if it is there already. Returned
    is what is wrong with what it asked for.
    """
    addresses: set[str] = set()
    ports: set[int] = set()
    for stored in table.now():
        if stored.key == key:
            continue
        addresses.add(stored.fields.get("spec.clusterIP", ""))
        if stored.fields.get("spec.type") in _WITH_PORTS:
            ports |= _ports(decode(kind, stored.raw))
    return services.assign(obj, addresses=addresses, ports=ports)


def _ports(service: Json) -> set[int]:
    listed = as_list(at(service, "spec", "ports"))
    found = {as_dict(port).get("nodePort") or 0 for port in listed}
    return found | {at(service, "spec", "healthCheckNodePort") or 0}

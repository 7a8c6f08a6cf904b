"""The allocator of Services' cluster addresses and node ports."""

from __future__ import annotations

from typing import Final, final

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.defaults import services
from kinform.apiserver.endpoints import status
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at
from kinform.apiserver.storage.versioned_store import Change, Stored

__all__ = ["Addresses"]

_SERVICES: Final = "services"
_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


@final
class Addresses:
    """An index of the addresses and node ports of a cluster's Services."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # Invariant, unless stale: by address and by port, the keys of the services that have them.
        self._addresses: dict[str, str] = {}
        self._ports: dict[int, str] = {}
        self._held: dict[str, tuple[str, set[int]]] = {}
        self._is_stale = True
        self._given = 0
        cluster.storage.observe(self._note, resources={_SERVICES})

    def rebuild(self) -> None:
        """Look at all services again, after the storage was loaded or restored."""
        self._is_stale = True

    def assign(self, obj: Json, key: str) -> list[FieldError]:
        """Give a service the address and the ports that it needs and has not, in place.

        The service at ``key`` is this one, if it is there already. Returned is what is wrong
        with what it asked for.

        Raises:
            StatusError: nothing is left to give.
        """
        if self._is_stale:
            self._learn()
        taken = _Others(self._addresses, key)
        ports = {port for port, owner in self._ports.items() if owner != key}
        has_address = bool(obj["spec"].get("clusterIP"))
        try:
            errors = services.assign(obj, addresses=taken, ports=ports, start=self._given)
        except LookupError as exc:
            raise status.internal(f"failed to allocate what the service needs: {exc}") from exc
        if not errors and not has_address:
            self._given += 1
        return errors

    def _learn(self) -> None:
        self._addresses.clear()
        self._ports.clear()
        self._held.clear()
        for stored in self._cluster.storage.table(_SERVICES).now():
            self._add(stored)
        self._is_stale = False

    def _note(self, resource: str, change: Change) -> None:
        del resource
        if self._is_stale:
            return
        address, ports = self._held.pop(change.key, ("", set[int]()))
        self._addresses.pop(address, None)
        for port in ports:
            self._ports.pop(port, None)
        if not change.is_delete:
            self._add(change.new)

    def _add(self, stored: Stored) -> None:
        address = stored.fields.get("spec.clusterIP", "")
        ports: set[int] = set()
        if stored.fields.get("spec.type") in _WITH_PORTS:
            ports = _ports(decode(self._cluster.kinds.versions(_SERVICES)[0], stored.raw))
        if address not in {"", "None"}:
            self._addresses[address] = stored.key
        self._ports |= dict.fromkeys(ports, stored.key)
        self._held[stored.key] = (address, ports)


@final
class _Others:
    """The addresses of all services but one."""

    def __init__(self, addresses: dict[str, str], key: str) -> None:
        self._addresses = addresses
        self._key = key

    def __contains__(self, address: object) -> bool:
        return self._addresses.get(str(address), self._key) != self._key


def _ports(service: Json) -> set[int]:
    listed = as_list(at(service, "spec", "ports"))
    found: set[int] = {as_dict(port).get("nodePort") or 0 for port in listed}
    return (found | {at(service, "spec", "healthCheckNodePort") or 0}) - {0}

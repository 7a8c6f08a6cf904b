"""Services: defaults, and the allocation of addresses and ports."""

from __future__ import annotations

import copy
import ipaddress
import itertools
from collections.abc import Collection, Container
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, invalid
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = [
    "RANGE",
    "allocate",
    "allocate_port",
    "assign",
    "default",
    "default_owned",
    "needs_address",
    "prepare_create",
    "prepare_update",
]

RANGE: Final = "10.0.0.0/16"
"""The range of Services' cluster addresses."""

_NETWORK: Final = ipaddress.IPv4Network(RANGE)
_FIRST: Final = int(_NETWORK.network_address) + 1
_LAST: Final = int(_NETWORK.broadcast_address)
_KEPT: Final = _FIRST + 256
"""The start of the part of the range that is used for automatic assignment."""

_FIRST_PORT: Final = 30000
_LAST_PORT: Final = 32767
_TIMEOUT: Final = 10800
_HEADLESS: Final = "None"


def needs_address(spec: Json) -> bool:
    """Return whether a Service of this spec has an address of its own, be it given or not yet."""
    return spec.get("type") != "ExternalName" and spec.get("clusterIP") != _HEADLESS


def allocate(used: Container[str], *, start: int = 0) -> str:
    """Return an address of `RANGE` that is not ``used``, and never the first, which is reserved.

    The lower part of the range is for clients that ask for an address. It is used for others only
    when the rest is exhausted, as in kube-apiserver.

    Args:
        start: The number of addresses to skip, because the caller knows that they are used.

    Raises:
        LookupError: all are used.
    """
    above = range(_KEPT, _LAST)
    start %= len(above)
    for number in itertools.chain(above[start:], above[:start], range(_FIRST + 1, _KEPT)):
        address = str(ipaddress.IPv4Address(number))
        if address not in used:
            return address
    raise LookupError("range is full")


def allocate_port(used: Collection[int]) -> int:
    """Return a port of nodes that is not among the ``used`` ones.

    Raises:
        LookupError: all are used.
    """
    taken = frozenset(used)
    for port in range(_FIRST_PORT, _LAST_PORT + 1):
        if port not in taken:
            return port
    raise LookupError("range is full")


def assign(
    obj: Json, *, addresses: Container[str], ports: Collection[int], start: int = 0
) -> list[FieldError]:
    """Give a Service the address and the ports of nodes that it needs and has not, in place.

    Args:
        addresses: those of all other Services.
        ports: the node ports of all other Services.
        start: from where to look for a free address, see `allocate`.

    Returns:
        What is wrong with an address or a port that was asked for; nothing is assigned then.
    """
    spec: Json = obj["spec"]
    errors = _asked_address(spec, addresses) + _asked_ports(spec, ports)
    if errors:
        return errors
    if needs_address(spec) and not spec.get("clusterIP"):
        spec["clusterIP"] = allocate(addresses, start=start)
        spec["clusterIPs"] = [spec["clusterIP"]]
    used = {*ports, *(port.get("nodePort", 0) for port in as_list(spec.get("ports")))}
    if _has_node_ports(spec):
        for port in as_list(spec.get("ports")):
            if not port.get("nodePort"):
                port["nodePort"] = allocate_port(used)
                used.add(port["nodePort"])
    if _has_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = allocate_port(used)
    return []


def _asked_address(spec: Json, addresses: Container[str]) -> list[FieldError]:
    address = spec.get("clusterIP")
    if not needs_address(spec) or not address:
        return []
    asked = ipaddress.ip_address(address)
    ends = {_NETWORK.network_address, _NETWORK.broadcast_address}
    if asked not in _NETWORK or asked in ends:
        why = "the provided network does not match the current range"
        why = f"failed to allocate IP {address}: {why}"
    elif address in addresses:
        why = f"failed to allocate IP {address}: provided IP is already allocated"
    else:
        return []
    return [invalid("spec.clusterIPs", spec.get("clusterIPs"), why)]


def _asked_ports(spec: Json, ports: Collection[int]) -> list[FieldError]:
    errors: list[FieldError] = []
    own: set[tuple[str, int]] = set()
    for index, port in enumerate(as_list(spec.get("ports"))):
        number: int = port.get("nodePort") or 0
        key = (port.get("protocol", ""), number)
        if not number:
            continue
        path = f"spec.ports[{index}].nodePort"
        if not _FIRST_PORT <= number <= _LAST_PORT:
            why = f"The range of valid ports is {_FIRST_PORT}-{_LAST_PORT}"
            why = f"provided port is not in the valid range. {why}"
            errors.append(invalid(path, number, why))
        elif number in ports or key in own:
            errors.append(invalid(path, number, "provided port is already allocated"))
        own.add(key)
    return errors


def _has_node_ports(spec: Json) -> bool:
    if spec.get("type") == "NodePort":
        return True
    return spec.get("type") == "LoadBalancer" and bool(
        spec.get("allocateLoadBalancerNodePorts", True)
    )


def _has_health_port(spec: Json) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def default(obj: Json) -> None:
    """Fill in all that follows from a Service's type and address."""
    default_owned(obj)
    spec: Json = obj["spec"]
    if spec["type"] != "ExternalName":
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        _default_families(spec)


def default_owned(obj: Json) -> None:
    """Fill in the defaults that the writer of a Service owns: all but the address families."""
    spec = as_dict(obj.get("spec"))
    obj["spec"] = spec
    obj["status"] = as_dict(obj.get("status"))
    obj["status"].setdefault("loadBalancer", {})
    kind = spec["type"] = spec.get("type") or "ClusterIP"
    _default_affinity(spec)
    for port in as_list(spec.get("ports")):
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in {None, 0, ""}:
            port["targetPort"] = port.get("port", 0)
    if kind == "ExternalName":
        return
    if kind in {"NodePort", "LoadBalancer"} or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True


def _default_affinity(spec: Json) -> None:
    affinity = spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = as_dict(spec.get("sessionAffinityConfig"))
        client = as_dict(config.get("clientIP"))
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _TIMEOUT}}


def _default_families(spec: Json) -> None:
    """Choose the families: one, unless others look after the endpoints of a headless Service."""
    is_free = spec.get("clusterIP") == _HEADLESS and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy")
    if not spec.get("ipFamilies"):
        is_double = is_free and policy in {None, "", "RequireDualStack", "PreferDualStack"}
        spec["ipFamilies"] = ["IPv4", "IPv6"] if is_double else ["IPv4"]
    if not policy:
        spec["ipFamilyPolicy"] = "RequireDualStack" if is_free else "SingleStack"


def prepare_create(obj: Json) -> None:
    """Take out the status, which a client cannot choose."""
    obj["status"] = {"loadBalancer": {}}


def prepare_update(new: Json, old: Json) -> None:
    """Keep what the Service was given and the client leaves out; drop what its type ends."""
    if "status" in old:
        new["status"] = copy.deepcopy(old["status"])
    spec, before = as_dict(new.get("spec")), as_dict(old.get("spec"))
    kind = spec.get("type") or "ClusterIP"
    if kind == "ExternalName":
        _drop_given(spec, before)
        return
    if before.get("type") != "ExternalName":
        _keep_address(spec, before)
    if kind in {"NodePort", "LoadBalancer"}:
        _keep_ports(spec, before)
    else:
        _drop_ports(spec, before)
    if kind == "LoadBalancer" and _has_health_port(before) and _has_health_port(spec):
        spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or before.get(
            "healthCheckNodePort"
        )


def _keep_address(spec: Json, before: Json) -> None:
    """Read a missing address as no change, and one that was changed alone as the change of both."""
    given, listed = before.get("clusterIP"), before.get("clusterIPs")
    if not spec.get("clusterIP"):
        if given:
            spec["clusterIP"] = given
        if listed and not spec.get("clusterIPs"):
            spec["clusterIPs"] = list(listed)
    elif spec["clusterIP"] != given and spec.get("clusterIPs") == listed:
        spec["clusterIPs"] = [spec["clusterIP"]]


def _drop_given(spec: Json, before: Json) -> None:
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"):
        if field in spec and spec[field] == before.get(field):
            del spec[field]
    for field in ("internalTrafficPolicy", "externalTrafficPolicy"):
        if before.get("type") != "ExternalName" and spec.get(field) == before.get(field):
            spec.pop(field, None)
    spec.pop("allocateLoadBalancerNodePorts", None)
    _drop_ports(spec, before)


def _keep_ports(spec: Json, before: Json) -> None:
    known = {_port_key(port): port.get("nodePort") for port in as_list(before.get("ports"))}
    asked = {port.get("nodePort") for port in as_list(spec.get("ports"))}
    for port in as_list(spec.get("ports")):
        number = known.get(_port_key(port))
        if number and not port.get("nodePort") and number not in asked:
            port["nodePort"] = number


def _drop_ports(spec: Json, before: Json) -> None:
    known = {port.get("nodePort") for port in as_list(before.get("ports"))}
    for port in as_list(spec.get("ports")):
        if port.get("nodePort") in known:
            port.pop("nodePort", None)
    if spec.get("type") == "ClusterIP" and not spec.get("externalIPs"):
        for field in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"):
            if spec.get(field) == before.get(field):
                spec.pop(field, None)


def _port_key(port: Json) -> tuple[str, int]:
    return (port.get("protocol") or "TCP", port.get("port", 0))

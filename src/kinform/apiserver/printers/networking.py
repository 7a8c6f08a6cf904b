"""Rows of the kinds about traffic: slices, ingresses, policies, addresses."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kinform.apiserver.printers import ages, cell_texts
from kinform.apiserver.printers.cell_texts import NONE
from kinform.apiserver.printers.core import balancers
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list, at, text

__all__ = [
    "api_service",
    "endpoint_slice",
    "ingress",
    "ingress_class",
    "ip_address",
    "network_policy",
    "service_cidr",
]

_UNSET: Final = "<unset>"


def endpoint_slice(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an EndpointSlice."""
    ports = [_slice_port(port) for port in as_list(obj.get("ports"))]
    addresses = [
        address
        for endpoint in as_list(obj.get("endpoints"))
        for address in as_list(endpoint.get("addresses"))
    ]
    return [
        obj["metadata"].get("name", ""),
        obj.get("addressType", ""),
        cell_texts.few(ports) or _UNSET,
        cell_texts.few(addresses) or _UNSET,
        ages.age_of(obj, now),
    ]


def _slice_port(port: Json) -> str:
    """Return the number of a port, else its name, which may be empty."""
    return str(port.get("port") or port.get("name") or "")


def ingress(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an Ingress."""
    spec = as_dict(obj.get("spec"))
    hosts = [rule["host"] for rule in as_list(spec.get("rules")) if rule.get("host")]
    return [
        obj["metadata"].get("name", ""),
        spec.get("ingressClassName") or NONE,
        cell_texts.few(hosts) or "*",
        ",".join(balancers(at(obj, "status", "loadBalancer", "ingress"))),
        "80, 443" if spec.get("tls") else "80",
        ages.age_of(obj, now),
    ]


def ingress_class(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an IngressClass."""
    parameters = as_dict(at(obj, "spec", "parameters"))
    shown = NONE
    if parameters:
        group = parameters.get("apiGroup")
        kind = f"{parameters.get('kind', '')}.{group}" if group else parameters.get("kind", "")
        shown = f"{kind}/{parameters.get('name', '')}"
    controller = text(obj, "spec", "controller")
    return [obj["metadata"].get("name", ""), controller, shown, ages.age_of(obj, now)]


def network_policy(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a NetworkPolicy."""
    pods = cell_texts.selector(at(obj, "spec", "podSelector"))
    return [obj["metadata"].get("name", ""), pods, ages.age_of(obj, now)]


def ip_address(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an IPAddress: an age too, for which the server has no column."""
    parent = as_dict(at(obj, "spec", "parentRef"))
    parts = [parent.get(part) for part in ("resource", "group", "namespace", "name")]
    parts[0:2] = [".".join(filter(None, parts[0:2]))]
    return [
        obj["metadata"].get("name", ""),
        "/".join(filter(None, parts)) or NONE,
        ages.age_of(obj, now),
    ]


def service_cidr(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of a ServiceCIDR."""
    ranges = ",".join(as_list(at(obj, "spec", "cidrs")))
    return [obj["metadata"].get("name", ""), ranges, ages.age_of(obj, now)]


def api_service(obj: Json, now: datetime) -> list[JsonValue]:
    """Return the cells of an APIService."""
    service = as_dict(at(obj, "spec", "service"))
    where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    state = "Unknown"
    for one in as_list(at(obj, "status", "conditions")):
        if one.get("type") == "Available":
            state = one.get("status", "")
            if state != "True":
                state = f"{state} ({one.get('reason', '')})"
    return [obj["metadata"].get("name", ""), where, state, ages.age_of(obj, now)]

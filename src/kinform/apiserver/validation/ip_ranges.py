"""Addresses and ranges of addresses, as fields of objects."""

from __future__ import annotations

import ipaddress
from typing import Final

from kinform.apiserver.scheme.field_errors import FieldError, invalid
from kinform.apiserver.validation.names import ip_address

__all__ = ["check_address", "check_range", "special_address"]

_RANGE_TEXT: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def check_address(value: str, path: str) -> list[FieldError]:
    """Validate an IP address."""
    return [invalid(path, value, problem) for problem in ip_address(value)]


def special_address(value: str, path: str) -> list[FieldError]:
    """Validate an address that others are to reach: some never can be."""
    address = ipaddress.ip_address(value)
    why = ""
    if address.is_unspecified:
        why = f"may not be unspecified ({value})"
    elif address.is_loopback:
        why = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    elif address.is_link_local:
        why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    elif address.is_multicast and address in ipaddress.ip_network("224.0.0.0/24"):
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
    return [invalid(path, value, why)] if why else []


def check_range(value: str, path: str) -> list[FieldError]:
    """Validate a range such as ``10.0.0.0/24``."""
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return [invalid(path, value, _RANGE_TEXT)]
    if "/" not in value:
        return [invalid(path, value, _RANGE_TEXT)]
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return [invalid(path, value, "must not have bits set beyond the prefix length")]
    return []

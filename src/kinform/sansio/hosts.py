"""`is_known_host`: the check of the ``Host`` header that prevents DNS rebinding.

A web page can make a browser send requests to this machine and read the responses, if the DNS name
of the page resolves to our address. The browser still sends that name as ``Host``. So a server for
unauthenticated clients only accepts hosts that no web page can own: addresses, loopback names,
names within a cluster, and configured names.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Final

__all__ = ["is_known_host"]

_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::[0-9]{0,5})?")
_CLUSTER: Final = (".svc", ".cluster.local")
"""Suffixes of the names of Services; public DNS has no such names."""


def is_known_host(header: str, *, in_cluster: bool = False, known: Collection[str] = ()) -> bool:
    """Return whether a request with this ``Host`` is accepted.

    Any address is accepted: a kubelet sends the address of the pod, and a browser sends no address
    for a page with a name. So are ``localhost`` and its subdomains. A request without ``Host``
    does not come from a browser.

    >>> is_known_host("10.1.2.3:8081"), is_known_host("localhost")
    (True, True)
    >>> is_known_host("rebound.example:8081")
    False
    >>> is_known_host("operator.prod.svc:8081", in_cluster=True)
    True
    >>> is_known_host("metrics.example", known=["metrics.example"])
    True

    Args:
        header: the value of the header, with or without a port.
        in_cluster: whether names of Services are known too (``name.namespace.svc``, or a name
            without a dot): the server listens for more than this machine.
        known: further names, without ports.
    """
    if not header:
        return True
    parts = _AUTHORITY.fullmatch(header)
    # Anything that is not an authority is refused, not repaired: a browser never sends it.
    if parts is None:
        return False
    # ``localhost.`` with its final dot is the same name in DNS.
    host = (parts[1] or parts[2]).lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost") or _is_address(host):
        return True
    if in_cluster and ("." not in host or host.endswith(_CLUSTER)):
        return not parts[1]  # brackets are only valid around an address
    return host in {name.lower() for name in known}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

"""Which ``Host`` headers a server without a login answers: a defence against DNS rebinding.

A web page can make a browser send requests to this machine and read the answers, by letting a name
of its own lead to our address. The browser still sends that name as ``Host``. So a server that
anybody may read answers only to hosts that no web page can own: addresses, loopback names, names
within a cluster, and the names that it was given.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Final

__all__ = ["is_known_host"]

_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::[0-9]{0,5})?")
_CLUSTER: Final = (".svc", ".cluster.local")
"""How the names of Services end; public DNS has no such names."""


def is_known_host(header: str, *, in_cluster: bool = False, known: Collection[str] = ()) -> bool:
    """Tell whether a request with this ``Host`` is answered.

    Any address is known: a kubelet sends the address of the pod, and no browser sends an address
    for a page of a name. So are ``localhost`` and the names below it. A request without ``Host``
    comes from no browser.

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
    if parts is None:
        return False
    host = (parts[1] or parts[2]).lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost") or _is_address(host):
        return True
    if in_cluster and ("." not in host or host.endswith(_CLUSTER)):
        return not parts[1]  # what stands in brackets must be an address
    return host in {name.lower() for name in known}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

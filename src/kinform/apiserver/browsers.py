"""What a web page may not do: a browser on this machine reaches our port, too.

A page from elsewhere can send requests here, and with a name of its own that it lets lead to
127.0.0.1 it could read the answers (DNS rebinding). Both show in headers that a page cannot forge.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

__all__ = ["refusal"]

_FOREIGN_HOST: Final = "the request is for another host; this server answers to loopback names only"
_FOREIGN_ORIGIN: Final = "the request comes from a web page of another origin"


def refusal(headers: Mapping[str, str]) -> str | None:
    """Return why a request with these headers is not answered; None: it is.

    >>> refusal({"Host": "127.0.0.1:8001"})
    >>> refusal({"Host": "rebound.example:8001"})
    'the request is for another host; this server answers to loopback names only'
    """
    host = headers.get("Host", "")
    if host and not _is_loopback(host):
        return _FOREIGN_HOST
    origin = headers.get("Origin")
    if origin is not None and origin.lower() != f"http://{host}".lower():
        return _FOREIGN_ORIGIN
    return None


def _is_loopback(host: str) -> bool:
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

"""The proxy of a server, from the kubeconfig or the environment, by Go's rules.

A ``proxy-url`` in the kubeconfig always applies. Otherwise ``HTTPS_PROXY`` (``HTTP_PROXY`` for an
``http://`` server) applies unless ``NO_PROXY`` exempts the server. Proxy URLs may hold passwords:
no message, ``repr()`` or exception of this module quotes one.

An ``https://`` server is reached through a tunnel, so the proxy reads no header. Without TLS the
proxy reads every request, so credentials go only through a proxy on this machine.
"""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from kinform.errors import ConfigError
from kinform.rest.config import Config

__all__ = ["Proxy", "bypasses", "has_credentials", "is_loopback", "proxy_for"]

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_EXAMPLE: Final = "'http://proxy.example:3128'"
_READS: Final = (
    "names a proxy on another machine, which would read the credentials: without TLS there is no"
    " tunnel; use an https:// server, a proxy on this machine, or no proxy"
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """A forward proxy; ``repr()`` shows no credentials."""

    url: str
    """``http://host:port`` or ``https://host:port``, without credentials."""
    authorization: str | None = field(default=None, repr=False)
    """The ``Proxy-Authorization`` header, sent to the proxy only; ``None``: none."""


def proxy_for(config: Config, *, environ: Mapping[str, str] | None = None) -> Proxy | None:
    """Return the proxy through which ``config.server`` is reached; ``None``: directly.

    Args:
        config: the server, and its configured proxy.
        environ: replaces the process's environment.

    Raises:
        ConfigError: if the proxy is not an http or https proxy (SOCKS is not supported), or if it
            is on another machine and would read the credentials; names the key or the variable.
    """
    # The kubeconfig's proxy is not subject to NO_PROXY: in client-go it replaces the environment as
    # a whole.
    if config.proxy_url:
        proxy = _parse(config.proxy_url)
        if isinstance(proxy, str):
            raise config.error("proxy_url", proxy)
        if _reads_credentials(proxy, config):
            raise config.error("proxy_url", _READS)
        return proxy
    environ = os.environ if environ is None else environ
    server = urlsplit(config.server)
    name, value = _variable(environ, f"{server.scheme.upper()}_PROXY")
    if not value:
        return None
    port = server.port or _DEFAULT_PORTS.get(server.scheme, 0)
    if bypasses(_variable(environ, "NO_PROXY")[1], server.hostname or "", port=port):
        return None
    if name.lower() == "http_proxy" and environ.get("REQUEST_METHOD"):
        # In a CGI program an unauthenticated client can set that variable by a ``Proxy:`` header.
        message = "cannot be trusted in a CGI program; unset it, or give a proxy-url"
        raise ConfigError(message, source="environment", key=name)
    proxy = _parse(value)
    if isinstance(proxy, str):
        raise ConfigError(proxy, source="environment", key=name)
    if _reads_credentials(proxy, config):
        raise ConfigError(_READS, source="environment", key=name)
    return proxy


def has_credentials(config: Config) -> bool:
    """Return whether requests carry a secret in a header: a token, a password, a plugin's token.

    A client certificate does not count: it needs TLS, and its key is never sent. Impersonation
    headers alone hold no secret.
    """
    has_token = bool(config.token or config.token_file)
    return has_token or bool(config.username or config.password) or config.exec_plugin is not None


def is_loopback(host: str) -> bool:
    """Return whether ``host`` (a name, or an address without brackets) is this machine.

    Names below ``localhost`` are loopback by RFC 6761; `kinform.rest.transport._sockets.Lookups`
    never resolves them by a name server.
    """
    host = host.lower()
    address = _address(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _reads_credentials(proxy: Proxy, config: Config) -> bool:
    """Return whether ``proxy`` is another machine that would read the credentials."""
    if config.is_tls or not has_credentials(config):
        return False
    return not is_loopback(urlsplit(proxy.url).hostname or "")


def bypasses(no_proxy: str, host: str, *, port: int) -> bool:
    """Return whether ``host`` is reached directly under this ``NO_PROXY``.

    Entries, separated by commas: ``*``; an address; a range like ``10.0.0.0/8``; a name, which
    includes its subdomains; ``.name`` or ``*.name`` for the subdomains only. Each but ``*`` and
    ranges may end in ``:port``. Loopback (see `is_loopback`) is never proxied. An invalid entry
    matches nothing.

    >>> bypasses("10.0.0.0/8,.example.com", "10.1.2.3", port=6443)
    True
    >>> bypasses("10.0.0.0/8,.example.com", "example.com", port=443)
    False
    """
    host = _ascii(host.strip().lower())
    address = _address(host)
    if is_loopback(host):
        return True
    for entry in (entry.strip().lower() for entry in no_proxy.split(",")):
        name, wanted_port = _split_port(entry)
        if entry == "*" or (address is not None and _covers(entry, address)):
            return True
        if wanted_port in {"", str(port)} and _names(name, host, address=address):
            return True
    return False


def _names(name: str, host: str, *, address: _Address | None) -> bool:
    """Return whether an entry without its port matches the server (Go: httpproxy ``init``)."""
    if (wanted := _address(name)) is not None:
        return wanted == address
    name = _ascii(name[1:] if name.startswith("*.") else name)
    if not name.strip("."):
        return False
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    """Split ``host:port``; an IPv6 address has a port only in the form ``[::1]:443``."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""


def _covers(entry: str, address: _Address) -> bool:
    """Return whether ``entry`` is a range that includes ``address``."""
    network, _, length = entry.partition("/")
    # ipaddress also accepts a netmask here, Go does not; one NO_PROXY must mean the same to both.
    if not (length.isascii() and length.isdigit()):
        return False
    try:
        return address in ipaddress.ip_network(f"{network}/{length}", strict=False)
    except ValueError:
        return False


def _address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # ``::ffff:127.0.0.1`` is loopback too. Compared as it is, it would pass for another machine.
    return getattr(address, "ipv4_mapped", None) or address


def _ascii(name: str) -> str:
    """Return ``name`` in its DNS form; a name without one is returned as it is."""
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


def _variable(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the name and value of a variable, in upper or lower case."""
    # Capitals first, as Go does.
    for spelling in (name, name.lower()):
        if environ.get(spelling):
            return spelling, environ[spelling]
    return name, ""


def _parse(text: str) -> Proxy | str:
    """Return the proxy in ``text``, or an error message that does not quote it."""
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:  # its message may hold the password; it ends here
        return f"is not a proxy URL like {_EXAMPLE}"
    if parts.scheme.startswith("socks"):
        return (
            "names a SOCKS proxy, which is not supported;"
            f" give an http or https proxy like {_EXAMPLE}, or remove it"
        )
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return f"is not a proxy URL like {_EXAMPLE}"
    name = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{name}" + (f":{port}" if port is not None else "")
    return Proxy(url, _authorization(parts))


def _authorization(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode("ascii")

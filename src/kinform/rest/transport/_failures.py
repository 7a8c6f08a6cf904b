"""Explanations of network failures: exceptions of sockets and TLS become a `Failure`.

Pure functions over the standard library's exceptions, not those of an HTTP library. Each message
says what happened, where (``host:port``), and how to fix it. None holds a header, a credential or
a byte of a body.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from kinform.errors import TransportFailure

__all__ = ["Failure", "Peer", "ServerRoute"]

# X509_V_ERR_* of OpenSSL
# By number, because the ssl module has no names for them and OpenSSL's texts change.
_EXPIRED, _NOT_YET_VALID = 10, 9
_MISMATCHES: Final = frozenset({62, 63, 64})  # host name, email, IP address
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21, 27})

_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})

_NOT_TLS: Final = frozenset(
    {
        # Several reasons for one mistake: which one OpenSSL reports depends on its version and on
        # the bytes that the server sends.
        "HTTP_REQUEST",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
        "UNKNOWN_PROTOCOL",
        "WRONG_VERSION_NUMBER",
    }
)
_OUR_CERTIFICATE: Final = (
    "ACCESS_DENIED",
    "BAD_CERTIFICATE",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REQUIRED",
    "CERTIFICATE_REVOKED",
    "CERTIFICATE_UNKNOWN",
    "UNKNOWN_CA",
)


class Failure(NamedTuple):
    """The kind and the message of a `kinform.errors.TransportError`."""

    kind: TransportFailure
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The remote end of a connection: the server, or the proxy in front of it."""

    host: str
    port: int | None
    role: str = ""
    """``proxy``, or nothing for the server itself."""
    certificate_name: str | None = None
    """The name its certificate must carry, if not the host."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        address = host if self.port is None else f"{host}:{self.port}"
        return f"{self.role} {address}" if self.role else address


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRoute:
    """The route to a server. Its methods explain failures on it."""

    server: Peer
    proxy: Peer | None
    tls: bool
    """True if the connection to the server uses TLS."""

    def refused(self, exc: BaseException, *, host: str, port: int | None) -> Failure:
        """Explain why no connection to ``host`` was made; nothing has been sent.

        A proxy that cannot be reached counts as `TransportFailure.PROXY`, unless its name or
        its certificate is what is wrong.
        """
        if self.proxy is None or (self.proxy.host, self.proxy.port) != (host, port):
            return _of_connect(exc, self.server, tls=self.tls)
        kind, message = _of_connect(exc, self.proxy, tls=False)
        if kind not in {TransportFailure.DNS, TransportFailure.TLS}:
            kind = TransportFailure.PROXY
        return Failure(kind, message)

    def not_connected_within(self, limit: float) -> Failure:
        """Explain that there was no connection in time."""
        via = f" through {self.proxy}" if self.proxy else ""
        return Failure(
            TransportFailure.CONNECT_TIMEOUT,
            f"no connection to {self.server}{via} within {limit:g} s",
        )

    def no_tunnel(self, status: int | None) -> Failure:
        """Explain that the proxy answered ``status`` instead of connecting (``None``: left)."""
        if status is None:
            message = f"{self.proxy} broke off instead of connecting to {self.server}"
        elif status == 407:
            message = f"{self.proxy} wants a user name and password (407): add them to proxy-url"
        else:
            message = f"{self.proxy} would not connect to {self.server}: it answered {status}"
        return Failure(TransportFailure.PROXY, message)

    def silent_for(self, limit: float, *, answered: bool) -> Failure:
        """Explain that the server sent nothing (more) for too long."""
        what = "nothing more" if answered else "no answer"
        return Failure(TransportFailure.TIMEOUT, f"{what} from {self.server} within {limit:g} s")

    def lost(self, exc: BaseException | None, *, answered: bool) -> Failure:
        """Explain a connection that ended too early: before the response, or within it.

        ``exc`` is the system's error; ``None``: the server closed the connection cleanly.
        """
        # First: an answer that was cut off is what the caller must handle, for any error of the
        # system.
        if answered:
            return Failure(TransportFailure.TRUNCATED, f"the answer of {self.server} broke off")
        if isinstance(exc, ssl.SSLError):
            return _of_tls(exc, self.server)
        if exc is None:
            message = f"{self.server} closed the connection without an answer"
        elif isinstance(exc, ConnectionResetError | BrokenPipeError):
            message = f"{self.server} reset the connection without an answer"
        else:
            message = f"the connection to {self.server} broke before an answer: {_said(exc)}"
        return Failure(TransportFailure.RESET, message)

    def not_http(self) -> Failure:
        """Explain a response that is not HTTP."""
        hint = "" if self.tls else ": does the port want https://?"
        return Failure(TransportFailure.PROTOCOL, f"what {self.server} answered is not HTTP{hint}")

    def header_over(self, limit: int) -> Failure:
        """Explain that a header exceeded our limit."""
        return Failure(
            TransportFailure.PROTOCOL,
            f"{self.server} answered with a header of more than {limit // 1024} KiB",
        )

    def redirected(self, status: int, location: str | None) -> Failure:
        """Explain a redirect; names the target's origin, no more of it."""
        return Failure(
            TransportFailure.REDIRECT,
            f"{self.server} redirects{_origin(location)} ({status}): kinform never follows a "
            "redirect, give the final address of the server",
        )


def _of_connect(exc: BaseException, peer: Peer, *, tls: bool) -> Failure:
    match exc:
        case socket.gaierror():
            said = (exc.strerror or "unknown").lower()
            message = f"no address for {peer} ({said}): check the host's name"
            return Failure(TransportFailure.DNS, message)
        case ssl.SSLCertVerificationError():
            return _of_certificate(exc, peer)
        case ssl.SSLError():
            return _of_tls(exc, peer)
        case ConnectionRefusedError():
            return Failure(TransportFailure.REFUSED, f"{peer} refused the connection")
        # After the cases for a refused connection: a reset while TLS is negotiated is what a port
        # without TLS, or one that wants a client certificate, does.
        case ConnectionError() if tls:
            message = f"{peer} closed the connection during the TLS handshake"
            return Failure(TransportFailure.TLS, message)
        case OSError(errno=number) if number in _UNREACHABLE:
            return Failure(TransportFailure.CONNECT, f"{peer} is unreachable: {_said(exc)}")
        case _:
            return Failure(TransportFailure.CONNECT, f"cannot connect to {peer}: {_said(exc)}")


def _of_certificate(exc: ssl.SSLCertVerificationError, peer: Peer) -> Failure:
    """Explain why the peer's certificate is refused, and name the setting to change."""
    code: int = getattr(exc, "verify_code", 0)
    if code == _EXPIRED:
        why = "has expired: renew it, or check this machine's clock"
    elif code == _NOT_YET_VALID:
        why = "is not valid yet: check this machine's clock"
    elif code in _MISMATCHES:
        why = (
            f"is not for {peer.certificate_name or peer.host!r}: "
            "connect to a name it carries, or set tls-server-name to one"
        )
    elif code in _UNKNOWN_AUTHORITY:
        why = "is signed by an unknown authority: set certificate-authority to the right one"
    else:
        why = f"is not accepted: {getattr(exc, 'verify_message', '') or _said(exc)}"
    return Failure(TransportFailure.TLS, f"the certificate of {peer} {why}")


def _of_tls(exc: ssl.SSLError, peer: Peer) -> Failure:
    reason = exc.reason or ""
    words = reason.replace("_", " ").lower()
    if reason in _NOT_TLS:
        message = f"{peer} does not speak TLS: is it a port for http://?"
    elif "ALERT" in reason and reason.endswith(_OUR_CERTIFICATE):
        message = f"{peer} wants another client-certificate from us ({words})"
    else:
        message = f"TLS with {peer} failed: {words or _said(exc)}"
    return Failure(TransportFailure.TLS, message)


def _origin(location: str | None) -> str:
    try:
        parts = urlsplit(location or "")
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return " to another path" if parts.path else ""
    origin = f"{parts.scheme}://" if parts.scheme else ""
    origin += f"[{host}]" if ":" in host else host
    origin += "" if port is None else f":{port}"
    return f" to {origin!a}"  # the server's text: it may hold anything


def _said(exc: BaseException) -> str:
    """Return the system's text for an error number, else the exception's own, else its class."""
    number = getattr(exc, "errno", None)
    if isinstance(number, int) and number in errno.errorcode:
        return f"{os.strerror(number).lower()} ({errno.errorcode[number]})"
    text = getattr(exc, "strerror", None)
    return text.lower() if isinstance(text, str) and text else type(exc).__name__

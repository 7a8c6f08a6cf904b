"""The words for failures that a loopback socket cannot be made to produce."""

from __future__ import annotations

import errno
import ssl

import pytest

from kinform.errors import TransportFailure
from kinform.rest.transport._failures import Failure, Peer, ServerRoute

ROUTE = ServerRoute(server=Peer(host="api.example", port=6443), proxy=None, tls=True)


def connect_failure(exc: Exception) -> Failure:
    return ROUTE.refused(exc, host="api.example", port=6443)


def certificate_error(code: int, message: str = "") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    error.verify_message = message
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    "exc, kind, message",
    [
        (
            OSError(errno.EHOSTUNREACH, "x"),
            TransportFailure.CONNECT,
            "api.example:6443 is unreachable: no route to host (EHOSTUNREACH)",
        ),
        (
            OSError(errno.EMFILE, "x"),
            TransportFailure.CONNECT,
            "cannot connect to api.example:6443: too many open files (EMFILE)",
        ),
        (
            OSError("Multiple exceptions"),
            TransportFailure.CONNECT,
            "cannot connect to api.example:6443: OSError",
        ),
        (
            certificate_error(9),
            TransportFailure.TLS,
            "the certificate of api.example:6443 is not valid yet: check this machine's clock",
        ),
        (
            certificate_error(23, "certificate revoked"),
            TransportFailure.TLS,
            "the certificate of api.example:6443 is not accepted: certificate revoked",
        ),
        (
            tls_error("NO_PROTOCOLS_AVAILABLE"),
            TransportFailure.TLS,
            "TLS with api.example:6443 failed: no protocols available",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_reason_is_told(exc: Exception, kind: TransportFailure, message: str) -> None:
    assert connect_failure(exc) == (kind, message)


def test_connection_that_breaks_for_another_reason_tells_it() -> None:
    kind, message = ROUTE.lost(TimeoutError(errno.ETIMEDOUT, "x"), answered=False)
    assert kind is TransportFailure.RESET
    assert message.endswith("broke before an answer: connection timed out (ETIMEDOUT)")


@pytest.mark.parametrize(
    "peer, text",
    [
        (Peer(host="::1", port=443), "[::1]:443"),
        (Peer(host="api", port=None), "api"),
        (Peer(host="p", port=3128, role="proxy"), "proxy p:3128"),
    ],
)
def test_peer_is_named_by_its_address(peer: Peer, text: str) -> None:
    assert str(peer) == text

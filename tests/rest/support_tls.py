"""TLS handshakes in memory: what a context accepts, without a socket."""

from __future__ import annotations

import contextlib
import ssl

from cryptography import x509
from cryptography.x509.oid import NameOID

__all__ = ["handshake"]


def handshake(
    client: ssl.SSLContext, server: ssl.SSLContext, *, hostname: str = "localhost"
) -> str | None:
    """Shake hands and return the common name the client showed, ``None`` if none.

    Raises:
        ssl.SSLError: if either side refuses the other.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=hostname)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    theirs.write(b"x")
    assert ours.read(1) == b"x"
    shown = theirs.getpeercert(binary_form=True)
    if shown is None:
        return None
    (name,) = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(
        NameOID.COMMON_NAME
    )
    return str(name.value)

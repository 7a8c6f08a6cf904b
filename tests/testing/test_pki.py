"""The certificates work in a real TLS handshake and say what Kubernetes reads."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kinform.testing.controlplane import _pki


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, *, name: str
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Run a TLS handshake in memory; return both ends."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=name)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for end in (near, far):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return near, far


def contexts(
    authority: _pki.CertificateAuthority, folder: Path, *, trusts: _pki.CertificateAuthority
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a server's context, and that of a client who trusts another authority, maybe."""
    pairs = {"server": authority.server("s"), "client": authority.client("reader", ["a", "b"])}
    for name, pair in pairs.items():
        (folder / f"{name}.pem").write_bytes(pair.cert_pem + pair.key_pem)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.cert_pem.decode())
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(folder / "server.pem")
    client = ssl.create_default_context(cadata=trusts.cert_pem.decode())
    client.load_cert_chain(folder / "client.pem")
    return server, client


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_server_and_client_trust_each_other(tmp_path: Path, name: str) -> None:
    authority = _pki.CertificateAuthority()
    server, client = contexts(authority, tmp_path, trusts=authority)
    near, far = shake_hands(server, client, name=name)
    assert near.getpeercert()
    assert far.getpeercert()


def test_another_host_name_is_refused(tmp_path: Path) -> None:
    authority = _pki.CertificateAuthority()
    server, client = contexts(authority, tmp_path, trusts=authority)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(server, client, name="example.com")


def test_another_authority_is_not_trusted(tmp_path: Path) -> None:
    server, client = contexts(
        _pki.CertificateAuthority(), tmp_path, trusts=_pki.CertificateAuthority()
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, client, name="localhost")


def test_a_client_certificate_names_the_user_and_its_groups() -> None:
    pair = _pki.CertificateAuthority().client("reader", ["developers", "testers"])
    subject = x509.load_pem_x509_certificate(pair.cert_pem).subject
    groups = [part.value for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    (user,) = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert (user.value, groups) == ("reader", ["developers", "testers"])


def test_no_repr_shows_a_private_key() -> None:
    pair = _pki.CertificateAuthority().client("reader")
    assert b"PRIVATE KEY" in pair.key_pem
    assert "PRIVATE" not in repr(pair)


def test_a_peer_is_a_server_and_a_client(tmp_path: Path) -> None:
    authority = _pki.CertificateAuthority()
    server, client = contexts(authority, tmp_path, trusts=authority)
    pair = authority.peer("etcd")
    (tmp_path / "peer.pem").write_bytes(pair.cert_pem + pair.key_pem)
    server.load_cert_chain(tmp_path / "peer.pem")
    client.load_cert_chain(tmp_path / "peer.pem")
    near, far = shake_hands(server, client, name="127.0.0.1")
    assert near.getpeercert()
    assert far.getpeercert()

"""TLS contexts: whom they trust, what they show, and when they are made anew."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import stat
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kinform.errors import ConfigError
from kinform.rest.config import Config, Origin, TlsConfig
from kinform.rest.transport import tls
from kinform.rest.transport.tls import ClientCertificate, TlsSource
from kinform.testing import in_virtual_time, virtual_clock
from tests.rest.support_tls import handshake
from tests.support.certs import Authority, Pair

ORIGIN = Origin(
    cluster_source="/kube/config",
    cluster_key="clusters[dev].cluster",
    user_source="/kube/users",
    user_key="users[dev].user",
)
AUTHORITY = Authority()
OTHER = Authority("another CA")
SERVER = AUTHORITY.issue("localhost", "127.0.0.1").server_context()
ALICE = AUTHORITY.issue(common_name="alice")
BOB = AUTHORITY.issue(common_name="bob")


def config(**settings: object) -> Config:
    settings_of_tls = TlsConfig(**settings)  # type: ignore[arg-type]
    return Config(server="https://localhost:6443", tls=settings_of_tls, origin=ORIGIN)


async def context_of(**settings: object) -> ssl.SSLContext:
    context = await TlsSource(config(**settings)).context()
    assert context is not None
    return context


async def shown(source: TlsSource) -> str | None:
    """Return the common name of the certificate that a server sees."""
    context = await source.context()
    assert context is not None
    server = AUTHORITY.issue("localhost").server_context(client_ca=AUTHORITY.certificate)
    return handshake(context, server)


def combined(pair: Pair) -> ClientCertificate:
    return ClientCertificate(pair.certificate, pair.key)


# --- whom it trusts ---------------------------------------------------------------------------


@in_virtual_time
async def test_a_server_without_tls_has_no_context() -> None:
    assert await TlsSource(Config(server="http://localhost:8001")).context() is None


@in_virtual_time
async def test_the_given_ca_is_the_only_one_trusted() -> None:
    context = await context_of(ca_data=AUTHORITY.certificate)
    assert len(context.get_ca_certs()) == 1
    assert handshake(context, SERVER) is None
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        handshake(context, OTHER.issue("localhost").server_context())


@in_virtual_time
async def test_without_a_ca_the_systems_are_trusted_and_ours_is_not() -> None:
    context = await context_of()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, SERVER)


@in_virtual_time
async def test_tls_is_at_least_1_2() -> None:
    context = await context_of(ca_data=AUTHORITY.certificate)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@in_virtual_time
async def test_a_server_cannot_renegotiate() -> None:
    """With TLS 1.2 a server could make a client repeat the handshake without end."""
    for context in (await context_of(ca_data=AUTHORITY.certificate), await context_of()):
        assert context.options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.parametrize(
    "tls, key",
    [
        (TlsConfig(ca_data=b""), "tls.ca_data"),
        (TlsConfig(ca_data=b" \n"), "tls.ca_data"),
        (TlsConfig(ca_data=b"", ca_file="/ca.crt"), "tls.ca_data"),
        (TlsConfig(ca_file=""), "tls.ca_file"),
    ],
)
@in_virtual_time
async def test_an_empty_ca_is_an_error_and_not_the_systems(tls: TlsConfig, key: str) -> None:
    with pytest.raises(ConfigError, match="is empty, which would trust") as caught:
        await TlsSource(Config(server="https://localhost", tls=tls)).context()
    assert caught.value.key == key


@in_virtual_time
async def test_the_host_name_is_checked() -> None:
    context = await context_of(ca_data=AUTHORITY.certificate)
    assert handshake(context, SERVER, hostname="127.0.0.1") is None
    for wrong in ["example.com", "127.0.0.2"]:
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            handshake(context, SERVER, hostname=wrong)


@in_virtual_time
async def test_a_common_name_is_not_enough() -> None:
    """As Go: only subject alternative names count."""
    context = await context_of(ca_data=AUTHORITY.certificate)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, AUTHORITY.issue(common_name="localhost").server_context())


@in_virtual_time
async def test_an_expired_certificate_is_refused() -> None:
    context = await context_of(ca_data=AUTHORITY.certificate)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(context, AUTHORITY.issue("localhost", expired=True).server_context())


@in_virtual_time
async def test_a_servers_own_certificate_can_be_the_ca() -> None:
    """As Go, and unlike OpenSSL by default: what is in the pool is trusted, root or not."""
    pair = AUTHORITY.issue("localhost")
    context = await context_of(ca_data=pair.certificate)
    assert handshake(context, pair.server_context()) is None


@in_virtual_time
async def test_a_bundle_may_hold_several_certificates_and_any_comment() -> None:
    bundle = (
        "# Größe\n".encode("latin-1") + OTHER.certificate + b"\nnotes\n" + AUTHORITY.certificate
    )
    context = await context_of(ca_data=bundle)
    assert len(context.get_ca_certs()) == 2
    assert handshake(context, SERVER) is None


@in_virtual_time
async def test_verification_can_be_switched_off_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = await context_of(insecure_skip_verify=True)
    assert handshake(context, SERVER, hostname="any.example") is None
    assert [record.message for record in caplog.records] == [
        "the server's certificate is not verified"
    ]


def test_the_name_to_verify_is_explicit() -> None:
    assert TlsSource(config()).server_hostname is None
    assert TlsSource(config(server_name="kubernetes")).server_hostname == "kubernetes"


# --- what it shows ----------------------------------------------------------------------------


@in_virtual_time
async def test_a_client_certificate_from_data() -> None:
    source = TlsSource(
        config(ca_data=AUTHORITY.certificate, cert_data=ALICE.certificate, key_data=ALICE.key)
    )
    assert await shown(source) == "alice"


@in_virtual_time
async def test_a_client_certificate_from_files(tmp_path: Path) -> None:
    cert, key = ALICE.write(tmp_path)
    source = TlsSource(
        config(ca_data=AUTHORITY.certificate, cert_file=str(cert), key_file=str(key))
    )
    assert await shown(source) == "alice"


@in_virtual_time
async def test_certificate_and_key_may_share_a_file(tmp_path: Path) -> None:
    """As the kubelet writes it."""
    both = tmp_path / "both.pem"
    both.write_bytes(ALICE.key + ALICE.certificate)
    source = TlsSource(
        config(ca_data=AUTHORITY.certificate, cert_file=str(both), key_file=str(both))
    )
    assert await shown(source) == "alice"


@in_virtual_time
async def test_a_plugins_certificate_takes_the_place_of_the_configured_one() -> None:
    source = TlsSource(
        config(ca_data=AUTHORITY.certificate, cert_data=ALICE.certificate, key_data=ALICE.key)
    )
    configured = await source.context()
    source.use_certificate(combined(BOB))
    assert await shown(source) == "bob"
    replaced = await source.context()
    assert replaced is not configured
    source.use_certificate(combined(BOB))
    assert await source.context() is replaced
    source.use_certificate(None)
    assert await shown(source) == "alice"


@in_virtual_time
async def test_key_material_is_not_written_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # what the variable said at first use
    os.utime(tmp_path, (0, 0))
    await context_of(cert_data=ALICE.certificate, key_data=ALICE.key)
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.stat().st_mtime == 0  # nothing was created and removed, either


def test_where_there_is_no_memory_file_a_private_one_lives_for_a_moment() -> None:
    with tls.private_path(b"secret") as name:
        path = Path(name)
        assert path.read_bytes() == b"secret"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


def test_a_certificate_shows_nothing_of_itself() -> None:
    assert repr(combined(ALICE)) == "ClientCertificate()"


# --- what cannot be loaded --------------------------------------------------------------------

LOCKED = AUTHORITY.issue(common_name="locked", password=b"pw")


def traditional(pair: Pair) -> bytes:
    """Return the key in OpenSSL's old encrypted form."""
    key = serialization.load_pem_private_key(pair.key, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"pw"),
    )


def broken(pem: bytes) -> bytes:
    head, *lines = pem.splitlines()
    return b"\n".join([head, b"AAAA" + lines[0][4:], *lines[1:]])


@pytest.mark.parametrize(
    "settings, key, says",
    [
        pytest.param(
            {"cert_data": ALICE.certificate},
            "users[dev].user.client-key",
            "is not set, but a client certificate is",
            id="certificate-without-key",
        ),
        pytest.param(
            {"key_data": ALICE.key},
            "users[dev].user.client-certificate",
            "is not set, but a client key is",
            id="key-without-certificate",
        ),
        pytest.param(
            {"ca_data": b"x", "insecure_skip_verify": True},
            "clusters[dev].cluster.insecure-skip-tls-verify",
            "cannot be combined",
            id="ca-and-insecure",
        ),
        pytest.param(
            {"cert_data": LOCKED.certificate, "key_data": LOCKED.key},
            "users[dev].user.client-key-data",
            "is encrypted, and kinform never asks for a password",
            id="encrypted-key",
        ),
        pytest.param(
            {"cert_data": ALICE.certificate, "key_data": traditional(ALICE)},
            "users[dev].user.client-key-data",
            "is encrypted",
            id="encrypted-key-of-the-old-form",
        ),
        pytest.param(
            {"cert_data": ALICE.certificate, "key_data": BOB.key},
            "users[dev].user.client-key-data",
            "does not belong to the client certificate",
            id="anothers-key",
        ),
        pytest.param(
            {"cert_data": ALICE.certificate, "key_data": b"nonsense"},
            "users[dev].user.client-key-data",
            "holds no PEM private key",
            id="no-key",
        ),
        pytest.param(
            {"cert_data": b"nonsense", "key_data": ALICE.key},
            "users[dev].user.client-certificate-data",
            "holds no PEM certificate",
            id="no-certificate",
        ),
        pytest.param(
            {"cert_data": broken(ALICE.certificate), "key_data": ALICE.key},
            "users[dev].user.client-certificate-data",
            "cannot be used with its key",
            id="broken-certificate",
        ),
        pytest.param(
            {"ca_data": b"nonsense"},
            "clusters[dev].cluster.certificate-authority-data",
            "holds no PEM certificate",
            id="no-ca",
        ),
        pytest.param(
            {"ca_data": broken(AUTHORITY.certificate)},
            "clusters[dev].cluster.certificate-authority-data",
            "holds a certificate that is broken",
            id="broken-ca",
        ),
        pytest.param(
            {"ca_file": "/nowhere/ca.crt"},
            "clusters[dev].cluster.certificate-authority",
            "cannot read '/nowhere/ca.crt': no such file or directory",
            id="missing-ca",
        ),
        pytest.param(
            {"ca_file": "/dev/zero"},
            "clusters[dev].cluster.certificate-authority",
            "cannot read '/dev/zero': not a regular file",
            id="device",
        ),
        pytest.param(
            {"cert_file": "/nowhere/a.crt", "key_data": ALICE.key},
            "users[dev].user.client-certificate",
            "cannot read '/nowhere/a.crt'",
            id="missing-certificate",
        ),
        pytest.param(
            {"cert_data": ALICE.certificate, "key_file": "/"},
            "users[dev].user.client-key",
            "cannot read '/': is a directory",
            id="key-is-a-folder",
        ),
    ],
)
@in_virtual_time
async def test_the_first_load_names_file_and_key(
    settings: dict[str, object], key: str, says: str
) -> None:
    source = TlsSource(config(**settings))
    with pytest.raises(ConfigError):
        await source.context()
    with pytest.raises(ConfigError) as caught:  # and it does so again
        await source.context()
    of_user = key.startswith("users")
    assert caught.value.source == (ORIGIN.user_source if of_user else ORIGIN.cluster_source)
    assert caught.value.key == key
    assert says in caught.value.message


@in_virtual_time
async def test_a_config_from_code_is_blamed_by_its_own_names() -> None:
    source = TlsSource(replace(config(ca_file="/nowhere"), origin=None, source="Config"))
    with pytest.raises(ConfigError, match=r"^Config: tls\.ca_file: cannot read '/nowhere'"):
        await source.context()


@in_virtual_time
async def test_an_empty_ca_file_does_not_fall_back_to_the_systems(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.touch()
    with pytest.raises(ConfigError, match=r"ca\.crt' holds no PEM certificate"):
        await context_of(ca_file=str(path))


@in_virtual_time
async def test_a_plugins_bad_certificate_is_blamed_on_the_plugin() -> None:
    source = TlsSource(config(ca_data=AUTHORITY.certificate))
    source.use_certificate(ClientCertificate(ALICE.certificate, BOB.key))
    with pytest.raises(ConfigError, match=r"users\[dev\]\.user\.exec\.command: does not belong"):
        await source.context()


# --- files change -----------------------------------------------------------------------------


@in_virtual_time
async def test_a_changed_ca_file_makes_a_new_context_within_a_minute(tmp_path: Path) -> None:
    """CG-H12, F-R32 (client-go: TestCheckCAFileAndRotate)."""
    path = tmp_path / "ca.crt"
    path.write_bytes(OTHER.certificate)
    source = TlsSource(config(ca_file=str(path)))
    before = await source.context()
    path.write_bytes(AUTHORITY.certificate)
    await asyncio.sleep(59)
    assert await source.context() is before
    await asyncio.sleep(1)
    after = await source.context()
    assert after is not before
    assert after is not None
    assert handshake(after, SERVER) is None


@in_virtual_time
async def test_unchanged_files_keep_the_context(tmp_path: Path) -> None:
    """CG-H12: also if a file is written again with the same contents."""
    path = tmp_path / "ca.crt"
    path.write_bytes(AUTHORITY.certificate)
    source = TlsSource(config(ca_file=str(path)))
    before = await source.context()
    for _ in range(3):
        await asyncio.sleep(60)
        assert await source.context() is before
        path.unlink()
        path.write_bytes(AUTHORITY.certificate)
    source.invalidate()
    assert await source.context() is before


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def spoilt(path: Path) -> None:
    path.write_bytes(broken(AUTHORITY.certificate))


def turned_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [emptied, spoilt, Path.unlink, turned_into_a_folder])
@in_virtual_time
async def test_a_ca_file_that_cannot_be_loaded_keeps_the_old_context(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None]
) -> None:
    """CG-H12 (client-go: TestEmptyCAFileRotationLifecycle): warned once, and cured later."""
    path = tmp_path / "ca.crt"
    path.write_bytes(OTHER.certificate)
    source = TlsSource(config(ca_file=str(path)))
    before = await source.context()
    harm(path)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await asyncio.sleep(60)
            assert await source.context() is before
    assert len(caplog.records) == 1
    assert "the old ones stay in use" in caplog.text
    if path.is_dir():
        path.rmdir()
    path.write_bytes(AUTHORITY.certificate)
    await asyncio.sleep(60)
    assert await source.context() is not before


@in_virtual_time
async def test_after_a_failed_verification_files_are_read_at_once(tmp_path: Path) -> None:
    """Regardless of their dates: size and time of the file are those of the old one."""
    path = tmp_path / "ca.crt"
    path.write_bytes(OTHER.certificate.ljust(2000))
    source = TlsSource(config(ca_file=str(path)))
    before, times = await source.context(), path.stat()
    path.write_bytes(AUTHORITY.certificate.ljust(2000))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert await source.context() is before
    source.invalidate()
    assert await source.context() is not before


@in_virtual_time
async def test_time_asleep_counts(tmp_path: Path) -> None:
    """F-R33."""
    path = tmp_path / "ca.crt"
    path.write_bytes(OTHER.certificate)
    source = TlsSource(config(ca_file=str(path)))
    before = await source.context()
    path.write_bytes(AUTHORITY.certificate)
    virtual_clock().suspend(3600)
    assert await source.context() is not before


@in_virtual_time
async def test_the_swap_of_a_mounted_secret_is_seen(tmp_path: Path) -> None:
    for name, pair in [("..1", ALICE), ("..2", BOB)]:
        (tmp_path / name).mkdir()
        pair.write(tmp_path / name)
    (tmp_path / "..data").symlink_to("..1")
    for name in ["tls.crt", "tls.key"]:
        (tmp_path / name).symlink_to(f"..data/{name}")
    files = {"cert_file": str(tmp_path / "tls.crt"), "key_file": str(tmp_path / "tls.key")}
    source = TlsSource(config(ca_data=AUTHORITY.certificate, **files))
    assert await shown(source) == "alice"
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    await asyncio.sleep(60)
    assert await shown(source) == "bob"


@in_virtual_time
async def test_a_half_changed_pair_keeps_the_old_one(tmp_path: Path) -> None:
    cert, key = ALICE.write(tmp_path)
    files = {"cert_file": str(cert), "key_file": str(key)}
    source = TlsSource(config(ca_data=AUTHORITY.certificate, **files))
    assert await shown(source) == "alice"
    cert.write_bytes(BOB.certificate)
    await asyncio.sleep(60)
    assert await shown(source) == "alice"
    key.write_bytes(BOB.key)
    await asyncio.sleep(60)
    assert await shown(source) == "bob"


# --- many at once -----------------------------------------------------------------------------


@in_virtual_time
async def test_all_who_ask_at_once_get_the_same_context() -> None:
    source = TlsSource(config(ca_data=AUTHORITY.certificate))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(source.context()) for _ in range(10)]
    assert len({id(task.result()) for task in tasks}) == 1


@in_virtual_time
async def test_cancelling_a_load_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(OTHER.certificate)
    source = TlsSource(config(ca_file=str(path)))
    before = await source.context()
    path.write_bytes(AUTHORITY.certificate)
    source.invalidate()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(source.context())
        await asyncio.sleep(0)
        task.cancel()
    assert await source.context() is not before


async def test_on_an_ordinary_loop_nothing_blocks_it(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(AUTHORITY.certificate)
    cert, key = ALICE.write(tmp_path)
    files = {"ca_file": str(path), "cert_file": str(cert), "key_file": str(key)}
    source = TlsSource(config(**files))
    assert await shown(source) == "alice"

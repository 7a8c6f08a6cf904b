"""`TlsSource`: the ``ssl.SSLContext`` of one API server, renewed when its files change.

Certificates and keys are compared as bytes, so a context is replaced only when its contents have
changed. A change that cannot be loaded (half written, emptied, deleted) leaves the old context in
use. A failure never weakens verification. Key material reaches OpenSSL through memory; it is never
written to a disk where the system can avoid it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import ssl
import sys
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, final

from kinform import clock
from kinform.errors import ConfigError
from kinform.rest.clientcmd import _files
from kinform.rest.config import Config

__all__ = ["ClientCertificate", "TlsSource", "check"]

log: Final = logging.getLogger(__name__)

CHECK_PERIOD: Final = 60.0
"""Seconds between two checks of the files; after `TlsSource.invalidate` the next use checks."""

EMPTY_CA: Final = (
    "is empty, which would trust the certificate authorities of the system; give a certificate,"
    " or remove the setting"
)

_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----", re.ASCII
)
_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_MISMATCHES: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"})


@final
@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate (with its chain) and its private key, both PEM; ``repr()`` shows neither."""

    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)


class _Material(NamedTuple):
    """The contents of a context, and the settings that errors about the pair name."""

    ca: bytes | None
    pair: ClientCertificate | None
    cert_setting: str
    key_setting: str

    @property
    def digest(self) -> bytes:
        parts = [self.ca or b"", self.pair.cert if self.pair else b""]
        parts.append(self.pair.key if self.pair else b"")
        # A hash of hashes: joined as they are, bytes could move from one part to the next
        # unnoticed. And a digest, so that no second copy of the key stays in memory.
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


class _Loaded(NamedTuple):
    """A context, and the state of the files it was made from."""

    context: ssl.SSLContext
    digest: bytes
    signatures: Mapping[str, _files.Signature]


@final
class TlsSource:
    """The TLS context for connections to ``config.server``, kept up to date.

    Any task of one loop may use it. A pool of connections should close those made with an older
    context once `context` returns another object.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._certificate: ClientCertificate | None = None
        self._lock = asyncio.Lock()
        self._loaded: _Loaded | None = None
        self._checked_at = 0.0  # boot time
        self._is_suspect = False
        self._has_complained = False

    @property
    def server_hostname(self) -> str | None:
        """The name to send (SNI) and to verify; ``None``: the host of the URL."""
        return self._config.tls.server_name

    async def context(self) -> ssl.SSLContext | None:
        """Return the context to connect with; ``None`` if the server does not use TLS.

        It is the same object until a certificate, key or CA file changes. Files are checked
        about once a minute, and at the first call after `invalidate`.

        Raises:
            ConfigError: if nothing has been loaded yet and cannot be now; names file and key.
        """
        if not self._config.is_tls:
            return None
        if (known := self._fresh()) is not None:
            return known.context
        async with self._lock:  # one task reads the files, the others wait for its result
            if (known := self._fresh()) is None:
                known = await self._reload()
            return known.context

    def invalidate(self) -> None:
        """Make the next `context` read all files again, regardless of their dates.

        For use after a failed verification or a 401: the files may have just changed.
        """
        self._is_suspect = True

    def use_certificate(self, certificate: ClientCertificate | None) -> None:
        """Use ``certificate`` from now on instead of the configured one; ``None``: as configured.

        For credential plugins that issue certificates. The next `context` has it.
        """
        # Plugins return the same certificate many times, and each change costs all kept
        # connections.
        if certificate != self._certificate:
            self._certificate = certificate
            self._is_suspect = True

    def _fresh(self) -> _Loaded | None:
        # The boot clock counts a suspend: a laptop that slept over a rotation checks at once.
        age = clock.current().boot() - self._checked_at
        return None if self._is_suspect or age >= CHECK_PERIOD else self._loaded

    async def _reload(self) -> _Loaded:
        suspect, self._is_suspect = self._is_suspect, False  # an `invalidate` from here on counts
        last, now = self._loaded, clock.current().boot()
        try:
            loaded = await clock.offload(
                _load, self._config, self._certificate, last=last, look_closer=suspect
            )
            self._has_complained = False
        except ConfigError as exc:
            # Files may be replaced one by one, so a pair may not match for a moment. The old
            # context works until it expires; no context at all would fail every request.
            if last is None:
                raise
            self._complain(exc)
            loaded = last
        except asyncio.CancelledError:
            self._is_suspect = suspect or self._is_suspect  # the files were not checked
            raise
        self._loaded, self._checked_at = loaded, now
        return loaded

    def _complain(self, error: ConfigError) -> None:
        if not self._has_complained:
            self._has_complained = True
            message = "TLS files cannot be loaded, the old ones stay in use"
            log.warning(message, extra={"error": str(error)})


def check(config: Config) -> None:
    """Refuse TLS settings that contradict each other. Reads nothing.

    Raises:
        ConfigError: a CA that is empty, a CA together with ``insecure_skip_verify``, a certificate
            without its key, or a key without its certificate.
    """
    tls = config.tls
    if tls.ca_data is not None and not tls.ca_data.strip():
        raise config.error("tls.ca_data", EMPTY_CA)
    if tls.ca_file == "" and not tls.ca_data:
        raise config.error("tls.ca_file", EMPTY_CA)
    if tls.insecure_skip_verify and (tls.ca_data or tls.ca_file):
        message = "cannot be combined with a certificate authority; remove one of the two"
        raise config.error("tls.insecure_skip_verify", message)
    has_cert, has_key = bool(tls.cert_data or tls.cert_file), bool(tls.key_data or tls.key_file)
    if has_cert and not has_key:
        message = "is not set, but a client certificate is; give the key that belongs to it"
        raise config.error("tls.key_file", message)
    if has_key and not has_cert:
        message = "is not set, but a client key is; give the certificate that belongs to it"
        raise config.error("tls.cert_file", message)


def _load(
    config: Config,
    certificate: ClientCertificate | None,
    *,
    last: _Loaded | None,
    look_closer: bool,
) -> _Loaded:
    """Return ``last`` if nothing has changed since, otherwise a new context. Blocks."""
    check(config)
    tls = config.tls
    paths = [path for path in (tls.ca_file, tls.cert_file, tls.key_file) if path]
    signatures = {path: _files.signature(path) for path in paths}  # before the files are read
    if last is not None and not look_closer and signatures == last.signatures:
        return last
    material = _read(config, certificate)
    # A file that was only touched must not close all connections: they belong to the context.
    if last is not None and material.digest == last.digest:
        return last._replace(signatures=signatures)
    return _Loaded(_build(config, material), material.digest, signatures)


def _read(config: Config, certificate: ClientCertificate | None) -> _Material:
    tls = config.tls
    ca = tls.ca_data or _read_file(config, "tls.ca_file", path=tls.ca_file)
    if certificate is not None:
        return _Material(ca, certificate, "exec_plugin.command", "exec_plugin.command")
    cert = tls.cert_data or _read_file(config, "tls.cert_file", path=tls.cert_file)
    key = tls.key_data or _read_file(config, "tls.key_file", path=tls.key_file)
    return _Material(
        ca,
        None if cert is None or key is None else ClientCertificate(cert, key),
        "tls.cert_data" if tls.cert_data else "tls.cert_file",
        "tls.key_data" if tls.key_data else "tls.key_file",
    )


def _read_file(config: Config, setting: str, *, path: str | None) -> bytes | None:
    if not path:
        return None
    try:
        return _files.read_small(path)
    except OSError as exc:
        raise config.error(setting, f"cannot read {path!r}: {_files.reason(exc)}") from exc


def _build(config: Config, material: _Material) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies, and checks the host name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False  # as Go: only the subject alternative names
    context.options |= ssl.OP_NO_RENEGOTIATION  # Go's clients never renegotiate either
    context.set_alpn_protocols(["http/1.1"])
    if config.tls.insecure_skip_verify:
        log.warning("the server's certificate is not verified", extra={"server": config.server})
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif material.ca is not None:
        _trust(context, material.ca, config=config)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if material.pair is not None:
        _show(context, material.pair, material=material, config=config)
    return context


def _trust(context: ssl.SSLContext, ca: bytes, *, config: Config) -> None:
    """Make the certificates in ``ca`` the only ones trusted."""
    tls = config.tls
    setting = "tls.ca_data" if tls.ca_data else "tls.ca_file"
    where = "" if tls.ca_data else f"{tls.ca_file!r} "
    # Bundles carry comments in any encoding; OpenSSL is given nothing but the certificates.
    blocks = _CERTIFICATE.findall(ca)
    if not blocks:
        raise config.error(setting, f"{where}holds no PEM certificate")
    try:
        context.load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as exc:
        raise config.error(setting, f"{where}holds a certificate that is broken") from exc
    # As Go, and unlike OpenSSL by itself: an intermediate or a server's own certificate will do.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _show(
    context: ssl.SSLContext, pair: ClientCertificate, *, material: _Material, config: Config
) -> None:
    """Make ``pair`` the client certificate."""
    if not _CERTIFICATE.search(pair.cert):
        raise config.error(material.cert_setting, "holds no PEM certificate")
    if not _PRIVATE_KEY.search(pair.key):
        raise config.error(material.key_setting, "holds no PEM private key")
    try:
        with key_path(pair.cert) as cert, key_path(pair.key) as key:
            # Without a function OpenSSL would ask for the password on the terminal and block the
            # process.
            context.load_cert_chain(cert, key, password=_refuse)
    except _KeyEncrypted:
        message = "is encrypted, and kinform never asks for a password; decrypt it (openssl pkey)"
        raise config.error(material.key_setting, message) from None
    except ssl.SSLError as exc:
        if exc.reason in _MISMATCHES:
            message = "does not belong to the client certificate"
            raise config.error(material.key_setting, message) from exc
        message = f"cannot be used with its key: {exc.reason or 'not valid PEM'}"
        raise config.error(material.cert_setting, message) from exc
    except OSError as exc:
        message = f"cannot be handed to OpenSSL: {_files.reason(exc)}"
        raise config.error(material.key_setting, message) from exc


class _KeyEncrypted(Exception):
    """OpenSSL asked for a password."""


def _refuse() -> NoReturn:
    raise _KeyEncrypted


@contextlib.contextmanager
def memory_path(data: bytes) -> Generator[str]:
    """Give ``data`` a path that leads to memory. Linux only."""
    if sys.platform != "linux":  # pragma: no cover
        raise OSError("files in memory need Linux")
    with os.fdopen(os.memfd_create("kinform"), "wb") as file:
        file.write(data)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


@contextlib.contextmanager
def private_path(data: bytes) -> Generator[str]:
    """Give ``data`` a path for as long as the block lasts: a 0600 file in a 0700 folder."""
    with tempfile.TemporaryDirectory(prefix="kinform-") as folder:
        path = Path(folder, "pem")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        yield str(path)


key_path: Final = memory_path if sys.platform == "linux" else private_path
"""Passes key material to OpenSSL, which reads it only from a path."""

"""Credentials of a client: the headers that authenticate a request, and the reaction to a 401.

`Credentials` takes a `Credential` from one source, chosen in client-go's order: a token file or
token, then user and password, then a client certificate (see `kinform.rest.transport.tls`), and an
exec plugin only where there is none of these. A source returns the same `Credential` object until
the credential changes, so a request that was refused with an old one can be distinguished from one
refused with the latest. Ages are measured by the boot clock, which counts time asleep and cannot
be set back.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, final
from urllib.parse import urlsplit

from kinform import clock
from kinform.errors import ConfigError
from kinform.rest.auth import _plugin_policy, exec_plugin
from kinform.rest.clientcmd import _files
from kinform.rest.config import Config, Impersonation
from kinform.rest.transport import AuthHeaders, proxy
from kinform.rest.transport.tls import ClientCertificate, TlsSource

__all__ = ["AuthHeaders", "Credential", "CredentialSource", "Credentials", "check"]

log: Final = logging.getLogger(__name__)

# Allowed in a header name, less "%", which starts an escape (client-go: headerKeyEscape).
_NAME_UNSAFE: Final = re.compile(rb"[^A-Za-z0-9!#$&'*+.^_`|~-]")
_CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

TOKEN_PERIOD: Final = 50.0
"""A token file is read again after this long (client-go: one minute less ten seconds)."""

AHEAD: Final = 60.0
"""A plugin's credential is renewed this long before expiry, or in the last tenth of its life."""

RETRY_PERIOD: Final = 10.0
"""Delay between attempts to renew while the old credential is still valid."""


@final
class Credentials:
    """The credentials of one client. Any task of one loop may use it.

    Certificates issued by a plugin are passed on to ``tls``, so await `headers` before the context
    of ``tls``.
    """

    def __init__(self, config: Config, *, tls: TlsSource | None = None) -> None:
        """Prepare; nothing is read or run yet.

        Raises:
            ConfigError: if the settings contradict each other, see `check`.
        """
        check(config)
        self._tls = tls
        self._has_files = bool(config.tls.cert_file or config.tls.key_file)
        self._source = _source(config)
        self._identity = _impersonation_fields(config.impersonate)
        self._credential: Credential | None = None
        self._headers = AuthHeaders()

    async def headers(self) -> AuthHeaders:
        """Return the headers to send; the same object as long as the credential is the same.

        May read a file or run a plugin.

        Raises:
            ConfigError: if no credential is available.
        """
        credential = await self._source.current()
        if credential is not self._credential:
            fields = list(self._identity)
            if credential.authorization is not None:
                fields.insert(0, ("Authorization", credential.authorization))
            self._credential, self._headers = credential, AuthHeaders(fields)
            if self._tls is not None:
                self._tls.use_certificate(credential.certificate)
        return self._headers

    async def refresh(self, used: Mapping[str, str]) -> bool:
        """Renew the credential after a 401; return whether the request should be sent again.

        ``used`` is the return value of `headers` for that request. If it is outdated, the latest
        credential is used for another attempt. Otherwise the token file is read again, the plugin
        run or the certificate files checked; concurrent calls share that.
        """
        if self._credential is None or self._is_outdated(used):
            return True
        latest = self._credential
        if await self._source.renew(latest) is not latest:
            return True
        if self._tls is None or not self._has_files:
            return False
        before = await self._tls.context()
        self._tls.invalidate()
        return await self._tls.context() is not before

    def _is_outdated(self, used: Mapping[str, str]) -> bool:
        if isinstance(used, AuthHeaders):
            return used is not self._headers
        return used.get("Authorization") != self._headers.get("Authorization")


def check(config: Config) -> None:
    """Refuse user settings that contradict each other or are unsafe.

    Raises:
        ConfigError: a token together with a password, a token or a name that no header can hold,
            a plugin that may not run, or a secret that would leave this machine without TLS.
        UsageError: the policy for plugins is not valid.
    """
    has_token, has_password = bool(config.token or config.token_file), _has_password(config)
    if has_token and has_password:
        message = "cannot be combined with a token; remove one of the two"
        raise config.error("username", message)
    if config.token and not exec_plugin.is_token(config.token.strip()):
        raise config.error("token", "holds characters that no token has; copy it again")
    for name, value in _impersonation_fields(config.impersonate):
        if _CONTROL.search(value):
            raise config.error("impersonate", f"the value for {name} holds control characters")
    _plugin_policy.check(config)
    if config.is_tls or proxy.is_loopback(urlsplit(config.server).hostname or ""):
        return
    if proxy.has_credentials(config):
        message = "must start with https://: credentials are not sent in clear to another machine"
        raise config.error("server", message)


def _source(config: Config) -> CredentialSource:
    if config.token_file:
        return TokenFileSource(config)
    if config.token:
        return FixedSource(f"Bearer {config.token.strip()}")
    if _has_password(config):
        pair = f"{config.username or ''}:{config.password or ''}"
        return FixedSource(
            "Basic " + base64.b64encode(pair.encode("utf-8", "surrogateescape")).decode("ascii")
        )
    if _plugin_policy.is_used(config):
        return ExecSource(config)
    return FixedSource(None)


def _has_password(config: Config) -> bool:
    return bool(config.username or config.password)


def _impersonation_fields(impersonate: Impersonation | None) -> list[tuple[str, str]]:
    """Return the impersonation headers, one per group and extra value."""
    if impersonate is None:
        return []
    fields = [("Impersonate-User", impersonate.user)]
    if impersonate.uid:
        fields.append(("Impersonate-Uid", impersonate.uid))
    fields += [("Impersonate-Group", group) for group in impersonate.groups]
    for key, values in impersonate.extra.items():
        name = _NAME_UNSAFE.sub(
            lambda match: b"%%%02X" % match[0][0], key.encode("utf-8", "replace")
        )
        fields += [(f"Impersonate-Extra-{name.decode('ascii')}", value) for value in values]
    return fields


@final
@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """A credential. Two objects are never equal, even with the same content."""

    authorization: str | None = field(default=None, repr=False)
    """The value of the ``Authorization`` header."""
    certificate: ClientCertificate | None = None
    """A certificate to show instead of the configured one."""

    def says_the_same_as(self, other: Credential) -> bool:
        """Return whether both have the same content."""
        return (self.authorization, self.certificate) == (other.authorization, other.certificate)


class CredentialSource(Protocol):
    """Provides the credential of `Credentials`."""

    async def current(self) -> Credential:
        """Return a credential that should be valid."""
        ...

    async def renew(self, used: Credential) -> Credential:
        """Return a newer credential than ``used``, which was refused, or ``used`` itself."""
        ...


@final
class FixedSource:
    """A credential that never changes."""

    def __init__(self, authorization: str | None) -> None:
        self._credential = Credential(authorization)

    async def current(self) -> Credential:
        """Return the credential."""
        return self._credential

    async def renew(self, used: Credential) -> Credential:
        """Return ``used``: a fixed credential cannot be renewed."""
        return used


@final
class TokenFileSource:
    """The token in a file that another program renews (the kubelet, an agent).

    While the file is missing or empty, the last token stays in use.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = asyncio.Lock()
        self._token = config.token.strip() if config.token else ""
        self._credential: Credential | None = None
        self._read_again_at = -math.inf  # boot time
        self._has_complained = False

    async def current(self) -> Credential:
        """Return the token; the file is read about every 50 s.

        Raises:
            ConfigError: if the file cannot be read and no token was read before.
        """
        if self._credential is None or clock.current().boot() >= self._read_again_at:
            async with self._lock:
                if clock.current().boot() >= self._read_again_at:
                    await self._read()
        assert self._credential is not None
        return self._credential

    async def renew(self, used: Credential) -> Credential:
        """Read the file now, unless that has happened since ``used`` was handed out."""
        async with self._lock:
            if self._credential is used:
                await self._read()
        return self._credential or used

    async def _read(self) -> None:
        now = clock.current().boot()
        try:
            token = await clock.offload(_read_token, self._config)
        except ConfigError as exc:
            if not self._token:
                raise
            token = self._token
            self._read_again_at = now + RETRY_PERIOD
            self._complain(exc)
        else:
            self._read_again_at = now + TOKEN_PERIOD
            self._has_complained = False
        if self._credential is None or token != self._token:
            self._token, self._credential = token, Credential(f"Bearer {token}")

    def _complain(self, error: ConfigError) -> None:
        if not self._has_complained:
            self._has_complained = True
            log.warning(
                "token file cannot be read, the last token stays in use",
                extra={"error": str(error)},
            )


class _Held(NamedTuple):
    """The credential of a plugin and the time it was issued.

    The wall clock may be set back, and the boot clock has no dates: the credential expires when
    the first of the two reaches its end.
    """

    credential: Credential
    expires_at: float | None  # wall time
    since: float  # boot time
    lifetime: float

    @classmethod
    def now(cls, answer: exec_plugin.ExecCredential, *, last: _Held | None) -> _Held:
        """Return ``answer`` as held from now on; the same content keeps ``last``'s credential."""
        authorization = None if answer.token is None else f"Bearer {answer.token}"
        credential = Credential(authorization, answer.certificate)
        if last is not None and last.credential.says_the_same_as(credential):
            credential = last.credential
        end = math.inf if answer.expires_at is None else answer.expires_at
        times = clock.current()
        return cls(credential, answer.expires_at, times.boot(), end - times.wall())

    @property
    def remaining(self) -> float:
        """Seconds until it expires; at first positive even if it was issued as expired."""
        if self.expires_at is None:
            return math.inf
        times = clock.current()
        age = times.boot() - self.since
        left = min(self.lifetime - age, self.expires_at - times.wall())
        return left if age >= RETRY_PERIOD else max(left, RETRY_PERIOD - age)

    @property
    def is_ending(self) -> bool:
        return self.remaining <= min(AHEAD, max(self.lifetime, 0.0) / 10)


@final
class ExecSource:
    """The credential of a plugin, which runs at first use, before expiry, and after a 401.

    One run serves all requests that wait for it. Cancelling the request that started it kills the
    plugin; the next waiting request starts it again.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = asyncio.Lock()
        self._held: _Held | None = None
        self._failure: ConfigError | None = None  # of the last run
        self._runs = 0  # finished ones, well or not
        self._retry_at = -math.inf  # boot time

    async def current(self) -> Credential:
        """Return a valid credential, running the plugin if necessary.

        Raises:
            ConfigError: if the plugin returns none and no earlier one is still valid.
        """
        if (held := self._good()) is not None:
            return held.credential
        if self._held is not None and self._held.remaining > 0 and self._lock.locked():
            return self._held.credential  # another request renews it; this one is still valid
        seen = self._runs
        async with self._lock:
            if (held := self._good()) is not None:
                return held.credential
            if self._failure is not None and self._runs != seen:
                raise _repeated(self._failure)  # the run we waited for has failed
            return await self._renew()

    async def renew(self, used: Credential) -> Credential:
        """Run the plugin now, unless another credential has replaced ``used``.

        If it fails or returns the same again, ``used`` is returned, so that the caller sees the
        server's 401.
        """
        seen = self._runs
        async with self._lock:
            if self._runs == seen and (self._held is None or self._held.credential is used):
                try:
                    await self._run()
                except ConfigError as exc:
                    log.warning("exec plugin failed after a 401", extra={"error": str(exc)})
            return used if self._held is None else self._held.credential

    def _good(self) -> _Held | None:
        """Return the held credential, unless it should be renewed now."""
        held = self._held
        if held is None or held.remaining <= 0:
            return None
        if held.is_ending and clock.current().boot() >= self._retry_at:
            return None
        return held

    async def _renew(self) -> Credential:
        held = self._held
        try:
            return await self._run()
        except ConfigError as exc:
            if held is None or held.remaining <= 0:
                raise
            self._retry_at = clock.current().boot() + RETRY_PERIOD
            message = "exec plugin failed, its last credential is still valid"
            log.warning(message, extra={"error": str(exc)})
            return held.credential

    async def _run(self) -> Credential:
        try:
            answer = await exec_plugin.run(self._config)
        except ConfigError as exc:
            self._runs += 1
            self._failure = exc
            raise
        self._runs += 1
        self._failure = None
        self._held = _Held.now(answer, last=self._held)
        if self._held.lifetime <= 0:
            log.warning("exec plugin returned an expired credential; is the clock right?")
        return self._held.credential


def _read_token(config: Config) -> str:
    """Return the token in the file, without the white space around it. Blocks."""
    path = config.token_file or ""
    try:
        token = _files.read_small(path).decode("utf-8", "replace").strip()
    except OSError as exc:
        raise config.error("token_file", f"cannot read {path!r}: {_files.reason(exc)}") from exc
    if not token:
        raise config.error("token_file", f"{path!r} is empty; it must hold a token")
    if not exec_plugin.is_token(token):
        message = f"{path!r} does not hold a token; is it the right file?"
        raise config.error("token_file", message)
    return token


def _repeated(error: ConfigError) -> ConfigError:
    """Return a copy of the error for another waiting request: a traceback belongs to one task."""
    return ConfigError(error.message, source=error.source, key=error.key)

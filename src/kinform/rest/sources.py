"""Where a credential comes from: fixed, a file that is read again, a plugin that is run again.

A source hands out `Credential` objects. A new object means a new credential, so a request that
was refused with an old one can be told from one refused with the latest. Ages are measured by the
boot clock, which counts time asleep and cannot be set back.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, final

from kinform import clock
from kinform.errors import ConfigError
from kinform.rest import exec_plugin, files
from kinform.rest.config import Config
from kinform.rest.tls import ClientCertificate

__all__ = ["Credential", "CredentialSource", "ExecSource", "FixedSource", "TokenFileSource"]

log: Final = logging.getLogger(__name__)

TOKEN_PERIOD: Final = 50.0
"""A token file is read again after this long (client-go: one minute less ten seconds)."""

AHEAD: Final = 60.0
"""A plugin's credential is renewed this long before its end, or in the last tenth of its life."""

RETRY_PERIOD: Final = 10.0
"""What failed while the old credential still serves is tried again after this long."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """A proof of who we are. Two of them differ even if they say the same."""

    authorization: str | None = field(default=None, repr=False)
    """The value of the ``Authorization`` header."""
    certificate: ClientCertificate | None = None
    """A certificate to show instead of the configured one."""

    def says_the_same_as(self, other: Credential) -> bool:
        """Tell whether a server could not tell the two apart."""
        return (self.authorization, self.certificate) == (other.authorization, other.certificate)


class CredentialSource(Protocol):
    """What `kinform.rest.auth.Credentials` stands on."""

    async def current(self) -> Credential:
        """Return a credential that should be good."""
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
        """Return ``used``: there is no other."""
        return used


@final
class TokenFileSource:
    """The token in a file that somebody else keeps fresh (the kubelet, an agent).

    A file that is missing or empty for a while costs nothing: the last token stays in use.
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
            ConfigError: if the file cannot be read and there is no earlier token.
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
            log.warning("the last token stays in use", extra={"error": str(error)})


class _Held(NamedTuple):
    """A plugin's answer, and when it came.

    The wall clock may be set back, and the boot clock knows no dates: the credential ends when
    the first of the two says so.
    """

    credential: Credential
    expires_at: float | None  # wall time
    since: float  # boot time
    lifetime: float

    @classmethod
    def now(cls, answer: exec_plugin.ExecCredential, *, last: _Held | None) -> _Held:
        """Hold ``answer`` from now on; saying the same as ``last``, it is no new credential."""
        authorization = None if answer.token is None else f"Bearer {answer.token}"
        credential = Credential(authorization, answer.certificate)
        if last is not None and last.credential.says_the_same_as(credential):
            credential = last.credential
        end = math.inf if answer.expires_at is None else answer.expires_at
        times = clock.current()
        return cls(credential, answer.expires_at, times.boot(), end - times.wall())

    @property
    def remaining(self) -> float:
        """How long it still holds. Even one that came expired is used for a moment."""
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
    """The credential of a plugin: run when there is none, before it ends, and after a 401.

    One run serves all who wait for it. Cancelling the request that started it kills the plugin;
    the next in line starts it anew.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = asyncio.Lock()
        self._held: _Held | None = None
        self._failure: ConfigError | None = None  # of the last run
        self._runs = 0  # finished ones, well or not
        self._retry_at = -math.inf  # boot time

    async def current(self) -> Credential:
        """Return a credential that holds, by running the plugin if need be.

        Raises:
            ConfigError: if the plugin gives none and no earlier one still holds.
        """
        if (held := self._good()) is not None:
            return held.credential
        if self._held is not None and self._held.remaining > 0 and self._lock.locked():
            return self._held.credential  # somebody renews it ahead of time; no need to wait
        seen = self._runs
        async with self._lock:
            if (held := self._good()) is not None:
                return held.credential
            if self._failure is not None and self._runs != seen:
                raise _repeated(self._failure)  # the run we waited for has failed
            return await self._renew()

    async def renew(self, used: Credential) -> Credential:
        """Run the plugin now, unless another credential has taken the place of ``used``.

        If it fails or says the same again, ``used`` is returned: the server's 401 is what the
        caller should see.
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
        """Return what is held, unless it should be renewed now."""
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
            message = "exec plugin failed, its last credential still holds"
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
            log.warning("exec plugin gave a credential that has expired; is the clock right?")
        return self._held.credential


def _read_token(config: Config) -> str:
    """Return the token in the file, without the white space around it. Blocks."""
    path = config.token_file or ""
    try:
        token = files.read_small(path).decode("utf-8", "replace").strip()
    except OSError as exc:
        raise config.error("token_file", f"cannot read {path!r}: {files.reason(exc)}") from exc
    if not token:
        raise config.error("token_file", f"{path!r} is empty; it must hold a token")
    if not exec_plugin.is_token(token):
        message = f"{path!r} holds something that is no token; is it the right file?"
        raise config.error("token_file", message)
    return token


def _repeated(error: ConfigError) -> ConfigError:
    """Return the same complaint for another who waited; a traceback belongs to one of them."""
    return ConfigError(error.message, source=error.source, key=error.key)

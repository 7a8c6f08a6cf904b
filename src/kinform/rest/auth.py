"""Who we are, for every request: `Credentials` gives the headers and reacts to a 401.

What it says comes from one of the sources in `kinform.rest.sources`, chosen here as client-go
does: a token file or token, then user and password, then a client certificate (which is the
matter of `kinform.rest.tls`), and a plugin only where there is none of these.
"""

from __future__ import annotations

import base64
import re
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import Final, final
from urllib.parse import urlsplit

from kinform.rest import exec_plugin, plugin_policy, proxy, sources
from kinform.rest.config import Config, Impersonation
from kinform.rest.tls import TlsSource

__all__ = ["AuthHeaders", "Credentials", "check"]

# What may stand in a header's name, less "%", which starts an escape (client-go: headerKeyEscape).
_NAME_UNSAFE: Final = re.compile(rb"[^A-Za-z0-9!#$&'*+.^_`|~-]")
_CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


@final
class AuthHeaders(Mapping[str, str]):
    """The headers that say who asks, for one request or many; ``repr()`` shows only names.

    A name may stand for several fields (one ``Impersonate-Group`` per group). ``items()`` gives
    every field; send those. Looking up a name gives all its values, joined by ``", "``.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Sequence[tuple[str, str]] = ()) -> None:
        self._fields = tuple(fields)

    def __getitem__(self, name: str) -> str:
        values = [value for field_name, value in self._fields if field_name == name]
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self._fields))

    def __len__(self) -> int:
        return len({name for name, _ in self._fields})

    def items(self) -> ItemsView[str, str]:
        """Return every field, repeated names included."""
        return _Fields(self, self._fields)

    def __repr__(self) -> str:
        return f"<AuthHeaders {' '.join(self)}>"


@final
class _Fields(ItemsView[str, str]):
    def __init__(self, headers: AuthHeaders, fields: Sequence[tuple[str, str]]) -> None:
        super().__init__(headers)
        self._pairs = fields

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


@final
class Credentials:
    """The user's half of the request path. Any task of one loop may use it.

    Certificates that a plugin hands out are passed on to ``tls``, so ask for `headers` before
    asking that for its context.
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
        self._credential: sources.Credential | None = None
        self._headers = AuthHeaders()

    async def headers(self) -> AuthHeaders:
        """Return the headers to send; the same object as long as the credential is the same.

        May read a file or run a plugin.

        Raises:
            ConfigError: if there is no credential to be had.
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
        """Tell what to do after a 401: whether a second try may go better.

        ``used`` is what `headers` returned for the request. If that is no longer the latest
        credential, the latest is kept and worth a try. Otherwise the token file is read, the
        plugin run or the certificate files looked at again, once for all who ask meanwhile.
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
    """Refuse settings about the user that contradict each other or would be unsafe.

    Raises:
        ConfigError: a token together with a password, a token or a name that no header can hold,
            a plugin that may not run, or a secret that would travel without TLS to another machine.
        UsageError: a policy for plugins that is none.
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
    plugin_policy.check(config)
    if config.is_tls or proxy.is_loopback(urlsplit(config.server).hostname or ""):
        return
    if proxy.has_credentials(config):
        message = "must start with https://: credentials are not sent in clear to another machine"
        raise config.error("server", message)


def _source(config: Config) -> sources.CredentialSource:
    if config.token_file:
        return sources.TokenFileSource(config)
    if config.token:
        return sources.FixedSource(f"Bearer {config.token.strip()}")
    if _has_password(config):
        pair = f"{config.username or ''}:{config.password or ''}"
        return sources.FixedSource(
            "Basic " + base64.b64encode(pair.encode("utf-8", "surrogateescape")).decode("ascii")
        )
    if plugin_policy.is_used(config):
        return sources.ExecSource(config)
    return sources.FixedSource(None)


def _has_password(config: Config) -> bool:
    return bool(config.username or config.password)


def _impersonation_fields(impersonate: Impersonation | None) -> list[tuple[str, str]]:
    """Return the headers that make us somebody else, one per group and extra value."""
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

"""kubeconfig files: read and merge them by kubectl's rules, and turn a context into a `Config`.

Several files are merged entry by entry: the first file with a cluster, user or context of a name
provides the whole entry, and the first that sets ``current-context`` wins. Paths in a file are
relative to the file. Every error names the file and the key; none quotes a value that may be
secret. All calls block on the disk.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias, final

from kinform.errors import ConfigError
from kinform.rest.clientcmd import _documents, _files
from kinform.rest.config import Config, ExecPlugin, Impersonation, Origin, TlsConfig
from kinform.rest.transport import tls

__all__ = ["Kubeconfig", "Section", "merge", "parse", "read"]

MAX_SIZE: Final = 4 * 1024 * 1024
"""The largest kubeconfig that is read."""

_API_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
_INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_LISTED_NAMES: Final = 20


@final
@dataclass(frozen=True, slots=True)
class Section:
    """A mapping within a kubeconfig and its position, with typed readers.

    Each reader raises `ConfigError` if the value is set and of the wrong type.
    """

    source: str
    """The file."""
    key: str
    """The path to the mapping within the file, for example ``users[dev].user``."""
    body: Mapping[str, _documents.Value] = field(repr=False)
    is_file: bool = True
    """True if ``source`` is a file of the user, to which paths are relative."""

    def error(self, name: str, message: str) -> ConfigError:
        """Return an error about the value ``name``."""
        key = f"{self.key}.{name}" if self.key and name else self.key or name
        return ConfigError(message, source=self.source, key=key)

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return Path(self.source).absolute().parent

    def text(self, name: str) -> str:
        """Return a text, ``""`` if it is not set; numbers keep their original text."""
        match self.body.get(name):
            case None:
                return ""
            case str(text) | _documents.Scalar(text=text):
                return text
            case bool(flag):
                return str(flag).lower()
            case int(number) | float(number):
                return str(number)
            case _:
                raise self.error(name, "must be a text; quote it")

    def flag(self, name: str) -> bool:
        """Return a boolean, false if it is not set."""
        value = self.body.get(name)
        match value.value if isinstance(value, _documents.Scalar) else value:
            case None:
                return False
            case bool(flag):
                return flag
            case _:
                raise self.error(name, "must be true or false, without quotes")

    def path(self, name: str) -> str | None:
        """Return a path, made absolute from the folder of the file it is written in.

        A document that is not a file must not name files: it is not trusted to choose them.
        """
        text = self.text(name)
        if text and not self.is_file:
            message = (
                "names a file, which only a kubeconfig that is a file itself may;"
                " put the data in (kubectl config view --flatten)"
            )
            raise self.error(name, message)
        return str(self.folder / text) if text else None

    def data(self, name: str) -> bytes | None:
        """Return decoded base64 data; ``None`` if it is not set or empty."""
        try:
            return base64.b64decode("".join(self.text(name).split()), validate=True) or None
        except (binascii.Error, ValueError) as exc:
            message = "is not base64; copy it again, or name a file instead"
            raise self.error(name, message) from exc

    def section(self, name: str) -> Section | None:
        """Return a mapping within this one; ``None`` if it is not set."""
        value = self.body.get(name)
        key = f"{self.key}.{name}" if self.key else name
        if value is None:
            return None
        if isinstance(value, dict):
            return replace(self, key=key, body=value)
        raise self.error(name, "must be a mapping")

    def sections(self, name: str) -> list[Section]:
        """Return the mappings of a list."""
        found: list[Section] = []
        for index, value in enumerate(self.values(name)):
            if not isinstance(value, dict):
                raise self.error(f"{name}[{index}]", "must be a mapping")
            key = f"{self.key}.{name}[{index}]" if self.key else f"{name}[{index}]"
            found.append(replace(self, key=key, body=value))
        return found

    def texts(self, name: str) -> list[str]:
        """Return the texts of a list."""
        indexed = {f"{name}[{i}]": value for i, value in enumerate(self.values(name))}
        return [replace(self, body=indexed).text(key) for key in indexed]

    def values(self, name: str) -> Sequence[_documents.Value]:
        """Return a list, empty if it is not set."""
        value = self.body.get(name)
        if value is None:
            return ()
        if isinstance(value, list):
            return value
        raise self.error(name, "must be a list")


Entries: TypeAlias = Mapping[str, Section]


@final
@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The contents of one kubeconfig, or of several merged. Get one from `read` or `merge`."""

    source: str
    """The file, or the files, for messages."""
    clusters: Entries = field(default_factory=dict[str, Section], repr=False)
    users: Entries = field(default_factory=dict[str, Section], repr=False)
    contexts: Entries = field(default_factory=dict[str, Section], repr=False)
    current_context: str = ""

    @property
    def is_empty(self) -> bool:
        """True if it has no entries at all."""
        return not (self.clusters or self.users or self.contexts or self.current_context)

    def config(self, context: str | None = None) -> Config:
        """Return the configuration of ``context`` (or of the current one).

        Raises:
            ConfigError: the context does not exist, or its cluster or user is missing or invalid.
        """
        name = context or self.current_context
        if not name:
            raise self._no_context()
        if name not in self.contexts:
            message = f"context {name!r} does not exist; {_known('contexts', self.contexts)}"
            key = "contexts" if context else "current-context"
            raise ConfigError(message, source=self.source, key=key)
        chosen = self.contexts[name]
        cluster = _referred(chosen, "cluster", entries=self.clusters)
        user = _referred(chosen, "user", entries=self.users)
        if cluster is None:
            raise chosen.error("cluster", f"is not set; {_known('clusters', self.clusters)}")
        config = _cluster_config(cluster)
        config = replace(
            config,
            namespace=chosen.text("namespace") or "default",
            source=f"{chosen.source} (context {name!r})",
            origin=Origin(
                cluster_source=cluster.source,
                cluster_key=cluster.key,
                user_source=user.source if user else chosen.source,
                user_key=user.key if user else chosen.key,
                is_file=chosen.is_file,
            ),
        )
        return config if user is None else _with_user(config, user=user, cluster=cluster)

    def _no_context(self) -> ConfigError:
        if not self.contexts:
            message = "holds no contexts; is it a kubeconfig, and is it complete?"
            return ConfigError(message, source=self.source)
        message = (
            f"is not set; {_known('contexts', self.contexts)};"
            " pass context=, or run kubectl config use-context"
        )
        return ConfigError(message, source=self.source, key="current-context")


def read(path: str) -> Kubeconfig:
    """Return the contents of the file; an empty file is an empty `Kubeconfig`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ConfigError: if it cannot be read, or is not a kubeconfig.
    """
    try:
        data = _files.read_small(path, limit=MAX_SIZE)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise ConfigError(f"cannot be read: {_files.reason(exc)}", source=path) from exc
    return _understand(_documents.parse(data, source=path), source=path, is_file=True)


def parse(document: str | bytes | Mapping[str, object], *, source: str) -> Kubeconfig:
    """Return the contents of an untrusted document; it must not name files.

    Raises:
        ConfigError: if it is not a kubeconfig, or too large for one.
    """
    if isinstance(document, Mapping):
        content = _documents.plain(document, source=source)
    else:
        data = document.encode(errors="replace") if isinstance(document, str) else document
        if len(data) > MAX_SIZE:
            raise ConfigError(f"is larger than {MAX_SIZE} bytes", source=source)
        content = _documents.parse(data, source=source)
    return _understand(content, source=source, is_file=False)


def _understand(document: _documents.Value, *, source: str, is_file: bool) -> Kubeconfig:
    if document is None:
        return Kubeconfig(source)
    if not isinstance(document, dict):
        message = "is not a kubeconfig: it must be a mapping with clusters, users and contexts"
        raise ConfigError(message, source=source)
    top = Section(source, "", document, is_file)
    if (kind := top.text("kind")) not in {"", "Config"}:
        raise top.error("kind", f"is {kind!r}; a kubeconfig is of kind 'Config'")
    return Kubeconfig(
        source,
        clusters=_entries(top, "cluster"),
        users=_entries(top, "user"),
        contexts=_entries(top, "context"),
        current_context=top.text("current-context"),
    )


def merge(parts: Sequence[Kubeconfig]) -> Kubeconfig:
    """Return all ``parts`` as one; of entries with the same name, the earliest wins."""
    latest_first = parts[::-1]
    return Kubeconfig(
        ", ".join(part.source for part in parts),
        clusters={k: v for part in latest_first for k, v in part.clusters.items()},
        users={k: v for part in latest_first for k, v in part.users.items()},
        contexts={k: v for part in latest_first for k, v in part.contexts.items()},
        current_context=next((p.current_context for p in parts if p.current_context), ""),
    )


def _entries(top: Section, kind: str) -> Entries:
    """Return the named entries of one list: ``clusters``, ``users`` or ``contexts``."""
    entries: dict[str, Section] = {}
    for item in top.sections(f"{kind}s"):
        name = item.text("name")
        if name in entries:
            raise item.error("name", f"{name!r} is listed twice; remove one")
        inner = item.section(kind)
        key = f"{kind}s[{name}].{kind}"
        entries[name] = replace(top, key=key, body=inner.body if inner else {})
    return entries


def _referred(chosen: Section, kind: str, *, entries: Entries) -> Section | None:
    """Return the entry that a context refers to; ``None`` if it refers to none."""
    name = chosen.text(kind)
    if not name:
        return None
    if name not in entries:
        raise chosen.error(kind, f"{kind} {name!r} does not exist; {_known(f'{kind}s', entries)}")
    return entries[name]


def _known(what: str, entries: Entries) -> str:
    """Return a sentence that lists the existing names."""
    names = [repr(name) for name in sorted(entries)]
    if len(names) > _LISTED_NAMES:
        names[_LISTED_NAMES:] = [f"{len(names) - _LISTED_NAMES} more"]
    return f"known {what}: {', '.join(names) or 'none'}"


def _cluster_config(cluster: Section) -> Config:
    """Return a `Config` with the settings of the server."""
    server = cluster.text("server").strip()
    if not server:
        raise cluster.error("server", "is not set; give the URL of the API server")
    ca_data, ca_file = cluster.data("certificate-authority-data"), None
    if ca_data is None:
        _refuse_empty(cluster, "certificate-authority-data")
        ca_file = cluster.path("certificate-authority")
        if ca_file is None:
            _refuse_empty(cluster, "certificate-authority")
    return Config(
        server=server,
        tls=TlsConfig(
            ca_data=ca_data,
            ca_file=ca_file,
            server_name=cluster.text("tls-server-name") or None,
            insecure_skip_verify=cluster.flag("insecure-skip-tls-verify"),
        ),
        proxy_url=cluster.text("proxy-url") or None,
        compression=not cluster.flag("disable-compression"),
    )


def _refuse_empty(cluster: Section, name: str) -> None:
    """Refuse an empty CA: the system's CAs would be trusted instead."""
    if cluster.body.get(name) is not None:
        raise cluster.error(name, tls.EMPTY_CA)


def _with_user(config: Config, *, user: Section, cluster: Section) -> Config:
    """Return ``config`` with the settings of the user."""
    if user.body.get("auth-provider") is not None:
        raise user.error(
            "auth-provider",
            "is not supported any more; use an exec plugin (gke-gcloud-auth-plugin for gcp,"
            " kubelogin for azure and oidc)",
        )
    cert_data, key_data = user.data("client-certificate-data"), user.data("client-key-data")
    plugin = user.section("exec")
    return replace(
        config,
        tls=replace(
            config.tls,
            cert_data=cert_data,
            cert_file=None if cert_data else user.path("client-certificate"),
            key_data=key_data,
            key_file=None if key_data else user.path("client-key"),
        ),
        token=user.text("token") or None,
        token_file=user.path("tokenFile"),
        username=user.text("username") or None,
        password=user.text("password") or None,
        exec_plugin=_exec_plugin(plugin, cluster=cluster) if plugin else None,
        impersonate=_impersonation(user),
    )


def _impersonation(user: Section) -> Impersonation | None:
    extra = user.section("as-user-extra")
    impersonation = Impersonation(
        user=user.text("as"),
        uid=user.text("as-uid") or None,
        groups=tuple(user.texts("as-groups")),
        extra={name: tuple(extra.texts(name)) for name in extra.body} if extra else {},
    )
    if impersonation.user:
        return impersonation
    if impersonation.uid or impersonation.groups or impersonation.extra:
        raise user.error("as", "must be set where as-uid, as-groups or as-user-extra are")
    return None


def _exec_plugin(plugin: Section, *, cluster: Section) -> ExecPlugin:
    command = plugin.text("command")
    if not command:
        raise plugin.error("command", "is not set; name the program to run")
    api_version = plugin.text("apiVersion")
    if api_version not in _API_VERSIONS:
        said = f"{api_version!r} is not supported" if api_version else "is not set"
        choice = " or ".join(_API_VERSIONS)
        raise plugin.error("apiVersion", f"{said}; use {choice}, and a plugin that speaks it")
    mode = plugin.text("interactiveMode") or "IfAvailable"
    if mode not in _INTERACTIVE_MODES:
        message = f"{mode!r} must be one of {', '.join(_INTERACTIVE_MODES)}"
        raise plugin.error("interactiveMode", message)
    if "/" in command or os.sep in command:  # otherwise it is looked up in PATH
        if plugin.is_file:
            command = str(plugin.folder / command)
        elif not Path(command).is_absolute():
            raise plugin.error("command", f"{command!r} is relative; give an absolute path")
    return ExecPlugin(
        command=command,
        args=tuple(plugin.texts("args")),
        env=_environment(plugin),
        api_version=api_version,
        install_hint=plugin.text("installHint") or None,
        provide_cluster_info=plugin.flag("provideClusterInfo"),
        interactive_mode=mode,
        cluster_extension=_extension(cluster),
    )


def _environment(plugin: Section) -> dict[str, str]:
    env: dict[str, str] = {}
    for item in plugin.sections("env"):
        name = item.text("name")
        if not name or "=" in name or "\0" in name:
            raise item.error("name", f"{name!r} cannot be the name of a variable")
        env[name] = item.text("value")
    return env


def _extension(cluster: Section) -> object:
    for item in cluster.sections("extensions"):
        if item.text("name") == _EXEC_EXTENSION:
            return _documents.native(item.body.get("extension"))
    return None

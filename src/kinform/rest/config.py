"""`Config`: the settings of one API server and its user.

`Config` is a plain value: nothing is read or checked until a client is opened.
`kinform.rest.clientcmd.loading` creates it (from a kubeconfig, the environment, in-cluster files);
`kinform.rest.transport.tls`, `kinform.rest.auth.credentials` and `kinform.rest.transport.proxy` use
it. Fields that may hold a secret are left out of every ``repr()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from kinform.errors import ConfigError

__all__ = [
    "Config",
    "CredentialPluginPolicy",
    "ExecPlugin",
    "Impersonation",
    "Origin",
    "TlsConfig",
]

CredentialPluginPolicy: TypeAlias = Literal["AllowAll", "DenyAll"] | Sequence[str]
"""The credential plugins that may run, as in kubectl's ``credentialPluginPolicy``.

``"AllowAll"``, ``"DenyAll"``, or the allowlist itself: absolute paths, and names that are looked
up in PATH. A plugin may run if it is found at the same path as an entry. Its arguments still come
from the kubeconfig: put only programs on the list that are safe with any arguments.
"""

_CLUSTER_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "server": "server",
        "tls.ca_data": "certificate-authority-data",
        "tls.ca_file": "certificate-authority",
        "tls.server_name": "tls-server-name",
        "tls.insecure_skip_verify": "insecure-skip-tls-verify",
        "proxy_url": "proxy-url",
    }
)
_USER_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tls.cert_data": "client-certificate-data",
        "tls.cert_file": "client-certificate",
        "tls.key_data": "client-key-data",
        "tls.key_file": "client-key",
        "token": "token",
        "token_file": "tokenFile",
        "username": "username",
        "exec_plugin": "exec",
        "exec_plugin.command": "exec.command",
        "exec_plugin.env": "exec.env",
        "exec_plugin.api_version": "exec.apiVersion",
        "exec_plugin.interactive_mode": "exec.interactiveMode",
        "impersonate": "as",
    }
)


MAX_OBJECT_SIZE: Final = 64 * 1024 * 1024
"""Far beyond the limit of etcd; a larger object is a mistake or an attack."""
ANSWER_TIMEOUT: Final = 600.0
"""Ten times kube-apiserver's default ``--request-timeout``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """The trusted certificate authorities and the client certificate.

    Of each pair ``*_data`` (PEM) wins over ``*_file``, as in kubectl. Files are read again
    when they change; data never touches the disk.
    """

    ca_data: bytes | None = field(default=None, repr=False)
    """The only certificates trusted, if given (or ``ca_file``); otherwise the system's."""
    ca_file: str | None = None
    cert_data: bytes | None = field(default=None, repr=False)  # some hold the key, too
    cert_file: str | None = None
    key_data: bytes | None = field(default=None, repr=False)
    key_file: str | None = None
    server_name: str | None = None
    """The name the certificate must carry, where it is not the host of the URL."""
    insecure_skip_verify: bool = False
    """Trust any certificate. For experiments; every use is logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A credential plugin (``client.authentication.k8s.io`` v1 or v1beta1)."""

    command: str
    """A path, or a name that is looked up in PATH. There is never a shell."""
    args: Sequence[str] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str | None = None
    provide_cluster_info: bool = False
    """Pass the cluster to the plugin in ``KUBERNETES_EXEC_INFO``."""
    interactive_mode: str = "IfAvailable"
    """``Never``, ``IfAvailable`` or ``Always``: whether the plugin may ask at the terminal."""
    cluster_extension: object = field(default=None, repr=False)
    """The cluster's ``client.authentication.k8s.io/exec`` extension, passed to the plugin."""
    timeout: float = 60.0
    """Longest time of one run, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """Another user to act as (needs the ``impersonate`` verb)."""

    user: str
    uid: str | None = None
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The kubeconfig entries a `Config` was made from, for error messages."""

    cluster_source: str
    """The file that holds the cluster's entry."""
    cluster_key: str
    """The path to it within the file, for example ``clusters[dev].cluster``."""
    user_source: str
    user_key: str
    is_file: bool = True
    """True if the sources are files, false for a document passed by the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One server, one user, and connection settings. ``repr()`` shows no secret."""

    server: str
    """The base URL, ``https://host:port/prefix``."""
    namespace: str = "default"
    """The default namespace of namespaced resources."""
    tls: TlsConfig = TlsConfig()
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    """Wins over ``token``, which serves until the file can be read; re-read about every 50 s."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec_plugin: ExecPlugin | None = None
    credential_plugin_policy: CredentialPluginPolicy = "AllowAll"
    """The plugins that may run: a file that names a program decides which code runs."""
    impersonate: Impersonation | None = None
    proxy_url: str | None = field(default=None, repr=False)  # may hold a password
    """An ``http://`` or ``https://`` proxy; ``None``: as set by HTTPS_PROXY and NO_PROXY."""
    compression: bool = True
    """Let the server compress large responses (never watches)."""
    connect_timeout: float = 15.0
    read_timeout: float | None = 60.0
    """Longest silence within an ordinary response."""
    answer_timeout: float | None = ANSWER_TIMEOUT
    """Longest time for an ordinary response, even a whole list, from request to last byte.

    Without it, a server that sends a byte now and then could delay a request for ever. A request
    with its own deadline (``timeout``) uses that instead; watches and logs have none.
    """
    max_object_size: int = MAX_OBJECT_SIZE
    """The size limit of an object, in bytes: a response, a list's item or a watch's event."""
    max_list_size: int | None = None
    """The size limit of a list, in bytes of JSON, all its pages together; ``None``: no limit.

    For servers that are not trusted with all the memory of this process. It applies where a list is
    kept: in ``list()`` and the lists of an informer, streamed ones too. For ``iterate()``, which
    keeps none, it is the limit of a page. Later events of a watch are not counted.
    """
    reconnect_rate: float | None = None
    """Limit of informers per second that reconnect after their watches were lost.

    ``None``: 5, or one for every 20 informers if that is more, so that all of them have reconnected
    after 20 seconds. ``math.inf``: no limit. Watches that end at their own timeout do not count.
    """
    user_agent: str | None = None
    source: str = "Config"
    """The origin, for messages: a file and context, ``in-cluster``, a URL."""
    origin: Origin | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_kubeconfig(
        cls,
        document: str | bytes | Mapping[str, object],
        *,
        context: str | None = None,
        source: str = "kubeconfig",
        credential_plugin_policy: CredentialPluginPolicy = "DenyAll",
    ) -> Config:
        """Return the configuration of an untrusted kubeconfig: from a Secret, a response, a form.

        No plugin runs unless ``credential_plugin_policy`` allows it. The document must not name
        files, disable verification or impersonate a user; under an allowlist it must not set
        environment variables for the plugin either. Set those in code, with `dataclasses.replace`.
        Nothing else is read, and nothing is run. For the path of your own file, use
        `kinform.connect`.

        Args:
            document: YAML or JSON, or the values parsed from it.
            context: the context to use instead of the current one.
            source: its origin, for messages.
            credential_plugin_policy: the plugins that may run.

        Raises:
            ConfigError: it is not valid, or sets something it must not; names the key.
        """
        from kinform.rest.clientcmd import loading

        return loading.from_document(
            document,
            context=context,
            source=source,
            credential_plugin_policy=credential_plugin_policy,
        )

    @property
    def is_tls(self) -> bool:
        """True if the connection to the server uses TLS."""
        return self.server.lower().startswith("https://")

    def error(self, setting: str, message: str) -> ConfigError:
        """Return an error about ``setting``, under the name the user wrote.

        ``setting`` is the attribute path (``tls.ca_file``); for a value from a kubeconfig the
        error names that file and key instead.
        """
        place = self.origin
        if place is None:
            return ConfigError(message, source=self.source, key=setting)
        if (key := _CLUSTER_KEYS.get(setting)) is not None:
            key = f"{place.cluster_key}.{key}"
            return ConfigError(message, source=place.cluster_source, key=key)
        key = _USER_KEYS.get(setting, setting)
        return ConfigError(message, source=place.user_source, key=f"{place.user_key}.{key}")

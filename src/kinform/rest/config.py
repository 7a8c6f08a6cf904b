"""What kinform knows about one API server and the user who talks to it.

`Config` is a plain value: nothing is read or checked until a client is opened. Where it comes
from (kubeconfig, environment, in-cluster files) is decided in `kinform.rest.loading`; what is
made of it in `kinform.rest.tls`, `kinform.rest.auth` and `kinform.rest.proxy`. Whatever may hold
a secret is left out of every ``repr()``.
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
"""Which credential plugins may run, in the words of kubectl's ``credentialPluginPolicy``.

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
"""Far beyond what etcd can hold; what is larger is a mistake or an attack."""
ANSWER_TIMEOUT: Final = 600.0
"""Ten times as long as kube-apiserver works at an answer unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """How the server proves who it is, and which certificate we show it.

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
    """Tell the plugin in ``KUBERNETES_EXEC_INFO`` which cluster it is for."""
    interactive_mode: str = "IfAvailable"
    """``Never``, ``IfAvailable`` or ``Always``: whether the plugin may ask at the terminal."""
    cluster_extension: object = field(default=None, repr=False)
    """What the cluster's ``client.authentication.k8s.io/exec`` extension holds, passed on."""
    timeout: float = 60.0
    """How long one run may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """Act as somebody else (needs the ``impersonate`` right)."""

    user: str
    uid: str | None = None
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the two halves of a `Config` are written, so that errors can point there."""

    cluster_source: str
    """The file that holds the cluster's entry."""
    cluster_key: str
    """The way to it within the file, for example ``clusters[dev].cluster``."""
    user_source: str
    user_key: str
    is_file: bool = True
    """Whether the sources are files, and not what somebody calls a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One server, one user, and how to talk. ``repr()`` shows no secret."""

    server: str
    """The base URL, ``https://host:port/prefix``."""
    namespace: str = "default"
    """The namespace that namespaced resources use unless told otherwise."""
    tls: TlsConfig = TlsConfig()
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    """Wins over ``token``, which serves until the file can be read; re-read about every 50 s."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec_plugin: ExecPlugin | None = None
    credential_plugin_policy: CredentialPluginPolicy = "AllowAll"
    """Whether ``exec_plugin`` may run: a program that a file names is code that a file names."""
    impersonate: Impersonation | None = None
    proxy_url: str | None = field(default=None, repr=False)  # may hold a password
    """An ``http://`` or ``https://`` proxy; ``None``: what HTTPS_PROXY and NO_PROXY say."""
    compression: bool = True
    """Let the server compress large answers (never watches)."""
    connect_timeout: float = 15.0
    read_timeout: float | None = 60.0
    """Longest silence within an ordinary answer."""
    answer_timeout: float | None = ANSWER_TIMEOUT
    """Longest time for an ordinary answer, a whole list too, from asking for it to its last byte.

    Else a server that sends a byte now and then would be waited for without end. A request with a
    deadline of its own (``timeout``) has that instead; watches and logs have none.
    """
    max_object_size: int = MAX_OBJECT_SIZE
    """The largest object that is read, in bytes: an answer, a list's item or a watch's event."""
    max_list_size: int | None = None
    """The largest list that is taken, in bytes of JSON, all its pages together; ``None``: any.

    For servers that are not trusted with all the memory there is. It holds for what keeps a list:
    ``list()`` and the lists of an informer, streamed ones too. For ``iterate()``, which keeps none,
    it is the limit of a page. What watches bring later is not counted.
    """
    reconnect_rate: float | None = None
    """How many informers of a client may reconnect per second after their watches were lost.

    ``None``: 5, or one for every 20 informers if that is more, so that all of them are back after
    20 seconds. ``math.inf``: no limit. Watches that end at their own timeout are not counted.
    """
    user_agent: str | None = None
    source: str = "Config"
    """Where this came from, for messages: a file and context, ``in-cluster``, a URL."""
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
        """Return what a kubeconfig says that came from elsewhere: a Secret, an answer, a form.

        It is not trusted: no plugin runs unless ``credential_plugin_policy`` allows it, and it may
        name no files, switch off no verification and impersonate nobody. Under an allowlist it may
        set no environment variables for the plugin either. What you want of that is
        set in code, with `dataclasses.replace`. Nothing else is read, and nothing is run. The path
        of a file of your own goes to `kinform.connect` instead.

        Args:
            document: YAML or JSON, or what was read from it.
            context: the context to use instead of the current one.
            source: where it came from, for messages.
            credential_plugin_policy: which plugins may run.

        Raises:
            ConfigError: it is wrong, or wants what it may not; names the key.
        """
        from kinform.rest import loading

        return loading.from_document(
            document,
            context=context,
            source=source,
            credential_plugin_policy=credential_plugin_policy,
        )

    @property
    def is_tls(self) -> bool:
        """Whether the server is spoken to over TLS."""
        return self.server.lower().startswith("https://")

    def error(self, setting: str, message: str) -> ConfigError:
        """Return the error that blames ``setting`` under the name its author knows.

        ``setting`` is the way from here (``tls.ca_file``); for a value from a kubeconfig the
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

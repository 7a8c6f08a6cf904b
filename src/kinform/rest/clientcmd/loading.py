"""`load`: find the configuration to connect with and return it as a `Config`.

A configuration given by the caller is used alone. Without one, the first existing source is used:
the files in ``$KUBECONFIG``, else ``~/.kube/config``, else the service account of the pod. An
existing source that is invalid is an error, never a reason to try the next one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from kinform.errors import ConfigError, UsageError
from kinform.rest.auth import _plugin_policy, credentials
from kinform.rest.clientcmd import _files
from kinform.rest.clientcmd import kubeconfig as kubeconfigs
from kinform.rest.config import Config, CredentialPluginPolicy, TlsConfig
from kinform.rest.transport import proxy, tls

__all__ = ["SERVICE_ACCOUNT", "from_document", "load"]

log: Final = logging.getLogger(__name__)

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The folder into which the kubelet mounts a pod's token, CA and namespace."""

_ADVICE: Final = "pass a URL or the path of a kubeconfig, or set KUBECONFIG"
_URL_FORM: Final = "is not a URL like 'https://host:6443'"


def load(
    config: str | os.PathLike[str] | Config | None = None,
    *,
    context: str | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    namespace: str | None = None,
    credential_plugin_policy: CredentialPluginPolicy | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: str | os.PathLike[str] = SERVICE_ACCOUNT,
) -> Config:
    """Return the configuration to connect with, complete and checked.

    Blocks on the disk; on an event loop use `kinform.clock.offload`. Token, certificate
    and CA files are not read yet: they may change as long as the client is open.

    Args:
        config: a server's URL (``http://`` or ``https://``), the path of a kubeconfig, or a
            `Config`; ``None``: look for one.
        context: the context of the kubeconfig, instead of the current one.
        kubeconfig: the path of a kubeconfig, instead of ``config``.
        namespace: the default namespace, instead of the configured one.
        credential_plugin_policy: the plugins that may run, instead of the configured policy.
        environ: replaces the process's environment.
        service_account: the folder with the pod's credentials.

    Raises:
        ConfigError: if no configuration was found (it lists every source that was tried), or if
            it is invalid (it names the file and the key).
        UsageError: if the arguments exclude each other, or the policy is not valid.
    """
    environ = os.environ if environ is None else environ
    if config is not None and kubeconfig is not None:
        raise UsageError("give either config or kubeconfig, not both")
    given = config if config is not None else kubeconfig
    if isinstance(given, Config) or _is_url(given):
        if context is not None:
            raise UsageError("a context needs a kubeconfig; leave it out, or give a path")
        found = given if isinstance(given, Config) else Config(server=str(given), source="URL")
    elif given is not None:
        found = _from_path(str(Path(given).expanduser()), context)
    else:
        found = _look_around(context, environ, folder=Path(service_account))
    if namespace is not None:
        found = replace(found, namespace=namespace)
    if credential_plugin_policy is not None:
        found = replace(found, credential_plugin_policy=credential_plugin_policy)
        _plugin_policy.check_environment(found)
    found = _checked(found)
    _warn_of_readers(found)
    return found


def from_document(
    document: str | bytes | Mapping[str, object],
    *,
    context: str | None,
    source: str,
    credential_plugin_policy: CredentialPluginPolicy,
) -> Config:
    """Return the configuration of an untrusted kubeconfig; see `Config.from_kubeconfig`."""
    found = kubeconfigs.parse(document, source=source)
    if found.is_empty:
        raise ConfigError("has no clusters, users or contexts", source=source)
    config = found.config(context)
    advice = "an untrusted kubeconfig must not; set it in code if you want it"
    if config.tls.insecure_skip_verify:
        raise config.error("tls.insecure_skip_verify", f"switches off verification: {advice}")
    if config.impersonate is not None:
        raise config.error("impersonate", f"impersonates another user: {advice}")
    config = replace(config, credential_plugin_policy=credential_plugin_policy)
    checked = _checked(config)  # first, so that an invalid policy is reported as such
    _plugin_policy.check_environment(checked)
    return checked


def _is_url(given: object) -> bool:
    return isinstance(given, str) and given.lower().startswith(("http://", "https://"))


def _from_path(path: str, context: str | None) -> Config:
    try:
        found = kubeconfigs.read(path)
    except FileNotFoundError as exc:
        message = "does not exist; give the path of a kubeconfig, or a URL with http:// or https://"
        raise ConfigError(message, source=path) from exc
    if found.is_empty:
        raise ConfigError(
            "has no clusters, users or contexts; write a kubeconfig there, or give another",
            source=path,
        )
    return found.config(context)


def _look_around(context: str | None, environ: Mapping[str, str], *, folder: Path) -> Config:
    """Return the configuration found in the environment, or raise with everything tried."""
    reasons: list[str] = []
    found = _from_environment(context, environ, reasons=reasons)
    if found is None and context is None:  # only kubeconfigs have contexts
        found = _in_cluster(environ, folder, reasons=reasons)
    if found is None:
        raise ConfigError(f"no configuration found: {'; '.join(reasons)}; {_ADVICE}")
    return found


def _from_environment(
    context: str | None, environ: Mapping[str, str], *, reasons: list[str]
) -> Config | None:
    """Return the configuration of ``$KUBECONFIG`` or the home directory, or add to ``reasons``."""
    paths = [
        path for path in dict.fromkeys(environ.get("KUBECONFIG", "").split(os.pathsep)) if path
    ]
    if not paths:
        reasons.append("$KUBECONFIG is not set")
        home = environ.get("HOME") or environ.get("USERPROFILE")
        if not home:
            reasons.append("$HOME is not set")
            return None
        paths = [str(Path(home, ".kube", "config"))]
    parts: list[kubeconfigs.Kubeconfig] = []
    for path in paths:
        try:
            parts.append(kubeconfigs.read(path))
        except FileNotFoundError:
            reasons.append(f"{path} does not exist")
    merged = kubeconfigs.merge(parts)
    reasons += [
        f"{part.source} has no clusters, users or contexts" for part in parts if part.is_empty
    ]
    if merged.is_empty:
        return None
    try:
        return merged.config(context)
    except ConfigError as exc:
        if context or merged.current_context:
            raise
        reasons.append(str(exc))  # client-go, too: without a current context it is as if empty
        return None


def _in_cluster(environ: Mapping[str, str], folder: Path, *, reasons: list[str]) -> Config | None:
    """Return the service account of the pod we run in; ``None``: no pod, see ``reasons``."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    token, ca = str(folder / "token"), str(folder / "ca.crt")
    if not host or not port:
        name = "HOST" if not host else "PORT"
        reasons.append(f"in-cluster: $KUBERNETES_SERVICE_{name} is not set")
        return None
    if _files.signature(token) is None:
        reasons.append(f"in-cluster: {token} does not exist")
        return None
    if _files.signature(ca) is None:  # client-go, too, goes on; the system's CAs are trusted then
        log.warning("the pod has no CA file", extra={"path": ca})
        ca = ""
    return Config(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=environ.get("POD_NAMESPACE") or _pod_namespace(folder),
        tls=TlsConfig(ca_file=ca or None),
        token_file=token,
        source="in-cluster",
    )


def _pod_namespace(folder: Path) -> str:
    try:
        return _files.read_small(str(folder / "namespace")).decode().strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"


def _checked(config: Config) -> Config:
    """Return ``config`` with a normalized URL, after every check that needs no file."""
    config = replace(config, server=_server_url(config))
    tls.check(config)
    credentials.check(config)
    if config.proxy_url:
        proxy.proxy_for(config)
    return config


def _warn_of_readers(config: Config) -> None:
    """Warn about files with credentials that other users can read."""
    if config.origin is None or not config.origin.is_file:
        return
    has_secret = bool(config.token or config.password or config.tls.key_data)
    own = config.origin.user_source if has_secret else None
    for path in filter(None, (own, config.token_file, config.tls.key_file)):
        if _files.is_exposed(path):
            message = "%s holds credentials and can be read by other users; chmod it to 600"
            log.warning(message, path)


def _server_url(config: Config) -> str:
    """Return the server's URL without query, fragment and slash at the end (client-go's rules)."""
    text = config.server.strip()
    if "://" not in text:
        settings = config.tls
        secure = (
            settings.ca_data or settings.ca_file or settings.cert_data or settings.cert_file
        ) or settings.insecure_skip_verify
        text = f"{'https' if secure else 'http'}://{text}"
    parts = _split(text)
    if parts is None:
        raise config.error("server", _URL_FORM)
    if "@" in parts.netloc:
        message = "must hold no user name or password; set username and password, or a token"
        raise config.error("server", message)
    path = parts.path.rstrip("/")
    if config.token and path == f"/~{config.token}":
        path = ""  # as embedded servers write it for kubectl: we send the header, and show URLs
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _split(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL; ``None`` if it is not valid."""
    try:
        parts = urlsplit(text)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
            return None
    except ValueError:  # its message may hold a password; it ends here
        return None
    return parts if text.isprintable() and " " not in text else None

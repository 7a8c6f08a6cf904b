"""Users of the control plane: certificate users, service accounts, and their kubeconfigs."""

from __future__ import annotations

import base64
import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, final
from urllib.parse import quote

from kinform.clock import offload
from kinform.testing.controlplane._pki import KeyPair
from kinform.testing.controlplane._raw_api import RawApi, text_at
from kinform.testing.errors import ControlPlaneError

if TYPE_CHECKING:
    from kinform.rest.config import Config

__all__ = ["ServiceAccount", "User", "kubeconfig", "login", "write_new", "write_private"]

_TOKEN_LIFETIME: Final = 3600


def write_new(path: Path, data: bytes) -> None:
    """Write a small file that only this user can read, and that must not be there yet."""
    # A few kilobytes for the page cache: nothing to wait for, so it may happen on a loop.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NONBLOCK, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only this user can read, replacing an older one in one step."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    write_new(draft, data)
    draft.replace(path)


def login(pair: KeyPair) -> dict[str, str]:
    """Return the ``user`` entry of a kubeconfig for a client certificate."""
    return {
        "client-certificate-data": _base64(pair.cert_pem),
        "client-key-data": _base64(pair.key_pem),
    }


def kubeconfig(urls: Sequence[str], user: Mapping[str, str], *, ca_pem: bytes) -> bytes:
    """Return a kubeconfig with a context ``apiserver-N`` per URL; the first is current.

    It is written as JSON, which every reader of YAML reads.
    """
    names = [f"apiserver-{i}" for i in range(len(urls))]
    ca = _base64(ca_pem)
    clusters = [
        {"name": name, "cluster": {"server": url, "certificate-authority-data": ca}}
        for name, url in zip(names, urls, strict=True)
    ]
    contexts = [{"name": n, "context": {"cluster": n, "user": "user"}} for n in names]
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": [{"name": "user", "user": dict(user)}],
        "contexts": contexts,
        "current-context": names[0],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user of the control plane with a client certificate of its own.

    What it may do is up to RBAC: without a binding for its name or one of its groups, next to
    nothing. The repr holds no key.
    """

    name: str
    groups: Sequence[str]
    kubeconfig_path: Path
    """Readable by this operating system user alone; it goes with the control plane."""
    cert_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    config: Config = field(repr=False)
    """The connection of this user to apiserver 0."""


@final
class ServiceAccount:
    """A service account whose tokens can be revoked.

    Every token is bound to a Secret, and is worth nothing once that Secret is gone. All methods
    may be called from any loop.
    """

    def __init__(
        self,
        api: RawApi,
        *,
        namespace: str,
        name: str,
        token_path: Path,
        kubeconfig_path: Path,
        config: Config,
    ) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._secret: tuple[str, str] | None = None
        self.namespace: Final = namespace
        self.name: Final = name
        self.token_path: Final = token_path
        """A file that holds the newest token `token` returned, as a kubelet would keep it."""
        self.kubeconfig_path: Final = kubeconfig_path
        """A kubeconfig that reads its token from `token_path`."""
        self.config: Final = config
        """The connection of this account to apiserver 0, with the token in `token_path`."""

    def __repr__(self) -> str:
        return f"ServiceAccount({self.username!r})"

    @property
    def username(self) -> str:
        """The name RBAC and the audit log know it by."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    async def token(self) -> str:
        """Return a new token, valid for an hour unless revoked; `token_path` holds it as well."""
        return await offload(self.issue)

    async def revoke(self) -> None:
        """Make every token returned so far invalid; the next `token` is good again.

        The server remembers a token it has seen for up to ten seconds, so the 401 may take that
        long. A watch that runs is not checked again and goes on.
        """
        await offload(self._revoke)

    def create(self) -> None:
        """Create the account, unless it is there. Blocks."""
        path = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/serviceaccounts"
        body = {"metadata": {"name": self.name}}
        answer = self._api.request("POST", path, body=body)
        if answer.status not in (HTTPStatus.CREATED, HTTPStatus.CONFLICT):
            said = text_at(answer.json(), "message")
            raise ControlPlaneError(f"cannot create {self.username}: {said}")

    def issue(self) -> str:
        """Do what `token` does. Blocks."""
        with self._lock:
            if self._secret is None:
                self._secret = self._create_secret()
            name, uid = self._secret
            bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}
            spec = {"boundObjectRef": bound, "expirationSeconds": _TOKEN_LIFETIME}
            path = self._path("serviceaccounts", self.name, "token")
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            token = text_at(
                self._api.call("POST", path, body=request | {"spec": spec}), "status", "token"
            )
            write_private(self.token_path, token.encode())
            return token

    def _create_secret(self) -> tuple[str, str]:
        name = f"{self.name}-token-{secrets.token_hex(4)}"
        body = {"metadata": {"name": name}}
        created = self._api.call("POST", self._path("secrets"), body=body)
        return name, text_at(created, "metadata", "uid")

    def _revoke(self) -> None:
        with self._lock:
            if self._secret is not None:
                self._api.call("DELETE", self._path("secrets", self._secret[0]))
                self._secret = None

    def _path(self, *segments: str) -> str:
        return "/".join(
            ["/api/v1/namespaces", *(quote(part, safe="") for part in (self.namespace, *segments))]
        )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

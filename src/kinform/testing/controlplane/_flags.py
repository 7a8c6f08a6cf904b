"""Command lines of the servers: pure functions from facts to flags.

``share_ports`` lets a server listen on a port that `kinform.testing.controlplane._ports.Ports`
holds for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinform.testing.controlplane._ports import LOOPBACK

__all__ = [
    "ETCD_NAME",
    "KeyFiles",
    "apiserver_flags",
    "controller_manager_flags",
    "etcd_flags",
    "restore_flags",
]

ETCD_NAME: Final = "kinform"
SERVICE_ACCOUNT_CONTROLLER: Final = "serviceaccount-controller"
_ISSUER: Final = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """The certificates and keys that all servers of one control plane share."""

    folder: Path

    @property
    def ca_cert(self) -> Path:
        """The certificate authority of all servers and clients."""
        return self.folder / "ca.crt"

    @property
    def server_cert(self) -> Path:
        """The servers' certificate."""
        return self.folder / "server.crt"

    @property
    def server_key(self) -> Path:
        """The private key of `server_cert`."""
        return self.folder / "server.key"

    @property
    def admin_cert(self) -> Path:
        """The harness's own client certificate."""
        return self.folder / "admin.crt"

    @property
    def admin_key(self) -> Path:
        """The private key of `admin_cert`."""
        return self.folder / "admin.key"

    @property
    def etcd_ca_cert(self) -> Path:
        """The authority of etcd alone: no certificate of a user leads into etcd."""
        return self.folder / "etcd-ca.crt"

    @property
    def etcd_cert(self) -> Path:
        """The certificate of etcd, for clients and peers."""
        return self.folder / "etcd.crt"

    @property
    def etcd_key(self) -> Path:
        """The private key of `etcd_cert`."""
        return self.folder / "etcd.key"

    @property
    def etcd_client_cert(self) -> Path:
        """The client certificate of the apiservers and the harness, for etcd."""
        return self.folder / "etcd-client.crt"

    @property
    def etcd_client_key(self) -> Path:
        """The private key of `etcd_client_cert`."""
        return self.folder / "etcd-client.key"

    @property
    def service_account_key(self) -> Path:
        """The key that signs the tokens of service accounts."""
        return self.folder / "service-account.key"

    @property
    def service_account_public_key(self) -> Path:
        """The key that verifies the tokens of service accounts."""
        return self.folder / "service-account.pub"


def etcd_flags(
    *, data: Path, client_port: int, peer_port: int, keys: KeyFiles, share_ports: bool
) -> list[str]:
    """Return the flags of a one-member etcd that forgets on power loss, and is fast for that.

    Every user of the machine can connect to a port on loopback, so both ports want a certificate.
    """
    client, peer = f"https://{LOOPBACK}:{client_port}", f"https://{LOOPBACK}:{peer_port}"
    return [
        f"--name={ETCD_NAME}",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={ETCD_NAME}={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={keys.etcd_ca_cert}",
        f"--cert-file={keys.etcd_cert}",
        f"--key-file={keys.etcd_key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={keys.etcd_ca_cert}",
        f"--peer-cert-file={keys.etcd_cert}",
        f"--peer-key-file={keys.etcd_key}",
        "--tls-min-version=TLS1.2",
        "--unsafe-no-fsync",
        "--log-level=warn",
        # Without it the bookmarks of quiet kinds do not advance.
        "--watch-progress-notify-interval=5s",
        *(["--socket-reuse-port"] if share_ports else []),
    ]


def restore_flags(snapshot: Path, *, data: Path, peer_port: int) -> list[str]:
    """Return the arguments of etcdutl that turn ``snapshot`` into a new data folder."""
    peer = f"https://{LOOPBACK}:{peer_port}"
    return [
        "snapshot",
        "restore",
        str(snapshot),
        f"--data-dir={data}",
        f"--name={ETCD_NAME}",
        f"--initial-cluster={ETCD_NAME}={peer}",
        f"--initial-advertise-peer-urls={peer}",
    ]


def apiserver_flags(
    *,
    port: int,
    etcd_port: int,
    keys: KeyFiles,
    share_ports: bool,
    controllers: Sequence[str] = (),
    feature_gates: Mapping[str, bool] | None = None,
    extra: Sequence[str] = (),
) -> list[str]:
    """Return the flags of a kube-apiserver; ``extra`` come last and win."""
    flags = [
        f"--etcd-servers=https://{LOOPBACK}:{etcd_port}",
        f"--etcd-cafile={keys.etcd_ca_cert}",
        f"--etcd-certfile={keys.etcd_client_cert}",
        f"--etcd-keyfile={keys.etcd_client_key}",
        "--etcd-compaction-interval=0",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--permit-port-sharing={str(share_ports).lower()}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        f"--client-ca-file={keys.ca_cert}",
        f"--tls-cert-file={keys.server_cert}",
        f"--tls-private-key-file={keys.server_key}",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={keys.service_account_public_key}",
        f"--service-account-signing-key-file={keys.service_account_key}",
        "--allow-privileged",
        # Else a stopping apiserver waits a minute for its clients to end their watches.
        "--shutdown-watch-termination-grace-period=1s",
    ]
    if SERVICE_ACCOUNT_CONTROLLER not in controllers:
        # The plugin refuses pods until that controller has made the namespace's account.
        flags.append("--disable-admission-plugins=ServiceAccount")
    if feature_gates:
        gates = (f"{name}={str(on).lower()}" for name, on in sorted(feature_gates.items()))
        flags.append(f"--feature-gates={','.join(gates)}")
    return [*flags, *extra]


def controller_manager_flags(
    *,
    port: int,
    kubeconfig: Path,
    keys: KeyFiles,
    share_ports: bool,
    controllers: Sequence[str],
) -> list[str]:
    """Return the flags of a kube-controller-manager that runs ``controllers`` and no others."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--permit-port-sharing={str(share_ports).lower()}",
        f"--tls-cert-file={keys.server_cert}",
        f"--tls-private-key-file={keys.server_key}",
        "--leader-elect=false",
        f"--root-ca-file={keys.ca_cert}",
        f"--service-account-private-key-file={keys.service_account_key}",
    ]

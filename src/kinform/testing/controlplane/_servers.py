"""The processes of one control plane: started in order, waited for, stopped, started again.

Everything here blocks; `kinform.testing.ControlPlane` is the way in for asyncio. One lock covers
every change, so that any thread may call; `Servers.close` may be called while another thread is
still waiting for a start, which then fails.
"""

from __future__ import annotations

import functools
import os
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from kinform.errors import UsageError
from kinform.testing.controlplane import _binaries, _flags, _pki, users
from kinform.testing.controlplane._ports import LOOPBACK, Ports
from kinform.testing.controlplane._raw_api import RawApi
from kinform.testing.controlplane._supervisor import Server, Supervisor
from kinform.testing.controlplane.etcd import EtcdGateway, Snapshot
from kinform.testing.errors import ControlPlaneError
from kinform.testing.relay import RelayThread

__all__ = ["Options", "Servers"]

_POLL: Final = 0.05
_GRACE: Final = 15.0
"""Seconds an apiserver may take for an orderly end before it is killed."""
_PORT_ATTEMPTS: Final = 3
ADMIN: Final = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The servers to start, and their options."""

    apiservers: int = 1
    controllers: Sequence[str] = ()
    apiserver_flags: Sequence[str] = ()
    feature_gates: Mapping[str, bool] = field(default_factory=dict[str, bool])
    etcd_relay: bool = False
    timeout: float = 60.0


@final
class _PortTakenError(ControlPlaneError):
    """Another process got the port between our choice and the server's start."""


@final
class Servers:
    """etcd, the apiservers and, if asked for, the controller manager."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._closed_logs: dict[str, str] | None = None
        self._supervisor: Supervisor | None = None
        self._ports = Ports()
        self._relays: list[RelayThread] = []
        self._data_folders = 0
        self._all: list[Server] = []
        self._apiservers: list[Server] = []
        self._apiserver_ports: list[int] = []
        self._etcd_ports = (0, 0)
        self._controller_port = 0

    # What the rest of the harness builds on; all of it is there once `start` returned.

    authority: _pki.CertificateAuthority
    keys: _flags.KeyFiles
    context: ssl.SSLContext
    """Trusts this control plane and shows the administrator's certificate."""
    etcd_context: ssl.SSLContext
    """Trusts etcd and shows the certificate of its clients."""

    @property
    def folder(self) -> Path:
        """The private folder, which goes with the servers."""
        return self._running().folder

    @property
    def urls(self) -> list[str]:
        """The address of each apiserver."""
        self._running()
        return [f"https://{LOOPBACK}:{port}" for port in self._apiserver_ports]

    def api(self, i: int) -> RawApi:
        """Return the way to apiserver ``i``, as the administrator."""
        return RawApi(self._apiserver_ports[i], context=self.context)

    def start(self) -> None:
        """Start everything; all of it serves when this returns.

        Raises:
            ControlPlaneUnavailable: A binary is missing or of the wrong version.
            ControlPlaneError: A server does not come up; with the tail of its log.
        """
        with self._lock:
            if self._supervisor is not None:
                raise UsageError("a control plane is started once; make another one")
            self._binaries = {name: _binaries.find(name) for name in self._needed()}
            self._supervisor = Supervisor()
            try:
                self._write_keys()
                self._start_on_free_ports()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Kill everything and remove every trace. Idempotent; the logs stay readable."""
        self._closing.set()
        with self._lock:
            self._closed_logs = self.log_tails()
            self._close_relays()
            if self._supervisor is not None:
                self._supervisor.close()
            self._ports.close()

    def finish(self) -> str:
        """Do what `close` does; return the `crash_report` of the moment before it."""
        self._closing.set()  # the thread that has the lock, and waits for a server, gives up
        with self._lock:
            try:
                return self.crash_report()
            finally:
                self.close()

    def crash_report(self) -> str:
        """Return a report on the servers that ended on their own; empty if none did."""
        with self._lock:
            return "\n".join(_obituary(server) for server in self._all if server.has_crashed)

    def log_tails(self) -> dict[str, str]:
        """Return the end of the log of each apiserver, and of each crashed server."""
        if self._closed_logs is not None:
            return self._closed_logs
        shown = [s for s in self._all if s in self._apiservers or s.has_crashed]
        return {server.name: server.log_tail() for server in shown}

    # Faults. Each index is that of an apiserver.

    def signal_apiserver(self, i: int, number: signal.Signals) -> None:
        """Send a signal; nothing happens to an apiserver that is down."""
        self._apiservers[i].signal(number)

    def kill_apiserver(self, i: int) -> None:
        """End apiserver ``i`` without a last word to its clients."""
        with self._lock:
            self._apiservers[i].stop()

    def start_apiserver(self, i: int) -> None:
        """Start apiserver ``i`` on its old port and wait until it is ready."""
        with self._lock:
            self._launch_and_await([i])

    def restart_apiservers(self, indices: Sequence[int] | None = None) -> None:
        """Restart some apiservers in good order, all at once; None: those that run."""
        with self._lock:
            chosen = self._running_apiservers() if indices is None else indices
            for i in chosen:
                self._apiservers[i].signal(signal.SIGTERM)
            for i in chosen:
                self._apiservers[i].stop(grace=_GRACE)
            self._launch_and_await(chosen)

    def delay_etcd(self, i: int, seconds: float) -> None:
        """Hold back what etcd tells apiserver ``i``."""
        self._relays[i].delay(seconds)

    def compact(self, *, restart: bool) -> int:
        """Compact etcd, see `EtcdGateway.compact`; restart the apiservers that run, if asked to."""
        with self._lock:
            revision = self._gateway().compact()
            if restart:
                self.restart_apiservers()
            return revision

    def snapshot(self) -> Snapshot:
        """Save the whole of etcd."""
        with self._lock:
            self._data_folders += 1
            path = self.folder / f"snapshot-{self._data_folders}.db"
            self._gateway().save_snapshot(path)
            return Snapshot(path, self._snapshot_revision(path))

    def restore(self, snapshot: Snapshot) -> None:
        """Bring etcd back to ``snapshot``; apiservers that were down stay down."""
        with self._lock:
            running = self._running_apiservers()
            for server in reversed(self._all):
                server.stop()
            self._data_folders += 1
            restore = _flags.restore_flags(
                snapshot.path, data=self._data(), peer_port=self._etcd_ports[1]
            )
            self._etcdutl(*restore)
            self._launch_etcd()
            self._launch_and_await(running)
            self._launch_controllers()

    # Starting.

    def _needed(self) -> Iterator[str]:
        yield "etcd"
        yield "kube-apiserver"
        if self._options.controllers:
            yield "kube-controller-manager"

    def _write_keys(self) -> None:
        folder = self.folder
        self.authority = _pki.CertificateAuthority()
        self.keys = keys = _flags.KeyFiles(folder)
        server, account = self.authority.server("kube-apiserver"), _pki.private_key()
        admin = self.authority.client(ADMIN, ["system:masters"])
        for path, data in (
            (keys.ca_cert, self.authority.cert_pem),
            (keys.server_cert, server.cert_pem),
            (keys.server_key, server.key_pem),
            (keys.admin_cert, admin.cert_pem),
            (keys.admin_key, admin.key_pem),
            (keys.service_account_key, _pki.private_key_pem(account)),
            (keys.service_account_public_key, _pki.public_key_pem(account)),
        ):
            users.write_private(path, data)
        self.admin = admin
        self.context = ssl.create_default_context(cafile=keys.ca_cert)
        self.context.load_cert_chain(keys.admin_cert, keys.admin_key)
        self._write_etcd_keys()

    def _write_etcd_keys(self) -> None:
        """Give etcd an authority of its own: user certificates must not be valid for etcd."""
        keys, authority = self.keys, _pki.CertificateAuthority("kinform-testing-etcd")
        server, client = authority.peer("etcd"), authority.client("etcd-client")
        for path, data in (
            (keys.etcd_ca_cert, authority.cert_pem),
            (keys.etcd_cert, server.cert_pem),
            (keys.etcd_key, server.key_pem),
            (keys.etcd_client_cert, client.cert_pem),
            (keys.etcd_client_key, client.key_pem),
        ):
            users.write_private(path, data)
        self.etcd_context = ssl.create_default_context(cafile=keys.etcd_ca_cert)
        self.etcd_context.load_cert_chain(keys.etcd_client_cert, keys.etcd_client_key)

    def _start_on_free_ports(self) -> None:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._take_ports()
            try:
                self._launch_etcd()
                self._open_relays()
                self._launch_and_await(range(self._options.apiservers))
                self._launch_controllers()
            except _PortTakenError:
                if attempt == _PORT_ATTEMPTS:
                    raise
                for server in self._all:
                    server.stop()
                self._data_folders += 1
            else:
                return

    def _take_ports(self) -> None:
        self._ports.close()
        count = self._options.apiservers
        self._etcd_ports = (self._ports.take(), self._ports.take())
        self._apiserver_ports = [self._ports.take() for _ in range(count)]
        self._controller_port = self._ports.take()
        supervisor = self._running()
        self._etcd = supervisor.server("etcd")
        self._apiservers = [supervisor.server(f"kube-apiserver-{i}") for i in range(count)]
        self._controllers = supervisor.server("kube-controller-manager")
        self._all = [self._etcd, *self._apiservers, self._controllers]

    def _launch_etcd(self) -> None:
        client_port, peer_port = self._etcd_ports
        arguments = _flags.etcd_flags(
            data=self._data(),
            client_port=client_port,
            peer_port=peer_port,
            keys=self.keys,
            share_ports=self._ports.are_held,
        )
        self._spawn(self._etcd, arguments, binary="etcd")
        self._await(self._etcd, self._gateway().is_ready)

    def _open_relays(self) -> None:
        self._close_relays()
        for _ in range(self._options.apiservers if self._options.etcd_relay else 0):
            relay = RelayThread(LOOPBACK, self._etcd_ports[0])
            relay.start()
            self._relays.append(relay)

    def _close_relays(self) -> None:
        while self._relays:
            self._relays.pop().close()

    def _launch_and_await(self, indices: Sequence[int]) -> None:
        for i in indices:
            self._launch_apiserver(i)
        for i in indices:
            self._await_apiserver(i)

    def _launch_apiserver(self, i: int) -> None:
        options = self._options
        arguments = _flags.apiserver_flags(
            port=self._apiserver_ports[i],
            etcd_port=self._relays[i].port if self._relays else self._etcd_ports[0],
            keys=self.keys,
            share_ports=self._ports.are_held,
            controllers=options.controllers,
            feature_gates=options.feature_gates,
            extra=options.apiserver_flags,
        )
        self._spawn(self._apiservers[i], arguments, binary="kube-apiserver")

    def _await_apiserver(self, i: int) -> None:
        api = self.api(i)
        # `default` is created after /readyz turns ok, and tests expect it.
        for path in ("/readyz", "/api/v1/namespaces/default"):
            self._await(self._apiservers[i], functools.partial(api.is_ok, path))

    def _launch_controllers(self) -> None:
        if not self._options.controllers:
            return
        kubeconfig = self.folder / "controller-manager.kubeconfig"
        users.write_private(
            kubeconfig,
            users.kubeconfig(self.urls, users.login(self.admin), ca_pem=self.authority.cert_pem),
        )
        arguments = _flags.controller_manager_flags(
            port=self._controller_port,
            kubeconfig=kubeconfig,
            keys=self.keys,
            share_ports=self._ports.are_held,
            controllers=self._options.controllers,
        )
        self._spawn(self._controllers, arguments, binary="kube-controller-manager")
        api = RawApi(self._controller_port, context=self.context)
        self._await(self._controllers, functools.partial(api.is_ok, "/healthz"))

    def _spawn(self, server: Server, arguments: Sequence[str], *, binary: str) -> None:
        folder = str(self.folder)
        # Nothing of the user's environment configures a server (ETCD_NAME, proxies, GODEBUG).
        env = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder}
        server.start([str(self._binaries[binary]), *arguments], env=env)

    def _await(self, server: Server, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._options.timeout
        while not is_ready():
            if server.has_crashed:
                taken = "address already in use" in server.log_tail()
                raise (_PortTakenError if taken else ControlPlaneError)(_obituary(server))
            if self._closing.wait(_POLL):
                raise ControlPlaneError(f"closed while {server.name} was starting")
            if time.monotonic() > deadline:
                waited = f"{server.name} is not ready after {self._options.timeout:g} s"
                raise ControlPlaneError(f"{waited}; the end of its log:\n{server.log_tail()}")

    # Small things.

    def _running(self) -> Supervisor:
        if self._supervisor is None:
            raise UsageError("the control plane is not started; use `async with`")
        if self._closing.is_set():
            raise UsageError("the control plane is closed")
        return self._supervisor

    def _running_apiservers(self) -> list[int]:
        return [i for i, server in enumerate(self._apiservers) if server.is_running]

    def _gateway(self) -> EtcdGateway:
        return EtcdGateway(self._etcd_ports[0], context=self.etcd_context)

    def _data(self) -> Path:
        return self.folder / f"etcd-{self._data_folders}"

    def _snapshot_revision(self, path: Path) -> int:
        status = self._etcdutl("snapshot", "status", str(path), "--write-out=fields")
        return _field(status, "Revision")

    def _etcdutl(self, *arguments: str) -> str:
        run = subprocess.run(
            [_binaries.find("etcdutl"), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise ControlPlaneError(f"etcdutl {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout


def _field(text: str, name: str) -> int:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip().strip('"') == name:
            return int(value)
    raise ControlPlaneError(f"etcdutl printed no {name}")


def _obituary(server: Server) -> str:
    return (
        f"{server.name} ended with code {server.poll()}; the end of its log:\n{server.log_tail()}"
    )

"""A real control plane on loopback: etcd, kube-apiserver, and operations on them for tests.

`ControlPlane` is the asyncio interface of `kinform.testing.controlplane._servers`. It belongs to no
event loop: blocking calls run in a thread, so one control plane serves tests on different loops.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import re
import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, final

from kinform.clock import offload
from kinform.errors import UsageError
from kinform.tasks import finish
from kinform.testing.controlplane import _servers, users
from kinform.testing.controlplane._pki import KeyPair
from kinform.testing.controlplane._raw_api import RawApi
from kinform.testing.controlplane.etcd import Snapshot
from kinform.testing.controlplane.users import ServiceAccount, User
from kinform.testing.errors import ControlPlaneError

if TYPE_CHECKING:
    from kinform.client import Client
    from kinform.rest.config import Config

__all__ = ["ControlPlane", "started_since"]

_LAG_LIMIT: Final = 40.0
"""etcd's client gives a silent connection up after 30 + 10 seconds."""


@final
class ControlPlane:
    """A real etcd and kube-apiserver, started for tests and removed after them.

    Every server listens on a loopback port of its own and lives in a private folder. RBAC is on
    and the certificate authority is new each time. However this process ends, SIGKILL included,
    the servers end and the folder is removed.

    Methods may be called from any loop and any thread, and wait for each other. A method that
    was cancelled has not begun, or goes on in the background until it is done. A caller that is
    cancelled while the block begins or ends waits until all servers have ended; the end of the
    block does not wait for servers that are still being started.

    Args:
        apiservers: How many apiservers share the etcd.
        controllers: What kube-controller-manager runs, for example
            ``["garbage-collector-controller", "namespace-controller"]``. Empty: it is not
            started, owners do not cascade and deleted namespaces stay ``Terminating``.
        apiserver_flags: More flags for every apiserver, as ``--name=value``; they win.
        feature_gates: Feature gates of the apiservers.
        etcd_relay: Put a relay between etcd and each apiserver, which `lag` needs; None: where
            there are several apiservers.
        timeout: Seconds each server may take to become ready.

    Example:
        >>> async def main() -> None:
        ...     async with ControlPlane() as cp, cp.connect() as client:
        ...         await client.resource("v1/pods").list()

    Raises:
        UsageError: An option is invalid.
    """

    def __init__(
        self,
        *,
        apiservers: int = 1,
        controllers: Sequence[str] = (),
        apiserver_flags: Sequence[str] = (),
        feature_gates: Mapping[str, bool] | None = None,
        etcd_relay: bool | None = None,
        timeout: float = 60.0,
    ) -> None:
        if apiservers < 1:
            raise UsageError(f"apiservers={apiservers!r}: at least one is needed")
        for name, value in (("controllers", controllers), ("apiserver_flags", apiserver_flags)):
            if isinstance(value, str):
                raise UsageError(f"{name} is a sequence of strings, not {value!r}")
        self._has_relay: Final = apiservers > 1 if etcd_relay is None else etcd_relay
        self._servers: Final = _servers.Servers(
            _servers.Options(
                apiservers=apiservers,
                controllers=tuple(controllers),
                apiserver_flags=tuple(apiserver_flags),
                feature_gates=dict(feature_gates or {}),
                etcd_relay=self._has_relay,
                timeout=timeout,
            )
        )
        self._admin: User | None = None
        self._numbers = itertools.count()
        self._started_at = 0.0

    # Life.

    async def __aenter__(self) -> Self:
        try:
            await offload(self.start)
        except asyncio.CancelledError:
            await finish(offload(self.close))
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        crashed = await finish(offload(self._servers.finish))
        if not crashed:
            return
        error = exc_info[1]
        if not isinstance(error, BaseException):
            raise ControlPlaneError(crashed)
        error.add_note(crashed)

    def start(self) -> None:
        """Start every server; all are ready when this returns. Blocks: ``async with`` does not.

        Raises:
            ControlPlaneUnavailable: A binary is missing or of the wrong version.
            ControlPlaneError: A server does not come up; with the tail of its log.
        """
        self._started_at = time.monotonic()
        _recent.append(self)
        self._servers.start()
        try:
            self._admin = self._certificate_user(
                _servers.ADMIN, ["system:masters"], pair=self._servers.admin
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End every server and remove every trace. Blocks; idempotent."""
        self._servers.close()

    @property
    def started_at(self) -> float:
        """When `start` was called (monotonic); 0 before that."""
        return self._started_at

    def log_tails(self) -> dict[str, str]:
        """Return the last lines of each apiserver's log by name, also after the end.

        Another server is in it only if it ended on its own.
        """
        return self._servers.log_tails()

    # Ways in.

    @property
    def url(self) -> str:
        """The address of apiserver 0."""
        return self.urls[0]

    @property
    def urls(self) -> list[str]:
        """The address of each apiserver; it stays the same when one is started again."""
        return self._servers.urls

    @property
    def raw_apis(self) -> list[RawApi]:
        """A blocking way to each apiserver, as the administrator, for fixtures and set-up."""
        return [self._servers.api(i) for i in range(len(self.urls))]

    @property
    def kubeconfig_path(self) -> Path:
        """The administrator's kubeconfig; its context ``apiserver-N`` is apiserver N."""
        return self._administrator().kubeconfig_path

    @property
    def config(self) -> Config:
        """The administrator's way to apiserver 0."""
        return self._administrator().config

    def connect(self, user: User | ServiceAccount | None = None, *, apiserver: int = 0) -> Client:
        """Return a client, to be entered with ``async with``; the administrator's by default.

        A service account connects with its newest token.
        """
        import kinform

        config = (user or self._administrator()).config
        return kinform.connect(dataclasses.replace(config, server=self.urls[apiserver]))

    def user(self, name: str, groups: Sequence[str] = ()) -> User:
        """Return a user with a new client certificate, with no more rights than RBAC gives it.

        Nothing is created on the server: two users of one name are the same to it.
        """
        pair = self._servers.authority.client(name, groups)
        return self._certificate_user(name, groups, pair=pair)

    async def service_account(self, namespace: str, name: str) -> ServiceAccount:
        """Create a service account, unless it is there, and return it with a first token.

        Raises:
            ControlPlaneError: The server refuses, for example for want of the namespace.
        """
        return await offload(self._create_service_account, namespace, name)

    # Faults.

    def pause(self, apiserver: int = 0) -> None:
        """Freeze an apiserver (SIGSTOP): connections stay open, and silent, until `resume`."""
        self._servers.signal_apiserver(self._index(apiserver), signal.SIGSTOP)

    def resume(self, apiserver: int = 0) -> None:
        """Let a frozen apiserver continue."""
        self._servers.signal_apiserver(self._index(apiserver), signal.SIGCONT)

    async def kill_apiserver(self, apiserver: int = 0) -> None:
        """Kill an apiserver (SIGKILL); its port refuses connections until `start_apiserver`."""
        await offload(self._servers.kill_apiserver, self._index(apiserver))

    async def start_apiserver(self, apiserver: int = 0) -> None:
        """Start a killed apiserver again, on its old port; it is ready when this returns.

        Raises:
            ControlPlaneError: It is running, or does not come up.
        """
        await offload(self._servers.start_apiserver, self._index(apiserver))

    async def restart_apiserver(self, apiserver: int = 0) -> None:
        """Stop an apiserver cleanly and start it again, on its old port.

        Its watches end, and every older resourceVersion is 410 to a watch from then on.
        """
        await offload(self._servers.restart_apiservers, [self._index(apiserver)])

    async def compact(self, *, restart: bool = True) -> int:
        """Expire every older resourceVersion and continue token; return the oldest one left.

        etcd alone is not enough: apiservers serve old versions from memory. So those that run
        are restarted, unless ``restart`` is False.
        """
        return await offload(self._servers.compact, restart=restart)

    def lag(self, apiserver: int, seconds: float) -> None:
        """Delay an apiserver's view of etcd by ``seconds`` from now on; 0 ends the delay.

        Its watch cache falls behind: watches are late, and reads that take any version
        (``resourceVersion=0``) are stale, while other apiservers are fresh. Its writes and
        consistent reads take that much longer. At 0 all that was held back arrives at once.

        Raises:
            UsageError: ``seconds`` is 40 or more, where the apiserver would drop the connection,
                or the control plane was made without ``etcd_relay``.
        """
        if not 0 <= seconds < _LAG_LIMIT:
            raise UsageError(f"a lag of {seconds!r} s: it is 0 or more, and less than 40")
        if not self._has_relay:
            raise UsageError("lag() needs ControlPlane(etcd_relay=True)")
        self._servers.delay_etcd(self._index(apiserver), seconds)

    async def snapshot(self) -> Snapshot:
        """Save the whole of etcd, as a backup would."""
        return await offload(self._servers.snapshot)

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore the whole of etcd from ``snapshot``: later writes are lost.

        Every server is stopped for it; those that ran are ready again when this returns. The
        resourceVersion goes backwards, and versions will be given out a second time.
        """
        await offload(self._servers.restore, snapshot)

    # Internals.

    def _index(self, apiserver: int) -> int:
        count = len(self.urls)
        if not 0 <= apiserver < count:
            raise UsageError(f"no apiserver {apiserver!r}: this control plane has {count}")
        return apiserver

    def _administrator(self) -> User:
        if self._admin is None:
            raise UsageError("the control plane is not started; use `async with`")
        return self._admin

    def _certificate_user(self, name: str, groups: Sequence[str], *, pair: KeyPair) -> User:
        from kinform.rest.config import Config, TlsConfig

        ca_pem = self._servers.authority.cert_pem
        path = self._private_path(f"{name}.kubeconfig")
        users.write_new(path, users.kubeconfig(self.urls, users.login(pair), ca_pem=ca_pem))
        tls = TlsConfig(ca_data=ca_pem, cert_data=pair.cert_pem, key_data=pair.key_pem)
        return User(
            name=name,
            groups=tuple(groups),
            kubeconfig_path=path,
            cert_pem=pair.cert_pem,
            key_pem=pair.key_pem,
            config=Config(server=self.url, tls=tls, source=f"ControlPlane, user {name!r}"),
        )

    def _create_service_account(self, namespace: str, name: str) -> ServiceAccount:
        from kinform.rest.config import Config, TlsConfig

        token_path = self._private_path(f"{namespace}-{name}.token")
        path = token_path.with_suffix(".kubeconfig")
        ca_pem = self._servers.authority.cert_pem
        entry = {"tokenFile": str(token_path)}
        users.write_private(path, users.kubeconfig(self.urls, entry, ca_pem=ca_pem))
        account = ServiceAccount(
            self._servers.api(0),
            namespace=namespace,
            name=name,
            token_path=token_path,
            kubeconfig_path=path,
            config=Config(
                server=self.url,
                tls=TlsConfig(ca_data=ca_pem),
                token_file=str(token_path),
                source=f"ControlPlane, service account {namespace}/{name}",
            ),
        )
        account.create()
        account.issue()
        return account

    def _private_path(self, name: str) -> Path:
        safe = re.sub(r"[^\w.-]", "_", name)
        return self._servers.folder / f"user-{next(self._numbers)}-{safe}"


_recent: Final[deque[ControlPlane]] = deque(maxlen=8)


def started_since(moment: float) -> list[ControlPlane]:
    """Return the control planes started after ``moment`` (monotonic), ended ones too.

    Only the last eight of this process are remembered.
    """
    return [plane for plane in _recent if plane.started_at >= moment]

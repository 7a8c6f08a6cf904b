"""`APIServer`: the public class of the embedded API server."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, final

import yaml

from kinform.apiserver import _arguments
from kinform.apiserver import _recorded as data
from kinform.apiserver._cluster import Cluster
from kinform.apiserver.authn.identity import (
    Identities,
    Login,
    RequestUser,
    service_account,
    with_implied_groups,
)
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.faults.kinds import Fault, Stale
from kinform.apiserver.faults.plan import FaultPlan
from kinform.apiserver.http import HttpServer
from kinform.apiserver.registry import system_objects
from kinform.apiserver.serializer import protobuf
from kinform.apiserver.storage.versioned_store import RevisionExpired
from kinform.clock import offload
from kinform.errors import UsageError
from kinform.tasks import finish

if TYPE_CHECKING:
    from kinform.apiserver.storage.journal import Journal
    from kinform.client import Client

__all__ = ["APIServer"]


@final
class APIServer:
    """An API server in this process, on a loopback port.

    It behaves as kube-apiserver 1.36; ``docs/apiserver.md`` lists the differences. There is no
    scheduler and no kubelet: pods stay as clients create them. Objects are kept in memory, and
    with ``data`` in a file as well.

    Args:
        port: The port to listen on; 0: any free port; None: no port. The only clients are then
            those of `connect`, which need no sockets and also run under virtual time.
        token: The bearer token that clients need; None: a random one.
        history: The number of changes of each resource that are remembered, for watches that
            begin in the past.
        seed: Makes uids and generated names reproducible.
        data: A file that keeps all objects; it is created if it does not exist. Every answered
            write is in it, even if the server is killed. A later server with the same file
            continues at the same revision; older watches get a 410. One server at a time can use
            the file.
        faults: The faults to inject from the start.
        rbac: Authorize the users of `user` and `service_account` by roles and bindings. The
            server's own token still allows everything.

    Raises:
        UsageError: an argument is invalid.

    Example:
        >>> async def main() -> None:
        ...     async with APIServer() as server, server.connect() as client:
        ...         await client.resource("v1/namespaces").list()
    """

    def __init__(
        self,
        *,
        port: int | None = 0,
        token: str | None = None,
        history: int = 10_000,
        seed: int | None = None,
        data: str | os.PathLike[str] | None = None,
        faults: FaultPlan | None = None,
        rbac: bool = False,
    ) -> None:
        _arguments.check_port(port)
        _arguments.check_token(token)
        _arguments.check_faults(faults)
        self._data = data
        self._has_rbac = rbac
        self.faults: FaultPlan = FaultPlan() if faults is None else faults
        """The fault plan of the server: see `kinform.apiserver.faults`."""
        self._lag: Fault | None = None
        self._asked_port = port
        self._port = 0
        self._history = history
        self._seed = seed
        self.token: str = secrets.token_urlsafe(24) if token is None else token
        """The bearer token of clients."""
        self._application: Application | None = None
        self._http: HttpServer | None = None
        self._journal: Journal | None = None
        self._state = "not started"

    def __repr__(self) -> str:
        if self._state != "running":
            return f"<APIServer, {self._state}>"
        where = "without a port" if self._asked_port is None else f"at {self.url}"
        return f"<APIServer {where}, running>"

    async def __aenter__(self) -> Self:
        if self._application is not None:
            raise UsageError("an APIServer can be started once; make another one")
        await offload(preload)
        if self._has_rbac:
            await offload(system_objects.preload)
        cluster = Cluster(history=self._history, seed=self._seed)
        if self._data is not None:
            self._journal = await _journal(self._data, cluster)
        try:
            await self._start(cluster)
        except BaseException:
            self.faults.stop()
            await finish(self._close())
            raise
        self._state = "running"
        return self

    async def _start(self, cluster: Cluster) -> None:
        self._application = Application(
            cluster, token=self.token, rbac=self._has_rbac, faults=self.faults
        )
        if self._journal is not None:
            self._application.reload()
        self._application.start()
        if self._asked_port is not None:
            self._http = HttpServer(self._application)
            self._port = await self._http.start(self._asked_port)
            self._application.address = f"127.0.0.1:{self._port}"

    async def __aexit__(self, *exc_info: object) -> None:
        self.faults.stop()
        self.resume()
        self.cluster.storage.disconnect()
        self.cluster.wake_all()
        await finish(self._close())

    async def _close(self) -> None:
        self._state = "stopped"
        try:
            if self._http is not None:
                await self._http.stop()
        finally:
            if self._journal is not None:
                await self._journal.close()

    @property
    def application(self) -> Application:
        """The application that answers the requests.

        Raises:
            UsageError: the server was not started.
        """
        if self._application is None:
            raise UsageError("the server is not started: use `async with APIServer() as server`")
        return self._application

    @property
    def cluster(self) -> Cluster:
        """The server's state."""
        return self.application.cluster

    @property
    def url(self) -> str:
        """The URL of the server.

        Raises:
            UsageError: the server was not started, or has no port.
        """
        if self._application is not None and self._asked_port is None:
            raise UsageError("the server has no port (port=None); use server.connect()")
        if not self._port:
            raise UsageError("the server is not started: use `async with APIServer() as server`")
        return f"http://127.0.0.1:{self._port}"

    def user(self, name: str, groups: Sequence[str] = ()) -> Login:
        """Return a user with a new token, with no more rights than roles and bindings give it.

        Nothing is stored: two users of one name are the same to the server.

        Raises:
            UsageError: the server was made without ``rbac``, or does not run.
        """
        someone = RequestUser(name=name, groups=tuple(groups))
        return self._identities.issue(with_implied_groups(someone))

    def service_account(self, namespace: str, name: str) -> Login:
        """Create a service account, unless it is there, and return it with a new token.

        The token is worth something as long as that account exists.

        Raises:
            kinform.apiserver.endpoints.status.StatusError: it cannot be created, for example for
                want of the namespace.
            UsageError: the server was made without ``rbac``, or does not run.
        """
        identities = self._identities
        objects = self.application.objects
        uid = system_objects.account_uid(objects, self.cluster, namespace=namespace, name=name)
        return identities.issue(service_account(namespace, name, uid=uid))

    @property
    def _identities(self) -> Identities:
        access = self.application.access
        if not access.has_rbac:
            raise UsageError("users need APIServer(rbac=True); without it there is one token only")
        return access.identities

    def kubeconfig(self, user: Login | None = None) -> str:
        """Return a kubeconfig that any client of Kubernetes can use, with the token in it.

        Raises:
            UsageError: the server was not started, or has no port.
        """
        token = self.token if user is None else user.token
        # kubectl sends no token without TLS, so the URL has it as well.
        cluster = {"name": "kinform", "cluster": {"server": f"{self.url}/~{token}"}}
        login = {"name": "kinform", "user": {"token": token}}
        context = {"name": "kinform", "context": {"cluster": "kinform", "user": "kinform"}}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "users": [login],
            "contexts": [context],
            "current-context": "kinform",
        }
        text: str = yaml.safe_dump(document, sort_keys=False)
        return text

    def connect(self, user: Login | None = None) -> Client:
        """Return a client of this server, to be used with ``async with``.

        Without a ``user`` it may do everything.

        Raises:
            UsageError: the server was not started.
        """
        from kinform.client import connect
        from kinform.rest.config import Config

        token = self.token if user is None else user.token
        if self._asked_port is not None:
            return connect(Config(server=self.url, token=token))
        from kinform.apiserver.memory import MemoryTransport

        config = Config(server="http://localhost", token=token)
        return connect(config, transport=MemoryTransport(self.application))

    def compact(self, revision: int | None = None) -> None:
        """Compact history up to ``revision``, or up to now: requests for it get a 410.

        Raises:
            UsageError: the revision does not exist.
        """
        storage = self.cluster.storage
        if revision is not None:
            _arguments.check_revision(revision, first=1, current=storage.revision)
        storage.compact(revision)

    def restore(self, revision: int) -> None:
        """Restore the state at ``revision``, as etcd is restored from a backup; watches end.

        Raises:
            UsageError: there was no such revision, or it was compacted.
        """
        storage = self.cluster.storage
        _arguments.check_revision(revision, first=1, current=storage.revision)
        try:
            storage.restore(revision)
        except RevisionExpired as exc:
            raise UsageError(f"{exc}, the current one {storage.revision}") from exc
        self.application.reload()

    def pause(self) -> None:
        """Hold back all answers and events until `resume`. Connections stay open."""
        self.cluster.gate.shut()

    def resume(self) -> None:
        """End a `pause`: send the answers and events that were held back."""
        self.cluster.gate.open()

    def lag(self, seconds: float) -> None:
        """Serve watches from a watch cache that is ``seconds`` behind; 0 ends that.

        Reads that take any version (``resourceVersion=0``) are stale as well. A get or a list
        without a version waits until the cache has caught up, three seconds at most, and then
        shows the newest state, as with kube-apiserver.

        Watches that are open are not touched when it begins; those of the lagging kind end with it.
        """
        if self._lag is not None and self._lag in self.faults:
            self.faults.remove(self._lag)
        self._lag = self.faults.add(Fault(Stale(seconds=seconds))) if seconds else None


async def _journal(path: str | os.PathLike[str], cluster: Cluster) -> Journal:
    """Load the data file into the cluster, and save all further writes to it."""
    from kinform.apiserver.storage.journal import Journal  # most servers need no SQLite

    journal = await Journal.open(path, cluster.storage)
    if cluster.storage.revision > 1:  # the same seed must not give the same uids again
        cluster.random.seed(f"{cluster.random.random()} {cluster.storage.revision}")
    return journal


def preload() -> None:
    """Read what every server needs from the package's data. Blocks; later calls do nothing."""
    data.api()
    data.schemas()
    data.blanks()
    data.zones()
    protobuf.preload()

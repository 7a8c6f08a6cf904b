"""A whole operator: a ``Website`` owns a ConfigMap, a Service and a Deployment.

What is worth a look: `Operator.reconcile`, which says in five steps how things should be; the
finalizer, which gives the host back that a site had in its namespace's directory; the conditions;
and that of two replicas one acts, and the other is ready to.

``python examples/website_operator.py --install-crd``
``python examples/website_operator.py --lease websites --health 8081``, as often as you like
``python examples/website_operator.py --demo``

It exits with code 1 when it loses the lease: Kubernetes restarts it.
"""

# ci: --demo --workers 2

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import logging
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

import kinform
from kinform import Context, KindSource, Object, ObjectName
from kinform.apiserver import APIServer
from kinform.runtime import (
    AlreadyOwnedError,
    apply,
    apply_status,
    conditions_of,
    find_condition,
    set_condition,
)

CRD = Path(__file__).with_name("website_crd.yaml")
NAME = "website-operator"
WEBSITES = "example.com/v1/websites"
CONFIG_MAPS, SERVICES, DEPLOYMENTS = "v1/configmaps", "v1/services", "apps/v1/deployments"

FINALIZER = kinform.Finalizer("example.com/website-directory")
DIRECTORY = "website-directory"
CHECKSUM = "example.com/html-sha256"
WRITTEN_BY = "example.com/written-by"
"""Of a child: who applied it last, and that leader's fencing number, which only grows."""
OURS = {"app.kubernetes.io/managed-by": NAME}


class Refused(kinform.TerminalError):
    """A site is not as it could be served. To try again is of no use before something changes."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


# --- what a site should be: pure functions


def host_of(site: Object) -> str:
    host: str = site.at("spec", "host", default=f"{site.name}.example.com")
    return host


class Child(NamedTuple):
    """An object that belongs to a site."""

    resource: str
    kind: str
    name: str
    content: Mapping[str, object]

    def body(self, site: Object, written_by: str) -> dict[str, object]:
        """Return it as it is applied."""
        metadata = {
            "name": self.name,
            "labels": labels_of(site) | OURS,
            "annotations": {WRITTEN_BY: written_by},
        }
        version, _, _ = self.resource.rpartition("/")
        return {"apiVersion": version, "kind": self.kind, "metadata": metadata, **self.content}


def children(site: Object) -> Iterator[Child]:
    """Yield what belongs to a site, in the order in which it is needed."""
    html: str = site.at("spec", "html", default="")
    selector, files = labels_of(site), f"{site.name}-html"
    yield Child(CONFIG_MAPS, "ConfigMap", files, {"data": {"index.html": html}})
    service = {"selector": selector, "ports": [{"port": 80}]}
    yield Child(SERVICES, "Service", site.name, {"spec": service})
    deployment = {
        "replicas": site.at("spec", "replicas", default=1),
        "selector": {"matchLabels": selector},
        "template": pod_template(selector, html=html, files=files),
    }
    yield Child(DEPLOYMENTS, "Deployment", site.name, {"spec": deployment})


def labels_of(site: Object) -> dict[str, str]:
    return {"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": site.name}


def pod_template(labels: Mapping[str, str], *, html: str, files: str) -> dict[str, object]:
    # A pod does not change with its ConfigMap. With the checksum it does: so pods are replaced.
    checksum = hashlib.sha256(html.encode()).hexdigest()
    mount = {"name": "html", "mountPath": "/usr/share/nginx/html"}
    container = {"name": "web", "image": "nginx:1.29-alpine", "volumeMounts": [mount]}
    volume = {"name": "html", "configMap": {"name": files}}
    return {
        "metadata": {"labels": labels, "annotations": {CHECKSUM: checksum}},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def changes(before: Object | None, after: Object) -> Iterator[tuple[str, str]]:
    """Yield the events that tell what an apply has done."""
    if before is None:
        yield "Created", f"{after.kind} {after.name} was made"
        return
    old, new = (each.at("spec", "replicas", default=0) for each in (before, after))
    if old != new:
        yield "ScaledUp" if new > old else "ScaledDown", f"from {old} to {new} replicas"
    old, new = (
        each.at("spec", "template", "metadata", "annotations", CHECKSUM) for each in (before, after)
    )
    if old != new:
        yield "Published", "the html has changed: pods are replaced"


class Rollout(msgspec.Struct, rename="camel"):
    """The fields of a Deployment's status that this program reads."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: Sequence[Mapping[str, object]] = ()


class Deployment(msgspec.Struct):
    """The fields of a Deployment that this program reads."""

    metadata: kinform.ObjectMeta = msgspec.field(default_factory=kinform.ObjectMeta)
    status: Rollout = msgspec.field(default_factory=Rollout)


def status_of(
    site: Object, deployment: Object | None, refusal: Refused | None = None
) -> dict[str, object]:
    """Return the status of a site: what its Deployment says, and what we have against it."""
    found = Deployment() if deployment is None else deployment.decode(Deployment)
    conditions = conditions_of(site)
    for type_, status, reason, message in verdicts(site, found, refusal):
        set_condition(
            conditions,
            type_,
            status=status,
            reason=reason,
            message=message,
            observed_generation=site.metadata.generation,
        )
    return {
        "host": host_of(site),
        "observedGeneration": site.metadata.generation,
        "replicas": found.status.replicas,
        "readyReplicas": found.status.ready_replicas,
        "conditions": conditions,
    }


def verdicts(
    site: Object, found: Deployment, refusal: Refused | None
) -> Iterator[tuple[str, bool, str, str]]:
    """Yield each condition: its type and status, a reason for programs, a message for people."""
    rollout, wanted = found.status, site.at("spec", "replicas", default=1)
    available = rollout.available_replicas
    message = f"{available} of {wanted} replicas are available"
    yield "Available", available > 0, "Serving" if available else "NoReplicas", message
    if refusal is not None:
        yield "Progressing", False, refusal.reason, "nothing is done before that is fixed"
        yield "Degraded", True, refusal.reason, str(refusal)
        return

    # A status is about the generation that it names. That of an older one says nothing.
    is_seen = 0 < found.metadata.generation <= rollout.observed_generation
    is_done = is_seen and rollout.replicas == rollout.updated_replicas == available == wanted
    yield "Progressing", not is_done, "Complete" if is_done else "RollingOut", message
    progress = find_condition(rollout.conditions, "Progressing") or {}
    if progress.get("status") == "False":
        yield "Degraded", True, str(progress.get("reason")), str(progress.get("message"))
    else:
        yield "Degraded", False, "AsExpected", ""


# --- the directory of a namespace: which host is whose


class Directory(msgspec.Struct):
    """The fields of the ConfigMap ``website-directory`` that this program reads and writes."""

    data: dict[str, str] = msgspec.field(default_factory=dict[str, str])


async def enter_directory(ctx: Context, site: Object) -> None:
    """Give a site its host, and remove any other host it had.

    The cache does not decide this: ``update`` writes nothing if another client has
    written since it read, and reads again.

    Raises:
        Refused: another site has the host.
        KinformError: the site is not what it was, or cannot be written; try again.
    """
    host = host_of(site)
    known = ctx.lister(CONFIG_MAPS).get(ObjectName(site.namespace, DIRECTORY))
    lines: Mapping[str, str] = {} if known is None else known.at("data", default={})
    if [each for each, name in lines.items() if name == site.name] == [host]:
        return  # as it was: no request
    # The cache of the sites may be behind that of the directory. A deleted site must not be
    # entered again, because its entry would stay forever. With our finalizer it still exists.
    sites = ctx.client.resource(WEBSITES, namespace=site.namespace)
    if not FINALIZER.is_on(await sites.get(site.name)):
        raise kinform.KinformError(f"{site.key} has changed; it is reconciled again")

    def enter(directory: Directory) -> None:
        if (holder := directory.data.get(host, site.name)) != site.name:
            raise Refused("HostTaken", f"host {host} is that of website {holder}")
        directory.data = others(directory, site.name) | {host: site.name}

    directories = ctx.client.resource(CONFIG_MAPS, model=Directory, namespace=site.namespace)
    try:
        await directories.update(DIRECTORY, enter)
    except kinform.NotFoundError:
        # If two come to this, one of them fails, and is tried again.
        metadata = {"name": DIRECTORY, "labels": OURS}
        await directories.create({"metadata": metadata, "data": {host: site.name}})


async def leave_directory(ctx: Context, name: ObjectName) -> None:
    """Give back what a site has in the directory; nothing, if that is done already."""

    def leave(directory: Directory) -> None:
        directory.data = others(directory, name.name)

    directories = ctx.client.resource(CONFIG_MAPS, model=Directory, namespace=name.namespace)
    with contextlib.suppress(kinform.NotFoundError):
        await directories.update(DIRECTORY, leave)


def others(directory: Directory, name: str) -> dict[str, str]:
    return {host: holder for host, holder in directory.data.items() if holder != name}


# --- the operator


class Operator:
    """Keeps websites as they should be.

    Args:
        identity: who this replica is.
        slow: seconds to wait after each child, for tests that want to see it half done.
    """

    def __init__(self, identity: str, *, slow: float = 0.0) -> None:
        self._identity = identity
        self._slow = slow
        self._waiting: set[ObjectName] = set()  # for a host. After a restart all are asked anew

    def controller(self, workers: int = 2) -> kinform.Controller:
        """Return what a manager runs."""
        owned = [
            KindSource(kind, label_selector=OURS) for kind in (CONFIG_MAPS, SERVICES, DEPLOYMENTS)
        ]
        directories = KindSource(CONFIG_MAPS, label_selector=OURS, map=self._concerned)
        return kinform.Controller(
            NAME,
            self.reconcile,
            for_=WEBSITES,
            owns=owned,
            watches=[directories],
            workers=workers,
            timeout=60,
        )

    async def reconcile(self, ctx: Context, name: ObjectName) -> kinform.Result | None:
        """Make one site what it should be. It may have been begun before, by us or another."""
        self._waiting.discard(name)
        site = ctx.lister(WEBSITES).get(name)
        if site is None:
            return None  # gone, and cleaned up before; what it owned goes by itself
        sites = ctx.client.resource(WEBSITES, namespace=name.namespace)

        # 1. It is being deleted: give its host back, and let it go.
        if await FINALIZER.handle(sites, site, lambda: leave_directory(ctx, name)):
            return None
        # 2. Before there is something to give back: see to it that we are asked to.
        site = await FINALIZER.ensure(sites, site)
        if not FINALIZER.is_on(site):
            return None  # deleted a moment ago, as we did not know
        try:
            # 3. The host, which must be unique, and 4. the owned objects.
            await self._enter_directory(ctx, site)
            deployment = await self._apply_children(ctx, site)
        except Refused as refusal:
            # What was there before goes on as it was.
            status = status_of(site, ctx.lister(DEPLOYMENTS).get(name), refusal)
            if await self._report(ctx, site, status):
                ctx.event(site, "Warning", refusal.reason, str(refusal))
            if refusal.reason == "NameTaken":
                return kinform.Result(requeue_after=60)  # no event says when it is free
            raise  # a TerminalError: not retried before something changes
        # 5. Write the status.
        await self._report(ctx, site, status_of(site, deployment))
        return None

    async def _enter_directory(self, ctx: Context, site: Object) -> None:
        # Join the waiting ones before the attempt: the host may become free just after a refusal.
        self._waiting.add(site.key)
        try:
            await enter_directory(ctx, site)
        except kinform.InvalidError as error:
            raise Refused("Invalid", error.message) from None
        self._waiting.discard(site.key)

    async def _apply_children(self, ctx: Context, site: Object) -> Object:
        """Apply what a site owns; return its Deployment.

        Applied is everything, every time: what is as it should be is not written.
        """
        written = site
        for child in children(site):
            before = ctx.lister(child.resource).get(ObjectName(site.namespace, child.name))
            written_by = f"{self._identity} {ctx.fencing_number}"
            try:
                written = await ctx.apply(child.body(site, written_by), owner=site)
            except kinform.InvalidError as error:  # a name that no Service can have, for example
                raise Refused("Invalid", error.message) from None
            except AlreadyOwnedError as error:
                raise Refused("NameTaken", str(error)) from None
            for reason, message in changes(before, written):
                ctx.event(site, "Normal", reason, message)
            await ctx.wait_for_cache(written)  # or the next reconcile might report it again
            await asyncio.sleep(self._slow)
        return written

    async def _report(self, ctx: Context, site: Object, status: dict[str, object]) -> bool:
        """Write the status, if it is another; tell whether it was."""
        if site.at("status") == status:
            return False
        written = await apply_status(ctx.client, site, status=status, field_manager=NAME)
        await ctx.wait_for_cache(written)
        return True

    def _concerned(self, obj: Object) -> list[ObjectName]:
        """Name the sites in a directory, and those that wait for a host of it."""
        if obj.name != DIRECTORY:
            return []
        inside = {ObjectName(obj.namespace, name) for name in obj.at("data", default={}).values()}
        return [*inside, *(each for each in self._waiting if each.namespace == obj.namespace)]


# --- the program


async def install_crd(client: kinform.Client) -> None:
    """Create the CRD. No need to wait until it is served: the operator does."""
    await apply(client, yaml.safe_load(CRD.read_text(encoding="utf-8")), field_manager=NAME)


def manager(client: kinform.Client, args: argparse.Namespace) -> kinform.Manager:
    election = kinform.LeaderElection(
        lease=args.lease,
        namespace=args.namespace or None,
        identity=args.identity,
        lease_duration=args.lease_duration,
        renew_deadline=args.renew_deadline,
        retry_period=args.retry_period,
    )
    made = kinform.Manager(
        client,
        leader_election=election,
        namespaces=args.namespace,
        health=args.health,
        signals=not args.demo,
    )
    made.add(Operator(args.identity, slow=args.slow).controller(args.workers))
    return made


async def run(args: argparse.Namespace) -> None:
    async with kinform.connect() as client:
        if args.install_crd:
            await install_crd(client)
        async with manager(client, args) as running:
            await running.run()


async def demo(args: argparse.Namespace) -> None:
    """A site is made, served, changed and deleted; another one waits for its host meanwhile."""
    args.namespace = f"website-demo-{secrets.token_hex(3)}"  # everything in a place of its own
    async with cluster() as client, asyncio.timeout(50):
        namespaces = client.resource("v1/namespaces")
        await namespaces.create({"metadata": {"name": args.namespace}})
        await install_crd(client)
        try:
            async with manager(client, args) as running:
                await running.start()
                await running.wait_warm()  # with that the kind is there
                await story(client, args.namespace)
        finally:
            await namespaces.delete(args.namespace)


async def story(client: kinform.Client, namespace: str) -> None:
    sites = client.resource(WEBSITES, namespace=namespace)
    deployments = client.resource(DEPLOYMENTS, namespace=namespace)
    async with sites.informer() as seen:

        async def wait_for(name: str, condition: str, status: str) -> None:
            def is_so(cache: kinform.Lister[Object]) -> Object | None:
                site = cache.get(ObjectName(namespace, name))
                if site is None or site.at("status", "observedGeneration") != (
                    site.metadata.generation
                ):
                    return None
                found = find_condition(site, condition)
                return site if found and found["status"] == status else None

            site = await seen.wait_for(is_so, 20)
            found = find_condition(site, condition) or {}
            print(f"{name}: {condition} is {status}: {found['message'] or found['reason']}")

        async def roll_out(name: str) -> None:
            """Do the work of a cluster's own controllers, where there are none."""
            found = await deployments.get(name)
            await deployments.status.patch(name, {"status": demo_status(found)})

        first = {"html": "<h1>hello</h1>", "host": "www.example.com"}
        await sites.create({"metadata": {"name": "first"}, "spec": first})
        await wait_for("first", "Progressing", "True")
        await roll_out("first")
        await wait_for("first", "Progressing", "False")

        await sites.patch("first", {"spec": {"html": "<h1>hello again</h1>", "replicas": 3}})
        await wait_for("first", "Progressing", "True")
        await roll_out("first")
        await wait_for("first", "Progressing", "False")

        second = {"html": "<h1>me too</h1>", "host": "www.example.com"}
        await sites.create({"metadata": {"name": "second"}, "spec": second})
        await wait_for("second", "Degraded", "True")
        await sites.delete("first")
        await wait_for("second", "Degraded", "False")
        await sites.delete("second")
        await seen.wait_for(lambda cache: not cache.list(), 20)
        print("all gone")


def demo_status(deployment: Object) -> dict[str, object]:
    """Return the status of a Deployment whose pods all run."""
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {
        "observedGeneration": deployment.metadata.generation,
        **dict.fromkeys(counts, deployment.at("spec", "replicas")),
    }


@contextlib.asynccontextmanager
async def cluster() -> AsyncGenerator[kinform.Client]:
    """Connect to the configured cluster, or to a server of our own."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(kinform.connect())
        except kinform.ConfigError as error:
            if error.source:
                raise  # there is one, and it is wrong: never look elsewhere then
            print(f"{error}\nstarting an API server instead", file=sys.stderr)
            server = await stack.enter_async_context(APIServer())
            client = await stack.enter_async_context(server.connect())
        yield client


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("-n", "--namespace", default="", help="the only one to look at; default: all")
    add("--lease", default=NAME, help=f"what replicas compete for; default: {NAME}")
    add("--identity", help="who this replica is; default: the host's name and some letters")
    add("--lease-duration", type=float, default=15, help="seconds; default: 15")
    add("--renew-deadline", type=float, default=10, help="seconds; default: 10")
    add("--retry-period", type=float, default=2, help="seconds; default: 2")
    add(
        "--health",
        type=lambda text: int(text) if text.isdigit() else text,
        metavar="PORT",
        help="serve /livez, /readyz and /metrics there; 0.0.0.0:PORT: also to others",
    )
    add("--workers", type=int, default=2, help="how many sites at a time; default: 2")
    add("--install-crd", action="store_true", help="make the kind known, before anything else")
    add("--slow", type=float, default=0, help="wait so many seconds after each child; for tests")
    add("--demo", action="store_true", help="play a little story, and end")
    add("-v", "--verbose", action="store_true", help="log more than warnings")
    args = parser.parse_args(argv)
    args.identity = args.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level="INFO" if args.verbose else "WARNING", format=form)
    try:
        asyncio.run(demo(args) if args.demo else run(args))
    except (kinform.KinformError, TimeoutError) as problem:
        print(f"error: {str(problem) or 'it took too long'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

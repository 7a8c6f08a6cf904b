"""A router that knows which endpoints are ready now, as model servers need it.

It follows the pods that have a label, or the EndpointSlices of a service. An endpoint comes when
it is ready and goes when it is not, when its pod terminates, and when it is deleted, also if the
DELETE was never heard of: after an outage the cache is compared with a fresh list. While nothing
is heard of the server, the router goes on with what it knows, and says so (``stale``).

``python examples/endpoint_router.py --selector app=vllm --port 8000``
``python examples/endpoint_router.py --service vllm [-n NAMESPACE] [--for SECONDS]``
``python examples/endpoint_router.py --demo``

Against the cluster kubectl would use; where there is none, an API server of its own is started.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import secrets
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import msgspec

import kinform
from kinform.apiserver import APIServer

SILENCE = 180.0
"""A bookmark comes about once a minute: three that are missing are a silence."""


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address. ``uid`` distinguishes a pod from an earlier one with the same address."""

    address: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change: an endpoint was added or removed, or the data became stale or fresh."""

    what: Literal["up", "down", "stale", "fresh"]
    endpoint: Endpoint | None = None

    def __str__(self) -> str:
        one = self.endpoint
        return f"{self.what}: {one.address} ({one.name})" if one else self.what


class NoEndpoint(Exception):
    """There is nothing to send to."""


Reader = Callable[[kinform.Object], Iterator[Endpoint]]
"""Says which endpoints an object stands for, ready ones only."""


class Router:
    """The ready endpoints of the pods or slices in an informer.

    ``ready`` is always current, as far as the server was reachable; `is_stale`
    says if it was not. Everything belongs to one event loop.
    """

    def __init__(
        self,
        informer: kinform.SharedInformer[kinform.Object],
        read: Reader,
        *,
        max_silence: float = SILENCE,
    ) -> None:
        self._informer = informer
        self._read = read
        self._max_silence = max_silence
        self._by_object: dict[kinform.ObjectName, frozenset[Endpoint]] = {}
        self._ready: tuple[Endpoint, ...] = ()
        self._load: Counter[Endpoint] = Counter()
        self._turn = itertools.count()
        self._change = asyncio.Event()
        self._told = informer.add_event_handler(
            on_add=lambda event: self._learn(event.key, event.obj),
            on_update=lambda event: self._learn(event.key, event.new),
            on_delete=lambda event: self._learn(event.key, None),
        )

    async def __aenter__(self) -> Self:
        await self._informer.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._informer.stop()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until all that was there at first is in ``ready``.

        Raises:
            TimeoutError: it takes longer; says what went wrong last.
        """
        await self._told.wait_synced(timeout)

    # --- choosing

    @property
    def ready(self) -> Sequence[Endpoint]:
        """All that can be sent to, sorted by address."""
        return self._ready

    @property
    def is_stale(self) -> bool:
        """True if the last contact with the server is so old that ``ready`` may be wrong."""
        return not self._informer.healthy(self._max_silence)

    def round_robin(self) -> Endpoint:
        """Return the next one in turn.

        Raises:
            NoEndpoint: none is ready.
        """
        return self._some()[next(self._turn) % len(self._ready)]

    def least_loaded(self) -> Endpoint:
        """Return one with the fewest requests under way, as `sending` counts them; in turn.

        Raises:
            NoEndpoint: none is ready.
        """
        fewest = min(self._load[one] for one in self._some())
        candidates = [one for one in self._ready if self._load[one] == fewest]
        return candidates[next(self._turn) % len(candidates)]

    @contextlib.contextmanager
    def sending(self) -> Generator[Endpoint]:
        """Choose the least loaded endpoint, and count a request to it for as long as it takes.

        Raises:
            NoEndpoint: none is ready.
        """
        chosen = self.least_loaded()
        self._load[chosen] += 1
        try:
            yield chosen
        finally:
            self._load[chosen] -= 1
            if not self._load[chosen]:
                del self._load[chosen]  # it may be gone for good

    def _some(self) -> Sequence[Endpoint]:
        if not self._ready:
            raise NoEndpoint(
                "no endpoint is ready" + (", as far as is known" if self.is_stale else "")
            )
        return self._ready

    # --- following

    async def changes(self) -> AsyncGenerator[Change]:
        """Yield changes, beginning with all ready endpoints. Any number of tasks may call it.

        A slow reader receives only the net change: what came and went in between is skipped.
        """
        await self.wait_synced()
        shown: frozenset[Endpoint] = frozenset()
        was_stale = False
        while True:
            change, ready, is_stale = self._change, frozenset(self._ready), self.is_stale
            for one in sorted(shown - ready):
                yield Change("down", one)
            for one in sorted(ready - shown):
                yield Change("up", one)
            if is_stale != was_stale:
                yield Change("stale" if is_stale else "fresh")
            shown, was_stale = ready, is_stale
            with contextlib.suppress(TimeoutError):  # silence causes no event: check periodically
                async with asyncio.timeout(self._max_silence / 10):
                    await change.wait()

    def _learn(self, key: kinform.ObjectName, obj: kinform.Object | None) -> None:
        found = frozenset[Endpoint]() if obj is None else frozenset(self._read(obj))
        if found == self._by_object.get(key, frozenset()):
            return
        self._by_object[key] = found
        if not found:
            del self._by_object[key]
        self._ready = tuple(sorted(frozenset[Endpoint]().union(*self._by_object.values())))
        self._change.set()  # wakes all waiters; later ones wait for the next event
        self._change = asyncio.Event()


# --- what can be followed


def pods(
    client: kinform.Client,
    *,
    namespace: str,
    selector: str,
    port: int,
    max_silence: float = SILENCE,
) -> Router:
    """Return a router to the ready pods that have a label."""

    def read(pod: kinform.Object) -> Iterator[Endpoint]:
        address: str = pod.at("status", "podIP", default="")
        conditions: Sequence[Mapping[str, str]] = pod.at("status", "conditions", default=())
        is_ready = any(
            one.get("type") == "Ready" and one.get("status") == "True" for one in conditions
        )
        if address and is_ready and pod.metadata.deletion_timestamp is None:
            yield Endpoint(join(address, port), pod.name, pod.uid)

    informer = client.informer("v1/pods", namespace=namespace, label_selector=selector)
    return Router(informer, read, max_silence=max_silence)


class Conditions(msgspec.Struct):
    """The conditions of an endpoint; an absent ``ready`` means true."""

    ready: bool | None = None
    terminating: bool | None = None


class Target(msgspec.Struct):
    """The pod behind an endpoint."""

    name: str = ""
    uid: str = ""


class Backend(msgspec.Struct):
    """One entry of an EndpointSlice."""

    addresses: list[str]
    conditions: Conditions = msgspec.field(default_factory=Conditions)
    target: Target = msgspec.field(name="targetRef", default_factory=Target)


class Port(msgspec.Struct):
    """One port of an EndpointSlice."""

    port: int | None = None


class Slice(msgspec.Struct):
    """The fields of an EndpointSlice that this program reads."""

    endpoints: list[Backend] | None = None
    ports: list[Port] | None = None


def service(
    client: kinform.Client, *, namespace: str, name: str, max_silence: float = SILENCE
) -> Router:
    """Return a router to the endpoints that a Service's EndpointSlices report as ready."""

    def read(part: kinform.Object) -> Iterator[Endpoint]:
        content = part.decode(Slice)
        for port in [one.port for one in content.ports or () if one.port][:1]:
            for one in content.endpoints or ():
                if one.conditions.ready is not False and not one.conditions.terminating:
                    for address in one.addresses:
                        yield Endpoint(join(address, port), one.target.name, one.target.uid)

    informer = client.informer(
        "discovery.k8s.io/v1/endpointslices",
        namespace=namespace,
        label_selector={"kubernetes.io/service-name": name},
    )
    return Router(informer, read, max_silence=max_silence)


def join(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


# --- the program


async def follow(args: argparse.Namespace) -> None:
    """Print what changes, and how many are ready then."""
    async with cluster() as client:
        if args.service:
            router = service(client, namespace=args.namespace, name=args.service)
        else:
            router = pods(client, namespace=args.namespace, selector=args.selector, port=args.port)
        async with router:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(args.seconds):
                    async for change in router.changes():
                        print(f"{change}; {len(router.ready)} ready", flush=True)


async def demo(args: argparse.Namespace) -> None:
    """Three pods get ready; one fails its probe, one terminates, and the last one is gone."""
    mark = secrets.token_hex(3)
    async with cluster() as client, asyncio.timeout(30):
        resource = client.resource("v1/pods", namespace=args.namespace)
        names = [f"model-{number}-{mark}" for number in range(3)]
        for name in names:
            await resource.create(demo_pod(name, mark))
        router = pods(client, namespace=args.namespace, selector=f"kinform-demo={mark}", port=8000)
        async with router, contextlib.aclosing(router.changes()) as changes:
            for number, name in enumerate(names):
                await resource.status.patch(name, demo_status(f"10.0.0.{number + 1}"))
                print(await anext(changes))
            print("in turn:", *[router.round_robin().name for _ in range(4)])
            with router.sending() as one, router.sending() as two:
                print(
                    "beside", one.name, "and", two.name, "least loaded:", router.least_loaded().name
                )
            await resource.status.patch(names[0], demo_status("10.0.0.1", ready="False"))
            print(await anext(changes), "is not ready")
            await resource.delete(names[1])
            print(await anext(changes), "terminates, and is still there")
            await resource.delete(names[2])
            print(await anext(changes), "terminates as well")
            try:
                router.round_robin()
            except NoEndpoint as error:
                print(error)
        await resource.delete(names[0])
        for name in names:
            await resource.patch(name, {"metadata": {"finalizers": None}})


def demo_pod(name: str, mark: str) -> dict[str, object]:
    """Return a pod that never runs, and that stays for a while when it is deleted."""
    metadata = {
        "name": name,
        "labels": {"kinform-demo": mark},
        "finalizers": ["example.com/demo"],
    }
    spec = {
        "containers": [{"name": "main", "image": "example/never-runs"}],
        "schedulingGates": [{"name": "example.com/never"}],
    }
    return {"metadata": metadata, "spec": spec}


def demo_status(address: str, *, ready: str = "True") -> dict[str, object]:
    """Return what a kubelet would write."""
    conditions = [{"type": "Ready", "status": ready}]
    return {"status": {"phase": "Running", "podIP": address, "conditions": conditions}}


@contextlib.asynccontextmanager
async def cluster() -> AsyncGenerator[kinform.Client]:
    """Connect to the configured cluster, or to a server of our own."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(kinform.connect())
        except kinform.ConfigError as error:
            if error.source:
                raise  # a configuration exists, and it is invalid
            print(f"{error}\nstarting an API server instead", file=sys.stderr)
            server = await stack.enter_async_context(APIServer())
            client = await stack.enter_async_context(server.connect())
        yield client


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--selector", help="which pods, such as app=vllm")
    parser.add_argument("--port", type=int, default=8000, help="of the pods; default: 8000")
    parser.add_argument("--service", help="follow a service's EndpointSlices instead")
    parser.add_argument("-n", "--namespace", default="default", help="default: default")
    parser.add_argument("--for", dest="seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and bool(args.selector) == bool(args.service):
        parser.error("give either --selector or --service, or --demo")
    try:
        asyncio.run(demo(args) if args.demo else follow(args))
    except TimeoutError:
        print("error: the demo took longer than 30 s", file=sys.stderr)
        return 1
    except kinform.KinformError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A spawner and its reflector: what JupyterHub's kubespawner writes by hand, on informers.

`PodReflector` follows the pods of one namespace that have a label, and their
Events. It reconnects by itself; when its cache becomes stale it calls
``on_failure``, and again when it is fresh. `Spawner` creates a pod, waits until it is ready or has
will be, and shows meanwhile what happens.

``python examples/spawner_reflector.py NAME [-n NAMESPACE] [--image IMAGE] [--timeout SECONDS]``
``python examples/spawner_reflector.py --demo``

Against the cluster kubectl would use; where there is none, an API server of its own is started.
There is no kubelet then: ``--demo`` acts as one, for a pod that runs and for one that does not.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import secrets
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import kinform
from kinform.apiserver import APIServer
from kinform.tasks import background

log = logging.getLogger(__name__)
LABEL = "example.com/spawner"
BY_POD = "pod"


class PodReflector:
    """The pods of one namespace that have a label, and the events about its pods, by name.

    Everything is read from memory. ``on_failure`` is called when the last contact with the server
    is ``max_silence`` seconds old, with the reason, and with ``None`` when it is fresh again.
    Most of the time something is heard once a minute (a bookmark), so less than that is too
    strict.
    """

    def __init__(
        self,
        client: kinform.Client,
        *,
        namespace: str,
        label_selector: str,
        max_silence: float = 180.0,
        on_failure: Callable[[str | None], object] | None = None,
    ) -> None:
        self._namespace = namespace
        self._max_silence = max_silence
        self._on_failure = on_failure or complain
        self._pods = client.informer("v1/pods", namespace=namespace, label_selector=label_selector)
        self._events = client.informer(
            "v1/events",
            namespace=namespace,
            field_selector="involvedObject.kind=Pod",
            indexers={BY_POD: lambda event: event.at("involvedObject", "name")},
        )
        self._change = asyncio.Event()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with self._stack:
            for informer in (self._pods, self._events):
                informer.add_event_handler(
                    on_add=self._changed, on_update=self._changed, on_delete=self._changed
                )
                await self._stack.enter_async_context(informer)
            await self._stack.enter_async_context(background(self._watch_health()))
            self._stack = self._stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    async def first_load(self, timeout: float | None = None) -> None:
        """Wait until both caches are filled.

        Raises:
            TimeoutError: it takes longer; says what went wrong last.
        """
        await kinform.wait_for_cache_sync(self._pods, self._events, timeout=timeout)

    @property
    def pods(self) -> Mapping[str, kinform.Object]:
        """The pods by name, as they are now."""
        return {pod.name: pod for pod in self._pods.lister.list()}

    def pod(self, name: str) -> kinform.Object | None:
        """Return one pod, if there is one."""
        return self._pods.lister.get(kinform.ObjectName(self._namespace, name))

    def events(self, name: str, *, uid: str | None = None) -> list[kinform.Object]:
        """Return the Events of the pod of that name, oldest first.

        Names are used again: ``uid`` selects one of the pods that had the name.
        """
        found = self._events.indexer.by_index(BY_POD, name)
        chosen = [one for one in found if uid in {None, one.at("involvedObject", "uid")}]
        return sorted(chosen, key=lambda one: (last_seen(one), one.name))

    @property
    def is_stale(self) -> bool:
        """True if the cache is stale."""
        return not all(one.healthy(self._max_silence) for one in (self._pods, self._events))

    async def has_seen(self, written: kinform.Object, timeout: float | None = None) -> None:
        """Wait until the cache shows a pod that was just written, or what became of it since."""
        await self._pods.wait_until(written.resource_version, timeout)

    def next_change(self) -> asyncio.Event:
        """Return the asyncio event that the next change of a pod or an Event will set.

        Take it, read the cache, then wait for it: so no later change is missed.
        """
        return self._change

    def _changed(self, _: object) -> None:
        self._change.set()  # wakes all waiters; later ones wait for the next event
        self._change = asyncio.Event()

    async def _watch_health(self) -> None:
        was_stale = False
        await asyncio.sleep(self._max_silence)  # so long the first load may take
        while True:
            if self.is_stale != was_stale:
                was_stale = not was_stale
                try:
                    self._on_failure(self._why() if was_stale else None)
                except Exception:
                    log.exception("on_failure raised")
            await asyncio.sleep(self._max_silence / 10)

    def _why(self) -> str:
        errors = [one.statistics().reflector.last_error for one in (self._pods, self._events)]
        cause = next((str(error) for error in errors if error), "the server is silent")
        return f"pods may be out of date for {self._max_silence:.0f} s or more: {cause}"


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of what happens to a pod, and how far it is: 100 is the end."""

    percent: int
    message: str


class SpawnError(Exception):
    """The pod will not run; the text says why."""


class Spawner:
    """One pod, from making it to its end."""

    def __init__(
        self, pods: kinform.ResourceClient[kinform.Object], reflector: PodReflector
    ) -> None:
        self._pods = pods
        self._reflector = reflector
        self.name = self._uid = ""

    async def make(self, name: str, spec: Mapping[str, object], *, timeout: float = 30.0) -> None:
        """Make the pod, and wait until the reflector knows it.

        From then on "not in the cache" means "gone", and never "not yet there".

        Raises:
            TimeoutError: the reflector does not hear of it.
        """
        metadata = {"name": name, "labels": {LABEL: "yes"}}
        made = await self._pods.create({"metadata": metadata, "spec": spec})
        self.name, self._uid = name, made.uid
        await self._reflector.has_seen(made, timeout)

    async def wait_ready(self, timeout: float | None = None) -> kinform.Object:
        """Return the pod once it is ready.

        Raises:
            SpawnError: it failed, ended or was deleted.
            TimeoutError: it takes longer.
        """
        try:
            async with asyncio.timeout(timeout):
                while True:
                    change = self._reflector.next_change()
                    if (pod := self._ready()) is not None:
                        return pod
                    await change.wait()
        except TimeoutError:
            hint = "; what is known of it is out of date" if self._reflector.is_stale else ""
            raise TimeoutError(f"{self.name} was not ready in time{hint}") from None

    def _ready(self) -> kinform.Object | None:
        pod = self._reflector.pod(self.name)
        if pod is None or pod.uid != self._uid:
            raise SpawnError(f"{self.name} was deleted before it was ready")
        phase: str = pod.at("status", "phase", default="Pending")
        if phase in {"Failed", "Succeeded"}:
            why: str = (
                pod.at("status", "message") or pod.at("status", "reason") or "no reason given"
            )
            raise SpawnError(f"{self.name} has {phase.lower()}: {why}")
        return pod if phase == "Running" and is_ready(pod) else None

    async def progress(self) -> AsyncGenerator[Progress]:
        """Yield the Events of the pod, each once, until it is ready or has failed."""
        shown: set[tuple[str, str]] = set()
        last: Progress | None = None
        while last is None:
            change = self._reflector.next_change()
            last = self._last_word()
            for event in self._reflector.events(self.name, uid=self._uid):
                version = (event.uid, event.resource_version)  # a repeated Event has a new version
                if version not in shown:
                    shown.add(version)
                    percent = min(90, 20 * len(shown))
                    yield Progress(percent, f"[{event.at('type')}] {event.at('message')}")
            if last is None:
                await change.wait()
        yield last

    def _last_word(self) -> Progress | None:
        try:
            return Progress(100, f"{self.name} is ready") if self._ready() else None
        except SpawnError as error:
            return Progress(100, str(error))

    def poll(self) -> int | None:
        """Return ``None`` while it runs, else its exit code, as JupyterHub asks for it."""
        pod = self._reflector.pod(self.name)
        if pod is None:
            return 1
        if pod.at("status", "phase") not in {"Failed", "Succeeded"}:
            return None
        ended = pod.at("status", "containerStatuses", 0, "state", "terminated", default={})
        code: int = ended.get("exitCode", 1)
        return code

    async def stop(self) -> None:
        """Delete the pod, if it is there."""
        with contextlib.suppress(kinform.NotFoundError):
            await self._pods.delete(self.name)


def is_ready(pod: kinform.Object) -> bool:
    conditions: Sequence[Mapping[str, str]] = pod.at("status", "conditions", default=())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def last_seen(event: kinform.Object) -> str:
    """Return the time of an Event; old and new recorders write it in different fields."""
    series: str | None = event.at("series", "lastObservedTime")
    classic: str | None = event.at("lastTimestamp")
    first: str | None = event.at("eventTime")
    return series or classic or first or event.metadata.creation_timestamp or ""


def complain(problem: str | None) -> None:
    print(problem or "pods are up to date again", file=sys.stderr, flush=True)


# --- the program


async def spawn(args: argparse.Namespace) -> int:
    """Make one pod, show what happens to it, and delete it if it does not start."""
    async with cluster() as client, reflector(client, args) as pods:
        spawner = Spawner(client.resource("v1/pods", namespace=args.namespace), pods)
        await spawner.make(args.name, {"containers": [{"name": "main", "image": args.image}]})
        return await show(spawner, args.timeout)


async def show(spawner: Spawner, timeout: float) -> int:
    """Print the progress, and return the exit code; what does not start is deleted."""
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                async for step in spawner.progress():
                    print(f"{step.percent:3} % {step.message}", flush=True)
        await spawner.wait_ready(0)
    except (SpawnError, TimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        await spawner.stop()
        return 1
    return 0


@contextlib.asynccontextmanager
async def reflector(
    client: kinform.Client, args: argparse.Namespace
) -> AsyncGenerator[PodReflector]:
    async with PodReflector(client, namespace=args.namespace, label_selector=LABEL) as pods:
        await pods.first_load(30)
        yield pods


async def demo(args: argparse.Namespace) -> int:
    """Two users' pods: one starts, the image of the other does not exist."""
    mark = secrets.token_hex(3)
    # Where there is a scheduler, it leaves these alone.
    spec = {
        "containers": [{"name": "main", "image": "example/never-runs"}],
        "schedulingGates": [{"name": "example.com/never"}],
    }
    async with cluster() as client, reflector(client, args) as pods:
        resource = client.resource("v1/pods", namespace=args.namespace)
        codes: list[int] = []
        for name, succeeds in ((f"ada-{mark}", True), (f"bob-{mark}", False)):
            spawner = Spawner(resource, pods)
            await spawner.make(name, spec)
            async with background(play_kubelet(client, pods.pods[name], succeeds=succeeds)):
                codes.append(await show(spawner, 30))
            print(f"{name}: poll says {spawner.poll()}", flush=True)
            await spawner.stop()
        return 0 if codes == [0, 1] else 1


async def play_kubelet(client: kinform.Client, pod: kinform.Object, *, succeeds: bool) -> None:
    """Create the Events and write the status that a kubelet would."""
    events = client.resource("v1/events", namespace=pod.namespace)
    pods = client.resource("v1/pods", namespace=pod.namespace)
    messages = {"Scheduled": "assigned to node-1", "Pulling": "pulling image"}
    messages |= {"Started": "started"} if succeeds else {"Failed": "no such image"}
    for number, (reason, message) in enumerate(messages.items()):
        involved = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        await events.create(
            {
                "metadata": {"name": f"{pod.name}.{number}"},
                "involvedObject": involved,
                "reason": reason,
                "message": message,
                "type": "Warning" if reason == "Failed" else "Normal",
            }
        )
        await asyncio.sleep(0.2)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    failed = {"phase": "Failed", "message": "no such image"}
    await pods.status.patch(pod.name, {"status": ready if succeeds else failed})


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


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", help="of the pod to make")
    parser.add_argument("-n", "--namespace", default="default", help="default: default")
    parser.add_argument("--image", default="registry.k8s.io/pause:3.10", help="default: pause")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds; default: 60")
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and args.name is None:
        parser.error("the name of a pod is needed, or --demo")
    try:
        return asyncio.run(demo(args) if args.demo else spawn(args))
    except (kinform.KinformError, TimeoutError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""A router to ready pods, in blocking code: what vLLM's router and many gateways need.

Any number of threads can ask it for an endpoint, at the price of a few lines of Python:
the list of ready pods is computed when a pod changes, not on each call. The same for asyncio, with
services and load, is ``endpoint_router.py``.

``python examples/blocking_router.py --selector app=vllm [--port 8000]``
``python examples/blocking_router.py --demo``

Against the cluster kubectl would use. Ctrl-C ends it.
"""

# ci: --demo -n default

from __future__ import annotations

import argparse
import itertools
import secrets
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import kinform
from kinform.sync import Client, connect


class NoEndpoint(Exception):
    """No endpoint is ready."""


class Router:
    """Follows the pods that have a label, and hands out the ready ones in turn."""

    def __init__(self, client: Client, *, namespace: str, selector: str, port: int) -> None:
        self._port = port
        self._turn = itertools.count()
        self._ready: tuple[str, ...] = ()
        self._changed = threading.Condition()
        self.pods = client.informer("v1/pods", namespace=namespace, label_selector=selector)
        self.pods.add_event_handler(
            on_add=self._look, on_update=self._look, on_delete=self._look, name="router"
        )

    def __enter__(self) -> Self:
        self.pods.start()
        self.pods.wait_synced(30)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.pods.stop()

    @property
    def ready(self) -> Sequence[str]:
        """The endpoints that are ready, in order."""
        return self._ready

    def pick(self) -> str:
        """Return the endpoint whose turn it is; from any thread, and without waiting.

        Raises:
            NoEndpoint: none is ready.
        """
        ready = self._ready  # one look: it is replaced, never changed
        if not ready:
            raise NoEndpoint("no endpoint is ready")
        return ready[next(self._turn) % len(ready)]

    def wait_for(self, count: int, timeout: float) -> Sequence[str]:
        """Wait until so many are ready."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._ready) == count, timeout):
                raise TimeoutError(f"not {count} but {len(self._ready)} are ready")
            return self._ready

    def _look(self, _: object) -> None:
        found = (self._endpoint(pod) for pod in self.pods.lister.list())
        with self._changed:
            self._ready = tuple(sorted(filter(None, found)))
            self._changed.notify_all()

    def _endpoint(self, pod: kinform.Object) -> str | None:
        address: str = pod.at("status", "podIP", default="")
        conditions: Sequence[Mapping[str, str]] = pod.at("status", "conditions", default=())
        is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        is_leaving = pod.metadata.deletion_timestamp is not None
        return f"{address}:{self._port}" if address and is_ready and not is_leaving else None


def demo(client: Client, namespace: str) -> None:
    """Three pods get ready, eight threads ask for them; one pod fails its probe, all go."""
    mark = secrets.token_hex(3)
    pods = client.resource("v1/pods", namespace=namespace)
    names = [f"model-{number}-{mark}" for number in range(3)]
    spec = {
        "containers": [{"name": "main", "image": "example/never-runs"}],
        "schedulingGates": [{"name": "example.com/never"}],  # a real scheduler leaves it alone
    }
    for name in names:
        metadata = {"name": name, "labels": {"kinform-demo": mark}}
        pods.create({"metadata": metadata, "spec": spec})
    selector = f"kinform-demo={mark}"
    with Router(client, namespace=namespace, selector=selector, port=8000) as router:
        for number, name in enumerate(names):
            pods.status.patch(name, status(f"10.0.0.{number + 1}"))
        print("ready:", *router.wait_for(3, 30))
        with ThreadPoolExecutor(8) as pool:
            picked = [one.result() for one in [pool.submit(router.pick) for _ in range(300)]]
        print("picked:", *(f"{one} {picked.count(one)}x" for one in router.ready))
        pods.status.patch(names[0], status("10.0.0.1", ready="False"))
        print("ready:", *router.wait_for(2, 30))
        for name in names:
            pods.delete(name, grace_period=0)
        router.wait_for(0, 30)
        try:
            router.pick()
        except NoEndpoint as error:
            print(error)


def status(address: str, *, ready: str = "True") -> dict[str, object]:
    """Return what a kubelet would write."""
    conditions = [{"type": "Ready", "status": ready}]
    return {"status": {"phase": "Running", "podIP": address, "conditions": conditions}}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--selector", help="which pods, such as app=vllm")
    parser.add_argument("--port", type=int, default=8000, help="of the pods; default: 8000")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("--demo", action="store_true", help="play a little story, and end")
    args = parser.parse_args(argv)
    if not args.demo and not args.selector:
        parser.error("give --selector, or --demo")
    with connect() as client:
        if args.demo:
            demo(client, args.namespace)
            return 0
        place, chosen = args.namespace, args.selector
        with Router(client, namespace=place, selector=chosen, port=args.port) as router:
            try:
                for event in router.pods.events():
                    print(f"{type(event).__name__} {event.key}; {len(router.ready)} ready")
            except KeyboardInterrupt:
                return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The classical client-go program, part by part: ListWatch, IndexerInformer, WorkQueue, workers.

Pods of one namespace are listed and watched, their keys go into a work queue, and workers print
what the cache knows of each. Against the cluster kubectl would use; where there is none, a control
plane of its own is started. ``--demo`` makes a pod, deletes it when it is seen, and stops.

``python examples/seeds_workqueue.py [-n NAMESPACE] [--demo] [--for SECONDS]``
"""

# ci: --demo --for 30

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator

import kinform
from kinform.cache import IndexerInformer, ListWatch, handler
from kinform.testing import ControlPlane, ControlPlaneUnavailable

WORKERS = 2


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", "--namespace", default="default", help="default: default")
    parser.add_argument("--demo", action="store_true", help="make and delete a pod, then stop")
    parser.add_argument("--for", dest="seconds", type=float, help="stop after so many seconds")
    return parser.parse_args()


async def main(args: argparse.Namespace) -> None:
    async with cluster() as client:
        lw = ListWatch.from_client(client.rest("v1"), "pods", namespace=args.namespace)
        queue: kinform.WorkQueue[kinform.ObjectName] = kinform.WorkQueue("pods")
        informer = IndexerInformer(
            lw,
            handler(
                on_add=lambda event: queue.add(event.key),
                on_update=lambda event: queue.add(event.key),
                on_delete=lambda event: queue.add(event.key),
            ),
            indexers={"node": lambda pod: pod.at("spec", "nodeName")},
            name="pods",
        )
        async with asyncio.timeout(args.seconds), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            shown: asyncio.Queue[kinform.ObjectName] = asyncio.Queue()
            for _ in range(WORKERS):
                group.create_task(work(queue, informer, shown if args.demo else None))
            if args.demo:
                await demo(client.resource("v1/pods", namespace=args.namespace), informer, shown)
                running.cancel()
                await queue.shut_down_with_drain(5)  # and so the workers end


async def work(
    queue: kinform.WorkQueue[kinform.ObjectName],
    informer: IndexerInformer[kinform.Object],
    shown: asyncio.Queue[kinform.ObjectName] | None,
) -> None:
    """Take keys until the queue is shut down; try again what fails, five times."""
    while True:
        try:
            async with queue.processing() as key:
                try:
                    reconcile(key, informer)
                except kinform.KinformError as error:
                    if queue.num_requeues(key) < 5:
                        queue.add_rate_limited(key)
                        continue
                    print(f"pod {key}: given up: {error}", file=sys.stderr)
                queue.forget(key)
                if shown is not None:
                    shown.put_nowait(key)
        except kinform.QueueShutDown:
            return


def reconcile(key: kinform.ObjectName, informer: IndexerInformer[kinform.Object]) -> None:
    """Look at what the cache has of a pod by now."""
    pod = informer.indexer.get_by_key(key)
    phase = pod.at("status", "phase", default="unknown") if pod else "no more"
    print(f"pod {key}: {phase}", flush=True)


async def demo(
    pods: kinform.ResourceClient[kinform.Object],
    informer: IndexerInformer[kinform.Object],
    shown: asyncio.Queue[kinform.ObjectName],
) -> None:
    """Create a pod that never runs; delete it when it is seen, and end when that is seen."""
    spec = {
        "containers": [{"name": "main", "image": "example/never-runs"}],
        "schedulingGates": [{"name": "example.com/never"}],
    }
    made = await pods.create({"metadata": {"generateName": "kinform-demo-"}, "spec": spec})
    while made.key not in informer.indexer:
        await shown.get()
    await pods.delete(made.key, grace_period=0)
    while made.key in informer.indexer:
        await shown.get()


@contextlib.asynccontextmanager
async def cluster() -> AsyncGenerator[kinform.Client]:
    """Connect to the configured cluster, or to a control plane of our own."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(kinform.connect())
        except kinform.ConfigError as error:
            if error.source:
                raise  # there is one, and it is wrong: never look elsewhere then
            print(f"{error}\nstarting a control plane instead", file=sys.stderr)
            control_plane = await stack.enter_async_context(ControlPlane())
            client = await stack.enter_async_context(control_plane.connect())
        yield client


if __name__ == "__main__":
    try:
        asyncio.run(main(arguments()))
    except TimeoutError:
        pass  # the time that --for gave
    except (kinform.KinformError, ControlPlaneUnavailable) as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)

"""The classical client-go program, part by part: ListWatch, IndexerInformer, queue, workers.

Pods of one namespace are listed and watched, their keys go into a queue, and a worker prints what
the cache knows of each. Against the cluster kubectl would use; where there is none, a control
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
        queue: asyncio.Queue[kinform.ObjectName] = asyncio.Queue()
        informer = IndexerInformer(
            lw,
            handler(
                on_add=lambda event: queue.put_nowait(event.key),
                on_update=lambda event: queue.put_nowait(event.key),
                on_delete=lambda event: queue.put_nowait(event.key),
            ),
            indexers={"node": lambda pod: pod.at("spec", "nodeName")},
            name="pods",
        )
        async with asyncio.timeout(args.seconds), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            if args.demo:
                await demo(client.resource("v1/pods", namespace=args.namespace), queue, informer)
                running.cancel()
            else:
                while True:
                    await work(queue, informer)


async def work(
    queue: asyncio.Queue[kinform.ObjectName], informer: IndexerInformer[kinform.Object]
) -> kinform.ObjectName:
    """Take one key, and look at what the cache has of it by now."""
    key = await queue.get()
    pod = informer.indexer.get_by_key(key)
    phase = pod.at("status", "phase", default="unknown") if pod else "no more"
    print(f"pod {key}: {phase}", flush=True)
    return key


async def demo(
    pods: kinform.ResourceClient[kinform.Object],
    queue: asyncio.Queue[kinform.ObjectName],
    informer: IndexerInformer[kinform.Object],
) -> None:
    """Make a pod that nobody will run; when it is seen delete it, and end when that is seen."""
    spec = {
        "containers": [{"name": "main", "image": "nobody/runs-this"}],
        "schedulingGates": [{"name": "example.com/never"}],
    }
    made = await pods.create({"metadata": {"generateName": "kinform-demo-"}, "spec": spec})
    while made.key not in informer.indexer:
        await work(queue, informer)
    await pods.delete(made.key, grace_period=0)
    while made.key in informer.indexer:
        await work(queue, informer)


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

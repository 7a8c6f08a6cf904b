"""List a resource, then watch it: the two halves every informer is made of.

Against the cluster kubectl would use. Where there is none, a control plane of its own is started
(``make control-plane`` builds it) with a few ConfigMaps that come, change and go.

``python examples/watch.py [RESOURCE] [-n NAMESPACE | -A] [-l SELECTOR] [--for SECONDS]``
"""

# ci: --for 2

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
from collections.abc import AsyncGenerator

import kinform
from kinform.testing import ControlPlane, ControlPlaneUnavailable


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("resource", nargs="?", default="configmaps", help="default: configmaps")
    parser.add_argument("-n", "--namespace", help="instead of the context's")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("-l", "--selector", help="label selector")
    parser.add_argument("--context", help="the kubeconfig context to use")
    parser.add_argument("--for", dest="seconds", type=float, help="stop after so many seconds")
    args = parser.parse_args()
    if args.seconds is None and not sys.stdout.isatty():
        args.seconds = 30.0
    return args


async def main(args: argparse.Namespace) -> None:
    async with cluster(args) as client:
        namespace = kinform.ALL_NAMESPACES if args.all_namespaces else args.namespace
        objects = client.resource(args.resource, namespace=namespace)
        listed = await objects.list(label_selector=args.selector)
        for one in listed:
            print(f"{'LISTED':8} {one.key}", flush=True)
        print(f"{len(listed)} listed, watching", file=sys.stderr)
        count = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(args.seconds):
                async for event in changes(objects, listed.resource_version, args.selector):
                    count += 1
                    print(f"{event.type:8} {event.object.key}", flush=True)
        print(f"{count} events seen", file=sys.stderr)


async def changes(
    objects: kinform.ResourceClient[kinform.Object], version: str, selector: str | None
) -> AsyncGenerator[kinform.WatchEvent[kinform.Object]]:
    """Watch for ever: the server ends each watch after a while, and the next goes on from there."""
    while True:
        watch = objects.watch(resource_version=version, label_selector=selector, timeout=300)
        async with watch as events:
            async for event in events:
                yield event
        version = watch.resource_version
        await asyncio.sleep(1)  # a server that ends watches at once must not be hammered


@contextlib.asynccontextmanager
async def cluster(args: argparse.Namespace) -> AsyncGenerator[kinform.Client]:
    """Connect to the configured cluster, or to a control plane of our own."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(kinform.connect(context=args.context))
        except kinform.ConfigError as error:
            if error.source or args.context is not None:
                raise  # there is one, and it is wrong: never look elsewhere then
            print(f"{error}\nstarting a control plane instead", file=sys.stderr)
            control_plane = await stack.enter_async_context(ControlPlane())
            client = await stack.enter_async_context(control_plane.connect())
            living = asyncio.get_running_loop().create_task(live(client))
            stack.push_async_callback(stop, living)
        yield client


async def stop(task: asyncio.Task[None]) -> None:
    """End a task and wait for it; show what it died of."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def live(client: kinform.Client) -> None:
    """Make something happen: ConfigMaps that come, change and go."""
    maps = client.resource("v1/configmaps", namespace="default")
    for number in itertools.count():
        await maps.create({"metadata": {"name": f"demo-{number}"}})
        await asyncio.sleep(0.5)
        await maps.patch(f"demo-{number}", {"data": {"age": "half a second"}})
        await asyncio.sleep(0.5)
        if number >= 3:
            await maps.delete(f"demo-{number - 3}")


if __name__ == "__main__":
    try:
        asyncio.run(main(arguments()))
    except (kinform.KinformError, ControlPlaneUnavailable) as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)

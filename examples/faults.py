"""An informer outlives a server that misbehaves: random faults, under virtual time.

The seed decides what goes wrong; the same seed, the same faults. Hours pass in a second.
``python examples/faults.py [--seed N] [--faults N]``
"""

from __future__ import annotations

import argparse
import asyncio

import kinform
from kinform.apiserver import APIServer
from kinform.apiserver.faults import FaultPlan, random_plan
from kinform.testing import virtual_time


async def main(seed: int, size: int) -> None:
    plan = random_plan(seed=seed, size=size, resource="configmaps")
    print(f"to go wrong, as `kinform serve --faults` would read it:\n{plan}", end="")
    async with (
        APIServer(port=None, seed=seed, faults=plan) as server,
        server.connect() as client,
        client.informer("v1/configmaps", namespace="default") as informer,
    ):
        await informer.wait_synced(3600)
        for number in range(40):
            await write(client, f"map-{number}")
            await asyncio.sleep(30)
        report(plan)
        plan.clear()
        listed = await client.resource("v1/configmaps", namespace="default").list()
        await informer.wait_until(listed.resource_version, 3600)
        there = {one.key: one.resource_version for one in listed}
        cached = {one.key: one.resource_version for one in informer.lister.list()}
        figures = informer.statistics().reflector
        print(f"{figures.lists} lists, {figures.watches} watches")
        print(
            f"{len(there)} objects; cache equals a fresh list: {'yes' if there == cached else 'no'}"
        )
        assert there == cached


async def write(client: kinform.Client, name: str) -> None:
    """Create or replace a ConfigMap; what goes wrong is tried again, as any program has to."""
    maps = client.resource("v1/configmaps", namespace="default")
    while True:
        try:
            await maps.apply({"metadata": {"name": name}}, field_manager="example")
        except kinform.KinformError:
            await asyncio.sleep(5)
        else:
            return


def report(plan: FaultPlan) -> None:
    """Say what has gone wrong."""
    for fault in plan:
        print(f"{fault.name} has hit {fault.hits} of {fault.seen} requests")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--faults", type=int, default=8, help="how many")
    args = parser.parse_args()
    virtual_time.run(main(args.seed, args.faults))

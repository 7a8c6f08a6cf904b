"""Print the cluster, the user and the served resources.

Uses the cluster kubectl would use: ``python examples/connecting.py [--context NAME]``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import kinform


async def main(context: str | None) -> None:
    async with kinform.connect(context=context) as client:
        version = await client.version()
        resources = await client.api_resources()
        print(f"{client.config.server} ({client.config.source})")
        print(f"Kubernetes {version.git_version}, {len(resources)} resources")
        pods = await client.find("po")
        print(f"'po' is {pods.gvr}, kind {pods.kind}, verbs {', '.join(sorted(pods.verbs))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", help="the kubeconfig context to use")
    try:
        asyncio.run(main(parser.parse_args().context))
    except kinform.KinformError as error:
        sys.exit(f"error: {error}")

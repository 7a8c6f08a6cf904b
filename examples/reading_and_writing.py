"""Create, read, change and delete a ConfigMap in as many ways as there are.

``python examples/reading_and_writing.py [--namespace NAME]``; it cleans up after itself.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import msgspec

import kinform


class Settings(msgspec.Struct):
    """A model declares what you care about; the rest of the object is left alone."""

    __resource__ = "v1/configmaps"
    data: dict[str, str] = {}


async def main(namespace: str | None) -> None:
    async with kinform.connect(namespace=namespace) as client:
        maps = client.resource("v1/configmaps")

        body = {"metadata": {"name": "kinform-example"}, "data": {"color": "red"}}
        made = await maps.create(body)
        print("created", made.name, "at version", made.resource_version)
        try:
            await change(client)
        finally:
            await maps.delete("kinform-example", uid=made.uid)
            print("deleted")


async def change(client: kinform.Client) -> None:
    maps = client.resource("v1/configmaps")

    # One value by its path, without decoding the rest.
    seen = await maps.get("kinform-example")
    print("color is", seen.at("data", "color"))

    # A merge patch: what you name is set, None removes.
    await maps.patch("kinform-example", {"data": {"size": "L"}})

    # Server-side apply: you own what you send.
    await maps.apply(
        {"metadata": {"name": "kinform-example"}, "data": {"shape": "round"}},
        field_manager="kinform-example",
    )

    # Read, change, write the difference; repeated if another client was faster.
    def repaint(content: dict[str, Any]) -> None:
        content["data"]["color"] = "blue"

    await maps.update("kinform-example", repaint)

    # The same with a typed model.
    typed = client.resource(Settings)
    result = await typed.update(
        "kinform-example", lambda settings: Settings({**settings.data, "size": "XL"})
    )
    print("now", dict(sorted(result.data.items())))

    # Lists come in pages behind the scenes, and as one consistent picture.
    listed = await maps.list(field_selector="metadata.name=kinform-example")
    print(len(listed), "object at version", listed.resource_version)

    # Errors have a class, and fields instead of texts to parse.
    try:
        await maps.get("no-such-thing")
    except kinform.NotFoundError as error:
        print("not found:", error.details.name if error.details else "?")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--namespace", help="instead of the context's")
    try:
        asyncio.run(main(parser.parse_args().namespace))
    except kinform.KinformError as error:
        sys.exit(f"error: {error}")

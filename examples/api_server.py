"""An API server inside a program: no cluster, no binaries, nothing left behind.

A CRD is created, objects of it are listed in pages and watched, and two clients write to one of
them. ``python examples/api_server.py``
"""

from __future__ import annotations

import asyncio
from typing import Any

import kinform
from kinform.apiserver import APIServer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["city"],
            "properties": {
                "city": {"type": "string"},
                "seats": {"type": "integer", "minimum": 1, "default": 20},
            },
        }
    },
}
CAFES: dict[str, Any] = {
    "metadata": {"name": "cafes.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "cafes", "singular": "cafe", "kind": "Cafe"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}


async def main() -> None:
    async with APIServer() as server, server.connect() as client:
        print("serving", server.url)
        await client.resource("apiextensions.k8s.io/v1/customresourcedefinitions").create(CAFES)
        cafes = client.resource("example.com/v1/cafes", namespace="default")
        await fill(cafes)
        await read(cafes)
        async with server.connect() as other:
            await quarrel(cafes, other)


async def fill(cafes: kinform.ResourceClient[kinform.Object]) -> None:
    """The schema sets defaults and refuses invalid values."""
    for name, city in {"blue": "Wien", "north": "Oslo", "old": "Roma"}.items():
        made = await cafes.create({"metadata": {"name": name}, "spec": {"city": city}})
        print(made.name, "in", made.at("spec", "city"), "has", made.at("spec", "seats"), "seats")
    try:
        await cafes.create({"metadata": {"name": "tiny"}, "spec": {"city": "Bonn", "seats": 0}})
    except kinform.InvalidError as error:
        print("refused:", error)


async def read(cafes: kinform.ResourceClient[kinform.Object]) -> None:
    """A list in pages, which are of one version, and a watch from there."""
    listed = await cafes.list(page_size=2)
    print("listed", ", ".join(one.name for one in listed), "at", listed.resource_version)
    async with cafes.watch(resource_version=listed.resource_version) as events:
        await cafes.delete("old")
        event = await anext(aiter(events))
        print(event.type, event.object.name, "at", event.object.resource_version)


async def quarrel(cafes: kinform.ResourceClient[kinform.Object], other: kinform.Client) -> None:
    """Two managers of one field: server-side apply reports the conflict."""
    blue = {"metadata": {"name": "blue"}, "spec": {"city": "Graz"}}
    theirs = other.resource("example.com/v1/cafes", namespace="default")
    await cafes.apply(blue, field_manager="owner", force=True)
    try:
        await theirs.apply({**blue, "spec": {"city": "Linz"}}, field_manager="guest")
    except kinform.ConflictError as error:
        print("conflict:", error)


if __name__ == "__main__":
    asyncio.run(main())

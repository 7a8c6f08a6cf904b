"""A kind of the tests' own, ``widgets``, that comes and goes."""

from __future__ import annotations

import pytest

from kinform import Client, NotFoundError, UnknownResourceError
from tests.support.eventually import eventually

_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(group: str, *, scope: str) -> dict[str, object]:
    data = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {"type": "object", "properties": {"data": data}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }


async def define(admin: Client, group: str, *, scope: str) -> None:
    """Create the kind and wait until its objects can be listed."""
    definitions = admin.resource(_DEFINITIONS)
    await definitions.create(definition(group, scope=scope))
    widgets = admin.resource(f"{group}/v1/widgets", namespace="")
    await eventually(widgets.list, NotFoundError, UnknownResourceError)


async def undefine(admin: Client, group: str) -> None:
    """Delete the kind, with all its objects, and wait until it is gone."""
    definitions = admin.resource(_DEFINITIONS)
    await definitions.delete(f"widgets.{group}")

    async def look() -> None:
        await definitions.get(f"widgets.{group}")
        raise StillThere

    with pytest.raises(NotFoundError):
        await eventually(look, StillThere)


class StillThere(Exception):
    """The server takes its time."""

"""A kind of the tests' own, ``widgets``, that comes and goes."""

from __future__ import annotations

import pytest

from kinform import Client, NotFoundError, UnknownResourceError
from tests.support.eventually import eventually

_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(group: str, *, scope: str, beside: str | None = None) -> dict[str, object]:
    """Return the definition of v1, which is stored; ``beside``: and of a version that is not."""
    data = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {"type": "object", "properties": {"data": data}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    other = {**version, "name": beside, "storage": False}
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version, other] if beside else [version],
        },
    }


async def define(admin: Client, group: str, *, scope: str, beside: str | None = None) -> None:
    """Create the kind and wait until its objects can be listed."""
    definitions = admin.resource(_DEFINITIONS)
    await definitions.create(definition(group, scope=scope, beside=beside))
    widgets = admin.resource(f"{group}/v1/widgets", namespace="")
    await eventually(widgets.list, NotFoundError, UnknownResourceError)


async def unserve(admin: Client, group: str, version: str) -> None:
    """Serve ``version`` no longer; its objects stay, in the other one."""
    definitions = admin.resource(_DEFINITIONS)
    versions = (await definitions.get(f"widgets.{group}")).at("spec", "versions")
    changed = [{**each, "served": each["name"] != version} for each in versions]
    await definitions.patch(f"widgets.{group}", {"spec": {"versions": changed}})


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

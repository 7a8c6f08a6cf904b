"""The expected final state of the program `everything_at_once`."""

from __future__ import annotations

import json

from kinform.testing.simulation.programs import MIRRORED, secret_value
from kinform.testing.simulation.world import World

__all__ = ["mirrored"]


def mirrored(world: World) -> str:
    """Return which Secret is not as its ConfigMap, ``""`` if all are."""
    table = world.server.cluster.storage.table("secrets")
    found = {
        stored.key: json.loads(stored.raw).get("data", {}).get("value")
        for stored in table.now(f"{MIRRORED}/")
    }
    wanted = {
        key: secret_value(state.value)
        for key, state in world.history.now().items()
        if key.startswith(f"{MIRRORED}/")
    }
    for key in sorted({*found, *wanted}):
        if found.get(key) != wanted.get(key):
            return f"the secret {key} has {found.get(key)}, expected {wanted.get(key)}"
    return ""

"""The parts of a pod that only subresources of it change."""

from __future__ import annotations

from kinform.apiserver.json import Json, as_dict

__all__ = ["keep_all_but_ephemeral"]


def keep_all_but_ephemeral(new: Json, old: Json) -> None:
    """Leave of an update of a pod's ephemeral containers nothing else, in place."""
    containers = as_dict(new.get("spec")).get("ephemeralContainers")
    spec = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
    if containers:
        spec["ephemeralContainers"] = containers
    new["spec"] = spec
    if "status" in old:
        new["status"] = old["status"]

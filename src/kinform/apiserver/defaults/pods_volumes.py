"""Defaults of volumes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Final

from kinform.apiserver.scheme.resource_quantities import canonical
from kinform.apiserver.serializer.json_values import Json, as_list

__all__ = ["default_claim_spec", "default_field_refs", "default_volume", "pull_policy"]

_MODE: Final = 0o644
_PART: Final = "[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:[a-zA-Z0-9][-a-zA-Z0-9.]*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::(?P<tag>[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,127}))?(?:@(?P<digest>[^:]+:[0-9a-fA-F]{32,}))?"
)
_SIMPLE: Final[Mapping[str, Mapping[str, object]]] = {
    "secret": {"defaultMode": _MODE},
    "configMap": {"defaultMode": _MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_volume(volume: Json) -> None:
    """Fill in the defaults of one volume; one without a source is an emptyDir."""
    sources = [key for key in volume if key != "name"]
    if not sources:
        volume["emptyDir"] = {}
    for source in sources:
        if (simple := _SIMPLE.get(source)) is not None:
            for field, value in simple.items():
                volume[source].setdefault(field, value)
        elif (fill := _SPECIAL.get(source)) is not None:
            fill(volume[source])


def default_field_refs(items: list[Json]) -> None:
    """Fill in the defaults of references to a pod's own fields: apiVersion and divisor."""
    for item in items:
        if (field := item.get("fieldRef")) is not None:
            field.setdefault("apiVersion", "v1")
        if (resource := item.get("resourceFieldRef")) is not None:
            resource["divisor"] = canonical(resource.get("divisor") or "0")


def default_claim_spec(spec: Json) -> None:
    """Fill in the defaults of what is claimed of a volume."""
    spec.setdefault("volumeMode", "Filesystem")
    resources: Json = spec.setdefault("resources", {})
    for kind in ("limits", "requests"):
        amounts: Json = resources.get(kind) or {}
        for name, amount in amounts.items():
            amounts[name] = canonical(amount)


@functools.lru_cache(maxsize=1024)
def pull_policy(image: str) -> str:
    """Return the default pull policy of an image: ``Always`` for ``latest``.

    A name that cannot be read is never ``latest``.
    """
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    is_latest = match["tag"] == "latest" or not (match["tag"] or match["digest"])
    return "Always" if is_latest else "IfNotPresent"


def _default_empty_dir(source: Json) -> None:
    if "sizeLimit" in source:
        source["sizeLimit"] = canonical(source["sizeLimit"])


def _default_downward(source: Json) -> None:
    source.setdefault("defaultMode", _MODE)
    default_field_refs(as_list(source.get("items")))


def _default_projected(source: Json) -> None:
    source.setdefault("defaultMode", _MODE)
    for one in source.get("sources") or ():
        if "serviceAccountToken" in one:
            one["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        if "downwardAPI" in one:
            default_field_refs(as_list(one["downwardAPI"].get("items")))


def _default_ephemeral(source: Json) -> None:
    if (claim := source.get("volumeClaimTemplate")) is not None:
        claim.setdefault("metadata", {})
        default_claim_spec(claim.setdefault("spec", {}))


def _default_image(source: Json) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference") or ""))


_SPECIAL: Final[Mapping[str, Callable[[Json], None]]] = {
    "emptyDir": _default_empty_dir,
    "downwardAPI": _default_downward,
    "projected": _default_projected,
    "ephemeral": _default_ephemeral,
    "image": _default_image,
}

"""The kinds that a definition serves."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.apiextensions import establishing
from kinform.apiserver.scheme.kind_registry import CUSTOM_VERBS, CustomVersion, Kind, Subresource
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, at, text

__all__ = ["kinds_of"]

_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")


def kinds_of(obj: Json) -> list[Kind]:
    """Return the served versions of a definition as kinds, in the order of its spec.

    Nothing is served before the definition is established.
    """
    if not establishing.is_established(obj):
        return []
    versions = (as_dict(one) for one in as_list(at(obj, "spec", "versions")))
    return [_kind(obj, version) for version in versions if version.get("served") is True]


def _kind(obj: Json, version: Json) -> Kind:
    called = as_dict(at(obj, "status", "acceptedNames"))
    name = text(obj, "metadata", "name")
    return Kind(
        group=text(obj, "spec", "group"),
        version=text(version, "name"),
        kind=text(called, "kind"),
        plural=text(called, "plural"),
        singular=text(called, "singular"),
        namespaced=text(obj, "spec", "scope") == "Namespaced",
        verbs=CUSTOM_VERBS,
        short_names=tuple(as_list(called.get("shortNames"))),
        categories=tuple(as_list(called.get("categories"))),
        subresources=_subresources(version, text(called, "kind")),
        storage=name,
        list_kind=text(called, "listKind"),
        custom=_custom(obj, version),
        deprecation=_deprecation(obj, version),
    )


def _deprecation(obj: Json, version: Json) -> str:
    if version.get("deprecated") is not True:
        return ""
    group, kind = text(obj, "spec", "group"), text(obj, "spec", "names", "kind")
    warning = text(version, "deprecationWarning")
    return warning or f"{group}/{text(version, 'name')} {kind} is deprecated"


def _subresources(version: Json, kind: str) -> dict[str, Subresource]:
    enabled = as_dict(version.get("subresources"))
    found: dict[str, Subresource] = {}
    if enabled.get("status") is not None:
        found["status"] = Subresource(name="status", verbs=_SUBRESOURCE_VERBS, kind=kind)
    if enabled.get("scale") is not None:
        found["scale"] = Subresource(
            name="scale", verbs=_SUBRESOURCE_VERBS, kind="Scale", group="autoscaling", version="v1"
        )
    return found


def _custom(obj: Json, version: Json) -> CustomVersion:
    scale = at(version, "subresources", "scale")
    selectable = (as_dict(one) for one in as_list(version.get("selectableFields")))
    return CustomVersion(
        definition=text(obj, "metadata", "name"),
        schema=as_dict(at(version, "schema", "openAPIV3Schema")),
        has_status=at(version, "subresources", "status") is not None,
        scale=dict(as_dict(scale)) if scale is not None else None,
        columns=tuple(as_list(version.get("additionalPrinterColumns"))),
        selectable_fields=tuple(text(one, "jsonPath") for one in selectable),
        is_terminating=establishing.is_terminating(obj),
    )

"""The diff of a PersistentVolumeClaim's spec in a refusal."""

from __future__ import annotations

import json
from typing import Final

from kinform.apiserver.scheme import line_diff
from kinform.apiserver.serializer.json_values import Json, as_dict

__all__ = ["difference"]

_FIELDS: Final = (
    ("AccessModes", "accessModes"),
    ("Selector", "selector"),
    ("Resources", "resources"),
    ("VolumeName", "volumeName"),
    ("StorageClassName", "storageClassName"),
    ("VolumeMode", "volumeMode"),
    ("DataSource", "dataSource"),
    ("DataSourceRef", "dataSourceRef"),
    ("VolumeAttributesClassName", "volumeAttributesClassName"),
)
_SOURCE: Final = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
_SOURCE_REF: Final = (*_SOURCE, ("Namespace", "namespace"))
_RESOURCES: Final = (("Limits", "limits"), ("Requests", "requests"))


def difference(before: Json, after: Json) -> str:
    """Return the lines in which two specs differ, as the server lays them out."""
    old, new = (_lines(spec) for spec in (before, after))
    return "".join(f"{line}\n" for line in line_diff.unified(old, new, end=""))


def _lines(spec: Json) -> list[str]:
    shown = _as_struct(spec, _FIELDS)
    shown["VolumeName"] = shown["VolumeName"] or ""
    resources = _as_struct(as_dict(shown["Resources"]), _RESOURCES)
    shown["Resources"] = {
        name: dict(sorted(value.items())) if value else value for name, value in resources.items()
    }
    if shown["DataSource"]:
        shown["DataSource"] = _as_struct(shown["DataSource"], _SOURCE)
    if shown["DataSourceRef"]:
        shown["DataSourceRef"] = _as_struct(shown["DataSourceRef"], _SOURCE_REF)
    if selector := shown["Selector"]:
        shown["Selector"] = {
            name: dict(sorted(selector[name].items())) if name == "matchLabels" else selector[name]
            for name in ("matchLabels", "matchExpressions")
            if selector.get(name)
        }
    return json.dumps(shown, indent=1, ensure_ascii=False).splitlines()


def _as_struct(obj: Json, fields: tuple[tuple[str, str], ...]) -> Json:
    """Return an object with its fields as Go calls them, those that are not there as null."""
    return {name: obj.get(field) for name, field in fields}

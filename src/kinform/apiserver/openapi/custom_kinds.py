"""OpenAPI documents of custom kinds, made from the recorded document of two sample kinds.

The made-up kinds, one in namespaces and one not, have every subresource and names that occur
nowhere else. Another kind's paths are theirs with the names exchanged, so operations, parameters
and descriptions are word for word what the real server publishes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kinform.apiserver import _recorded
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict, as_list

__all__ = ["definition_name", "document"]

_GROUP: Final = "zztemplate.kinform.dev"
_VERSION: Final = "v98765"
_REFERENCE: Final = re.compile(rb'"\$ref":"#/components/schemas/([^"]+)"')
_SUBRESOURCES: Final = ("status", "scale")
_EMBEDDED_REQUIRED: Final = ("kind", "apiVersion")
_CONVENTIONS: Final = (
    "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)
_EMBEDDED: Final[Json] = {
    "apiVersion": {
        "description": "apiVersion defines the versioned schema of this representation of an "
        f"object. {_CONVENTIONS}#resources",
        "type": "string",
    },
    "kind": {
        "description": "kind is a string value representing the type of this object. In "
        f"CamelCase. {_CONVENTIONS}#types-kinds",
        "type": "string",
    },
}


def document(kinds: Sequence[Kind]) -> Json:
    """Return the document of custom kinds, all of one group and version."""
    paths: Json = {}
    schemas: Json = {}
    for kind in kinds:
        made = _made_from_template(kind)
        paths |= made["paths"]
        schemas |= _schemas(kind, made["schemas"])
    schemas |= _shared_schemas([paths, schemas])
    template = _recorded.custom_template().document
    return template | {
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def definition_name(kind: Kind, name: str = "") -> str:
    """Return what the schema of a custom kind is called, or of another kind beside it.

    The group is in it backwards: ``com.example.v1.Widget``.
    """
    group = ".".join(reversed(kind.group.split(".")))
    return f"{group}.{kind.version}.{name or kind.kind}"


def _made_from_template(kind: Kind) -> Json:
    """Return the paths and schemas of the template, under the names of ``kind``."""
    text = _template(namespaced=kind.namespaced)
    model = "Zznamespaced" if kind.namespaced else "Zzcluster"
    group, version = _words(kind.group), _words(kind.version)
    own = ".".join(reversed(_GROUP.split(".")))
    # Each name precedes those that it contains.
    for old, new in (
        ("ZztemplateKinformDevV98765", _capitalized([*group, *version])),
        ("zztemplateKinformDev_v98765", f"{_camel(group)}_{_camel(version)}"),
        (f"{own}.{_VERSION}", definition_name(kind).removesuffix(f".{kind.kind}")),
        (_GROUP, kind.group),
        (_VERSION, kind.version),
        (f"{model.lower()}s", kind.plural),
        (f"{model}List", kind.list_kind),
        (f" a {model}", f" {_with_article(kind.kind)}"),
        (model, kind.kind),
    ):
        text = text.replace(old, new)
    made: Json = msgspec.json.decode(text)
    for name in _SUBRESOURCES:
        if name not in kind.subresources:
            made["paths"] = {
                path: it for path, it in made["paths"].items() if not path.endswith(f"/{name}")
            }
    return made


@functools.cache
def _template(*, namespaced: bool) -> str:
    """Return the paths and the own schemas of one of the made-up kinds, as JSON."""
    template = _recorded.custom_template()
    plural, name = ("zznamespaceds", "Zznamespaced") if namespaced else ("zzclusters", "Zzcluster")
    paths: Json = template.document["paths"]
    part = {
        "paths": {path: it for path, it in paths.items() if plural in path.split("/")},
        "schemas": {key: it for key, it in template.variants.items() if f".{name}" in key},
    }
    return msgspec.json.encode(part).decode()


def _with_article(kind: str) -> str:
    """Return a kind as the server speaks of one: ``an Ingress``, ``a Pod``, ``Endpoints``."""
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind
    return f"an {kind}" if kind[0] in "AEIOUaeiou" else f"a {kind}"


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^0-9A-Za-z]+", text) if word]


def _capitalized(words: Iterable[str]) -> str:
    return "".join(word[0].upper() + word[1:] for word in words)


def _camel(words: Sequence[str]) -> str:
    return words[0] + _capitalized(words[1:])


# Schemas.


def _schemas(kind: Kind, made: Json) -> Json:
    """Return the schemas of a kind and of its list, with what its definition says of them."""
    name, list_name = definition_name(kind), definition_name(kind, kind.list_kind)
    assert kind.custom is not None
    common: Json = {}
    if kind.custom.selectable_fields:
        common["x-kubernetes-selectable-fields"] = [
            {"fieldPath": path.removeprefix(".")} for path in kind.custom.selectable_fields
        ]
    own = _published(kind.custom.schema)
    properties = as_dict(own.get("properties")) | made[name]["properties"]
    own |= {"properties": dict(sorted(properties.items()))}
    gvk: Json = {"x-kubernetes-group-version-kind": made[name]["x-kubernetes-group-version-kind"]}
    return {
        name: {"type": "object"} | own | gvk | common,
        list_name: made[list_name] | common,
    }


def _published(node: Json) -> Json:
    """Return a copy of a schema with what the server adds for clients that know no extensions."""
    found: Json = {key: _published_part(key, value) for key, value in node.items()}
    if node.get("x-kubernetes-int-or-string") is True and not node.keys() & {"anyOf", "allOf"}:
        found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if node.get("x-kubernetes-embedded-resource") is True:
        own = as_dict(found.get("properties"))
        found["properties"] = dict(sorted((own | _embedded()).items()))
        required = as_list(found.get("required"))
        found["required"] = [*required, *(it for it in _EMBEDDED_REQUIRED if it not in required)]
    return found


def _published_part(key: str, value: JsonValue) -> JsonValue:
    if key == "properties":
        return {name: _published(it) for name, it in sorted(as_dict(value).items())}
    if key in {"items", "additionalProperties"} and value is not True and value is not False:
        return _published(as_dict(value))
    return value


@functools.cache
def _embedded() -> Json:
    """Return what every object inside another has; its metadata is described as a root's is."""
    [root] = [
        it
        for name, it in _recorded.custom_template().variants.items()
        if name.endswith("Zzcluster")
    ]
    return _EMBEDDED | {"metadata": root["properties"]["metadata"]}


def _shared_schemas(parts: Iterable[Json]) -> Json:
    """Return the built-in schemas that something in ``parts`` refers to, directly or not."""
    variants, schemas = _recorded.custom_template().variants, _recorded.schemas()
    found: Json = {}
    waiting = list(parts)
    while waiting:
        for match in _REFERENCE.findall(msgspec.json.encode(waiting.pop())):
            name = match.decode()
            if name not in found and name in schemas:
                found[name] = variants.get(name) or schemas[name]
                waiting.append(found[name])
    return found

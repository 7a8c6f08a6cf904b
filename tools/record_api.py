"""Ask a real kube-apiserver what it serves, and keep the answers for the embedded one.

    python tools/record_api.py                           on a control plane of its own
    python tools/record_api.py --server http://host:port on one that runs, without credentials;
                                                         definitions are created and deleted

Writes ``src/kinform/apiserver/data/``:

* ``api.json.xz``: discovery, the columns of tables, the names of schemas, the version;
* ``schemas.json.xz``: every schema by its name, once;
* ``openapi.json.xz``: the OpenAPI documents, with the names of their schemas instead of these;
* ``custom.json.xz``: the same for two made-up custom kinds, as a template for all others;
* ``zones.json.xz``: the names of time zones, from this machine's database;
* ``blanks.json.xz``: an object of each kind with nothing in it, as Go writes one;

and, for tests to compare with, ``tests/apiserver/recorded/``:

* ``discovery.json.xz``: the older discovery documents;
* ``openapi.json.xz``: a mark of each OpenAPI document, as it was before it was taken apart;
* ``custom_kinds.json.xz``: the server's documents about the kinds in ``definitions.yaml``.

The same server gives the same bytes. Of other custom kinds that it may have nothing is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import lzma
import sys
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from kinform import Client, Config, connect
from kinform.testing import ControlPlane

Json: TypeAlias = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src/kinform/apiserver/data"
RECORDED = ROOT / "tests/apiserver/recorded"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
EXTRA_GROUPS = frozenset({"autoscaling", "batch", "apps", "policy"})
"""The built-in groups whose names do not end in ``.k8s.io``."""
TEMPLATE_GROUP = "zztemplate.kinform.dev"
TEMPLATE_VERSION = "v98765"
TEMPLATE_KINDS = {"Zznamespaced": "Namespaced", "Zzcluster": "Cluster"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def main() -> None:
    """Record everything."""
    parser = argparse.ArgumentParser(description="Record what a kube-apiserver serves.")
    parser.add_argument("--server", help="the URL of a server that runs")
    server: str | None = parser.parse_args().server
    asyncio.run(record_from(server) if server else record_from_new())


async def record_from_new() -> None:
    """Record from a new, empty control plane."""
    async with ControlPlane() as cp, cp.connect() as client:
        await record(client)


async def record_from(server: str) -> None:
    """Record from a server that runs."""
    async with connect(Config(server=server)) as client:
        await record(client)


async def record(client: Client) -> None:
    """Ask for everything, then write it."""
    core = await fetch(client, "/api", accept=AGGREGATED)
    named = await fetch(client, "/apis", accept=AGGREGATED)
    groups = core["items"] + [item for item in named["items"] if is_built_in(item)]
    documents = await openapi_documents(client, {group_name(item) for item in groups})
    schemas = merged_schemas(documents)
    write(
        RECORDED / "openapi.json.xz",
        {path: mark(entry["document"]) for path, entry in documents.items()},
    )
    legacy = await legacy_discovery(client, groups)
    template, custom = await custom_kinds(client)
    write(DATA / "schemas.json.xz", schemas)
    write(DATA / "openapi.json.xz", without_schemas(documents, schemas))
    write(DATA / "custom.json.xz", without_schemas({"": template}, schemas)[""])
    write(
        DATA / "api.json.xz",
        {
            "version": await fetch(client, "/version"),
            "groups": groups,
            "columns": await columns(client, groups),
            "storage_hashes": storage_hashes(legacy),
            "definitions": definitions(schemas),
        },
    )
    write(DATA / "zones.json.xz", sorted(zoneinfo.available_timezones()))
    write(DATA / "blanks.json.xz", await blanks(client, groups))
    write(RECORDED / "discovery.json.xz", legacy)
    write(RECORDED / "custom_kinds.json.xz", custom)


async def blanks(client: Client, groups: list[Json]) -> Json:
    """Return what a bookmark of each kind has beside its metadata, if it has something."""
    found: Json = {}
    for group in groups:
        for version in group["versions"]:
            for resource in version["resources"]:
                if "watch" not in resource["verbs"]:
                    continue
                base = path_of(group_name(group), version["version"])
                obj = await first_bookmark(client, f"{base}/{resource['resource']}")
                name = f"{obj.pop('apiVersion')}/{obj.pop('kind')}"
                del obj["metadata"]
                if obj:
                    found[name] = obj
    return found


async def first_bookmark(client: Client, path: str) -> Json:
    """Return the object of the bookmark that ends the initial events; there are no others."""
    options = {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "labelSelector": "kinform.dev/none",
    }
    async with client.rest().get().abs_path(path).params(options).stream() as response:
        line = b""
        while not line.endswith(b"\n"):
            line += await response.read_some()
    event: Json = json.loads(line.partition(b"\n")[0])
    assert event["type"] == "BOOKMARK"
    return dict(event["object"])


async def fetch(client: Client, path: str, *, accept: str = "application/json") -> Json:
    """Return the answer to a GET."""
    path, _, query = path.partition("?")
    request = client.rest().get().abs_path(path).header("Accept", accept)
    if query:
        name, _, value = query.partition("=")
        request.params({name: value})
    answer: Json = json.loads(await request.raw())
    return answer


def group_name(item: Json) -> str:
    """Return the name of a group in discovery; the core group has none."""
    name: str = item["metadata"].get("name", "")
    return name


def is_built_in(item: Json) -> bool:
    """Return whether the server itself brings this group along."""
    return group_name(item) in EXTRA_GROUPS or group_name(item).endswith(".k8s.io")


def path_of(group: str, version: str) -> str:
    """Return the URL path of a group and version."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


async def openapi_documents(client: Client, groups: set[str]) -> dict[str, Json]:
    """Return path, document and hash of each OpenAPI document."""
    index: dict[str, Json] = (await fetch(client, "/openapi/v3"))["paths"]
    found: dict[str, Json] = {}
    for path, entry in index.items():
        if path.startswith("apis/") and path.split("/")[1] not in groups:
            continue
        url: str = entry["serverRelativeURL"]
        found[path] = {"hash": url.partition("?hash=")[2], "document": await fetch(client, url)}
    return found


def schemas_of(document: Json) -> dict[str, Json]:
    """Return the schemas of a document by name."""
    schemas: dict[str, Json] = document.get("components", {}).get("schemas", {})
    return schemas


def merged_schemas(documents: dict[str, Json]) -> dict[str, Json]:
    """Return every schema once, in the form that most documents have it in."""
    forms: dict[str, Counter[str]] = {}
    for entry in documents.values():
        for name, schema in schemas_of(entry["document"]).items():
            forms.setdefault(name, Counter())[json.dumps(schema)] += 1
    return {
        name: json.loads(min(counts, key=lambda form: (-counts[form], form)))
        for name, counts in sorted(forms.items())
    }


def without_schemas(documents: dict[str, Json], schemas: dict[str, Json]) -> dict[str, Json]:
    """Return the documents with the names of their schemas, and what they have otherwise."""
    for entry in documents.values():
        own = schemas_of(entry["document"])
        if own:
            entry["document"]["components"]["schemas"] = {}
        entry["schemas"] = list(own)
        entry["variants"] = {name: it for name, it in own.items() if it != schemas.get(name)}
    return documents


def definitions(schemas: dict[str, Json]) -> dict[str, str]:
    """Return the name of the schema of each kind, by ``group/version/kind``."""
    found: dict[str, str] = {}
    for name, schema in schemas.items():
        kinds = schema.get("x-kubernetes-group-version-kind", [])
        if name.startswith("io.k8s.apimachinery.") and len(kinds) != 1:
            continue  # DeleteOptions and WatchEvent, which every group has
        for kind in kinds:
            found[f"{kind['group']}/{kind['version']}/{kind['kind']}"] = name
    return dict(sorted(found.items()))


async def columns(client: Client, groups: list[Json]) -> dict[str, list[Json]]:
    """Return the columns of each kind's table, by ``group/version/plural``."""
    found: dict[str, list[Json]] = {}
    for group in groups:
        name = group_name(group)
        for version in group["versions"]:
            for resource in version["resources"]:
                if "list" not in resource["verbs"]:
                    continue
                path = f"{path_of(name, version['version'])}/{resource['resource']}"
                table = await fetch(client, f"{path}?limit=1", accept=TABLE)
                key = f"{name}/{version['version']}/{resource['resource']}"
                found[key] = table["columnDefinitions"]
    return dict(sorted(found.items()))


async def legacy_discovery(client: Client, groups: list[Json]) -> dict[str, Json]:
    """Return the discovery documents of groups and of versions, by path."""
    every = await fetch(client, "/apis")
    built_in = {group_name(group) for group in groups}
    every["groups"] = [group for group in every["groups"] if group["name"] in built_in]
    found: dict[str, Json] = {"/apis": every}
    for group in groups:
        name = group_name(group)
        if name:
            found[f"/apis/{name}"] = await fetch(client, f"/apis/{name}")
        for version in group["versions"]:
            path = path_of(name, version["version"])
            found[path] = await fetch(client, path)
    return found


def storage_hashes(legacy: dict[str, Json]) -> dict[str, str]:
    """Return the hashes of storage versions, by ``group/version/plural``."""
    found: dict[str, str] = {}
    for document in legacy.values():
        for resource in document.get("resources", ()):
            if hashed := resource.get("storageVersionHash"):
                group, _, version = document["groupVersion"].rpartition("/")
                found[f"{group}/{version}/{resource['name']}"] = hashed
    return dict(sorted(found.items()))


def template_definition(kind: str, scope: str) -> Json:
    """Return a CustomResourceDefinition with every subresource."""
    plural = f"{kind.lower()}s"
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": TEMPLATE_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "subresources": {"status": {}, "scale": paths},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{TEMPLATE_GROUP}"},
        "spec": {
            "group": TEMPLATE_GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


async def custom_kinds(client: Client) -> tuple[Json, Json]:
    """Define custom kinds and delete them at the end.

    Return the template's OpenAPI document, and the server's documents about the other kinds.
    """
    template = [template_definition(kind, scope) for kind, scope in TEMPLATE_KINDS.items()]
    others = list(yaml.safe_load_all(RECORDED.joinpath("definitions.yaml").read_text("utf-8")))
    rest = client.rest()
    try:
        for definition in [*template, *others]:
            await rest.post().abs_path(DEFINITIONS).body(definition).do()
        async with asyncio.timeout(60):
            documents = await published(client, [*template, *others])
            old = await published_v2(client, [*template, *others])
        return (
            {"hash": "", "document": documents.pop(f"apis/{TEMPLATE_GROUP}/{TEMPLATE_VERSION}")},
            await told_of(client, others) | {"openapi": documents, "openapi_v2": old},
        )
    finally:
        for definition in [*template, *others]:
            await rest.delete().abs_path(f"{DEFINITIONS}/{definition['metadata']['name']}").do()


def served(definitions: list[Json]) -> Iterator[tuple[str, str, str]]:
    """Yield group, version and kind of everything that is served."""
    for definition in definitions:
        spec = definition["spec"]
        for version in spec["versions"]:
            if version["served"]:
                yield spec["group"], version["name"], spec["names"]["kind"]


def schema_name(group: str, version: str, kind: str) -> str:
    """Return how OpenAPI calls a custom kind."""
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


async def published(client: Client, definitions: list[Json]) -> dict[str, Json]:
    """Wait until OpenAPI has all kinds; return its documents by path."""
    found: dict[str, Json] = {}
    for group, version, kind in served(definitions):
        path = f"apis/{group}/{version}"
        while schema_name(group, version, kind) not in schemas_of(found.get(path, {})):
            await asyncio.sleep(0.2)
            index: Json = (await fetch(client, "/openapi/v3"))["paths"]
            if path in index:
                found[path] = await fetch(client, index[path]["serverRelativeURL"])
    return found


async def published_v2(client: Client, definitions: list[Json]) -> Json:
    """Wait until the older OpenAPI document has all kinds; return marks of its definitions.

    The definitions themselves are large, and can be made from the newer documents: a part of a
    hash tells whether one was made rightly.
    """
    names = {schema_name(*it) for it in served(definitions)}
    while True:
        found: dict[str, Json] = (await fetch(client, "/openapi/v2"))["definitions"]
        if found.keys() >= names:
            break
        await asyncio.sleep(0.2)
    names |= {f"{name}List" for name in names}
    template = schema_name(TEMPLATE_GROUP, TEMPLATE_VERSION, "")
    return {
        name: mark(it)
        for name, it in sorted(found.items())
        if (name in names or name.startswith("io.k8s.")) and not name.startswith(template)
    }


def mark(value: object) -> str:
    """Return a short hash of a JSON value; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


async def told_of(client: Client, definitions: list[Json]) -> Json:
    """Return the discovery documents of custom kinds, and their definitions from the server."""
    groups = {definition["spec"]["group"] for definition in definitions}
    every = await fetch(client, "/apis", accept=AGGREGATED)
    items = [item for item in every["items"] if group_name(item) in groups]
    specs = [
        (await fetch(client, f"{DEFINITIONS}/{definition['metadata']['name']}"))["spec"]
        for definition in definitions
    ]
    legacy = await legacy_discovery(client, items)
    for document in legacy.values():
        resources: list[Json] = document.get("resources", [])
        resources.sort(key=lambda it: it["name"])  # the server's order is any
    return {"definitions": specs, "aggregated": items, "legacy": legacy}


def write(path: Path, value: object) -> None:
    """Write compressed JSON, with the same bytes for the same value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    packed = lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed)
    sys.stderr.write(f"{path.relative_to(ROOT)}: {len(text)} bytes, {len(packed)} packed\n")


if __name__ == "__main__":
    main()

"""Hostile requests to an embedded server with a data file: refused ones leave no trace in it."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kinform.apiserver import APIServer
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.scheme.kind_registry import schema_of
from kinform.apiserver.storage.versioned_store import Storage, Stored
from kinform.testing import in_virtual_time
from tests.security.test_embedded_costs import (
    APPLY,
    CASES,
    DEFINITIONS,
    JSON,
    JSON_PATCH,
    MAPS,
    MERGE,
    SECRETS,
    STRATEGIC,
    Step,
    definition,
    odd_object,
    with_field,
)

SHOPS = "/apis/example.com/v1/namespaces/default/shops"
SECRET = {"metadata": {"name": "a"}, "stringData": {"p": "x"}}
BROKEN_PATTERN = {"type": "string", "pattern": r"\x{fffffffff}"}
CHANGES: list[dict[str, object]] = [
    {"apiVersion": [None], "data": {"q": "eA=="}},
    {"apiVersion": -1},
    {"apiVersion": {"a": 1}},
    {"apiVersion": "a/b/c"},
    {"kind": [{}]},
    {"kind": True},
]
REFUSED: list[Step] = [
    Step("POST", DEFINITIONS, with_field(BROKEN_PATTERN)),
    Step("POST", DEFINITIONS, with_field(BROKEN_PATTERN | {"default": "a"})),
    Step("POST", DEFINITIONS, with_field({"type": "string", "minimum": "*", "default": "x"})),
    Step("PATCH", f"{DEFINITIONS}/shops.example.com", {"spec": {"versions": [None]}}, MERGE),
    *(Step("PATCH", f"{SECRETS}/a", change, MERGE) for change in CHANGES),
    *(Step("PATCH", f"{SECRETS}/a", {**change, "data": {}}, STRATEGIC) for change in CHANGES),
    *(
        Step(
            "PATCH",
            f"{SECRETS}/a",
            [{"op": "add", "path": f"/{name}", "value": value} for name, value in change.items()],
            JSON_PATCH,
        )
        for change in CHANGES
    ),
    *(steps[0] for steps, code in CASES.values() if len(steps) == 1 and code >= 400),
]

Picture = tuple[int, Mapping[str, list[Stored]]]


def picture(storage: Storage) -> Picture:
    """Return all that a storage holds."""
    tables = {name: list(storage.table(name).now()) for name in sorted(storage.resources())}
    return storage.revision, {name: rows for name, rows in tables.items() if rows}


def server(path: Path) -> APIServer:
    return APIServer(port=None, token="x", data=path, seed=1)


async def send(api: APIServer, step: Step) -> int:
    body = step.body
    if not isinstance(body, bytes):
        body = b"" if body is None else json.dumps(body).encode()
    headers = {"authorization": "Bearer x", "content-type": step.form}
    request = ServerRequest.of(step.method, step.path, headers=headers, body=body)
    return (await api.application.handle(request)).status


def assert_intact(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.slow
@in_virtual_time
async def test_what_is_refused_changes_neither_the_store_nor_its_file(tmp_path: Path) -> None:
    shop: dict[str, Any] = definition({"type": "object"})
    shop["metadata"]["name"] = "shops.example.com"
    names = {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"}
    shop["spec"] |= {"group": "example.com", "names": names}
    path = tmp_path / "a.db"
    async with server(path) as api:
        for kept in (Step("POST", SECRETS, SECRET), Step("POST", DEFINITIONS, shop)):
            assert await send(api, kept) == 201
        identity = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "s"}}
        assert await send(api, Step("POST", SHOPS, identity)) == 201
        before = picture(api.cluster.storage)

        for step in REFUSED:
            code = await send(api, step)
            assert 400 <= code < 500, (code, step.path, str(step.body)[:200])
            assert picture(api.cluster.storage) == before

    assert_intact(path)
    async with server(path) as api:
        assert picture(api.cluster.storage) == before
        assert await send(api, Step("GET", f"{SHOPS}/s")) == 200
        assert await send(api, Step("POST", MAPS, {"metadata": {"name": "later"}})) == 201


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@in_virtual_time
async def test_whatever_odd_objects_are_accepted_a_later_server_has_the_same(
    seed: int, tmp_path: Path
) -> None:
    pick, path, codes = random.Random(seed), tmp_path / "a.db", Counter[int]()
    async with server(path) as api:
        kinds = [kind for kind in api.cluster.kinds.all() if "create" in kind.verbs]
        for kind, name, form in itertools.product(kinds, "abc", (JSON, APPLY, MERGE)):
            root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
            target = f"{root}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
            identity: dict[str, object] = {"apiVersion": kind.api_version, "kind": kind.kind}
            identity["metadata"] = {"name": name}
            body = odd_object(pick, schema_of(kind), pick.randint(1, 5))
            body = body | identity if isinstance(body, dict) else identity
            method = "POST" if form == JSON else "PATCH"
            target += "" if form == JSON else f"/{name}"
            target += "?fieldManager=x&force=true" if form == APPLY else ""
            codes[await send(api, Step(method, target, body, form))] += 1
        before = picture(api.cluster.storage)
    assert codes[201] >= 20
    assert codes[422] >= 20

    assert_intact(path)
    async with server(path) as api:
        assert picture(api.cluster.storage) == before

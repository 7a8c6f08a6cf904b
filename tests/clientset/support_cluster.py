"""Every kind that a server lists, as the models read and write it."""

from __future__ import annotations

import copy
import json
from typing import Any

import kinform.clientset
from kinform import Client
from kinform.errors import ApiError
from kinform.resource import encode, model_decoder
from tests.clientset.support_schema import api
from tests.contract.cases.kinds_created import CLUSTER, NAMESPACED
from tools.clientset.recorded import Served


def model_of(served: Served) -> type[Any]:
    module = getattr(kinform.clientset, served.module)
    model: type[Any] = getattr(module, served.kind.kind)
    return model


def without_nulls(value: Any) -> Any:
    """Return JSON in which what is null is absent: no model can tell them apart."""
    if isinstance(value, dict):
        return {key: without_nulls(it) for key, it in value.items() if it is not None}
    return [without_nulls(it) for it in value] if isinstance(value, list) else value


def there_and_back(served: Served, raw: bytes) -> Any:
    return json.loads(encode(model_decoder(model_of(served))(raw)))


async def populate(client: Client, namespace: str) -> list[str]:
    """Create an object of every sort that the contract with the real server knows."""
    paths = []
    for scope in (NAMESPACED, CLUSTER):
        for number, entry in enumerate(scope.values()):
            path = str(entry["path"]).replace("{ns}", namespace)
            text = json.dumps(copy.deepcopy(entry["body"])).replace("{ns}", namespace)
            body = json.loads(text)
            metadata = body.setdefault("metadata", {})
            metadata["name"] = f"a{number}" if scope is NAMESPACED else f"{namespace}-{number}"
            await client.rest().post().abs_path(path).body(body).do()
            paths.append(f"{path}/{metadata['name']}")
    return paths


async def check_everything(client: Client) -> int:
    """Compare every object of the cluster with what a model makes of it; return how many."""
    count = 0
    for served in api().resources:
        if "list" not in served.verbs:
            continue
        try:
            found = await client.resource(str(served.kind.gvr), namespace="").list()
        except ApiError as exc:
            raise AssertionError(f"{served.kind.gvr} cannot be listed: {exc}") from exc
        for obj in found:
            assert there_and_back(served, obj.raw) == without_nulls(json.loads(obj.raw))
            count += 1
    return count

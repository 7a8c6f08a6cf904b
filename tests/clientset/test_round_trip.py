"""JSON, model, JSON: nothing is lost that the schema knows."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver import APIServer
from kinform.testing import ControlPlane
from tests.clientset.support_cluster import (
    check_everything,
    model_of,
    populate,
    there_and_back,
)
from tests.clientset.support_schema import api, objects, whole
from tools.clientset.recorded import Served

SERVED = {str(served.kind.gvr): served for served in api().resources}


@pytest.mark.parametrize("name", SERVED)
@settings(max_examples=15)
@given(data=st.data())
def test_any_object_of_the_schema_comes_back_as_it_was(data: st.DataObject, name: str) -> None:
    served: Served = SERVED[name]
    content = data.draw(objects(served))
    raw = json.dumps(content).encode()
    assert there_and_back(served, raw) == content
    model = msgspec.json.decode(raw, type=model_of(served))
    assert json.loads(msgspec.json.encode(model)) == content


@pytest.mark.parametrize("name", SERVED)
def test_an_object_with_every_field_of_the_schema_comes_back(name: str) -> None:
    content = whole(SERVED[name])
    assert there_and_back(SERVED[name], json.dumps(content).encode()) == content


@pytest.mark.parametrize("name", SERVED)
def test_a_model_of_nothing_is_nothing(name: str) -> None:
    assert there_and_back(SERVED[name], b"{}") == {}


def test_empty_is_not_absent() -> None:
    content: dict[str, object] = {
        "metadata": {},
        "spec": {"containers": [], "nodeSelector": {}, "volumes": [{"emptyDir": {}}]},
    }
    assert there_and_back(SERVED["v1/pods"], json.dumps(content).encode()) == content


def test_nulls_of_lists_and_times_can_be_read() -> None:
    raw = b'{"rules":null,"metadata":{"creationTimestamp":null,"managedFields":null}}'
    content = there_and_back(SERVED["rbac.authorization.k8s.io/v1/clusterroles"], raw)
    assert content in ({"metadata": {}}, {"metadata": {"managedFields": None}})


def test_nulls_inside_free_form_content_are_kept() -> None:
    content = {"data": {"spec": {"a": None}}, "revision": 1}
    served = SERVED["apps/v1/controllerrevisions"]
    assert there_and_back(served, json.dumps(content).encode()) == content


async def test_every_object_of_a_populated_embedded_cluster_comes_back() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        await client.core_v1.namespaces().create({"metadata": {"name": "here"}})
        made = await populate(client, "here")
        assert await check_everything(client) > len(made) >= 50


@pytest.mark.e2e
async def test_every_object_of_a_populated_real_cluster_comes_back(
    kinform_control_plane: ControlPlane, kinform_namespace: str
) -> None:
    async with kinform_control_plane.connect() as client:
        made = await populate(client, kinform_namespace)
        try:
            assert await check_everything(client) > len(made) >= 50
        finally:
            for path in made:
                if f"/namespaces/{kinform_namespace}/" not in path:
                    await client.rest().delete().abs_path(path).do()

"""OpenAPI documents are those of the real server, or what it would make of a definition."""

from __future__ import annotations

import json

import pytest

from kinform.apiserver import _recorded
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.openapi import v3
from kinform.apiserver.openapi.v3 import OpenApi
from kinform.apiserver.scheme import kind_registry
from tests.apiserver import recorded

SHARED_BY_GROUPS = {
    f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}" for name in ("DeleteOptions", "WatchEvent")
}
"""Their lists of groups name some, of the real server, that serve nothing."""


def get(answers: OpenApi, target: str, **headers: str) -> ServerResponse:
    response = answers.answer(ServerRequest.of("GET", target, headers=headers))
    assert response is not None
    return response


def body(response: ServerResponse) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


@pytest.mark.parametrize("path", recorded.custom()["openapi"])
def test_documents_of_custom_kinds_are_those_of_the_real_server(path: str) -> None:
    assert v3.document(recorded.registry(), path) == recorded.custom()["openapi"][path]


def test_documents_of_built_in_kinds_are_those_of_the_real_server() -> None:
    registry = kind_registry.builtin()
    marks = {path: recorded.mark(v3.document(registry, path)) for path in _recorded.documents()}
    assert marks == recorded.openapi_marks()


@pytest.mark.parametrize("path", sorted(_recorded.documents()))
def test_every_reference_in_a_document_leads_somewhere(path: str) -> None:
    document = v3.document(kind_registry.builtin(), path)
    assert document is not None
    schemas = document["components"].get("schemas", {})
    references = json.dumps(document).split('"#/components/schemas/')[1:]
    assert {it.partition('"')[0] for it in references} <= schemas.keys()


def test_definitions_of_version_2_are_those_of_the_real_server() -> None:
    made = v3.document_v2(recorded.registry())["definitions"]
    expected = recorded.custom()["openapi_v2"]
    marks = {name: recorded.mark(it) for name, it in made.items()}
    assert {it for it in expected if marks.get(it) != expected[it]} == SHARED_BY_GROUPS


def test_version_2_tells_bodies_and_parameters_of_operations() -> None:
    paths = v3.document_v2(recorded.registry())["paths"]
    operation = paths["/apis/shop.example.com/v1/widgets/{name}"]["patch"]
    assert operation["consumes"][0] == "application/apply-patch+yaml"
    assert operation["parameters"][0]["schema"] == {
        "$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
    }
    assert operation["parameters"][1]["type"] == "string"
    assert operation["responses"]["200"]["schema"] == {
        "$ref": "#/definitions/com.example.shop.v1.Widget"
    }


def test_the_index_leads_to_every_document() -> None:
    answers = OpenApi(recorded.registry())
    index = json.loads(body(get(answers, "/openapi/v3")))["paths"]
    assert index.keys() == _recorded.documents().keys() | recorded.custom()["openapi"].keys()
    for path in ("api/v1", "version", "apis/shop.example.com/v1"):
        response = get(answers, index[path]["serverRelativeURL"])
        assert response.status == 200
        assert response.headers["Cache-Control"] == "public, immutable"
        assert json.loads(body(response)) == v3.document(recorded.registry(), path)


def test_who_asks_with_an_old_hash_is_sent_to_the_new_one() -> None:
    answers = OpenApi(kind_registry.builtin())
    response = get(answers, "/openapi/v3/apis/apps/v1?hash=OLD&timeout=32s")
    assert response.status == 301
    assert get(answers, response.headers["Location"]).status == 200


def test_a_document_that_the_client_has_already_is_not_sent_again() -> None:
    answers = OpenApi(kind_registry.builtin())
    etag = get(answers, "/openapi/v3/version").headers["ETag"]
    response = get(answers, "/openapi/v3/version", **{"If-None-Match": etag})
    assert (response.status, response.body) == (304, b"")


PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def test_version_3_is_not_served_as_protobuf_alone() -> None:
    target = "/openapi/v3/apis/apps/v1"
    assert get(OpenApi(kind_registry.builtin()), target, Accept=PROTOBUF).status == 406
    assert get(OpenApi(kind_registry.builtin()), target, Accept=f"{PROTOBUF}, */*").status == 200


def test_version_2_is_served_as_protobuf_which_kubectl_asks_for() -> None:
    response = get(OpenApi(kind_registry.builtin()), "/openapi/v2", Accept=PROTOBUF)
    assert response.status == 200
    assert isinstance(response.body, bytes)
    assert b"io.k8s.api.core.v1.Pod" in response.body
    assert not response.body.startswith(b"{")


def test_a_document_that_is_not_there_is_an_empty_404() -> None:
    response = get(OpenApi(kind_registry.builtin()), "/openapi/v3/apis/none/v1")
    assert (response.status, response.body) == (404, b"")


def test_a_changed_definition_changes_the_hash_of_its_own_document_only() -> None:
    registry = recorded.registry()
    answers = OpenApi(registry)
    before = json.loads(body(get(answers, "/openapi/v3")))["paths"]
    spec = recorded.custom()["definitions"][0]
    first = spec["versions"][0]
    changed = first | {"schema": {"openAPIV3Schema": {"type": "object", "description": "New."}}}
    registry.put(recorded.kinds_of(spec | {"versions": [changed, *spec["versions"][1:]]}))
    after = json.loads(body(get(answers, "/openapi/v3")))["paths"]
    assert {path for path in after if after[path] != before[path]} == {"apis/shop.example.com/v1"}
    document = json.loads(body(get(answers, "/openapi/v3/apis/shop.example.com/v1")))
    gadget = document["components"]["schemas"]["com.example.shop.v1.Gadget"]
    assert gadget["description"] == "New."


def test_a_kind_that_is_gone_has_no_document() -> None:
    registry = recorded.registry()
    answers = OpenApi(registry)
    assert get(answers, "/openapi/v3/apis/shop.example.com/v1beta1").status == 200
    registry.remove("gadgets.shop.example.com")
    assert get(answers, "/openapi/v3/apis/shop.example.com/v1beta1").status == 404


def test_other_paths_are_left_to_others() -> None:
    assert OpenApi(kind_registry.builtin()).answer(ServerRequest.of("GET", "/openapi")) is None

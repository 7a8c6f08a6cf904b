"""Discovery says of kinds what the real server says of them."""

from __future__ import annotations

import pytest

from kinform.apiserver import _recorded
from kinform.apiserver.endpoints import discovery
from kinform.apiserver.endpoints.discovery import AGGREGATED, DiscoveryDocuments, wants_aggregated
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.scheme import kind_registry
from kinform.apiserver.serializer.json_values import Json
from tests.apiserver import recorded

ADDRESS = "127.0.0.1:6443"


def ordered(document: Json) -> Json:
    """Return a document with its resources by name: the real order of custom ones is any."""
    if "resources" not in document:
        return document
    return document | {"resources": sorted(document["resources"], key=lambda it: it["name"])}


@pytest.mark.parametrize("path", recorded.discovery())
def test_the_older_documents_of_built_in_kinds_are_those_of_the_real_server(path: str) -> None:
    made = discovery.document(kind_registry.builtin(), path, address=ADDRESS)
    assert made == recorded.discovery()[path]


def test_the_order_of_fields_is_that_of_the_real_server() -> None:
    made = discovery.document(kind_registry.builtin(), "/apis/apps/v1", address=ADDRESS)
    assert str(made) == str(recorded.discovery()["/apis/apps/v1"])


def test_the_root_of_the_core_group_tells_the_address_of_the_server() -> None:
    assert discovery.document(kind_registry.builtin(), "/api", address=ADDRESS) == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": ADDRESS},
        ],
    }


def test_aggregated_discovery_of_built_in_kinds_is_that_of_the_real_server() -> None:
    core = discovery.aggregated(kind_registry.builtin(), "/api")
    named = discovery.aggregated(kind_registry.builtin(), "/apis")
    assert core is not None
    assert named is not None
    assert str(core["items"] + named["items"]) == str(_recorded.api().groups)


def test_aggregated_discovery_of_custom_kinds_is_that_of_the_real_server() -> None:
    document = discovery.aggregated(recorded.registry(), "/apis")
    assert document is not None
    count = len(recorded.custom()["aggregated"])
    assert document["items"][-count:] == recorded.custom()["aggregated"]


@pytest.mark.parametrize("path", sorted(set(recorded.custom()["legacy"]) - {"/apis"}))
def test_the_older_documents_of_custom_kinds_are_those_of_the_real_server(path: str) -> None:
    document = discovery.document(recorded.registry(), path, address=ADDRESS)
    assert document is not None
    assert ordered(document) == recorded.custom()["legacy"][path]


def test_custom_groups_follow_the_built_in_ones() -> None:
    document = discovery.document(recorded.registry(), "/apis", address=ADDRESS)
    assert document is not None
    groups = (
        recorded.discovery()["/apis"]["groups"] + recorded.custom()["legacy"]["/apis"]["groups"]
    )
    assert document["groups"] == groups


@pytest.mark.parametrize(
    "path",
    ["/apis/none", "/apis/apps/v9", "/api/v2", "/", "/apis//v1", "/apis/apps/v1/deployments"],
)
def test_what_is_not_served_has_no_document(path: str) -> None:
    assert discovery.document(kind_registry.builtin(), path, address=ADDRESS) is None
    assert discovery.aggregated(kind_registry.builtin(), path) is None


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (AGGREGATED, True),
        (f"application/json,{AGGREGATED}", True),
        ("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io", True),
        (f"{AGGREGATED};profile=nopeer", True),
        (AGGREGATED.replace("v2", "v2beta1"), False),
        ("application/json", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_the_aggregated_form_is_for_those_who_name_it(accept: str, *, wanted: bool) -> None:
    assert wants_aggregated(accept) is wanted


def test_an_answer_that_the_client_has_already_is_not_sent_again() -> None:
    answers = DiscoveryDocuments(kind_registry.builtin())
    first = answers.answer(ServerRequest.of("GET", "/apis", headers={"Accept": AGGREGATED}))
    assert first is not None
    assert first.headers["Content-Type"] == AGGREGATED
    headers = {"Accept": AGGREGATED, "If-None-Match": first.headers["ETag"]}
    second = answers.answer(ServerRequest.of("GET", "/apis?timeout=32s", headers=headers))
    assert second is not None
    assert (second.status, second.body) == (304, b"")


def test_a_new_kind_changes_the_answer() -> None:
    registry = kind_registry.builtin()
    answers = DiscoveryDocuments(registry)
    request = ServerRequest.of("GET", "/apis", headers={"Accept": AGGREGATED})
    before = answers.answer(request)
    registry.put(recorded.kinds_of(recorded.custom()["definitions"][0]))
    after = answers.answer(request)
    assert before is not None
    assert after is not None
    assert before.headers["ETag"] != after.headers["ETag"]
    assert b"shop.example.com" in (after.body if isinstance(after.body, bytes) else b"")


def test_other_requests_are_left_to_others() -> None:
    answers = DiscoveryDocuments(kind_registry.builtin())
    assert answers.answer(ServerRequest.of("GET", "/apis")) is None
    headers = {"Accept": AGGREGATED}
    assert answers.answer(ServerRequest.of("GET", "/apis/apps", headers=headers)) is None

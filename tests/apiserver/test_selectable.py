from __future__ import annotations

import msgspec
import pytest

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.storage import selection_predicate
from tests.apiserver.recorded_objects import kind_of, recorded

BASIC = {"metadata.name", "metadata.namespace"}


def custom(*paths: str) -> Kind:
    kind = kind_of("example.com/v1/widgets", [])
    assert kind.custom is not None
    chosen = msgspec.structs.replace(kind.custom, selectable_fields=paths)
    return msgspec.structs.replace(kind, custom=chosen)


@pytest.mark.parametrize("key", recorded()["tables"])
def test_every_field_that_is_supported_has_a_value_in_every_object(key: str) -> None:
    case = recorded()["tables"][key]
    kind = kind_of(key, case.get("columns"))

    for obj in case["items"]:
        assert selection_predicate.supported(kind) <= selection_predicate.fields(kind, obj).keys()


@pytest.mark.parametrize(
    "key, field, value, names",
    [
        ("/v1/pods", "status.podIP", "1.2.3.4", ["p1"]),
        ("/v1/pods", "status.podIPs", "1.2.3.4", []),
        ("/v1/pods", "spec.hostNetwork", "true", ["p11"]),
        ("/v1/pods", "spec.host", "n1", ["p1"]),
        ("/v1/pods", "spec.serviceAccountName", "sa", ["p11"]),
        ("/v1/pods", "status.nominatedNodeName", "nn", ["p10"]),
        ("/v1/pods", "spec.restartPolicy", "Never", ["p11"]),
        ("/v1/pods", "status.phase", "Failed", ["p3", "p3b"]),
        ("/v1/replicationcontrollers", "status.replicas", "1", ["rc1"]),
        ("batch/v1/jobs", "status.successful", "1", ["j3", "j7"]),
        ("/v1/events", "source", "k", ["e1"]),
        ("/v1/events", "source", "rc", ["e3"]),
        ("/v1/events", "reportingComponent", "a.b/c", ["e4"]),
        ("/v1/events", "involvedObject.fieldPath", "spec.containers{c}", ["e1"]),
        ("events.k8s.io/v1/events", "reportingController", "", ["e1", "e2"]),
        ("events.k8s.io/v1/events", "regarding.kind", "ReplicaSet", ["e4"]),
        ("/v1/nodes", "spec.unschedulable", "true", ["objects-n1"]),
        ("/v1/services", "spec.clusterIP", "None", ["s2"]),
        ("/v1/services", "spec.type", "NodePort", ["s3"]),
        ("/v1/secrets", "type", "a.b/c", ["s2"]),
        ("resource.k8s.io/v1/resourceslices", "spec.driver", "a.b", ["objects-rs"]),
    ],
)
def test_a_field_selects_what_it_selects_on_the_real_server(
    key: str, field: str, value: str, names: list[str]
) -> None:
    kind, items = kind_of(key), recorded()["tables"][key]["items"]

    found = [obj for obj in items if selection_predicate.fields(kind, obj)[field] == value]

    assert names == [obj["metadata"]["name"] for obj in found]


def test_fields_of_custom_kinds_are_those_of_their_definition() -> None:
    kind = custom(".spec.color", ".spec.n", ".spec.b")
    full = {"metadata": {"name": "a"}, "spec": {"color": "red", "n": 3, "b": True}}

    assert selection_predicate.supported(kind) == {*BASIC, "spec.color", "spec.n", "spec.b"}
    assert selection_predicate.fields(kind, full) == {
        "metadata.name": "a",
        "metadata.namespace": "",
        "spec.color": "red",
        "spec.n": "3",
        "spec.b": "true",
    }
    assert selection_predicate.fields(kind, {"metadata": {"name": "a"}})["spec.b"] == ""


@pytest.mark.parametrize(
    "key, field, message",
    [
        ("/v1/pods", "x", "field label not supported: x"),
        ("/v1/nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("batch/v1/jobs", "x", 'field label "x" not supported for Job'),
        (
            "resource.k8s.io/v1/resourceslices",
            "x",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x",
        ),
        (
            "apps/v1/replicasets",
            "status.replicas",
            (
                '"status.replicas" is not a known field selector: only "metadata.name", '
                '"metadata.namespace"'
            ),
        ),
        ("example.com/v1/widgets", "x", "field label not supported: x"),
    ],
)
def test_other_fields_are_refused_in_the_words_of_the_server(
    key: str, field: str, message: str
) -> None:
    with pytest.raises(StatusError) as refusal:
        selection_predicate.check(kind_of(key), field)

    assert (400, "BadRequest", message) == (
        refusal.value.code,
        refusal.value.reason,
        refusal.value.message,
    )


@pytest.mark.parametrize("key", ["/v1/pods", "/v1/configmaps", "apps/v1/deployments"])
def test_names_and_namespaces_can_always_be_selected(key: str) -> None:
    for field in BASIC:
        selection_predicate.check(kind_of(key), field)

"""The scale subresource; texts and shapes are those of kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from kinform.apiserver.apiextensions import scale
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.scheme.kind_registry import CustomVersion, Kind

PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
META = {
    "name": "r",
    "namespace": "default",
    "uid": "535eea34-b7eb-46e7-a138-85fabfa09d63",
    "resourceVersion": "1002",
    "creationTimestamp": "2026-11-16T01:52:21Z",
}


def builtin(name: str, *, group: str = "apps") -> Kind:
    plural = name.lower() + "s"
    return Kind(
        group=group, version="v1", kind=name, plural=plural, singular=name.lower(),
        namespaced=True, verbs=(),
    )  # fmt: skip


RAT = Kind(
    group="example.com", version="v1", kind="Rat", plural="rats", singular="rat", namespaced=True,
    verbs=(), custom=CustomVersion(definition="rats.example.com", schema={}, scale=PATHS),
)  # fmt: skip


def rat(**spec: Any) -> dict[str, Any]:
    return {"metadata": {**META, "labels": {"a": "b"}, "generation": 4}, "spec": spec}


def wanting(replicas: object) -> dict[str, Any]:
    return {"kind": "Scale", "metadata": {"name": "r"}, "spec": {"replicas": replicas}}


def test_the_scale_of_a_custom_object_is_read_along_its_paths() -> None:
    obj = {**rat(replicas=3), "status": {"replicas": 2, "selector": "a=b"}}
    assert scale.scale_of(RAT, obj) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": META,
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "a=b"},
    }


def test_what_is_zero_is_not_said_in_a_scales_spec_but_in_its_status() -> None:
    shown = scale.scale_of(RAT, rat(replicas=0))
    assert (shown["spec"], shown["status"]) == ({}, {"replicas": 0})


def test_scale_needs_the_number_of_replicas() -> None:
    with pytest.raises(StatusError) as caught:
        scale.scale_of(RAT, rat())
    assert caught.value.to_dict() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Internal error occurred: the spec replicas field ".spec.replicas" '
        "does not exist",
        "reason": "InternalError",
        "details": {
            "causes": [{"message": 'the spec replicas field ".spec.replicas" does not exist'}]
        },
        "code": 500,
    }


def test_only_the_number_of_replicas_is_written() -> None:
    obj = rat(replicas=3)
    asked = {**wanting(5), "status": {"replicas": 9}}
    asked["metadata"]["labels"] = {"z": "z"}
    scale.set_scale(RAT, obj, asked)
    assert obj == rat(replicas=5)


def test_the_way_to_the_number_is_made_where_it_is_missing() -> None:
    obj: dict[str, Any] = {"metadata": META}
    scale.set_scale(RAT, obj, wanting(2))
    assert obj["spec"] == {"replicas": 2}


def test_a_negative_number_is_refused_for_a_custom_kind() -> None:
    with pytest.raises(StatusError) as caught:
        scale.set_scale(RAT, rat(replicas=1), wanting(-1))
    assert caught.value.message == (
        'Rat.example.com "r" is invalid: .spec.replicas: Invalid value: -1: '
        "should be a non-negative integer"
    )


def test_a_negative_number_is_refused_for_a_built_in_kind() -> None:
    with pytest.raises(StatusError) as caught:
        scale.set_scale(builtin("Deployment"), rat(replicas=1), wanting(-1))
    assert caught.value.message == (
        'Scale.autoscaling "r" is invalid: spec.replicas: Invalid value: -1: '
        "must be greater than or equal to 0"
    )
    assert caught.value.details == {
        "name": "r",
        "group": "autoscaling",
        "kind": "Scale",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": "Invalid value: -1: must be greater than or equal to 0",
                "field": "spec.replicas",
            }
        ],
    }


@pytest.mark.parametrize("name", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_the_selector_of_a_workload_is_one_line(name: str) -> None:
    selector = {
        "matchLabels": {"c": "d", "a": "b"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["z", "b"]},
            {"key": "q", "operator": "DoesNotExist"},
            {"key": "c", "operator": "Exists"},
            {"key": "w", "operator": "NotIn", "values": ["1"]},
        ],
    }
    shown = scale.scale_of(builtin(name), rat(replicas=2, selector=selector))
    assert shown["status"] == {"replicas": 0, "selector": "a=b,a in (b,z),c=d,c,!q,w notin (1)"}


def test_the_selector_of_a_replication_controller_is_a_map() -> None:
    kind = builtin("ReplicationController", group="")
    shown = scale.scale_of(kind, rat(replicas=0, selector={"c": "d", "a": "b"}))
    assert (shown["spec"], shown["status"]) == ({}, {"replicas": 0, "selector": "a=b,c=d"})

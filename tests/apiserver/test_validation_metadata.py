from __future__ import annotations

import pytest

from kinform.apiserver.scheme.field_errors import aggregate
from kinform.apiserver.validation.metadata import validate_metadata, validate_metadata_update
from tests.apiserver.recorded_workloads import (
    Json,
    assert_same_causes,
    cases,
    created,
    kind_of,
    name_of,
    updated,
)

OTHERS = frozenset({"configmaps", "services", "roles.rbac.authorization.k8s.io"})


@pytest.mark.parametrize("case", cases("creates", OTHERS, 422), ids=name_of)
def test_metadata_is_refused_as_the_real_server_refuses_it(case: Json) -> None:
    _, errors = created(case)

    assert_same_causes(case, errors)


@pytest.mark.parametrize("case", cases("creates", OTHERS, 201), ids=name_of)
def test_metadata_is_accepted_as_the_real_server_accepts_it(case: Json) -> None:
    assert validate_metadata(kind_of(case["storage"]), case["body"]) == []


@pytest.mark.parametrize("case", cases("updates", OTHERS, 422), ids=name_of)
def test_a_change_of_metadata_is_refused_as_the_real_server_refuses_it(case: Json) -> None:
    _, errors = updated(case)

    assert_same_causes(case, errors)


def changed(before: Json, after: Json) -> str:
    common = {"name": "a", "namespace": "b"}
    new, old = {"metadata": {**common, **after}}, {"metadata": {**common, **before}}
    errors = validate_metadata_update(kind_of("configmaps"), new, old)
    return aggregate(errors) if errors else ""


def test_an_object_that_is_being_deleted_gets_no_new_finalizers() -> None:
    deleted = {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
    more = {"finalizers": ["a.b/c", "e.f/g", "a.b/d"]}

    assert changed(deleted, more) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
        'deleted, found new finalizers []string{"a.b/d", "e.f/g"}'
    )
    assert changed(deleted, {"finalizers": []}) == ""


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp"])
def test_what_the_server_set_stays(field: str) -> None:
    message = f'metadata.{field}: Invalid value: "x": field is immutable'

    assert changed({field: "y"}, {field: "x"}) == message
    assert changed({"uid": "y"}, {}) == ""


def test_annotations_have_a_limit_together() -> None:
    annotations = {"k": "v" * 200_000, "l": "v" * 62_142}
    obj: Json = {"metadata": {"name": "a", "namespace": "b", "annotations": annotations}}
    assert validate_metadata(kind_of("configmaps"), obj) == []

    annotations["l"] += "v"
    errors = validate_metadata(kind_of("configmaps"), obj)

    assert aggregate(errors) == "metadata.annotations: Too long: may not be more than 262144 bytes"


def test_a_namespace_is_for_namespaced_kinds() -> None:
    nowhere = validate_metadata(kind_of("configmaps"), {"metadata": {"name": "a"}})
    somewhere = {"metadata": {"name": "a", "namespace": "b"}}

    assert aggregate(nowhere) == "metadata.namespace: Required value"
    assert aggregate(validate_metadata(kind_of("nodes"), somewhere)) == (
        "metadata.namespace: Forbidden: not allowed on this type"
    )

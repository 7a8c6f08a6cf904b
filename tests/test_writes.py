"""The bodies of write requests."""

from __future__ import annotations

import pytest

from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectName
from kinform.verbs import _write_bodies
from kinform.verbs._finder import Found

PODS = Found(GroupVersionResource("", "v1", "pods"), kind="Pod", namespaced=True, prefix="/api/v1")


@pytest.mark.parametrize("body", [[1], "text", 7, None])
def test_only_objects_can_be_written(body: object) -> None:
    with pytest.raises(UsageError):
        _write_bodies.content_of(body)


@pytest.mark.parametrize("content", [{}, {"kind": "", "apiVersion": None}])
def test_kind_and_version_are_filled_in_where_they_are_missing(content: dict) -> None:
    assert _write_bodies.with_kind(content, PODS) == {"apiVersion": "v1", "kind": "Pod"}


def test_kind_and_version_that_are_there_stay() -> None:
    content: dict[str, object] = {"apiVersion": "v9", "kind": "Other"}
    assert _write_bodies.with_kind(content, PODS) == content


@pytest.mark.parametrize("metadata", [None, {}, {"name": ""}, {"name": 7}, []])
def test_an_object_without_a_name_cannot_be_replaced(metadata: object) -> None:
    with pytest.raises(UsageError, match=r"metadata\.name must be set"):
        _write_bodies.name_of({"metadata": metadata}, "ns")


@pytest.mark.parametrize(
    ("own", "bound", "expected"),
    [("", "ns", "ns"), ("ns", "ns", "ns"), ("ns", "", "ns"), ("", "", "")],
)
def test_the_namespace_is_the_objects_or_the_clients(own: str, bound: str, expected: str) -> None:
    content: dict[str, object] = {"metadata": {"name": "x", "namespace": own}}
    assert _write_bodies.name_of(content, bound) == ObjectName(expected, "x")


def test_two_different_namespaces_are_a_mistake() -> None:
    with pytest.raises(UsageError, match=r"in_namespace\('a'\)"):
        _write_bodies.namespace_of({"metadata": {"namespace": "a"}}, "b")


def test_what_was_read_cannot_be_applied_as_it_is() -> None:
    with pytest.raises(UsageError, match="managedFields"):
        _write_bodies.refuse_managed_fields({"metadata": {"managedFields": [{}]}})

from __future__ import annotations

import copy
from typing import Any

import pytest

from kinform.apiserver.fieldmanager import managed_fields
from tests.apiserver import recorded_apply

NOW = "2024-05-01T00:00:00Z"


def configmap(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def created(obj: dict[str, Any], *, by: str = "m", now: str = NOW) -> dict[str, Any]:
    kind, schema = recorded_apply.kind_of("v1/configmaps")
    obj = copy.deepcopy(obj)
    managed_fields.on_create(kind, schema, obj, manager=by, now=now)
    return obj


def updated(
    old: dict[str, Any], new: dict[str, Any], *, by: str = "m", now: str = NOW
) -> dict[str, Any]:
    kind, schema = recorded_apply.kind_of("v1/configmaps")
    new = copy.deepcopy(new)
    managed_fields.on_update(kind, schema, new, old=old, manager=by, now=now)
    return new


def of(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the sets by manager."""
    return {entry["manager"]: entry["fieldsV1"] for entry in recorded_apply.owners(obj)}


@pytest.mark.parametrize("name", recorded_apply.names(applying=False))
def test_plain_writes_leave_the_owners_that_the_server_leaves(name: str) -> None:
    live = None
    for step in recorded_apply.steps(name):
        answer = step["answer"]
        assert recorded_apply.owners(recorded_apply.replay(step, live)) == recorded_apply.owners(
            answer
        )
        live = answer


def test_the_server_owns_what_identifies_an_object() -> None:
    obj = configmap(a="1")
    obj["metadata"] |= {
        "namespace": "default",
        "uid": "1",
        "resourceVersion": "2",
        "generation": 3,
        "creationTimestamp": NOW,
    }
    assert of(created(obj)) == {"m": {"f:data": {".": {}, "f:a": {}}}}


def test_the_stored_object_is_not_touched() -> None:
    old = created(configmap(a="1"))
    before = copy.deepcopy(old)
    updated(old, configmap(a="2", b="1"), by="other")
    assert old == before


def test_a_removed_field_has_no_owner() -> None:
    old = created(configmap(a="1", b="1"))
    assert of(updated(old, configmap(b="1"), by="other")) == {"m": {"f:data": {".": {}, "f:b": {}}}}


def test_an_owner_that_loses_everything_vanishes() -> None:
    old = updated(created(configmap(a="1")), configmap(a="1", b="1"), by="other")
    assert set(of(updated(old, configmap(a="1", b="2"), by="third"))) == {"m", "third"}


def test_a_writer_in_another_version_has_an_entry_of_its_own() -> None:
    old = created(configmap(a="1"))
    old["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    entries = recorded_apply.owners(updated(old, configmap(a="1", b="1")))
    assert [entry["apiVersion"] for entry in entries] == ["v0", "v1"]


@pytest.mark.parametrize("sent", [[], [{}]])
def test_after_a_reset_fields_have_no_owner_until_the_next_apply(sent: list[object]) -> None:
    old = created(configmap(a="1"))
    new = configmap(a="2")
    new["metadata"]["managedFields"] = sent
    reset = updated(old, new)
    assert "managedFields" not in reset["metadata"]
    assert "managedFields" not in updated(reset, configmap(a="3"))["metadata"]


def test_there_are_at_most_ten_plain_writers() -> None:
    obj = created(configmap(k="0"), by="m00")
    for index in range(1, 15):
        later = f"2024-05-01T00:00:{index:02}Z"
        new = copy.deepcopy(obj)
        new["data"][f"k{index}"] = "1"
        obj = updated(obj, new, by=f"m{index:02}", now=later)
    entries = recorded_apply.owners(obj)
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["time"] == "2024-05-01T00:00:05Z"
    assert set(entries[0]["fieldsV1"]["f:data"]) == {
        ".", "f:k", "f:k1", "f:k2", "f:k3", "f:k4", "f:k5",
    }  # fmt: skip


def test_a_write_that_changes_nothing_is_recognised_and_keeps_its_times() -> None:
    old = created(configmap(a="1"))
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = "2025-01-01T00:00:00Z"
    new["metadata"].pop("resourceVersion", None)
    assert managed_fields.restore_times(new, old)
    assert new == old


@pytest.mark.parametrize("where", ["data", "metadata", "managedFields"])
def test_a_write_that_changes_something_keeps_the_new_times(where: str) -> None:
    old = created(configmap(a="1"))
    new = copy.deepcopy(old)
    entry = new["metadata"]["managedFields"][0]
    entry["time"] = "2025-01-01T00:00:00Z"
    if where == "data":
        new["data"]["a"] = "2"
    elif where == "metadata":
        new["metadata"]["labels"] = {"a": "b"}
    else:
        entry["manager"] = "other"
    assert not managed_fields.restore_times(new, old)
    assert entry["time"] == "2025-01-01T00:00:00Z"


def test_entries_are_read_as_they_are_written() -> None:
    for sequence in recorded_apply.recording()["sequences"]:
        for step in sequence["steps"]:
            entries = recorded_apply.owners(step["answer"])
            decoded = managed_fields.decode(entries)
            assert decoded is not None
            assert managed_fields.encode(decoded) == entries


@pytest.mark.parametrize(
    "entry", [{}, {"operation": "Bogus"}, {"operation": "Update", "fieldsType": "FieldsV2"}]
)
def test_entries_that_make_no_sense_are_not_read(entry: dict[str, str]) -> None:
    assert managed_fields.decode([entry]) is None

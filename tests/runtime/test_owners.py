"""Owner references: what is written, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import Object, ObjectMeta
from kinform.clientset import apps_v1, core_v1, meta_v1
from kinform.errors import UsageError
from kinform.runtime.map_functions import AnyObject
from kinform.runtime.owner_references import (
    AlreadyOwnedError,
    is_controlled_by,
    owner_reference,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)


def website(
    name: str = "site",
    *,
    uid: str = "u1",
    namespace: str = "shop",
    kind: str = "Website",
    version: str = "example.com/v1",
) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": uid}
    return Object.from_dict({"apiVersion": version, "kind": kind, "metadata": metadata})


def config_map(*references: dict[str, object], namespace: str = "shop") -> dict[str, Any]:
    metadata: dict[str, object] = {"name": "a"}
    if namespace:
        metadata["namespace"] = namespace
    if references:
        metadata["ownerReferences"] = list(references)
    return {"kind": "ConfigMap", "metadata": metadata}


def references(body: dict[str, Any]) -> list[dict[str, object]]:
    return body["metadata"].get("ownerReferences", [])


def test_a_reference_says_who_controls_and_waits() -> None:
    whole = {"apiVersion": "example.com/v1", "kind": "Website", "name": "site", "uid": "u1"}
    assert owner_reference(website(), controller=False, block_deletion=False) == whole
    assert owner_reference(website()) == {**whole, "controller": True, "blockOwnerDeletion": True}


@pytest.mark.parametrize(
    "owner",
    [
        website(kind="", version=""),
        website(kind="PartialObjectMetadata", version="meta.k8s.io/v1"),
    ],
    ids=["of a list that does not say", "metadata only"],
)
def test_an_owner_that_does_not_say_its_kind_must_be_told(owner: Object) -> None:
    with pytest.raises(UsageError, match=r"give kind='Deployment', api_version='apps/v1'"):
        owner_reference(owner)
    named_kind = owner_reference(owner, kind="Website", api_version="example.com/v1")
    assert named_kind == owner_reference(website())


def test_an_owner_that_was_never_created_owns_nothing() -> None:
    with pytest.raises(UsageError, match="has no uid: create it first"):
        owner_reference(website(uid=""))
    with pytest.raises(UsageError, match="has no uid"):
        remove_owner_reference(config_map(), website(uid=""))


def test_setting_the_controller_twice_is_setting_it_once() -> None:
    body = config_map()
    set_controller_reference(body, website())
    once = copy.deepcopy(body)
    set_controller_reference(body, website())
    assert body == once
    assert references(body) == [owner_reference(website())]


def test_an_owner_can_become_the_controller_beside_others() -> None:
    other = owner_reference(website("other", uid="u2"), controller=False)
    body = config_map(other)
    set_owner_reference(body, website())
    set_controller_reference(body, website())
    assert references(body) == [other, owner_reference(website())]
    set_owner_reference(body, website())  # what it is already: the controller stays one
    assert references(body) == [other, owner_reference(website())]


def test_an_object_has_one_controller_and_the_error_names_it() -> None:
    body = config_map(owner_reference(website("other", uid="u2")))
    before = copy.deepcopy(body)
    words = r"ConfigMap shop/a is controlled by Website 'other' \(uid u2\) already; leave it alone"
    with pytest.raises(AlreadyOwnedError, match=words) as caught:
        set_controller_reference(body, website())
    assert body == before
    assert caught.value.owner["uid"] == "u2"
    assert str(copy.copy(caught.value)) == str(caught.value)  # as to another process
    set_owner_reference(body, website())  # one more that merely owns
    assert [each["uid"] for each in references(body)] == ["u2", "u1"]


def test_the_predecessor_of_an_owner_is_another_owner() -> None:
    body = config_map(owner_reference(website(uid="old")))
    with pytest.raises(AlreadyOwnedError, match="uid old"):
        set_controller_reference(body, website(uid="new"))


def test_owner_and_owned_are_in_one_namespace() -> None:
    for own in (set_controller_reference, set_owner_reference):
        with pytest.raises(UsageError, match="must be in one namespace"):
            own(config_map(namespace="bank"), website())
        with pytest.raises(
            UsageError, match=r"which is in none; set metadata\.namespace to 'shop'"
        ):
            own(config_map(namespace=""), website())
        for namespace in ("bank", ""):  # who is in none owns everywhere
            body = config_map(namespace=namespace)
            own(body, website(namespace=""))
            assert [each["uid"] for each in references(body)] == ["u1"]


def test_what_is_no_list_of_references_is_refused() -> None:
    body: dict[str, object] = {"metadata": {"namespace": "shop", "ownerReferences": ["x"]}}
    with pytest.raises(UsageError, match="is not a list of references"):
        set_controller_reference(body, website())


def test_metadata_that_others_share_is_not_changed() -> None:
    shared: dict[str, object] = {"name": "a", "namespace": "shop"}
    body: dict[str, object] = {"metadata": shared}
    set_controller_reference(body, website())
    assert "ownerReferences" not in shared
    shared["ownerReferences"] = [owner_reference(website())]
    assert remove_owner_reference({"metadata": shared}, website())
    assert shared["ownerReferences"] == [owner_reference(website())]


def test_control_is_told_by_uid() -> None:
    owned = Object.from_dict(config_map(owner_reference(website())))
    assert is_controlled_by(owned, website("renamed"))
    assert not is_controlled_by(owned, website(uid="u2"))
    merely = Object.from_dict(config_map(owner_reference(website(), controller=False)))
    assert not is_controlled_by(merely, website())
    unowned = {"metadata": {"ownerReferences": [{"controller": True}]}}
    assert not is_controlled_by(unowned, website(uid=""))


UIDS = st.lists(st.sampled_from(["u1", "u2", "u3", "u4"]), unique=True)


@given(UIDS, st.sampled_from(["u1", "u2"]))
def test_removing_an_owner_leaves_the_others_alone(uids: list[str], uid: str) -> None:
    all_ = [owner_reference(website(each, uid=each), controller=False) for each in uids]
    body = config_map(*all_)
    assert remove_owner_reference(body, website(uid=uid)) is (uid in uids)
    assert references(body) == [each for each in all_ if each["uid"] != uid]
    assert ("ownerReferences" in body["metadata"]) is bool(references(body))


# --- models


class Site(msgspec.Struct):
    """A model that does not say its kind."""

    metadata: ObjectMeta


META = meta_v1.ObjectMeta(name="site", namespace="shop", uid="u1")
SECRET = core_v1.Secret(
    metadata=meta_v1.ObjectMeta(name="key", namespace="shop"), string_data={"password": "hunter2"}
)


@pytest.mark.parametrize(
    ("owner", "version", "kind"),
    [
        (apps_v1.Deployment(metadata=META), "apps/v1", "Deployment"),
        (core_v1.Pod(metadata=META), "v1", "Pod"),
        (core_v1.Pod(api_version="v2", kind="Pot", metadata=META), "v2", "Pot"),
        (core_v1.Pod(kind="PartialObjectMetadata", metadata=META), "v1", "Pod"),
        (website(kind="Pod", version="v1").to_dict(), "v1", "Pod"),
    ],
    ids=["its class says", "of the core group", "it says itself", "metadata only", "dict"],
)
def test_a_model_is_an_owner_as_any_other(owner: AnyObject, version: str, kind: str) -> None:
    expected = owner_reference(website(), kind=kind, api_version=version)
    assert owner_reference(owner) == expected
    body = config_map()
    set_controller_reference(body, owner)
    assert references(body) == [expected]
    assert is_controlled_by(body, owner)
    assert remove_owner_reference(body, owner)
    set_owner_reference(body, owner)
    assert [each["uid"] for each in references(body)] == ["u1"]
    with pytest.raises(UsageError, match="must be in one namespace"):
        set_controller_reference(config_map(namespace="other"), owner)


def test_a_model_without_a_kind_must_be_told() -> None:
    site = Site(ObjectMeta(name="site", namespace="shop", uid="u1"))
    with pytest.raises(UsageError, match=r"^Site shop/site does not say its kind; give kind="):
        owner_reference(site)
    named_kind = owner_reference(site, kind="Website", api_version="example.com/v1")
    assert named_kind == owner_reference(website())


def test_what_an_owner_holds_is_not_in_the_complaint() -> None:
    with pytest.raises(UsageError, match=r"^v1/Secret shop/key has no uid") as caught:
        owner_reference(SECRET)
    assert "hunter2" not in str(caught.value)


def test_a_model_is_not_changed_in_place() -> None:
    for change in (set_controller_reference, set_owner_reference, remove_owner_reference):
        with pytest.raises(UsageError, match=r"Secret cannot be changed in place; give a dict"):
            change(SECRET, website())  # type: ignore[arg-type]

"""Strategic merge patches: the expected results are what a real server answered."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.patch import strategic_merge
from kinform.apiserver.scheme import schemas
from kinform.apiserver.scheme.schemas import ANYTHING
from kinform.apiserver.serializer.json_values import Json

POD = schemas.builtin("io.k8s.api.core.v1.Pod")
DEPLOYMENT = schemas.builtin("io.k8s.api.apps.v1.Deployment")


def pod() -> Json:
    return {
        "metadata": {"name": "p", "finalizers": ["x/a", "x/b"]},
        "spec": {
            "containers": [
                {
                    "name": "a",
                    "image": "1",
                    "command": ["x", "y"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
                },
                {"name": "b", "image": "2"},
                {"name": "c", "image": "3"},
            ],
            "tolerations": [{"key": "t1"}],
            "volumes": [{"name": "v1", "emptyDir": {}}, {"name": "v2", "configMap": {"name": "x"}}],
        },
    }


def patched(patch: Json) -> Json:
    return strategic_merge.apply(pod(), patch, POD)


def containers(*items: Json, **directives: object) -> list[Any]:
    merged = patched({"spec": {"containers": list(items), **directives}})
    return [(item["name"], item.get("image")) for item in merged["spec"]["containers"]]


def test_a_container_is_found_by_its_name() -> None:
    assert containers({"name": "b", "image": "9"}) == [("a", "1"), ("b", "9"), ("c", "3")]


def test_a_new_container_comes_first() -> None:
    assert containers({"name": "n", "image": "9"})[0] == ("n", "9")


def test_a_container_can_be_deleted() -> None:
    assert containers({"name": "b", "$patch": "delete"}) == [("a", "1"), ("c", "3")]


def test_to_delete_what_is_not_there_changes_nothing() -> None:
    assert len(containers({"name": "q", "$patch": "delete"})) == 3


def test_a_list_can_be_replaced() -> None:
    assert containers({"$patch": "replace"}, {"name": "z", "image": "q"}) == [("z", "q")]


def test_the_same_key_twice_merges_twice() -> None:
    assert containers({"name": "a", "image": "5"}, {"name": "a", "image": "6"})[0] == ("a", "6")


def test_an_empty_list_changes_nothing() -> None:
    assert len(containers()) == 3


@pytest.mark.parametrize(
    ("order", "expected"),
    [("cba", "cba"), ("ca", "bca"), ("abc", "abc"), ("b", "abc")],
)
def test_a_patch_can_give_the_order(order: str, expected: str) -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in order]}}
    names = [item["name"] for item in patched(patch)["spec"]["containers"]]
    assert "".join(names) == expected


def test_what_is_ordered_can_be_changed_and_deleted_too() -> None:
    order = [{"name": "b"}, {"name": "a"}, {"name": "c"}]
    changed = containers(
        {"name": "a", "$patch": "delete"}, **{"$setElementOrder/containers": order}
    )
    assert changed == [("b", "2"), ("c", "3")]


def test_lists_within_items_merge_too() -> None:
    env = [{"name": "B", "value": None}, {"name": "C", "value": "3"}]
    ports = [{"containerPort": 81, "name": "x"}, {"containerPort": 90}]
    item = patched(
        {"spec": {"containers": [{"name": "a", "env": env, "ports": ports, "command": ["z"]}]}}
    )["spec"]["containers"][0]
    assert item["env"] == [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C", "value": "3"}]
    assert [port["containerPort"] for port in item["ports"]] == [80, 81, 90]
    assert item["command"] == ["z"]


def test_a_list_without_a_strategy_is_replaced() -> None:
    assert patched({"spec": {"tolerations": [{"key": "t2"}]}})["spec"]["tolerations"] == [
        {"key": "t2"}
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"finalizers": ["x/b", "x/c"]}, ["x/a", "x/b", "x/c"]),
        ({"$deleteFromPrimitiveList/finalizers": ["x/a"]}, ["x/b"]),
        ({"$deleteFromPrimitiveList/finalizers": "x/a"}, ["x/a", "x/b"]),
        ({"$setElementOrder/finalizers": ["x/b", "x/a"]}, ["x/b", "x/a"]),
        (
            {"$setElementOrder/finalizers": ["x/c", "x/b", "x/a"], "finalizers": ["x/c"]},
            ["x/c", "x/b", "x/a"],
        ),
        (
            {"$deleteFromPrimitiveList/finalizers": ["x/a"], "finalizers": ["x/z"]},
            ["x/z", "x/b"],
        ),
    ],
)
def test_finalizers_merge_as_a_set(metadata: Json, expected: list[str]) -> None:
    assert patched({"metadata": metadata})["metadata"]["finalizers"] == expected


def test_retain_keys_drops_the_other_fields() -> None:
    volume = {"name": "v1", "$retainKeys": ["name", "configMap"], "configMap": {"name": "y"}}
    volumes = patched({"spec": {"volumes": [volume]}})["spec"]["volumes"]
    assert volumes[0] == {"name": "v1", "configMap": {"name": "y"}}


def test_an_object_can_be_replaced_or_emptied() -> None:
    target: Json = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}}
    replace = {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}
    delete = {"spec": {"strategy": {"$patch": "delete"}}}
    assert strategic_merge.apply(target, replace, DEPLOYMENT)["spec"]["strategy"] == {
        "type": "Recreate"
    }
    assert strategic_merge.apply(target, delete, DEPLOYMENT)["spec"]["strategy"] == {}


def test_directives_in_new_fields_have_nothing_to_merge_with() -> None:
    spec = patched(
        {
            "spec": {
                "nodeSelector": {"$patch": "replace", "x": "y"},
                "affinity": {"nodeAffinity": {"$patch": "delete"}},
                "initContainers": [{"$patch": "replace"}, {"name": "z", "image": None}],
            }
        }
    )["spec"]
    assert "nodeSelector" not in spec
    assert (spec["affinity"], spec["initContainers"]) == ({}, [{"name": "z"}])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"containers": [{"image": "9"}]},
            "map: map[image:9] does not contain declared merge key: name",
        ),
        (
            {"containers": [{"name": "a", "$patch": "foo"}]},
            "unknown patch type: foo in map: map[$patch:foo name:a]",
        ),
        ({"$patch": 1}, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
        (
            {"containers": [{"$patch": "merge", "name": "a"}]},
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"$setElementOrder/containers": "x"},
            "expected a []interface {}, but received a string",
        ),
        ({"$setElementOrder/containers": [{"name": "a"}, 1]}, "value for key 1 is not a map"),
        (
            {"$setElementOrder/containers": [], "containers": "x"},
            "expected a []interface {}, but received a string",
        ),
        (
            {"$setElementOrder/containers": [], "containers": {"name": "a"}},
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            {"$setElementOrder/initContainers": [{"name": "a"}], "initContainers": [1]},
            "expected a map[string]interface {}, but received a int64",
        ),
        (
            {"$setElementOrder/foo": ["x"]},
            'unable to find api field in struct PodSpec for the json field "foo"',
        ),
        (
            {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "b"}]},
            (
                "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n"
                "[map[name:c]]\n"
            ),
        ),
        (
            {"tolerations": [], "volumes": [1]},
            (
                "list element types are not identical: "
                "[[map[emptyDir:map[] name:v1] map[configMap:map[name:x] name:v2]] [1]]"
            ),
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_the_servers_fault(spec: Json, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        patched({"spec": spec})
    assert (caught.value.code, caught.value.reason, caught.value.message) == (500, "", message)


def test_what_takes_the_place_of_something_else_has_no_nulls_and_no_directives() -> None:
    patch: Json = {"a": {"b": None, "c": 1}, "d": {"$patch": "delete"}}
    assert strategic_merge.apply({"a": 1, "d": [1]}, patch, ANYTHING) == {"a": {"c": 1}}


@pytest.mark.parametrize("keys", ["x", ["type"]])
def test_retain_keys_must_list_what_the_patch_sets(keys: object) -> None:
    strategy = {"$retainKeys": keys, "rollingUpdate": {"maxSurge": 1}}
    with pytest.raises(StatusError) as caught:
        strategic_merge.apply(
            {"spec": {"strategy": {"type": "x"}}}, {"spec": {"strategy": strategy}}, DEPLOYMENT
        )
    assert (caught.value.code, caught.value.message) == (400, "invalid patch format of retainKeys")


item: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"name": st.sampled_from("abcd")},
    optional={
        "image": st.none() | st.sampled_from(["1", "2"]),
        "$patch": st.just("delete"),
        "env": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("AB")}, optional={"value": st.sampled_from("xy")}
            ),
            max_size=2,
            unique_by=lambda entry: entry["name"],
        ),
    },
)
patches = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "finalizers": st.lists(st.sampled_from(["x/a", "x/c"]), unique=True),
                "labels": st.none() | st.dictionaries(st.sampled_from("kl"), st.just("v")),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.lists(item, max_size=3, unique_by=lambda entry: entry["name"]),
                "tolerations": st.none() | st.lists(st.just({"key": "t"}), max_size=1),
            },
        ),
    },
)


@settings(max_examples=40)
@given(patches)
def test_to_apply_a_patch_twice_is_to_apply_it_once(patch: Json) -> None:
    once = patched(patch)
    assert strategic_merge.apply(once, patch, POD) == once


@settings(max_examples=40)
@given(patches)
def test_neither_target_nor_patch_is_changed(patch: Json) -> None:
    target = pod()
    before = copy.deepcopy(patch)
    strategic_merge.apply(target, patch, POD)
    assert (target, patch) == (pod(), before)

"""Mapping functions: the names that an object or an event maps to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import Object, ObjectName
from kinform.cache.processor.events import Added, Deleted, Updated
from kinform.clientset import apps_v1, core_v1, meta_v1
from kinform.errors import UsageError
from kinform.meta import GroupVersionKind, ObjectMeta
from kinform.runtime.map_functions import (
    MapFunc,
    described,
    metadata_of,
    names_in,
    names_of,
    to_all,
    to_annotation,
    to_itself,
    to_label,
    to_owner,
    type_of,
)

KEY = ObjectName("shop", "pod")


def owner(kind: str, name: str, *, version: str = "apps/v1", controller: bool = True) -> object:
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**reference, "controller": controller}


def pod(*owners: object, namespace: str = "shop", **metadata: object) -> Object:
    whole = {"name": "pod", "namespace": namespace, "ownerReferences": list(owners), **metadata}
    return Object.from_dict({"kind": "Pod", "metadata": whole})


def answer(map_: MapFunc[Object], obj: Object) -> list[str]:
    return [str(name) for name in names_in(map_(obj))]


@pytest.mark.parametrize(
    "kind", ["apps/v1/ReplicaSet", GroupVersionKind("apps", "v9", "ReplicaSet")]
)
def test_an_owner_is_known_by_group_and_kind_in_any_version(kind: str | GroupVersionKind) -> None:
    map_ = to_owner(kind)
    assert answer(map_, pod(owner("ReplicaSet", "web"))) == ["shop/web"]
    assert answer(map_, pod(owner("ReplicaSet", "web", version="apps/v1beta2"))) == ["shop/web"]
    assert answer(map_, pod(owner("ReplicaSet", "web", version="other/v1"))) == []
    assert answer(map_, pod(owner("ReplicaSet", "web", version="v1"))) == []
    assert answer(map_, pod(owner("Job", "web"))) == []
    assert answer(map_, pod()) == []


def test_owners_that_do_not_control_count_if_asked_for() -> None:
    owned = pod(owner("Job", "a", controller=False), owner("Job", "b"))
    assert answer(to_owner("apps/v1/Job"), owned) == ["shop/b"]
    assert answer(to_owner("apps/v1/Job", controller_only=False), owned) == ["shop/a", "shop/b"]


def test_owners_without_namespace_own_everywhere_and_others_only_in_theirs() -> None:
    node = owner("Node", "n1", version="v1")
    assert answer(to_owner("v1/Node", namespaced=False), pod(node)) == ["n1"]
    assert answer(to_owner("v1/Node", namespaced=False), pod(node, namespace="")) == ["n1"]
    assert answer(to_owner("v1/Node"), pod(node, namespace="")) == []


@pytest.mark.parametrize("kind", ["Deployment", "apps/", "", "a/b/c/d", "/v1/Pod"])
def test_what_is_no_kind_is_refused_at_once(kind: str) -> None:
    with pytest.raises(UsageError, match=r"is not a kind like 'v1/Pod' or 'apps/v1/Deployment'"):
        to_owner(kind)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("web", ["shop/web"]), ("bank/web", ["bank/web"]), ("", []), ("a/b/c", []), ("/web", [])],
)
def test_a_name_in_an_annotation_is_in_the_same_namespace_unless_it_says_so(
    value: str, expected: list[str]
) -> None:
    assert answer(to_annotation("for"), pod(annotations={"for": value})) == expected


def test_a_label_names_what_it_is_for() -> None:
    assert answer(to_label("for"), pod(labels={"for": "web"})) == ["shop/web"]
    assert answer(to_label("for", namespaced=False), pod(labels={"for": "n1"})) == ["n1"]
    assert answer(to_annotation("for", namespaced=False), pod(annotations={"for": "n1"})) == ["n1"]
    assert answer(to_label("for"), pod(labels={"other": "web"})) == []


def test_everybody_is_asked_for_when_it_happens() -> None:
    names = [ObjectName("a", "b")]
    map_ = to_all(lambda: names)
    names.append(ObjectName("c", "d"))
    assert answer(map_, pod()) == ["a/b", "c/d"]


def test_an_owner_that_has_lost_a_child_hears_of_it() -> None:
    event = Updated(KEY, pod(owner("Job", "old")), pod(owner("Job", "new")))
    names = names_of(event, to_owner("apps/v1/Job"))
    assert names == [ObjectName("shop", "old"), ObjectName("shop", "new")]


def test_a_resync_asks_once() -> None:
    asked: list[Object] = []

    def map_(obj: Object) -> None:
        asked.append(obj)

    obj = pod()
    assert names_of(Updated(KEY, obj, obj), map_) == []
    assert asked == [obj]


def test_an_object_means_itself_whatever_its_model_declares() -> None:
    class Bare(msgspec.Struct):
        spec: int

    assert names_of(Updated(KEY, Bare(1), Bare(2)), to_itself) == [KEY]
    assert names_of(Deleted(KEY, pod(), final_state_unknown=True), to_itself) == [KEY]
    assert to_itself(pod()) == KEY
    with pytest.raises(UsageError, match="Bare has no metadata"):
        to_itself(Bare(1))


NAMES = st.builds(ObjectName, st.sampled_from(["", "a", "b"]), st.sampled_from(["x", "y", "z"]))


@given(st.lists(NAMES), st.lists(NAMES))
def test_each_name_comes_once_in_the_order_of_its_first(
    old: list[ObjectName], new: list[ObjectName]
) -> None:
    states = {"old": old, "new": new}
    names = names_of(Updated(KEY, "old", "new"), lambda state: iter(states[state]))
    assert sorted(names) == sorted({*old, *new})
    assert names == sorted(names, key=[*old, *new].index)
    assert names_of(Added(KEY, "new"), lambda state: states[state]) == list(dict.fromkeys(new))


@pytest.mark.parametrize(
    "bad",
    ["shop/web", ["shop/web"], [("shop", "web")], 7],
    ids=["text", "texts", "tuples", "number"],
)
def test_what_is_no_name_is_refused(bad: object) -> None:
    with pytest.raises(UsageError, match=r"which is not an ObjectName; ObjectName\('namespace'"):
        names_in(bad)


def test_an_async_mapping_function_is_refused() -> None:
    async def map_(_: Object) -> Iterable[ObjectName]:
        return ()

    with pytest.raises(UsageError, match="must be a plain function"):
        names_in(map_(pod()))


class Meta(pydantic.BaseModel):
    name: str
    namespace: str = ""
    creation_timestamp: datetime | None = pydantic.Field(default=None, alias="creationTimestamp")
    labels: dict[str, str] | None = None


class PydanticModel(pydantic.BaseModel):
    metadata: Meta


@dataclass
class DataMeta:
    name: str
    namespace: str
    labels: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class DataModel:
    metadata: DataMeta


@pytest.mark.parametrize(
    "make",
    [
        lambda: PydanticModel(
            metadata=Meta(
                name="pod",
                namespace="shop",
                creationTimestamp=datetime(2026, 1, 1, tzinfo=UTC),
                labels={"for": "web"},
            )
        ),
        lambda: DataModel(DataMeta("pod", "shop", {"for": "web"})),
        lambda: {"metadata": {"name": "pod", "namespace": "shop", "labels": {"for": "web"}}},
        lambda: pod(labels={"for": "web"}),
    ],
    ids=["pydantic", "dataclass", "dict", "Object"],
)
def test_metadata_of_any_declaration_is_read(make: Callable[[], object]) -> None:
    metadata = metadata_of(make(), "name", "namespace", "labels")
    assert isinstance(metadata, ObjectMeta)
    assert (metadata.key, metadata.labels) == (KEY, {"for": "web"})


def test_metadata_that_is_none_is_refused_with_the_place() -> None:
    with pytest.raises(UsageError, match=r"metadata of dict is not Kubernetes' metadata: .*labels"):
        metadata_of({"metadata": {"labels": {"a": 1}}})
    with pytest.raises(UsageError, match="str has no metadata"):
        metadata_of("shop/web")


# --- generated models


def generated(kind: str, *, version: str = "apps/v1", namespace: str = "shop") -> core_v1.Pod:
    reference = meta_v1.OwnerReference(
        api_version=version, kind=kind, name="o", uid="u", controller=True
    )
    metadata = meta_v1.ObjectMeta(
        name="pod", namespace=namespace, labels={"app": "x"}, owner_references=[reference]
    )
    return core_v1.Pod(metadata=metadata)


def test_a_generated_model_names_owners_and_labels() -> None:
    pod = generated("ReplicaSet")
    for kind in ("apps/v1/ReplicaSet", apps_v1.ReplicaSet):
        assert names_in(to_owner(kind)(pod)) == [ObjectName("shop", "o")]
    assert names_in(to_owner(apps_v1.Deployment)(pod)) == []
    assert names_in(to_label("app")(pod)) == [ObjectName("shop", "x")]
    assert to_itself(pod) == ObjectName("shop", "pod")


def test_a_generated_model_knows_that_its_kind_has_no_namespace() -> None:
    pod = generated("Node", version="v1")
    assert names_in(to_owner(core_v1.Node)(pod)) == [ObjectName("", "o")]


def test_a_class_that_does_not_say_its_kind_maps_to_no_owner() -> None:
    with pytest.raises(UsageError, match="does not say its kind; give text like"):
        to_owner(core_v1.PodSpec)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (core_v1.Pod(), ("v1", "Pod")),
        (core_v1.Pod(kind="Pot"), ("v1", "Pod")),  # half of it is not enough
        (core_v1.Pod(api_version="v2", kind="Pot"), ("v2", "Pot")),
        ({"kind": "Pod"}, ("", "Pod")),
        ({"apiVersion": 1, "kind": None}, ("", "")),
        (Object.from_dict({"apiVersion": "v1", "kind": "Pod"}), ("v1", "Pod")),
        (Object.from_dict({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}),
         ("", "")),
    ],
)  # fmt: skip
def test_the_kind_is_what_the_object_says_else_its_class(
    obj: object, expected: tuple[str, str]
) -> None:
    assert type_of(obj) == expected


def test_a_description_names_the_object() -> None:
    assert described(generated("ReplicaSet")) == "v1/Pod shop/pod"
    assert described({"kind": "Pod", "metadata": {"name": "a"}}) == "Pod a"
    assert described(Object.from_dict({"kind": "Pod"})).startswith("<Object")

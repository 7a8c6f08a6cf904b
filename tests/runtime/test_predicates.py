"""Predicates: tables of events that pass, and properties that hold for any event."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform import Object, ObjectName
from kinform.cache.processor.events import Added, Deleted, Event, Updated
from kinform.errors import UsageError
from kinform.meta import ObjectMeta
from kinform.objects.storage import Codec
from kinform.runtime import predicate as predicates
from kinform.runtime.predicate import Predicate, any_of, has_labels, in_namespaces, not_
from kinform.selectors import SelectorError

CHANGED: list[Predicate[Object]] = [
    predicates.generation_changed,
    predicates.labels_changed,
    predicates.annotations_changed,
    predicates.finalizers_changed,
    predicates.resource_version_changed,
]
KEY = ObjectName("shop", "web")


def thing(**metadata: object) -> Object:
    whole = {
        "name": "web",
        "namespace": "shop",
        "uid": "1",
        "resourceVersion": "5",
        "generation": 2,
    }
    return Object.from_dict({"kind": "Thing", "metadata": {**whole, **metadata}})


def updated(old: Object, new: Object) -> Updated[Object]:
    return Updated(KEY, old, new)


@pytest.mark.parametrize("predicate", CHANGED, ids=lambda each: each.__name__)
def test_what_came_or_went_was_told_again_or_is_another_object_always_passes(
    predicate: Predicate[Object],
) -> None:
    obj = thing()
    assert predicate(Added(KEY, obj))
    assert predicate(Deleted(KEY, obj))
    assert predicate(updated(obj, obj))
    assert predicate(updated(obj, thing(uid="2")))


@pytest.mark.parametrize(
    ("predicate", "change"),
    [
        (predicates.generation_changed, {"generation": 3}),
        (predicates.generation_changed, {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        (predicates.labels_changed, {"labels": {"a": "b"}}),
        (predicates.annotations_changed, {"annotations": {"a": "b"}}),
        (predicates.finalizers_changed, {"finalizers": ["a.b/c"]}),
        (predicates.resource_version_changed, {"resourceVersion": "6"}),
    ],
)
def test_each_looks_at_its_own_part_and_at_nothing_else(
    predicate: Predicate[Object], change: dict[str, object]
) -> None:
    all_others: dict[str, object] = {
        "generation": 3,
        "labels": {"x": "y"},
        "annotations": {"x": "y"},
        "finalizers": ["x.y/z"],
        "resourceVersion": "7",
    }
    if "deletionTimestamp" in change:
        del all_others["generation"]
    others = {key: value for key, value in all_others.items() if key not in change}
    assert predicate(updated(thing(), thing(**change)))
    assert not predicate(updated(thing(), thing(**others)))
    assert not predicate(updated(thing(**change), thing(**change)))


def test_a_kind_without_generation_has_no_update_held_back() -> None:
    """Unlike controller-runtime's, which drops every update of a config map."""
    old, new = thing(generation=0), thing(generation=0, resourceVersion="6")
    assert predicates.generation_changed(updated(old, new))


def test_an_object_that_goes_on_being_deleted_has_not_changed() -> None:
    when = "2026-01-01T00:00:00Z"
    old = thing(deletionTimestamp=when, finalizers=["a.b/c"])
    assert not predicates.generation_changed(updated(old, thing(deletionTimestamp=when)))


def test_empty_labels_are_no_labels() -> None:
    assert not predicates.labels_changed(updated(thing(), thing(labels={})))
    assert not predicates.annotations_changed(updated(thing(annotations=None), thing()))


def test_annotations_are_compared_where_the_cache_has_packed_them() -> None:
    old, same = thing(annotations={"a": "b"}), thing(annotations={"a": "b"})
    other = thing(annotations={"a": "c"})
    packer = Codec().packer()
    for each in (old, same, other):
        each.pack(packer)
    assert not predicates.annotations_changed(updated(old, same))
    assert predicates.annotations_changed(updated(old, other))


def test_only_a_resync_is_a_resync() -> None:
    obj = thing()
    assert predicates.is_resync(updated(obj, obj))
    assert not predicates.is_resync(updated(obj, thing()))
    assert not predicates.is_resync(Added(KEY, obj))


def test_an_object_that_loses_its_labels_is_heard_of_once_more() -> None:
    web = has_labels("app=web")
    with_it, without = thing(labels={"app": "web"}), thing(labels={"app": "db"})
    assert web(Added(KEY, with_it))
    assert web(Deleted(KEY, with_it))
    assert web(updated(with_it, without))
    assert web(updated(without, with_it))
    assert not web(updated(without, without))
    assert not web(Added(KEY, without))


def test_namespaces_are_those_of_the_key() -> None:
    inside = in_namespaces("shop", "bank")
    assert inside(Added(KEY, thing()))
    assert not inside(Added(ObjectName("other", "web"), thing()))


def test_predicates_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(UsageError, match="give one at least"):
        in_namespaces()
    with pytest.raises(UsageError, match="would let nothing pass"):
        any_of()
    with pytest.raises(SelectorError):
        has_labels("app=(")


@given(st.lists(st.booleans(), min_size=1))
def test_combinations_are_those_of_logic(answers: list[bool]) -> None:
    def saying(answer: bool) -> Predicate[Object]:
        return lambda _: answer

    event = Added(KEY, thing())
    sayings = [saying(answer) for answer in answers]
    assert any_of(*sayings)(event) is any(answers)
    assert predicates.all_of(*sayings)(event) is all(answers)
    assert [not_(each)(event) for each in sayings] == [not answer for answer in answers]


def test_the_first_predicate_to_decide_is_the_last_to_be_asked() -> None:
    def fails(event: Event[Object]) -> bool:
        raise AssertionError(event)

    event = Added(KEY, thing())
    assert any_of(predicates.labels_changed, fails)(event)
    assert not predicates.all_of(not_(predicates.labels_changed), fails)(event)


class Model(msgspec.Struct):
    metadata: ObjectMeta


@dataclass
class OwnMeta:
    uid: str
    generation: int


@dataclass
class OwnModel:
    metadata: OwnMeta


class Bare(msgspec.Struct):
    spec: dict[str, object]


def test_models_are_looked_at_by_the_metadata_they_declare() -> None:
    old, new = Model(ObjectMeta(generation=1)), Model(ObjectMeta(generation=2))
    assert predicates.generation_changed(Updated(KEY, old, new))
    assert not predicates.labels_changed(Updated(KEY, old, new))
    dicts = ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"a": "c"}}})
    assert predicates.labels_changed(Updated(KEY, *dicts))


def test_what_a_model_does_not_declare_is_not_taken_for_unchanged() -> None:
    own = Updated(KEY, OwnModel(OwnMeta("1", 1)), OwnModel(OwnMeta("1", 1)))
    with pytest.raises(
        UsageError, match=r"OwnModel does not declare labels; declare `metadata: Ob"
    ):
        predicates.labels_changed(own)
    with pytest.raises(UsageError, match="does not declare deletionTimestamp"):
        predicates.generation_changed(own)
    with pytest.raises(UsageError, match=r"Bare has no metadata to look at; declare"):
        predicates.labels_changed(Updated(KEY, Bare({}), Bare({})))

from __future__ import annotations

import pytest

from kinform.cli.cluster.until import Until
from kinform.objects.object import Object
from kinform.sansio.json_path import JsonPathError
from tests.cli.support_rows import pod


def ready(status: str, **extra: object) -> Object:
    return pod("web", status={"conditions": [{"type": "Ready", "status": status, **extra}]})


def met_by(text: str, obj: Object) -> bool:
    until = Until(text)
    until.note("key", obj)
    return until.is_met


@pytest.mark.parametrize(
    ("text", "obj", "expected"),
    [
        ("condition=Ready", ready("True"), True),
        ("condition=ready", ready("True"), True),
        ("condition=Ready", ready("False"), False),
        ("condition=Ready=False", ready("False"), True),
        ("condition=Ready=unknown", ready("Unknown"), True),
        ("condition=Ready", pod("web"), False),
        ("condition=Other", ready("True"), False),
        ("jsonpath={.status.phase}=Running", pod("web", status={"phase": "Running"}), True),
        ("jsonpath={.status.phase}=Running", pod("web", status={"phase": "Pending"}), False),
        ("jsonpath={.status.phase}=Running", pod("web"), False),
        ("jsonpath={.spec.a[*]}=x", pod("web", spec={"a": ["x", "x"]}), False),
        ("jsonpath=.status.phase=Running", pod("web", status={"phase": "Running"}), True),
        ("jsonpath={.spec.replicas}=3", pod("web", spec={"replicas": 3}), True),
        ("jsonpath={.status.ip}", pod("web", status={"ip": "::1"}), True),
        ("jsonpath={.status.ip}", pod("web", status={}), False),
        ("jsonpath={.status.ips[0]}=x", pod("web", status={"ips": []}), False),
        (
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
            ready("True"),
            True,
        ),
        ("delete", pod("web"), False),
    ],
)
def test_conditions_are_kubectl_waits(text: str, obj: Object, *, expected: bool) -> None:
    assert met_by(text, obj) is expected


def test_a_condition_of_an_older_generation_does_not_count() -> None:
    metadata = {"name": "web", "generation": 2}
    condition = {"type": "Ready", "status": "True", "observedGeneration": 1}
    obj = Object.from_dict({"metadata": metadata, "status": {"conditions": [condition]}})
    assert not met_by("condition=Ready", obj)


def test_all_objects_must_meet_it_and_there_must_be_one() -> None:
    until = Until("condition=Ready")
    answers = [until.is_met]
    steps = [("a", "True"), ("b", "False"), ("b", "True"), ("a", "False")]
    for key, status in steps:
        until.note(key, ready(status))
        answers.append(until.is_met)
    assert answers == [False, True, False, True, False]
    assert str(until) == "condition=Ready is not met by 1 of 2 objects: shop/web"


def test_a_deleted_object_does_not_delay_the_condition() -> None:
    until = Until("delete")
    until.note("a", pod("web"))
    answers = [until.is_met]
    until.forget("a")
    assert [*answers, until.is_met] == [False, True]


@pytest.mark.parametrize("text", ["", "ready", "condition", "condition=", "jsonpath={.a}x", "x=y"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Until(text)


def test_a_broken_path_is_refused() -> None:
    with pytest.raises(JsonPathError):
        Until("jsonpath={.a[}=x")

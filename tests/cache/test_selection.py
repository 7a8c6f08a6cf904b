"""Selection: what two requests must have in common to share an informer."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest

from kinform.cache.selection import Selection, select
from kinform.errors import UsageError
from kinform.meta import GroupVersionResource
from kinform.objects.object import Object
from kinform.resource import Resource
from kinform.selectors import SelectorError


class Pod(msgspec.Struct):
    __resource__: ClassVar[str] = "v1/pods"


class Nameless(msgspec.Struct):
    """Does not say which resource it is."""


PODS: Resource[Object] = Resource.of("v1/pods", kind="Pod", namespaced=True)

SAME: list[tuple[Selection[object], Selection[object]]] = [
    (select("v1/pods"), select(GroupVersionResource("", "v1", "pods"))),
    (select("v1/pods"), select("v1/pods", model=Object)),
    (select("v1/pods"), select(PODS)),
    (select(Pod), select("v1/pods", model=Pod)),
    (select(Pod), select(PODS.with_model(Pod))),
    (select("v1/pods", labels={"a": "b"}), select("v1/pods", labels="a=b")),
    (select("v1/pods", labels="a=b,c=d"), select("v1/pods", labels="c=d, a = b")),
    (select("v1/pods", fields={"x": "y"}), select("v1/pods", fields="x=y")),
    (select("v1/pods", labels=""), select("v1/pods")),
]

OTHER: list[tuple[Selection[object], Selection[object]]] = [
    (select("v1/pods"), select("v1/nodes")),
    (select("v1/pods"), select(Pod)),
    (select("v1/pods"), select("v1/pods", namespace="default")),
    (select("v1/pods"), select("v1/pods", labels="a=b")),
    (select("v1/pods"), select("v1/pods", fields="x=y")),
    (select("v1/pods"), select("v1/pods", metadata_only=True)),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_said_in_another_way_is_the_same(
    one: Selection[object], other: Selection[object]
) -> None:
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_any_difference_makes_another(one: Selection[object], other: Selection[object]) -> None:
    assert one != other


def test_a_resource_that_reads_its_objects_in_its_own_way_is_another() -> None:
    def decode(raw: bytes) -> Object:
        return Object.from_bytes(raw)

    special = Resource(gvr=PODS.gvr, kind="Pod", namespaced=True, model=PODS.model, decode=decode)
    assert select(special) != select(PODS)
    assert select(special) == select(special)


def test_it_remembers_how_the_kind_was_given() -> None:
    assert select(PODS).resource is PODS
    assert select(Pod).resource == "v1/pods"


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        (select("v1/pods"), "v1/pods"),
        (select(PODS, namespace="default"), "v1/pods in default"),
        (select("v1/pods", labels="a=b", fields="x=y"), "v1/pods with a=b x=y"),
    ],
)
def test_its_text_says_what_is_selected(selection: Selection[object], text: str) -> None:
    assert str(selection) == text


def test_metadata_alone_has_no_model() -> None:
    gvr = GroupVersionResource("", "v1", "pods")
    assert select(gvr, metadata_only=True) == select("v1/pods", metadata_only=True)
    with pytest.raises(UsageError, match="metadata_only gives Objects"):
        select(Pod, metadata_only=True)
    with pytest.raises(UsageError, match="metadata_only gives Objects"):
        select("v1/pods", model=Pod, metadata_only=True)
    with pytest.raises(UsageError, match="metadata_only gives Objects"):
        select(PODS, metadata_only=True)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(UsageError, match="give a model class, or a name with model="):
        select(Pod, model=Pod)
    with pytest.raises(UsageError, match="a Resource has its model"):
        select(PODS, model=Object)
    with pytest.raises(UsageError, match="Nameless does not say which resource it is"):
        select(Nameless)
    with pytest.raises(UsageError, match="42 names no resource"):
        select(42)  # type: ignore[arg-type]
    with pytest.raises(SelectorError):
        select("v1/pods", labels="a in (")


def test_no_namespace_is_all_of_them() -> None:
    assert select("v1/pods", namespace=None) == select("v1/pods", namespace="")
    assert select("v1/pods", namespace=None).namespace == ""


@pytest.mark.parametrize("namespace", ["*", "a/b", "Default", "-a", "a-", "a.b", "a" * 64, "a\n"])
def test_what_no_namespace_can_be_called_is_refused(namespace: str) -> None:
    with pytest.raises(UsageError, match="no namespace can be called"):
        select("v1/pods", namespace=namespace)


def test_several_namespaces_are_for_a_factory() -> None:
    expected = (
        r"not list; for several there is SharedInformerFactory\(client, namespaces=\[\.\.\.\]\)"
    )
    with pytest.raises(UsageError, match=expected):
        select("v1/pods", namespace=["a", "b"])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["", "a/b/c/d", "/", "v1/", "/pods", "apps//x", "v1/po ds", "*"])
def test_what_no_kind_can_be_called_is_refused(kind: str) -> None:
    expected = "names no resource; give 'v1/pods', 'apps/v1/deployments', 'deployments.apps'"
    with pytest.raises(UsageError, match=expected):
        select(kind)


@pytest.mark.parametrize(
    "kind", ["pods", "po", "Pod", "deployments.apps", "deployments.v1.apps", "a.b-c.io/v1/things"]
)
def test_a_kind_may_be_named_in_many_ways(kind: str) -> None:
    assert select(kind).name == kind

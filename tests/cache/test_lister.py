"""Lister: objects by label and namespace, from the cache alone."""

from __future__ import annotations

import pytest

from kinform.cache.lister import Lister
from kinform.cache.store.store import Indexer
from kinform.errors import UsageError
from kinform.meta import ObjectName
from kinform.objects.object import Object
from kinform.selectors import LabelSelector, LabelSelectorLike, SelectorError
from tests.cache.support_entries import entry_of, keyed


@pytest.fixture
def lister() -> Lister[str]:
    indexer = Indexer[str]()
    indexer.add(entry_of("x/web", "x/web", labels={"app": "web", "tier": "front"}))
    indexer.add(entry_of("x/db", "x/db", labels={"app": "db"}))
    indexer.add(entry_of("y/web", "y/web", labels={"app": "web"}))
    indexer.add(entry_of("y/bare", "y/bare"))
    return Lister(indexer)


@pytest.mark.parametrize(
    ("selector", "everywhere", "in_x"),
    [
        (None, ["x/db", "x/web", "y/bare", "y/web"], ["x/db", "x/web"]),
        ("", ["x/db", "x/web", "y/bare", "y/web"], ["x/db", "x/web"]),
        ("app=web", ["x/web", "y/web"], ["x/web"]),
        ("app=web,tier", ["x/web"], ["x/web"]),
        ("!app", ["y/bare"], []),
        ({"app": "db"}, ["x/db"], ["x/db"]),
        ("app=mail", [], []),
        (LabelSelector.nothing(), [], []),
    ],
    ids=str,
)
def test_a_list_holds_what_the_selector_selects(
    lister: Lister[str], selector: LabelSelectorLike, everywhere: list[str], in_x: list[str]
) -> None:
    """CG-S11: all, some and none."""
    assert sorted(lister.list(selector)) == everywhere
    assert sorted(lister.list(label_selector=selector)) == everywhere
    assert sorted(lister.namespace("x").list(selector)) == in_x
    assert lister.namespace("elsewhere").list(selector) == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 1_000, 100_000])
def test_a_list_is_complete_whatever_its_size(count: int) -> None:
    """CG-S11: none, a tenth and all of many."""
    indexer = Indexer[int]()
    numbers = (
        entry_of(f"ns-{i % 7}/{i}", i, 1, labels={"digit": str(i % 10)}) for i in range(count)
    )
    indexer.replace(keyed(*numbers), "1")
    lister = Lister(indexer)
    assert sorted(lister.list()) == list(range(count))
    assert sorted(lister.list("digit=3")) == list(range(3, count, 10))
    assert sorted(lister.namespace("ns-2").list()) == list(range(2, count, 7))
    assert lister.list("digit=none") == []


def test_an_object_is_found_by_name(lister: Lister[str]) -> None:
    assert lister.get("x/web") == lister.get(ObjectName("x", "web")) == "x/web"
    assert lister.namespace("x").get("web") == "x/web"
    assert lister.get("z/web") is None
    assert lister.namespace("x").get("bare") is None


def test_objects_without_a_namespace_are_in_the_empty_one() -> None:
    indexer = Indexer[str]()
    indexer.add(entry_of("node-1", "node"))
    lister = Lister(indexer)
    assert lister.get("node-1") == lister.namespace("").get("node-1") == "node"
    assert lister.namespace("").list() == ["node"]


def test_the_empty_namespace_lists_all_of_them(lister: Lister[str]) -> None:
    assert len(lister.namespace("").list()) == 4


def test_a_view_shows_the_cache_as_it_is_at_each_call() -> None:
    indexer = Indexer[str]()
    lister = Lister(indexer)
    namespace = lister.namespace("x")
    assert (lister.list(), namespace.list()) == ([], [])
    indexer.replace(keyed(entry_of("x/a", "a")), "1")
    assert (lister.list(), namespace.list(), namespace.get("a")) == (["a"], ["a"], "a")


def test_what_is_no_selector_or_key_is_refused(lister: Lister[str]) -> None:
    with pytest.raises(SelectorError):
        lister.list("app in web")
    with pytest.raises(SelectorError):
        lister.namespace("x").list("=")
    with pytest.raises(ValueError, match="'a/b/c' is not a key"):
        lister.get("a/b/c")
    with pytest.raises(UsageError, match="list is not a key"):
        lister.get(["x", "a"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a name is text, not list"):
        lister.namespace("x").get(["a"])  # type: ignore[arg-type]


def test_selecting_reads_no_object() -> None:
    """The labels beside an object count, so its bytes may be anything."""
    real = Object.from_dict({"metadata": {"name": "a", "labels": {"app": "web"}}})
    garbage = Object(b"\xff not JSON", real._head)
    indexer = Indexer[Object]()
    indexer.add(entry_of("ns/a", garbage, labels={"app": "web"}, owners=["o"]))
    (found,) = Lister(indexer).list("app=web")
    assert found is garbage

"""Indexer: indexes always equal what the objects say, whatever was written in whatever order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kinform.cache.store.indexes import (
    NAMESPACE_INDEX,
    OWNER_INDEX,
    IndexFunc,
    IndexFunctionError,
    UnknownIndexError,
    each,
    function_index,
    index_by,
)
from kinform.cache.store.store import Indexer
from kinform.cache.store.thread_safe_store import ThreadSafeStore
from kinform.errors import KinformError, UsageError
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.objects.object import Object
from kinform.objects.storage import Codec
from kinform.sansio import versions
from kinform.sansio.queue.deltas import Delta, DeltaType
from tests.cache.support_entries import delta_of, entry_of, keyed

Words: TypeAlias = tuple[str, ...]
"""The objects of these tests: words that they are indexed by."""


def words(obj: Words) -> Words:
    return obj


def by_words(**contents: str) -> Indexer[Words]:
    """Return an indexer by word, with one object for each argument: ``a="red blue"``."""
    indexer = Indexer(indexers={"word": words})
    for name, content in contents.items():
        indexer.add(having(name, content))
    return indexer


def having(name: str, content: str, rv: int = 1) -> Entry[Words]:
    return entry_of(f"ns/{name}", tuple(content.split()), rv)


def names(indexer: Indexer[Words], value: str, index: str = "word") -> list[str]:
    keys = indexer.index_keys(index, value)
    found = indexer.entries.by_index(index, value)
    assert sorted(entry.metadata.key for entry in found) == keys
    assert [entry.object for entry in found] == indexer.by_index(index, value)
    return [key.name for key in keys]


# --- keeping up with writes


def test_the_last_object_of_a_value_takes_the_value_with_it() -> None:
    """CG-S01."""
    indexer = by_words(a="red")
    indexer.delete("ns/a")
    assert indexer.list_index_values("word") == []
    assert names(indexer, "red") == []


def test_a_value_stays_for_the_objects_that_are_left() -> None:
    """CG-S02."""
    indexer = by_words(a="red", b="red")
    indexer.delete("ns/a")
    assert indexer.list_index_values("word") == ["red"]
    assert names(indexer, "red") == ["b"]


def test_an_object_is_found_under_all_its_values_as_they_change() -> None:
    """CG-S03."""
    indexer = by_words()
    seen: list[dict[str, list[str]]] = []
    for write in (
        lambda: indexer.add(having("a", "red")),
        lambda: indexer.update(having("a", "red blue")),
        lambda: indexer.add(having("b", "blue green")),
        lambda: indexer.update(having("a", "green")),
        lambda: indexer.update(having("b", "")),
        lambda: indexer.update(having("b", "red green")),
        lambda: indexer.delete("ns/a"),
        lambda: indexer.delete("ns/b"),
    ):
        write()
        values = sorted(indexer.list_index_values("word"))
        seen.append({value: names(indexer, value) for value in values})
    assert seen == [
        {"red": ["a"]},
        {"blue": ["a"], "red": ["a"]},
        {"blue": ["a", "b"], "green": ["b"], "red": ["a"]},
        {"blue": ["b"], "green": ["a", "b"]},
        {"green": ["a"]},
        {"green": ["a", "b"], "red": ["b"]},
        {"green": ["b"], "red": ["b"]},
        {},
    ]


def test_an_index_answers_with_the_object_as_it_is_now() -> None:
    """Its values did not change, so the index was only told of the new entry."""
    indexer = Indexer(indexers={"first": lambda obj: obj[0], "all": words})
    indexer.add(having("a", "red blue", 1))
    now = having("a", "red blue", 2)
    indexer.update(now)
    held = [
        *indexer.entries.by_index("first", "red"),
        *indexer.entries.by_index("all", "blue"),
        *indexer.entries.by_index(NAMESPACE_INDEX, "ns"),
    ]
    assert [entry is now for entry in held] == [True, True, True]


def test_objects_in_common_are_found_by_an_entry_that_need_not_be_held() -> None:
    """CG-S06: each once, however many values they share."""
    indexer = by_words(a="red blue", b="blue", c="green")
    assert indexer.index("word", having("x", "red blue")) == [("red", "blue"), ("blue",)]
    assert indexer.index("word", having("x", "white")) == []
    assert indexer.index(NAMESPACE_INDEX, having("x", "")) == indexer.list()


def test_the_values_of_an_index_are_listed_once_each() -> None:
    """CG-S09."""
    indexer = by_words(a="red", b="red blue", c="")
    assert sorted(indexer.list_index_values("word")) == ["blue", "red"]


def test_users_of_many_pods_are_found_again_after_delete_and_update() -> None:
    """CG-S10."""
    indexer = by_words(one="ernie bert", two="bert oscar", tre="ernie elmo")
    assert names(indexer, "ernie") == ["one", "tre"]
    assert names(indexer, "bert") == ["one", "two"]
    assert names(indexer, "nobody") == []
    indexer.delete("ns/tre")
    assert (names(indexer, "ernie"), names(indexer, "elmo")) == (["one"], [])
    indexer.update(having("two", "oscar"))
    assert (names(indexer, "bert"), names(indexer, "oscar")) == (["one"], ["two"])


# --- what functions may return


@pytest.mark.parametrize(
    ("returned", "values"),
    [
        ("red", ["red"]),
        ("", [""]),
        (None, []),
        ([], []),
        (["red", "blue", "red"], ["blue", "red"]),
        ({"red"}, ["red"]),
        (iter(("red", "blue")), ["blue", "red"]),
        (DeltaType.ADDED, ["Added"]),
    ],
    ids=["one", "empty text", "none", "empty", "twice", "set", "iterator", "enum"],
)
def test_a_function_returns_one_value_or_several_or_none(
    returned: Iterable[str] | str | None, values: list[str]
) -> None:
    indexer = Indexer(indexers={"x": lambda _: returned})
    indexer.add(having("a", ""))
    assert sorted(indexer.list_index_values("x")) == values
    assert all(indexer.index_keys("x", value) == [ObjectName("ns", "a")] for value in values)


def test_what_a_function_returned_is_kept_and_never_asked_for_again() -> None:
    """Once per change: not for a delete, nor for what a relist shows unchanged."""
    asked: list[Words] = []

    def mutable(obj: Words) -> list[str]:
        asked.append(obj)
        return list(obj)

    indexer = Indexer(indexers={"word": mutable})
    indexer.add(having("a", "red", 1))
    indexer.update(having("a", "blue", 2))
    indexer.replace(keyed(having("a", "blue", 2), having("b", "green", 3)), "5")
    indexer.apply(
        [
            delta_of(DeltaType.SYNC, "ns/a", having("a", "blue", 2)),
            delta_of(DeltaType.REPLACED, "ns/a", having("a", "blue", 2)),
        ]
    )
    assert names(indexer, "blue") == ["a"]
    indexer.delete("ns/b")
    indexer.replace({}, "6")
    assert asked == [("red",), ("blue",), ("green",)]
    assert indexer.list_index_values("word") == []


def test_equal_values_are_kept_once() -> None:
    """Each object decodes the name of its node for itself; a cache keeps one for all of them."""
    indexer = Indexer[Words](indexers={"one": "".join, "several": words})
    for name in "abc":
        indexer.add(having(name, "red blue"))
    for index, texts in (("one", 1), ("several", 2)):
        kept = indexer.entries._state.index(index)._kept or {}
        assert len({id(text) for values in kept.values() for text in each(values)}) == texts


# --- built-in indexes


def test_namespaces_and_owners_are_indexed_from_metadata_alone() -> None:
    indexer = Indexer[Words]()
    indexer.add(entry_of("a/x", (), owners=["o1"]))
    indexer.add(entry_of("b/x", (), owners=["o1", "o2", "o1"]))
    indexer.add(entry_of("cluster-scoped", ()))
    assert sorted(indexer.list_index_values(NAMESPACE_INDEX)) == ["", "a", "b"]
    assert indexer.index_keys(NAMESPACE_INDEX, "") == [ObjectName("", "cluster-scoped")]
    assert indexer.index_keys(OWNER_INDEX, "o1") == [ObjectName("a", "x"), ObjectName("b", "x")]
    assert indexer.index_keys(OWNER_INDEX, "o2") == [ObjectName("b", "x")]


def test_an_object_that_changes_owners_is_found_by_the_new_ones() -> None:
    indexer = Indexer[Words]()
    for owners in (["o1", "o2"], ["o2"], [], ["o3"]):
        indexer.add(entry_of("ns/a", (), owners=owners))
        assert sorted(indexer.list_index_values(OWNER_INDEX)) == owners
    indexer.delete("ns/a")
    assert indexer.list_index_values(OWNER_INDEX) == []


# --- names


def test_an_unknown_index_is_named_with_those_there_are() -> None:
    indexer = by_words(a="red")
    asks: list[Callable[[], object]] = [
        lambda: indexer.by_index("colour", "red"),
        lambda: indexer.index_keys("colour", "red"),
        lambda: indexer.list_index_values("colour"),
        lambda: indexer.index("colour", having("a", "red")),
    ]
    for ask in asks:
        with pytest.raises(UnknownIndexError) as caught:
            ask()
        assert caught.value.known == ("namespace", "owner", "word")
        assert isinstance(caught.value, UsageError)
        assert isinstance(caught.value, KeyError)
        message = "no index named 'colour'; this cache has namespace, owner, word"
        assert str(caught.value) == message


def test_a_store_without_indexes_says_that_it_has_none() -> None:
    with pytest.raises(UnknownIndexError, match="no index named 'word'; this cache has none"):
        ThreadSafeStore[Words]().by_index("word", "red")


@pytest.mark.parametrize("name", ["word", NAMESPACE_INDEX, OWNER_INDEX])
def test_a_name_that_is_taken_is_refused_and_nothing_added(name: str) -> None:
    indexer = by_words(a="red")
    with pytest.raises(UsageError, match=f"there is an index named '{name}' already"):
        indexer.add_indexers({"new": words, name: words})
    with pytest.raises(UnknownIndexError):
        indexer.by_index("new", "red")
    assert names(indexer, "red") == ["a"]


def test_a_constructor_refuses_names_that_are_taken() -> None:
    with pytest.raises(UsageError, match="there is an index named 'namespace' already"):
        Indexer[Words](indexers={NAMESPACE_INDEX: words})
    with pytest.raises(UsageError, match="there is an index named 'word' already"):
        ThreadSafeStore(indexes=[function_index("word", words), function_index("word", words)])


def test_a_filled_store_can_be_indexed_by_more() -> None:
    indexer = by_words(a="red blue", b="", c="blue")
    indexer.add_indexers({"first": lambda obj: obj[:1], "count": lambda obj: str(len(obj))})
    assert names(indexer, "blue", "first") == ["c"]
    assert names(indexer, "0", "count") == ["b"]
    indexer.update(having("b", "red"))
    assert names(indexer, "red", "first") == ["a", "b"]
    assert indexer.index_keys("count", "0") == []


def test_one_index_can_be_given_to_two_stores() -> None:
    """They take its name and function, not what is in it."""
    index = function_index("word", words)
    stores = [ThreadSafeStore(indexes=[index]) for _ in range(2)]
    stores[0].add(ObjectName("ns", "a"), having("a", "red"))
    assert [store.list_index_values("word") for store in stores] == [["red"], []]


# --- functions that fail


def first(obj: Words) -> str:
    return obj[0]


def lazily(obj: Words) -> Iterator[str]:
    yield obj[0]


def numbers(obj: Words) -> Iterable[str]:
    return obj or [1, 2.5, "x"]  # type: ignore[list-item] # on purpose


EMPTY_OBJECT = having("bad", "", 9)
"""What the functions above fail on."""
FAILURES = [
    pytest.param(first, "it raised IndexError", id="raises"),
    pytest.param(lazily, "it raised IndexError", id="raises lazily"),
    pytest.param(numbers, "it returned float and int where text was expected", id="no text"),
]


@pytest.mark.parametrize(("function", "problem"), FAILURES)
def test_a_function_that_fails_is_named_and_the_cache_stays_as_it_was(
    function: Callable[[Words], Iterable[str]], problem: str
) -> None:
    """CG-S08, mixed and all failed: a transaction is done wholly or not at all."""
    indexer = Indexer(indexers={"word": words, "first": function})
    good = having("good", "red", 1)
    indexer.replace(keyed(good), "5")
    writes: list[Callable[[], object]] = [
        lambda: indexer.add(EMPTY_OBJECT),
        lambda: indexer.update(EMPTY_OBJECT),
        lambda: indexer.replace(keyed(having("other", "blue"), EMPTY_OBJECT), "9"),
        lambda: indexer.apply(
            [
                delta_of(DeltaType.DELETED, "ns/good", good),
                delta_of(DeltaType.ADDED, "ns/bad", EMPTY_OBJECT),
                delta_of(DeltaType.ADDED, "ns/other", having("other", "blue")),
            ]
        ),
    ]
    for write in writes:
        with pytest.raises(IndexFunctionError) as caught:
            write()
        assert str(caught.value) == f"index 'first' failed on ns/bad: {problem}"
        assert (caught.value.index, caught.value.key) == ("first", ObjectName("ns", "bad"))
        assert isinstance(caught.value, KinformError)
        assert indexer.entries.list() == indexer.entries.by_index("first", "red") == [good]
        assert (indexer.resource_version, indexer.list_index_values("word")) == ("5", ["red"])


def test_what_a_function_raised_is_the_cause() -> None:
    """CG-S07."""
    with pytest.raises(IndexFunctionError) as caught:
        Indexer(indexers={"first": first}).add(EMPTY_OBJECT)
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_late_function_that_fails_adds_no_index() -> None:
    indexer = by_words(a="red", b="")
    with pytest.raises(IndexFunctionError, match="index 'first' failed on ns/b"):
        indexer.add_indexers({"count": lambda obj: str(len(obj)), "first": first})
    with pytest.raises(UnknownIndexError):
        indexer.list_index_values("count")


def test_asking_with_an_entry_that_a_function_fails_on_raises() -> None:
    told: list[IndexFunctionError] = []
    indexer = Indexer(indexers={"first": first}, on_index_error=told.append)
    with pytest.raises(IndexFunctionError, match="index 'first' failed on ns/bad"):
        indexer.index("first", EMPTY_OBJECT)
    assert told == []


def test_whoever_wants_to_be_told_of_failures_gets_every_object_into_the_cache() -> None:
    """CG-S08, mixed: all are held, the failed one is told of, and missing in that index alone."""
    told: list[str] = []
    indexer = Indexer(
        indexers={"first": first, "word": words},
        on_index_error=lambda error: told.append(str(error)),
    )
    entries = [having("a", "red", 1), having("bad", "", 2), having("c", "red", 3)]
    indexer.apply([Delta(DeltaType.ADDED, e.metadata.key, e) for e in entries])
    assert told == ["index 'first' failed on ns/bad: it raised IndexError"]
    assert indexer.entries.list() == entries
    assert names(indexer, "red", "first") == ["a", "c"]
    indexer.replace(keyed(*entries[:2], having("c", "", 4)), "5")
    assert names(indexer, "red", "first") == ["a"]
    assert told[1:] == ["index 'first' failed on ns/c: it raised IndexError"]  # "bad" is unchanged
    indexer.update(having("bad", "red", 6))
    assert names(indexer, "red", "first") == ["a", "bad"]
    indexer.update(having("a", "", 7))  # was found under "red", and would be a lie there now
    assert names(indexer, "red", "first") == ["bad"]


def test_a_function_may_read_the_store_it_indexes() -> None:
    """It runs before the lock is taken and sees the state before the write."""
    indexer = Indexer[Words]()
    indexer.add_indexers({"rank": lambda _: str(len(indexer.list()))})
    for name in "abc":
        indexer.add(having(name, ""))
    assert [names(indexer, str(rank), "rank") for rank in range(3)] == [["a"], ["b"], ["c"]]


# --- any sequence of writes

KEYS = ["x/a", "x/b", "y/a", "a"]
LETTERS = "pqr"
ENTRIES = st.builds(
    entry_of,
    st.sampled_from(KEYS),
    st.lists(st.sampled_from(LETTERS), max_size=3).map(tuple),
    st.integers(1, 4),
    uid=st.sampled_from(["u1", "u2", ""]),
    owners=st.lists(st.sampled_from(["o1", "o2"]), max_size=2),
)
FUNCTIONS: dict[str, IndexFunc[Words]] = {
    "words": words,
    "first": lambda obj: obj[0] if obj else None,
    "distinct": lambda obj: set(obj) or None,
}


class AnyWrites(RuleBasedStateMachine):
    """A dict is the oracle; every index is rebuilt from it after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.indexer: Indexer[Words] = Indexer(indexers={"words": words})
        self.model: dict[ObjectName, Entry[Words]] = {}
        self.version = ""
        self.functions: dict[str, IndexFunc[Words]] = {"words": words}

    @rule(entry=ENTRIES, update=st.booleans())
    def write(self, entry: Entry[Words], update: bool) -> None:
        key = entry.metadata.key
        old = self.indexer.update(entry) if update else self.indexer.add(entry)
        assert old is self.model.get(key)
        self.model[key] = entry
        self.see(entry)

    @rule(entry=ENTRIES)
    def delete_by_entry(self, entry: Entry[Words]) -> None:
        assert self.indexer.delete(entry) is self.model.pop(entry.metadata.key, None)
        self.see(entry)

    @rule(key=st.sampled_from(KEYS))
    def delete_by_key(self, key: str) -> None:
        assert self.indexer.delete(key) is self.model.pop(ObjectName.parse(key), None)

    @rule(
        changes=st.lists(
            st.tuples(st.sampled_from([*DeltaType]), ENTRIES, st.booleans()), max_size=6
        )
    )
    def transact(self, changes: list[tuple[DeltaType, Entry[Words], bool]]) -> None:
        deltas = [
            Delta(kind, e.metadata.key, e, kind is DeltaType.DELETED and unknown)
            for kind, e, unknown in changes
        ]
        for delta, transition in zip(deltas, self.indexer.apply(deltas), strict=True):
            assert transition.key == delta.key
            assert transition.old is self.model.get(delta.key)
            self.expect(delta)
            assert transition.new is self.model.get(delta.key)

    def expect(self, delta: Delta[Words]) -> None:
        entry, old = delta.entry, self.model.get(delta.key)
        assert entry is not None
        if delta.type is DeltaType.DELETED:
            if old is None or not self.is_past_delete(delta, old.metadata, entry.metadata):
                self.model.pop(delta.key, None)
        elif old is None or not self.is_no_news(delta, old.metadata, entry.metadata):
            self.model[delta.key] = entry
        if delta.type is not DeltaType.SYNC and not delta.final_state_unknown:
            self.see(entry)

    def is_no_news(self, delta: Delta[Words], old: ObjectMeta, new: ObjectMeta) -> bool:
        if not (old.uid and new.uid):
            return False
        if delta.type in {DeltaType.REPLACED, DeltaType.SYNC}:
            return old.uid == new.uid and old.resource_version == new.resource_version
        return int(new.resource_version) <= int(old.resource_version)

    def is_past_delete(self, delta: Delta[Words], old: ObjectMeta, new: ObjectMeta) -> bool:
        is_older = int(new.resource_version) < int(old.resource_version)
        return old.uid != new.uid and is_older and not delta.final_state_unknown

    @rule(entries=st.lists(ENTRIES, max_size=4), version=st.integers(1, 6))
    def replace(self, entries: list[Entry[Words]], version: int) -> None:
        # A list is as new as its objects. Where it is not, versions have no order: that has tests
        # of its own (test_unordered_versions.py).
        version = max([version, *(int(one.metadata.resource_version) for one in entries)])
        result = self.indexer.replace(keyed(*entries), str(version))
        back = bool(self.version) and version < int(self.version)
        assert result.regressed is back
        before, self.model = self.model, keyed(*entries)
        kept = {
            k: old
            for k, old in before.items()
            if (new := self.model.get(k)) and same(old, new) and not back
        }
        self.model.update(kept)
        self.version = str(version)
        assert result.unchanged == [kept[key] for key in self.model if key in kept]
        told = {t.key: (t.old, t.new) for t in [*result.added, *result.changed, *result.deleted]}
        assert told == {
            key: (before.get(key), self.model.get(key))
            for key in before.keys() | self.model.keys()
            if key not in kept
        }

    @rule(version=st.integers(1, 6))
    def bookmark(self, version: int) -> None:
        self.indexer.bookmark(str(version))
        self.version = str(max(int(self.version or 0), version))

    @precondition(lambda self: len(self.functions) < len(FUNCTIONS))
    @rule(data=st.data())
    def add_indexers(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(FUNCTIONS.keys() - self.functions.keys())))
        self.functions[name] = FUNCTIONS[name]
        self.indexer.add_indexers({name: FUNCTIONS[name]})

    def see(self, entry: Entry[Words]) -> None:
        seen = int(entry.metadata.resource_version)
        self.version = str(max(int(self.version or 0), seen))

    @invariant()
    def the_store_is_the_dict(self) -> None:
        assert self.indexer.resource_version == self.version
        assert sorted(self.indexer.list_keys()) == sorted(self.model)
        assert len(self.indexer) == len(self.model)
        for key, entry in self.model.items():
            assert self.indexer.entries.get(key) is entry

    @invariant()
    def every_index_is_the_one_rebuilt_from_the_dict(self) -> None:
        rebuilt = Indexer(indexers=self.functions)
        for entry in self.model.values():
            rebuilt.add(entry)
        for index in [NAMESPACE_INDEX, OWNER_INDEX, *self.functions]:
            values = self.indexer.list_index_values(index)
            assert sorted(values) == sorted(set(rebuilt.list_index_values(index)))
            for value in values:
                keys = self.indexer.index_keys(index, value)
                assert keys == rebuilt.index_keys(index, value) != []
                found = self.indexer.entries.by_index(index, value)
                assert all(entry is self.model[entry.metadata.key] for entry in found)

    @invariant()
    def the_rebuilt_indexes_say_what_the_functions_say(self) -> None:
        for name, function in self.functions.items():
            for letter in LETTERS:
                expected = {
                    k for k, e in self.model.items() if letter in (function(e.object) or "")
                }
                assert set(self.indexer.index_keys(name, letter)) == expected


def same(old: Entry[Words], new: Entry[Words]) -> bool:
    return versions.same_version(old.metadata, new.metadata)


AnyWrites.TestCase.settings = settings(
    stateful_step_count=25,
    max_examples=min(settings().max_examples, 1000),  # more take longer than a test may
)
TestAnyWrites = pytest.mark.slow(AnyWrites.TestCase)


# --- index_by ---------------------------------------------------------------------------------


def _pod(node: object, version: int = 1, **status: object) -> Entry[Object]:
    metadata = {"name": "web", "namespace": "a", "uid": "u", "resourceVersion": str(version)}
    obj = Object.from_dict({"metadata": metadata, "spec": {"nodeName": node}, "status": status})
    return Entry(obj.metadata, obj)


def test_index_by_finds_what_a_function_of_ones_own_finds() -> None:
    pods: Indexer[Object] = Indexer(indexers={"node": index_by("spec", "nodeName")})
    pods.add(_pod("n1"))
    assert [pod.name for pod in pods.by_index("node", "n1")] == ["web"]
    pods.update(_pod("n2", 2))
    assert pods.by_index("node", "n1") == []
    pods.update(_pod(None, 3))
    assert pods.list_index_values("node") == []
    pods.update(_pod(["n3", "n4"], 4))
    assert sorted(pods.list_index_values("node")) == ["n3", "n4"]
    with pytest.raises(IndexFunctionError, match="it returned int where text was expected"):
        pods.update(_pod([7], 5))


@given(
    st.lists(
        st.tuples(st.sampled_from(["n1", "n2", None]), st.sampled_from(["Running", "Failed"])),
        min_size=1,
    ),
    st.booleans(),
)
def test_index_by_is_never_stale(states: list[tuple[str | None, str]], packs: bool) -> None:
    pods: Indexer[Object] = Indexer(
        indexers={
            "node": index_by("spec", "nodeName"),
            "phase": index_by("status", "phase"),
            "version": index_by("metadata", "resourceVersion"),
        }
    )
    packer = Codec().packer()
    for version, (node, phase) in enumerate(states, 1):
        entry = _pod(node, version, phase=phase)
        pods.apply([Delta(DeltaType.UPDATED, entry.metadata.key, entry)])
        if packs:
            entry.object.pack(packer)
        assert pods.list_index_values("node") == ([node] if node else [])
        assert pods.list_index_values("phase") == [phase]
        assert pods.list_index_values("version") == [str(version)]


def test_index_by_does_not_read_again_what_did_not_change() -> None:
    """Seen by a field that cannot be indexed: each time it is read, that is an error."""
    reads: list[str] = []
    pods: Indexer[Object] = Indexer(
        indexers={"node": index_by("spec", "nodeName")},
        on_index_error=lambda error: reads.append(error.problem),
    )
    states = [_pod(7, 1), _pod(7, 2, phase="Failed"), _pod(7, 3), _pod(8, 4), _pod(8, 5)]
    for count, entry in zip((1, 1, 1, 2, 2), states, strict=True):
        pods.apply([Delta(DeltaType.UPDATED, entry.metadata.key, entry)])
        assert len(reads) == count


@pytest.mark.parametrize("path", [(), (0, "spec")])
def test_index_by_needs_a_path(path: tuple[str | int, ...]) -> None:
    with pytest.raises(UsageError, match="index_by needs a path"):
        index_by(*path)


def test_a_full_cache_is_hardly_more_to_the_garbage_collector_than_an_empty_one() -> None:
    """A full collection would visit all of it each time, and the event loop wait for that."""
    indexer: Indexer[Object] = Indexer(indexers={"node": index_by("spec", "nodeName")})

    def fill(numbers: Iterable[int]) -> int:
        for number in numbers:
            metadata = {
                "name": f"web-{number}",
                "namespace": "default",
                "labels": {"app": f"web-{number % 7}"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": f"u-{number}"}
                ],
            }
            spec = {"nodeName": f"node-{number % 50}"}
            content = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            obj = Object.from_dict(content)
            indexer.add(Entry(obj.metadata, obj))
        gc.collect()
        return len(gc.get_objects())

    few = fill(range(10))  # and all that is made once
    # Since 3.14 CPython tracks every dict, also those that hold text only: two for each object.
    most = 50 if sys.version_info < (3, 14) else 50 + 2 * 500
    assert fill(range(500)) - few < most
    assert len(indexer) == 500

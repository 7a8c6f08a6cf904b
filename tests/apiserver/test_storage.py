"""Storage: one revision counter, many versions, and no guesses about what was forgotten."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kinform.apiserver.storage.versioned_store import (
    Change,
    Conflict,
    Exists,
    Future,
    Missing,
    ObjectDraft,
    RevisionExpired,
    Storage,
)


def key(name: str) -> str:
    return f"ns/{name}"


def saying(text: str) -> ObjectDraft:
    return ObjectDraft(lambda version: f"{text}@{version}".encode())


def shown(change: Change) -> str:
    verb = "-" if change.is_delete else "+" if change.old is None else "~"
    return f"{verb}{change.new.raw.decode()}"


def test_every_write_of_any_resource_has_the_next_revision() -> None:
    storage = Storage()
    assert storage.revision == 1
    assert storage.create("pods", key("a"), saying("a")).raw == b"a@2"
    assert storage.create("nodes", key("a"), saying("n")).raw == b"n@3"
    assert storage.update("pods", key("a"), saying("b")).revision == 4
    assert storage.delete("pods", key("a"), saying("b")).raw == b"b@5"
    assert storage.revision == 5


def test_a_list_is_in_the_order_of_keys() -> None:
    storage = Storage()
    for name in "cab":
        storage.create("pods", key(name), saying(name))
    assert [stored.key.removeprefix("ns/") for stored in storage.table("pods").now()] == [
        "a",
        "b",
        "c",
    ]


def test_the_order_of_keys_is_that_of_etcd_and_a_prefix_is_a_part_of_it() -> None:
    """A dash sorts before the slash that ends a namespace."""
    storage = Storage()
    for name in ("a/x", "a-b/x", "a/b", "ab/x"):
        storage.create("pods", name, saying(name))
    table = storage.table("pods")
    assert [stored.key for stored in table.now()] == ["a-b/x", "a/b", "a/x", "ab/x"]
    assert [stored.key for stored in table.now("a/")] == ["a/b", "a/x"]
    storage.delete("pods", "a/b", saying("gone"))
    assert [stored.key for stored in table.at(5, "a/")] == ["a/b", "a/x"]


def test_writes_that_cannot_be_change_nothing() -> None:
    storage = Storage()
    storage.create("pods", key("a"), saying("a"))
    with pytest.raises(Exists):
        storage.create("pods", key("a"), saying("x"))
    with pytest.raises(Conflict):
        storage.update("pods", key("a"), saying("x"), expected=1)
    with pytest.raises(Conflict):
        storage.delete("pods", key("a"), saying("x"), expected=7)
    with pytest.raises(Missing):
        storage.update("pods", key("b"), saying("x"))
    with pytest.raises(Missing):
        storage.delete("pods", key("b"), saying("x"))

    def broken(version: str) -> bytes:
        raise LookupError

    with pytest.raises(LookupError):
        storage.update("pods", key("a"), ObjectDraft(broken))
    assert storage.revision == 2
    assert [shown(change) for change in storage.table("pods").since(1)] == ["+a@2"]


def test_a_listener_hears_each_change_once_and_in_order_until_it_stops() -> None:
    storage, heard = Storage(), list[str]()
    table = storage.table("pods")
    stop = table.listen(lambda: heard.append(shown(list(table.since(storage.revision - 1))[-1])))
    storage.create("pods", key("a"), saying("a"))
    storage.create("nodes", key("n"), saying("n"))
    storage.update("pods", key("a"), saying("b"))
    storage.delete("pods", key("a"), saying("b"))
    stop()
    stop()
    storage.create("pods", key("a"), saying("a"))
    assert heard == ["+a@2", "~b@4", "-b@5"]


def test_a_bounded_history_forgets_the_oldest_and_says_so() -> None:
    storage = Storage(history=2)
    for name in "abc":
        storage.create("pods", key(name), saying(name))
    table = storage.table("pods")
    assert table.forgotten == 2
    assert [shown(change) for change in table.since(2)] == ["+b@3", "+c@4"]
    with pytest.raises(RevisionExpired) as caught:
        list(table.since(1))
    assert (caught.value.revision, caught.value.oldest) == (1, 2)
    with pytest.raises(RevisionExpired):
        table.at(1)


def test_compaction_also_concerns_resources_that_come_later() -> None:
    storage = Storage()
    storage.create("pods", key("a"), saying("a"))
    storage.compact()
    with pytest.raises(RevisionExpired):
        list(storage.table("nodes").since(1))
    assert list(storage.table("nodes").since(2)) == []


def test_a_restore_is_of_all_resources_or_of_none() -> None:
    storage = Storage(history=1)
    storage.create("pods", key("a"), saying("a"))
    storage.create("nodes", key("n"), saying("n"))
    storage.create("nodes", key("m"), saying("m"))
    with pytest.raises(RevisionExpired):
        storage.restore(2)
    assert storage.revision == 4
    assert len(storage.table("nodes")) == 2
    with pytest.raises(Future):
        storage.restore(5)
    storage.restore(3)
    assert [stored.raw for stored in storage.table("nodes").now()] == [b"n@3"]
    assert storage.create("pods", key("b"), saying("b")).revision == 4


class AnyHistory(RuleBasedStateMachine):
    """The storage beside a list of pictures, one for each revision."""

    NAMES = st.sampled_from("abc")

    def __init__(self) -> None:
        super().__init__()
        self.storage = Storage()
        self.pictures: list[dict[str, bytes]] = [{}, {}]  # by revision
        self.compacted = 0

    @rule(name=NAMES)
    def put(self, name: str) -> None:
        held = self.storage.table("pods").get(key(name))
        write = self.storage.create if held is None else self.storage.update
        stored = write("pods", key(name), saying(name))
        self.pictures.append({**self.pictures[-1], name: stored.raw})

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if name in self.pictures[-1]:
            self.storage.delete("pods", key(name), saying(name))
            self.pictures.append({k: v for k, v in self.pictures[-1].items() if k != name})

    @rule()
    def elsewhere(self) -> None:
        self.storage.create("nodes", key(str(self.storage.revision)), saying("node"))
        self.pictures.append(self.pictures[-1])

    @precondition(lambda self: self.storage.revision > 2)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(1, self.storage.revision))
        self.storage.compact(revision)
        self.compacted = max(self.compacted, revision)

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(max(1, self.compacted), self.storage.revision))
        self.storage.restore(revision)
        del self.pictures[revision + 1 :]

    @invariant()
    def every_remembered_revision_shows_its_picture(self) -> None:
        table = self.storage.table("pods")
        assert self.storage.revision == len(self.pictures) - 1
        for revision in range(1, len(self.pictures)):
            try:
                shown = {
                    stored.key.removeprefix("ns/"): stored.raw for stored in table.at(revision)
                }
            except RevisionExpired:
                assert revision < self.compacted
            else:
                assert shown == self.pictures[revision]
                assert list(shown) == sorted(shown)

    @invariant()
    def changes_lead_from_any_remembered_picture_to_the_last(self) -> None:
        table = self.storage.table("pods")
        for revision in range(max(1, self.compacted), len(self.pictures)):
            picture = dict(self.pictures[revision])
            for change in table.since(revision):
                assert picture.get(change.key.removeprefix("ns/")) == (
                    change.old and change.old.raw
                )
                picture.pop(change.key.removeprefix("ns/"), None)
                if not change.is_delete:
                    picture[change.key.removeprefix("ns/")] = change.new.raw
            assert picture == self.pictures[-1]


TestAnyHistory = AnyHistory.TestCase

"""Store: objects by key, the version they show, transactions and relists.

What holds of `Store` holds of `Indexer`, which is one; indexes have a module of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.store.store import Indexer, Store
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectMeta, ObjectName
from kinform.sansio import versions
from kinform.sansio.queue.deltas import DeltaType, Transition
from kinform.sansio.queue.interface import KnownObjects
from tests.cache.support_entries import delta_of, entry_of, keyed

NOT_APPLICABLE: Final = {
    "CG-S12": "kinform has no store with a time to live",
    "CG-S13": "as CG-S12",
    "CG-S14": "as CG-S12",
    "CG-S15": "as CG-S12",
    "CG-S16": "kinform has no store that pushes its content: use a handler and lister.list()",
    "CG-S17": "kinform has no blocking heap: the work queue has its own order and tests",
    "CG-S18": "kinform has no MutationCache: wait_until waits for a local write",
    "CG-S19": "as CG-S18",
    "CG-S20": "as CG-S18",
    "CG-S21": "as CG-S18",
    "CG-S22": "as CG-S18",
}
"""Scenarios of client-go's stores that concern parts which kinform does not have."""

DEVIATIONS: Final = {
    "CG-S04": (
        "versions are compared: the store keeps the newest one, not the last written one; only a "
        "relist moves it back, which is reported"
    ),
    "CG-S05": "the store has no transform: objects are transformed before they reach it",
    "CG-S07": "no error type wraps another: a missing key is a UsageError, a cause is __cause__",
    "CG-S08": (
        "a transaction is atomic; with on_index_error it is applied, and each failure is reported"
    ),
}
"""Where the store does something else on purpose."""

ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED
REPLACED, SYNC = DeltaType.REPLACED, DeltaType.SYNC

NAMES = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)


@pytest.fixture(params=[Store, Indexer])
def store(request: pytest.FixtureRequest) -> Store[str]:
    return request.param()


def keys_of(transitions: list[Transition[str]]) -> list[str]:
    return [str(transition.key) for transition in transitions]


# --- one object at a time


def test_what_is_added_is_found_until_it_is_deleted(store: Store[str]) -> None:
    """CG-S05."""
    assert store.add(entry_of("ns/a", "one")) is None
    assert store.add(entry_of("node", "cluster-scoped")) is None
    assert (store.get("ns/a"), store.get("node")) == ("one", "cluster-scoped")
    assert sorted(store.list()) == ["cluster-scoped", "one"]
    assert sorted(store.list_keys()) == [ObjectName("", "node"), ObjectName("ns", "a")]
    assert len(store) == 2
    assert store.delete("ns/a") == entry_of("ns/a", "one")
    assert (store.get("ns/a"), "ns/a" in store, len(store)) == (None, False, 1)
    assert store.delete("ns/a") is None


@pytest.mark.parametrize("write", [Store[str].add, Store[str].update], ids=["add", "update"])
def test_writing_a_key_again_puts_the_new_object_in_place_of_the_old(
    store: Store[str], write: Callable[[Store[str], Entry[str]], Entry[str] | None]
) -> None:
    """CG-S05: as in client-go, add and update are one."""
    old, new = entry_of("ns/a", "old", 1), entry_of("ns/a", "new", 2)
    assert write(store, old) is None
    assert write(store, new) is old
    assert store.list() == ["new"]


def test_an_object_is_found_by_name_by_text_and_by_an_entry_of_it(store: Store[str]) -> None:
    store.add(entry_of("ns/a", "held", 1))
    name = ObjectName("ns", "a")
    found = [store.get(item) for item in (name, "ns/a", entry_of("ns/a", "newer", 2))]
    assert found == ["held", "held", "held"]
    assert (store.get_by_key(name), store.get_by_key("ns/a")) == ("held", "held")
    assert (store.get_by_key("ns/b"), store.get("a")) == (None, None)
    assert (name in store, "ns/a" in store, "ns/b" in store, 5 in store) == (
        True,
        True,
        False,
        False,
    )


@pytest.mark.parametrize("text", ["", "/", "ns/", "/a", "a/b/c"])
def test_text_that_is_no_key_is_refused(store: Store[str], text: str) -> None:
    for look in (store.get, store.get_by_key, store.__contains__, store.delete):
        with pytest.raises(ValueError, match=f"^{re.escape(repr(text))} is not a key like"):
            look(text)


@given(namespace=st.just("") | NAMES, name=NAMES)
def test_an_object_name_reads_its_own_text(namespace: str, name: str) -> None:
    """CG-S23."""
    key = ObjectName(namespace, name)
    assert ObjectName.parse(str(key)) == key


def test_an_entry_without_a_name_is_refused_whichever_way_it_comes(store: Store[str]) -> None:
    """CG-S07: where client-go wraps a KeyError; here whoever gave the entry is told directly."""
    store.add(entry_of("ns/a", "one", 1))
    nameless = Entry(ObjectMeta(namespace="ns", resource_version="9"), "bookmark")
    ways: list[Callable[[], object]] = [
        lambda: store.add(nameless),
        lambda: store.update(nameless),
    ]
    for write in ways:
        with pytest.raises(UsageError, match="has no key and cannot be held"):
            write()
    assert (store.list(), store.resource_version) == (["one"], "1")


def test_every_way_of_writing_keeps_the_entry_it_was_given(store: Store[str]) -> None:
    """CG-S05. client-go's store applies its transformer in Add, Update and Replace, not in a
    transaction (8.3, finding 8). Here transforms run before the store, and the store has none.
    """
    entries = [entry_of(f"ns/{name}", name) for name in "abcd"]
    store.replace(keyed(entries[0]), "1")
    store.add(entries[1])
    store.update(entries[2])
    store.apply([delta_of(ADDED, "ns/d", entries[3])])
    held = [store.entries.get(entry.metadata.key) for entry in entries]
    assert all(got is given for got, given in zip(held, entries, strict=True))


def test_a_queue_can_ask_the_entries_for_what_is_known(store: Store[str]) -> None:
    entry = entry_of("ns/a", "one")
    store.add(entry)
    known: KnownObjects[str] = store.entries
    assert list(known.keys()) == [entry.metadata.key]
    assert known.get(entry.metadata.key) is entry


def test_a_resync_of_a_store_is_nothing(store: Store[str]) -> None:
    """What a reflector writes into may be a queue, where it is something."""
    store.add(entry_of("ns/a", "one", 1))
    store.resync()
    assert (store.list(), store.resource_version) == (["one"], "1")


def test_lists_are_the_callers_own(store: Store[str]) -> None:
    store.add(entry_of("ns/a", "one"))
    for listed in (store.list(), store.list_keys(), store.entries.list()):
        listed.clear()
    assert store.list() == ["one"]


def test_objects_that_are_false_are_objects(store: Store[str]) -> None:
    store.add(entry_of("ns/a", ""))
    assert (store.get("ns/a"), store.list(), "ns/a" in store) == ("", [""], True)


# --- the version


def test_the_version_follows_writes_relists_and_bookmarks(store: Store[str]) -> None:
    """CG-S04."""
    seen = [store.resource_version]
    for write in (
        lambda: store.add(entry_of("ns/a", "", 5)),
        lambda: store.update(entry_of("ns/a", "", 7)),
        lambda: store.add(entry_of("ns/odd", "", "")),  # no version: moves nothing
        lambda: store.delete("ns/odd"),  # nor does a key
        lambda: store.delete(entry_of("ns/a", "", 9)),  # the deletion has a version of its own
        lambda: store.bookmark("20"),
        lambda: store.apply(
            [
                delta_of(ADDED, "ns/a", entry_of("ns/a", "", 22)),
                delta_of(UPDATED, "ns/b", entry_of("ns/b", "", 21)),
            ]
        ),
        lambda: store.replace(keyed(entry_of("ns/a", "", 23)), "30"),
    ):
        write()
        seen.append(store.resource_version)
    assert seen == ["", "5", "7", "7", "7", "9", "20", "22", "30"]


def test_writes_and_bookmarks_never_take_the_version_back(store: Store[str]) -> None:
    store.bookmark("100")
    store.add(entry_of("ns/a", "", 99))
    store.delete(entry_of("ns/a", "", 20))
    store.apply([delta_of(ADDED, "ns/a", entry_of("ns/a", "", 3))])
    store.bookmark("11")
    store.bookmark("")
    assert store.resource_version == "100"


def test_a_relist_to_an_older_version_is_obeyed_and_told(store: Store[str]) -> None:
    """CG-S04. client-go's moves back without a word (8.3, finding 11)."""
    assert not store.replace(keyed(entry_of("ns/a", "new", 9)), "10").regressed
    result = store.replace(keyed(entry_of("ns/a", "old", 8)), "9")
    assert (result.regressed, result.previous_version, result.resource_version) == (True, "10", "9")
    assert (store.resource_version, store.list()) == ("9", ["old"])


def test_back_in_time_an_equal_version_is_no_proof_of_equal_content(store: Store[str]) -> None:
    """On an etcd restored from a backup, versions are given out a second time."""
    lost, written_again = entry_of("ns/a", "lost", 10), entry_of("ns/a", "written again", 10)
    store.replace(keyed(lost), "12")
    result = store.replace(keyed(written_again), "11")
    assert result.changed == [Transition(ObjectName("ns", "a"), lost, written_again)]
    assert store.get("ns/a") == "written again"


@pytest.mark.parametrize(
    ("version", "other", "older"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("7", "7", False),
        ("007", "8", True),
        ("08", "7", False),
        ("9" * 5000, "1" + "0" * 5000, True),  # int() would refuse to read these
        ("", "5", False),
        ("5", "", False),
        ("a1", "b1", False),
        ("-5", "5", False),
        ("٤", "5", False),  # a digit, not an ASCII one
        ("1_0", "11", False),
    ],
)
def test_versions_are_compared_as_integers_of_any_size_or_not_at_all(
    version: str, other: str, older: bool
) -> None:
    assert versions.is_older(version, other) is older
    assert versions.newest(other, version) == (other if older or not version else version)


@given(current=st.integers(min_value=0), seen=st.integers(min_value=0))
def test_the_newest_of_two_integers_is_the_larger(current: int, seen: int) -> None:
    assert versions.newest(str(current), str(seen)) == str(max(current, seen))


def test_versions_that_are_no_integers_follow_the_last_write(store: Store[str]) -> None:
    store.bookmark("b")
    store.bookmark("a")
    assert store.resource_version == "a"


# --- transactions


def test_a_transaction_tells_old_and_new_of_every_change_in_order(store: Store[str]) -> None:
    """CG-S08, all ok: what client-go counts as successful indices is one transition each."""
    a1, a2, b1 = entry_of("ns/a", "1", 1), entry_of("ns/a", "2", 3), entry_of("ns/b", "1", 2)
    a, b, c = (ObjectName("ns", name) for name in "abc")
    last = entry_of("ns/b", "last", 4)
    store.add(a1)
    assert store.apply(
        [
            delta_of(ADDED, "ns/b", b1),
            delta_of(UPDATED, "ns/a", a2),
            delta_of(DELETED, "ns/b", last),
            delta_of(DELETED, "ns/c", None),
        ]
    ) == [
        Transition(b, None, b1),
        Transition(a, a1, a2),
        Transition(b, b1, None, final=last),
        Transition(c, None, None),
    ]
    assert (store.list(), store.resource_version) == (["2"], "4")
    assert store.apply([]) == []


def test_a_resync_in_a_transaction_writes_nothing(store: Store[str]) -> None:
    held, again = entry_of("ns/a", "held", 5), entry_of("ns/a", "again", 5)
    store.add(held)
    (transition,) = store.apply([delta_of(SYNC, "ns/a", again)])
    assert transition.old is transition.new is held
    assert (store.get("ns/a"), store.resource_version) == ("held", "5")


def test_a_relisted_object_of_the_same_version_is_no_news(store: Store[str]) -> None:
    """The queue that compacts per key brings a relist as one REPLACED delta each."""
    held, newer = entry_of("ns/a", "held", 5), entry_of("ns/a", "newer", 6)
    store.add(held)
    same, changed, fresh = store.apply(
        [
            delta_of(REPLACED, "ns/a", entry_of("ns/a", "held", 5)),
            delta_of(REPLACED, "ns/a", newer),
            delta_of(REPLACED, "ns/b", entry_of("ns/b", "b", 2)),
        ]
    )
    assert same.old is same.new is held
    assert (changed.old, changed.new) == (held, newer)
    assert (fresh.old, fresh.new) == (None, entry_of("ns/b", "b", 2))


def test_a_tombstone_deletes_without_moving_a_version_that_cannot_be_compared(
    store: Store[str],
) -> None:
    """CG-S04: what a tombstone shows is older than the store."""
    held = entry_of("ns/a", "held", "x1")
    store.add(held)
    store.bookmark("x2")
    tombstone = delta_of(DELETED, "ns/a", held, final_state_unknown=True)
    deleted = Transition(ObjectName("ns", "a"), held, None, final_state_unknown=True)
    assert store.apply([tombstone]) == [deleted]
    assert (len(store), store.resource_version) == (0, "x2")


def test_a_delta_without_an_entry_leaves_nothing_readable(store: Store[str]) -> None:
    """Of an object that cannot be read, no older version stays readable as current."""
    store.add(entry_of("ns/a", "held", 1))
    store.apply([delta_of(UPDATED, "ns/a", None)])
    assert store.get("ns/a") is None


def test_deltas_that_fail_half_way_change_nothing(store: Store[str]) -> None:
    def deltas():
        yield delta_of(ADDED, "ns/a", entry_of("ns/a", "one", 1))
        raise OSError("the queue broke")

    with pytest.raises(OSError, match="the queue broke"):
        store.apply(deltas())
    assert (store.list(), store.resource_version) == ([], "")


# --- relists


def test_a_relist_tells_what_it_added_changed_deleted_and_left(store: Store[str]) -> None:
    """CG-S05: replace."""
    same, old, gone = (entry_of(f"ns/{name}", name, 1) for name in ("same", "old", "gone"))
    store.replace(keyed(same, old, gone), "5")
    repeated = entry_of("ns/same", "same", 1)
    changed, fresh = entry_of("ns/old", "changed", 6), entry_of("ns/fresh", "fresh", 7)
    result = store.replace(keyed(fresh, repeated, changed), "8")
    assert result.added == [Transition(fresh.metadata.key, None, fresh)]
    assert result.changed == [Transition(changed.metadata.key, old, changed)]
    assert result.deleted == [Transition(gone.metadata.key, gone, None, final_state_unknown=True)]
    assert sorted(store.list()) == ["changed", "fresh", "same"]
    (unchanged,) = result.unchanged
    assert unchanged is same is store.entries.get(same.metadata.key)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (entry_of("ns/a", "", 5, uid="u1"), entry_of("ns/a", "", 5, uid="u2")),
        (entry_of("ns/a", "", 5), entry_of("ns/a", "", 6)),
        (entry_of("ns/a", "", ""), entry_of("ns/a", "", "")),
        (entry_of("ns/a", "", 5, uid=""), entry_of("ns/a", "", 5, uid="")),
    ],
    ids=["another uid", "another version", "no versions", "no uids"],
)
def test_unless_uid_and_version_say_so_an_entry_is_not_the_same(
    store: Store[str], old: Entry[str], new: Entry[str]
) -> None:
    store.add(old)
    result = store.replace(keyed(new), "9")
    assert keys_of(result.changed) == ["ns/a"]
    assert store.entries.get(new.metadata.key) is new


def test_an_entry_is_the_same_as_itself_even_without_a_version(store: Store[str]) -> None:
    entry = entry_of("ns/a", "one")
    store.add(entry)
    assert store.replace(keyed(entry), "").unchanged == [entry]


def test_a_relist_keeps_no_hold_of_what_it_was_given(store: Store[str]) -> None:
    given = keyed(entry_of("ns/a", "one", 1))
    store.replace(given, "1")
    given.clear()
    assert store.list() == ["one"]


def test_a_relist_without_a_version_leaves_none(store: Store[str]) -> None:
    """Some aggregated servers give lists no version: claiming the old one would be a lie."""
    store.bookmark("5")
    assert not store.replace({}, "").regressed
    assert store.resource_version == ""

"""From batches to the store and to what is told: pure, one batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from kinform.cache.controller import Applied, apply
from kinform.cache.store.indexes import IndexFunctionError, function_index
from kinform.cache.store.thread_safe_store import ThreadSafeStore
from kinform.meta import Entry, ObjectName
from kinform.sansio.queue.deltas import Delta, DeltaType, Progress, ReplacedAll, SyncAll, Transition
from kinform.sansio.queue.interface import Batch
from tests.cache.support_entries import delta_of, entry_of, keyed

DEVIATIONS: Final = {
    "CG-C08": "a batch is atomic: if one object's index function fails, nothing of the batch is "
    "delivered (a SharedInformer still caches such an object)",
}

ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED
REPLACED, SYNC = DeltaType.REPLACED, DeltaType.SYNC


def held(*entries: Entry[str], version: str = "4") -> ThreadSafeStore[str]:
    store: ThreadSafeStore[str] = ThreadSafeStore()
    store.replace(keyed(*entries), version)
    return store


def deltas(*content: Delta[str], initial: bool = False) -> Batch[str]:
    return Batch(content, initial)


def listed(*entries: Entry[str], version: str = "9", initial: bool = False) -> Batch[str]:
    return Batch(ReplacedAll(keyed(*entries), version), initial)


def told(applied: Applied[str]) -> list[str]:
    return [_said(one) for one in applied.notifications]


def _said(one: Transition[str]) -> str:
    """``+a`` and ``+a initial``, ``a:old>new``, ``-a:last`` and ``-a:last unseen``."""
    assert not one.initial or (one.old is None and one.new is not None)
    if one.new is None:
        assert one.old is not None
        last = one.final or one.old
        return f"-{one.key}:{last.object}{' unseen' if one.final_state_unknown else ''}"
    if one.old is None:
        return f"+{one.key}:{one.new.object}{' initial' if one.initial else ''}"
    return f"{one.key}:{one.old.object}>{one.new.object}"


def objects(store: ThreadSafeStore[str]) -> dict[str, str]:
    return {str(entry.metadata.key): entry.object for entry in store.list()}


A1, A2, A3 = (entry_of("a", f"a{i}", i) for i in (1, 2, 3))
B1, B2 = (entry_of("b", f"b{i}", i) for i in (1, 2))
OTHER_A = entry_of("a", "other", 5, uid="other")


# --- deltas


def test_changes_are_told_as_what_they_did_to_the_store() -> None:
    store = held(A1, B1)
    applied = apply(
        deltas(
            delta_of(UPDATED, "a", A2),
            delta_of(DELETED, "b", entry_of("b", "last", 7)),
            delta_of(ADDED, "c", entry_of("c", "c1", 8)),
        ),
        store,
    )
    assert told(applied) == ["a:a1>a2", "-b:last", "+c:c1"]
    assert objects(store) == {"a": "a2", "c": "c1"}
    assert store.resource_version == "8"


@pytest.mark.parametrize("kind", [ADDED, UPDATED, REPLACED])
def test_whether_an_object_is_new_is_for_the_store_to_say(kind: DeltaType) -> None:
    assert told(apply(deltas(delta_of(kind, "a", A2)), held())) == ["+a:a2"]
    assert told(apply(deltas(delta_of(kind, "a", A2)), held(A1))) == ["a:a1>a2"]


def test_only_adds_of_the_first_list_are_initial() -> None:
    batch = deltas(
        delta_of(REPLACED, "a", A2), delta_of(REPLACED, "c", entry_of("c", "c")), initial=True
    )
    assert told(apply(batch, held(A1))) == ["a:a1>a2", "+c:c initial"]


@pytest.mark.parametrize("kind", [ADDED, UPDATED])
@pytest.mark.parametrize("seen", [A1, A2], ids=["older", "same"])
def test_what_a_server_repeats_is_counted_and_told_to_nobody(
    kind: DeltaType, seen: Entry[str]
) -> None:
    store = held(A2)
    applied = apply(deltas(delta_of(kind, "a", seen)), store)
    assert (told(applied), applied.replayed) == ([], 1)
    assert objects(store) == {"a": "a2"}


def test_a_repeated_delete_of_what_had_the_name_before_is_no_news() -> None:
    before, now = entry_of("a", "before", 3, uid="before"), entry_of("a", "now", 4, uid="now")
    store = held(now)
    applied = apply(deltas(delta_of(DELETED, "a", before)), store)
    assert (told(applied), applied.replayed) == ([], 1)
    assert objects(store) == {"a": "now"}
    applied = apply(deltas(delta_of(DELETED, "a", before, final_state_unknown=True)), store)
    assert told(applied) == ["-a:now unseen"]  # what a list does not show is not there


def test_a_list_told_object_by_object_repeats_nothing() -> None:
    applied = apply(deltas(delta_of(REPLACED, "a", A1), delta_of(REPLACED, "b", B2)), held(A1, B1))
    assert (told(applied), applied.replayed) == (["b:b1>b2"], 0)


def test_several_changes_of_one_object_are_told_one_by_one() -> None:
    batch = deltas(
        delta_of(UPDATED, "a", A2), delta_of(UPDATED, "a", A3), delta_of(DELETED, "a", A3)
    )
    assert told(apply(batch, held(A1))) == ["a:a1>a2", "a:a2>a3", "-a:a3"]


# --- deletes


TOMBSTONES: Sequence[tuple[str, Delta[str], list[str]]] = [
    ("seen", delta_of(DELETED, "a", A2), ["-a:a2"]),
    ("tombstone", delta_of(DELETED, "a", A1, final_state_unknown=True), ["-a:a1 unseen"]),
    ("without an object", delta_of(DELETED, "a", None, final_state_unknown=True), ["-a:a1 unseen"]),
    ("of another object", delta_of(DELETED, "a", OTHER_A), ["-a:a1 unseen"]),
    ("unknown", delta_of(DELETED, "b", B1), []),
    ("unknown tombstone", delta_of(DELETED, "b", None, final_state_unknown=True), []),
]


@pytest.mark.parametrize(
    ("delta", "expected"), [case[1:] for case in TOMBSTONES], ids=[case[0] for case in TOMBSTONES]
)
def test_a_delete_has_its_key_and_the_last_state_known(
    delta: Delta[str], expected: list[str]
) -> None:
    """CG-C06, CG-C07.

    CG-C07 differs: a delete always has an object; a handler never gets one it has not seen added.
    """
    applied = apply(deltas(delta), held(A1))
    assert told(applied) == expected
    assert [one.key for one in applied.notifications] == [ObjectName("", "a")] * len(expected)


# --- two objects of one name


def test_an_object_of_another_uid_is_a_delete_and_an_add() -> None:
    expected = ["-a:a1 unseen", "+a:other"]
    assert told(apply(deltas(delta_of(UPDATED, "a", OTHER_A)), held(A1))) == expected
    assert told(apply(deltas(delta_of(REPLACED, "a", OTHER_A)), held(A1))) == expected
    assert told(apply(listed(OTHER_A), held(A1))) == expected


@pytest.mark.parametrize(
    ("was", "now"), [("", "u"), ("u", ""), ("", "")], ids=["gained", "lost", "none"]
)
def test_where_there_is_no_uid_it_is_one_object(was: str, now: str) -> None:
    old, new = entry_of("a", "old", 1, uid=was), entry_of("a", "new", 2, uid=now)
    assert told(apply(deltas(delta_of(UPDATED, "a", new)), held(old))) == ["a:old>new"]
    assert told(apply(listed(new), held(old))) == ["a:old>new"]


# --- lists


LISTS = [
    ("create only", [], [A1, B1], ["+a:a1", "+b:b1"]),
    ("delete all", [A1, B1], [], ["-a:a1 unseen", "-b:b1 unseen"]),
    (
        "mixed",
        [A1, B1],
        [entry_of("c", "c3", 3), A2],
        ["-b:b1 unseen", "a:a1>a2", "+c:c3"],
    ),
    ("the same", [A1, B1], [A1, B1], []),
]


@pytest.mark.parametrize(
    ("before", "after", "expected"), [case[1:] for case in LISTS], ids=[case[0] for case in LISTS]
)
def test_a_list_is_told_as_deletes_then_changes_then_adds(
    before: list[Entry[str]], after: list[Entry[str]], expected: list[str]
) -> None:
    """CG-C09."""
    store = held(*before)
    applied = apply(listed(*after, version="9"), store)
    assert told(applied) == expected
    assert store.resource_version == "9"
    assert objects(store) == {str(entry.metadata.key): entry.object for entry in after}
    assert applied.replacement is not None


def test_the_first_list_is_initial() -> None:
    assert told(apply(listed(A1, initial=True), held())) == ["+a:a1 initial"]


def test_a_list_that_goes_back_in_time_is_told_even_under_known_versions() -> None:
    """On a restored etcd the same version of the same object may be another state."""
    store = held(A2, version="20")
    assert told(apply(listed(entry_of("a", "restored", 2), version="10"), store)) == [
        "a:a2>restored"
    ]
    assert store.resource_version == "10"


def test_after_a_restore_that_was_noticed_no_version_proves_anything() -> None:
    """The server may have passed our version again before the list was made."""
    store = held(A2, version="20")
    entries = keyed(entry_of("a", "restored", 2))
    batch = Batch(ReplacedAll(entries, "30", afresh=True), in_initial_list=False)
    assert told(apply(batch, store)) == ["a:a2>restored"]
    assert store.resource_version == "30"


# --- neither


def test_a_bookmark_moves_the_version_alone() -> None:
    store = held(A1)
    assert told(apply(Batch(Progress("7"), False), store)) == []
    assert store.resource_version == "7"
    apply(Batch(Progress("5"), False), store)
    assert store.resource_version == "7"
    apply(Batch(Progress("5", of_list=True), False), store)
    assert store.resource_version == "5"


def test_a_resync_tells_of_what_is_there() -> None:
    applied = apply(Batch(SyncAll(), False), held(A1, B1))
    assert (told(applied), list(applied.resynced)) == ([], [A1, B1])
    batch = deltas(delta_of(SYNC, "a", A1), delta_of(UPDATED, "b", B2))
    applied = apply(batch, held(A1, B1))
    assert (told(applied), list(applied.resynced)) == (["b:b1>b2"], [A1])
    assert applied.replayed == 0


# --- what cannot be applied


def picky(value: str) -> str:
    if value == "bad":
        raise ValueError("no")
    return value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(["x", "y"], ["+0:x", "+1:y"], id="CG-C08 all ok"),
        pytest.param(["bad"], [], id="CG-C08 all failed"),
        pytest.param(["x", "bad"], [], id="CG-C08 partial"),
    ],
)
def test_of_a_batch_only_what_was_applied_is_told(values: list[str], expected: list[str]) -> None:
    store: ThreadSafeStore[str] = ThreadSafeStore(indexes=[function_index("picky", picky)])
    batch = deltas(
        *(delta_of(ADDED, str(i), entry_of(str(i), value)) for i, value in enumerate(values))
    )
    if expected:
        assert told(apply(batch, store)) == expected
        return
    with pytest.raises(IndexFunctionError, match="index 'picky' failed on"):
        apply(batch, store)
    assert objects(store) == {}

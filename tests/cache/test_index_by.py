"""`index_by`: what a function of one's own would find, whatever is written in whatever order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.indexes import index_by
from kinform.cache.store.store import Indexer
from kinform.errors import UsageError
from kinform.meta import Entry, ObjectMeta
from kinform.objects.object import Object
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.sansio.queue.deltas import Delta, DeltaType
from kinform.testing import FakeListWatch, in_virtual_time

_types = st.sampled_from([DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED])
_writes = st.lists(
    st.tuples(_types, st.sampled_from("ab"), st.sampled_from(["n1", "n2", None]), st.booleans()),
    max_size=8,
)


def _pod(name: str, node: str | None, version: int, *, ready: bool = True) -> Entry[Object]:
    metadata = {"name": name, "namespace": "x", "uid": name, "resourceVersion": str(version)}
    content = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"ready": ready}}
    obj = Object.from_dict(content)
    return Entry(obj.metadata, obj)


@given(st.lists(_writes, max_size=6))
def test_batches_in_which_a_key_comes_twice(batches: list[list[Any]]) -> None:
    pods: Indexer[Object] = Indexer(
        indexers={
            "field": index_by("spec", "nodeName"),
            "function": lambda pod: pod.at("spec", "nodeName"),
        }
    )
    version = 0
    for batch in batches:
        deltas: list[Delta[Object]] = []
        for kind, name, node, ready in batch:
            version += 1
            entry = _pod(name, node, version, ready=ready)
            deltas.append(Delta(kind, entry.metadata.key, entry))
        pods.apply(deltas)
        for node in ("n1", "n2"):
            assert pods.index_keys("field", node) == pods.index_keys("function", node)
        assert sorted(pods.list_index_values("field")) == sorted(pods.list_index_values("function"))


@in_virtual_time
async def test_with_a_queue_that_hands_out_several_changes_of_a_key() -> None:
    source = FakeListWatch()
    informer = SharedInformer(
        source, indexers={"node": index_by("spec", "nodeName")}, queue=DeltaFIFO
    )
    async with informer:
        await informer.wait_synced(5)
        for ready in (True, False):
            pod = {"metadata": {"name": "a", "namespace": "x"}, "spec": {"nodeName": "n1"}}
            change = source.add if ready else source.modify
            change({**pod, "status": {"ready": ready}})
        await informer.wait_for(lambda pods: pods.get("x/a") and pods.get("x/a"), 5)
        await informer.wait_until(source.resource_version)
        assert [pod.name for pod in informer.indexer.by_index("node", "n1")] == ["a"]


def test_a_cache_of_models_says_what_to_do_instead() -> None:
    with pytest.raises(UsageError, match="for dict write a function"):
        SharedInformer(FakeListWatch(), indexers={"node": index_by("spec")}, model=dict)


def test_what_is_no_object_is_an_index_error_and_not_a_lost_batch() -> None:
    failed: list[str] = []
    things: Indexer[Any] = Indexer(
        indexers={"node": index_by("spec")}, on_index_error=lambda error: failed.append(error.index)
    )
    for version in ("1", "2"):
        metadata = ObjectMeta(name="a", uid="u", resource_version=version)
        entry: Entry[Any] = Entry(metadata, {"v": version})
        things.apply([Delta(DeltaType.UPDATED, metadata.key, entry)])
    assert things.get("a") == {"v": "2"}
    assert failed == ["node", "node"]

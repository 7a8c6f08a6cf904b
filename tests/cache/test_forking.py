"""A cache in a forked child: nothing fills it there, so it cannot be read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

import kinform
from kinform.cache import IndexerInformer, SharedInformer
from kinform.errors import UsageError
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def read_by_child(read: Callable[[], object]) -> str:
    """Return what reading gives in a forked child: the text of the error, or ``""``."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "another error"
        try:
            read()
            text = ""
        except UsageError as exc:
            text = str(exc)
        finally:
            os.write(writer, text.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def filled_source() -> FakeListWatch[kinform.Object]:
    source = FakeListWatch[kinform.Object]()
    source.add({"metadata": {"name": "a"}})
    return source


@in_virtual_time
async def test_a_forked_child_cannot_read_a_cache_that_only_the_parent_fills() -> None:
    async with SharedInformer(filled_source()) as informer:
        await informer.wait_synced(10)
        reads: list[Callable[[], object]] = [
            lambda: informer.lister.get("default/a"),
            informer.lister.list,
            lambda: informer.lister.namespace("default").list("a=b"),
            lambda: informer.indexer.by_index("namespace", "default"),
            informer.indexer.list_keys,
            lambda: len(informer.indexer),
            lambda: "default/a" in informer.indexer,
        ]
        for read in reads:
            text = read_by_child(read)
            assert f"belongs to process {os.getpid()}" in text
            assert "after a fork" in text
            assert read() is not None, "the parent goes on"


@in_virtual_time
async def test_a_cache_that_was_stopped_before_the_fork_can_be_read_by_the_child() -> None:
    async with SharedInformer(filled_source()) as informer:
        await informer.wait_synced(10)
    assert read_by_child(lambda: informer.lister.get("default/a")) == ""


@in_virtual_time
async def test_the_small_informer_refuses_a_child_as_well() -> None:
    informer = IndexerInformer(filled_source())
    async with background(informer.run()):
        while not informer.has_synced:  # noqa: ASYNC110 - virtual
            await asyncio.sleep(1)
        assert "after a fork" in read_by_child(informer.indexer.list)

"""Parity: every name of the asyncio API is in the blocking one, or is listed with a reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import kinform
from kinform import cache, sync
from kinform.cache.informer_group import InformerGroup
from kinform.cache.processor.event_stream import EventStream
from kinform.clientset.groups import Groups as AsyncGroups
from kinform.sync.groups import Groups

PAIRS = [
    (kinform.Client, sync.Client),
    (AsyncGroups, Groups),
    (kinform.ResourceClient, sync.ResourceClient),
    (kinform.SharedInformer, sync.SharedInformer),
    (kinform.SharedInformerFactory, sync.SharedInformerFactory),
    (kinform.Registration, sync.Registration),
    (InformerGroup, sync.InformerGroup),
    (kinform.Watch, sync.Watch),
    (kinform.LogStream, sync.LogStream),
    (EventStream, sync.EventStream),
]

LEFT_OUT = {
    "aclose": "close()",
    "batches": "one by one; they are fetched in batches",
    "iter_bytes": "lines; the bytes are run()'s",
    "list_watch": "for informers of one's own: asynchronous.list_watch()",
    "rest": "a builder of coroutines: run(client.asynchronous.rest()...)",
    "take_waiting": "one by one; they are fetched in batches",
}


def names(of: type[object]) -> Iterator[str]:
    return (name for name in vars(of) if not name.startswith("_"))


@pytest.mark.parametrize("theirs, ours", PAIRS, ids=lambda one: one.__name__)
def test_every_public_name_has_its_twin(theirs: type[object], ours: type[object]) -> None:
    missing = [name for name in names(theirs) if not hasattr(ours, name)]
    assert set(missing) <= LEFT_OUT.keys()


@pytest.mark.parametrize("theirs, ours", PAIRS, ids=lambda one: one.__name__)
def test_twins_take_the_same_arguments(theirs: type[object], ours: type[object]) -> None:
    for name in set(names(theirs)) & set(names(ours)):
        one, other = getattr(theirs, name), getattr(ours, name)
        assert callable(one) == callable(other)
        if callable(one) and name != "with_bookmarks":
            parameters = inspect.signature(other).parameters
            assert parameters == inspect.signature(one).parameters, name
            assert not inspect.iscoroutinefunction(other)


def test_connect_takes_the_same_arguments() -> None:
    one, other = inspect.signature(kinform.connect), inspect.signature(sync.connect)
    assert one.parameters == other.parameters


@pytest.mark.parametrize("name", sync.__all__)
def test_every_export_can_be_had_and_is_documented(name: str) -> None:
    value = getattr(sync, name)
    assert inspect.getdoc(value)
    assert value.__module__ == sync._HOMES[name]
    assert name in dir(sync)


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'kinform\.sync' has no attribute 'Clinet'"):
        getattr(sync, "Clinet")  # noqa: B009 - a checker would see the mistake


def test_what_is_read_is_of_the_same_classes() -> None:
    assert not {"Object", "ListResult", "Lister", "Added"} & set(sync.__all__)
    assert cache.Lister is kinform.Lister

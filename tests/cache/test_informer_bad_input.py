"""What users may do wrong with an informer, and servers: a clear error, or no harm."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Callable
from typing import Final

import pytest

from kinform.cache.listwatch import ListWatch, SourceOptions
from kinform.cache.processor.events import Added
from kinform.cache.processor.handlers import EventHandler, handler
from kinform.cache.processor.processor import Registration
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.indexes import NAMESPACE_INDEX, OWNER_INDEX, IndexFunctionError
from kinform.cache.store.store import Indexer
from kinform.errors import InvalidError, SourceError, UsageError, api_error
from kinform.meta import Entry, ListMeta, ObjectMeta, Status
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult, Received
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_entries import entry_of
from tests.cache.support_informer import (
    REFUSED,
    Recorder,
    names,
    quiet,
    recorded,
    source_of,
    thing,
    value_of,
)

DEVIATIONS: Final = {
    "CG-I34": "options are keywords, so there is at most one set of them; a handler together "
    "with single callbacks is refused",
}


# --- arguments


@pytest.mark.parametrize("period", [0, 0.5, -1, math.nan, math.inf])
def test_a_resync_period_is_a_second_at_least(period: float) -> None:
    with pytest.raises(UsageError, match="resync_period"):
        SharedInformer(source_of(), resync_period=period)
    informer = SharedInformer(source_of(), resync_period=10)
    with pytest.raises(UsageError, match="resync_period"):
        informer.add_event_handler(on_add=print, resync_period=period)


def test_a_resync_period_is_a_number_of_seconds() -> None:
    with pytest.raises(UsageError, match="resync_period is '10m'; expected seconds"):
        SharedInformer(source_of(), resync_period="10m")  # type: ignore[arg-type]


class LikeAResourceClient:
    """It lists and watches, but not as an informer asks for it."""

    async def list(self, *, label_selector: str = "") -> list[Object]:
        return []

    def watch(self, *, label_selector: str = "") -> object:
        return self

    def list_watch(self) -> FakeListWatch[Object]:
        return source_of()


@pytest.mark.parametrize("source", ["v1/pods", LikeAResourceClient(), None])
def test_what_is_no_source_is_refused(source: object) -> None:
    expected = rf"{type(source).__name__} is not a ListerWatcher; client\.informer\('v1/pods'\)"
    with pytest.raises(UsageError, match=expected):
        SharedInformer(source)  # type: ignore[arg-type]


async def async_index(obj: Object) -> str:
    return obj.name


@pytest.mark.parametrize(
    "indexers, complaint",
    [
        ({"name": "metadata.name"}, "the index 'name' is of type str; expected a function"),
        ({"name": async_index}, "the index 'name' is an async function; expected a plain one"),
        ([value_of], "indexers is of type list; expected functions by name"),
    ],
)
def test_what_is_no_index_function_is_refused(indexers: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        SharedInformer(source_of(), indexers=indexers)  # type: ignore[arg-type]
    informer = SharedInformer(source_of())
    with pytest.raises(UsageError, match=complaint):
        informer.add_indexers(indexers)  # type: ignore[arg-type]
    assert informer.indexer.index_names() == [NAMESPACE_INDEX, OWNER_INDEX]


@pytest.mark.parametrize(
    "returned, kind", [(5, "int"), ([5, "a"], "int"), ([["a"]], "list"), (b"a", "int")]
)
def test_an_index_function_that_returns_no_text_is_told_so(returned: object, kind: str) -> None:
    indexer: Indexer[str] = Indexer(indexers={"odd": lambda _: returned})  # type: ignore[dict-item, return-value]
    with pytest.raises(IndexFunctionError, match=f"it returned {kind} where text was expected"):
        indexer.add(entry_of("default/a", "a"))
    assert len(indexer) == 0


@pytest.mark.parametrize("whole", [print, LikeAResourceClient()])
def test_what_is_no_handler_is_refused(whole: object) -> None:
    informer = SharedInformer(source_of())
    expected = r"give on_add=, on_update=, on_delete=, or an EventHandler made by handler\(\)"
    with pytest.raises(UsageError, match=expected):
        informer.add_event_handler(whole)  # type: ignore[arg-type]


@in_virtual_time
async def test_a_version_to_wait_for_is_a_text() -> None:
    async with SharedInformer(source_of("a")) as informer:
        with pytest.raises(UsageError, match=r"type int; expected the text obj\.resource_version"):
            await informer.wait_until(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [NAMESPACE_INDEX, OWNER_INDEX])
def test_an_index_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"there is an index named '{name}' already"):
        SharedInformer(source_of(), indexers={name: value_of})


@in_virtual_time
async def test_an_index_name_is_given_once() -> None:
    async with SharedInformer(source_of("a"), indexers={"value": value_of}) as informer:
        await informer.wait_synced(5)
        with pytest.raises(UsageError, match="there is an index named 'value' already"):
            informer.add_indexers({"other": value_of, "value": value_of})
        assert informer.indexer.index_names() == [NAMESPACE_INDEX, OWNER_INDEX, "value"]


def test_a_handler_is_given_whole_or_in_parts_not_both() -> None:
    """CG-I34."""
    informer = SharedInformer(source_of())
    whole: EventHandler[Object] = handler(on_add=print)
    informer.add_event_handler(whole)
    informer.add_event_handler(on_add=print, name="named", resync_period=5)
    refused: list[Callable[[], object]] = [
        lambda: informer.add_event_handler(whole, on_delete=print),
        lambda: informer.add_event_handler(whole, filter=bool),
        lambda: informer.add_event_handler(whole, name="named"),
        lambda: informer.add_event_handler(whole, resync_period=5),
    ]
    for attempt in refused:
        with pytest.raises(UsageError, match="give an EventHandler, or its fields"):
            attempt()
    with pytest.raises(UsageError, match="a handler without callbacks receives nothing"):
        informer.add_event_handler()
    assert [one.name for one in informer.statistics().handlers] == ["print", "named"]


# --- handlers


@in_virtual_time
async def test_handlers_that_never_return_or_always_raise_harm_nobody_else() -> None:
    source = source_of("a")

    async def never(_: object) -> None:
        await asyncio.get_running_loop().create_future()

    def always(_: object) -> None:
        raise ValueError("always")

    informer = SharedInformer(source)
    informer.add_event_handler(on_add=never, on_update=never, on_delete=never)
    informer.add_event_handler(on_add=always, on_delete=always)
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        for i in range(1200):
            source.modify(thing("a", str(i)))
        source.delete("a")
        await quiet()
        waiting, raising, _ = informer.statistics().handlers
        await informer.stop(0)
    assert recorder.told[-2:] == ["a@1201>1202", "-a@1203"]
    assert waiting.pending <= 1  # F-I13: merged, object by object
    assert raising.errors == 2


@in_virtual_time
async def test_a_handler_may_do_anything_to_its_informer() -> None:
    """Add others, remove itself, index, read, wait for the cache."""
    source = source_of("a", "b")
    informer = SharedInformer(source)
    recorder = Recorder()
    registrations: list[Registration[Object]] = []

    async def busy(event: Added[Object]) -> None:
        registrations[0].remove()
        informer.add_event_handler(recorder.handler)
        informer.add_indexers({"late": value_of})
        source.add(thing("c"))
        await informer.wait_for(lambda cache: cache.get("default/c"), 5)
        async for _ in informer.events():
            break

    registrations.append(informer.add_event_handler(on_add=busy))
    async with informer:
        await informer.wait_synced(5)
        await quiet()
    assert recorder.told == ["+a@2 initial", "+b@3 initial", "+c@4"]


# --- sources


@in_virtual_time
async def test_a_list_that_returns_nonsense_is_a_failure_of_the_source() -> None:
    source = source_of("a")
    answers: list[object] = [None, {"items": []}, [1, 2]]

    async def nonsense(options: ListOptions) -> ListResult[Object]:
        if answers:
            return answers.pop()  # type: ignore[return-value]
        return await source.list(options)

    lw = ListWatch(list=nonsense, watch=source.watch, supports_watch_list=False)
    errors: list[Exception] = []
    async with SharedInformer(lw, watch_error_handler=errors.append) as informer:
        await informer.wait_synced(60)
        assert names(informer) == ["a"]
    assert [type(error) for error in errors] == [SourceError] * 3


@in_virtual_time
async def test_where_a_function_of_the_users_raised_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = source_of("a")
    failures = [KeyError("a"), ValueError("b")] * 5

    async def raising(options: ListOptions) -> ListResult[Object]:
        if failures:
            raise failures.pop()
        return await source.list(options)

    lw = ListWatch(list=raising, watch=source.watch, supports_watch_list=False)
    async with SharedInformer(lw) as informer:
        await informer.wait_synced(3600)
    traced = [record.exc_info for record in caplog.records if record.exc_info]
    assert [kind for kind, _, _ in traced] == [ValueError, KeyError]
    assert "in raising" in caplog.text
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("informer: list or watch raised KeyError") == 5


@in_virtual_time
async def test_a_failure_of_the_server_is_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = source_of("a")
    source.fail_watches(REFUSED)
    async with SharedInformer(source) as informer:
        await informer.wait_synced(60)
    assert caplog.records
    assert not any(record.exc_info for record in caplog.records)


@in_virtual_time
async def test_that_a_list_was_not_streamed_is_told_without_saying_whose_fault_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "kinform.cache")
    source = source_of("a")
    source.fail_watches(ValueError("a user's own"), forever=True)
    async with SharedInformer(source) as informer:
        await informer.wait_synced(60)
    expected = "informer: the list could not be streamed; trying one plain list"
    assert caplog.messages.count(expected) == 1


@in_virtual_time
async def test_a_server_without_bookmarks_and_watch_list_will_do() -> None:
    source = source_of("a")
    source.supports_watch_list = False
    async with SharedInformer(source) as informer:
        await informer.wait_synced(5)
        source.add(thing("b"))
        await asyncio.sleep(3600)
        assert names(informer) == ["a", "b"]
        assert informer.healthy()


@in_virtual_time
async def test_a_server_that_refuses_to_stream_is_listed_plainly() -> None:
    source = source_of("a")
    informer = SharedInformer(source)
    source.supports_watch_list = False  # it does not say so beforehand
    async with informer:
        await informer.wait_synced(5)
        assert names(informer) == ["a"]


class Unversioned:
    """An aggregated API: no uid, no resourceVersion, and a watch that refuses or stays silent."""

    source_options: Final = SourceOptions(supports_watch_list=False)

    def __init__(self, *, can_watch: bool) -> None:
        self.values = {"a": "1"}
        self._can_watch = can_watch

    async def list(self, options: ListOptions) -> ListResult[str]:
        await asyncio.sleep(0)
        entries = [
            Entry(ObjectMeta(name=name, namespace="default"), value)
            for name, value in self.values.items()
        ]
        return ListResult(entries, metadata=ListMeta())

    @contextlib.asynccontextmanager
    async def watch(self, options: ListOptions) -> AsyncGenerator[AsyncGenerator[Received[str]]]:
        await asyncio.sleep(0)
        if not self._can_watch:
            status = Status(status="Failure", code=405, reason="MethodNotAllowed")
            raise api_error(status)

        async def silence() -> AsyncGenerator[Received[str]]:
            await asyncio.sleep(options.timeout or 0)
            for _ in ():
                yield _

        async with contextlib.aclosing(silence()) as stream:
            yield stream


@pytest.mark.parametrize("can_watch", [True, False])
@in_virtual_time
async def test_a_server_without_versions_or_without_watch_is_listed_again_and_again(
    can_watch: bool,
) -> None:
    source = Unversioned(can_watch=can_watch)
    options = ReflectorOptions(watch_timeout=10)
    informer = SharedInformer(source, options=options)
    told: list[str] = []
    informer.add_event_handler(
        on_add=lambda event: told.append(f"+{event.key.name}"),
        on_update=lambda event: told.append(f"{event.old}>{event.new}"),
        on_delete=lambda event: told.append(f"-{event.key.name}"),
    )
    async with informer:
        await informer.wait_synced(5)
        source.values["a"] = "2"
        source.values["b"] = "1"
        await asyncio.sleep(120)
        del source.values["b"]
        await asyncio.sleep(120)
        assert informer.lister.list() == ["2"]
    changes = [one for one in told if one not in {"2>2", "1>1"}]
    assert changes == ["+a", "1>2", "+b", "-b"]


@in_virtual_time
async def test_odd_objects_are_kept_as_they_are() -> None:
    """Nothing but the metadata is ever looked at."""
    source: FakeListWatch[object] = FakeListWatch(object)
    odd: list[object] = [None, 0, "", (), object()]
    for i, value in enumerate(odd):
        source.add(entry_of(f"default/{i}", value))
    informer = SharedInformer(source)
    async with informer:
        await informer.wait_synced(5)
        assert sorted(map(repr, informer.lister.list())) == sorted(map(repr, odd))


@in_virtual_time
async def test_a_wrong_request_is_told_and_tried_again_later() -> None:
    source = source_of("a")
    status = Status(status="Failure", code=400, reason="BadRequest", message="no such field")
    source.fail_lists(api_error(status), forever=True)
    source.fail_watches(api_error(status), forever=True)
    async with SharedInformer(source) as informer:
        with pytest.raises(TimeoutError, match="no such field") as caught:
            await informer.wait_synced(60)
        assert isinstance(caught.value.__cause__, InvalidError)
        source.heal()
        await informer.wait_synced(120)

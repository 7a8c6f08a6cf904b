"""An empty cache never looks like an empty cluster, and no impossible key like an absent object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import kinform
from kinform.apiserver import APIServer
from kinform.cache._reflector.missing_permission import missing_rule
from kinform.cache.factory import SharedInformerFactory
from kinform.cache.indexer_informer import IndexerInformer
from kinform.cache.lister import Lister
from kinform.cache.listwatch import ListWatch
from kinform.cache.processor.events import Added
from kinform.cache.processor.handlers import handler
from kinform.cache.reflector_options import ReflectorOptions
from kinform.cache.shared_informer import SharedInformer
from kinform.cache.store.indexes import NAMESPACE_INDEX
from kinform.cache.store.store import Indexer, Store
from kinform.errors import ForbiddenError, NotFoundError, UsageError, api_error
from kinform.meta import Entry, ListMeta, ObjectMeta, ObjectName, Status
from kinform.objects.object import Object
from kinform.rest.options import ListOptions
from kinform.rest.results import ListResult
from kinform.runtime.healthz.checks import informers_check
from kinform.sansio.queue.delta_fifo import DeltaFIFO
from kinform.tasks import background
from kinform.testing import FakeListWatch, in_virtual_time
from tests.cache.support_informer import REFUSED, quiet, source_of

FORBIDDEN = api_error(
    Status(code=403, reason="Forbidden", message="no"),
    method="GET",
    url="https://host/k8s/api/v1/namespaces/shop/configmaps?limit=500",
)
MISSING = api_error(Status(code=404, reason="NotFound"), method="GET", url="https://host/api/v1/x")

Informer = SharedInformer[Object]

ENTRY = Entry(
    ObjectMeta(name="a", namespace="default"),
    Object.from_dict({"metadata": {"name": "a", "namespace": "default"}}),
)
READS: dict[str, Callable[[Informer], object]] = {
    "lister.get": lambda one: one.lister.get("default/a"),
    "lister.list": lambda one: one.lister.list(),
    "lister.list, by label": lambda one: one.lister.list("app=web"),
    "namespace lister.get": lambda one: one.lister.namespace("default").get("a"),
    "namespace lister.list": lambda one: one.lister.namespace("default").list(),
    "indexer.get": lambda one: one.indexer.get("default/a"),
    "indexer.get_by_key": lambda one: one.indexer.get_by_key("default/a"),
    "indexer.list": lambda one: one.indexer.list(),
    "indexer.list_keys": lambda one: one.indexer.list_keys(),
    "indexer.by_index": lambda one: one.indexer.by_index(NAMESPACE_INDEX, "default"),
    "indexer.index_keys": lambda one: one.indexer.index_keys(NAMESPACE_INDEX, "default"),
    "indexer.index": lambda one: one.indexer.index(NAMESPACE_INDEX, ENTRY),
    "indexer.list_index_values": lambda one: one.indexer.list_index_values(NAMESPACE_INDEX),
    "in indexer": lambda one: "default/a" in one.indexer,
    "len(indexer)": lambda one: len(one.indexer),
    "entries.get": lambda one: one.indexer.entries.get(ObjectName("default", "a")),
    "entries.list": lambda one: one.indexer.entries.list(),
    "entries.keys": lambda one: one.indexer.entries.keys(),
    "in entries": lambda one: ObjectName("default", "a") in one.indexer.entries,
    "len(entries)": lambda one: len(one.indexer.entries),
}

reads = pytest.mark.parametrize("read", READS.values(), ids=READS)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "before its first sync" in one.msg]


# --- before the start, before the first sync, after the end ---------------------------------------


@reads
def test_informer_that_was_not_started_cannot_be_read(read: Callable[[Informer], object]) -> None:
    informer = SharedInformer(source_of("a"), name="v1/pods")
    with pytest.raises(UsageError, match=r"v1/pods was not started.*wait_synced"):
        read(informer)


@reads
@in_virtual_time
async def test_read_before_the_first_sync_warns_once_and_by_name(
    read: Callable[[Informer], object], caplog: pytest.LogCaptureFixture
) -> None:
    source = source_of("a")
    source.fail_lists(REFUSED, forever=True)
    source.fail_watches(REFUSED, forever=True)
    async with SharedInformer(source, name="v1/pods", watch_error_handler=id) as informer:
        await quiet()
        assert not read(informer)
        assert not read(informer)
        assert not informer.lister.list()
    (said,) = warnings(caplog)
    assert said.startswith("v1/pods is read before its first sync, so objects may be missing")
    assert not informer.lister.list()  # stopped before it synced: still no error
    assert len(warnings(caplog)) == 1


@reads
@in_virtual_time
async def test_synced_informer_is_read_without_a_word_and_after_its_stop(
    read: Callable[[Informer], object], caplog: pytest.LogCaptureFixture
) -> None:
    informer = SharedInformer(source_of("a"))
    async with informer:
        await informer.wait_synced(5)
        assert read(informer) == read(informer)
        found = read(informer)
    assert read(informer) == found
    assert not warnings(caplog)


@in_virtual_time
async def test_informer_that_was_stopped_without_a_start_warns_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    informer = SharedInformer(source_of("a"))
    await informer.stop()
    assert informer.lister.list() == []
    assert len(warnings(caplog)) == 1


@in_virtual_time
async def test_entries_that_were_taken_before_the_sync_show_the_cache_after_it() -> None:
    async with SharedInformer(source_of("a")) as informer:
        entries = informer.indexer.entries
        await informer.wait_synced(5)
        assert len(entries) == 1
        assert entries.resource_version == informer.indexer.resource_version


@pytest.mark.parametrize("queue", [None, DeltaFIFO], ids=["RealFIFO", "DeltaFIFO"])
@in_virtual_time
async def test_handlers_may_read_while_the_first_list_is_delivered(
    queue: type[DeltaFIFO[Object]] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler finds the object it is notified of. A RealFIFO has synced by then."""
    source = source_of(*(f"a{n}" for n in range(50)))
    options = {} if queue is None else {"queue": queue}
    informer: Informer = SharedInformer(source, **options)  # type: ignore[arg-type]
    found: list[bool] = []

    def on_add(event: Added[Object]) -> None:
        found.append(informer.lister.get(event.key) is event.obj)

    informer.add_event_handler(on_add=on_add)
    async with informer:
        await informer.wait_synced(5)
        await quiet()
    assert found == [True] * 50
    assert len(warnings(caplog)) <= (0 if queue is None else 1)


@in_virtual_time
async def test_indexer_informer_cannot_be_read_before_it_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found: list[object] = []
    informer: IndexerInformer[Object] = IndexerInformer(
        source_of("a", "b"),
        handler(on_add=lambda event: found.append(informer.indexer.get_by_key(event.key))),
    )
    with pytest.raises(UsageError, match="was not started"):
        informer.indexer.list()
    async with background(informer.run()):
        await quiet()
        assert found == informer.indexer.list() != []
        with pytest.raises(UsageError, match="pass 'namespace/a'"):
            informer.indexer.get_by_key("a")
    assert not warnings(caplog)


def test_stores_of_their_own_are_not_guarded() -> None:
    store, indexer = Store[Object](), Indexer[Object]()
    assert (len(store), store.get("a"), store.list()) == (0, None, [])
    assert Lister(indexer).get("a") is None
    assert Lister(indexer).list() == []
    assert ObjectName("", "a") not in indexer


@in_virtual_time
async def test_handlers_and_indexes_can_be_added_before_the_start() -> None:
    informer = SharedInformer(source_of("a"))
    informer.add_indexers({"name": lambda obj: obj.name})
    informer.add_event_handler(on_add=print)
    assert informer.indexer.index_names() == [NAMESPACE_INDEX, "owner", "name"]
    assert informer.statistics().objects == 0
    assert "not started, 0 objects" in repr(informer)


# --- keys -----------------------------------------------------------------------------------------


class Weird:
    """Any object at all."""


IMPOSSIBLE: dict[str, tuple[object, str]] = {
    "no namespace": ("a", "pass 'namespace/a'"),
    "a name without a namespace": (ObjectName("", "a"), "pass 'namespace/a'"),
    "a tuple": (("default", "a"), "not tuple"),
    "an object": (ENTRY.object, "not Object; of an object pass obj.key"),
    "something else": (Weird(), "not Weird"),
    "None": (None, "not NoneType"),
    "a list, which has no hash": (["default", "a"], "not list"),
    "a key as name": (ObjectName("default", "default/a"), "no object can have the name"),
    "no name": (ObjectName("default", ""), "no object can have the name ''"),
    "None as name": (ObjectName("default", None), "the name None"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("key, message", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@in_virtual_time
async def test_key_that_no_object_can_have_is_refused(key: object, message: str) -> None:
    async with SharedInformer(source_of("a"), name="v1/pods") as informer:
        await informer.wait_synced(5)
        for read in (informer.lister.get, informer.indexer.get_by_key):
            with pytest.raises(UsageError, match=message):
                read(key)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=message):
            _ = key in informer.indexer
        assert informer.lister.get("default/b") is None
        assert informer.lister.get(ObjectName("default", "a")) is not None


@in_virtual_time
async def test_name_for_a_namespace_lister_is_a_name() -> None:
    async with SharedInformer(source_of("a"), name="v1/pods") as informer:
        await informer.wait_synced(5)
        lister = informer.lister.namespace("default")
        assert lister.get("a") is not None
        assert lister.get("b") is None
        with pytest.raises(UsageError, match=r"pass 'namespace/name', or lister\.namespace"):
            lister.get("default/a")
        with pytest.raises(UsageError, match="pass 'namespace/a'"):
            informer.lister.namespace("").get("a")


@in_virtual_time
async def test_scope_is_known_from_the_server_though_the_cache_is_empty() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        maps, nodes = client.informer("v1/secrets"), client.informer("nodes")
        async with maps, nodes:
            await kinform.wait_for_cache_sync(maps, nodes, timeout=10)
            assert nodes.lister.get("a") is None
            with pytest.raises(UsageError, match="v1/secrets: 'a' has no namespace"):
                maps.lister.get("a")
            with pytest.raises(UsageError, match=r"'default/a' has a namespace.*pass 'a'"):
                nodes.lister.get("default/a")


@in_virtual_time
async def test_scope_that_is_not_known_refuses_nothing() -> None:
    async with SharedInformer(FakeListWatch()) as informer:
        await informer.wait_synced(5)
        assert informer.lister.get("a") is None
        assert informer.lister.get("default/a") is None


@in_virtual_time
async def test_group_of_namespaces_refuses_impossible_keys_and_finds_kinds_without() -> None:
    async with APIServer(port=None) as server, server.connect() as client:
        await client.resource("v1/nodes").create({"metadata": {"name": "n"}})
        factory = SharedInformerFactory(client, namespaces=["default", "kube-system"])
        maps, nodes = factory.informers("v1/configmaps"), factory.informers("v1/nodes")
        with pytest.raises(UsageError, match="was not started"):
            maps.list()
        async with factory:
            await factory.wait_for_cache_sync(10)
            assert nodes.get("n") is not None
            for key in ("a", ("default", "a"), None):
                with pytest.raises(UsageError):
                    maps.get(key)  # type: ignore[arg-type]
            assert maps.get("default/none") is None


# --- waiting --------------------------------------------------------------------------------------


@in_virtual_time
async def test_wait_for_believes_an_absence_only_after_the_first_sync(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = source_of("a")
    source.fail_lists(*[REFUSED] * 3)
    source.fail_watches(*[REFUSED] * 3)
    async with SharedInformer(source, watch_error_handler=id) as informer:
        absent = informer.wait_for(lambda pods: pods.get("default/a") is None, 3600)
        async with background(absent) as waiting:
            await informer.wait_synced(600)
            await quiet(10)
            assert not waiting.done()
            source.delete("default/a")
            assert await waiting
    assert not warnings(caplog)


@pytest.mark.parametrize("error", [FORBIDDEN, MISSING, REFUSED], ids=["403", "404", "refused"])
@in_virtual_time
async def test_wait_on_a_cache_that_never_syncs_ends_with_the_error_of_the_list(
    error: Exception,
) -> None:
    source = source_of("a")
    source.fail_lists(error, forever=True)
    source.fail_watches(error, forever=True)
    async with SharedInformer(source, watch_error_handler=id) as informer:
        for wait in (
            lambda: informer.wait_synced(30),
            lambda: informer.wait_for(lambda _: True, 30),
            lambda: informer.wait_until("5", 30),
        ):
            with pytest.raises(TimeoutError, match="has not synced within 30 s; last error") as it:
                await wait()
            assert type(it.value.__cause__) is type(error)


@in_virtual_time
async def test_wait_for_ends_when_the_informer_stops_before_its_first_sync() -> None:
    source = source_of()
    source.hang_lists()
    source.hang_watches()
    informer = SharedInformer(source)
    await informer.start()
    async with background(informer.wait_for(lambda _: True)) as waiting:
        await quiet()
        await informer.stop()
        with pytest.raises(UsageError, match="has stopped"):
            await waiting
    with pytest.raises(UsageError, match="has stopped"):
        await informer.wait_for(lambda _: True)


# --- what is not permitted ------------------------------------------------------------------------


VERBS = 'verbs: ["list", "watch"]}'


@pytest.mark.parametrize(
    "url, rule",
    [
        (
            "https://host/api/v1/pods?watch=true",
            'a ClusterRole needs the rule {apiGroups: [""], resources: ["pods"], ' + VERBS,
        ),
        (
            "https://host/k8s/clusters/c/apis/apps/v1/namespaces/shop/d",
            'a Role in the namespace shop needs the rule {apiGroups: ["apps"], resources: ["d"], '
            + VERBS,
        ),
        (
            "https://host/api/v1/namespaces",
            'a ClusterRole needs the rule {apiGroups: [""], resources: ["namespaces"], ' + VERBS,
        ),
        ("https://host/apis", ""),
        ("", ""),
    ],
)
def test_rule_that_is_missing_is_read_from_the_request(url: str, rule: str) -> None:
    status = Status(code=403, reason="Forbidden", message="no")
    error = api_error(status, method="GET", url=url)
    assert isinstance(error, ForbiddenError)
    assert missing_rule(error) == rule
    assert missing_rule(MISSING) == ""


@in_virtual_time
async def test_list_that_is_forbidden_names_the_missing_rule_where_one_looks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rule = (
        'a Role in the namespace default needs the rule {apiGroups: [""], '
        'resources: ["configmaps"], verbs: ["list", "watch"]}'
    )
    async with APIServer(port=None, rbac=True) as server:
        nobody = server.user("nobody")
        async with server.connect(nobody) as client:
            informer = client.informer("v1/configmaps", namespace="default")
            async with informer:
                with pytest.raises(TimeoutError) as caught:
                    await informer.wait_synced(30)
                assert rule in str(caught.value)
                assert isinstance(caught.value.__cause__, ForbiddenError)
                said = informers_check([informer])()
                assert said is not None
                assert "has not synced (ForbiddenError" in said
                assert rule.replace(" in the namespace default", "") in said
    assert any(rule in record.getMessage() for record in caplog.records)


@in_virtual_time
async def test_list_of_what_does_not_exist_is_told_as_not_found() -> None:
    widgets = kinform.Resource.of("example.com/v1/widgets", kind="Widget", namespaced=True)
    async with APIServer(port=None) as server, server.connect() as client:
        informer = client.informer(widgets)
        async with informer:
            with pytest.raises(TimeoutError, match="404 NotFound") as caught:
                await informer.wait_synced(30)
            assert isinstance(caught.value.__cause__, NotFoundError)
            said = informers_check([informer])()
            assert said is not None
            assert "has not synced (NotFoundError" in said


def test_source_may_say_whether_its_objects_have_namespaces() -> None:
    source = source_of()
    lw = ListWatch(list=source.list, watch=source.watch)
    assert lw.source_options.namespaced() is None
    lw = ListWatch(list=source.list, watch=source.watch, namespaced=lambda: True)
    assert lw.source_options.namespaced()


@in_virtual_time
async def test_error_before_the_first_sync_is_told_though_the_server_was_heard_since() -> None:
    """A list is forbidden once; then its first page arrives, and its second page never does."""
    source, answers = source_of("a"), iter([FORBIDDEN])

    async def list_(options: ListOptions) -> ListResult[Object]:
        for error in answers:
            raise error
        if options.continue_token:
            await asyncio.get_running_loop().create_future()
        page = await source.list(options)
        metadata = ListMeta(resource_version=page.resource_version, continue_token="more")
        return ListResult(list(page.entries()), metadata=metadata)

    lw = ListWatch(list=list_, watch=source.watch)
    plain = ReflectorOptions(stream_lists=False)
    async with SharedInformer(lw, options=plain, watch_error_handler=id) as informer:
        with pytest.raises(TimeoutError) as caught:
            await informer.wait_synced(20)
        assert caught.value.__cause__ is FORBIDDEN
        assert "ForbiddenError" in (informers_check([informer])() or "")

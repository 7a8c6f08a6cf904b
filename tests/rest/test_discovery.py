"""Names to resources, and where the knowledge comes from."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlsplit

import pytest

from kinform.errors import (
    AmbiguousResourceError,
    DecodeError,
    NotFoundError,
    TransportError,
    UnknownResourceError,
)
from kinform.meta import GroupVersionResource
from kinform.rest.discovery import MAX_RESOURCES, MAX_SIZE, MAX_VERSIONS, Discovery
from kinform.rest.restmapper import APIResource, ResourceMap
from kinform.rest.transport import HttpRequest
from kinform.tasks import SharedCalls
from kinform.testing import in_virtual_time
from tests.support.scripted import Answer, ScriptedTransport, answer, connection


def resource(gvr: str, kind: str, singular: str = "", *short: str) -> APIResource:
    return APIResource(
        gvr=GroupVersionResource.parse(gvr),
        kind=kind,
        namespaced=True,
        singular=singular or kind.lower(),
        short_names=short,
    )


MAP = ResourceMap(
    [
        resource("v1/pods", "Pod", "pod", "po"),
        resource("v1/events", "Event", "event", "ev"),
        resource("apps/v1/deployments", "Deployment", "deployment", "deploy"),
        resource("events.k8s.io/v1/events", "Event", "event", "ev"),
        resource("metrics.k8s.io/v1beta1/pods", "PodMetrics", "pod"),
        resource("a.example/v2/widgets", "Widget", "widget", "wi"),
        resource("a.example/v1/widgets", "Widget", "widget", "wi"),
        resource("b.example/v1/widgets", "Widget", "widget", "wi"),
        resource("b.example/v1/deploys", "Deploy", "deploy"),
    ]
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pods", "v1/pods"),
        ("pod", "v1/pods"),
        ("po", "v1/pods"),
        ("Pod", "v1/pods"),
        ("PODS", "v1/pods"),
        ("v1/pods", "v1/pods"),
        ("v1/Pod", "v1/pods"),
        ("deployments.apps", "apps/v1/deployments"),
        ("deployments.v1.apps", "apps/v1/deployments"),
        ("deploy.apps", "apps/v1/deployments"),
        ("apps/v1/deployments", "apps/v1/deployments"),
        ("Deployment", "apps/v1/deployments"),
        ("widgets.a.example", "a.example/v2/widgets"),
        ("widgets.v1.a.example", "a.example/v1/widgets"),
        ("a.example/v1/widgets", "a.example/v1/widgets"),
        ("pods.metrics.k8s.io", "metrics.k8s.io/v1beta1/pods"),
        ("PodMetrics", "metrics.k8s.io/v1beta1/pods"),
        pytest.param("events", "v1/events", id="the core group wins, as in kubectl"),
        pytest.param("deploy", "b.example/v1/deploys", id="a singular beats a short name"),
    ],
)
def test_the_names_people_use_are_understood(name: str, found: str) -> None:
    assert str(MAP.find(name).gvr) == found


@pytest.mark.parametrize("name", ["widgets", "wi", "Widget"])
def test_an_ambiguous_name_lists_the_candidates(name: str) -> None:
    with pytest.raises(AmbiguousResourceError) as caught:
        MAP.find(name)
    assert caught.value.candidates == ("a.example/v2/widgets", "b.example/v1/widgets")
    assert "use one of a.example/v2/widgets, b.example/v1/widgets" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("deploymnts", "apps/v1/deployments"), ("apps/v1/deploymnts", "apps/v1/deployments")],
)
def test_an_unknown_name_suggests_similar_ones(name: str, hint: str) -> None:
    with pytest.raises(UnknownResourceError, match=f"did you mean {hint}"):
        MAP.find(name)


HOSTILE = {
    "long names": ["a" * 5000 + str(n) for n in range(2000)],
    "one letter": ["a" * 50 + f"{n:06}" for n in range(20_000)],
    "few letters": [f"{n:b}".zfill(60).replace("0", "a").replace("1", "b") for n in range(20_000)],
}


@pytest.mark.slow
@pytest.mark.parametrize("names", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("wanted", ["ab" * 31, "a" * 63, "a" * 5000], ids=["ab", "a", "long"])
def test_suggestions_take_little_time_whatever_a_server_lists(
    names: list[str], wanted: str
) -> None:
    """difflib took 8 s for 20,000 names, on the event loop."""
    found = ResourceMap([resource(f"g.example/v1/{name}", "K") for name in names])
    started = time.process_time()
    with pytest.raises(UnknownResourceError) as caught:
        found.find(wanted)
    assert time.process_time() - started < 1
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize("name", ["", "zzz", "v9/pods", "pods.apps", "/", "a/b/c/d"])
def test_what_is_not_there_is_not_found(name: str) -> None:
    with pytest.raises(UnknownResourceError):
        MAP.find(name)


AGGREGATED = {
    "/api": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": ""},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "pods",
                                "responseKind": {"kind": "Pod"},
                                "scope": "Namespaced",
                                "singularResource": "pod",
                                "shortNames": ["po"],
                                "verbs": ["get", "list"],
                                "subresources": [{"subresource": "status"}],
                            },
                            {"resource": "ghosts", "scope": "Cluster"},
                        ],
                    }
                ],
            }
        ],
    },
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "deployments",
                                "responseKind": {"kind": "Deployment"},
                                "scope": "Namespaced",
                            }
                        ],
                    }
                ],
            }
        ],
    },
}
LEGACY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
                "preferredVersion": {"groupVersion": "apps/v1"},
            },
            {"name": "dead", "versions": [{"groupVersion": "dead/v1"}]},
        ],
    },
    "/api/v1": {
        "kind": "APIResourceList",
        "resources": [
            {
                "name": "pods",
                "kind": "Pod",
                "namespaced": True,
                "shortNames": ["po"],
                "verbs": ["get"],
            },
            {"name": "pods/status", "kind": "Pod", "namespaced": True},
        ],
    },
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}],
    },
    "/apis/apps/v1beta1": {
        "kind": "APIResourceList",
        "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}],
    },
}


def serving(documents: dict) -> tuple[Discovery, ScriptedTransport, list[str]]:
    paths: list[str] = []

    def handle(request: HttpRequest) -> Answer:
        paths.append(urlsplit(request.url).path)
        document = documents.get(paths[-1])
        return (
            answer(503)
            if document is None and "dead" in paths[-1]
            else (answer(404) if document is None else answer(200, document))
        )

    conn, transport = connection(handle)
    return Discovery(conn), transport, paths


@in_virtual_time
async def test_aggregated_discovery_takes_two_requests_and_is_remembered() -> None:
    discovery, transport, paths = serving(AGGREGATED)
    pods = await discovery.find("po")
    assert (str(pods.gvr), pods.kind, pods.namespaced) == ("v1/pods", "Pod", True)
    assert pods.subresources == {"status"}
    assert pods.verbs == {"get", "list"}
    assert str((await discovery.find("Deployment")).gvr) == "apps/v1/deployments"
    assert sorted(paths) == ["/api", "/apis"]
    assert "as=APIGroupDiscoveryList" in transport.requests[0].headers["Accept"]


@in_virtual_time
async def test_older_servers_are_asked_version_by_version() -> None:
    discovery, _, _ = serving(LEGACY)
    pods = await discovery.find("po")
    assert (str(pods.gvr), pods.subresources) == ("v1/pods", {"status"})
    assert str((await discovery.find("deployments")).gvr) == "apps/v1/deployments"


@in_virtual_time
async def test_a_dead_aggregated_api_does_not_take_the_others_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    discovery, _, _ = serving(LEGACY)
    assert (await discovery.find("pods")).kind == "Pod"
    assert ["dead/v1" in record.getMessage() for record in caplog.records] == [True]


@in_virtual_time
async def test_a_full_name_asks_for_that_version_only() -> None:
    discovery, _, paths = serving(LEGACY)
    assert (await discovery.find("apps/v1/deployments")).kind == "Deployment"
    assert paths == ["/apis/apps/v1"]


@in_virtual_time
async def test_a_resource_that_has_just_appeared_is_found() -> None:
    documents = dict(AGGREGATED)
    discovery, _, paths = serving(documents)
    with pytest.raises(UnknownResourceError):
        await discovery.find("widgets")
    assert len(paths) == 4
    extra = {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Cluster"}
    documents["/apis"] = {
        "items": [
            {"metadata": {"name": "x.io"}, "versions": [{"version": "v1", "resources": [extra]}]}
        ]
    }
    found = await discovery.find("widgets")
    assert (str(found.gvr), found.namespaced) == ("x.io/v1/widgets", False)


@in_virtual_time
async def test_a_version_that_has_just_appeared_is_found() -> None:
    documents = dict(LEGACY)
    discovery, _, _ = serving(documents)
    with pytest.raises(UnknownResourceError):
        await discovery.find("x.io/v1/widgets")
    documents["/apis/x.io/v1"] = {
        "kind": "APIResourceList",
        "resources": [{"name": "widgets", "kind": "Widget"}],
    }
    assert (await discovery.find("x.io/v1/widgets")).kind == "Widget"


@pytest.mark.parametrize("name", ["x.io/v1/widgets", "v1/pods", "widgets"])
@in_virtual_time
async def test_who_finds_nothing_at_all_proves_nothing(name: str) -> None:
    """F-R17, seed 6187: a proxy that answers 404 to everything emptied caches."""
    discovery, _, _ = serving({})
    with pytest.raises(NotFoundError):
        await discovery.find(name)


@pytest.mark.parametrize("documents", [LEGACY, AGGREGATED], ids=["legacy", "aggregated"])
@pytest.mark.parametrize("version", ["apps/v1", "v1"])
@in_virtual_time
async def test_a_version_that_is_listed_is_not_gone(documents: dict, version: str) -> None:
    path = f"/apis/{version}" if "/" in version else f"/api/{version}"
    without = {place: document for place, document in documents.items() if place != path}
    discovery, _, paths = serving(without)
    with pytest.raises(NotFoundError):
        await discovery.find(f"{version}/widgets")
    assert paths == [path, path.removesuffix(f"/{version}")]


@pytest.mark.parametrize("document", [{}, {"kind": "Page"}])
@in_virtual_time
async def test_what_is_no_list_of_groups_proves_nothing(document: dict) -> None:
    discovery, _, _ = serving({"/apis": document})
    with pytest.raises(NotFoundError):
        await discovery.find("x.io/v1/widgets")


@pytest.mark.parametrize("missing", ["/api", "/api/v1"])
@in_virtual_time
async def test_what_was_found_is_gone_only_if_its_version_says_so(missing: str) -> None:
    """By a short name as well: the 404 of a root may come from a proxy."""
    documents = dict(LEGACY)
    discovery, _, _ = serving(documents)
    assert (await discovery.find("pods")).kind == "Pod"
    del documents[missing]
    if missing == "/api":
        assert (await discovery.find("pods", fresh=True)).kind == "Pod"
    else:
        with pytest.raises(NotFoundError):
            await discovery.find("pods", fresh=True)
    documents.update(LEGACY)
    documents["/api/v1"] = {"kind": "APIResourceList", "resources": []}
    with pytest.raises(UnknownResourceError):
        await discovery.find("pods", fresh=True)


WIDGETS = {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Namespaced"}


def aggregated(**versions: tuple[str, list[dict]]) -> dict:
    """Return what a server shows of x.io: versions, each with its freshness and resources."""
    listed = [
        {"version": name, "freshness": freshness, "resources": resources}
        for name, (freshness, resources) in versions.items()
    ]
    group = {"metadata": {"name": "x.io"}, "versions": listed}
    return {"/apis": {"kind": "APIGroupDiscoveryList", "items": [group] if listed else []}}


def legacy(**versions: list[str] | None) -> dict:
    """Return the same in the older way; ``None`` in place of resources: the version is dead."""
    names = [{"groupVersion": f"x.io/{name}"} for name in versions]
    lists = {
        f"/apis/x.io/{name}": {
            "kind": "APIResourceList",
            "resources": [{"name": each, "kind": "Widget"} for each in resources],
        }
        for name, resources in versions.items()
        if resources is not None
    }
    return {"/apis": {"kind": "APIGroupList", "groups": [{"versions": names}]}, **lists}


EMPTY = {"/apis/x.io/v1": {"kind": "APIResourceList", "resources": []}}


@pytest.mark.parametrize(
    ("documents", "served_in", "is_gone"),
    [
        pytest.param(aggregated(), [], True, id="no version of the group is left"),
        pytest.param({**EMPTY, **aggregated(v1=("Current", []))}, [], True, id="fresh, not listed"),
        pytest.param({**EMPTY, **aggregated(v1=("", []))}, [], True, id="freshness is optional"),
        pytest.param({**EMPTY, **aggregated(v1=("Stale", []))}, [], False, id="stale"),
        pytest.param(
            {**EMPTY, **aggregated(v1=("Current", []), v2=("Stale", []))},
            [],
            False,
            id="another version is stale",
        ),
        pytest.param(
            aggregated(v2=("Current", [WIDGETS])), ["x.io/v2/widgets"], False, id="other version"
        ),
        pytest.param(
            aggregated(v2=("Stale", [WIDGETS])), ["x.io/v2/widgets"], False, id="stale, but listed"
        ),
        pytest.param({"/apis": {"items": []}}, [], False, id="not said what it is"),
        pytest.param(legacy(), [], True, id="legacy: no version of the group is left"),
        pytest.param(legacy(v1=[], v2=["gadgets"]), [], True, id="legacy: not listed"),
        pytest.param(legacy(v1=[], v2=["widgets"]), ["x.io/v2/widgets"], False, id="legacy: other"),
        pytest.param(legacy(v1=[], v2=None), [], False, id="legacy: a version does not answer"),
        pytest.param({**EMPTY}, [], False, id="the groups cannot be listed"),
    ],
)
@in_virtual_time
async def test_a_resource_is_gone_only_if_fresh_discovery_lists_it_in_no_version(
    documents: dict, served_in: list[str], is_gone: bool
) -> None:
    """Rule 7 of the reflector: a version that is not served does not delete objects."""
    discovery, _, _ = serving(documents)
    expected = NotFoundError if documents == {"/apis": {"items": []}} else UnknownResourceError
    with pytest.raises(expected) as caught:
        await discovery.find("x.io/v1/widgets", fresh=True)
    if isinstance(caught.value, UnknownResourceError):
        assert list(caught.value.served_in) == served_in
        assert caught.value.is_gone is is_gone
    if served_in:
        assert f"it serves {served_in[0]}" in str(caught.value)


@in_virtual_time
async def test_a_group_that_answers_nothing_proves_nothing() -> None:
    def handle(request: HttpRequest) -> Answer:
        place = urlsplit(request.url).path
        return answer(503) if place == "/apis" else answer(200, EMPTY["/apis/x.io/v1"])

    conn, _ = connection(handle)
    with pytest.raises(UnknownResourceError) as caught:
        await Discovery(conn).find("x.io/v1/widgets")
    assert not caught.value.is_gone


@pytest.mark.parametrize("document", [{}, {"kind": "Page"}])
@in_virtual_time
async def test_what_is_no_list_of_resources_proves_nothing(document: dict) -> None:
    discovery, _, _ = serving({**LEGACY, "/api/v1": document})
    with pytest.raises(DecodeError, match="APIResourceList"):
        await discovery.find("v1/pods")


@in_virtual_time
async def test_who_may_not_see_the_groups_is_told_what_was_not_found() -> None:
    def handle(request: HttpRequest) -> Answer:
        return answer(403 if urlsplit(request.url).path == "/apis" else 404)

    conn, _ = connection(handle)
    with pytest.raises(NotFoundError, match=r"/apis/x\.io/v1"):
        await Discovery(conn).find("x.io/v1/widgets")


@in_virtual_time
async def test_a_name_that_is_no_version_is_unknown_without_asking() -> None:
    discovery, _, paths = serving({})
    with pytest.raises(UnknownResourceError):
        await discovery.find("a/b/c/d")
    assert paths == []


@in_virtual_time
async def test_whoever_asks_at_the_same_time_shares_one_fetch_and_its_failure() -> None:
    conn, transport = connection(Answer(200, {}, [], stalls=True))
    discovery = Discovery(conn)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(discovery, "v1/pods")) for _ in range(5)]
    assert [task.result() for task in tasks] == ["TransportError"] * 5
    assert len(transport.requests) == 1
    assert asyncio.get_running_loop().time() == pytest.approx(32.0)  # no request was queued


async def outcome(discovery: Discovery, name: str) -> str:
    try:
        return str((await discovery.find(name)).gvr)
    except TransportError as exc:
        return type(exc).__name__


@in_virtual_time
async def test_a_version_that_does_not_answer_holds_nobody_else_up() -> None:
    def handle(request: HttpRequest) -> Answer:
        dead = "dead" in request.url
        return Answer(200, {}, [], stalls=True) if dead else answer(200, LEGACY["/api/v1"])

    conn, _ = connection(handle)
    discovery = Discovery(conn)
    async with asyncio.TaskGroup() as group:
        stuck = group.create_task(outcome(discovery, "dead.io/v1/things"))
        async with asyncio.timeout(1):
            assert (await discovery.find("v1/pods")).kind == "Pod"
        assert await stuck == "TransportError"  # after its own deadline


@in_virtual_time
async def test_if_the_first_to_ask_is_cancelled_another_takes_over() -> None:
    calls = SharedCalls[str, int]()
    made: list[float] = []

    async def work() -> int:
        made.append(asyncio.get_running_loop().time())
        await asyncio.sleep(10)
        return 7

    async with asyncio.TaskGroup() as group:
        first = group.create_task(calls.call("key", work))
        second = group.create_task(calls.call("key", work))
        await asyncio.sleep(1)
        first.cancel()
        assert await second == 7
    assert made == [0.0, 1.0]


# --- documents that are too large ----------------------------------------------------------------


def of_size(count: int) -> dict[str, object]:
    kind = {"responseKind": {"kind": "K"}}
    resources = [{"resource": f"r{n}", **kind} for n in range(count)]
    versions = [{"version": "v1", "resources": resources}]
    return {"kind": "APIGroupDiscoveryList", "items": [{"versions": versions}]}


NO_GROUPS: dict[str, object] = {"kind": "APIGroupDiscoveryList", "items": []}


@pytest.mark.slow
@in_virtual_time
async def test_a_document_of_too_many_resources_is_refused() -> None:
    most, _, _ = serving({"/api": of_size(MAX_RESOURCES)})
    assert len((await most.resources()).resources) == MAX_RESOURCES
    more, _, _ = serving({"/api": of_size(MAX_RESOURCES + 1)})
    with pytest.raises(DecodeError, match=f"more than {MAX_RESOURCES} resources"):
        await more.resources()


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/g.example/v1"])
@pytest.mark.slow
@in_virtual_time
async def test_a_document_of_too_many_bytes_is_not_decoded(path: str) -> None:
    discovery, _, _ = serving({path: {**NO_GROUPS, "padding": "x" * MAX_SIZE}})
    name = "g.example/v1/widgets" if "g.example" in path else "widgets"
    with pytest.raises(DecodeError, match=f"larger than {MAX_SIZE} bytes") as caught:
        await discovery.find(name)
    assert path in str(caught.value)


@in_virtual_time
async def test_too_many_versions_are_not_asked_for_one_by_one() -> None:
    versions = [{"groupVersion": f"g{n}.example/v1"} for n in range(MAX_VERSIONS + 1)]
    discovery, _, paths = serving(
        {"/apis": {"kind": "APIGroupList", "groups": [{"versions": versions}]}}
    )
    with pytest.raises(DecodeError, match=f"more than {MAX_VERSIONS} API versions"):
        await discovery.find("widgets")
    assert sorted(paths) == ["/api", "/apis"]

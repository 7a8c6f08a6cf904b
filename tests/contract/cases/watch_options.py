"""Parameters, paths and forms of a watch."""

from __future__ import annotations

from typing import Any, Final

from tests.contract.case import case, each
from tests.contract.cases import CONFIGMAPS, EVERYWHERE, NAMESPACES, rv
from tests.contract.exchange import Json
from tests.contract.session import Session

META: Final = "v=v1;g=meta.k8s.io"
TABLE: Final = f"application/json;as=Table;{META}"
PARTIAL: Final = f"application/json;as=PartialObjectMetadata;{META}"
LIST: Final[Json] = {"watch": "true", "timeoutSeconds": 1}


@each(
    "watch",
    "what counts as watch",
    {
        name: {"value": value}
        for name, value in {
            "true": "true",
            "one": "1",
            "capital": "True",
            "all_capitals": "TRUE",
            "letter": "t",
            "yes": "yes",
            "garbage": "x",
            "empty": "",
            "false": "false",
            "zero": "0",
            "capital_false": "False",
        }.items()
    },
)
async def boolean(s: Session, *, value: str) -> None:
    await s.configmap("a")
    await s.watched(CONFIGMAPS, watch=value, timeoutSeconds=1)


@case("watch", "a bare ?watch, and a parameter given twice")
async def bare(s: Session) -> None:
    await s.watched(f"{CONFIGMAPS}?watch", timeoutSeconds=1)
    await s.watched(f"{CONFIGMAPS}?watch=false&watch=true", timeoutSeconds=1)


@each(
    "watch",
    "odd time-outs",
    {"garbage": {"value": "soon"}, "decimal": {"value": "1.5"}, "empty": {"value": ""}},
)
async def timeout(s: Session, *, value: str) -> None:
    await s.watched(CONFIGMAPS, watch="true", timeoutSeconds=value)


@case("watch", "a time-out of zero is none: the server's own holds")
async def timeout_zero(s: Session) -> None:
    begin = rv(await s.look(CONFIGMAPS))
    query: Json = {"watch": "true", "timeoutSeconds": 0, "resourceVersion": begin}
    async with s.watch(CONFIGMAPS, **query) as watch:
        await s.configmap("a")
        await watch.take(1)


@case("watch", "a watch ends when its time is over, without a word")
async def timeout_ends(s: Session) -> None:
    made = await s.configmap("a")
    await s.watched(CONFIGMAPS, watch="true", timeoutSeconds=1, resourceVersion=rv(made))


@case("watch", "a bookmark comes before the time is over")
async def bookmark_at_timeout(s: Session) -> None:
    made = await s.configmap("a")
    async with s.watch(
        CONFIGMAPS,
        watch="true",
        timeoutSeconds=5,
        resourceVersion=rv(made),
        allowWatchBookmarks="true",
        bookmarks=True,
    ) as watch:
        await watch.until_end()


@each(
    "watch",
    "bookmarks that nobody asked for",
    {"unset": {"value": None}, "false": {"value": "false"}},
)
async def no_bookmarks(s: Session, *, value: str | None) -> None:
    made = await s.configmap("a")
    async with s.watch(
        CONFIGMAPS,
        watch="true",
        timeoutSeconds=4,
        resourceVersion=rv(made),
        allowWatchBookmarks=value,
        bookmarks=True,
    ) as watch:
        await watch.until_end()


@case("watch", "limit and continue of a watch")
async def paging(s: Session) -> None:
    for name in ("a", "b"):
        await s.configmap(name)
    await s.watched(CONFIGMAPS, **LIST, limit=1)
    token = (await s.get(CONFIGMAPS, limit=1)).token
    await s.watched(CONFIGMAPS, **LIST, continue_=token)
    await s.watched(CONFIGMAPS, **LIST, limit="many")


@case("watch", "unknown parameters are ignored")
async def unknown_parameters(s: Session) -> None:
    await s.configmap("a")
    await s.watched(CONFIGMAPS, **LIST, colour="red", pretty="true")


@each(
    "watch",
    "the deprecated paths",
    {
        "namespace": {"path": "/api/v1/watch/namespaces/{ns}/configmaps"},
        "name": {"path": "/api/v1/watch/namespaces/{ns}/configmaps/a"},
        "missing_name": {"path": "/api/v1/watch/namespaces/{ns}/configmaps/zzz"},
        "namespace_itself": {"path": "/api/v1/watch/namespaces/{ns}"},
        "unknown_resource": {"path": "/api/v1/watch/namespaces/{ns}/gadgets"},
        "group": {"path": "/apis/apps/v1/watch/namespaces/{ns}/deployments"},
        "subresource": {"path": "/api/v1/watch/namespaces/{ns}/pods/a/status"},
        "nothing": {"path": "/api/v1/watch"},
    },
)
async def old_path(s: Session, *, path: str) -> None:
    for name in ("a", "b"):
        await s.configmap(name)
    await s.watched(path, timeoutSeconds=1)


@case("watch", "the deprecated path across namespaces")
async def old_path_everywhere(s: Session) -> None:
    await s.configmap("a", case=s.ident)
    await s.watched("/api/v1/watch/configmaps", timeoutSeconds=1, labelSelector=f"case={s.ident}")


@case("watch", "the deprecated path watches whatever the parameter says")
async def old_path_with_parameter(s: Session) -> None:
    await s.configmap("a")
    await s.watched("/api/v1/watch/namespaces/{ns}/configmaps", watch="false", timeoutSeconds=1)


@case("watch", "the deprecated path of a custom resource")
async def old_path_custom(s: Session) -> None:
    group = await s.crd()
    await s.watched(f"/apis/{group}/v1/watch/namespaces/{{ns}}/widgets", timeoutSeconds=1)


@each(
    "watch",
    "methods with a watch parameter",
    {
        "post": {"method": "POST", "body": {"metadata": {"name": "b"}}},
        "put": {"method": "PUT", "body": {"metadata": {"name": "a"}, "data": {"k": "v"}}},
        "delete": {"method": "DELETE", "body": None},
        "head": {"method": "HEAD", "body": None},
    },
)
async def method(s: Session, *, method: str, body: object) -> None:
    await s.configmap("a")
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/a"
    await s.request(method, path, body=body, watch="true")


@each("watch", "methods on a deprecated path", {m.lower(): {"m": m} for m in ("POST", "DELETE")})
async def old_path_method(s: Session, *, m: str) -> None:
    await s.request(m, "/api/v1/watch/namespaces/{ns}/configmaps", body={"metadata": {"name": "b"}})


@each(
    "watch",
    "one object by its path",
    {
        "there": {"name": "a", "query": {}},
        "missing": {"name": "zzz", "query": {}},
        "other_field": {"name": "a", "query": {"fieldSelector": "metadata.name=b"}},
        "same_field": {"name": "a", "query": {"fieldSelector": "metadata.name=a"}},
        "label": {"name": "a", "query": {"labelSelector": "x=1"}},
    },
)
async def by_path(s: Session, *, name: str, query: Json) -> None:
    for each_name in ("a", "b"):
        await s.configmap(each_name, x="1")
    await s.watched(f"{CONFIGMAPS}/{name}", **LIST, **query)


@each(
    "watch",
    "what cannot be watched",
    {
        "unknown_resource": {"path": "/api/v1/namespaces/{ns}/gadgets"},
        "unknown_group": {"path": "/apis/none.example.com/v1/gadgets"},
        "component_statuses": {"path": "/api/v1/componentstatuses"},
        "reviews": {"path": "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
        "status": {"path": "/api/v1/namespaces/{ns}/pods/a/status"},
        "bindings": {"path": "/api/v1/namespaces/{ns}/bindings"},
    },
)
async def impossible(s: Session, *, path: str) -> None:
    await s.watched(path, **LIST)


@each(
    "watch",
    "the forms of a watch",
    {
        "table": {"accept": TABLE},
        "table_or_json": {"accept": f"{TABLE},application/json"},
        "table_beta": {"accept": "application/json;as=Table;v=v1beta1;g=meta.k8s.io"},
        "partial": {"accept": PARTIAL},
        "partial_list": {"accept": f"application/json;as=PartialObjectMetadataList;{META}"},
        "stream": {"accept": "application/json;stream=watch"},
        "anything": {"accept": "*/*"},
        "html": {"accept": "text/html"},
        "yaml": {"accept": "application/yaml"},
    },
)
async def form(s: Session, *, accept: str) -> None:
    begin = rv(await s.look(CONFIGMAPS))
    await s.make(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    await s.change(f"{CONFIGMAPS}/a", {"data": {"l": "w"}})
    await s.remove(f"{CONFIGMAPS}/a")
    headers = {"Accept": accept}
    await s.watched(CONFIGMAPS, **LIST, resourceVersion=begin, headers=headers)


@each(
    "watch", "the initial events in a form", {"table": {"as_": TABLE}, "partial": {"as_": PARTIAL}}
)
async def initial_form(s: Session, *, as_: str) -> None:
    await s.configmap("a")
    async with s.watch(
        CONFIGMAPS,
        watch="true",
        allowWatchBookmarks="true",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        headers={"Accept": as_},
    ) as watch:
        await watch.take(2)


@each("watch", "a Table without its objects", {n: {"include": n} for n in ("None", "Object")})
async def table_include(s: Session, *, include: str) -> None:
    await s.configmap("a")
    headers = {"Accept": TABLE}
    await s.watched(CONFIGMAPS, **LIST, includeObject=include, headers=headers)


@case("watch", "a watch is not compressed")
async def gzip(s: Session) -> None:
    await s.make(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}})
    async with s.watch(CONFIGMAPS, **LIST, headers={"Accept-Encoding": "gzip"}) as watch:
        await watch.take(1)
    watch.events[0]["object"]["data"] = "<large>"


@each(
    "watch",
    "selectors that are none",
    {
        "labels": {"labelSelector": "-x=1"},
        "fields": {"fieldSelector": "data.k=v"},
        "syntax": {"fieldSelector": "metadata.name"},
    },
)
async def bad_selector(s: Session, **query: Any) -> None:
    await s.watched(CONFIGMAPS, **LIST, **query)


@case("watch", "a watch of everything, and of the cluster, with nothing to see")
async def nothing(s: Session) -> None:
    for path in (EVERYWHERE, NAMESPACES):
        await s.watched(path, **LIST, labelSelector=f"case={s.ident}")

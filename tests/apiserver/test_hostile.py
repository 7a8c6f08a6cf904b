"""Malicious requests: each gets an answer, and the server keeps running."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinform.apiserver import APIServer
from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.storage.versioned_store import Change

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"content-type": "application/json"}
YAML = {"content-type": "application/yaml"}
APPLY = {"content-type": "application/apply-patch+yaml"}
HUGE = "9" * 5000


def server(**options: Any) -> Application:
    application = Application(Cluster(seed=1), **options)
    application.start()
    return application


def send(
    application: Application,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> ServerResponse:
    """Return the answer; of a watch, only its beginning is read."""

    async def sent() -> ServerResponse:
        request = ServerRequest.of(method, target, headers=headers, body=body)
        async with asyncio.timeout(20):
            response = await application.handle(request)
            if not isinstance(response.body, bytes):
                await response.body.aclose()
                response.body = b""
        return response

    return asyncio.run(sent())


def status_of(response: ServerResponse) -> dict[str, Any]:
    assert isinstance(response.body, bytes)
    found: dict[str, Any] = json.loads(response.body)
    assert (found["kind"], found["code"]) == ("Status", response.status)
    return found


def refusal(body: bytes, headers: Mapping[str, str], *, code: int = 400) -> str:
    response = send(server(), "POST", MAPS, headers=headers, body=body)
    assert response.status == code, response.body
    message: str = status_of(response)["message"]
    return message


def config_map(name: str, **fields: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        **fields,
    }


# --- YAML


def test_aliases_that_multiply_are_refused_before_they_do() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    began = time.process_time()

    message = refusal("\n".join(lines).encode(), YAML)

    assert "yaml: document contains excessive aliasing" in message
    assert time.process_time() - began < 2


def test_a_long_text_is_not_repeated_by_aliases_without_end() -> None:
    body = f"a: &a {'x' * 1_000_000}\nb: [{','.join(['*a'] * 900)}]"

    assert "excessive aliasing" in refusal(body.encode(), YAML)


def test_aliases_of_ordinary_size_are_read() -> None:
    body = b"metadata: {name: a, labels: &l {a: b}, annotations: *l}\ndata: {<<: *l, c: d}\n"

    response = send(server(), "POST", MAPS, headers=YAML, body=body)

    assert isinstance(response.body, bytes)
    made = json.loads(response.body)
    assert made["metadata"]["annotations"] == {"a": "b"}
    assert made["data"] == {"a": "b", "c": "d"}


@pytest.mark.parametrize("body", [b"a: &me [*me]", b"&me {<<: *me}", b"&me [[*me]]"])
def test_what_contains_itself_is_refused(body: bytes) -> None:
    assert "yaml: anchor 'me' value contains itself" in refusal(body, YAML)


@pytest.mark.parametrize("body", [b"[" * 200_000, b"- " * 200_000, b"{a: " * 200_000])
def test_yaml_that_is_nested_without_end_does_not_end_the_process(body: bytes) -> None:
    assert "yaml: exceeded max depth of 10000" in refusal(body, YAML)


@pytest.mark.parametrize("number", [HUGE, "0x" + "f" * 2000, "1e400", "-1e400"])
def test_numbers_that_are_too_large_for_yaml_are_text(number: str) -> None:
    body = f"{{metadata: {{name: a, generation: {number}}}}}"

    assert "cannot unmarshal string into Go struct field" in refusal(body.encode(), YAML)


@pytest.mark.parametrize("body", ["a: *b".encode("utf-16"), b"\xff\xfe*", b"*\xff", b"a: \x00"])
def test_yaml_that_is_not_utf_8_is_refused(body: bytes) -> None:
    assert "yaml: " in refusal(body, YAML)


# --- JSON


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    body = rb'{"metadata":{"name":"a"},"data":{"a":"x\ud800\ud800\udc00y\udc00\\ud800"}}'

    response = send(server(), "POST", MAPS, headers=JSON, body=body)

    assert isinstance(response.body, bytes)
    assert json.loads(response.body)["data"]["a"] == "x\ufffd\U00010000y\ufffd\\ud800"


def test_many_fields_that_are_there_twice_are_noticed_in_time() -> None:
    pairs = ",".join(f'"f{n}":1' for n in range(20_000))
    body = f'{{"metadata":{{"name":"a"}},{pairs},{pairs}}}'
    began = time.process_time()

    response = send(server(), "POST", MAPS, headers=JSON, body=body.encode())

    assert response.status == 201
    assert time.process_time() - began < 5


def test_copies_of_copies_are_limited() -> None:
    application = server()
    body = json.dumps(config_map("a", data={"a": "b"})).encode()
    send(application, "POST", MAPS, headers=JSON, body=body)
    patch = [{"op": "copy", "from": "/data", "path": f"/data/{n}"} for n in range(60)]
    headers = {"content-type": "application/json-patch+json"}

    response = send(
        application, "PATCH", f"{MAPS}/a", headers=headers, body=json.dumps(patch).encode()
    )

    assert response.status == 422
    assert status_of(response)["message"].startswith("the server rejected our request")


# --- numbers and names in the query and the path


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", f"{MAPS}?limit={HUGE}"),
        ("GET", f"{MAPS}?limit=-{HUGE}"),
        ("GET", f"{MAPS}?resourceVersion={HUGE}"),
        ("GET", f"{MAPS}/a?resourceVersion={HUGE}"),
        ("GET", f"{MAPS}?watch=1&resourceVersion={HUGE}"),
        ("GET", f"{MAPS}?watch=1&timeoutSeconds={HUGE}"),
        ("DELETE", f"{MAPS}/a?gracePeriodSeconds={HUGE}"),
    ],
)
def test_numbers_out_of_all_bounds_are_called_that(method: str, target: str) -> None:
    assert "value out of range" in status_of(send(server(), method, target))["message"]


@pytest.mark.parametrize("number", ["9223372036854775808", "9" * 63])
def test_a_label_is_not_compared_with_what_no_integer_holds(number: str) -> None:
    response = send(server(), "GET", f"{MAPS}?labelSelector=a%3E{number}")

    assert response.status == 400
    assert "the value must be an integer" in status_of(response)["message"]


def test_a_version_out_of_bounds_is_not_an_internal_error() -> None:
    obj = config_map("a")
    obj["metadata"] = {"name": "a", "resourceVersion": HUGE}

    response = send(server(), "POST", MAPS, headers=JSON, body=json.dumps(obj).encode())

    assert response.status == 201


def test_a_quantity_of_thousands_of_digits_is_refused() -> None:
    container = {"name": "a", "image": "a", "resources": {"limits": {"cpu": HUGE}}}
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [container]}}
    pods = "/api/v1/namespaces/default/pods"

    response = send(server(), "POST", pods, headers=JSON, body=json.dumps(pod).encode())

    assert response.status == 400
    assert "unable to parse quantity" in status_of(response)["message"]


@pytest.mark.parametrize("path", ["/api/v1/watch?a=\udcff", f"{MAPS}/\udcff", "/apis/\udcff/v1/x"])
def test_bytes_in_a_path_that_are_no_utf_8_are_answered(path: str) -> None:
    assert send(server(), "GET", path).status in {404, 500}


def test_bytes_in_a_header_that_are_no_utf_8_are_answered() -> None:
    headers = {"impersonate-user": "\udcff", "authorization": "Bearer me"}

    assert send(server(token="me", rbac=True), "GET", MAPS, headers=headers).status == 403


def test_a_grace_period_of_all_eternity_is_accepted() -> None:
    application = server()
    pods = "/api/v1/namespaces/default/pods"
    spec = {
        "nodeName": "a",
        "terminationGracePeriodSeconds": 2**63 - 1,
        "containers": [{"name": "a", "image": "a"}],
    }
    body = json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode()
    send(application, "POST", pods, headers=JSON, body=body)

    assert send(application, "DELETE", f"{pods}/a").status == 200


def test_a_patch_of_many_operations_on_a_large_object_ends_in_time() -> None:
    application = server()
    body = json.dumps(config_map("a", data={f"k{n}": "" for n in range(20_000)})).encode()
    send(application, "POST", MAPS, headers=JSON, body=body)
    patch = [{"op": "add", "path": f"/data/z{n}", "value": ""} for n in range(9_000)]
    headers = {"content-type": "application/json-patch+json"}
    body = json.dumps(patch).encode()
    began = time.process_time()

    assert send(application, "PATCH", f"{MAPS}/a", headers=headers, body=body).status == 200

    assert time.process_time() - began < 3


def test_a_copy_and_its_original_change_apart() -> None:
    application = server()
    body = json.dumps(config_map("a", data={"a": "b"})).encode()
    send(application, "POST", MAPS, headers=JSON, body=body)
    patch = [
        {"op": "add", "path": "/data/c", "value": "d"},
        {"op": "copy", "from": "/data", "path": "/metadata/labels"},
        {"op": "add", "path": "/data/e", "value": "f"},
        {"op": "add", "path": "/metadata/labels/g", "value": "h"},
    ]
    headers = {"content-type": "application/json-patch+json"}
    body = json.dumps(patch).encode()

    response = send(application, "PATCH", f"{MAPS}/a", headers=headers, body=body)

    assert isinstance(response.body, bytes)
    made = json.loads(response.body)
    assert made["data"] == {"a": "b", "c": "d", "e": "f"}
    assert made["metadata"]["labels"] == {"a": "b", "c": "d", "g": "h"}


def test_the_columns_of_a_table_end_before_the_first_that_cannot_be_read() -> None:
    application = server()
    columns = [
        {"name": "a", "type": "string", "jsonPath": ".metadata.name"},
        {"name": "b", "type": "string", "jsonPath": ".spec['a"},
        {"name": "c", "type": "string", "jsonPath": ".metadata.name"},
    ]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": "e.com", "scope": "Cluster", "names": names, "versions": [version]}
    body = json.dumps({"metadata": {"name": "widgets.e.com"}, "spec": spec}).encode()
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert send(application, "POST", definitions, headers=JSON, body=body).status == 201
    widget = {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "x"}}
    body = json.dumps(widget).encode()
    send(application, "POST", "/apis/e.com/v1/widgets", headers=JSON, body=body)
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    response = send(application, "GET", "/apis/e.com/v1/widgets", headers=accept)

    assert isinstance(response.body, bytes)
    table = json.loads(response.body)
    assert [it["name"] for it in table["columnDefinitions"]] == ["Name", "a"]
    assert [it["cells"] for it in table["rows"]] == [["x", "x"]]


def test_empty_fields_have_no_owner() -> None:
    container = {"name": "a", "image": "a", "workingDir": "", "args": []}
    spec = {"nodeName": "", "hostname": "", "containers": [container]}
    body = json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode()

    response = send(server(), "POST", "/api/v1/namespaces/default/pods", headers=JSON, body=body)

    assert isinstance(response.body, bytes)
    [entry] = json.loads(response.body)["metadata"]["managedFields"]
    owned = entry["fieldsV1"]["f:spec"]
    assert not {"f:nodeName", "f:hostname"} & owned.keys()
    assert not {"f:workingDir", "f:args"} & owned["f:containers"]['k:{"name":"a"}'].keys()


# --- connections


class Sockets:
    """Connections that stay open until all of them are closed."""

    def __init__(self, api: APIServer) -> None:
        self._port = int(api.url.rpartition(":")[2])
        self._writers: list[asyncio.StreamWriter] = []

    async def send(self, head: str, *headers: str, body: bytes = b"") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(writer)
        lines = [f"{head} HTTP/1.1", "Host: localhost", "Authorization: Bearer x", *headers]
        lines += [f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        return reader

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def test_a_server_with_open_watches_and_waits_stops_at_once() -> None:
    loop = asyncio.get_running_loop()
    async with APIServer(token="x") as api:
        sockets = Sockets(api)
        for _ in range(50):
            reader = await sockets.send(f"GET {MAPS}?watch=1&resourceVersion=1")
            assert b" 200 " in await reader.readline()
        waits = [await sockets.send(f"GET {MAPS}?resourceVersion=9999") for _ in range(5)]
        await (await sockets.send("GET /version")).readline()
        began = loop.time()
    assert loop.time() - began < 1
    assert b" 504 " in await waits[0].readline()
    await sockets.close()


async def test_the_content_encoding_of_a_body_is_ignored() -> None:
    headers = ("Content-Type: application/json", "Content-Encoding: gzip")
    async with APIServer(token="x") as api:
        sockets = Sockets(api)
        reader = await sockets.send(f"POST {MAPS}", *headers, body=b"abc")
        assert b" 400 " in await reader.readline()
        answer = await reader.readuntil(b'"code"')
        await sockets.close()
    assert b"invalid character 'a' looking for beginning of value" in answer


# --- what comes out in headers and in the log


def test_no_warning_breaks_the_headers_of_an_answer() -> None:
    body = b'data:\n  "x\\r\\nSet-Cookie: a": "1"\n  "x\\r\\nSet-Cookie: a": "1"\n'
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + body

    response = send(server(), "PATCH", f"{MAPS}/a?fieldManager=x", headers=APPLY, body=body)

    said = r'299 - "line 6: key \"x\\r\\nSet-Cookie: a\" already set in map"'
    assert response.warning_headers() == [said]


def test_warnings_that_would_break_a_header_are_left_out() -> None:
    response = ServerResponse(warnings=["a\r\nb", "good", "\ud800", "good"])

    assert response.warning_headers() == ['299 - "good"']


def test_of_many_long_warnings_so_much_is_sent_as_fits() -> None:
    response = ServerResponse(warnings=[f"{n:03}" + "f" * 1000 for n in range(30)])

    assert [len(it) for it in response.warning_headers()] == [256 + len('299 - ""')] * 16


def test_no_token_and_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    application = server(token="sesame-street")

    def fail(resource: str, change: Change) -> None:
        raise KeyError("something is broken")

    application.cluster.storage.observe(fail)
    body = json.dumps({"metadata": {"name": "a"}, "stringData": {"a": "hunter2"}}).encode()
    path = "/~sesame-street/api/v1/namespaces/default/secrets"

    with caplog.at_level(logging.DEBUG):
        response = send(application, "POST", path, headers=JSON, body=body)

    assert response.status == 500
    assert "request failed: POST /api/v1/namespaces/default/secrets" in caplog.text
    assert "sesame" not in caplog.text
    assert "hunter2" not in caplog.text


# --- anything at all

_words = st.one_of(
    st.sampled_from(
        "metadata name namespace labels annotations finalizers ownerReferences uid spec status "
        "data managedFields fieldsV1 f:metadata k: v: . $patch delete replace resourceVersion kind "
        "apiVersion v1 ConfigMap List generation deletionTimestamp containers ports template "
        "selector creationTimestamp default a".split()
    ),
    st.text(max_size=8),
)
_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        _words,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_words, inner, max_size=4)
    ),
    max_leaves=12,
)
_objects = st.builds(
    lambda name, meta, more: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        **more,
        "metadata": {**meta, "name": name},
    },
    st.sampled_from(["a", "b", "", "A b"]),
    st.dictionaries(_words, _values, max_size=3),
    st.dictionaries(_words, _values, max_size=3),
)
_bodies = st.one_of(
    st.binary(max_size=60),
    st.one_of(_objects, _values).map(lambda it: json.dumps(it).encode()),
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"])},
            optional={
                "path": st.lists(_words, max_size=3).map(lambda it: "/" + "/".join(it)),
                "from": st.lists(_words, max_size=3).map(lambda it: "/" + "/".join(it)),
                "value": _values,
            },
        ),
        max_size=4,
    ).map(lambda it: json.dumps(it).encode()),
    st.binary(max_size=40).map(lambda it: b"k8s\0" + it),
)
_types = st.sampled_from(
    "application/json application/yaml application/vnd.kubernetes.protobuf application/cbor "
    "application/json-patch+json application/merge-patch+json "
    "application/strategic-merge-patch+json application/apply-patch+yaml text/plain".split()
)
_paths = st.one_of(
    st.sampled_from(
        [
            MAPS,
            f"{MAPS}/a",
            f"{MAPS}/a/status",
            "/api/v1/configmaps",
            "/api/v1/namespaces",
            "/api/v1/namespaces/a",
            "/api/v1/namespaces/a/finalize",
            "/api/v1/watch/configmaps",
            "/api/v1/namespaces/default/pods",
            "/api/v1/namespaces/default/pods/a",
            "/api/v1/namespaces/default/pods/a/eviction",
            "/api/v1/namespaces/default/pods/a/binding",
            "/api/v1/namespaces/default/pods/a/ephemeralcontainers",
            "/api/v1/namespaces/default/services",
            "/api/v1/namespaces/default/services/a",
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            "/apis/apps/v1/namespaces/default/deployments",
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
            "/apis/batch/v1/namespaces/default/jobs",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "/openapi/v3",
            "/apis",
            "/version",
        ]
    ),
    st.text(max_size=20).map(lambda it: f"/{it}"),
    st.lists(_words, max_size=6).map(lambda it: "/api/v1/" + "/".join(it)),
)
_queries = st.dictionaries(
    st.sampled_from(
        "limit continue resourceVersion resourceVersionMatch labelSelector fieldSelector watch "
        "timeoutSeconds sendInitialEvents allowWatchBookmarks dryRun fieldManager force "
        "fieldValidation gracePeriodSeconds propagationPolicy orphanDependents pretty "
        "includeObject".split()
    ),
    st.one_of(
        st.sampled_from(
            "1 0 -1 true false All Strict Exact NotOlderThan Orphan Foreground a=b a,!b "
            "metadata.name=a x eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0".split()
        ),
        st.text(max_size=8),
    ),
    max_size=3,
)
_accepts = st.one_of(
    st.sampled_from(
        [
            "application/json",
            "application/yaml",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/vnd.kubernetes.protobuf",
            "*/*",
        ]
    ),
    st.text(max_size=12),
)
_methods = st.sampled_from("GET POST PUT PATCH PATCH DELETE HEAD OPTIONS BREW".split())


@pytest.mark.slow
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    requests=st.lists(
        st.tuples(_methods, _paths, _queries, _types, _accepts, _bodies), min_size=1, max_size=6
    )
)
def test_every_request_is_answered_without_an_internal_error(
    caplog: pytest.LogCaptureFixture,
    requests: list[tuple[str, str, dict[str, str], str, str, bytes]],
) -> None:
    caplog.clear()
    application = server()
    for method, path, query, media, accept, body in requests:
        headers = {"content-type": media, "accept": accept}
        request = ServerRequest.of(method, path, headers=headers, body=body)
        request.query = {**request.query, **{name: [value] for name, value in query.items()}}
        response = asyncio.run(_answered(application, request))
        assert 200 <= response.status < 600
        response.warning_headers()
        for failure in caplog.records:
            raise AssertionError(f"{request} {body!r}") from (failure.exc_info or [None] * 2)[1]
    assert send(application, "GET", MAPS).status == 200


async def _answered(application: Application, request: ServerRequest) -> ServerResponse:
    async with asyncio.timeout(20):
        response = await application.handle(request)
        if not isinstance(response.body, bytes):
            await response.body.aclose()
    return response

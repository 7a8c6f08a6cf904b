"""The request builder: what it sends, what it refuses, what it makes of answers."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinform.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    DecodeError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ResourceExpiredError,
    ServerTimeoutError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UsageError,
)
from kinform.objects.object import Object
from kinform.rest.client import RESTClient
from kinform.rest.options import ListOptions, PatchType
from kinform.rest.rate_limits import TokenBucketLimiter
from kinform.testing import in_virtual_time
from tests.support.scripted import Answer, ScriptedTransport, Step, answer, connection

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}}


def client(*steps: Step, version: str = "v1") -> tuple[RESTClient, ScriptedTransport]:
    conn, transport = connection(*(steps or (answer(200, POD),)))
    return RESTClient(conn, version), transport


def url(request_of, version: str = "v1") -> str:
    return request_of(client(version=version)[0]).url.removeprefix("https://api.test")


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        (lambda c: c.get().resource("pods"), "/api/v1/pods"),
        (
            lambda c: c.get().namespace("a").resource("Pods").name("x"),
            "/api/v1/namespaces/a/pods/x",
        ),
        (lambda c: c.get().namespace("").resource("pods"), "/api/v1/pods"),
        (
            lambda c: c.get().namespace_if_scoped("a", scoped=False).resource("nodes").name("n"),
            "/api/v1/nodes/n",
        ),
        (
            lambda c: c.put().namespace("a").resource("pods").name("x").subresource("status"),
            "/api/v1/namespaces/a/pods/x/status",
        ),
        (
            lambda c: c.get().prefix("watch").namespace("a").resource("pods"),
            "/api/v1/watch/namespaces/a/pods",
        ),
        (
            lambda c: c.get().resource("pods").name("x").subresource("proxy").suffix("a", "b/c"),
            "/api/v1/pods/x/proxy/a/b/c",
        ),
        (lambda c: c.get().abs_path("/version"), "/version"),
        (lambda c: c.get().abs_path("apis", "apps/v1"), "/apis/apps/v1"),
        (lambda c: c.get().abs_path("/openapi/v3/"), "/openapi/v3/"),
        (lambda c: c.get().abs_path("/x/").resource("pods"), "/x/pods"),
        (lambda c: c.get().abs_path("/"), "/"),
        (lambda c: c.get().resource("pods").name("ü x:1"), "/api/v1/pods/%C3%BC%20x:1"),
        (
            lambda c: c.get().resource("pods").params({"a": True, "b": None, "c": [1, "x y"]}),
            "/api/v1/pods?a=true&c=1&c=x+y",
        ),
        (
            lambda c: (
                c.get().resource("pods").params(ListOptions(limit=5, timeout=2.4, watch=True))
            ),
            "/api/v1/pods?limit=5&timeoutSeconds=2&watch=true",
        ),
        (lambda c: c.get().resource("pods").timeout(1.5), "/api/v1/pods?timeout=1.5s"),
        (lambda c: c.get().resource("pods").timeout(1234567), "/api/v1/pods?timeout=1234567s"),
    ],
)
def test_the_url_is_put_together_in_kubernetes_order(request_of, expected: str) -> None:
    """CG-H08."""
    assert url(request_of) == expected


def test_a_group_has_its_own_root() -> None:
    assert url(lambda c: c.get().resource("deployments"), "apps/v1") == "/apis/apps/v1/deployments"


SETTERS = ["namespace", "resource", "name", "subresource"]


@pytest.mark.parametrize("setter", SETTERS)
@pytest.mark.parametrize("value", [".", "..", "a/b", "a%2fb", "a\nb", "\x00", "a\x7f", "\ud800"])
def test_no_segment_can_leave_its_place(setter: str, value: str) -> None:
    """CG-H06."""
    request = getattr(client()[0].get(), setter)(value)
    with pytest.raises(UsageError, match=setter):
        _ = request.url


@pytest.mark.parametrize("setter", ["prefix", "suffix", "abs_path"])
@pytest.mark.parametrize("value", ["..", "a/../b", "a/./b", "a%2e", "a\r"])
def test_free_segments_are_checked_piece_by_piece(setter: str, value: str) -> None:
    with pytest.raises(UsageError):
        _ = getattr(client()[0].get(), setter)(value).url


@given(st.text(max_size=20))
def test_any_name_is_refused_or_reaches_the_server_unchanged(name: str) -> None:
    from urllib.parse import unquote

    try:
        sent = client()[0].get().resource("pods").name(name).url
    except UsageError:
        return
    path = urlsplit(sent).path
    assert path.count("/") == 4
    assert unquote(path.rpartition("/")[2]) == name


@pytest.mark.parametrize("version", ["a/b/c", "../secret", "v1?x=y#", "", "a b/v1", "%2e/v1"])
def test_an_api_version_cannot_leave_its_place_either(version: str) -> None:
    with pytest.raises(UsageError, match="version"):
        RESTClient(connection(answer(200))[0], version)


def test_a_parameter_that_is_no_text_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="parameter"):
        _ = client()[0].get().resource("pods").params({"a": "\ud800"}).url


@pytest.mark.parametrize("setter", SETTERS)
def test_setting_a_part_twice_is_a_mistake(setter: str) -> None:
    """CG-H06."""
    request = getattr(getattr(client()[0].get(), setter)("a"), setter)("b")
    with pytest.raises(UsageError, match=f"{setter} is set already"):
        _ = request.url


@pytest.mark.parametrize("setter", ["resource", "name"])
def test_empty_names_are_refused(setter: str) -> None:
    with pytest.raises(UsageError, match="must not be empty"):
        _ = getattr(client()[0].get(), setter)("").url


@in_virtual_time
async def test_the_first_mistake_is_the_one_told_and_nothing_is_sent() -> None:
    rest, transport = client()
    request = rest.get().name("").resource("a/b").header("x", "a\nb").timeout(-1)
    with pytest.raises(UsageError, match="name must not be empty"):
        await request.do()
    assert transport.requests == []


@pytest.mark.parametrize(
    ("method", "named", "refused"),
    [
        ("POST", False, True),
        ("GET", True, True),
        ("PUT", True, True),
        ("PATCH", True, True),
        ("DELETE", True, True),
        ("GET", False, False),
        ("DELETE", False, False),
    ],
)
def test_an_empty_namespace_is_refused_where_one_is_needed(
    method: str, named: bool, refused: bool
) -> None:
    """CG-H07."""
    request = client()[0].verb(method).namespace("").resource("pods")
    request = request.name("x") if named else request
    if refused:
        with pytest.raises(UsageError, match="namespace must be set"):
            _ = request.url
    else:
        assert request.url.endswith("/api/v1/pods")


@pytest.mark.parametrize(("name", "value"), [("X", "a\r\nEvil: 1"), ("X\n", "a"), ("", "a")])
def test_headers_cannot_smuggle_lines(name: str, value: str) -> None:
    with pytest.raises(UsageError, match="header"):
        _ = client()[0].get().header(name, value).url


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (b"raw", b"raw"),
        ({"a": None}, b'{"a":null}'),
        ([1], b"[1]"),
        (Object.from_dict(POD), json.dumps(POD, separators=(",", ":")).encode()),
    ],
)
@in_virtual_time
async def test_bodies_are_encoded_with_their_type(body: object, sent: bytes) -> None:
    rest, transport = client()
    await rest.post().resource("pods").body(body).do()
    assert transport.requests[0].body == sent
    assert transport.requests[0].headers["Content-Type"] == "application/json"


@in_virtual_time
async def test_a_body_that_is_no_json_is_the_callers_mistake() -> None:
    rest, transport = client()
    with pytest.raises(UsageError):
        await rest.post().resource("pods").body(object()).do()
    assert transport.requests == []


@pytest.mark.parametrize("patch_type", list(PatchType))
@in_virtual_time
async def test_a_patch_says_of_which_kind_it_is(patch_type: PatchType) -> None:
    rest, transport = client()
    await rest.patch(patch_type).resource("pods").name("x").body({}).do()
    assert transport.requests[0].method == "PATCH"
    assert transport.requests[0].headers["Content-Type"] == patch_type.content_type


@in_virtual_time
async def test_large_answers_may_be_compressed_and_watches_never() -> None:
    rest, transport = client(answer(200, POD), Answer(200, {}))
    await rest.get().resource("pods").do()
    async with rest.get().resource("pods").watch():
        pass
    async with rest.get().resource("pods").stream():
        pass
    sent = [request.headers["Accept-Encoding"] for request in transport.requests]
    assert sent == ["gzip", "identity", "identity"]
    assert [request.long_lived for request in transport.requests] == [False, True, True]


@in_virtual_time
async def test_the_callers_headers_win() -> None:
    rest, transport = client()
    await rest.get().resource("pods").header("Accept", "application/yaml").raw()
    assert transport.requests[0].headers["Accept"] == "application/yaml"


@in_virtual_time
async def test_a_request_may_have_its_own_limiter_and_retries() -> None:
    rest, transport = client(answer(503, headers={"Retry-After": "1"}))
    limiter = TokenBucketLimiter(qps=1, burst=1)
    with pytest.raises(UnavailableError):
        await rest.get().resource("pods").rate_limiter(limiter).max_retries(-5).do()
    assert len(transport.requests) == 1
    assert await_free(limiter)


def await_free(limiter: TokenBucketLimiter) -> bool:
    return limiter._bucket.reserve(0.0) > 0  # its one token was taken


class Named(msgspec.Struct):
    kind: str


@in_virtual_time
async def test_answers_are_decoded_as_the_model_asked_for() -> None:
    rest, _ = client()
    assert await rest.get().resource("pods").name("web").into(Named) == Named("Pod")
    assert (await rest.get().resource("pods").name("web").into(Object)).name == "web"
    assert await rest.get().resource("pods").name("web").into(dict) == POD


STATUS = {"kind": "Status", "status": "Failure", "message": "sorry"}
CODES = [
    (400, "BadRequest", InvalidError),
    (401, "Unauthorized", UnauthorizedError),
    (403, "Forbidden", ForbiddenError),
    (404, "NotFound", NotFoundError),
    (409, "Conflict", ConflictError),
    (410, "Expired", ResourceExpiredError),
    (410, "Gone", ResourceExpiredError),
    (422, "Invalid", InvalidError),
    (429, "TooManyRequests", TooManyRequestsError),
    (500, "InternalError", ApiError),
    (500, "ServerTimeout", ServerTimeoutError),
    (502, "", UnavailableError),
    (503, "ServiceUnavailable", UnavailableError),
    (504, "Timeout", ServerTimeoutError),
]


@pytest.mark.parametrize(("code", "reason", "expected"), CODES)
@in_virtual_time
async def test_an_error_has_the_class_of_its_reason(
    code: int, reason: str, expected: type[ApiError]
) -> None:
    rest, _ = client(answer(code, {**STATUS, "code": code, "reason": reason}))
    with pytest.raises(ApiError, match="sorry") as caught:
        await rest.get().resource("pods").do()
    assert type(caught.value) is expected
    assert caught.value.code == code
    assert caught.value.method == "GET"
    assert caught.value.url == "https://api.test/api/v1/pods"


BODIES = {
    "empty": Answer(0, {}, []),
    "html": answer(0, body=b"<html><h1>Bad gateway</h1>", headers={"Content-Type": "text/html"}),
    "text": answer(0, body=b"no\x00pe", headers={"Content-Type": "text/plain"}),
    "broken json": answer(0, body=b'{"kind":', headers={"Content-Type": "application/json"}),
    "other json": answer(0, {"error": "nope"}),
    "invalid utf-8": answer(
        0, body=b'{"kind":"\xff"}', headers={"Content-Type": "application/json"}
    ),
}


@pytest.mark.parametrize("shape", BODIES)
@pytest.mark.parametrize(
    ("code", "expected"),
    [(c, e) for c, r, e in CODES if r not in {"ServerTimeout", "Gone"}],
)
@in_virtual_time
async def test_without_a_status_the_code_decides(
    code: int, expected: type[ApiError], shape: str
) -> None:
    said = BODIES[shape]
    rest, _ = client(Answer(code, said.headers, said.pieces))
    with pytest.raises(ApiError) as caught:
        await rest.get().resource("pods").do()
    assert type(caught.value) is expected
    assert caught.value.code == code
    assert caught.value.reason
    assert caught.value.message.isprintable()
    assert "<" not in caught.value.message


@in_virtual_time
async def test_a_409_on_create_without_a_status_means_it_exists() -> None:
    rest, _ = client(answer(409))
    with pytest.raises(AlreadyExistsError):
        await rest.post().resource("pods").body({}).do()


@in_virtual_time
async def test_an_error_carries_details_and_causes() -> None:
    details = {
        "name": "web",
        "kind": "pods",
        "causes": [{"field": "spec.x", "message": "bad", "reason": "FieldValueInvalid"}],
        "retryAfterSeconds": 4,
    }
    rest, _ = client(answer(422, {**STATUS, "code": 422, "reason": "Invalid", "details": details}))
    with pytest.raises(InvalidError) as caught:
        await rest.get().resource("pods").do()
    assert caught.value.causes[0].field == "spec.x"
    assert caught.value.details is not None
    assert caught.value.details.kind == "pods"
    assert caught.value.retry_after == 4.0


@pytest.mark.parametrize(
    "status",
    [
        {"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}},
        {"details": {"causes": [{"message": "Too large resource version"}]}},
        {"message": "Too large resource version: 9, current: 3"},
    ],
)
@in_virtual_time
async def test_a_version_from_the_future_is_recognised_in_all_its_forms(status: dict) -> None:
    rest, _ = client(answer(504, {**STATUS, "code": 504, "reason": "Timeout", **status}))
    with pytest.raises(ServerTimeoutError) as caught:
        await rest.get().resource("pods").do()
    assert caught.value.is_resource_version_too_large


@in_virtual_time
async def test_a_failed_status_is_an_error_also_with_200() -> None:
    rest, _ = client(answer(200, {**STATUS, "code": 404, "reason": "NotFound"}))
    with pytest.raises(NotFoundError):
        await rest.delete().resource("pods").name("x").do()


@in_virtual_time
async def test_a_success_status_is_none() -> None:
    rest, _ = client(answer(200, {"kind": "Status", "status": "Success"}))
    await rest.delete().resource("pods").name("x").do()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (answer(200, body=b"<html>", headers={"Content-Type": "text/html"}), "login page"),
        (Answer(200, {}, []), "empty"),
        (answer(200, body=b"{", headers={"Content-Type": "application/json"}), "truncated"),
        (answer(200, body=b'{"kind":"\xff"}'), "UTF-8|utf-8|str"),
        (answer(200, {"kind": 1}), "kind"),
    ],
)
@in_virtual_time
async def test_an_unreadable_success_is_a_decode_error_that_names_the_request(
    said: Answer, message: str
) -> None:
    rest, _ = client(said)
    with pytest.raises(DecodeError, match=message) as caught:
        await rest.get().resource("pods").name("x").into(Named)
    assert "GET https://api.test/api/v1/pods/x" in str(caught.value)


LIST = {
    "kind": "PodList",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "7"},
    "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
}


@in_virtual_time
async def test_a_list_is_read_item_by_item_with_its_version() -> None:
    rest, _ = client(answer(200, LIST))
    pods = await rest.get().resource("pods").list()
    assert [pod.name for pod in pods] == ["a", "b"]
    assert [pod.kind for pod in pods] == ["Pod", "Pod"]
    assert (pods.resource_version, pods.kind, len(pods)) == ("7", "PodList", 2)
    assert [entry.metadata.name for entry in pods.entries()] == ["a", "b"]


@pytest.mark.parametrize(
    "said",
    [
        answer(200, {"kind": "Table", "items": []}),
        answer(200, {"kind": "Pod", "metadata": {}}),
        answer(200, body=json.dumps(LIST).encode()[:-5]),
        answer(200, body=b"<html>", headers={"Content-Type": "text/html"}),
        Answer(200, {}, []),
    ],
)
@in_virtual_time
async def test_what_is_no_list_is_never_taken_for_an_empty_one(said: Answer) -> None:
    rest, _ = client(said)
    with pytest.raises(DecodeError, match="GET https://api"):
        await rest.get().resource("pods").list()


@in_virtual_time
async def test_a_failed_status_in_place_of_a_list_is_its_error() -> None:
    rest, _ = client(answer(200, {**STATUS, "code": 410, "reason": "Expired"}))
    with pytest.raises(ResourceExpiredError, match="GET https://api"):
        await rest.get().resource("pods").list()


@in_virtual_time
async def test_the_timeout_is_told_to_the_server_and_kept() -> None:
    rest, transport = client(Answer(200, {}, [], stalls=True))
    with pytest.raises(Exception, match="no answer within 2 s"):
        await rest.get().resource("pods").timeout(2).do()
    query = parse_qs(urlsplit(transport.requests[0].url).query)
    assert query == {"timeout": ["2s"]}

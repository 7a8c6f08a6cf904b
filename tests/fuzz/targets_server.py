"""The embedded server: any requests, in any order, get answers that a client can read."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import yaml

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints.application import Application
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.server import preload
from kinform.errors import DecodeError
from kinform.rest import _responses, warnings
from kinform.sansio.wire.list import ListDecoder
from kinform.sansio.wire.watch import WatchDecoder
from kinform.testing import virtual_time

_MOST = 8
_BETWEEN = b"\n%%\n"
_LISTS = ("/api/v1/configmaps", "/api/v1/pods", "/api/v1/namespaces")
log = logging.getLogger("kinform.apiserver")


def fuzz_server(data: bytes) -> None:
    """Every request is answered; no response is a server failure, and the server continues.

    Input: requests with ``%%`` between them; each a line with method and target, lines of
    headers, an empty line, the body.
    """
    preload()  # from files, the first time
    failures = _Failures()
    log.addHandler(failures)
    propagates, log.propagate = log.propagate, False
    try:
        virtual_time.run(_session([_request(part) for part in data.split(_BETWEEN)[:_MOST]]))
    finally:
        log.removeHandler(failures)
        log.propagate = propagates
    for failure in failures.found:
        raise failure


class _Failures(logging.Handler):
    """Keeps the exceptions that the server answers with 500 and tells its log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.found.append(error or AssertionError(record.getMessage()))


def _request(text: bytes) -> ServerRequest:
    head, _, body = text.partition(b"\n\n")
    first, *lines = head.decode("utf-8", "surrogateescape").split("\n")
    method, _, target = first.partition(" ")
    headers = {
        name.strip(): value.strip() for name, _, value in (it.partition(":") for it in lines)
    }
    return ServerRequest.of(method, target, headers=headers, body=body)


async def _session(requests: list[ServerRequest]) -> None:
    application = Application(Cluster(seed=1, history=20))
    application.start()
    for request in requests:
        await _answered(application, request)
    for path in _LISTS:
        answer = await _answered(application, ServerRequest.of("GET", path))
        assert answer.status == 200
        decoder = ListDecoder()
        assert isinstance(answer.body, bytes)
        assert all(item.head for item in decoder.feed(answer.body))
        decoder.finish()


async def _answered(application: Application, request: ServerRequest) -> ServerResponse:
    answer = await application.handle(request)
    assert 200 <= answer.status < 600
    assert all(warning.isprintable() for warning in answer.warning_headers())
    assert all(value.isprintable() for value in answer.headers.values())
    body = answer.body
    if isinstance(body, bytes):
        _check_body(answer, body)
        return answer
    try:
        await _check_watch(answer)
    finally:
        await body.aclose()
    return answer


def _check_body(answer: ServerResponse, body: bytes) -> None:
    assert b"Traceback" not in body or answer.status < 300
    if answer.headers.get("Content-Encoding") or not body:
        return
    kind = answer.headers.get("Content-Type", "")
    if kind.startswith("application/json"):
        try:
            content: Any = json.loads(body, parse_constant=_refuse)
        except RecursionError:
            return
        if answer.status >= 400:
            _check_refusal(answer, content, body)
    elif kind.startswith("application/yaml"):
        yaml.safe_load(body)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def _check_refusal(answer: ServerResponse, content: Any, body: bytes) -> None:
    """The client makes an error of it, with the code and the words of the server."""
    if content.get("kind") == "Status":
        assert content["code"] == answer.status
        error = _responses.error_of_answer(
            answer.status, answer.headers, body, method="GET", url="", wall=0.0
        )
        assert error.code == answer.status
        assert error.reason == content.get("reason", "")
        sent = answer.warning_headers()
        assert len(warnings.parse_warnings(", ".join(sent))) == len(sent)


async def _check_watch(answer: ServerResponse) -> None:
    """Read what comes at once; of a JSON watch, all of it must be frames."""
    assert not isinstance(answer.body, bytes)
    decoder = WatchDecoder()
    is_json = answer.headers.get("Content-Type", "").partition(";")[0] == "application/json"
    try:
        async with asyncio.timeout(1):
            for _ in range(20):
                chunk = await anext(answer.body, None)
                if chunk is None:
                    break
                if is_json:
                    decoder.feed(bytes(chunk))
    except TimeoutError:
        pass
    except DecodeError as exc:
        raise AssertionError("the server's watch cannot be read") from exc
    assert decoder.failure is None

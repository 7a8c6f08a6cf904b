"""Objects and error responses: heads, members, Status, headers."""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import msgspec

from kinform.apiserver.endpoints.messages import ServerResponse
from kinform.errors import ApiError, DecodeError
from kinform.meta import ObjectMeta
from kinform.objects.object import Object
from kinform.objects.storage import Codec, Packer
from kinform.rest import _responses, warnings
from kinform.rest.transport import Headers
from kinform.sansio.retry import MAX_RETRY_AFTER, Purpose, retry_after, retry_delay
from kinform.sansio.wire import heads, scan
from tests.fuzz.cutting import chance

_NOW = 1_750_000_000.0
_STEPS = (
    "metadata",
    "name",
    "spec",
    "status",
    "containers",
    "labels",
    "a",
    "",
    "é",
    '"',
    0,
    1,
    -1,
    -9,
)


# --- objects -----------------------------------------------------------------------------------


def fuzz_objects(data: bytes) -> None:
    """Every way to read a value gives the result of a full decoder, or a DecodeError."""
    salvaged = heads.salvage(data)
    with contextlib.suppress(ValueError):
        for start, end in scan.members(data).values():
            assert 0 < start < end < len(data)
    head = heads.try_head(data)
    if isinstance(head, DecodeError):
        assert head.__traceback__ is None
        assert head.key == (str(salvaged.key) if salvaged.name else "")
        return
    obj = Object.from_bytes(data)
    content = _whole(data)
    _check_salvage(salvaged, obj)
    for path in _paths(data, content):
        _check_path(obj, path, content)
    if content is not None:
        assert obj.to_dict() == dict(obj) == content
        assert [*obj] == [*content]
        assert len(obj) == len(content)
    packed = Object.from_bytes(data)
    packed.pack(_packer())
    assert packed == obj
    assert packed.raw == data
    assert repr(packed) == repr(obj)
    assert _annotations(packed) == _annotations(obj)


def _annotations(obj: Object) -> dict[str, str] | str:
    try:
        return dict(obj.annotations)
    except DecodeError as exc:
        return str(exc)


@functools.cache
def _packer() -> Packer:
    return Codec().packer()


def _whole(data: bytes) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return found if found == found else None  # noqa: PLR0124 - not a number is in it


def _check_salvage(salvaged: ObjectMeta, obj: Object) -> None:
    """The metadata rescued from an unreadable object equals that of a readable one."""
    meta = obj.metadata
    if b"\\" not in obj.raw:  # names of members are compared as they are written
        mine = (salvaged.name, salvaged.namespace, salvaged.uid, salvaged.resource_version)
        assert mine == (meta.name, meta.namespace, meta.uid, meta.resource_version)


def _paths(data: bytes, content: dict[str, Any] | None) -> list[tuple[str | int, ...]]:
    """Return some paths: up to four that lead somewhere, and two by chance."""
    rand = chance(data)
    found: list[tuple[str | int, ...]] = []
    for _ in range(4):
        value: Any = content
        path: list[str | int] = []
        while isinstance(value, dict | list) and value and len(path) < 6 and rand.random() < 0.8:
            keys = sorted(value) if isinstance(value, dict) else range(len(value))
            step: Any = rand.choice([*keys])
            path.append(step)
            value = value[step]
        found.append(tuple(path))
    found.extend(tuple(rand.choices(_STEPS, k=rand.randint(1, 4))) for _ in range(2))
    return found


def _check_path(obj: Object, path: tuple[str | int, ...], content: dict[str, Any] | None) -> None:
    nothing = object()
    try:
        value = obj.at(*path, default=nothing)
    except DecodeError:
        assert content is None, path
        return
    if content is not None:
        expected = _at(content, path)
        assert value is nothing if expected is None else value == expected, path


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        if isinstance(step, int):
            is_there = isinstance(value, list) and -len(value) <= step < len(value)
        else:
            is_there = isinstance(value, dict) and step in value
        if not is_there:
            return None
        value = value[step]
    return value


# --- answers -----------------------------------------------------------------------------------


def fuzz_status(data: bytes) -> None:
    """A response without success becomes one error that is printable and has a usable delay.

    Input: a code, lines of headers, an empty line, the body.
    """
    code, headers, body = _answer(data)
    error = _responses.error_of_answer(code, headers, body, method="GET", url="/api", wall=_NOW)
    _check_error(error)
    hidden = _responses.error_of_status(body, method="GET", url="/api")
    if hidden is not None:
        _check_error(hidden)
        assert hidden.status.status == "Failure"
    if not _responses.is_json(headers):
        assert error.code == code
        with contextlib.suppress(DecodeError):
            _responses.check_json(headers, method="GET", url="/api")
            raise AssertionError("a page was taken for data")


def _answer(data: bytes) -> tuple[int, Headers, bytes]:
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")
    code = int(first) if first.isascii() and first.isdigit() and len(first) == 3 else 500
    fields = [line.partition(":")[::2] for line in lines]
    return code, Headers((name.strip(), value.strip()) for name, value in fields), body


def _check_error(error: ApiError) -> None:
    assert str(error).isprintable(), error
    assert len(str(error)) < 30_000
    assert error.retry_after is None or error.retry_after >= 0
    assert isinstance(error.is_resource_version_too_large, bool)
    for method in ("GET", "POST"):
        for purpose in Purpose:
            delay = retry_delay(error, method=method, purpose=purpose, rand=0.999)
            assert delay is None or 0 <= delay <= MAX_RETRY_AFTER * 1.25


def fuzz_headers(data: bytes) -> None:
    """Headers of any text are read or passed over; a warning arrives as it was sent."""
    text = data.decode("utf-8", "surrogateescape")
    wait = retry_after(text, wall=_NOW)
    assert wait is None or (wait >= 0 and not math.isnan(wait))
    if text.strip().isascii() and text.strip().isdigit():
        assert wait == float(text)
    for warning in warnings.parse_warnings(text):
        assert warning.text.isprintable()
        assert 0 <= warning.code <= 999
    _responses.is_json({"Content-Type": text})
    lines = text.split("\n")
    sent = ServerResponse(warnings=lines).warning_headers()
    if sum(map(len, lines)) < 2000:
        read = [warning.text for warning in warnings.parse_warnings(", ".join(sent))]
        assert {line for line in lines if line.isprintable()} <= {*read}
        assert not all(map(str.isprintable, lines)) or read == [*dict.fromkeys(lines)]
    parts = [line.partition(":") for line in lines if line.isascii()]
    fields = [(name, value) for name, _, value in parts]
    headers = Headers(fields)
    for name, value in fields:
        assert value in headers[name.upper()]
        assert value in headers[name]
    assert len(headers) == len([*headers]) == len({name.lower() for name, _ in fields})
    assert repr(headers)

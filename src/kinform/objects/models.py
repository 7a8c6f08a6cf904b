"""Models: decoding of JSON into the classes that users declare, and encoding.

A model declares a part of an object: it is a projection, members it does not declare are skipped.
Errors of its library are raised as a `DecodeError` without payload. Nothing here imports pydantic
or attrs: their classes are recognized by their attributes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast, get_origin

import msgspec

from kinform.errors import DecodeError, UsageError
from kinform.meta import ObjectMeta
from kinform.objects.views import ListView
from kinform.sansio.wire import heads

__all__ = ["decoder_of", "encode", "is_projection", "read", "resource_of", "unreadable"]

T = TypeVar("T")

_SUPPORTED: Final = (
    "a msgspec.Struct, dataclass, TypedDict, attrs class, pydantic (v2) model, dict or Object"
)
_ATOMS: Final = (str, int, bytes, type(None))
# In YAML, U+0085 and its like are line ends, which become spaces, and controls are not allowed:
# DEL and C1, the line separators, the byte order mark, U+FFFE and U+FFFF.
_NOT_YAML: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]"
)
_SCHEMA_ERRORS: Final = frozenset(
    "missing extra_forbidden frozen_field frozen_instance invalid_key json_invalid json_type "
    "model_type model_attributes_type dataclass_type none_required greater_than less_than "
    "greater_than_equal less_than_equal multiple_of finite_number too_short too_long string_type "
    "string_unicode string_too_short string_too_long string_pattern_mismatch enum literal_error "
    "dict_type list_type tuple_type set_type frozen_set_type bool_type bool_parsing int_type "
    "int_parsing int_parsing_size int_from_float float_type float_parsing bytes_type "
    "bytes_too_short bytes_too_long date_type date_parsing time_type time_parsing datetime_type "
    "datetime_parsing timezone_naive timezone_aware time_delta_type time_delta_parsing "
    "is_instance_of union_tag_not_found url_type url_parsing url_scheme uuid_type decimal_type "
    "decimal_parsing recursion_loop".split()
)
"""The errors of pydantic whose text is about the schema alone, and quotes nothing of the input."""


class _Validator(Protocol):
    """The part of a pydantic model class that is used here."""

    def model_validate_json(self, json_data: bytes, /) -> object: ...


class _Dumpable(Protocol):
    """The part of a pydantic model that is used here."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> object: ...


class _Complaints(Protocol):
    """The part of pydantic's ``ValidationError`` that is used here."""

    def errors(
        self, *, include_url: bool, include_context: bool, include_input: bool
    ) -> Sequence[Mapping[str, Any]]: ...


def decoder_of(model: type[T]) -> Callable[[bytes], T]:
    """Return the function that reads JSON as ``model``; the same one for the same class.

    Not for `Object`, whose module imports this one.

    Raises:
        UsageError: if ``model`` is not supported, or has a field that cannot be decoded.
    """
    try:
        return cast("Callable[[bytes], T]", _decoder(cast("Hashable", model)))
    except TypeError:  # not even hashable
        raise UsageError(_not_a_model(model)) from None


def resource_of(model: object) -> str | None:
    """Return the resource of ``model``: its class attribute ``__resource__``, or None.

    >>> class Pod(msgspec.Struct):
    ...     __resource__ = "v1/pods"
    >>> resource_of(Pod)
    'v1/pods'

    Raises:
        UsageError: if the attribute exists and is not a name.
    """
    name = getattr(model, "__resource__", None)
    if name is None or (isinstance(name, str) and name):
        return name
    raise UsageError(f"__resource__ of {_name(model)} is {name!r}, expected text like 'v1/pods'")


def read(decode: Callable[[bytes], T], raw: bytes, *, meta: ObjectMeta) -> T:
    """Return ``decode(raw)``; ``meta`` is the metadata of that object.

    Where that fails and metadata has nulls, ``decode`` is called again without them.

    Raises:
        DecodeError: ``decode`` failed. The text has no payload; an exception of the model's own
            code is the ``__cause__``.
    """
    try:
        return decode(raw)
    except DecodeError as exc:
        key = exc.key or str(meta.key)
        failure, cause = DecodeError(exc.message, path=exc.path, key=key), exc.__cause__
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        failure, cause = unreadable(exc, meta), exc.__cause__
    except Exception as exc:  # noqa: BLE001 - the user's: one bad object must not be a crash
        failure = DecodeError(f"the decoder raised {type(exc).__name__}", key=str(meta.key))
        cause = exc
    # Below, not within ``except``: msgspec's error may quote a value, and must not stay reachable
    # as the context of ours.
    # A null among the metadata means "not set", and few models declare that they take it. The
    # second call cannot come here again: no null is left.
    clean = heads.without_nulls(raw)
    if clean is not None:
        return read(decode, clean, meta=meta)
    raise failure from cause


def unreadable(exc: Exception, meta: ObjectMeta, *, path: str = "$") -> DecodeError:
    """Turn what msgspec raised while reading below ``path`` into a `DecodeError`."""
    if isinstance(exc, RecursionError):
        return DecodeError("nests deeper than this Python can read", path=path, key=str(meta.key))
    if isinstance(exc, UnicodeDecodeError):
        return DecodeError("invalid UTF-8", path=path, key=str(meta.key))
    said = heads.decode_error(cast("msgspec.DecodeError", exc))
    message = said.message
    if exc.__cause__ is not None:  # a __post_init__, a validator: its words may hold the value
        message = f"the model refused it with {type(exc.__cause__).__name__}"
    return DecodeError(message, path=path + said.path.removeprefix("$"), key=str(meta.key))


def encode(body: object) -> bytes:
    """Return the JSON of ``body``: a mapping, a list (JSON patch) or a model.

    A dict is written as it is, None as null. A model writes what it declares under its wire
    names, *without* the members that are None: a model cannot express null, which would delete a
    member in a merge patch. Read-only views, and models inside dicts, are allowed. Bytes become
    base64, as in a Secret. Characters that YAML would change or refuse are escaped: a server reads
    the body of an apply as YAML.

    >>> encode({"spec": {"replicas": 2, "paused": None}})
    b'{"spec":{"replicas":2,"paused":null}}'

    Raises:
        UsageError: if something in it has no JSON form (NaN included), or it holds itself.
    """
    try:
        plain = _plain(body, nulls=True)
        if isinstance(plain, dict | list):
            return _escaped(msgspec.json.encode(cast("object", plain)))
    except RecursionError:
        raise UsageError(f"{_name(type(body))} holds itself or nests too deep to write") from None
    except (TypeError, ValueError, OverflowError) as exc:
        raise UsageError(f"{_name(type(body))} has no JSON form: {exc}") from exc
    raise UsageError(
        f"{_name(type(body))} is not a body to write; expected an Object, a mapping, a list or "
        "a model"
    )


def _escaped(text: bytes) -> bytes:
    if text.isascii() and b"\x7f" not in text:  # as nearly everything is
        return text
    return _NOT_YAML.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), text)


def is_projection(body: object) -> bool:
    """Return whether ``body`` is a model, and so may hold less than the server's object.

    Replacing an object with a projection would drop what the model does not declare. A
    ``TypedDict`` is a dict at run time, so it counts as a dict.
    """
    if isinstance(body, type):
        return False
    return (
        isinstance(body, msgspec.Struct)
        or dataclasses.is_dataclass(body)
        or hasattr(type(body), "__attrs_attrs__")
        or _is_pydantic(type(body))
    )


@functools.lru_cache(maxsize=256)
def _decoder(model: object) -> Callable[[bytes], object]:
    origin = cast("object", get_origin(model)) or model
    if not isinstance(origin, type):
        raise UsageError(_not_a_model(model))
    cls = cast("type[object]", origin)
    if _is_pydantic(cls):
        return _pydantic_decoder(cast("_Validator", model))
    if hasattr(cls, "__pydantic_validator__"):  # msgspec would read it, and validate nothing
        raise UsageError(f"{_name(model)} is a pydantic dataclass; make it a BaseModel")
    declares = dataclasses.is_dataclass(cls) or any(
        hasattr(cls, mark) for mark in ("__attrs_attrs__", "__required_keys__")
    )
    if not (declares or cls is dict or issubclass(cls, msgspec.Struct)):
        raise UsageError(_not_a_model(model))
    try:
        return msgspec.json.Decoder(cast("type[object]", model)).decode
    except (TypeError, ValueError, NameError, AttributeError) as exc:
        raise UsageError(f"cannot decode to {_name(model)}: {exc}") from exc


def _pydantic_decoder(model: _Validator) -> Callable[[bytes], object]:
    def decode(raw: bytes) -> object:
        try:
            return model.model_validate_json(raw)
        except ValueError as exc:
            if not hasattr(exc, "errors"):
                raise
            error = _pydantic_error(cast("_Complaints", exc))
        raise error  # out here, without the context: pydantic's error quotes the input

    return decode


def _pydantic_error(exc: _Complaints) -> DecodeError:
    """Return pydantic's first complaint, without the input it complains about."""
    complaints = exc.errors(include_url=False, include_context=False, include_input=False)
    first = complaints[0]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
    kind = str(first["type"])
    if kind in {"value_error", "assertion_error"}:  # the words of the user's validator
        message = "the model's validator refused the value"
    elif kind in _SCHEMA_ERRORS:
        message = str(first["msg"])
    else:  # its text may quote the value: a union's tag, an error of the user's own
        message = f"the model refused the value ({kind})"
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return DecodeError(message + more, path=f"${path}")


def _plain(value: object, *, nulls: bool) -> object:
    """Return ``value`` as msgspec can write it: models and views become dicts and lists."""
    if isinstance(value, _ATOMS):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")  # msgspec would write null
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {key: _plain(v, nulls=nulls) for key, v in items if nulls or v is not None}
    if isinstance(value, list | tuple | ListView):
        return [_plain(v, nulls=nulls) for v in cast("Sequence[object]", value)]
    if not is_projection(value):
        return value
    if _is_pydantic(type(value)):
        return _plain(_dump(cast("_Dumpable", value)), nulls=False)
    # Generated models leave out what is None themselves: a null in them is free-form content.
    nulls = hasattr(type(value), "__gvk__")
    return _plain(msgspec.to_builtins(value, enc_hook=_plain_inside), nulls=nulls)


def _plain_inside(value: object) -> object:
    """Write what msgspec meets inside a model and does not know."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if issubclass(type(value), Mapping | ListView) or _is_pydantic(type(value)):
        return _plain(value, nulls=False)
    raise TypeError(f"objects of type {_name(type(value))} cannot be written")


def _dump(model: _Dumpable) -> object:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _is_pydantic(cls: type[object]) -> bool:
    return hasattr(cls, "model_validate_json")


def _name(model: object) -> str:
    return model.__qualname__ if isinstance(model, type) else repr(model)


def _not_a_model(model: object) -> str:
    return f"{_name(model)} is not a model; expected {_SUPPORTED}"

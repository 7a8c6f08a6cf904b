"""`Resource`: an API resource and the model that its objects are decoded to.

The rest of kinform is generic over ``T`` and never looks inside one: it reads the metadata it
needs from the bytes, and a `Resource` value holds the decoder from bytes to ``T``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast, final, overload

from kinform.errors import UsageError
from kinform.meta import GroupVersionResource, ObjectMeta
from kinform.objects import models
from kinform.objects.models import is_projection, resource_of
from kinform.objects.object import Object
from kinform.sansio.wire.heads import Body, Head

__all__ = [
    "Resource",
    "body_reader",
    "decode_answer",
    "encode",
    "is_projection",
    "model_decoder",
    "model_or_object",
    "resource_of",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
M = TypeVar("M")

_NAMELESS: Final = ObjectMeta()


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[T_co]):
    """One API resource whose objects are read as ``T``.

    >>> pods = Resource.of("v1/pods", kind="Pod", namespaced=True)
    >>> str(pods), pods.model.__name__
    ('v1/pods', 'Object')

    Two resources are equal if all their fields are; `model_decoder` gives the same ``decode``
    for the same model.
    """

    gvr: GroupVersionResource
    """Group, version and the plural name used in URLs."""
    kind: str
    """The kind of its objects, for example ``Deployment``."""
    namespaced: bool
    """True if its objects live in namespaces."""
    model: type[T_co]
    """The class its objects are read as."""
    decode: Callable[[bytes], T_co] = dataclasses.field(repr=False)
    """From the JSON of one object to ``T``; unused where ``model`` is `Object`."""

    @overload
    @classmethod
    def of(cls, resource: str, *, kind: str, namespaced: bool) -> Resource[Object]: ...
    @overload
    @classmethod
    def of(cls, resource: str, *, kind: str, namespaced: bool, model: type[M]) -> Resource[M]: ...
    @classmethod
    def of(
        cls, resource: str, *, kind: str, namespaced: bool, model: type[object] = Object
    ) -> Resource[object]:
        """Return the resource named like ``v1/pods`` or ``apps/v1/deployments``.

        Raises:
            UsageError: if ``resource`` has another form, or ``model`` is of no supported kind.
        """
        try:
            gvr = GroupVersionResource.parse(resource)
        except ValueError as exc:
            raise UsageError(str(exc)) from None
        decode = model_decoder(model)
        return Resource(gvr=gvr, kind=kind, namespaced=namespaced, model=model, decode=decode)

    def with_model(self, model: type[M]) -> Resource[M]:
        """Return the same resource, its objects read as ``model``.

        Raises:
            UsageError: if ``model`` is of no supported kind.
        """
        return Resource(
            gvr=self.gvr,
            kind=self.kind,
            namespaced=self.namespaced,
            model=model,
            decode=model_decoder(model),
        )

    def read(self, body: Body) -> T_co:
        """Return the object in ``body`` as ``T``. An `Object` costs no second pass.

        Raises:
            DecodeError: ``decode`` failed; it has the object's key and no payload.
        """
        if self.model is Object:
            return cast("T_co", Object(body.raw, body.head))
        return models.read(self.decode, body.raw, meta=body.head.metadata)

    def __str__(self) -> str:
        return str(self.gvr)


def model_decoder(model: type[T]) -> Callable[[bytes], T]:
    """Return the function that decodes one object's JSON to ``model``.

    Members the model does not declare are skipped. The function raises the errors of the model's
    library; `Resource.read` and `Object.decode` turn them into `DecodeError`.

    Raises:
        UsageError: if ``model`` is not a msgspec Struct, dataclass, TypedDict, attrs class,
            pydantic (v2) model, dict or `Object`, or declares what cannot be decoded.
    """
    if model is Object:
        return cast("Callable[[bytes], T]", Object.from_bytes)
    return models.decoder_of(model)


def body_reader(model: type[T]) -> Callable[[bytes, Head], T]:
    """Return the function that decodes an object's bytes, of known head, to ``model``.

    It raises `DecodeError` for every failure, with the object's key.

    Raises:
        UsageError: if ``model`` is of no supported kind.
    """
    if model is Object:  # the constructor itself: this is called for every event
        return cast("Callable[[bytes, Head], T]", Object)
    decode = model_decoder(model)

    def read(raw: bytes, head: Head) -> T:
        return models.read(decode, raw, meta=head.metadata)

    return read


def model_or_object(model: type[T] | None) -> type[T]:
    """Return ``model``, or `Object` if the caller gave none."""
    return cast("type[T]", Object) if model is None else model


def decode_answer(model: type[T], raw: bytes) -> T:
    """Decode the body of a response to ``model``.

    Raises:
        DecodeError: the body does not match the model; the message shows no payload.
        UsageError: ``model`` is not of a supported kind.
    """
    return models.read(model_decoder(model), raw.strip(), meta=_NAMELESS)  # it ends with a newline


def encode(body: object) -> bytes:
    """Return the JSON to send for ``body``: an `Object`, a mapping, a list or a model.

    An `Object` is sent unchanged. A dict is encoded as it is, None as null. A model is encoded with
    the wire names of its members, *without* those whose value is None, because null deletes
    in a merge patch. Bytes become base64, as in a Secret.

    >>> encode({"spec": {"replicas": 2, "paused": None}})
    b'{"spec":{"replicas":2,"paused":null}}'

    Raises:
        UsageError: if something in it has no JSON form, or it is of none of these types.
    """
    return body.raw if isinstance(body, Object) else models.encode(body)

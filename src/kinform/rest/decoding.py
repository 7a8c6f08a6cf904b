"""From an answer's bytes to the caller's model."""

from __future__ import annotations

from typing import TypeVar, cast

from kinform import models
from kinform.meta import ObjectMeta
from kinform.objects import Object
from kinform.resource import model_decoder

__all__ = ["decode_answer", "model_or_object"]

T = TypeVar("T")

_NAMELESS = ObjectMeta()


def model_or_object(model: type[T] | None) -> type[T]:
    """Return ``model``, or `Object` where the caller named none."""
    return cast("type[T]", Object) if model is None else model


def decode_answer(model: type[T], raw: bytes) -> T:
    """Read one answer as ``model``.

    Raises:
        DecodeError: it does not fit; no payload is shown.
        UsageError: ``model`` is of no supported kind.
    """
    return models.read(model_decoder(model), raw.strip(), meta=_NAMELESS)  # it ends with a newline

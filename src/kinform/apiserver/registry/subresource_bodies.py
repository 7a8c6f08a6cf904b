"""The bodies of subresources: Binding, Eviction, Scale and TokenRequest."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.scheme import schemas
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.scheme.schemas import Schema
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.json_values import Json

__all__ = ["BINDING", "EVICTION", "SCALE", "TOKEN", "body", "content_type", "schema"]


def _kind(group: str, kind: str, definition: str) -> Kind:
    return Kind(
        group=group, version="v1", kind=kind, plural="", singular="", namespaced=True, verbs=(),
        definition=definition,
    )  # fmt: skip


BINDING: Final = _kind("", "Binding", "io.k8s.api.core.v1.Binding")
EVICTION: Final = _kind("policy", "Eviction", "io.k8s.api.policy.v1.Eviction")
SCALE: Final = _kind("autoscaling", "Scale", "io.k8s.api.autoscaling.v1.Scale")
TOKEN: Final = _kind(
    "authentication.k8s.io", "TokenRequest", "io.k8s.api.authentication.v1.TokenRequest"
)


def schema(kind: Kind) -> Schema:
    """Return what bodies of a kind look like."""
    return schemas.builtin(kind.definition)


def body(request: ServerRequest, kind: Kind) -> Json:
    """Return the body of a request, which has to be of a kind.

    Raises:
        StatusError: it is not.
    """
    given = request.headers.get("content-type", "")
    obj, duplicates = decoding.decode(request.body, given, kind=kind.kind)
    if kind is EVICTION and obj.get("apiVersion") == "policy/v1beta1":
        obj["apiVersion"] = kind.api_version  # the one old version that is still taken
    decoding.check(kind, schema(kind), obj, duplicates=duplicates)
    return obj


def content_type(request: ServerRequest) -> str:
    """Return the content type of a request without its parameters."""
    return request.headers.get("content-type", "application/json").partition(";")[0].strip()

"""Tokens of service accounts: the answers to TokenRequests.

They have the form of tokens, with subject and expiry, but they are not signed:
this server accepts its own token only.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Final

import msgspec

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.registry import subresource_bodies
from kinform.apiserver.scheme.field_errors import FieldError, invalid
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list

__all__ = ["issue"]

_LEAST: Final = 600
_MOST: Final = 1 << 32
_USUAL: Final = 3600
_ISSUER: Final = "https://kubernetes.default.svc"


def issue(cluster: Cluster, route: Route, body: Json, *, uid: str) -> Json:
    """Return a TokenRequest with its answer, for the service account of a route.

    Raises:
        StatusError: such a token cannot be.
    """
    spec = as_dict(body.get("spec"))
    seconds = spec.get("expirationSeconds") or _USUAL
    errors: list[FieldError] = []
    if seconds < _LEAST:
        why = "may not specify a duration less than 10 minutes"
        errors.append(invalid("spec.expirationSeconds", seconds, why))
    elif seconds > _MOST:
        why = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid("spec.expirationSeconds", seconds, why))
    if errors:
        raise status.invalid(subresource_bodies.TOKEN, "", errors)
    now = cluster.now()
    end = now + timedelta(seconds=seconds)
    audiences = as_list(spec.get("audiences")) or [_ISSUER]
    account = {"name": route.name, "uid": uid}
    claims = {
        "aud": audiences,
        "exp": int(end.timestamp()),
        "iat": int(now.timestamp()),
        "iss": _ISSUER,
        "jti": cluster.uid(),
        "kubernetes.io": {"namespace": route.namespace, "serviceaccount": account},
        "nbf": int(now.timestamp()),
        "sub": f"system:serviceaccount:{route.namespace}:{route.name}",
    }
    meta = {"name": route.name, "namespace": route.namespace, "uid": uid}
    bound = spec.get("boundObjectRef")
    return {
        "kind": "TokenRequest",
        "apiVersion": subresource_bodies.TOKEN.api_version,
        "metadata": {**meta, "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
        "status": {
            "token": ".".join(map(_part, ({"alg": "none"}, claims, {}))),
            "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")

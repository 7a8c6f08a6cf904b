"""Reviews of access and identity: they are created to get an answer, and not stored."""

from __future__ import annotations

from typing import Final

import msgspec

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.authn.identity import RequestUser
from kinform.apiserver.authz.rbac import Attributes
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.access import USER, Access
from kinform.apiserver.endpoints.list_options import write_options
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.endpoints.writes import Written
from kinform.apiserver.fieldmanager import managed_fields
from kinform.apiserver.scheme import field_errors
from kinform.apiserver.scheme.field_errors import FieldError
from kinform.apiserver.scheme.kind_registry import Kind, schema_of
from kinform.apiserver.serializer import decoding
from kinform.apiserver.serializer.decoding import decode
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text
from kinform.apiserver.validation.labels import in_order

__all__ = ["REVIEWS", "judge", "review"]

REVIEWS: Final = frozenset(
    """
    selfsubjectaccessreviews.authorization.k8s.io subjectaccessreviews.authorization.k8s.io
    localsubjectaccessreviews.authorization.k8s.io selfsubjectrulesreviews.authorization.k8s.io
    selfsubjectreviews.authentication.k8s.io tokenreviews.authentication.k8s.io
    """.split()
)
"""Kinds that are questions: created, answered and forgotten."""
_USER: Final = "kinform-admin"
_GROUPS: Final = ("system:masters", "system:authenticated")
_RESOURCES: Final = "resourceAttributes"
_URLS: Final = "nonResourceAttributes"
_RULES: Final[Json] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review(request: ServerRequest, where: Route, cluster: Cluster) -> Written:
    """Answer a review for a user that may do everything.

    Raises:
        StatusError: the review is invalid.
    """
    kind = where.kind
    options = write_options(request, "CreateOptions")
    content_type = request.headers.get("content-type", "")
    obj, duplicates = decoding.decode(request.body, content_type, kind=kind.kind)
    checked = decoding.check(kind, schema_of(kind), obj, duplicates=duplicates)
    warnings = decoding.complain(options.field_validation, checked.complaints, kind)
    now = cluster.timestamp()
    meta = as_dict(obj.get("metadata"))
    obj["metadata"] = {**meta, "namespace": where.namespace} if where.namespace else meta
    if kind.kind == "SelfSubjectReview":
        answer: Json = {"kind": kind.kind, "apiVersion": kind.api_version}
        answer["metadata"] = {"creationTimestamp": now}
        answer["status"] = {"userInfo": {"username": _USER, "groups": list(_GROUPS)}}
        return Written(answer, is_new=True, warnings=warnings)
    if kind.kind == "SelfSubjectRulesReview":
        if not as_dict(obj.get("spec")).get("namespace"):
            raise status.bad_request("no namespace on request")
        answer = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": {}}
        return Written({**answer, "status": dict(_RULES)}, is_new=True, warnings=warnings)
    obj["spec"] = as_dict(obj.get("spec"))
    managed_fields.on_create(kind, schema_of(kind), obj, manager=options.manager, now=now)
    if kind.kind == "TokenReview":
        if not obj["spec"].get("token"):
            raise status.bad_request("token is required for TokenReview in authentication")
        obj["status"] = {"user": {}, "error": "invalid bearer token"}
    else:
        _check(kind, obj, namespace=where.namespace)
        obj["status"] = {"allowed": True}
    return Written(obj, is_new=True, warnings=warnings)


def _check(kind: Kind, obj: Json, *, namespace: str) -> None:
    """Refuse a question of access that is not clear."""
    spec = obj["spec"]
    is_local = kind.kind == "LocalSubjectAccessReview"
    errors = _attribute_problems(spec, is_local=is_local)
    if not kind.kind.startswith("Self") and not spec.get("user") and not spec.get("groups"):
        why = "at least one of user or group must be specified"
        errors.append(field_errors.invalid("spec.user", "", why))
    given = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    if given != ({"namespace": namespace} if is_local else {}):
        why = "must be empty except for namespace" if is_local else "must be empty"
        errors.append(field_errors.invalid("metadata", in_order(obj["metadata"]), why))
    asked = as_dict(spec.get(_RESOURCES)).get("namespace", "")
    if is_local and not errors and asked != namespace:
        path = "spec.resourceAttributes.namespace"
        errors.append(field_errors.invalid(path, asked, "must match metadata.namespace"))
    if errors:
        raise _nameless(kind, errors)


def _attribute_problems(spec: Json, *, is_local: bool) -> list[FieldError]:
    resources, urls = spec.get(_RESOURCES), spec.get(_URLS)
    if urls is not None and (is_local or resources is not None):
        why = (
            "disallowed on this kind of request"
            if is_local
            else "cannot be specified in combination with resourceAttributes"
        )
        shown = {"Path": urls.get("path", ""), "Verb": urls.get("verb", "")}
        return [field_errors.invalid(f"spec.{_URLS}", in_order(shown), why)]
    if urls is None and resources is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_errors.invalid(f"spec.{_RESOURCES}", None, why)]
    return []


def _nameless(kind: Kind, errors: list[FieldError]) -> StatusError:
    """Return a refusal that does not say what it refuses, as the server words these."""
    return status.invalid(msgspec.structs.replace(kind, kind="", plural=""), "", errors)


# --- the answers that depend on roles and tokens

_AUDIENCE: Final = "https://kubernetes.default.svc"


def judge(access: Access, request: ServerRequest, answer: Json) -> None:
    """Set the status of a valid review from roles and tokens, in place.

    Without RBAC every user may do everything, so the answer about rights stays as it is. The user
    of a token is known in any case.
    """
    if not access.has_rbac and text(answer, "kind") != "TokenReview":
        return
    obj, _ = decode(request.body, request.headers.get("content-type", "application/json"))
    spec, user = as_dict(obj.get("spec")), USER.get()
    match text(answer, "kind"):
        case "SelfSubjectReview":
            answer["status"] = {"userInfo": user.to_dict()}
        case "SelfSubjectRulesReview":
            answer["status"] = _rules(access, user, text(spec, "namespace"))
        case "TokenReview":
            answer["status"] = _token(access, text(spec, "token"))
        case "SelfSubjectAccessReview":
            answer["status"] = _decision(access, user, spec)
        case _:
            answer["status"] = _decision(access, _subject(spec), spec)


def _decision(access: Access, user: RequestUser, spec: Json) -> Json:
    decision = access.decide(user, _attributes(spec))
    found: Json = {"allowed": decision.is_allowed}
    return found | {"reason": decision.reason} if decision.reason else found


def _attributes(spec: Json) -> Attributes:
    path = as_dict(spec.get("nonResourceAttributes"))
    if path:
        return Attributes(text(path, "verb"), path=text(path, "path") or "/")
    given = as_dict(spec.get("resourceAttributes"))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(*(text(given, name) for name in names))


def _subject(spec: Json) -> RequestUser:
    groups = tuple(map(str, as_list(spec.get("groups"))))
    return RequestUser(name=text(spec, "user"), groups=groups, uid=text(spec, "uid"))


def _rules(access: Access, user: RequestUser, namespace: str) -> Json:
    rules = access.policy.rules(user, namespace)
    found: Json = {
        "resourceRules": [rule.to_dict() for rule in rules if not rule.urls],
        "nonResourceRules": [rule.to_dict() for rule in rules if rule.urls],
        "incomplete": False,
    }
    errors = access.policy.errors(user, namespace)
    return found | {"evaluationError": errors} if errors else found


def _token(access: Access, token: str) -> Json:
    user = access.identities.of(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user.to_dict(), "audiences": [_AUDIENCE]}

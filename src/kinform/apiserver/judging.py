"""What the roles say to questions about rights and identity: the answers of reviews."""

from __future__ import annotations

from typing import Final

from kinform.apiserver.access import USER, Access
from kinform.apiserver.decoding import decode
from kinform.apiserver.identity import User
from kinform.apiserver.json import Json, as_dict, as_list, text
from kinform.apiserver.rbac import Attributes
from kinform.apiserver.wire import Request

__all__ = ["judge"]

_AUDIENCE: Final = "https://kubernetes.default.svc"


def judge(access: Access, request: Request, answer: Json) -> None:
    """Put into the answer of a review that makes sense, in place, what the roles say.

    Without RBAC the answer about rights stays as it is: everybody may do everything. Whose a
    token is can be told in any case.
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


def _decision(access: Access, user: User, spec: Json) -> Json:
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


def _subject(spec: Json) -> User:
    groups = tuple(map(str, as_list(spec.get("groups"))))
    return User(name=text(spec, "user"), groups=groups, uid=text(spec, "uid"))


def _rules(access: Access, user: User, namespace: str) -> Json:
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

"""Privilege escalation checks: users cannot grant rights that they do not have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.authn.identity import RequestUser
from kinform.apiserver.authz.rbac import GROUP, Attributes, Rule, TooManyRules, rules_in
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.access import USER, Access
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.writes import Written
from kinform.apiserver.scheme.kind_registry import Kind
from kinform.apiserver.serializer.encoding import decode as decode_stored
from kinform.apiserver.serializer.json_values import Json, text

__all__ = ["check", "shown"]

_EVERYTHING: Final = (
    Rule(verbs=("*",), groups=("*",), resources=("*",)),
    Rule(verbs=("*",), urls=("*",)),
)
_OF_COLLECTOR: Final = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
"""Metadata that may be changed in any role: its rights do not change."""


def check(
    access: Access,
    cluster: Cluster,
    *,
    request: ServerRequest,
    where: Route,
    read: Callable[[ServerRequest, Kind], Json],
    write: Callable[[ServerRequest, Route], Written],
) -> None:
    """Refuse a write of a role or a binding that would give more rights than the writer has.

    The check always sees the object in the form in which it would be stored, never the body as
    sent: a null or a value of another type in the body must not hide a rule.

    Args:
        read: Decodes the body of a create and converts it to the kind's types.
        write: The write itself, for an update or a patch; it is run as a dry run.

    Raises:
        StatusError: it would, or the write fails anyway.
    """
    user = USER.get()
    if not access.has_rbac or where.kind.group != GROUP or user.is_master:
        return
    old = cluster.storage.table(where.kind.storage).get(where.key)
    if where.name:
        query = {**request.query, "dryRun": ["All"]}
        obj = write(dataclasses.replace(request, query=query), where).obj
        if old is not None and _lasting(obj) == _lasting(decode_stored(where.kind, old.raw)):
            return
    else:
        obj = read(request, where.kind)
    if where.kind.plural.endswith("bindings"):
        _check_binding(access, user, where=where, obj=obj)
    else:
        _check_role(access, user, where=where, obj=obj)


def _lasting(obj: Json) -> Json:
    metadata = {key: it for key, it in obj["metadata"].items() if key not in _OF_COLLECTOR}
    return {**obj, "metadata": metadata}


def _check_role(access: Access, user: RequestUser, *, where: Route, obj: Json) -> None:
    name, kind = text(obj, "metadata", "name"), where.kind
    asked = Attributes("escalate", kind.group, kind.plural, "", where.namespace, where.name)
    if access.decide(user, asked).is_allowed:
        return
    if obj.get("aggregationRule") and access.policy.missing(user, "", _EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise status.forbidden(kind, name, why)
    try:
        rules = rules_in(obj)
    except msgspec.ValidationError as exc:  # unreadable rules cannot be compared: fail closed
        raise status.bad_request(f"the rules of the role are invalid: {exc}") from exc
    _check_rules(access, user, where, name=name, rules=rules)


def _check_binding(access: Access, user: RequestUser, *, where: Route, obj: Json) -> None:
    name, role = text(obj, "metadata", "name"), text(obj, "roleRef", "name")
    is_local = text(obj, "roleRef", "kind") == "Role"
    plural = "roles" if is_local else "clusterroles"
    asked = Attributes("bind", GROUP, plural, "", where.namespace, role)
    if access.decide(user, asked).is_allowed:
        return
    rules = access.policy.rules_of(where.namespace if is_local else "", role)
    if rules is None:
        raise status.not_found(where.kind, role)  # so it says, though it is the role that lacks
    _check_rules(access, user, where, name=name, rules=rules)


def _check_rules(
    access: Access, user: RequestUser, where: Route, *, name: str, rules: Sequence[Rule]
) -> None:
    try:
        missing = access.policy.missing(user, where.namespace, rules)
    except TooManyRules as exc:  # a limit of this server: fail closed
        why = "the role has too many combinations of verbs and resources to be compared"
        raise status.forbidden(where.kind, name, why) from exc
    if not missing:
        return
    groups = " ".join(f'"{group}"' for group in user.groups)
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not '
        "currently held:\n" + "\n".join(shown(missing))
    )
    errors = access.policy.errors(user, where.namespace, called=where.kind.qualified)
    if errors:
        why += f"; resolution errors: [{errors}]"
    raise status.forbidden(where.kind, name, why)


def shown(singles: Sequence[Rule]) -> list[str]:
    """Return rules about single things as refusals list them: the verbs of a thing together."""
    verbs: dict[Rule, list[str]] = {}
    lines: list[str] = []
    for one in singles:
        if one.urls:
            lines.append(_line(one, one.verbs))
        else:
            verbs.setdefault(msgspec.structs.replace(one, verbs=()), []).extend(one.verbs)
    return sorted(lines + [_line(one, its) for one, its in verbs.items()])


def _line(one: Rule, verbs: Sequence[str]) -> str:
    fields = (
        ("APIGroups", one.groups),
        ("Resources", one.resources),
        ("ResourceNames", one.names),
        ("NonResourceURLs", one.urls),
        ("Verbs", tuple(dict.fromkeys(verbs))),
    )
    parts = (
        f"{name}:[" + " ".join(f'"{value}"' for value in values) + "]"
        for name, values in fields
        if values
    )
    return "{" + ", ".join(parts) + "}"

"""Role-based access control: the authorizer for roles and bindings. Pure.

A `AccessPolicy` is made of the roles and bindings as they are at one moment, and answers any number
of questions. As in Kubernetes, rights only add up: a rule cannot forbid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver.authn.identity import RequestUser, account_parts
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text

__all__ = [
    "AccessDecision",
    "AccessPolicy",
    "Attributes",
    "Grant",
    "PolicyObjects",
    "Rule",
    "TooManyRules",
    "rules_in",
]

GROUP: Final = "rbac.authorization.k8s.io"
_ALL: Final = "*"
MAX_COMPARISONS: Final = 200_000
"""The most pairs of a held rule and a single requested right that are compared."""


class TooManyRules(Exception):
    """The rules have too many combinations of verbs and resources to be compared."""


class Attributes(NamedTuple):
    """The attributes of a request, for authorization."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """Of a request that is about no resource; empty for all others."""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as rules call it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class AccessDecision(NamedTuple):
    """The decision about a request, with its reason, if there is one to report."""

    is_allowed: bool
    reason: str = ""


@final
class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a role."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = msgspec.field(name="apiGroups", default=())
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = msgspec.field(name="resourceNames", default=())
    urls: tuple[str, ...] = msgspec.field(name="nonResourceURLs", default=())

    def allows(self, asked: Attributes) -> bool:
        """Return whether the rule allows this."""
        if not _has(self.verbs, asked.verb):
            return False
        if asked.path:
            return any(_covers_url(url, asked.path) for url in self.urls)
        return (
            _has(self.groups, asked.group)
            and any(_covers_resource(it, asked.full_resource) for it in self.resources)
            and (not self.names or asked.name in self.names)
        )

    @property
    def size(self) -> int:
        """The number of single rights that it contains."""
        things = len(self.groups) * len(self.resources) * max(len(self.names), 1)
        return (things + len(self.urls)) * len(self.verbs)

    def singles(self) -> Iterator[Rule]:
        """Yield rules about a single verb and thing each, which allow the same together."""
        for group in self.groups:
            for resource in self.resources:
                for name in self.names or ("",):
                    for verb in self.verbs:
                        yield Rule(
                            verbs=(verb,),
                            groups=(group,),
                            resources=(resource,),
                            names=(name,) if name else (),
                        )
        for url in self.urls:
            for verb in self.verbs:
                yield Rule(verbs=(verb,), urls=(url,))

    def to_dict(self) -> Json:
        """Return the rule as reviews show it."""
        rule: Json = {"verbs": list(self.verbs)}
        if self.urls:
            return rule | {"nonResourceURLs": list(self.urls)}
        rule |= {"apiGroups": list(self.groups), "resources": list(self.resources)}
        return rule | {"resourceNames": list(self.names)} if self.names else rule


def _has(values: Sequence[str], value: str) -> bool:
    return value in values or _ALL in values


def _covers_resource(rule: str, asked: str) -> bool:
    if rule in {_ALL, asked}:
        return True
    # Only the first part can be left open: there is no "pods/*", and "*/" matches no resource.
    _, slash, subresource = asked.partition("/")
    return bool(slash) and rule == f"*/{subresource}"


def _covers_url(rule: str, asked: str) -> bool:
    return rule == asked or (rule.endswith(_ALL) and asked.startswith(rule.rstrip(_ALL)))


@final
class _Held:
    """A rule that a user has, prepared for many comparisons."""

    def __init__(self, rule: Rule) -> None:
        self._verbs: Final = frozenset(rule.verbs)
        self._groups: Final = frozenset(rule.groups)
        self._resources: Final = frozenset(rule.resources)
        self._names: Final = frozenset(rule.names)
        self._urls: Final = frozenset(rule.urls)
        self._prefixes: Final = tuple(it.rstrip(_ALL) for it in rule.urls if it.endswith(_ALL))

    def includes(self, other: Rule) -> bool:
        """Return whether all that ``other`` allows is allowed here."""
        if not _includes(self._verbs, other.verbs):
            return False
        has_things = bool(other.groups and other.resources)
        if has_things and not (
            _includes(self._groups, other.groups)
            and all(map(self._has_resource, other.resources))
            and (not self._names or (other.names and self._names.issuperset(other.names)))
        ):
            return False
        return all(it in self._urls or it.startswith(self._prefixes) for it in other.urls)

    def _has_resource(self, asked: str) -> bool:
        if asked in self._resources or _ALL in self._resources:
            return True
        _, slash, subresource = asked.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources


def _includes(values: frozenset[str], others: Sequence[str]) -> bool:
    return _ALL in values or values.issuperset(others)


@final
class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The rights that one binding gives to one subject."""

    order: int
    namespace: str
    """The namespace in which it applies; empty: all."""
    rules: tuple[Rule, ...]
    reason: str
    lost: str = ""
    """The role that is bound, such as ``role/reader``, if there is none of that name."""


class PolicyObjects(NamedTuple):
    """Everything a policy is made of."""

    roles: Sequence[Json] = ()
    cluster_roles: Sequence[Json] = ()
    role_bindings: Sequence[Json] = ()
    cluster_role_bindings: Sequence[Json] = ()


@final
class AccessPolicy:
    """The authorizer: the decisions that follow from these roles and bindings."""

    def __init__(self, objects: PolicyObjects) -> None:
        self._roles = {
            (text(it, "metadata", "namespace"), text(it, "metadata", "name")): _rules(it)
            for it in objects.roles
        }
        named = {text(it, "metadata", "name"): it for it in objects.cluster_roles}
        self._roles |= _aggregated(named)
        self._grants: dict[tuple[str, str], list[Grant]] = {}
        self._of_users: dict[tuple[str, tuple[str, ...]], Sequence[Grant]] = {}
        bindings = (*objects.cluster_role_bindings, *objects.role_bindings)
        for order, binding in enumerate(bindings):
            self._bind(binding, order)

    def _bind(self, binding: Json, order: int) -> None:
        namespace = text(binding, "metadata", "namespace")
        name = text(binding, "metadata", "name")
        kind, role = text(binding, "roleRef", "kind"), text(binding, "roleRef", "name")
        rules = self.rules_of(namespace if kind == "Role" else "", role)
        lost = f"{kind.lower()}/{role}" if rules is None else ""
        bound = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        for subject in map(as_dict, as_list(binding.get("subjects"))):
            key, shown = _subject(subject, namespace)
            reason = f'RBAC: allowed by {bound} of {kind} "{role}" to {key[0]} "{shown}"'
            grant = Grant(
                order=order, namespace=namespace, rules=rules or (), reason=reason, lost=lost
            )
            self._grants.setdefault(key, []).append(grant)

    def rules_of(self, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """Return the rules of a role, or without a namespace of a cluster role, if there is one."""
        return self._roles.get((namespace, name))

    def grants(self, user: RequestUser, namespace: str) -> Iterator[Grant]:
        """Yield what a user has in a namespace, or without one in the whole cluster."""
        key = (user.name, user.groups)
        found = self._of_users.get(key)
        if found is None:
            found = self._of_users[key] = self._found(user)
        for grant in found:
            if not grant.namespace or grant.namespace == namespace:
                yield grant

    def _found(self, user: RequestUser) -> Sequence[Grant]:
        keys = [("User", user.name), *(("Group", group) for group in user.groups)]
        account = account_parts(user.name)
        if account is not None:
            keys.append(("ServiceAccount", "/".join(account)))
        found: dict[int, Grant] = {}
        for key in keys:
            for grant in self._grants.get(key, ()):
                found.setdefault(grant.order, grant)
        return [found[order] for order in sorted(found)]

    def decide(self, user: RequestUser, asked: Attributes) -> AccessDecision:
        """Return whether a user may do something."""
        for grant in self.grants(user, asked.namespace):
            if any(rule.allows(asked) for rule in grant.rules):
                return AccessDecision(is_allowed=True, reason=grant.reason)
        errors = self.errors(user, asked.namespace)
        return AccessDecision(is_allowed=False, reason=f"RBAC: {errors}" if errors else "")

    def errors(self, user: RequestUser, namespace: str, called: str = "") -> str:
        """Return which roles are bound to a user and do not exist; ``called``: their resource."""
        found = [
            f'{called or f"{kind}.{GROUP}"} "{name}" not found'
            for kind, _, name in (
                it.lost.partition("/") for it in self.grants(user, namespace) if it.lost
            )
        ]
        return f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)

    def rules(self, user: RequestUser, namespace: str) -> list[Rule]:
        """Return all rules that hold for a user in a namespace, or in the whole cluster."""
        return [rule for grant in self.grants(user, namespace) for rule in grant.rules]

    def missing(self, user: RequestUser, namespace: str, wanted: Iterable[Rule]) -> list[Rule]:
        """Return what of the ``wanted`` rules a user has not, as rules about single things.

        A rule that one held rule includes as a whole is not taken apart. The others are the
        product of their lists, so the number of comparisons is limited.

        Raises:
            TooManyRules: it would take more than `MAX_COMPARISONS`.
        """
        held = [_Held(rule) for rule in dict.fromkeys(self.rules(user, namespace))]
        rest = [rule for rule in wanted if not any(own.includes(rule) for own in held)]
        if sum(rule.size for rule in rest) * max(len(held), 1) > MAX_COMPARISONS:
            raise TooManyRules
        return [
            one
            for rule in rest
            for one in rule.singles()
            if not any(own.includes(one) for own in held)
        ]


def rules_in(role: Json) -> tuple[Rule, ...]:
    """Return the rules of a role.

    Raises:
        msgspec.ValidationError: a rule has a null, or a value of another type, where RBAC has a
            list of strings.
    """
    rules = role.get("rules")
    return msgspec.convert([] if rules is None else rules, tuple[Rule, ...])


def _rules(role: Json) -> tuple[Rule, ...]:
    """Return the rules of a stored role; a role whose rules cannot be read grants nothing."""
    try:
        return rules_in(role)
    except msgspec.ValidationError:
        return ()


def _aggregated(roles: Mapping[str, Json]) -> dict[tuple[str, str], tuple[Rule, ...]]:
    """Return the rules of cluster roles, among them those that they take from others."""
    parts: dict[str, set[str]] = {}
    for name, role in roles.items():
        selectors = as_list(as_dict(role.get("aggregationRule")).get("clusterRoleSelectors"))
        parts[name] = {
            other
            for other, it in roles.items()
            if other != name
            and any(_selects(as_dict(one), it["metadata"].get("labels") or {}) for one in selectors)
        }
    return {("", name): _whole(name, roles, parts) for name in roles}


def _whole(name: str, roles: Mapping[str, Json], parts: Mapping[str, set[str]]) -> tuple[Rule, ...]:
    reached, waiting = {name}, [name]
    rules: dict[Rule, None] = {}
    while waiting:
        here = waiting.pop()
        rules |= dict.fromkeys(_rules(roles[here]))
        new = parts[here] - reached
        reached |= new
        waiting += sorted(new, reverse=True)
    return tuple(rules)


def _selects(selector: Json, labels: Mapping[str, str]) -> bool:
    wanted = as_dict(selector.get("matchLabels"))
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(as_dict(it), labels) for it in as_list(selector.get("matchExpressions")))


def _meets(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = text(expression, "key"), as_list(expression.get("values"))
    match text(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _subject(subject: Json, namespace: str) -> tuple[tuple[str, str], str]:
    """Return what a subject is found by, and how it is shown."""
    kind, name = text(subject, "kind"), text(subject, "name")
    if kind != "ServiceAccount":
        return (kind, name), name
    home = text(subject, "namespace") or namespace
    return (kind, f"{home}/{name}"), f"{name}/{home}"

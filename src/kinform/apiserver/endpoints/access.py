"""Access control: authentication, impersonation and authorization of a request, in this order."""

from __future__ import annotations

import dataclasses
from contextvars import ContextVar
from typing import Final, final
from urllib.parse import unquote

from kinform.apiserver._cluster import Cluster
from kinform.apiserver.authn import identity
from kinform.apiserver.authn.identity import ADMIN, ANONYMOUS, Identities, RequestUser
from kinform.apiserver.authz.rbac import (
    GROUP,
    AccessDecision,
    AccessPolicy,
    Attributes,
    PolicyObjects,
)
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import boolean
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.endpoints.request_paths import Route
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.serializer.encoding import decode
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.storage.versioned_store import Change

__all__ = ["PREFIX", "USER", "Access", "attributes", "refusal"]

USER: ContextVar[RequestUser] = ContextVar("USER", default=ADMIN)
"""Whose request is being answered."""
PREFIX: Final = "/~"
"""The beginning of a path that contains the token."""
_PUBLIC: Final = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_TABLES: Final = tuple(
    f"{plural}.{GROUP}"
    for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
)
_VERBS: Final = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NODE: Final = "system:node:"
_MASTERS_MAY: Final = AccessDecision(is_allowed=True)
_AUTHENTICATION: Final = "authentication.k8s.io"


@final
class Access:
    """Authenticates and authorizes the requests of one server.

    Args:
        cluster: The cluster whose roles and bindings apply.
        token: The bearer token that allows everything; None: every client may do everything.
        has_rbac: Other users are accepted too, with the rights that roles give them.
    """

    def __init__(self, cluster: Cluster, *, token: str | None, has_rbac: bool = False) -> None:
        self._cluster = cluster
        self.has_rbac: Final = has_rbac and token is not None
        self.identities: Final = Identities(token or "", cluster.storage)
        self._has_token = token is not None
        self._policy: AccessPolicy | None = None
        self._epoch = -1
        self._old_impersonators: set[str] = set()
        cluster.storage.observe(self._note, resources=_TABLES)

    def _note(self, resource: str, change: Change) -> None:
        del resource, change
        self._policy = None

    @property
    def policy(self) -> AccessPolicy:
        """The roles and bindings as they are now."""
        storage = self._cluster.storage
        if self._policy is None or self._epoch != storage.epoch:
            self._epoch = storage.epoch
            self._policy = AccessPolicy(PolicyObjects(*map(self._stored, _TABLES)))
        return self._policy

    def _stored(self, table: str) -> list[Json]:
        kind = self._cluster.kinds.versions(table)[0]
        return [decode(kind, it.raw) for it in self._cluster.storage.table(table).now()]

    def admit(self, request: ServerRequest) -> ServerRequest:
        """Return the request without its token in the path, if it may be made.

        Sets `USER`. A token at the beginning of the path is for kubectl and other clients made with
        client-go: they do not send tokens without TLS.

        Raises:
            StatusError: the user is unknown, or may not make the request.
        """
        sent = request.headers.get("authorization", "")
        is_prefixed = request.path.startswith(PREFIX)
        if not is_prefixed and self.identities.is_admin(sent):  # most requests by far
            if self.has_rbac:
                return self._authorized(request, self._impersonated(request, ADMIN))
            USER.set(ADMIN)
            return request
        given = _given(request)
        if is_prefixed:
            rest = request.path.removeprefix(PREFIX).partition("/")[2]
            request = dataclasses.replace(request, path=f"/{rest}")
        if not self.has_rbac:
            USER.set(ADMIN)
            if self._has_token and request.path not in _PUBLIC:
                self._authenticated(given)
            return request
        user = self._authenticated(given) if given else ANONYMOUS
        return self._authorized(request, self._impersonated(request, user))

    def knows(self, request: ServerRequest) -> bool:
        """Return whether a request has a token of this server. Its rights do not matter here."""
        return not self._has_token or self.identities.of(_given(request)) is not None

    def takes_body(self, request: ServerRequest) -> bool:
        """Return whether the body of a request without a known token is worth reading.

        It is only if roles allow the request to ``system:anonymous``; otherwise the request is
        answered from its head alone.
        """
        if not self.has_rbac or _given(request):
            return False
        try:
            self.check(ANONYMOUS, attributes(request))
        except StatusError:
            return False
        return True

    def _authorized(self, request: ServerRequest, user: RequestUser) -> ServerRequest:
        USER.set(user)
        if not user.is_master:
            self.check(user, attributes(request))
        return request

    def _authenticated(self, token: str) -> RequestUser:
        user = self.identities.of(token)
        if user is None:
            raise status.unauthorized()
        return user

    def decide(self, user: RequestUser, asked: Attributes) -> AccessDecision:
        """Return whether a user may do something."""
        return _MASTERS_MAY if user.is_master else self.policy.decide(user, asked)

    def check(self, user: RequestUser, asked: Attributes) -> None:
        """Refuse what a user may not do.

        Raises:
            StatusError: they may not.
        """
        decision = self.decide(user, asked)
        if not decision.is_allowed:
            raise refusal(user, asked, why=decision.reason)

    def check_create(self, where: Route) -> None:
        """Refuse to create an object by an update or an apply without the verb ``create``.

        Raises:
            StatusError: the user of this request may not create it.
        """
        kind = where.kind
        asked = Attributes("create", kind.group, kind.plural, "", where.namespace, where.name)
        if self.has_rbac:
            self.check(USER.get(), asked)

    # --- impersonation

    def _impersonated(self, request: ServerRequest, user: RequestUser) -> RequestUser:
        """Return the user to impersonate, if the user of the request may; else that user."""
        other = identity.impersonated(request)
        if other is None:
            return user
        if not user.is_master:
            self._check_impersonation(user, other, attributes(request))
        return identity.with_implied_groups(other)

    def _check_impersonation(
        self, user: RequestUser, other: RequestUser, asked: Attributes
    ) -> None:
        """Refuse to take a user for another, unless they may: for this request, or for any."""
        try:
            mode = _mode(other)
            verb = f"impersonate-on:{mode}:{asked.verb}"
            self.check(user, asked._replace(verb=verb))
            for part in _parts(other, f"impersonate:{mode}", group=_AUTHENTICATION):
                self.check(user, part)
        except StatusError:
            # The real server, too, words its refusal by what went well the last time.
            try:
                for part in _parts(other, "impersonate", group=""):
                    self.check(user, part)
            except StatusError:
                if user.name in self._old_impersonators:
                    raise
            else:
                self._old_impersonators.add(user.name)
                return
            raise


def _given(request: ServerRequest) -> str:
    """Return the token that a request has, in its path or else in a header; ``""``: none."""
    if request.path.startswith(PREFIX):
        return request.path.removeprefix(PREFIX).partition("/")[0]
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _mode(other: RequestUser) -> str:
    if identity.account_parts(other.name) is not None:
        return "serviceaccount"
    return "arbitrary-node" if other.name.startswith(_NODE) else "user-info"


def _parts(other: RequestUser, verb: str, *, group: str) -> list[Attributes]:
    """Return all that one must be allowed to be taken for: name, uid, groups and the rest."""
    account = identity.account_parts(other.name)
    if account is not None:
        found = [Attributes(verb, group, "serviceaccounts", "", *account)]
    elif group and other.name.startswith(_NODE):
        found = [Attributes(verb, group, "nodes", name=other.name.removeprefix(_NODE))]
    else:
        found = [Attributes(verb, group, "users", name=other.name)]
    found += [Attributes(verb, group, "groups", name=it) for it in other.groups]
    found += [
        Attributes(verb, _AUTHENTICATION, "userextras", key, name=value)
        for key, values in sorted(other.extra.items())
        for value in values
    ]
    if other.uid:
        found.append(Attributes(verb, _AUTHENTICATION, "uids", name=other.uid))
    return found


# --- what is asked for, and the answer no


def attributes(request: ServerRequest) -> Attributes:
    """Return what a request wants to do, whether or not there is such a resource."""
    path = unquote(request.path)
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return Attributes(request.method.lower(), path=path)
    verb = _VERBS.get(request.method, "")
    if rest[0] in {"watch", "proxy"} and len(rest) > 1:
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in {"status", "finalize"}:
            rest = rest[2:]
    resource, name, subresource = [*rest, "", ""][:3]
    if not name:
        verb, name = _of_collection(request, verb)
    return Attributes(verb, group, resource, subresource, namespace, name)


def _of_collection(request: ServerRequest, verb: str) -> tuple[str, str]:
    """Return the verb on a collection, and the name that its field selector requires, if any."""
    if verb == "delete":
        return "deletecollection", ""
    if verb == "get":
        verb = "watch" if boolean(request, "watch") else "list"
    if verb not in {"list", "watch"}:
        return verb, ""
    for term in request.option("fieldSelector").split(","):
        field, _, value = term.partition("=")
        if field.strip() == "metadata.name" and value:
            return verb, value.removeprefix("=").strip()
    return verb, ""


def refusal(user: RequestUser, asked: Attributes, *, why: str = "") -> StatusError:
    """Return the refusal of something that a user may not do."""
    why = f": {why}" if why else ""
    who = f'User "{user.name}" cannot {asked.verb}'
    if asked.path:
        message = f'forbidden: {who} path "{asked.path}"{why}'
        return StatusError(403, "Forbidden", message, details={})
    scope = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    what = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    if asked.name:
        what = f'{what} "{asked.name}"'
    message = (
        f'{what} is forbidden: {who} resource "{asked.full_resource}" '
        f'in API group "{asked.group}" {scope}{why}'
    )
    named = (("name", asked.name), ("group", asked.group), ("kind", asked.resource))
    details: dict[str, object] = {field: value for field, value in named if value}
    return StatusError(403, "Forbidden", message, details=details)

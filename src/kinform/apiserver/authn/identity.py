"""Identities: users, their tokens, and impersonation."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Final, final
from urllib.parse import unquote

import msgspec

from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.messages import ServerRequest
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.storage.versioned_store import Storage

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "AUTHENTICATED",
    "MASTERS",
    "UNAUTHENTICATED",
    "Identities",
    "Login",
    "RequestUser",
    "account_parts",
    "impersonated",
    "service_account",
    "with_implied_groups",
]

MASTERS: Final = "system:masters"
"""The group whose members may do everything."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_ACCOUNT: Final = "system:serviceaccount:"
_ACCOUNTS: Final = "system:serviceaccounts"
_EXTRA: Final = "impersonate-extra-"


@final
class RequestUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user, as authorization sees it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = {}

    @property
    def is_master(self) -> bool:
        """The user may do everything, independent of roles."""
        return MASTERS in self.groups

    def to_dict(self) -> Json:
        """Return the ``userInfo`` of a review."""
        info: Json = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in sorted(self.extra.items())}
        return info


ADMIN: Final = RequestUser(name="kinform-admin", groups=(MASTERS, AUTHENTICATED))
"""The user of the server's own token."""
ANONYMOUS: Final = RequestUser(name="system:anonymous", groups=(UNAUTHENTICATED,))
"""The user of requests without a token."""


@final
class Login(msgspec.Struct, frozen=True, kw_only=True):
    """A user with a token of this server; the repr does not show it."""

    user: RequestUser
    token: str

    def __repr__(self) -> str:
        return f"Login({self.user.name!r})"

    @property
    def name(self) -> str:
        """The name that roles are bound to."""
        return self.user.name


def account_parts(name: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account with this user name, if it is one.

    >>> account_parts("system:serviceaccount:default:builder")
    ('default', 'builder')
    """
    if not name.startswith(_ACCOUNT):
        return None
    namespace, found, account = name.removeprefix(_ACCOUNT).partition(":")
    return (namespace, account) if found and namespace and account and ":" not in account else None


def service_account(namespace: str, name: str, *, uid: str = "") -> RequestUser:
    """Return a service account as a user."""
    groups = (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return RequestUser(name=f"{_ACCOUNT}{namespace}:{name}", groups=groups, uid=uid)


def with_implied_groups(user: RequestUser) -> RequestUser:
    """Return a user with the groups that are implied by its name."""
    groups, account = user.groups, account_parts(user.name)
    if account is not None and not groups:
        groups = service_account(*account).groups
    if not {AUTHENTICATED, UNAUTHENTICATED} & set(groups):
        implied = UNAUTHENTICATED if user.name == ANONYMOUS.name else AUTHENTICATED
        groups = (*groups, implied)
    return msgspec.structs.replace(user, groups=groups)


@final
class Identities:
    """The tokens of a server, of which only digests are kept.

    Args:
        token: That of `ADMIN`.
        storage: Where the service accounts are: a token goes with its account.
    """

    def __init__(self, token: str, storage: Storage) -> None:
        self._token = token.encode()
        self._header = b"Bearer " + self._token
        self._storage = storage
        self._users: dict[bytes, RequestUser] = {}

    def issue(self, user: RequestUser) -> Login:
        """Return a new token for a user."""
        token = secrets.token_urlsafe(24)
        self._users[_digest(token.encode())] = user
        return Login(user=user, token=token)

    def is_admin(self, header: str) -> bool:
        """Tell, faster than `of`, whether an Authorization header is the usual one of `ADMIN`."""
        return hmac.compare_digest(header.encode(), self._header)

    def of(self, token: str) -> RequestUser | None:
        """Return whose token it is."""
        given = token.encode()
        if hmac.compare_digest(given, self._token):
            return ADMIN
        # The time of a lookup by digest reveals nothing about the tokens.
        user = self._users.get(_digest(given))
        return user if user is not None and self._is_there(user) else None

    def _is_there(self, user: RequestUser) -> bool:
        account = account_parts(user.name)
        if account is None or not user.uid:
            return True
        stored = self._storage.table("serviceaccounts").get("/".join(account))
        return stored is not None and stored.uid == user.uid


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def impersonated(request: ServerRequest) -> RequestUser | None:
    """Return the user that the client impersonates, with exactly the requested groups.

    Raises:
        StatusError: it asks for groups and the like, but for no name.
    """
    headers = request.headers
    asked = [name for name in headers if name[:12] == "impersonate-"]
    if not asked:
        return None
    extra = {
        unquote(name.removeprefix(_EXTRA)): _values(headers[name])
        for name in asked
        if name.startswith(_EXTRA)
    }
    user = RequestUser(
        name=headers.get("impersonate-user", ""),
        groups=_values(headers.get("impersonate-group", "")),
        uid=headers.get("impersonate-uid", ""),
        extra=extra,
    )
    if user.name:
        return user
    if not (user.groups or user.uid or extra):
        return None
    raise status.bad_request(f"requested {_as_go(user)} without impersonating a user name")


def _values(joined: str) -> tuple[str, ...]:
    """Return the values of a header that was sent several times."""
    return tuple(it for it in (part.strip() for part in joined.split(",")) if it)


def _as_go(user: RequestUser) -> str:
    """Return a user as the real server prints its own structure."""
    extra = "(nil)"
    if user.extra:
        pairs = (f"{_quoted(key)}:{_strings(user.extra[key])}" for key in sorted(user.extra))
        extra = "{" + ", ".join(pairs) + "}"
    return (
        f'&user.DefaultInfo{{Name:"", UID:{_quoted(user.uid)}, Groups:{_strings(user.groups)}, '
        f"Extra:map[string][]string{extra}}}"
    )


def _strings(values: Sequence[str]) -> str:
    return "[]string{" + ", ".join(map(_quoted, values)) + "}" if values else "[]string(nil)"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()

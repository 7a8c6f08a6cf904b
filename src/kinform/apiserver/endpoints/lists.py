"""Lists: the state that a list shows, and its pages. Pure.

Rule 1: what a list answers is one state of the whole, also over many pages.
Rule 2: a state that is forgotten is refused, never replaced by another.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from kinform.apiserver.endpoints import list_options as options_
from kinform.apiserver.endpoints import status
from kinform.apiserver.endpoints.list_options import ListQuery
from kinform.apiserver.endpoints.status import StatusError
from kinform.apiserver.serializer import json_values
from kinform.apiserver.serializer.json_values import Json
from kinform.apiserver.storage.versioned_store import (
    Future,
    ResourceTable,
    RevisionExpired,
    Storage,
    Stored,
)

__all__ = ["Page", "page"]

_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9_-]")
_INCONSISTENT: Final = -1
"""The revision in a token that was made for a client whose own token had expired."""
_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token in this "
    "response to retrieve the remainder of the results. Continuing with the provided token results "
    "in an inconsistent list - objects that were created, modified, or deleted between the time "
    "the first chunk was returned and now may show up in the list."
)


class Page(NamedTuple):
    """A list, or a part of one."""

    revision: int
    items: Sequence[Stored]
    continue_token: str = ""
    remaining: int | None = None

    def metadata(self) -> Json:
        """Return the metadata of the list."""
        found: Json = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            found["continue"] = self.continue_token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


class _Token(msgspec.Struct):
    """The contents of a continue token, in kube-apiserver's form."""

    v: str = ""
    rv: int = 0
    start: str = ""


def page(storage: Storage, resource: str, prefix: str, *, options: ListQuery) -> Page:
    """Return the list that ``options`` ask for, of the keys that begin with ``prefix``.

    Raises:
        Future: of a revision that is not there yet; to wait a little is the caller's part.
        StatusError: of a revision that is forgotten, or none at all.
    """
    table = storage.table(resource)
    if options.continue_token:
        return _next_page(storage, table, prefix, options=options)
    asked = _version(options.resource_version)
    if asked > storage.revision:
        raise Future(asked, storage.revision)
    limit = max(options.limit, 0)
    # A limit beside a version means, for historical reasons, that version and no other.
    is_exact = options.match == "Exact" or (not options.match and asked > 0 and limit > 0)
    if options.resource_version == "0":
        limit = 0  # any state will do, and what is at hand is everything
    revision = asked if is_exact else storage.revision
    try:
        items = table.at(revision, prefix)
    except RevisionExpired as exc:
        raise status.expired("The resourceVersion for the provided list is too old.") from exc
    return _cut(items, revision, options=options, limit=limit, prefix=prefix)


def _next_page(storage: Storage, table: ResourceTable, prefix: str, *, options: ListQuery) -> Page:
    token = _read(options)
    start = prefix + token.start
    revision = storage.revision if token.rv == _INCONSISTENT else token.rv
    if revision > storage.revision:
        raise Future(revision, storage.revision)
    try:
        items = table.at(revision, prefix)
    except RevisionExpired as exc:
        error = status.expired(_TOO_OLD)
        error.continue_token = _written(_INCONSISTENT, token.start.removesuffix("\0"))
        raise error from exc
    items = [stored for stored in items if stored.key >= start]
    limit = max(options.limit, 0)
    return _cut(items, revision, options=options, limit=limit, prefix=prefix)


def _cut(
    items: Sequence[Stored], revision: int, *, options: ListQuery, limit: int, prefix: str
) -> Page:
    matches = options.selection.matches
    if options.selection.is_everything:
        if not limit or len(items) <= limit:
            return Page(revision, items)
        token = _written(revision, items[limit - 1].key.removeprefix(prefix))
        return Page(revision, items[:limit], token, len(items) - limit)
    found: list[Stored] = []
    for index, stored in enumerate(items):
        if matches(stored):
            found.append(stored)
            # Objects after a full page are not inspected: perhaps none of them matches.
            if len(found) == limit and index + 1 < len(items):
                token = _written(revision, stored.key.removeprefix(prefix))
                return Page(revision, found, token)
    return Page(revision, found)


def _version(text: str) -> int:
    try:
        return options_.version(text)
    except ValueError as exc:
        raise status.bad_request(f"invalid resource version: {exc}") from exc


def _written(revision: int, last: str) -> str:
    """Return the token of the page that begins behind the key ``last``."""
    start = last + "\0"
    token = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _read(options: ListQuery) -> _Token:
    if options.resource_version and options.resource_version != "0":
        raise status.bad_request("specifying resource version is not allowed when using continue")
    text = options.continue_token
    if (bad := _NOT_BASE64.search(text)) is not None:
        raise _bad_token(f"illegal base64 data at input byte {bad.start()}")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as exc:
        raise _bad_token(f"illegal base64 data at input byte {len(text) // 4 * 4}") from exc
    try:
        token = msgspec.json.decode(data, type=_Token)
    except msgspec.MsgspecError as exc:
        raise _bad_token(json_values.syntax_error(data) or str(exc)) from exc
    if token.v != "meta.k8s.io/v1":
        raise _bad_token(f"server does not recognize this encoded version {token.v}")
    if not token.start:
        raise _bad_token('encoded start key missing (version "meta.k8s.io/v1")')
    return token


def _bad_token(why: str) -> StatusError:
    return status.bad_request(f"invalid continue token: continue key is not valid: {why}")

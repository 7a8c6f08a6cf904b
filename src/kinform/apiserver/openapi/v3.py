"""OpenAPI: the schemas that ``kubectl explain`` shows and that clients validate with.

Version 3 is one document per group and version below ``/openapi/v3``, with an index that names a
hash for each, so that clients keep what did not change. The documents of built-in kinds are what
the real server answered; those of custom kinds are made from their definitions. Version 2 is one
document of everything.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, final

import msgspec

from kinform.apiserver import _recorded
from kinform.apiserver.endpoints.messages import ServerRequest, ServerResponse
from kinform.apiserver.openapi import custom_kinds, v2
from kinform.apiserver.scheme.kind_registry import Kind, Kinds
from kinform.apiserver.serializer.json_values import Json

__all__ = ["OpenApi", "document", "document_v2", "index"]

_UNCACHED: Final = "no-cache, private"
_ROOT: Final = "/openapi/v3"
_V2: Final = "/openapi/v2"
_JSON_RANGES: Final = frozenset({"", "*/*", "application/*", "application/json"})
_KEPT: Final = 256
"""The number of encoded documents that are cached; kubectl asks for one at a time."""


def index(kinds: Kinds) -> Json:
    """Return the index of the documents of version 3, each with its hash."""
    hashes = {path: it.hash for path, it in _recorded.documents().items()}
    hashes |= {path: _custom_hash(own) for path, own in _custom(kinds).items()}
    entries = {path: {"serverRelativeURL": _url(path, it)} for path, it in sorted(hashes.items())}
    return {"paths": entries}


def document(kinds: Kinds, path: str) -> Json | None:
    """Return the document of version 3 at ``path``, such as ``apis/apps/v1``; None if none is."""
    recorded = _recorded.documents().get(path)
    if recorded is not None:
        return _assembled(recorded)
    own = _custom(kinds).get(path)
    return None if own is None else custom_kinds.document(own)


def document_v2(kinds: Kinds) -> Json:
    """Return the document of version 2."""
    recorded = [_assembled(it) for it in _recorded.documents().values()]
    custom = [custom_kinds.document(own) for own in _custom(kinds).values()]
    return v2.document([*recorded, *custom])


def _assembled(recorded: _recorded.Document) -> Json:
    """Put the schemas back into a recorded document."""
    if not recorded.schemas:
        return recorded.document
    shared, variants = _recorded.schemas(), recorded.variants
    schemas = {name: variants.get(name) or shared[name] for name in recorded.schemas}
    components: Json = recorded.document["components"] | {"schemas": schemas}
    return recorded.document | {"components": components}


def _custom(kinds: Kinds) -> Mapping[str, Sequence[Kind]]:
    """Return the custom kinds by the path of their document."""
    found: dict[str, list[Kind]] = {}
    for kind in kinds.all():
        if kind.custom is not None:
            found.setdefault(f"apis/{kind.group}/{kind.version}", []).append(kind)
    return found


def _custom_hash(kinds: Sequence[Kind]) -> str:
    """Return a hash of what a document is made from, so that the index need not make it."""
    return hashlib.sha512(msgspec.json.encode(kinds)).hexdigest().upper()


def _url(path: str, content_hash: str) -> str:
    return f"{_ROOT}/{path}?hash={content_hash}"


class _Body(NamedTuple):
    etag: str
    content: bytes


@final
class OpenApi:
    """Answers below ``/openapi``, each encoded once for as long as it stays the same."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds: Final = kinds
        self._generation = -1
        self._hashes: Mapping[str, str] = {}
        self._index = b""
        self._v2: _Body | None = None
        self._v2_message = b""
        self._encoded: Final = functools.lru_cache(maxsize=_KEPT)(self._encode)

    def answer(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for a document; None if the path is none of these.

        Version 3 is served in JSON only: other clients get a 406, as kubectl expects of a server
        without protobuf. Version 2 is served in both.
        """
        path = request.path.rstrip("/")
        self._refresh()
        if path == _ROOT:
            headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": _UNCACHED}
            return ServerResponse(headers=headers, body=self._index)
        if path == _V2 and _accepts(request, v2.ACCEPTED):
            return self._v2_protobuf(request)
        if path == _V2:
            return _served(request, self._v2_body(), {"Cache-Control": _UNCACHED})
        if path.startswith(f"{_ROOT}/"):
            return self._document(request, path.removeprefix(f"{_ROOT}/"))
        return None

    def _document(self, request: ServerRequest, path: str) -> ServerResponse:
        content_hash = self._hashes.get(path)
        if content_hash is None:
            return ServerResponse(status=HTTPStatus.NOT_FOUND, headers={"Cache-Control": _UNCACHED})
        headers = {"Cache-Control": _UNCACHED}
        if asked := request.option("hash"):
            if asked != content_hash:
                headers |= {"Location": _url(path, content_hash), "Vary": "Accept"}
                return ServerResponse(status=HTTPStatus.MOVED_PERMANENTLY, headers=headers)
            headers["Cache-Control"] = "public, immutable"
        return _served(request, self._encoded(path, content_hash), headers)

    def _refresh(self) -> None:
        """Make the index again if the kinds changed."""
        if self._generation == self._kinds.generation:
            return
        generation = self._kinds.generation
        found = index(self._kinds)
        self._index = msgspec.json.encode(found)
        self._hashes = {
            path: it["serverRelativeURL"].rpartition("=")[2] for path, it in found["paths"].items()
        }
        self._v2 = None
        self._v2_message = b""
        self._generation = generation

    def _encode(self, path: str, content_hash: str) -> _Body:
        found = document(self._kinds, path)
        return _Body(f'"{content_hash}"', msgspec.json.encode(found))

    def _v2_protobuf(self, request: ServerRequest) -> ServerResponse:
        if not self._v2_message:
            self._v2_message = v2.encode(document_v2(self._kinds))
        headers = {"Cache-Control": _UNCACHED}
        body = _Body(self._v2_body().etag, self._v2_message)
        return _answered(request, body, headers, content_type=v2.MEDIA_TYPE)

    def _v2_body(self) -> _Body:
        if self._v2 is None:
            content = msgspec.json.encode(document_v2(self._kinds))
            self._v2 = _Body(f'"{hashlib.sha512(content).hexdigest().upper()}"', content)
        return self._v2


def _served(request: ServerRequest, body: _Body, headers: dict[str, str]) -> ServerResponse:
    if not _accepts_json(request.headers.get("accept", "")):
        return ServerResponse(status=HTTPStatus.NOT_ACCEPTABLE, headers={"Vary": "Accept"})
    return _answered(request, body, headers, content_type="application/json")


def _answered(
    request: ServerRequest, body: _Body, headers: dict[str, str], *, content_type: str
) -> ServerResponse:
    headers = headers | {"ETag": body.etag, "Vary": "Accept"}
    if request.headers.get("if-none-match") == body.etag:
        return ServerResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return ServerResponse(headers=headers | {"Content-Type": content_type}, body=body.content)


def _accepts(request: ServerRequest, media_type: str) -> bool:
    accept = request.headers.get("accept", "")
    return any(it.partition(";")[0].strip() == media_type for it in accept.split(","))


def _accepts_json(accept: str) -> bool:
    return any(entry.partition(";")[0].strip() in _JSON_RANGES for entry in accept.split(","))

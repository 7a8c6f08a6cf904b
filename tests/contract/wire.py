"""Plain HTTP to a server, every request kept as an exchange.

Paths are templates: ``{ns}`` is the case's own namespace. Query parameters are keywords, as
they are on the wire; ``continue_`` stands for ``continue``.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from tests.contract.exchange import Answer, Exchange, Json, Option, View
from tests.contract.target import Target
from tests.contract.watch import Watch

__all__ = ["Wire"]


class Wire:
    """One case's requests to one server; used by one task.

    Attributes:
        ns: The case's own namespace, made before the case and deleted after it.
        ident: What no other case has in its names.
        exchanges: What was said so far.
        created: The paths of what is cluster-scoped and new.
    """

    def __init__(self, http: aiohttp.ClientSession, target: Target, *, ident: str) -> None:
        self._http: Final = http
        self.target: Final = target
        self.ident: Final = ident
        self.ns: Final = f"contract-{ident}"
        self.exchanges: Final[list[Exchange]] = []
        self.created: Final[list[str]] = []

    # Requests.

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        quiet: bool = False,
        view: View | None = None,
        **query: object,
    ) -> Answer:
        """Send a request and keep the exchange; a body that is an object is sent as JSON."""
        chosen, pairs = dict(headers or {}), _pairs(query)
        async with self._http.request(
            method,
            self._url(path, pairs),
            data=_content(body),
            headers=self._headers(chosen, body),
            allow_redirects=False,
        ) as response:
            answer = Answer(response.status, _joined(response.headers), await response.read())
        self.exchanges.append(
            Exchange(
                method=method,
                path=self._path(path),
                query=pairs,
                headers=chosen,
                body=body.decode(errors="replace") if isinstance(body, bytes) else body,
                answer=answer,
                view=view,
                is_quiet=quiet,
            )
        )
        self._remember(method, path, answer)
        return answer

    async def get(self, path: str, **options: Option) -> Answer:
        """GET; see `request` for the options."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: object, **options: Option) -> Answer:
        """POST; see `request` for the options."""
        return await self.request("POST", path, body=body, **options)

    async def put(self, path: str, body: object, **options: Option) -> Answer:
        """PUT; see `request` for the options."""
        return await self.request("PUT", path, body=body, **options)

    async def patch(
        self, path: str, body: object, *, kind: str = "merge", **options: Option
    ) -> Answer:
        """PATCH with a body of the ``kind`` merge, json, strategic-merge or apply."""
        media = f"application/{kind}-patch+{'yaml' if kind == 'apply' else 'json'}"
        headers = {"Content-Type": media, **(options.pop("headers", None) or {})}
        return await self.request("PATCH", path, body=body, headers=headers, **options)

    async def delete(self, path: str, body: object = None, **options: Option) -> Answer:
        """DELETE; see `request` for the options."""
        return await self.request("DELETE", path, body=body, **options)

    # Watches.

    @asynccontextmanager
    async def watch(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        chunks: bool = False,
        bookmarks: bool = False,
        **query: object,
    ) -> AsyncGenerator[Watch]:
        """Open a watch; what it brought is kept, as one exchange, when the block ends.

        The server has answered when the block begins, so writes inside it are seen. With
        ``chunks`` the HTTP chunks are kept too, with ``bookmarks`` those that come by the
        server's clock: how often is its own affair, so a row of them counts as one. No
        ``watch`` parameter is added: say it.
        """
        chosen, pairs = dict(headers or {}), _pairs(query)
        async with self._http.get(
            self._url(path, pairs), headers=self._headers(chosen, None), allow_redirects=False
        ) as response:
            head = Answer(response.status, _joined(response.headers))
            watch = Watch(response, head, has_bookmarks=bookmarks)
            if response.status != 200:
                await watch.read_answer()
            yield watch
            response.close()
        self.exchanges.append(
            Exchange(
                method="GET",
                path=self._path(path),
                query=pairs,
                headers=chosen,
                body=None,
                answer=watch.answer,
                is_watch=response.status == 200 and not watch.answer.content,
                events=watch.events,
                ended=watch.ended,
                chunks=watch.chunks if chunks else None,
            )
        )

    async def watched(self, path: str, count: int | None = None, **options: Option) -> list[Json]:
        """Open a watch, take ``count`` events (None: all until the server ends it), close it."""
        async with self.watch(path, **options) as watch:
            if count is None:
                await watch.until_end()
            else:
                await watch.take(count)
        return watch.events

    # Inside.

    def _path(self, path: str) -> str:
        return path.replace("{ns}", self.ns)

    def _url(self, path: str, pairs: list[tuple[str, str]]) -> URL:
        query = urlencode(pairs)
        glue = "?" if query and "?" not in path else "&" if query else ""
        return URL(f"{self.target.url}{self._path(path)}{glue}{query}", encoded=True)

    def _headers(self, chosen: dict[str, str], body: object) -> dict[str, str]:
        headers = {"User-Agent": "contract/1", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        return {**headers, **self.target.headers, **chosen}

    def _remember(self, method: str, path: str, answer: Answer) -> None:
        """Note what is cluster-scoped and new, to be deleted at the end."""
        path, _, query = self._path(path).partition("?")
        if answer.status != 201 or "/namespaces/" in path or "dryRun" in query:
            return
        body = answer.body
        name = body.get("metadata", {}).get("name") if isinstance(body, dict) else None
        if name:
            self.created.append(f"{path}/{name}" if method == "POST" else path)


def _pairs(query: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the parameters as text; a text stays the object it is, a `ListVersion` for one."""
    return [
        (key.rstrip("_"), value if isinstance(value, str) else str(value))
        for key, value in query.items()
        if value is not None
    ]


def _content(body: object) -> io.BytesIO | None:
    if body is None:
        return None
    if isinstance(body, str):
        body = body.encode()
    # A stream, because aiohttp warns of large bytes.
    return io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())


def _joined(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    return {name.lower(): "\n".join(headers.getall(name)) for name in headers}
